"""Whatever goes wrong with evictions: nothing goes for nothing, nothing twice, and every plan is carried out or told.

Clusters, budgets and what waits are drawn; evictions are refused, are lost, or happen unheard; pods take their time to
end, and are made again under other names, late, or never.
"""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from tests.cluster.api import Api
from tests.cluster.applied import Applied, Run, allowed
from tests.cluster.disturbed import Disturbed, DrawnCluster
from tests.cluster.proxy import Proxy
from tests.examples import seed_blocks
from tests.waiting import wait_until

COMMANDS = ("run", "preempt", "defrag", "repair")
#: How much of a cluster is free to begin with, where what goes has to have room elsewhere.
FREE = {"defrag": 0.5, "repair": 0.4}
#: CPUs of a rack: all that is asked for.
RACK = 16
#: Calls while evictions go wrong, and most calls after that.
SPOILT, CLEAN = 3, 6


class Calls:
    """Calls of one command, or passes, at a cluster that was drawn."""

    def __init__(self, world: DrawnCluster, seed: int, run: Run, applied: Callable[[str], Applied]) -> None:
        self.world, self.command, self._run, self._applied = world, COMMANDS[seed % len(COMMANDS)], run, applied
        draw = random.Random(f"{seed} limits")
        self.hourly, self.most = draw.choice((3, 20)), draw.choice((None, 2, 3))
        self._asked = draw.choice((["--free-domains", "1@1"], ["--want", "1 x 2 x cpu=8 @ 1"]))
        self._may = draw.choice(({"evict": "lower-priority"}, {"evict": "lower-priority", "move": "fewest"}))

    def limit(self, cluster: Api) -> None:
        allowed(cluster, **self._may, **({} if self.most is None else {"maxPods": self.most}))

    def __call__(self, within: int) -> Disturbed:
        patience = ["--gone-within", str(within)]
        if self.command == "run":
            done = self._run(*patience, hourly=self.hourly, code=None)
            return self.world.note(done["disruption"], done["error"])
        flags = {"defrag": self._asked, "repair": ["--lost", "n0"]}.get(self.command, [])
        call = self._applied(self.command)
        done = call(*patience, *flags, code=None)
        assert done["code"] in (0, 5, 6), call.err
        return self.world.note(done.get("applied"), call.err if done["code"] == 6 else None)

    def faults_of(self, call: Disturbed) -> list[str]:
        """Where moves made no room, though it was not told."""
        if self.command != "defrag" or not call.evicted or call.trouble is not None:
            return []
        free = [sum(map(self.world.free, rack)) for rack in self.world.racks]
        return [] if RACK in free else [f"{free} CPUs of the racks are free, and {RACK} were asked for"]

    def limits_broken(self) -> list[str]:
        """Where more was disturbed than may be."""
        went = [len(call.evicted) for call in self.world.calls]
        found = [f"{each} went in one plan, of at most {self.most}" for each in went if each > (self.most or each)]
        if self.command == "run" and sum(went) > self.hourly:
            found.append(f"{sum(went)} went within the hour, of at most {self.hourly}")
        return found


def faults(seed: int, cluster: Api, proxy: Proxy, run: Run, applied: Callable[[str], Applied]) -> tuple[list[str], int]:
    """What went wrong, and how many pods were evicted."""
    cluster.wipe()
    command = COMMANDS[seed % len(COMMANDS)]
    world = DrawnCluster(cluster, proxy, seed, free=FREE.get(command, 0.0), lost=command == "repair")
    calls, found = Calls(world, seed, run, applied), list[str]()
    calls.limit(cluster)
    with world.controllers.running():
        for attempt in range(SPOILT + CLEAN):
            is_spoilt = attempt < SPOILT
            if not is_spoilt:
                wait_until(lambda: world.controllers.is_idle, "all that was evicted is gone")
            world.spoil(spoilt=is_spoilt)
            # A call that does nothing while pods are on their way out waits for them: another one must follow.
            is_settled = world.controllers.is_idle
            call = calls(3 if is_spoilt else 30)
            found += [*world.faults_of(call), *calls.faults_of(call)]
            if is_settled and not call.asked and call.error is None and (call.trouble is None or not is_spoilt):
                break
        found += world.faults()
    return [f"seed {seed}, {calls.command}: {each}" for each in (*found, *calls.limits_broken())], world.evicted.total()


@pytest.mark.usefixtures("lasting_lease")
@pytest.mark.parametrize("seeds", seed_blocks(40, 4, quick=0))
def test_evictions_that_go_wrong_at_random(
    seeds: range, cluster: Api, proxy: Proxy, run: Run, applied: Callable[[str], Applied]
) -> None:
    found = [faults(seed, cluster, proxy, run, applied) for seed in seeds]
    assert [each for told, _ in found for each in told] == []
    assert sum(evicted for _, evicted in found)
