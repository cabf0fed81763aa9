"""Objects that the API server takes and no schema of ours does, one at a time beside gangs that are in order.

None of them ends a pass: what depends on it waits, that is told by a finding or a condition, and everything else is
bound.
"""

from __future__ import annotations

import random
import string
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

import pytest

from placer.passes.cluster.writing.binding import NUMA_ZONES
from tests.cluster.api import Api
from tests.cluster.faults import PODS
from tests.cluster.passes import Passes, bound, gang
from tests.cluster.things import live_pod, numa_topology
from tests.examples import every
from tests.support import Document, hyper_node, node, pod_group, queue

pytestmark = pytest.mark.usefixtures("lasting_lease")

COSCHEDULING, APP_GROUP = "scheduling.x-k8s.io/v1alpha1", "appgroup.diktyo.x-k8s.io/v1alpha1"
WORKLOAD = {"kind": "Deployment", "apiVersion": "apps/v1", "namespace": "default", "name": "p", "selector": "p"}
LONG = f"{'a' * 60}.{'b' * 60}.{'c' * 60}.{'d' * 60}/{'e' * 60}"  #: of 305 characters: a prefix may have 253


UNREADABLE = {"type": "Node", "selector": {"regexMatch": {"pattern": "("}}}
CLAIM = {"name": "data", "persistentVolumeClaim": {"claimName": "nowhere"}}
#: What a reader of ours looks for in the annotations of a pod.
ANNOTATIONS = ("volcano.sh/numa-topology-policy", "volcano.sh/task-spec", "volcano.sh/task-index", NUMA_ZONES)


#: Gangs that are in order.
GOOD = 10


def _affinity(operator: str, *values: str, key: str = "x") -> Mapping[str, Any]:
    terms = [{"matchExpressions": [{"key": key, "operator": operator, "values": list(values)}]}]
    return {
        "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}
    }


def _spread(most: int) -> Mapping[str, Any]:
    spread = {"maxSkew": most, "topologyKey": "x", "whenUnsatisfiable": "ScheduleAnyway", "minDomains": None}
    return {"topologySpreadConstraints": [spread]}


def _group(**spec: Any) -> list[Document]:
    return [pod_group("odd", **({"minMember": 1} | spec)), live_pod("odd-0", group="odd", cpu=1)]


def _custom(kind: str, api_version: str, name: str, **body: Any) -> Document:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name}, **body}


def _daemon_set(**requests: object) -> Document:
    labels = {"app": "odd"}
    template = {
        "metadata": {"labels": labels},
        "spec": live_pod("odd", scheduler="default-scheduler", **requests)["spec"],
    }
    return _custom("DaemonSet", "apps/v1", "odd", spec={"selector": {"matchLabels": labels}, "template": template})


def _many_terms(count: int) -> Mapping[str, Any]:
    terms = [{"matchExpressions": [{"key": "x", "operator": "In", "values": [f"v{at}"]}]} for at in range(count)]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    return {"affinity": {"nodeAffinity": required}}


def _many_constraints(count: int) -> Mapping[str, Any]:
    said = {"maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule", "labelSelector": {}}
    return {"topologySpreadConstraints": [{**said, "topologyKey": f"k{at}"} for at in range(count)]}


