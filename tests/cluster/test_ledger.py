"""What room there is, event by event: sums worked out by hand."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from placer.cluster.cooling import prepared
from placer.cluster.glance import Said
from placer.cluster.ledger import Ledger
from placer.instance import GroupKey, Key
from tests.cluster.ledgers import alone, bind, event, ledger_of, mine, theirs
from tests.cluster.snapshots import snapshot_of
from tests.support import Document, node, pod, pod_group

GANG = GroupKey("scheduling.volcano.sh", "default", "train")


@pytest.fixture
def ledger() -> Ledger:
    """n1 of 8 cpu with 3 in use, n2 empty; a of 5, b of 4."""
    return ledger_of(
        node("n1"), node("n2"), theirs("old", "n1", cpu=3), mine("a", cpu=5), mine("b", cpu=4), mine("c", cpu=1)
    )


def test_room_is_what_others_leave(ledger: Ledger) -> None:
    assert ledger.refusal(alone("a"), [bind("a", "n1")]) is None
    ledger.pod_happened("ADDED", event(theirs("new", "n1", cpu=1)))
    assert ledger.refusal(alone("a"), [bind("a", "n1")]) == "the room is gone on Node n1: cpu 5 of 4 left"
    ledger.pod_happened("DELETED", event(theirs("new", "n1", cpu=1)))
    assert ledger.refusal(alone("a"), [bind("a", "n1")]) is None


def test_all_pods_of_a_gang_on_a_node_count_together(ledger: Ledger) -> None:
    both = [bind("a", "n2"), bind("b", "n2")]
    assert ledger.refusal([], both) == "the room is gone on Node n2: cpu 9 of 8 left"
    assert ledger.refusal([], [bind("a", "n2"), bind("b", "n1")]) is None


def test_what_goes_out_takes_room_until_it_is_forgotten(ledger: Ledger) -> None:
    ledger.assume([bind("a", "n2")])
    assert ledger.refusal(alone("b"), [bind("b", "n2")]) == "the room is gone on Node n2: cpu 4 of 3 left"
    ledger.forget(bind("a", "n2"))
    assert ledger.refusal(alone("b"), [bind("b", "n2")]) is None


def test_our_own_binding_is_not_counted_twice(ledger: Ledger) -> None:
    ledger.assume([bind("b", "n1")])
    assert not ledger.all_seen()
    ledger.pod_happened("MODIFIED", event(mine("b", cpu=4), "n1"))
    assert ledger.all_seen()
    assert not ledger.all_seen(answered=True)
    assert ledger.refusal(alone("c"), [bind("c", "n1")]) is None  # 3 + 4 + 1 = 8
    assert ledger.overfull() == []


def test_pods_that_end_leave_their_room_and_terminating_ones_do_not(ledger: Ledger) -> None:
    old = theirs("old", "n1", cpu=3)
    ledger.assume([bind("a", "n1")])
    deleted = json.loads(event(old))
    deleted["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    ledger.pod_happened("MODIFIED", json.dumps(deleted).encode())
    assert ledger.refusal(alone("c"), [bind("c", "n1")]) == "the room is gone on Node n1: cpu 1 of 0 left"
    ledger.pod_happened("MODIFIED", event(old, phase="Succeeded"))
    assert ledger.refusal(alone("c"), [bind("c", "n1")]) is None


def test_nominated_pods_of_others_hold_their_room(ledger: Ledger) -> None:
    waiting = pod(
        "urgent",
        cpu=5,
        spec={"schedulerName": "default-scheduler"},
        metadata={"name": "urgent", "namespace": "default", "uid": "u"},
    )
    ledger.pod_happened("MODIFIED", event(waiting, nominatedNodeName="n2"))
    assert ledger.refusal(alone("b"), [bind("b", "n2")]) == "the room is gone on Node n2: cpu 4 of 3 left"
    ledger.pod_happened("MODIFIED", event(waiting))
    assert ledger.refusal(alone("b"), [bind("b", "n2")]) is None


def test_a_resize_of_a_running_pod_counts(ledger: Ledger) -> None:
    ledger.pod_happened("MODIFIED", event(theirs("old", "n1", cpu=4)))
    assert ledger.refusal(alone("a"), [bind("a", "n1")]) == "the room is gone on Node n1: cpu 5 of 4 left"


def test_host_ports_clash() -> None:
    def ports(name: str, ip: str, **options: Any) -> dict[str, Any]:
        port = {"containerPort": 80, "hostPort": 80, "hostIP": ip}
        return {"containers": [{"name": "main", "ports": [port]}]}

    documents = [node("n1"), mine("a", spec=ports("a", "10.0.0.1")), mine("b", spec=ports("b", "0.0.0.0"))]
    ledger = ledger_of(*documents)
    ledger.assume([bind("a", "n1")])
    assert ledger.refusal(alone("b"), [bind("b", "n1")]) == "the room is gone on Node n1: TCP host port 80"


NOT_READY = {
    **node("n2"),
    "status": {**node("n2")["status"], "conditions": [{"type": "Ready", "status": "Unknown"}]},
}


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
def test_a_node_is_looked_at_as_it_is_now(ledger: Ledger, kind: str, item: bytes, refusal: str) -> None:
    ledger.node_happened(kind, item)
    assert (ledger.refusal(alone("a"), [bind("a", "n2")]) or "").endswith(refusal)


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
    ledger: Ledger, change: Mapping[str, Mapping[str, Any]], changed: bool
) -> None:
    document = json.loads(event(mine("a", cpu=5)))
    for part, values in change.items():
        document[part] |= values
    ledger.pod_happened("MODIFIED", json.dumps(document).encode())
    assert ledger.changed() == ({Key("default", "a")} if changed else set())
    refusal = ledger.refusal(alone("a"), [bind("a", "n2")])
    assert refusal == ("Pod default/a has changed since the snapshot" if changed else None)


def test_a_pod_that_is_gone_has_changed_and_stays_so(ledger: Ledger) -> None:
    ledger.pod_happened("DELETED", event(mine("a", cpu=5)))
    ledger.pod_happened("ADDED", event(mine("a", cpu=5)))
    assert ledger.changed() == {Key("default", "a")}


def test_a_gang_whose_bound_member_is_gone_is_refused() -> None:
    group = pod_group("train", minMember=2)
    member = theirs("train-0", "n1", cpu=1)
    named = {**member, "metadata": {**member["metadata"], "annotations": {"scheduling.k8s.io/group-name": "train"}}}
    ledger = ledger_of(node("n1"), group, named, mine("train-1", group="train", cpu=1, metadata=_annotated("train")))
    assert ledger.refusal([GANG], [bind("train-1", "n1")]) is None
    ledger.pod_happened("MODIFIED", event(named, phase="Failed"))
    assert ledger.refusal([GANG], [bind("train-1", "n1")]) == ("Pod default/train-0 of PodGroup default/train is gone")


def _annotated(group: str) -> dict[str, Any]:
    return {"annotations": {"scheduling.k8s.io/group-name": group}}


def test_a_node_with_a_pod_that_cannot_be_read_gets_nothing(ledger: Ledger) -> None:
    odd = json.loads(event(theirs("odd", "n2", cpu=1)))
    odd["spec"]["containers"] = "none"
    ledger.pod_happened("ADDED", json.dumps(odd).encode())
    assert ledger.refusal(alone("a"), [bind("a", "n2")]) == ("Node n2 cools down: Pod default/odd on it cannot be read")


def test_a_node_that_cools_down_gets_nothing_not_even_what_tolerates_everything() -> None:
    tolerant = mine("a", spec={"tolerations": [{"operator": "Exists"}]})
    snapshot, instance = prepared(snapshot_of([node("n1"), node("n2"), tolerant]), {"n1"})
    ledger = Ledger(snapshot, instance)
    ledger.node_happened("MODIFIED", json.dumps(node("n1")).encode())
    assert ledger.refusal(alone("a"), [bind("a", "n1")]) == "Node n1 cools down: its kubelet rejected a pod of ours"
    assert ledger.refusal(alone("a"), [bind("a", "n2")]) is None


def test_what_kubelets_say(ledger: Ledger) -> None:
    ledger.assume([bind("a", "n2"), bind("b", "n1")])
    assert ledger.said(bind("a", "n2")) is Said.NOTHING
    ledger.pod_happened("MODIFIED", event(mine("a", cpu=5), "n2"))
    assert ledger.said(bind("a", "n2")) is Said.NOTHING
    ledger.pod_happened("MODIFIED", event(mine("a", cpu=5), "n2", startTime="2026-01-01T00:00:00Z"))
    assert ledger.said(bind("a", "n2")) is Said.ADMITTED
    ledger.pod_happened("MODIFIED", event(mine("b", cpu=4), "n1", phase="Failed", reason="OutOfcpu"))
    assert ledger.said(bind("b", "n1")) is Said.REJECTED
    assert ledger.rejected == {Key("default", "b"): ("n1", "OutOfcpu")}
    assert ledger.all_seen(answered=True)
    assert ledger.refusal(alone("c"), [bind("c", "n1")]) == (
        "Node n1 cools down: its kubelet rejected Pod default/b (OutOfcpu)"
    )
    assert ledger.refusal(alone("c"), [bind("c", "n2")]) is None


def test_a_pod_that_ran_and_failed_was_admitted(ledger: Ledger) -> None:
    ledger.assume([bind("a", "n2")])
    ledger.pod_happened("MODIFIED", event(mine("a", cpu=5), "n2", phase="Failed", startTime="2026-01-01T00:00:00Z"))
    assert ledger.said(bind("a", "n2")) is Said.ADMITTED
    assert ledger.rejected == {}
    assert ledger.refusal(alone("b"), [bind("b", "n2")]) is None


def test_too_much_is_found_where_ours_want_it_too(ledger: Ledger) -> None:
    ledger.assume([bind("a", "n2")])
    ledger.pod_happened("ADDED", event(theirs("thief", "n2", cpu=4)))
    assert list(map(str, ledger.overfull())) == ["Node n2: cpu 9 of 8"]
    ledger.pod_happened("ADDED", event(theirs("elsewhere", "n1", cpu=6)))  # 9 of 8, none of it ours
    assert len(ledger.overfull()) == 1


def test_a_list_in_place_of_events(ledger: Ledger) -> None:
    ledger.assume([bind("b", "n2")])
    ledger.pods_replaced([event(mine("b", cpu=4), "n2"), event(mine("a", cpu=5)), event(theirs("new", "n1", cpu=2))])
    assert ledger.all_seen()
    assert ledger.changed() == {Key("default", "c")}
    assert ledger.refusal(alone("a"), [bind("a", "n1")]) is None  # 2 in place of 3
    ledger.nodes_replaced([json.dumps(node("n2")).encode()])
    assert ledger.refusal(alone("a"), [bind("a", "n1")]) == "Node n1 is gone"


def test_while_nothing_is_heard_nothing_goes(ledger: Ledger) -> None:
    ledger.lost = lambda: "pods cannot be watched: away"
    assert ledger.refusal(alone("a"), [bind("a", "n2")]) == "pods cannot be watched: away"
