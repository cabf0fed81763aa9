"""What room there is, event by event: sums worked out by hand."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import pytest

from placer.passes.cluster.planning.scheduler_cache import SchedulerCache
from placer.passes.cluster.reading.earlier_passes import prepared
from placer.passes.cluster.reading.gang_record import GangRecord, digests
from placer.passes.cluster.reading.views import KubeletAnswer
from placer.problem import GroupKey, Key
from placer.problem.queues import QUEUE_ANNOTATION
from tests.cluster.caches import alone, bind, cache_of, event, mine, theirs
from tests.cluster.snapshots import snapshot_of
from tests.cluster.things import numa_topology
from tests.support import Document, node, pod, pod_group, queue

GANG = GroupKey("scheduling.volcano.sh", "default", "train")


@pytest.fixture
def cache() -> SchedulerCache:
    """n1 of 8 cpu with 3 in use, n2 empty; a of 5, b of 4."""
    return cache_of(
        node("n1"), node("n2"), theirs("old", "n1", cpu=3), mine("a", cpu=5), mine("b", cpu=4), mine("c", cpu=1)
    )


def test_room_is_what_others_leave(cache: SchedulerCache) -> None:
    assert cache.refusal(alone("a"), [bind("a", "n1")]) is None
    cache.pod_happened("ADDED", event(theirs("new", "n1", cpu=1)))
    assert cache.refusal(alone("a"), [bind("a", "n1")]) == "the room is gone on Node n1: cpu 5 of 4 left"
    cache.pod_happened("DELETED", event(theirs("new", "n1", cpu=1)))
    assert cache.refusal(alone("a"), [bind("a", "n1")]) is None


def test_all_pods_of_a_gang_on_a_node_count_together(cache: SchedulerCache) -> None:
    both = [bind("a", "n2"), bind("b", "n2")]
    assert cache.refusal([], both) == "the room is gone on Node n2: cpu 9 of 8 left"
    assert cache.refusal([], [bind("a", "n2"), bind("b", "n1")]) is None


def test_what_goes_out_takes_room_until_it_is_forgotten(cache: SchedulerCache) -> None:
    cache.assume([bind("a", "n2")])
    assert cache.refusal(alone("b"), [bind("b", "n2")]) == "the room is gone on Node n2: cpu 4 of 3 left"
    cache.forget(bind("a", "n2"))
    assert cache.refusal(alone("b"), [bind("b", "n2")]) is None


def test_our_own_binding_is_not_counted_twice(cache: SchedulerCache) -> None:
    cache.assume([bind("b", "n1")])
    assert not cache.all_seen()
    cache.pod_happened("MODIFIED", event(mine("b", cpu=4), "n1"))
    assert cache.all_seen()
    assert not cache.all_seen(answered=True)
    assert cache.refusal(alone("c"), [bind("c", "n1")]) is None  # 3 + 4 + 1 = 8
    assert cache.overfull() == []


def test_pods_that_end_leave_their_room_and_terminating_ones_do_not(cache: SchedulerCache) -> None:
    old = theirs("old", "n1", cpu=3)
    cache.assume([bind("a", "n1")])
    deleted = json.loads(event(old))
    deleted["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    cache.pod_happened("MODIFIED", json.dumps(deleted).encode())
    assert cache.refusal(alone("c"), [bind("c", "n1")]) == "the room is gone on Node n1: cpu 1 of 0 left"
    cache.pod_happened("MODIFIED", event(old, phase="Succeeded"))
    assert cache.refusal(alone("c"), [bind("c", "n1")]) is None


def test_nominated_pods_of_others_hold_their_room(cache: SchedulerCache) -> None:
    waiting = pod(
        "urgent",
        cpu=5,
        spec={"schedulerName": "default-scheduler"},
        metadata={"name": "urgent", "namespace": "default", "uid": "u"},
    )
    cache.pod_happened("MODIFIED", event(waiting, nominatedNodeName="n2"))
    assert cache.refusal(alone("b"), [bind("b", "n2")]) == "the room is gone on Node n2: cpu 4 of 3 left"
    cache.pod_happened("MODIFIED", event(waiting))
    assert cache.refusal(alone("b"), [bind("b", "n2")]) is None


def test_a_resize_of_a_running_pod_counts(cache: SchedulerCache) -> None:
    cache.pod_happened("MODIFIED", event(theirs("old", "n1", cpu=4)))
    assert cache.refusal(alone("a"), [bind("a", "n1")]) == "the room is gone on Node n1: cpu 5 of 4 left"


def test_host_ports_clash() -> None:
    def ports(name: str, ip: str, **options: Any) -> dict[str, Any]:
        port = {"containerPort": 80, "hostPort": 80, "hostIP": ip}
        return {"containers": [{"name": "main", "ports": [port]}]}

    documents = [node("n1"), mine("a", spec=ports("a", "10.0.0.1")), mine("b", spec=ports("b", "0.0.0.0"))]
    cache = cache_of(*documents)
    cache.assume([bind("a", "n1")])
    assert cache.refusal(alone("b"), [bind("b", "n1")]) == "the room is gone on Node n1: TCP host port 80"


def node_event(document: Document, **spec: Any) -> bytes:
    return json.dumps({**document, "spec": spec}).encode()


@pytest.mark.parametrize(
    ("kind", "item", "refusal"),
    [
        ("DELETED", node_event(node("n2")), "Node n2 is gone"),
        ("MODIFIED", node_event(node("n2"), unschedulable=True), "node is unschedulable"),
        (
            "MODIFIED",
            node_event(node("n2"), taints=[{"key": "x", "effect": "NoExecute"}]),
            "untolerated taint x:NoExecute",
        ),
        ("MODIFIED", node_event(node("n2", cpu=4)), "the room is gone on Node n2: cpu 5 of 4 left"),
        (
            "MODIFIED",
            json.dumps(
                {
                    **node("n2"),
                    "status": {**node("n2")["status"], "conditions": [{"type": "Ready", "status": "Unknown"}]},
                }
            ).encode(),
            "node is not Ready",
        ),
    ],
)
def test_a_node_is_looked_at_as_it_is_now(cache: SchedulerCache, kind: str, item: bytes, refusal: str) -> None:
    cache.node_happened(kind, item)
    assert (cache.refusal(alone("a"), [bind("a", "n2")]) or "").endswith(refusal)


@pytest.mark.parametrize(
    ("change", "changed"),
    [
        ({"metadata": {"uid": "another"}}, True),
        ({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}, True),
        ({"metadata": {"labels": {"role": "worker"}}}, True),
        ({"metadata": {"annotations": {"scheduling.k8s.io/group-name": "other"}}}, True),
        ({"metadata": {"annotations": {"example.com/note": "x"}}}, False),
        ({"metadata": {"resourceVersion": "99"}}, False),
        ({"spec": {"nodeName": "n2"}}, True),
        ({"spec": {"schedulingGates": [{"name": "x"}]}}, True),
        ({"spec": {"tolerations": [{"operator": "Exists"}]}}, True),
        ({"status": {"conditions": [{"type": "PodScheduled", "status": "False"}]}}, False),
    ],
)
def test_a_pending_pod_is_what_was_decided_upon_or_not(
    cache: SchedulerCache, change: Mapping[str, Mapping[str, Any]], changed: bool
) -> None:
    document = json.loads(event(mine("a", cpu=5)))
    for part, values in change.items():
        document[part] |= values
    cache.pod_happened("MODIFIED", json.dumps(document).encode())
    assert cache.changed() == ({Key("default", "a")} if changed else set())
    refusal = cache.refusal(alone("a"), [bind("a", "n2")])
    assert refusal == ("Pod default/a has changed since the snapshot" if changed else None)
    assert cache.stale == (set(alone("a")) if changed else set())
    cache.stale.clear()
    assert cache.late_refusal(bind("a", "n2")) == refusal
    assert cache.stale == (set(alone("a")) if changed else set())


def test_room_that_a_binding_has_taken_is_looked_at_again_before_it_goes_out() -> None:
    """Others may have come, or the node may have shrunk; its own room is no other's."""
    cache = cache_of(node("n1", cpu=8), mine("a", cpu=5))
    cache.assume([bind("a", "n1")])
    assert cache.late_refusal(bind("a", "n1")) is None
    cache.pod_happened("ADDED", event(theirs("thief", "n1", cpu=4)))
    assert cache.late_refusal(bind("a", "n1")) == "the room is gone on Node n1: cpu 5 of 4 left"
    assert cache.stale == set(alone("a"))
    cache.pod_happened("DELETED", event(theirs("thief", "n1", cpu=4)))
    assert cache.late_refusal(bind("a", "n1")) is None
    cache.node_happened("MODIFIED", json.dumps(node("n1", cpu=2)).encode())
    assert cache.late_refusal(bind("a", "n1")) == "the room is gone on Node n1: cpu 5 of 2 left"