def _many_rivals(count: int) -> Mapping[str, Any]:
    terms = [{"topologyKey": f"k{at}", "labelSelector": {}} for at in range(count)]
    return {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}}


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
    "a least member of nobody": (_group(minMember=0), True),
    "a least member beyond all bounds": (_group(minMember=2**31 - 1), False),
    "a tier above all trees": (_group(networkTopology={"mode": "hard", "highestTierAllowed": 2**31 - 1}), True),
    "a tier with a name that no HyperNode has": (
        _group(networkTopology={"mode": "hard", "highestTierName": "\u001b[2J"}),
        False,
    ),
    "a HyperNode that selects by no pattern": (
        [_custom("HyperNode", "topology.volcano.sh/v1alpha1", "odd", spec={"tier": 1, "members": [UNREADABLE]})],
        True,
    ),
    "HyperNodes in a circle": (
        [hyper_node("odd", 1, children=("even",)), hyper_node("even", 1, children=("odd",))],
        True,
    ),
    "queues in a circle": (
        [queue("odd", parent="even"), queue("even", parent="odd"), *_group(queue="odd")],
        True,
    ),
    "a queue that is not there": (_group(queue="nowhere"), True),
    "an amount below the smallest": ([live_pod("odd-0", cpu="1n", memory="1n")], True),
    "a spread of more than there can be": ([live_pod("odd-0", spec=_spread(2**31 - 1))], True),
    "gates that nobody takes away": ([live_pod("odd-0", spec={"schedulingGates": [{"name": "odd.example/x"}]})], False),
    "another operating system": ([live_pod("odd-0", spec={"os": {"name": "windows"}})], False),
    "a claim that is not there": ([live_pod("odd-0", spec={"volumes": [CLAIM]})], False),
    "a group that is not there": ([live_pod("odd-0", group="nowhere", cpu=1)], False),
    "annotations of others with nonsense in them": (
        [live_pod("odd-0", cpu=1, annotations=dict.fromkeys(ANNOTATIONS, "\u001b[31m{"))],
        True,
    ),
    "an affinity of ten thousand terms": ([live_pod("odd-0", spec=_many_terms(10_000))], False),
    "three thousand spread constraints": ([live_pod("odd-0", spec=_many_constraints(3_000))], False),
    "three thousand terms of anti-affinity": ([live_pod("odd-0", spec=_many_rivals(3_000))], False),
    "a DaemonSet whose pods no node can hold": ([_daemon_set(cpu=1000)], True),
    "a network without its ConfigMap": (
        [
            _custom(
                "NetworkTopology",
                "networktopology.diktyo.x-k8s.io/v1alpha1",
                "odd",
                spec={"configmapName": "nowhere", "weights": [{"name": "x", "topologyList": []}]},
            )
        ],
        True,
    ),
}


def _says_why(pod: Document) -> bool:
    """Whether a pod has a condition with a message, why it waits."""
    conditions = pod["status"].get("conditions") or []
    return any(each["type"] == "PodScheduled" and each["message"] for each in conditions)


@pytest.mark.parametrize("case", every(4, POISON))
def test_all_others_are_bound(case: str, cluster: Api, passes: Passes, install: Callable[[str], None]) -> None:
    poison, may_go = POISON[case]
    for whose in ("scheduler-plugins", "noderesourcetopology"):
        install(whose)
    cluster.create(node("n1", cpu=30), *poison)
    cluster.create(*(each for number in range(GOOD) for each in gang(f"good-{number}", 2)))
    told = passes()
    where = bound(cluster)
    good = {f"good-{number}-{pod}" for number in range(GOOD) for pod in range(2)}
    assert where.keys() - {"odd-0"} == good
    assert may_go or "odd-0" not in where
    assert may_go or "Unreadable" in told["findings"] or _says_why(cluster.get(f"{PODS}/odd-0"))
    assert (told["incomplete"], told["overfull"]) == ([], [])


def test_names_without_end_in_what_kubelets_reject_do_not_keep_the_record_from_being_written(
    cluster: Api, passes: Passes
) -> None:
    """Eight pods with groups of 200,000 characters, each of which names its node: none of them was bound by placer, so
    that nothing is remembered and no node cools down.
    """
    drawn = random.Random(1)
    cluster.create(node("n1", cpu=30), node("n2", cpu=30))
    for number in range(8):
        name = "".join(drawn.choices(string.ascii_letters, k=200_000))
        made = live_pod(f"odd-{number}", node="n1", group=name, cpu=99)
        cluster.create({**made, "status": {"phase": "Failed", "reason": "OutOfcpu", "startTime": _now()}})
    cluster.create(*gang("good", 2))
    told = passes()
    assert bound(cluster).keys() == {"good-0", "good-1"}
    assert (told["error"], told["coolingNodes"]) == (None, [])


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
