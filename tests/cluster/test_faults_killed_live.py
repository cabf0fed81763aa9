"""Who may die in the middle of a pass: the API server at eight points, the solver at its start and in the middle."""

from __future__ import annotations

import gc
import importlib
import random
import signal
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from placer.search import process
from placer.search.fork_server import Child
from tests.cluster.aftermath import check_half_bound, could_be_bound, finish
from tests.cluster.api import Api
from tests.cluster.passes import Passes, bound, gang, overfull
from tests.cluster.proxy import Proxy, Rule, Spoil
from tests.cluster.server import ControlPlane
from tests.cluster.things import live_pod
from tests.support import node

NAMES = [f"g{number}" for number in range(10)]
FLAGS = ("--settle", "0", "--gang-grace", "60")

#: When the server is killed: a method, how the path ends, and at which of these requests.
POINTS = {
    "discovery": ("GET", "/apis", 1),
    "the list of nodes": ("GET", "/api/v1/nodes", 1),
    "the list of pods": ("GET", "/api/v1/pods", 2),
    "the watch": ("GET", "/api/v1/pods?watch", 1),
    "the first binding": ("POST", "/binding", 1),
    "a binding in the middle": ("POST", "/binding", 17),
    "a condition": ("PATCH", "huge-0/status", 1),
    "an Event": ("POST", "/events", 3),
}


def at(method: str, end: str, number: int, work: Callable[[], None]) -> Rule:
    """Do something once, when the so many-th request of a kind is about to be handed on."""
    seen = [0]

    def rule(asked: str, path: str, _times: int) -> Spoil | None:
        if asked == method and path.endswith(end):
            seen[0] += 1
            if seen[0] == number:
                work()
        return None

    return rule


# A connection whose server is killed while it is opened is closed by the garbage collector.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize(
    "point",
    [pytest.param(each, marks=() if "first" in each else pytest.mark.exhaustive) for each in POINTS],
)
def test_the_server_is_killed(
    point: str, cluster: Api, passes: Passes, proxy: Proxy, control_plane: ControlPlane, tmp_path: Path
) -> None:
    cluster.create(*(node(f"n{number}", cpu=8) for number in range(5)))
    cluster.create(
        *(each for name in NAMES for each in gang(name, 3)), *gang("huge", 2, cpu=9), live_pod("lone", cpu=1)
    )
    wanted = could_be_bound(passes, tmp_path, *FLAGS)
    assert len(wanted) == 31
    again = threading.Thread(target=control_plane.start_api_server)

    def kill() -> None:
        control_plane.end("kube-apiserver", signal.SIGKILL)
        again.start()

    proxy.rule = at(*POINTS[point], kill)
    try:
        passes(*FLAGS, code=None)
    finally:
        again.join()
    check_half_bound(cluster, NAMES, passes.code, told=False)
    finish(cluster, passes, proxy, wanted, NAMES, *FLAGS)
    gc.collect()  # now, and not in a test that has killed nothing


def test_a_solver_that_is_killed_in_the_middle_costs_no_more_than_its_answer(
    cluster: Api, passes: Passes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After its first event; what it has said by then may be used."""
    fork, frames, children = process.SERVER.fork, process._frames, list[Child]()

    def forked(*arguments: Any) -> Child:
        children.append(fork(*arguments))
        return children[-1]

    def cut(buffer: bytearray) -> list[tuple[str, Any]]:
        found = [each for each in frames(buffer) if each[0] != "returned"]
        if found:
            children[-1].kill()
        return found

    monkeypatch.setattr(process.SERVER, "fork", forked)
    monkeypatch.setattr(process, "_frames", cut)
    monkeypatch.setattr(importlib.import_module("placer.answers.solving")._SolveCall, "_proved", lambda *_: False)
    cluster.create(node("n1"), node("n2"), *gang("train", 4, cpu=4))
    told = passes("--method", "auto")
    assert children
    assert children[-1].wait() in (-signal.SIGKILL, 0), "it may have ended before the signal came"
    assert (told["bound"], told["incomplete"]) == (4, [])


@pytest.mark.exhaustive
def test_of_all_writes_three_in_ten_are_refused_for_want_of_time(cluster: Api, passes: Passes, proxy: Proxy) -> None:
    """5,000 pods of 250 gangs: each is bound once, no gang is half-bound, and all is bound after one clean pass, where
    three are allowed. The pass that meets the refusals itself may leave a few gangs whole.
    """
    gangs, size = 250, 20
    cluster.create(*(node(f"n{number:03d}", cpu=64, pods=110) for number in range(100)))
    cluster.create(*(each for number in range(gangs) for each in gang(f"g{number:03d}", size)))
    chance, lock, refused = random.Random(7), threading.Lock(), [0]

    def rule(method: str, path: str, _times: int) -> Spoil | None:
        with lock:
            if method == "GET" or "/leases" in path or chance.random() >= 0.3:
                return None
            refused[0] += 1
        return Spoil(429, headers=(("Retry-After", "0"),))

    proxy.rule = rule
    told = passes("--time-limit", "300", "--gang-grace", "300")
    assert (told["incomplete"], told["overfull"]) == ([], [])
    whole = told["gangs"]["bound"]
    assert whole >= gangs - 5, told["left"]  # what is not heard within seconds, on a busy machine, is not assumed
    assert told["bound"] == whole * size
    proxy.rule = lambda *_: None
    passes("--time-limit", "300")
    assert len(bound(cluster)) == gangs * size
    assert set(proxy.bound.values()) == {1}
    assert refused[0] > 1_500
    assert overfull(cluster) == []
