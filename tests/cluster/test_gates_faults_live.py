"""What goes wrong with the two requests by which a pod is released, and a pass that is killed between two of them."""

from __future__ import annotations

import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from itertools import chain
from typing import Any, NamedTuple

import pytest

from tests.cluster.api import Api
from tests.cluster.controllers import priority_class
from tests.cluster.fault_matrix import FAULTS
from tests.cluster.faults import PODS, steal
from tests.cluster.held import GATES, all_bound, gated, held, held_gang, only_nodes, read
from tests.cluster.passes import Passes, leaves, overfull
from tests.cluster.proxy import Proxy, Rule, Spoil
from tests.cluster.server import ControlPlane
from tests.cluster.test_faults_matrix_live import SHORT
from tests.cluster.things import live_pod
from tests.support import node

FLAGS = (*GATES, "--settle", "0", "--gang-grace", "2", "--bind-workers", "8")
GANGS = {"a": 4, "b": 4, "c": 3}
#: What has room; "huge" has none.
WANTED = {*(f"{name}-{number}" for name, count in GANGS.items() for number in range(count)), "lone"}


class Cell(NamedTuple):
    """A fault of one of the two requests: of the second such one only, or of each."""

    request: str
    fault: str
    always: bool

    def rule(self) -> Rule:
        seen = [0]

        def rule(method: str, path: str, _times: int) -> Spoil | None:
            status = path.endswith("/status")
            if method != "PATCH" or not path.startswith(PODS) or status is not (self.request == "nomination"):
                return None
            seen[0] += 1
            return FAULTS[self.fault].spoil if self.always or seen[0] == 2 else None

        return rule


def cells() -> Iterator[Any]:
    for request in ("nomination", "release"):
        for fault, what in FAULTS.items():
            for always in (False, True) if what.lasting else (False,):
                tried = request == "release" and fault in ("lost", "late", "409", "429", "503", "403")
                cell = Cell(request, fault, always)
                name = f"{request}, {fault}, {'always' if always else 'once'}"
                yield pytest.param(cell, id=name, marks=() if tried else pytest.mark.exhaustive)


def released(cluster: Api) -> dict[str, list[str]]:
    """Gang to those of its pods that are released."""
    found: dict[str, list[str]] = defaultdict(list)
    for name in only_nodes(cluster):
        found[name.rpartition("-")[0]].append(name)
    return found


def nominated(cluster: Api) -> set[str]:
    return {each["metadata"]["name"] for each in cluster.items(PODS) if each["status"].get("nominatedNodeName")}


