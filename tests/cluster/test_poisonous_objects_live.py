"""Objects that the API server takes and no schema of ours does, one at a time beside gangs that are in order.

None of them ends a pass: what depends on it waits, that is told by a finding or a condition, and everything else is
bound.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from placer.passes.cluster.writing.binding import NUMA_ZONES
from tests.cluster.api import Api
from tests.cluster.faults import PODS
from tests.cluster.passes import Passes, bound, gang
from tests.cluster.things import live_pod, numa_topology
from tests.examples import every
from tests.netdocs import app_group, call, network_topology, weights
from tests.support import Document, hyper_node, node, pod_group, queue

pytestmark = pytest.mark.usefixtures("lasting_lease")

COSCHEDULING, APP_GROUP = "scheduling.x-k8s.io/v1alpha1", "appgroup.diktyo.x-k8s.io/v1alpha1"
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


#: What is created, and whether a pod named ``odd-0`` among it may be bound all the same.
POISON: dict[str, tuple[list[Document], bool]] = {
    "Gt with a word": ([live_pod("odd-0", spec=_affinity("Gt", "abc"))], False),
    "a long key of a label": ([live_pod("odd-0", labels={LONG: "x"})], True),
    "a request beyond all bounds": ([live_pod("odd-0", cpu="1e30")], False),
    "least resources below zero": (_group(minResources={"cpu": "-1"}), False),
    "a capability beyond all bounds": ([queue("odd", {"cpu": "1e30"}), *_group(queue="odd")], False),
    "a bandwidth below zero": (
        [
            app_group("odd", {"p": [call("p", bandwidth="-1")]}, numMembers=1),
            live_pod("odd-0", labels={"appgroup.diktyo.x-k8s.io": "odd"}, cpu=1, namespace="default"),
        ],
        False,
    ),
    "zones of more than there can be": (
        [numa_topology("n1", {"cpu": "1e30"}), numa_topology("odd", {"cpu": "-1"}), node("n2", cpu=30)],
        True,
    ),
    "a node of more than there can be": ([node("odd", cpu="1e30")], True),
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
    "a claim that is not there": ([live_pod("odd-0", spec={"volumes": [CLAIM]})], False),
    "annotations of others with nonsense in them": (
        [live_pod("odd-0", cpu=1, annotations=dict.fromkeys(ANNOTATIONS, "\u001b[31m{"))],
        True,
    ),
    "an affinity of ten thousand terms": ([live_pod("odd-0", spec=_many_terms(10_000))], False),
    "a DaemonSet whose pods no node can hold": ([_daemon_set(cpu=1000)], True),
    "a network without its ConfigMap": ([network_topology(weights("x"), name="odd")], True),
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
