"""A server that refuses, hangs, forgets, breaks off or dies during a pass; a real one, behind a proxy or killed."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from typing import Any

import pytest

from placer.passes.cluster import Client
from placer.passes.cluster.reading.client import Response, Unanswered
from placer.passes.cluster.writing.lease import LeaseOptions
from tests.cluster.api import PATIENCE, Api, Refused
from tests.cluster.faults import PODS, at_first_binding, before_bindings, half_bound, steal
from tests.cluster.passes import Passes, bound, gang, overfull
from tests.cluster.proxy import Proxy, Spoil
from tests.cluster.server import ControlPlane
from tests.cluster.things import live_pod
from tests.support import node


def spoilt(method: str, path: str, times: int) -> Spoil | None:
    """Every binding fails once, each in one of eight ways, two of them after it has been made."""
    if not path.endswith("/binding") or times > 1:
        return None
    ways = (
        Spoil(429, headers=(("Retry-After", "0"),)),
        Spoil(500),
        Spoil(503),
        Spoil(409),
        Spoil(0),
        Spoil(504, forwarded=True),
        Spoil(0, forwarded=True),
        Spoil(401),
    )
    return ways[int(path.split("/")[-2].rpartition("-")[2]) % len(ways)]


def test_every_answer_spoilt_once_and_all_are_bound_once(cluster: Api, passes: Passes, proxy: Proxy) -> None:
    cluster.create(*(node(f"n{number}") for number in range(5)), *gang("train", 40))
    proxy.rule = spoilt
    told = passes()
    assert (told["bound"], told["incomplete"], told["overfull"]) == (40, [], [])
    assert len(bound(cluster)) == 40
    assert proxy.bindings() == {f"train-{number}": 1 for number in range(40)}
    assert overfull(cluster) == []


def test_answers_that_do_not_come_in_time(
    cluster: Api, passes: Passes, proxy: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The pod is read before anything is tried again: what was made is not made again."""
    monkeypatch.setattr("placer.passes.cluster.writing.binding._PATIENCE", 0.3)
    cluster.create(node("n1"), *gang("train", 4))

    def late(_method: str, path: str, times: int) -> Spoil | None:
        if not path.endswith("/binding") or times > 1:
            return None
        return Spoil(0, forwarded=path.split("/")[-2] in ("train-0", "train-1"), hang=2.0)

    proxy.rule = late
    assert passes()["bound"] == 4
    assert proxy.bindings() == {f"train-{number}": 1 for number in range(4)}
    asked = {path.split("/")[-2]: n for (_, path), n in proxy.asked.items() if path.endswith("/binding")}
    assert asked == {"train-0": 1, "train-1": 1, "train-2": 2, "train-3": 2}


def forbidden(*pods: str) -> Callable[[str, str, int], Spoil | None]:
    def rule(_method: str, path: str, _times: int) -> Spoil | None:
        return Spoil(403) if path.endswith("/binding") and path.split("/")[-2] in pods else None

    return rule


def test_a_gang_that_cannot_be_completed_is_half_bound_and_completed_later(
    cluster: Api, passes: Passes, proxy: Proxy
) -> None:
    cluster.create(node("n1"), *gang("train", 4))
    proxy.rule = forbidden("train-3")
    told = passes(code=6)
    (found,) = half_bound(told).values()
    assert (found["bound"], found["missing"]) == (3, {"default/train-3": "403 spoilt"})
    assert set(bound(cluster)) == {"train-0", "train-1", "train-2"}
    assert proxy.asked["POST", f"{PODS}/train-3/binding"] == 1  # what is not allowed is not tried again
    again = passes(code=6)
    assert (again["unfinished"], again["bound"]) == (["PodGroup default/train"], 0)
    proxy.rule = lambda *_: None
    assert passes()["bound"] == 1
    assert len(bound(cluster)) == 4
    assert passes()["unfinished"] == []


def test_with_the_option_it_is_rolled_back(cluster: Api, passes: Passes, proxy: Proxy) -> None:
    cluster.create(node("n1"), *gang("train", 4), live_pod("lone", cpu=1))
    proxy.rule = forbidden("train-3")
    told = passes("--roll-back")
    (found,) = told["incomplete"]
    assert (found["state"], found["bound"]) == ("rolledBack", 0)
    left = {
        each["metadata"]["name"]: bool(each["metadata"].get("deletionTimestamp"))
        for each in cluster.items("/api/v1/pods")
    }
    assert left == {"train-0": True, "train-1": True, "train-2": True, "train-3": False, "lone": False}
    assert "RolledBack" in {each["reason"] for each in cluster.items("/apis/events.k8s.io/v1/events")}


def test_a_gang_that_is_ready_all_the_same_is_not_half_bound(cluster: Api, passes: Passes, proxy: Proxy) -> None:
    cluster.create(node("n1"), *gang("train", 4, least=2))
    proxy.rule = forbidden("train-3")
    told = passes("--roll-back")
    (found,) = told["incomplete"]
    assert (found["state"], found["bound"]) == ("short", 3)
    assert len(bound(cluster)) == 3


