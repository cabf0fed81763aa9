"""A hostile namespace within its budget makes a pass at most 1.5 times as late for all others.

Late is counted without a clock: calls of functions from the instance to the verified answer with its reasons. The
others have a hundred pods of sixty kinds, and the hostile namespace half as many, of which each costs all it can. Its
budget is about a third of what the others spend. Reading is apart: it grows with what is written, whoever writes it.
"""

from __future__ import annotations

import sys
from functools import cache
from types import FrameType
from typing import Any

import pytest

from placer.answers.solving import solve
from placer.problem import Instance
from placer.problem.namespace_budget import NamespaceBudget, within_budget
from placer.problem.result import Result, Termination
from tests.examples import every
from tests.hostile import EVIL, HOSTILE
from tests.support import Document, instance_of, node, pod, pod_group

#: What the namespace may spend; terms in the proportion of these pods to those of a large cluster.
BUDGET = NamespaceBudget(terms=12, resources=20, bytes=100_000)
#: Priorities are no tenant's: an administrator makes each PriorityClass, and a quota may forbid it.
OF_TENANTS = [kind for kind in HOSTILE if kind != "priorities"]


def others() -> list[Document]:
    """Single pods of two namespaces, half of them apart from their like, and ten gangs of four."""
    found = [node(f"n{at}", labels={"kubernetes.io/hostname": f"n{at}"}, cpu=16, pods=30) for at in range(40)]
    for at in range(60):
        labels = {"app": f"a{at % 20}"}
        term = {"labelSelector": {"matchLabels": labels}, "topologyKey": "kubernetes.io/hostname"}
        apart = {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}}
        namespace, spec = f"good-{at % 2}", apart if at % 2 else {}
        found.append(pod(f"h{at}", namespace=namespace, labels=labels, cpu=1 + at % 4, spec=spec))
    for gang in range(10):
        found.append(pod_group(f"g{gang}", "good-0", minMember=4))
        found += [
            pod(f"g{gang}-{at}", namespace="good-0", group=f"g{gang}", cpu=2, memory=f"{gang + 1}Gi") for at in range(4)
        ]
    return found


def counted(instance: Instance) -> tuple[int, Result]:
    """Calls of functions until there is an answer, and the answer."""
    calls = 0

    def called(_frame: FrameType, event: str, _argument: Any) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(called)
    try:
        result = solve(instance, method="greedy", time_limit=None)
    finally:
        sys.setprofile(before)
    return calls, result


@cache
def alone() -> int:
    instance = instance_of(*others())
    solve(instance, method="greedy", time_limit=None)  # what is imported is imported once
    return counted(instance)[0]


@pytest.mark.parametrize("kind", every(4, OF_TENANTS))
def test_the_others_are_placed_at_most_half_as_much_later(kind: str) -> None:
    without = alone()
    beside = within_budget(instance_of(*others(), *HOSTILE[kind](50)), BUDGET)
    solve(within_budget(instance_of(*others(), *HOSTILE[kind](2)), BUDGET), method="greedy", time_limit=None)
    calls, result = counted(beside)
    assert result.placement is not None
    assert sum(key.namespace != EVIL for key in result.placement.node_of) == 100
    assert result.termination is Termination.PROVED
    assert calls <= 1.5 * without
