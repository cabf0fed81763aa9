"""What can go wrong in a pass, done to a real API server. After each: no gang half-bound without being reported,
nothing bound twice, no node over-full by our doing.
"""

from __future__ import annotations

import importlib
import json
import os
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from placer.cluster import Bind, Client, make_plan
from placer.cluster.apply import apply
from placer.cluster.client import Answer
from placer.instance import Key
from placer.methods import process
from tests.cluster.api import PATIENCE, Api
from tests.cluster.kubelets import Kubelets
from tests.cluster.passes import Passes, bound, gang, overfull
from tests.cluster.proxy import Proxy, Spoil, proxied
from tests.cluster.server import ControlPlane
from tests.cluster.things import live_pod
from tests.support import Document, node

PODS = "/api/v1/namespaces/default/pods"


@pytest.fixture
def passes(
    cluster: Api, install: Callable[[str], None], control_plane: ControlPlane, capsys: pytest.CaptureFixture[str]
) -> Passes:
    install("volcano")
    return Passes(control_plane, capsys)


@pytest.fixture
def proxy(passes: Passes, control_plane: ControlPlane) -> Iterator[Proxy]:
    """In front of the server in every pass."""
    with proxied(control_plane) as found:
        passes.url = found.url
        yield found


def half_bound(told: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {each["group"]: each for each in told["incomplete"] if each["state"] == "halfBound"}


def before_bindings(monkeypatch: pytest.MonkeyPatch, work: Callable[[Any], None]) -> None:
    """Do something after the plan is made; ``work`` gets the ledger, to wait until it has heard of it."""

    def work_first(client: Any, ledger: Any, *rest: Any) -> Any:
        work(ledger)
        return apply(client, ledger, *rest)

    monkeypatch.setattr("placer.run.apply", work_first)


def at_first_binding(monkeypatch: pytest.MonkeyPatch, work: Callable[[str], object], pod: str = "") -> None:
    """Do something when the first binding (of a pod) is about to go out: too late for any ledger."""
    really, todo = Client.send, [work]

    def send(self: Client, method: str, path: str, *rest: Any, **options: Any) -> Answer:
        if path.endswith(f"{pod}/binding") and todo:
            todo.pop()(path)
        return really(self, method, path, *rest, **options)

    monkeypatch.setattr(Client, "send", send)


# ---------------------------------------------------------------------------------------------- others in the cluster


def steal(cluster: Api, name: str, where: str, **amounts: object) -> Bind:
    """Another scheduler puts a pod of its own somewhere."""
    (made,) = cluster.create(live_pod(name, scheduler="default-scheduler", **amounts))  # type: ignore[arg-type]
    cluster.bind("default", name, where)
    return Bind(Key("default", name), made["metadata"]["uid"], where)


def test_room_that_is_taken_before_the_binding_leaves_the_gang(
    cluster: Api, passes: Passes, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster.create(node("n1"), node("n2"), *gang("train", 2, cpu=8))

    def work(ledger: Any) -> None:
        theirs = steal(cluster, "thief", "n1", cpu=1)
        assert ledger.wait(PATIENCE, lambda: ledger.is_bound(theirs))

    before_bindings(monkeypatch, work)
    told = passes()
    assert (told["planned"], told["bound"], told["gangs"]["left"]) == (2, 0, 1)
    assert told["left"] == {"PodGroup default/train": "the room is gone on Node n1: cpu 8 of 7 left"}
    assert bound(cluster) == {"thief": "n1"}
    status = cluster.get(f"{PODS}/train-0")["status"]
    (found,) = [each for each in status["conditions"] if each["type"] == "PodScheduled"]
    assert (found["reason"], found["status"]) == ("SchedulerError", "False")


def test_only_the_gangs_whose_room_is_gone_are_left(
    cluster: Api, passes: Passes, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster.create(node("n1"), node("n2"), *gang("a", 2, cpu=4), *gang("b", 2, cpu=4))

    def work(ledger: Any) -> None:
        theirs = steal(cluster, "thief", "n2", cpu=1)
        assert ledger.wait(PATIENCE, lambda: ledger.is_bound(theirs))

    before_bindings(monkeypatch, work)
    told = passes()
    assert told["gangs"]["left"] == 1
    assert told["bound"] == 2
    assert overfull(cluster) == []
    assert {name.partition("-")[0] for name in bound(cluster)} in ({"a", "thief"}, {"b", "thief"})


def test_a_race_that_nobody_can_exclude_is_found_and_reported(
    cluster: Api, passes: Passes, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster.create(node("n1"), live_pod("ours", cpu=8))
    at_first_binding(monkeypatch, lambda _: steal(cluster, "thief", "n1", cpu=1))
    told = passes(code=6)
    assert told["overfull"] == ["Node n1: cpu 9 of 8"]
    notes = [
        each["note"] for each in cluster.items("/apis/events.k8s.io/v1/events") if each["reason"] == "NodeOverfull"
    ]
    assert notes == ["pods request too much: Node n1: cpu 9 of 8"]


def test_a_node_that_is_cordoned_or_gone_gets_nothing(
    cluster: Api, passes: Passes, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster.create(node("n1", cpu=4), node("n2", cpu=5), live_pod("a", cpu=4), live_pod("b", cpu=5))

    def work(ledger: Any) -> None:
        cluster.patch("/api/v1/nodes/n1", {"spec": {"unschedulable": True}})
        cluster.delete("/api/v1/nodes/n2")
        assert ledger.wait(PATIENCE, lambda: not ledger.nodes.keys() - {"n1"} and ledger.nodes["n1"].unschedulable)

    before_bindings(monkeypatch, work)
    assert passes()["left"] == {
        "Pod default/a": "Pod default/a may no longer run on Node n1: node is unschedulable",
        "Pod default/b": "Node n2 is gone",
    }
    assert bound(cluster) == {}


def recreate(cluster: Api, document: Document) -> None:
    name = document["metadata"]["name"]
    cluster.delete(f"{PODS}/{name}")
    cluster.create(document)


def test_a_pod_made_anew_during_the_search_drops_its_gang(
    cluster: Api, passes: Passes, monkeypatch: pytest.MonkeyPatch
) -> None:
    group, first, second = gang("train", 2)
    cluster.create(node("n1"), group, first, second, live_pod("lone", cpu=1))
    before_bindings(monkeypatch, lambda ledger: _recreated(cluster, first, ledger))
    told = passes()
    assert told["left"] == {"PodGroup default/train": "Pod default/train-0 has changed since the snapshot"}
    assert bound(cluster) == {"lone": "n1"}


def _recreated(cluster: Api, document: Document, ledger: Any) -> None:
    recreate(cluster, document)
    assert ledger.wait(PATIENCE, lambda: Key("default", document["metadata"]["name"]) in ledger.changed())


def test_a_pod_made_anew_at_the_last_moment_does_not_get_the_node(
    cluster: Api, passes: Passes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The uid keeps it off; the gang is half-bound, told so, and the first thing that the next pass completes."""
    group, first, second = gang("train", 2, cpu=4)
    cluster.create(node("n1"), group, first, second)
    at_first_binding(monkeypatch, lambda _: recreate(cluster, second), "train-1")
    told = passes(code=6)
    assert bound(cluster) == {"train-0": "n1"}
    assert half_bound(told) == {
        "PodGroup default/train": {
            "group": "PodGroup default/train",
            "state": "halfBound",
            "bound": 1,
            "missing": {"default/train-1": "it was made anew under its name"},
        }
    }
    reasons = {each["reason"] for each in cluster.items("/apis/events.k8s.io/v1/events")}
    assert reasons == {"Scheduled", "HalfBound", "FailedScheduling"}
    # Whoever has a higher priority waits now: 4 of 8 cpu are left, and the gang needs them to be of use.
    urgent = live_pod("urgent", cpu=4, spec={"priority": 1000})
    cluster.create(
        {
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "metadata": {"name": "high"},
            "value": 1000,
        }
    )
    cluster.create({**urgent, "spec": {**urgent["spec"], "priorityClassName": "high"}})
    told = passes()
    assert bound(cluster) == {"train-0": "n1", "train-1": "n1"}
    assert told["gangs"]["bound"] == 1


# ------------------------------------------------------------------------------------------------------- the server


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
    monkeypatch.setattr("placer.cluster.bind._PATIENCE", 0.3)
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
    again = passes()
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
    try:
        told = passes("--gang-grace", "60")
    finally:
        again.join()
    assert (told["bound"], told["incomplete"], told["overfull"]) == (300, [], [])
    assert len(bound(cluster)) == 300
    assert overfull(cluster) == []


def test_a_watch_that_is_broken_and_too_old_is_begun_anew(
    cluster: Api, passes: Passes, proxy: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The list that is taken instead shows what happened meanwhile."""
    cluster.create(node("n1"), *gang("train", 2, cpu=4))

    def watches(method: str, path: str, times: int) -> Spoil | None:
        listed = path == "/api/v1/pods"
        # The first asks for pods that failed, the second is the snapshot's list, the third is the watch.
        return Spoil(410) if method == "GET" and listed and times == 3 else None

    def work(ledger: Any) -> None:
        theirs = steal(cluster, "thief", "n1", cpu=1)
        assert ledger.wait(PATIENCE, lambda: ledger.is_bound(theirs))

    proxy.rule = watches
    before_bindings(monkeypatch, work)
    told = passes()
    assert told["left"] == {"PodGroup default/train": "the room is gone on Node n1: cpu 8 of 7 left"}


# -------------------------------------------------------------------------------------------------- kubelets, solvers


def test_a_kubelet_that_rejects_cools_down_and_the_gang_is_repaired(cluster: Api, passes: Passes) -> None:
    """n1's kubelet knows of less than it told: of two pods of 4 cpu it takes one."""
    kubelets = Kubelets(cluster)
    kubelets.add(node("n1"))
    kubelets.admissions["n1"] = type(kubelets.admissions["n1"]).of(node("n1", cpu=5))
    group, first, second = gang("train", 2, cpu=4)
    cluster.create(group, first, second)
    with kubelets.running(every=0.01):
        told = passes("--settle", "20", code=6)
        (name,) = told["rejected"]
        assert told["rejected"][name] == "OutOfcpu on n1"
        (found,) = half_bound(told).values()
        assert found["missing"] == {name: "the kubelet of Node n1 rejected it (OutOfcpu)"}
    # The controller of the pods makes another one; n1 has room for it, and n2 comes too. No kubelet looks meanwhile: a
    # pod that has its node and no status yet is one to start.
    kubelets.add(node("n2"))
    recreate(cluster, next(each for each in (first, second) if each["metadata"]["name"] == name.split("/")[1]))
    lost = live_pod("failed-before", node="n1", scheduler="placer", cpu=1)
    cluster.create({**lost, "status": {"phase": "Failed", "reason": "OutOfcpu", "startTime": _now()}})
    with kubelets.running(every=0.01):
        told = passes("--settle", "20")
        assert told["coolingNodes"] == ["n1"]
        assert sorted(bound(cluster).values()) == ["n1", "n2"]
        assert (told["gangs"]["bound"], told["rejected"]) == (1, {})


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def test_a_solver_that_is_killed_costs_no_more_than_its_answer(
    cluster: Api, passes: Passes, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    really, killed = process._start, []

    def start(*arguments: Any) -> subprocess.Popen[bytes]:
        child = really(*arguments)
        child.kill()
        killed.append(child.pid)
        return child

    monkeypatch.setattr(process, "_start", start)
    monkeypatch.setattr(importlib.import_module("placer.solve")._Job, "_proved", lambda *_: False)
    cluster.create(node("n1"), node("n2"), *gang("train", 4, cpu=4))
    told = passes("--method", "auto", "--save", str(tmp_path))
    assert killed
    assert (told["bound"], told["incomplete"]) == (4, [])
    document = json.loads(Path(told["saved"][1]).read_text())
    assert "SolverDied" in {each["code"] for each in document["findings"]}


# ----------------------------------------------------------------------------------------------------------- SIGTERM


def stopped_at(pod: str, then: Spoil | None) -> Callable[[str, str, int], Spoil | None]:
    """SIGTERM comes with the binding of a pod; what happens to bindings from then on."""
    over = threading.Event()

    def rule(_method: str, path: str, _times: int) -> Spoil | None:
        if not path.endswith("/binding"):
            return None
        if path.endswith(f"/{pod}/binding"):
            os.kill(os.getpid(), signal.SIGTERM)
            over.set()
        return then if over.is_set() else None

    return rule


def test_sigterm_completes_the_gang_under_way_and_begins_no_other(cluster: Api, passes: Passes, proxy: Proxy) -> None:
    cluster.create(*(node(f"n{number}", pods=100, cpu=100) for number in range(2)))
    cluster.create(*gang("a", 60), *gang("b", 60))
    proxy.rule = stopped_at("a-1", None)
    told = passes()
    assert told["interrupted"] is True
    assert told["left"] == {"PodGroup default/b": "the pass was to end"}
    assert {name[0] for name in bound(cluster)} == {"a"}
    assert (len(bound(cluster)), told["bound"]) == (60, 60)


def test_sigterm_while_the_server_hangs_ends_with_a_report(cluster: Api, passes: Passes, proxy: Proxy) -> None:
    """What was bound and what was not is told; nothing is waited for that does not come."""
    cluster.create(node("n1", cpu=100), *gang("train", 60))
    proxy.rule = stopped_at("train-30", Spoil(0, hang=60.0))
    told = passes(code=6)
    assert told["interrupted"] is True
    (found,) = half_bound(told).values()
    assert found["bound"] == len(bound(cluster)) == told["bound"]
    assert 0 < found["bound"] < 60


def test_sigterm_before_anything_is_bound_binds_nothing(
    cluster: Api, passes: Passes, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*arguments: Any) -> Any:
        os.kill(os.getpid(), signal.SIGTERM)
        return make_plan(*arguments)

    monkeypatch.setattr("placer.run.make_plan", interrupted)
    cluster.create(node("n1"), *gang("train", 4))
    told = passes()
    assert (told["interrupted"], told["bound"]) == (True, 0)
    assert bound(cluster) == {}
