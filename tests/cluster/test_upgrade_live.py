"""An upgrade in the middle of a pass: the old process is told to end while it binds, another version takes over.

No gang stays half-bound, each pod is bound once, and nobody waits for a Lease that its holder has given back.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any

import pytest

from tests.cluster.api import PATIENCE, Api
from tests.cluster.faults import half_bound
from tests.cluster.passes import bound, gang, overfull
from tests.cluster.processes import PlacerProcess, running
from tests.cluster.proxy import Proxy, Spoil
from tests.cluster.server import ControlPlane
from tests.cluster.soak.watching import heard
from tests.support import node
from tests.waiting import wait_until

LEASES = "/apis/coordination.k8s.io/v1/namespaces/placer/leases"
LATER = "99.0.0"
NAMES, SIZE = [f"g{number}" for number in range(6)], 20
ALL = dict.fromkeys(NAMES, SIZE)


class Middle:
    """Holds bindings back from some moment in the middle of a pass on, until the process that makes it is told to end.

    Parameters
    ----------
    before
        Bindings that are made by then: a gang and a part of the next one.
    then
        What becomes of the others until the proxy has another rule.
    """

    def __init__(self, before: int = SIZE + 5, then: Spoil | None = None) -> None:
        self._before, self._then, self._lock, self._count = before, then, threading.Lock(), 0
        self.reached, self._told = threading.Event(), threading.Event()

    def __call__(self, _method: str, path: str, _times: int) -> Spoil | None:
        if not path.endswith("/binding"):
            return None
        with self._lock:
            self._count += 1
            if self._count <= self._before:
                return None
        self.reached.set()
        self._told.wait(PATIENCE)
        return self._then or Spoil(delay=0.2)  # the process has heard of its end long before a gang is complete

    def end(self, process: PlacerProcess, *, at_once: bool = False) -> int:
        """End a process that binds; its exit code."""
        assert self.reached.wait(PATIENCE)
        if at_once:
            process.kill()
        else:
            process.terminate()
        self._told.set()
        return process.wait()


def counts(cluster: Api) -> dict[str, int]:
    """Gang to how many of its pods are bound, where any is."""
    found: dict[str, int] = {}
    for name in bound(cluster):
        found[name.partition("-")[0]] = found.get(name.partition("-")[0], 0) + 1
    return found


@pytest.fixture
def flags(cluster: Api, proxy: Proxy, control_plane: ControlPlane) -> list[str]:
    """Of passes through the proxy, at a cluster in which six gangs just have room."""
    cluster.create(*(node(f"n{number}", cpu=40, pods=100) for number in range(3)))
    config = control_plane.kubeconfig("upgrade", url=proxy.url)
    return ["--kubeconfig", str(config), "--method", "greedy", "--settle", "0"]


def submit(cluster: Api) -> None:
    cluster.create(*(each for name in NAMES for each in gang(name, SIZE)))


def check_once(cluster: Api, proxy: Proxy) -> None:
    assert set(proxy.bound.values()) == {1}
    assert overfull(cluster) == []


def test_a_loop_completes_its_gang_and_the_new_one_binds_the_rest(
    cluster: Api, proxy: Proxy, control_plane: ControlPlane, flags: list[str]
) -> None:
    records: list[Mapping[str, Any]] = []
    listeners = {LEASES: lambda _kind, lease: records.append(lease["spec"])}
    with heard(control_plane, listeners), running([*flags, "--every", "1h"]) as old:
        wait_until(lambda: bool(old.lines), "the first pass")
        with running([*flags, "--every", "1h"], LATER) as new:
            wait_until(lambda: "is held by" in new.said, "the new one standing by")
            proxy.rule = middle = Middle()
            submit(cluster)
            assert middle.end(old) == 0, old.said
            told = old.lines[-1]
            assert (told["interrupted"], told["incomplete"]) == (True, [])
            by_old = set(told["left"])
            assert 0 < len(by_old) < len(NAMES)
            assert set(told["left"].values()) == {"the pass was to end"}
            assert new.lines == [] or new.lines[0]["leader"] != told["leader"]
            proxy.rule = lambda *_: None
            wait_until(lambda: counts(cluster) == ALL, "the rest")
            rest = SIZE * len(NAMES) - told["bound"]  # its pass may have begun before the last gang was there
            wait_until(lambda: sum(each["bound"] for each in new.lines) == rest, "its line")
            assert {each["version"] for each in new.lines} == {LATER}
            assert all(each["incomplete"] == [] for each in new.lines)
    check_once(cluster, proxy)
    holders = [each.get("holderIdentity") for each in records]
    first, last = holders.index(told["leader"]), holders.index(new.lines[0]["leader"])
    assert None in holders[first:last], "the old one gives the Lease back: nobody waits for its end"


def test_a_loop_that_gets_no_answer_reports_its_gang_and_the_new_one_completes_it_first(
    cluster: Api, proxy: Proxy, flags: list[str]
) -> None:
    with running([*flags, "--every", "1h"]) as old:
        wait_until(lambda: bool(old.lines), "the first pass")
        with running([*flags, "--every", "1h"], LATER) as new:
            wait_until(lambda: "is held by" in new.said, "the new one standing by")
            proxy.rule = middle = Middle(then=Spoil(0, hang=PATIENCE))
            submit(cluster)
            assert middle.end(old) == 6, old.said
            proxy.rule = lambda *_: None
            assert half_bound(old.lines[-1])
            wait_until(lambda: counts(cluster) == ALL, "the rest")
            wait_until(lambda: any(each["bound"] for each in new.lines), "its line")
    assert [each["incomplete"] for each in new.lines if each["bound"]][-1] == []
    check_once(cluster, proxy)


@pytest.mark.parametrize("then", [None, Spoil(0, hang=PATIENCE)], ids=["answered", "no answer"])
def test_a_pass_of_a_cron_job_is_ended_and_the_next_one_is_new(
    then: Spoil | None, cluster: Api, proxy: Proxy, flags: list[str]
) -> None:
    submit(cluster)
    proxy.rule = middle = Middle(then=then)
    with running(flags) as old:
        code = middle.end(old)
    proxy.rule = lambda *_: None
    (told,) = old.lines
    assert told["interrupted"] is True
    assert (code, bool(half_bound(told))) == ((0, False) if then is None else (6, True))
    so_far = counts(cluster)
    assert 0 < len(so_far) < len(NAMES)
    halves = {f"PodGroup default/{name}" for name, count in so_far.items() if count < SIZE}
    assert halves == half_bound(told).keys()
    with running(flags, LATER) as new:
        assert new.wait() == 0, new.said
    (told,) = new.lines
    assert (told["version"], told["incomplete"]) == (LATER, [])
    assert counts(cluster) == ALL
    check_once(cluster, proxy)
