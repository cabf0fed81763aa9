"""Gangs of ``scheduling.k8s.io`` as a server really has them: what is read of each version, and what is written back.

The server of the tests has v1beta1 and v1alpha3, as Kubernetes 1.37 does; of older versions see ``test_older_gangs``.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import placer
from placer.cli import main
from placer.problem import GroupKey, Key
from placer.problem.neighbours import DomainUnit
from tests.cluster.api import Api
from tests.cluster.controllers import priority_class
from tests.cluster.passes import Passes, bound
from tests.cluster.server import ControlPlane
from tests.cluster.things import live_pod
from tests.problem.test_upstream_gangs import gang, upstream
from tests.support import Document, node
from tests.waiting import wait_until

PATH = "/apis/scheduling.k8s.io/v1beta1/namespaces/default/podgroups"


@pytest.fixture
def passes(cluster: Api, control_plane: ControlPlane, capsys: pytest.CaptureFixture[str]) -> Passes:
    return Passes(control_plane, capsys)


def members(group: str, count: int, **options: Any) -> list[Document]:
    """Pods of a PodGroup of Kubernetes, of 3 cpu each where nothing else is said."""
    spec = {"schedulingGroup": {"podGroupName": group}, **options.pop("spec", {})}
    return [live_pod(f"{group}-{number}", spec=spec, **({"cpu": 3} | options)) for number in range(count)]


def conditions(api: Api, name: str, path: str = PATH) -> list[dict[str, Any]]:
    """What a PodGroup says of itself."""
    found: list[dict[str, Any]] = (api.get(f"{path}/{name}").get("status") or {}).get("conditions") or []
    return found


def only(api: Api, name: str, path: str = PATH) -> dict[str, Any]:
    (found,) = conditions(api, name, path)
    return found


def essence(found: dict[str, Any]) -> dict[str, Any]:
    """A condition without what two schedulers may say in words of their own, and without when."""
    return {key: text for key, text in found.items() if key not in ("message", "lastTransitionTime")}


def observed(api: Api, path: str) -> dict[str, int]:
    """The generation that a condition is of; kube-apiserver 1.37 counts none for PodGroups of its own."""
    generation = api.get(path)["metadata"].get("generation")
    return {} if generation is None else {"observedGeneration": generation}


def whole_or_not_at_all(api: Api, passes: Passes, version: str, said: str) -> None:
    """A node of 6 cpu: the gang of two goes, that of three waits, and each says so once; then there is room."""
    path = f"/apis/scheduling.k8s.io/{version}/namespaces/default/podgroups"
    api.create(node("n1", cpu=6))
    for name, count in (("two", 2), ("three", 3)):
        api.create(upstream(version=version, name=name, **gang(count)), *members(name, count))
    told = passes()
    assert set(bound(api)) == {"two-0", "two-1"}
    assert (told["bound"], told["gangs"]["waiting"], told["told"]["troubles"]) == (2, 1, [])
    done, waits = only(api, "two", path), only(api, "three", path)
    ready = {"type": said, "status": "True", "reason": "Scheduled", **observed(api, f"{path}/two")}
    assert essence(done) == ready
    assert essence(waits) == {**ready, "status": "False", "reason": "Unschedulable"}
    assert waits["message"].startswith("InsufficientResources: ")
    passes()  # beside the gang that went the same is said in other words
    versions = [api.get(f"{path}/{name}")["metadata"]["resourceVersion"] for name in ("two", "three")]
    assert passes()["told"] == {"conditions": 0, "events": 0, "groups": 0, "troubles": []}
    assert [api.get(f"{path}/{name}")["metadata"]["resourceVersion"] for name in ("two", "three")] == versions
    api.create(node("n2", cpu=9))
    assert passes()["bound"] == 3
    assert essence(only(api, "three", path)) == ready
    assert only(api, "two", path) == done


def test_a_gang_of_v1beta1(cluster: Api, passes: Passes) -> None:
    whole_or_not_at_all(cluster, passes, "v1beta1", "PodGroupInitiallyScheduled")


def test_scheduled_once_is_scheduled_for_ever(cluster: Api, passes: Passes) -> None:
    cluster.create(node("n1", cpu=6), upstream(name="g", **gang(2)), *members("g", 2))
    passes()
    done = only(cluster, "g")
    assert done["status"] == "True"
    for number in range(2):
        cluster.delete(f"/api/v1/namespaces/default/pods/g-{number}")
    cluster.create(*members("g", 2, cpu=7))
    assert passes()["gangs"]["waiting"] == 1
    assert only(cluster, "g") == done


@pytest.mark.usefixtures("kube_scheduler")
def test_each_scheduler_writes_of_its_own_gangs_and_both_write_alike(cluster: Api, passes: Passes) -> None:
    """One gang of each that goes, and one of each that waits."""
    cluster.create(node("n1", cpu=6), node("n2", cpu=6))
    schedulers = {"ours": "placer", "theirs": "default-scheduler"}
    for whose, scheduler in schedulers.items():
        for name, count in ((f"{whose}-go", 2), (f"{whose}-wait", 5)):
            cluster.create(upstream(name=name, **gang(count)), *members(name, count, scheduler=scheduler))
        if whose == "ours":
            passes()
            assert not any(name.startswith("theirs") for name in bound(cluster))
    for name in ("theirs-go", "theirs-wait"):
        wait_until(lambda name=name: bool(conditions(cluster, name)), f"the condition of {name}")
    theirs = {name: only(cluster, f"theirs-{name}") for name in ("go", "wait")}
    passes()
    assert {name: essence(only(cluster, f"ours-{name}")) for name in ("go", "wait")} == {
        name: essence(each) for name, each in theirs.items()
    }
    assert {name: only(cluster, f"theirs-{name}") for name in ("go", "wait")} == theirs


def test_what_the_server_keeps_of_a_pod_group_is_read(
    cluster: Api, passes: Passes, control_plane: ControlPlane, tmp_path: Path
) -> None:
    """Topology, disruption, priority: the server fills in the priority, a class where one is named, else 0."""
    cluster.create(priority_class("high", 9))
    racks = {f"n{number}": {"rack": f"r{number // 2}"} for number in range(4)}
    cluster.create(*(node(name, labels, cpu=4) for name, labels in racks.items()))
    near = {"schedulingConstraints": {"topology": [{"key": "rack"}]}}
    whole = {"disruptionMode": {"all": {}}, "priorityClassName": "high"}
    cluster.create(upstream(name="near", **gang(2, **near)), *members("near", 2))
    cluster.create(upstream(name="wide", **gang(3, **near)), *members("wide", 3))
    cluster.create(upstream(name="whole", **gang(1, **whole)))
    cluster.create(*members("whole", 1, spec={"priorityClassName": "high"}))
    file = tmp_path / "there.json"
    assert main(["snapshot", "--kubeconfig", str(control_plane.kubeconfig()), "-o", str(file)]) == 0
    found = {key.name: group for key, group in placer.read(file).groups.items()}
    assert {name: group.priority for name, group in found.items()} == {"near": 0, "wide": 0, "whole": 9}
    assert {name for name, group in found.items() if group.disrupted_whole} == {"whole"}
    key = GroupKey("scheduling.k8s.io", "default", "near")
    assert placer.read(file).pods[Key("default", "near-0")].neighbours.units == (DomainUnit(str(key), "rack"),)
    passes()
    where = bound(cluster)
    assert {racks[where[f"near-{number}"]]["rack"] for number in range(2)} in ({"r0"}, {"r1"})
    assert not any(name.startswith("wide") for name in where)
    assert only(cluster, "wide")["message"].startswith("TopologyTooNarrow: ")
