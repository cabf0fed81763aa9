"""What bound pods break by themselves is a finding, with the rule, and never more than that."""

from __future__ import annotations

from typing import Any

from placer.problem import Instance
from tests.support import Document, hyper_node, instance_of, node, pod, pod_group, policy, queue

QUEUE = "scheduling.volcano.sh/queue-name"
DELETED = {"deletionTimestamp": "2026-01-01T00:00:00Z"}


def broken(*docs: Document, **options: Any) -> list[tuple[str, str]]:
    """Object and message of every finding, which must all be of the one code."""
    instance: Instance = instance_of(*docs, **options)
    assert {finding.code for finding in instance.findings} <= {"BoundPodsViolate"}
    return [(finding.object, finding.message) for finding in instance.findings]


def test_room_held_for_another_scheduler_is_no_breach() -> None:
    other = pod("a", spec={"schedulerName": "other"}, status={"nominatedNodeName": "n1"}, cpu=5)
    assert broken(node("n1", cpu=4), other, scheduler_name="placer") == []


def ports(*written: dict[str, Any]) -> dict[str, Any]:
    return {"containers": [{"name": "a", "ports": list(written)}]}


def test_host_ports() -> None:
    docs = (node("n1"), node("n2"), pod("a", node="n1", spec=ports({"hostPort": 80, "hostIP": "10.0.0.1"})))
    message = "C2: Pod default/a and Pod default/b both take TCP host port 80 of Node n1"
    assert broken(*docs, pod("b", node="n1", spec=ports({"hostPort": 80}))) == [("Node n1", message)]
    assert broken(*docs, pod("b", node="n2", spec=ports({"hostPort": 80}))) == []
    assert broken(*docs, pod("b", node="n1", spec=ports({"hostPort": 80, "hostIP": "10.0.0.2"}))) == []
    assert broken(*docs, pod("b", node="n1", spec=ports({"hostPort": 80, "protocol": "UDP"}))) == []


TREE = (
    *(node(f"n{number}") for number in range(4)),
    hyper_node("a", 1, nodes=("n0", "n1")),
    hyper_node("b", 1, nodes=("n2",)),
    hyper_node("top", 2, children=("a", "b")),
)


def spread(limit: int, *nodes: str) -> tuple[Document, ...]:
    group = pod_group("g", networkTopology={"mode": "hard", "highestTierAllowed": limit})
    return (*TREE, group, *(pod(f"p{index}", group="g", node=name) for index, name in enumerate(nodes)))


def test_tier_limits_of_groups() -> None:
    message = "C7: the bound pods of PodGroup default/g span tier 2, where at most tier 1 is allowed"
    assert broken(*spread(1, "n0", "n2")) == [("PodGroup default/g", message)]
    assert broken(*spread(1, "n0", "n1")) == []
    assert broken(*spread(2, "n0", "n2")) == []


def test_a_node_in_no_hyper_node_lies_under_the_root_only() -> None:
    message = "C7: the bound pods of PodGroup default/g span tier 3, where at most tier 2 is allowed"
    assert broken(*spread(2, "n0", "n3")) == [("PodGroup default/g", message)]
    assert broken(*spread(3, "n0", "n3")) == []


