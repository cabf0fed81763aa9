"""A short soak on a real API server beside a real kube-scheduler, and how its judge hears of what happens there."""

from __future__ import annotations

import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.api import Api
from tests.cluster.passes import gang
from tests.cluster.server import ControlPlane
from tests.cluster.soak.judge import Limits, judge
from tests.cluster.soak.ledger import OverfullBinding
from tests.cluster.soak.run import SoakOptions, soak
from tests.cluster.soak.watching import heard
from tests.cluster.soak.world import World
from tests.cluster.things import live_pod
from tests.support import node
from tests.waiting import wait_until

PASSES = 20


@pytest.mark.exhaustive
def test_a_short_soak_holds(
    cluster: Api, control_plane: ControlPlane, install: Callable[[str], None], scheduler_program: Path
) -> None:
    """As ``python -m tests.benchmarks.soak`` does it; so short, memory may still grow a little."""
    install("volcano")
    told: list[dict[str, Any]] = []
    options = SoakOptions(passes=PASSES, nodes=60, seed=1, fault_every=3)
    records = soak(control_plane, cluster, options, told.append)
    assert judge(records, Limits(passes=PASSES, growth=1.3, led=10, writes=1.25)) == {}
    assert len(told) == PASSES
    assert {each.fault for each in records.samples} - {"", "the Lease is handed over"}


def test_what_happens_is_heard_though_the_server_ends_meanwhile(
    cluster: Api, control_plane: ControlPlane, install: Callable[[str], None]
) -> None:
    """What the ledger has of it is what the judge goes by: here somebody binds too much in placer's name."""
    install("volcano")
    world = World(cluster, nodes=2, seed=0)
    ledger = world.ledger
    small = node("n-00-00", cpu=8)
    ledger.node_is(small)
    cluster.create(small)
    with heard(control_plane, world.listeners()), world.kubelets():
        cluster.create(*gang("g", 2, cpu=4), live_pod("lone", cpu=4))
        cluster.bind("default", "g-0", "n-00-00")
        wait_until(lambda: ledger.half_bound() == {"g"}, "half of the gang")
        control_plane.end("kube-apiserver", signal.SIGKILL)
        control_plane.start_api_server()
        cluster.bind("default", "g-1", "n-00-00")
        wait_until(lambda: ledger.half_bound() == frozenset(), "the gang")
        assert ledger.overfull == []
        cluster.bind("default", "lone", "n-00-00")
        wait_until(lambda: ledger.overfull == [OverfullBinding("lone", "n-00-00", float("inf"))], "one too many")
        wait_until(lambda: {each.phase for each in ledger.pods.values()} == {"Running"}, "kubelets")
        assert ledger.changes == {"binding": 3, "PodGroup": 0}
        cluster.delete("/api/v1/namespaces/default/pods/g-0")
        wait_until(lambda: ledger.free("n-00-00")["cpu"] == 0, "the end of one")
