"""Room that is kept for moved pods: held until all that goes together is made again, theirs then, and given back."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from placer.passes.cluster.planning.reservations import ReservedRoom, with_reservations
from placer.passes.cluster.reading.earlier_passes import instance_in
from placer.passes.cluster.reading.gang_record import Reservation, ReservedPod
from placer.problem import Instance, Key, PodState
from tests.cluster.snapshots import kept, snapshot_of
from tests.support import Document, node, pod

NOW = datetime(2026, 1, 1, 12, 0, 0, 900_000, tzinfo=UTC)
NODES = [node(f"n{number}", cpu=8) for number in range(3)]


def web(name: str, where: str | None = None, *, owner: str = "web", at: datetime = NOW, cpu: int = 4) -> Document:
    """A pod of a ReplicaSet."""
    found = pod(name, node=where, cpu=cpu, spec={"schedulerName": "placer"})
    made = [
        {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": owner, "uid": f"uid-of-{owner}", "controller": True}
    ]
    when = f"{at:%Y-%m-%dT%H:%M:%SZ}"
    metadata = {"uid": f"uid-{name}", "ownerReferences": made, "creationTimestamp": when, "namespace": "default"}
    return {**found, "metadata": {**found["metadata"], **metadata}}


def reserved(*names: str, where: str = "n1", seconds: float = 600) -> Reservation:
    """Room on a node for pods that were moved from n0."""
    pods = {
        Key("default", name): ReservedPod(
            f"uid-{name}", "uid-of-web", where, json.dumps(kept(web(name, "n0", at=NOW - timedelta(hours=1))))
        )
        for name in names
    }
    return Reservation("another pass", pods, NOW, NOW + timedelta(seconds=seconds))


def looked(*pods: Document, room: Reservation, now: datetime = NOW) -> tuple[Instance, ReservedRoom]:
    snapshot, found = with_reservations(snapshot_of([*NODES, *pods]), [room], now)
    return instance_in(snapshot), found


def holding(instance: Instance) -> list[str | None]:
    return sorted(str(each.node) for each in instance.pods.values() if each.state is PodState.NOMINATED)


def test_room_is_held_until_all_of_a_unit_is_made_again() -> None:
    room = reserved("a", "b")
    instance, found = looked(room=room)
    assert (holding(instance), found.left, found.made) == (["n1", "n1"], (room,), ())
    instance, found = looked(web("a-again"), room=room)
    assert holding(instance) == ["n1", "n1"]
    assert found.waiting.keys() == {Key("default", "a-again")}
    assert instance.pending == ()
    instance, found = looked(web("a-again"), web("b-again"), room=room)
    assert (holding(instance), found.waiting) == ([], {})
    assert found.made == ({Key("default", "a-again"): "n1", Key("default", "b-again"): "n1"},)


def test_of_what_runs_again_no_room_is_kept() -> None:
    instance, found = looked(web("a-again", "n1"), room=reserved("a", "b"))
    assert holding(instance) == ["n1"]
    assert [set(each.pods) for each in found.left] == [{Key("default", "b")}]
    assert looked(web("a-again", "n2"), web("b-again", "n1"), room=reserved("a", "b"))[1] == ReservedRoom()


@pytest.mark.parametrize(
    "other",
    [
        web("early", at=NOW - timedelta(seconds=2)),
        web("foreign", owner="api"),
        web("larger", cpu=5),
        pod("bare", cpu=4, spec={"schedulerName": "placer"}),
    ],
    ids=lambda each: each["metadata"]["name"],
)
def test_other_pods_do_not_get_it(other: Document) -> None:
    instance, found = looked(other, room=reserved("a"))
    assert (holding(instance), found.made, found.waiting) == (["n1"], (), {})
    assert len(instance.pending) == 1


@pytest.mark.parametrize(
    ("pods", "options", "seconds"),
    [
        ([web("a", "n0", at=NOW - timedelta(hours=1))], {}, 0),
        ([], {"where": "gone"}, 0),
        ([], {"seconds": 5}, 6),
    ],
    ids=["never evicted", "no such node", "too late"],
)
def test_room_is_given_back(pods: list[Document], options: dict[str, Any], seconds: int) -> None:
    instance, found = looked(*pods, room=reserved("a", **options), now=NOW + timedelta(seconds=seconds))
    assert (holding(instance), found) == ([], ReservedRoom())


def test_a_pod_on_its_way_out_has_its_new_room_held() -> None:
    going = web("a", "n0", at=NOW - timedelta(hours=1))
    going["metadata"]["deletionTimestamp"] = f"{NOW:%Y-%m-%dT%H:%M:%SZ}"
    assert holding(looked(going, room=reserved("a"))[0]) == ["n1"]
