"""One pod released: its node named in its affinity, its hold gate taken away; its own scheduler binds it then.

Two requests, each as the version of the pod that was read last and with its uid:

1. ``status.nominatedNodeName``. No tenant may write it, everybody who looks at the pod sees it, and kube-scheduler
   leaves the room to the pod against those that are not more urgent, from before its gate is gone.
2. One PATCH of the pod: a ``matchFields`` of the node's name in every term of its required node affinity, and no gates.
   The API server allows that of a gated pod alone, and only more in each term: what is there stays, in its order. A
   term without anything in it matches nothing, and stays so.

A gate cannot be put back. What is nominated and then not released has its nomination taken back by the fence
(:mod:`placer.cluster.writing.binding`).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from placer.cluster.planning.binding_plan import PlannedBinding
from placer.cluster.reading.views import NODE_FIELD

__all__ = ["nomination", "release"]

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def nomination(bind: PlannedBinding, version: str) -> dict[str, Any]:
    """What is written into the status of a pod that is about to be released, as strategic merge patch."""
    return {"metadata": _which(bind, version), "status": {"nominatedNodeName": bind.node}}


def release(bind: PlannedBinding, text: bytes, annotations: Mapping[str, str]) -> dict[str, Any]:
    """What releases a pod, as JSON merge patch.

    Parameters
    ----------
    bind
        Where it goes.
    text
        The pod, whole, as the server gave it last.
    annotations
        What is written beside.
    """
    pod = json.loads(text)
    metadata: dict[str, Any] = _which(bind, pod["metadata"]["resourceVersion"])
    if annotations:
        metadata["annotations"] = dict(annotations)
    affinity = ((pod["spec"].get("affinity") or {}).get("nodeAffinity") or {}).get(_REQUIRED) or {}
    terms = [_narrowed(term, bind.node) for term in affinity.get("nodeSelectorTerms") or [{"matchFields": []}]]
    required = {"nodeAffinity": {_REQUIRED: {"nodeSelectorTerms": terms}}}
    return {"metadata": metadata, "spec": {"affinity": required, "schedulingGates": None}}


def _which(bind: PlannedBinding, version: str) -> dict[str, str]:
    """Which pod, and which version of it; an empty one: any."""
    return {"uid": bind.uid} | ({"resourceVersion": version} if version else {})


def _narrowed(term: Mapping[str, Any], node: str) -> dict[str, Any]:
    """A term that matches no other node than this one; one that matches nothing as it is."""
    if not term:
        return {}
    name = {"key": NODE_FIELD, "operator": "In", "values": [node]}
    fields = term.get("matchFields") or []
    return {**term, "matchFields": [*fields, *([] if name in fields else [name])]}