def test_a_pod_that_is_gone_has_changed_and_stays_so(cache: SchedulerCache) -> None:
    cache.pod_happened("DELETED", event(mine("a", cpu=5)))
    cache.pod_happened("ADDED", event(mine("a", cpu=5)))
    assert cache.changed() == {Key("default", "a")}


def test_a_gang_whose_bound_member_is_gone_is_refused() -> None:
    group = pod_group("train", minMember=2)
    member = theirs("train-0", "n1", cpu=1)
    named = {**member, "metadata": {**member["metadata"], "annotations": {"scheduling.k8s.io/group-name": "train"}}}
    cache = cache_of(node("n1"), group, named, mine("train-1", group="train", cpu=1, metadata=_annotated("train")))
    assert cache.refusal([GANG], [bind("train-1", "n1")]) is None
    cache.pod_happened("MODIFIED", event(named, phase="Failed"))
    assert cache.refusal([GANG], [bind("train-1", "n1")]) == ("Pod default/train-0 of PodGroup default/train is gone")


def _annotated(group: str) -> dict[str, Any]:
    return {"annotations": {"scheduling.k8s.io/group-name": group}}


def test_a_node_with_a_pod_that_cannot_be_read_gets_nothing(cache: SchedulerCache) -> None:
    odd = json.loads(event(theirs("odd", "n2", cpu=1)))
    odd["spec"]["containers"] = "none"
    cache.pod_happened("ADDED", json.dumps(odd).encode())
    assert cache.refusal(alone("a"), [bind("a", "n2")]) == ("Node n2 cools down: Pod default/odd on it cannot be read")