@pytest.mark.parametrize("cell", list(cells()))
def test_a_pass_that_meets_it(
    cell: Cell, cluster: Api, passes: Passes, proxy: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is released twice; a gang of which a part is released is told, with exit code 6, and completed first by
    the passes that follow; nothing keeps a nomination that it has not got its node by.
    """
    for name, seconds in SHORT.items():
        monkeypatch.setattr(name, seconds)
    cluster.create(*leaves(2, 2, cpu=8))
    cluster.create(*chain(*(held_gang(name, least, tier=1, cpu=2) for name, least in GANGS.items())))
    cluster.create(*held_gang("huge", 3, cpu=9), held(live_pod("lone", cpu=1)))
    proxy.rule = cell.rule()
    told = passes(*FLAGS, code=None)
    parts = {name: found for name, found in released(cluster).items() if name and len(found) < GANGS[name]}
    assert passes.code == 6 or not parts
    half = {each["group"] for each in told["incomplete"] if each["state"] == "halfBound"}
    half |= set(told["unseen"])  # the server has said that it was done
    assert half >= {f"PodGroup default/{name}" for name in parts}
    proxy.rule = lambda *_: None
    for _ in range(3):
        if only_nodes(cluster).keys() >= WANTED:
            break
        passes(*FLAGS, code=None)
    assert only_nodes(cluster).keys() == WANTED
    assert gated(cluster) == {"huge-0", "huge-1", "huge-2"}
    assert nominated(cluster) <= WANTED
    counts = {path.rpartition("/")[2]: n for (method, path), n in proxy.done.items() if _releases(method, path)}
    assert counts == dict.fromkeys(WANTED, 1)
    assert all_bound_as_released(cluster)


def _releases(method: str, path: str) -> bool:
    return method == "PATCH" and path.startswith(PODS) and not path.endswith("/status")


def all_bound_as_released(cluster: Api) -> bool:
    """Bind as the pods' scheduler does; whether no node is over-full then."""
    for name, where in only_nodes(cluster).items():
        cluster.bind("default", name, where)
    return overfull(cluster) == []


@pytest.mark.usefixtures("kube_scheduler")
@pytest.mark.parametrize("request_", ["nomination", "release"])
def test_a_pass_that_is_killed_between_two_releases_is_completed(
    request_: str, cluster: Api, passes: Passes, proxy: Proxy, control_plane: ControlPlane
) -> None:
    """One of four is released when it dies. The next pass goes on with that gang, though another is more urgent by now
    and there is no room for both.
    """
    cluster.create(
        priority_class("high", 1000), *(node(f"n{number}", cpu=2) for number in range(4)), *held_gang("train", 4, cpu=2)
    )
    _killed(control_plane, proxy, Cell(request_, "dropped", always=False).rule(), "--bind-workers", "1")
    first = only_nodes(cluster)
    assert (len(first), len(gated(cluster))) == (1, 3)
    all_bound(cluster, *first)
    urgent = [held(each) for each in held_gang("urgent", 4, cpu=2)]
    for each in urgent[1:]:
        each["spec"]["priorityClassName"] = "high"
    cluster.create(*urgent)
    cluster.delete("/apis/coordination.k8s.io/v1/namespaces/placer/leases/placer")  # its holder is dead
    told = passes(*GATES)
    assert (told["unfinished"], told["released"]) == (["PodGroup default/train"], 3)
    assert all_bound(cluster, *(f"train-{number}" for number in range(4))).items() >= first.items()
    assert (overfull(cluster), len(gated(cluster))) == ([], 4)


def _killed(control_plane: ControlPlane, proxy: Proxy, kill: Rule, *flags: str) -> None:
    """Make a pass that is killed when a request comes that the rule spoils; that one never gets to the server."""
    config = control_plane.kubeconfig("killed", url=proxy.url)
    arguments = ["run", "--kubeconfig", str(config), "--method", "greedy", *GATES, *flags]
    with subprocess.Popen([sys.executable, "-m", "placer", *arguments], stdout=subprocess.DEVNULL) as running:

        def rule(method: str, path: str, times: int) -> Spoil | None:
            spoil = kill(method, path, times)
            if spoil is not None:
                running.kill()
            return spoil

        proxy.rule = rule
        running.wait()
    proxy.rule = lambda *_: None


def _first_release(method: str, path: str, _times: int) -> Spoil | None:
    return FAULTS["dropped"].spoil if _releases(method, path) else None


@pytest.fixture
def nominated_only(cluster: Api, passes: Passes, proxy: Proxy, control_plane: ControlPlane) -> str:
    """The pod of a gang of two, on nodes for one each, that a killed pass has nominated and not released."""
    cluster.create(node("n1", cpu=2), node("n2", cpu=2), *held_gang("train", 2, cpu=2))
    _killed(control_plane, proxy, _first_release, "--bind-workers", "1")
    cluster.delete("/apis/coordination.k8s.io/v1/namespaces/placer/leases/placer")  # its holder is dead
    (left,) = nominated(cluster)
    assert (only_nodes(cluster), gated(cluster)) == ({}, {"train-0", "train-1"})
    return left


@pytest.mark.parametrize("flags", [(), ("--no-conditions",)])
def test_a_nomination_that_a_killed_pass_left_is_taken_back_where_the_pod_waits(
    flags: tuple[str, ...], cluster: Api, passes: Passes, nominated_only: str, proxy: Proxy
) -> None:
    """It holds room in kube-scheduler. Of what waits, none is left; and then there is nothing to write any more."""
    steal(cluster, "thief", "n1", cpu=1)
    told = passes(*GATES, *flags)
    assert (told["released"], told["told"]["troubles"]) == (0, [])
    assert (nominated(cluster), gated(cluster)) == (set(), {"train-0", "train-1"})
    assert passes(*GATES, *flags)["released"] == 0
    path = f"{PODS}/{nominated_only}/status"
    assert proxy.done["PATCH", path] == 2  # by the pass that was killed, and by the next one


@pytest.mark.parametrize("flags", [(), ("--no-conditions",)])
def test_a_nomination_that_a_killed_pass_left_is_written_anew_where_the_pod_is_released(
    flags: tuple[str, ...], cluster: Api, passes: Passes, nominated_only: str, proxy: Proxy
) -> None:
    """To whichever node that is by then: here to another, since the one that it had has gone."""
    where = read(cluster, nominated_only)["status"]["nominatedNodeName"]
    cluster.delete(f"/api/v1/nodes/{where}")
    cluster.create(node("n3", cpu=2))
    told = passes(*GATES, *flags)
    assert told["released"] == 2
    planned = only_nodes(cluster)
    assert set(planned.values()) == {"n1", "n2", "n3"} - {where}
    assert {name: read(cluster, name)["status"]["nominatedNodeName"] for name in planned} == planned
    assert proxy.done["PATCH", f"{PODS}/{nominated_only}/status"] == 2


def test_nominations_in_other_namespaces_are_left_alone(
    cluster: Api, passes: Passes, nominated_only: str, proxy: Proxy
) -> None:
    """A pass that is kept to some touches nothing in others, and one without the option no pods with the gate."""
    passes(*GATES, "--no-conditions", "--namespaces", "other")
    passes("--no-conditions")
    assert nominated(cluster) == {nominated_only}


@pytest.mark.parametrize("status", [403, 409, 503])
def test_a_nomination_that_cannot_be_taken_back_is_told_and_tried_by_the_next_pass(
    status: int, cluster: Api, passes: Passes, nominated_only: str, proxy: Proxy
) -> None:
    steal(cluster, "thief", "n1", cpu=1)
    spoilt = f"{PODS}/{nominated_only}/status"
    proxy.rule = lambda method, path, _times: Spoil(status) if (method, path) == ("PATCH", spoilt) else None
    told = passes(*GATES, "--no-conditions")
    troubles = [] if status == 409 else [f"nominations of pods: {status} spoilt"]  # it has changed meanwhile
    assert (told["told"]["troubles"], nominated(cluster)) == (troubles, {nominated_only})
    proxy.rule = lambda *_: None
    passes(*GATES, "--no-conditions")
    assert nominated(cluster) == set()
