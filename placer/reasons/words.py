"""Numbers as people read them in a reason."""

from __future__ import annotations

from collections.abc import Mapping

from placer.quantity import PODS, format_amount

__all__ = ["counted", "plural", "shape_text"]


def plural(count: int, noun: str) -> str:
    """Write a count with its noun.

    Examples
    --------
    >>> plural(1, "pod"), plural(3, "pod")
    ('1 pod', '3 pods')
    """
    return f"{count} {noun}" + ("" if count == 1 else "s")


def shape_text(requests: Mapping[str, int]) -> str:
    """Write what a pod requests, itself apart.

    Examples
    --------
    >>> shape_text({"cpu": 1500, "nvidia.com/gpu": 8, "pods": 1})
    'cpu 1500m, nvidia.com/gpu 8'
    """
    amounts = [f"{name} {format_amount(name, amount)}" for name, amount in requests.items() if name != PODS]
    return ", ".join(amounts) or "no request"


def counted(counts: Mapping[str, int]) -> str:
    """Write counts of causes, the most frequent first, as kube-scheduler does.

    Examples
    --------
    >>> counted({"node selector pool=gpu": 2, "node is not Ready": 3})
    '3 node is not Ready, 2 node selector pool=gpu'
    """
    ranked = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return ", ".join(f"{count} {text}" for text, count in ranked)