def test_a_node_that_cools_down_gets_nothing_not_even_what_tolerates_everything() -> None:
    tolerant = mine("a", spec={"tolerations": [{"operator": "Exists"}]})
    taken = snapshot_of([node("n1"), node("n2"), tolerant])
    cache = SchedulerCache(taken, prepared(taken, {"n1"}).instance)
    cache.node_happened("MODIFIED", json.dumps(node("n1")).encode())
    assert cache.refusal(alone("a"), [bind("a", "n1")]) == "Node n1 cools down: its kubelet rejected a pod of ours"
    assert cache.refusal(alone("a"), [bind("a", "n2")]) is None


def test_what_kubelets_say(cache: SchedulerCache) -> None:
    cache.assume([bind("a", "n2"), bind("b", "n1")])
    assert cache.kubelet_answer(bind("a", "n2")) is KubeletAnswer.NOTHING
    cache.pod_happened("MODIFIED", event(mine("a", cpu=5), "n2"))
    assert cache.kubelet_answer(bind("a", "n2")) is KubeletAnswer.NOTHING
    cache.pod_happened("MODIFIED", event(mine("a", cpu=5), "n2", startTime="2026-01-01T00:00:00Z"))
    assert cache.kubelet_answer(bind("a", "n2")) is KubeletAnswer.ADMITTED
    cache.pod_happened("MODIFIED", event(mine("b", cpu=4), "n1", phase="Failed", reason="OutOfcpu"))
    assert cache.kubelet_answer(bind("b", "n1")) is KubeletAnswer.REJECTED
    assert {key.name: (each.node, each.reason) for key, each in cache.rejected.items()} == {"b": ("n1", "OutOfcpu")}
    assert cache.all_seen(answered=True)
    assert cache.refusal(alone("c"), [bind("c", "n1")]) == (
        "Node n1 cools down: its kubelet rejected Pod default/b (OutOfcpu)"
    )
    assert cache.refusal(alone("c"), [bind("c", "n2")]) is None


@pytest.mark.parametrize(("phase", "free"), [("Failed", 8), ("Running", 4)])
def test_a_pod_of_the_year_0_takes_of_its_node_what_it_asks_for(phase: str, free: int) -> None:
    """Its kubelet writes that; the node would be planned with in each pass, and refused at each binding."""
    cache = cache_of(node("n1", cpu=8), mine("c", cpu=free))
    odd = {"phase": phase, "startTime": "0000-01-01T00:00:00Z"}
    cache.pod_happened("ADDED", event(mine("odd", cpu=4), "n1", **odd))
    assert cache.refusal(alone("c"), [bind("c", "n1")]) is None
    cache.pod_happened("ADDED", event(mine("more", cpu=1), "n1", **odd | {"phase": "Running"}))
    why = f"the room is gone on Node n1: cpu {free} of {free - 1} left"
    assert cache.refusal(alone("c"), [bind("c", "n1")]) == why