def test_tier_limits_of_subgroups() -> None:
    tight = {"mode": "hard", "highestTierAllowed": 1}
    group = pod_group("g", subGroupPolicy=[{"name": "s", "matchLabelKeys": ["part"], "networkTopology": tight}])
    members = [pod(f"p{index}", group="g", node=f"n{index}", labels={"part": str(index // 2)}) for index in range(3)]
    assert broken(*TREE, group, *members) == []
    last = pod("p3", group="g", node="n0", labels={"part": "1"})
    message = "C7: the bound pods of subgroup s-1 of PodGroup default/g span tier 2, where at most tier 1 is allowed"
    assert broken(*TREE, group, *members, last) == [("PodGroup default/g", message)]


def replica(name: str, index: int, node: str) -> Document:
    labels = {"leaderworkerset.sigs.k8s.io/name": "llm", "leaderworkerset.sigs.k8s.io/group-index": str(index)}
    return pod(name, node=node, labels=labels, annotations={"leaderworkerset.sigs.k8s.io/exclusive-topology": "rack"})


def test_domains_of_units() -> None:
    nodes = (node("n1", {"rack": "a"}), node("n2", {"rack": "b"}), node("n3"))
    first, second = (f"replica {index} of LeaderWorkerSet default/llm" for index in (0, 1))
    assert broken(*nodes, replica("p", 0, "n1"), replica("q", 0, "n1"), replica("r", 1, "n2")) == []
    apart = f"C7: the bound pods of {first} are not in one domain of rack, but in a, b"
    assert broken(*nodes, replica("p", 0, "n1"), replica("q", 0, "n2")) == [(first, apart)]
    outside = f"C7: the bound pods of {first} are not in one domain of rack, but in none"
    assert broken(*nodes, replica("p", 0, "n3")) == [(first, outside)]
    both = f"C15: {first} and {second} are exclusive in rack and run in rack=a"
    assert broken(*nodes, replica("p", 0, "n1"), replica("q", 1, "n1")) == [(first, both)]


def test_queue_capability_binds_up_to_the_root() -> None:
    queues = (queue("top", {"cpu": 3}), queue("q", {"cpu": 2}, parent="top"))
    first = pod("a", node="n1", cpu=3, annotations={QUEUE: "q"})
    late = pod("b", node="n1", cpu=1, annotations={QUEUE: "q"}, metadata=DELETED)
    assert broken(node("n1"), *queues, first) == [
        ("Queue q", "C11: bound pods in Queue q request more than its capability: cpu 3 of 2"),
    ]
    assert broken(node("n1"), *queues, first, late) == [
        ("Queue q", "C11: bound pods in Queue q request more than its capability: cpu 4 of 2"),
        ("Queue top", "C11: bound pods in Queue top request more than its capability: cpu 4 of 3"),
    ]
    assert broken(node("n1"), *queues, first, policy(rules={"C11": "off"})) == []
    assert broken(node("n1"), *queues, pod("a", cpu=3, annotations={QUEUE: "q"})) == []


def test_pods_that_keep_each_other_off_their_domain() -> None:
    """Terminating ones are on their way out, and a node without the label is in no domain."""

    def apart(name: str, on: str, **more: Any) -> Document:
        term = {"topologyKey": "rack", "labelSelector": {"matchLabels": {"app": "db"}}}
        affinity = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
        metadata = {"labels": {"app": "db"}, **more}
        return pod(name, node=on, metadata=metadata, spec={"affinity": affinity})

    docs = (node("n1", labels={"rack": "r1"}), node("n2", labels={"rack": "r1"}), node("n3"))
    message = (
        "C13: required pod anti-affinity of Pod default/a and its like keeps {} of bound pods apart that are in one "
        "domain, rack=r1"
    )
    assert broken(*docs, apart("a", "n1"), apart("b", "n2")) == [("Pod default/a", message.format("1 pair"))]
    meant = pod("c", node="n2", metadata={"labels": {"app": "db"}})
    found = broken(*docs, apart("a", "n1"), apart("b", "n1"), meant)
    assert found == [("Pod default/a", message.format("3 pairs"))]
    assert broken(*docs, apart("a", "n1"), apart("b", "n2", **DELETED)) == []
    assert broken(*docs, apart("a", "n3"), apart("b", "n3")) == []


def near_web(name: str, on: str, **labels: str) -> Document:
    term = {"labelSelector": {"matchLabels": {"app": "web"}}, "topologyKey": "rack"}
    affinity = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    return pod(name, node=on, spec={"affinity": affinity}, metadata={"labels": labels})


def test_pod_affinity() -> None:
    docs = (node("n1", labels={"rack": "r1"}), node("n2", labels={"rack": "r2"}), node("n3"))
    web = pod("web", node="n1", metadata={"labels": {"app": "web"}})
    message = "C12: no bound pod in its domain of rack matches the pod affinity of Pod default/{}"
    assert broken(*docs, near_web("a", "n1"), web) == []
    assert broken(*docs, near_web("a", "n2"), web) == [("Pod default/a", message.format("a"))]
    assert broken(*docs, near_web("a", "n3"), web) == [("Pod default/a", message.format("a"))]
    assert broken(*docs, near_web("a", "n2", app="web"), web) == []  # it matches its own term
    leaves = pod("web", node="n1", metadata={"labels": {"app": "web"}, **DELETED})
    assert broken(*docs, near_web("a", "n1"), leaves) == [("Pod default/a", message.format("a"))]


def evenly(name: str, on: str, **more: Any) -> Document:
    limit = {
        "maxSkew": 1,
        "topologyKey": "rack",
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "web"}},
    }
    return pod(name, node=on, spec={"topologySpreadConstraints": [limit | more]}, metadata={"labels": {"app": "web"}})


def test_spread() -> None:
    docs = (node("n1", labels={"rack": "r1"}), node("n2", labels={"rack": "r2"}), node("n3"))
    message = "C14: rack=r1 has {} bound pods that the spread of Pod default/a and its like counts, {} more than the "
    message += "fewest; maxSkew is 1"
    assert broken(*docs, evenly("a", "n1")) == []
    assert broken(*docs, evenly("a", "n1"), evenly("b", "n1")) == [("Pod default/a", message.format(2, 2))]
    assert broken(*docs, evenly("a", "n1"), evenly("b", "n1"), evenly("c", "n2")) == []
    three = [evenly(name, where, minDomains=3) for name, where in (("a", "n1"), ("b", "n1"), ("c", "n2"))]
    assert broken(*docs, *three) == [("Pod default/a", message.format(2, 2))]