def test_where_nothing_may_be_bound_nothing_is_half_bound(cluster: Api, passes: Passes, proxy: Proxy) -> None:
    cluster.create(node("n1"), *gang("train", 4))
    proxy.rule = lambda _method, path, _times: Spoil(403) if path.endswith("/binding") else None
    told = passes("--bind-workers", "1")
    assert told["left"] == {"PodGroup default/train": "Pod default/train-0: 403 spoilt"}
    assert proxy.asked["POST", f"{PODS}/train-3/binding"] == 0
    assert bound(cluster) == {}


def test_a_server_that_never_answers_a_pod_costs_its_gang_the_grace(cluster: Api, passes: Passes, proxy: Proxy) -> None:
    cluster.create(node("n1"), *gang("train", 2), *gang("other", 2))
    proxy.rule = lambda _method, path, _times: Spoil(503) if path.endswith("train-1/binding") else None
    told = passes("--gang-grace", "0.5", code=6)
    (found,) = half_bound(told).values()
    assert (found["group"], found["bound"]) == ("PodGroup default/train", 1)
    assert set(bound(cluster)) == {"train-0", "other-0", "other-1"}


def test_the_server_is_killed_and_started_again_in_the_middle(
    cluster: Api, passes: Passes, control_plane: ControlPlane, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster.create(*(node(f"n{number:02d}", cpu=16, pods=20) for number in range(20)), *gang("train", 300))
    again = threading.Thread(target=control_plane.start_api_server)

    def kill(_path: str) -> None:
        control_plane.end("kube-apiserver", signal.SIGKILL)
        again.start()

    at_first_binding(monkeypatch, kill, "train-150")
    # However long the server takes to start: the pass waits for it, and is the leader still.
    patient = LeaseOptions(duration=700, renew_deadline=600.0)
    monkeypatch.setattr("placer.cli.pass_flags.lease_of", lambda _options: patient)
    try:
        told = passes("--gang-grace", "600")
    finally:
        again.join()
    assert (told["bound"], told["incomplete"], told["overfull"]) == (300, [], [])
    assert len(bound(cluster)) == 300
    assert overfull(cluster) == []


def test_a_watch_that_is_broken_and_too_old_is_begun_anew(
    cluster: Api, passes: Passes, proxy: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The list that is taken instead shows what happened meanwhile, and its items leave out their kind."""
    cluster.create(node("n1"), *gang("train", 2, cpu=4))
    stolen = threading.Event()

    def watches(method: str, path: str, times: int) -> Spoil | None:
        if (method, path, times) != ("GET", "/api/v1/pods?watch", 1):
            return None
        stolen.wait(PATIENCE)
        return Spoil(410)

    def work(cache: Any) -> None:
        theirs = steal(cluster, "thief", "n1", cpu=1)
        stolen.set()
        assert cache.wait(PATIENCE, lambda: cache.is_bound(theirs))

    proxy.rule = watches
    before_bindings(monkeypatch, work)
    told = passes()
    assert told["left"] == {"PodGroup default/train": "the room is gone on Node n1: cpu 8 of 7 left"}


@pytest.mark.parametrize("fenced", [True, False])
def test_a_binding_that_lands_after_its_deadline_takes_no_room_that_is_anothers(
    cluster: Api, passes: Passes, monkeypatch: pytest.MonkeyPatch, fenced: bool
) -> None:
    """It is held back on its way. When it arrives the pod has another version, and it is refused; where the pod could
    not be written to, its room was kept for as long as the pass lasted, and it is told as not known.
    """
    monkeypatch.setattr("placer.passes.cluster.writing.plan_execution._EVENTS", 1.0)  # none comes of what is held back
    cluster.create(node("n1"), *gang("train", 2, cpu=4), live_pod("lone", cpu=4))
    held: list[tuple[str, Any]] = []
    sent = Client.send

    def send(self: Client, method: str, path: str, body: Any = None, **options: Any) -> Response:
        if path.endswith("/train-1/binding"):
            held.append((path, body))
            raise Unanswered("held back")
        if method == "PATCH" and path.endswith("/train-1/status") and not fenced:
            return Response(403, b"{}")
        return sent(self, method, path, body, **options)

    monkeypatch.setattr(Client, "send", send)
    told = passes("--gang-grace", "0.5", code=6)
    (found,) = half_bound(told).values()
    assert found["missing"] == {"default/train-1": "held back"}
    assert set(bound(cluster)) <= {"train-0", "lone"}
    path, body = held[0]
    if fenced:
        with pytest.raises(Refused, match="409"):
            cluster.call("POST", path, body)
        assert "train-1" not in bound(cluster)
    else:
        cluster.call("POST", path, body)
    assert overfull(cluster) == []
    monkeypatch.undo()
    passes(code=None)
    assert overfull(cluster) == []
    assert {"train-0", "train-1"} <= set(bound(cluster))
