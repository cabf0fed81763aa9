"""Every cell of the matrix of faults, against a real API server: what must hold after any of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import pytest

from placer.passes.cluster.writing.lease import LeaseOptions
from tests.cluster.aftermath import check_half_bound, could_be_bound, finish
from tests.cluster.api import Api
from tests.cluster.fault_matrix import CELLS, FAULTS, Cell
from tests.cluster.passes import Passes, gang, leaves
from tests.cluster.proxy import Proxy, proxied
from tests.cluster.server import ControlPlane
from tests.cluster.things import live_pod
from tests.waiting import wait_until

#: Seconds for which something is waited in a pass, in place of those that are for real clusters.
SHORT = {
    "placer.passes.cluster.reading.client._READ": 0.5,
    "placer.passes.cluster.reading.client._FIRST_WAIT": 0.02,
    "placer.passes.cluster.writing.lease._PATIENCE": 0.4,
    "placer.passes.cluster.writing.gang_ledger._PATIENCE": 0.4,
    "placer.passes.cluster.writing.binding._PATIENCE": 0.4,
    "placer.passes.cluster.writing.status_writer._PATIENCE": 0.4,
    "placer.passes.cluster.writing.pod_group_status._PATIENCE": 0.4,
    "placer.passes.cluster.writing.plan_execution._EVENTS": 3.0,
    "placer.passes.cluster.reading.watch._EVERY": 0.3,
    "placer.passes.cluster.reading.watch._LISTING": 2.0,
    "placer.passes.cluster.reading.rejections._SECONDS": 1.0,
    "placer.passes.cluster.reading.rejections._SILENT": 0.5,
    "placer.passes.cluster.writing.breaker._REFUSED": 0.5,
    "placer.passes.cluster.writing.breaker._WAITING": 3.0,
}
#: It is renewed several times in each pass, and what was not given back is soon another's.
LEASE = LeaseOptions(duration=5, renew_deadline=600.0, retry_period=0.05)
FLAGS = ("--settle", "0", "--gang-grace", "2", "--bind-workers", "8")
NAMESPACE, RECORDS = "/api/v1/namespaces/default", "api/v1/namespaces/placer/configmaps"
GANGS = {"a": 4, "b": 4, "c": 3}
NAMES = (*GANGS, "huge")


def part(cell: Cell) -> Any:
    """Cells that the test command tries: what happens to bindings, and one fault of each other kind of request."""
    tried = (cell.phase == "binding" or cell.fault == "503") and (cell.always or not FAULTS[cell.fault].lasting)
    return pytest.param(cell, id=str(cell), marks=() if tried else pytest.mark.exhaustive)


@pytest.fixture(scope="module")
def world(api: Api) -> Iterator[set[str]]:
    """Names of the pods that can be bound; empty before the first cell, which makes a cluster for them."""
    yield set()
    api.wipe()


@pytest.fixture
def matrix(
    install: Callable[[str], None], control_plane: ControlPlane, capsys: pytest.CaptureFixture[str]
) -> Iterator[tuple[Passes, Proxy]]:
    """Passes at a server that keeps its nodes from cell to cell, and what is in front of it."""
    install("volcano")
    passes = Passes(control_plane, capsys)
    with proxied(control_plane) as proxy:
        passes.url = proxy.url
        yield passes, proxy


def reset(cluster: Api) -> None:
    """Leave nothing of the cell before but nodes, HyperNodes and definitions."""
    for name in ("apis/coordination.k8s.io/v1/namespaces/placer/leases/placer", f"{RECORDS}/placer-gangs"):
        cluster.delete(f"/{name}")
    for path in (
        f"{NAMESPACE}/pods",
        "/apis/scheduling.volcano.sh/v1beta1/namespaces/default/podgroups",
        "/apis/events.k8s.io/v1/namespaces/default/events",
    ):
        cluster.call("DELETE", path, {"gracePeriodSeconds": 0})
    first, *others = (gang(name, least, tier=1, cpu=2) for name, least in GANGS.items())
    cluster.create(*first)  # of equals the older one is bound: which that is must be the same in every cell
    cluster.create(*chain(*others), *gang("huge", 3, cpu=7), live_pod("lone", cpu=1))


@pytest.mark.parametrize("cell", [part(each) for each in CELLS])
def test_a_pass_that_meets_it(
    cell: Cell,
    api: Api,
    world: set[str],
    matrix: tuple[Passes, Proxy],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    passes, proxy = matrix
    for name, seconds in SHORT.items():
        monkeypatch.setattr(name, seconds)
    monkeypatch.setattr("placer.cli.pass_flags.lease_of", lambda _: LEASE)
    if not world:
        api.wipe()
        api.make_namespaces("placer")
        api.create(*leaves(2, 2, cpu=8))
    reset(api)
    if not world:
        world |= could_be_bound(passes, tmp_path, *FLAGS)
    proxy.rule, proxy.bound = cell.rule(), Counter()
    passes(*FLAGS, code=cell.code)
    check_half_bound(api, NAMES, passes.code, told=cell.phase != "condition" and cell.fault != "garbled")
    finish(api, passes, proxy, world, NAMES, *FLAGS)
    wait_until(lambda: proxy.held_back == 0, "what was held back belongs to this cell, and to none behind it")
