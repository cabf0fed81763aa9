"""A pass that evicts is killed at any point: what it began is gone on with or told, and nothing goes twice."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter

import pytest

from tests.cluster.api import Api
from tests.cluster.applied import Applied, Run, allowed, evictions, full, nominated, steal_spec, still_run, told
from tests.cluster.controllers import Controllers, owned
from tests.cluster.passes import Passes, bound, overfull
from tests.cluster.proxy import Proxy, Spoil
from tests.cluster.server import ControlPlane
from tests.examples import every, exhaustive
from tests.waiting import wait_until

LEASE = "/apis/coordination.k8s.io/v1/namespaces/placer/leases/placer"
GAINING = {"train-0", "train-1"}
VICTIMS = {"eval0-0", "eval0-1"}
BOTH = {"evict": "lower-priority", "move": "fewest"}

#: How many evictions were made, and whether the next one reaches the server while the pass is killed.
POINTS = {
    "before the first": (0, False),
    "with the first": (0, True),
    "after the first": (1, False),
    "with the last": (1, True),
}


class Killed:
    """A command in a process of its own that is killed at one of its evictions."""

    def __init__(self, control_plane: ControlPlane, cluster: Api, proxy: Proxy) -> None:
        self._config, self._cluster, self._proxy = (
            str(control_plane.kubeconfig("killed", url=proxy.url)),
            cluster,
            proxy,
        )

    def __call__(self, point: str, command: str, *flags: str) -> None:
        after, reaches = POINTS[point]
        going: list[str] = []
        arguments = [sys.executable, "-m", "placer", command, "--kubeconfig", self._config, *flags]
        process = subprocess.Popen(arguments, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)

        def rule(_method: str, path: str, times: int) -> Spoil | None:
            if not path.endswith("/eviction") or times < 2:  # first it is asked whether
                return None
            going.append(path)
            if len(going) <= after:
                return None
            process.kill()
            return Spoil(0, forwarded=reaches)

        self._proxy.rule = rule
        _, told = process.communicate(timeout=300)
        self._proxy.rule = lambda *_: None
        assert len(going) == after + 1, told
        if reaches:  # it does so while the process ends, or behind it
            wait_until(lambda: self._proxy.done["POST", going[after]] == 2, "the eviction")
        self._cluster.delete(LEASE)  # else the next pass waits until it is over


@pytest.fixture
def killed(control_plane: ControlPlane, cluster: Api, proxy: Proxy) -> Killed:
    return Killed(control_plane, cluster, proxy)


@pytest.mark.parametrize("point", every(4, POINTS, 2))
@pytest.mark.parametrize("hourly", [2, *exhaustive(20)])
def test_a_pass_goes_on_with_what_a_killed_one_began(
    point: str, hourly: int, cluster: Api, run: Run, killed: Killed, proxy: Proxy
) -> None:
    """Also where no more may go within the hour than the plan takes: it is counted once."""
    controllers = Controllers(cluster, full(cluster))
    allowed(cluster, evict="lower-priority")
    killed(point, "run", *Run.flags("--settle", "0.1", hourly=hourly))
    gone = VICTIMS - still_run(cluster)
    assert len(gone) == sum(POINTS[point])
    told = [run(hourly=hourly)] if gone else []  # as long as some are on their way out it waits
    assert [(each["room"], each["disruption"]) for each in told] == [("made", None)] * len(told)
    assert VICTIMS - still_run(cluster) == gone
    with controllers.running():
        told += [run(hourly=hourly) for _ in range(2)]
    assert set(bound(cluster)) == {*GAINING, "eval1-0", "filler"}
    assert sorted(each for each in controllers.ended if each in VICTIMS) == sorted(VICTIMS)
    evicted = [name for each in told for name in (each["disruption"] or {"evicted": []})["evicted"]]
    assert len(evicted) == len(set(evicted)) == 2 - len(gone)
    assert all(count <= 3 for count in evictions(proxy).values())
    assert (overfull(cluster), nominated(cluster)) == ([], {})
    assert run(hourly=hourly)["room"] == "none"


@pytest.mark.parametrize("point", every(4, POINTS, 1))
def test_a_pass_that_may_not_disturb_tells_what_a_killed_call_left(
    point: str, cluster: Api, passes: Passes, run: Run, killed: Killed
) -> None:
    controllers = Controllers(cluster, full(cluster))
    killed(point, "preempt", "--apply", "--workers", "1")
    controllers.step()
    gone = VICTIMS - still_run(cluster)
    told = passes()
    if len(gone) == 2:
        assert bound(cluster).keys() >= GAINING
    else:
        why = "the pass that made it ended before all had gone, and nothing more is evicted for it"
        assert told["disruption"]["trouble"] == f"room is held no longer for default/train-0, default/train-1: {why}"
    assert nominated(cluster) == {}
    assert still_run(cluster) >= {"eval1-0", "filler"}
    assert passes()["room"] == "none"


@pytest.mark.parametrize("point", every(4, POINTS, 3))
def test_who_asks_again_goes_on(point: str, cluster: Api, preempt: Applied, killed: Killed) -> None:
    controllers = Controllers(cluster, full(cluster))
    killed(point, "preempt", "--apply", "--workers", "1")
    gone = VICTIMS - still_run(cluster)
    if gone:
        preempt(code=6)
        assert "victims of an earlier plan are on their way out" in preempt.err
    controllers.step()
    with controllers.running():
        done = preempt(code=None)
    assert bound(cluster).keys() == {*GAINING, "eval1-0", "filler"}
    assert {each.removeprefix("default/") for each in done["applied"]["evicted"]} == VICTIMS - gone
    assert sorted(each for each in controllers.ended if each in VICTIMS) == sorted(VICTIMS)
    assert nominated(cluster) == {}


@pytest.mark.parametrize("point", ["with the last", *exhaustive("before the first")])
def test_moved_pods_get_their_room_though_the_pass_was_killed(
    point: str, cluster: Api, run: Run, killed: Killed
) -> None:
    """``late`` is more urgent and would have one of the spare nodes, to which the victims are moved."""
    controllers = Controllers(cluster, full(cluster, spare=2))
    allowed(cluster, **BOTH)
    killed(point, "run", *Run.flags("--settle", "0.1"))
    if point == "with the last":
        cluster.create(owned("late", "late", "high", cpu=4))
        assert run()["reserved"] == 2
    with controllers.running():
        run()
        run()
    there = bound(cluster)
    assert there.keys() >= GAINING
    assert {there["eval0-0-again"], there["eval0-1-again"]} == {"s0", "s1"}
    assert there.get("late") not in ("s0", "s1")
    assert {"eval0", "train"} <= told(cluster, "Scheduled").keys()
    assert overfull(cluster) == []
    assert [controllers.ended.count(each) for each in sorted(VICTIMS)] == [1, 1]
    assert run()["reserved"] == 0


@pytest.mark.parametrize("point", ["after the first", *exhaustive("with the first")])
def test_all_run_again_where_a_gang_was_half_moved(point: str, cluster: Api, run: Run, killed: Killed) -> None:
    """One pod of ``eval0`` runs on: the next pass completes the gang, and moves anew what is then in the way."""
    running = [*full(cluster, spare=2), steal_spec("filler", "n1")]
    controllers = Controllers(cluster, running)
    allowed(cluster, **BOTH)
    killed(point, "run", *Run.flags("--settle", "0.1"))
    with controllers.running():
        for _ in range(3):
            done = run()
    names = {name.removesuffix("-again") for name in bound(cluster)}
    assert names == GAINING | {each["metadata"]["name"] for each in running}
    assert max(Counter(controllers.ended).values()) == 1
    assert (overfull(cluster), nominated(cluster), done["reserved"]) == ([], {}, 0)
