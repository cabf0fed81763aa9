"""Objects that the API server takes and no schema of ours does, one at a time beside gangs that are in order.

None of them ends a pass: each is a finding, what depends on it waits, and everything else is bound.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from tests.cluster.api import Api
from tests.cluster.passes import Passes, bound, gang
from tests.cluster.things import live_pod, numa_topology
from tests.support import Document, node, pod_group, queue

COSCHEDULING, APP_GROUP = "scheduling.x-k8s.io/v1alpha1", "appgroup.diktyo.x-k8s.io/v1alpha1"
WORKLOAD = {"kind": "Deployment", "apiVersion": "apps/v1", "namespace": "default", "name": "p", "selector": "p"}
LONG = f"{'a' * 60}.{'b' * 60}.{'c' * 60}.{'d' * 60}/{'e' * 60}"  #: of 305 characters: a prefix may have 253


def _affinity(operator: str, *values: str, key: str = "x") -> Mapping[str, Any]:
    terms = [{"matchExpressions": [{"key": key, "operator": operator, "values": list(values)}]}]
    return {
        "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}
    }


def _group(**spec: Any) -> list[Document]:
    return [pod_group("odd", **({"minMember": 1} | spec)), live_pod("odd-0", group="odd", cpu=1)]


def _custom(kind: str, api_version: str, name: str, **body: Any) -> Document:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name}, **body}


#: What is created, and whether a pod named ``odd-0`` among it may be bound all the same.
POISON: dict[str, tuple[list[Document], bool]] = {
    "Gt with a word": ([live_pod("odd-0", spec=_affinity("Gt", "abc"))], False),
    "Lt with a word": ([live_pod("odd-0", spec=_affinity("Lt", "1.5"))], False),
    "Gt with a huge number": ([live_pod("odd-0", spec=_affinity("Gt", "9" * 40))], False),
    "a long key of a label": ([live_pod("odd-0", labels={LONG: "x"})], True),
    "a long key of a selector": ([live_pod("odd-0", spec={"nodeSelector": {LONG: "x"}})], False),
    "a long key of an affinity": ([live_pod("odd-0", spec=_affinity("Exists", key=LONG))], False),
    "a request beyond all bounds": ([live_pod("odd-0", cpu="1e30")], False),
    "a request of memory beyond all bounds": ([live_pod("odd-0", memory="1e30")], False),
    "least resources below zero": (_group(minResources={"cpu": "-1"}), False),
    "least resources beyond all bounds": (_group(minResources={"cpu": "1e30"}), False),
    "a least member for tasks below zero": (_group(minTaskMember={"a": -3}), True),
    "a capability below zero": ([queue("odd", {"cpu": "-1"}), *_group(queue="odd")], False),
    "a capability beyond all bounds": ([queue("odd", {"cpu": "1e30"}), *_group(queue="odd")], False),
    "least resources of coscheduling below zero": (
        [
            _custom("PodGroup", COSCHEDULING, "odd", spec={"minMember": 1, "minResources": {"cpu": "-1"}}),
            live_pod("odd-0", labels={"scheduling.x-k8s.io/pod-group": "odd"}, cpu=1),
        ],
        False,
    ),
    "a bandwidth below zero": (
        [
            _custom(
                "AppGroup",
                APP_GROUP,
                "odd",
                spec={
                    "numMembers": 1,
                    "topologySortingAlgorithm": "KahnSort",
                    "workloads": [
                        {"workload": WORKLOAD, "dependencies": [{"workload": WORKLOAD, "minBandwidth": "-1"}]}
                    ],
                },
            ),
            live_pod("odd-0", labels={"appgroup.diktyo.x-k8s.io": "odd"}, cpu=1, namespace="default"),
        ],
        False,
    ),
    "zones of more than there can be": (
        [numa_topology("n1", {"cpu": "1e30"}), numa_topology("odd", {"cpu": "-1"}), node("n2", cpu=30)],
        True,
    ),
    "a node of more than there can be": ([node("odd", cpu="1e30")], True),
}


@pytest.mark.parametrize("case", POISON)
def test_all_others_are_bound(case: str, cluster: Api, passes: Passes, install: Callable[[str], None]) -> None:
    poison, may_go = POISON[case]
    for whose in ("scheduler-plugins", "noderesourcetopology"):
        install(whose)
    cluster.create(node("n1", cpu=30), *poison)
    cluster.create(*(each for number in range(10) for each in gang(f"good-{number}", 2)))
    told = passes()
    where = bound(cluster)
    good = {f"good-{number}-{pod}" for number in range(10) for pod in range(2)}
    waiting = good if case == "a bandwidth below zero" else set()  # an AppGroup that may have any pod of its namespace
    assert where.keys() - {"odd-0"} == good - waiting
    assert "Unreadable" in told["findings"] or may_go or case == "a long key of a selector"  # which no node has
    assert may_go or "odd-0" not in where
    assert (told["incomplete"], told["overfull"]) == ([], [])