def test_a_pod_that_ran_and_failed_was_admitted(cache: SchedulerCache) -> None:
    cache.assume([bind("a", "n2")])
    cache.pod_happened("MODIFIED", event(mine("a", cpu=5), "n2", phase="Failed", startTime="2026-01-01T00:00:00Z"))
    assert cache.kubelet_answer(bind("a", "n2")) is KubeletAnswer.ADMITTED
    assert cache.rejected == {}
    assert cache.refusal(alone("b"), [bind("b", "n2")]) is None


def test_too_much_is_found_where_ours_want_it_too(cache: SchedulerCache) -> None:
    cache.assume([bind("a", "n2")])
    cache.pod_happened("ADDED", event(theirs("thief", "n2", cpu=4)))
    assert list(map(str, cache.overfull())) == ["Node n2: cpu 9 of 8"]
    cache.pod_happened("ADDED", event(theirs("elsewhere", "n1", cpu=6)))  # 9 of 8, none of it ours
    assert len(cache.overfull()) == 1


def test_a_list_in_place_of_events(cache: SchedulerCache) -> None:
    cache.assume([bind("b", "n2")])
    cache.pods_replaced([event(mine("b", cpu=4), "n2"), event(mine("a", cpu=5)), event(theirs("new", "n1", cpu=2))])
    assert cache.all_seen()
    assert cache.changed() == {Key("default", "c")}
    assert cache.refusal(alone("a"), [bind("a", "n1")]) is None  # 2 in place of 3
    cache.nodes_replaced([json.dumps(node("n2")).encode()])
    assert cache.refusal(alone("a"), [bind("a", "n1")]) == "Node n1 is gone"


def test_what_a_pass_decides_upon_otherwise_than_it_was_read_has_not_changed() -> None:
    """A half-bound gang has the highest priority in what is decided upon; in the cluster its pods are as they were."""
    first, second = (mine(f"a-{number}", group="train", cpu=1) for number in range(2))
    first["spec"]["nodeName"] = "n1"
    taken = snapshot_of([node("n1"), pod_group("train", minMember=2), first, second])
    instance = prepared(taken, (), {GANG: GangRecord(datetime.now(UTC), digests(["uid-a-0", "uid-a-1"]))}).instance
    assert instance.pods[Key("default", "a-1")].priority > 0
    cache = SchedulerCache(taken, instance)
    cache.pods_replaced([event(first), event(second)])
    assert cache.changed() == set()
    cache.pod_happened("MODIFIED", event({**second, "spec": {**second["spec"], "priority": 7}}))
    assert cache.changed() == {Key("default", "a-1")}


def test_a_node_keeps_the_policy_of_its_kubelet_that_no_node_tells() -> None:
    asking = mine("a", cpu=1, annotations={"volcano.sh/numa-topology-policy": "single-numa-node"})
    cache = cache_of(node("n1"), numa_topology("n1", {"cpu": "4"}), asking)
    assert cache.refusal(alone("a"), [bind("a", "n1")]) is None
    cache.node_happened("MODIFIED", node_event(node("n1"), unschedulable=True))
    assert (cache.refusal(alone("a"), [bind("a", "n1")]) or "").endswith("node is unschedulable")


def test_the_node_group_of_a_queue_is_looked_at_again() -> None:
    group, required = "volcano.sh/nodegroup-name", "requiredDuringSchedulingIgnoredDuringExecution"
    asking = queue("q")
    asking["spec"]["affinity"] = {"nodeGroupAffinity": {required: ["gold"]}}
    cache = cache_of(node("n1", {group: "gold"}), asking, mine("a", cpu=1, annotations={QUEUE_ANNOTATION: "q"}))
    assert cache.refusal(alone("a"), [bind("a", "n1")]) is None
    cache.node_happened("MODIFIED", node_event(node("n1", {group: "iron"})))
    assert (cache.refusal(alone("a"), [bind("a", "n1")]) or "").endswith("not in node group gold of Queue q")
