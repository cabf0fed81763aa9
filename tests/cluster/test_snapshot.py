"""Snapshots of lists: what is asked for, what comes of it, and that a file says the same as the cluster."""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

import placer
from placer.base.errors import BadInstance, ClusterError
from placer.passes.cluster.reading.client import Forbidden, Response
from placer.passes.cluster.reading.snapshot import take
from placer.problem import Instance
from placer.problem.instance_builder import make_instance
from tests.cluster.snapshots import ListServer, snapshot_of
from tests.cluster.things import live_pod
from tests.support import Document, node, pod


def pods(count: int) -> list[Document]:
    return [pod(f"p{number:04d}", cpu=1) for number in range(count)]


def core(**lists: list[Document]) -> dict[str, list[Document]]:
    """The lists that every server has."""
    names = ("nodes", "namespaces", "persistentvolumes", "persistentvolumeclaims", "pods")
    found: dict[str, list[Document]] = {f"/api/v1/{name}": lists.get(name, []) for name in names}
    return found | {"/apis/scheduling.k8s.io/v1/priorityclasses": []}


def names(items: tuple[bytes, ...]) -> list[str]:
    return [json.loads(item)["metadata"]["name"] for item in items]


def pending(instance: Instance) -> list[str]:
    return sorted(str(each.key) for each in instance.pending)


# ----------------------------------------------------------------------------------------------------------- the lists


def test_pages_are_put_together() -> None:
    server = ListServer(core(nodes=[node("n1")], pods=pods(1100)))
    seen: list[tuple[str, int]] = []
    snapshot = take(server, watch=lambda name, count: seen.append((name, count)))
    assert names(snapshot.items) == ["n1", *(f"p{number:04d}" for number in range(1100))]
    assert [count for name, count in seen if name == "pods"] == [5, 55, 555, 1055, 1100]
    assert snapshot.counts["pods"] == 1100
    assert snapshot.versions["pods"] == "7"


def test_what_the_cluster_does_not_know_is_not_there() -> None:
    snapshot = take(ListServer(core(nodes=[node("n1")])))
    assert "podgroups.scheduling.volcano.sh" not in snapshot.counts
    assert set(snapshot.counts) == {
        "nodes",
        "namespaces",
        "persistentvolumes",
        "persistentvolumeclaims",
        "pods",
        "priorityclasses.scheduling.k8s.io",
    }


def test_a_group_without_the_kind_is_no_error() -> None:
    """The old group scheduling.sigs.x-k8s.io held several kinds; a cluster may have some of them."""
    path = "/apis/scheduling.sigs.x-k8s.io/v1alpha1/podgroups"
    group = {"apiVersion": "scheduling.sigs.x-k8s.io/v1alpha1", "kind": "PodGroup", "metadata": {"name": "g"}}
    snapshot = take(ListServer(core() | {path: [group]}))
    assert snapshot.counts["podgroups.scheduling.sigs.x-k8s.io"] == 1
    assert "appgroups.scheduling.sigs.x-k8s.io" not in snapshot.counts


@pytest.mark.parametrize(("versions", "taken"), [(["v1alpha2", "v1alpha1"], "v1alpha2"), (["v1alpha1"], "v1alpha1")])
def test_of_two_versions_one_is_listed(versions: list[str], taken: str) -> None:
    group = "/apis/topology.node.k8s.io"
    lists: dict[str, list[Document]] = {
        f"{group}/{version}/noderesourcetopologies": [{"metadata": {"name": "n1"}}] for version in versions
    }
    snapshot = take(ListServer(core() | lists))
    versions_found = [json.loads(item)["apiVersion"] for item in snapshot.items]
    assert versions_found == [f"topology.node.k8s.io/{taken}"]


def test_replica_sets_are_listed_only_for_app_groups() -> None:
    replica_sets: dict[str, list[Document]] = {"/apis/apps/v1/replicasets": [{"metadata": {"name": "web-5d"}}]}
    app_groups: dict[str, list[Document]] = {
        "/apis/appgroup.diktyo.x-k8s.io/v1alpha1/appgroups": [{"metadata": {"name": "shop"}}]
    }
    assert names(take(ListServer(core() | replica_sets)).items) == []
    assert names(take(ListServer(core() | replica_sets | app_groups)).items) == ["shop", "web-5d"]


def test_only_config_maps_with_measurements_are_asked_for() -> None:
    """Both spellings of the field; the ConfigMap that is not there is no error."""
    topologies: list[Document] = [
        {"metadata": {"name": "a", "namespace": "net"}, "spec": {"configmapName": "measured"}},
        {"metadata": {"name": "b", "namespace": "net"}, "spec": {"configMapName": "absent"}},
        {"metadata": {"name": "c", "namespace": "net"}, "spec": {"weights": []}},
    ]
    found: Document = {"metadata": {"name": "measured", "namespace": "net"}, "data": {"x": "1"}, "binaryData": {}}
    server = ListServer(
        core()
        | {
            "/apis/networktopology.diktyo.x-k8s.io/v1alpha1/networktopologies": topologies,
            "/api/v1/namespaces/net/configmaps/measured": [found],
        }
    )
    snapshot = take(server)
    assert [path for path in server.asked if "configmaps" in path] == [
        "/api/v1/namespaces/net/configmaps/absent",
        "/api/v1/namespaces/net/configmaps/measured",
    ]
    assert [json.loads(item) for item in snapshot.items if b"ConfigMap" in item] == [
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "measured", "namespace": "net"},
            "data": {"x": "1"},
        }
    ]


@pytest.mark.parametrize(
    "name", ["../../kube-system/secrets/x", "a/b", "..", "a?limit=1", "a%2fb", "A", "-a", "a" * 254 + "/.."]
)
def test_a_name_that_no_config_map_has_is_not_asked_for(name: str) -> None:
    topology = {"metadata": {"name": "a", "namespace": "net"}, "spec": {"configmapName": name}}
    server = ListServer(core() | {"/apis/networktopology.diktyo.x-k8s.io/v1alpha1/networktopologies": [topology]})
    assert not [item for item in take(server).items if b"ConfigMap" in item]
    assert not [path for path in server.asked if "configmaps" in path]


def test_a_config_map_that_may_not_be_read_is_told() -> None:
    class Refusing(ListServer):
        def get(self, path: str, parameters: Mapping[str, str] | None = None) -> Response:
            if "configmaps" in path:
                raise Forbidden(f"{path}: not allowed")
            return super().get(path, parameters)

    topology = {"metadata": {"name": "a", "namespace": "net"}, "spec": {"configmapName": "measured"}}
    lists = core() | {"/apis/networktopology.diktyo.x-k8s.io/v1alpha1/networktopologies": [topology]}
    (unread,) = take(Refusing(lists)).objects().unread
    assert unread.label == "ConfigMap net/measured"
    assert unread.wrong == "found no right to read it, expected a Role in its namespace (deploy/measurements)"


def test_something_else_than_an_api_server_is_an_error() -> None:
    server = ListServer({})
    server.get = lambda *_: Response(404, b"not found")  # type: ignore[method-assign]
    with pytest.raises(ClusterError, match="is this an API server"):
        take(server)


# ------------------------------------------------------------------------------------------------------------ the file


@pytest.fixture
def documents() -> list[Document]:
    """Three pods for placer, one of another scheduler, a Deployment that has no pods."""
    template = {"metadata": {"labels": {"app": "web"}}, "spec": live_pod("x", cpu=1)["spec"]}
    deployment: dict[str, Any] = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web"},
        "spec": {"replicas": 2, "selector": {"matchLabels": {"app": "web"}}, "template": template},
    }
    ours = [live_pod(f"p{number}", cpu=1) for number in range(3)]
    return [node("n1"), *ours, live_pod("other", scheduler="default-scheduler", cpu=1), deployment]


@pytest.mark.parametrize("ending", [".json", ".json.gz"])
def test_the_file_is_the_same_instance(documents: list[Document], tmp_path: Path, ending: str) -> None:
    snapshot = snapshot_of(documents)
    path = tmp_path / f"s{ending}"
    snapshot.write(path)
    first = path.read_bytes()
    snapshot.write(path)
    assert path.read_bytes() == first
    instance = placer.read(path)
    assert instance == make_instance(snapshot.objects(), scheduler_name="placer", cluster=True)
    assert instance.digest == snapshot.objects().sha256


def test_the_file_names_the_scheduler_and_is_not_expanded(documents: list[Document], tmp_path: Path) -> None:
    path = tmp_path / "s.json"
    snapshot_of(documents).write(path)
    assert pending(placer.read(path)) == ["default/p0", "default/p1", "default/p2"]
    assert pending(placer.read(path, scheduler_name="default-scheduler")) == ["default/other"]
    snapshot_of(documents, "default-scheduler").write(path)
    assert pending(placer.read(path)) == ["default/other"]


def test_the_same_objects_in_another_list_are_expanded(documents: list[Document], tmp_path: Path) -> None:
    path = tmp_path / "s.json"
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": documents}))
    assert pending(placer.read(path)) == [
        "default/other",
        "default/p0",
        "default/p1",
        "default/p2",
        "default/web-0",
        "default/web-1",
    ]


def test_workloads_that_are_given_beside_it_are_expanded(documents: list[Document], tmp_path: Path) -> None:
    path, more = tmp_path / "s.json", tmp_path / "more.json"
    snapshot_of(documents[:-1]).write(path)
    more.write_text(json.dumps(documents[-1]))
    assert pending(placer.read(path, with_=[more])) == [
        "default/p0",
        "default/p1",
        "default/p2",
        "default/web-0",
        "default/web-1",
    ]
    assert pending(placer.read(path, more)) == ["default/p0", "default/p1", "default/p2"]


def test_edits_leave_it_a_snapshot(documents: list[Document], tmp_path: Path) -> None:
    path = tmp_path / "s.json"
    snapshot_of(documents).write(path)
    edited = placer.read(path, set_=["pod/default/p0:spec.priority=5"], without=["pod/default/p1"])
    assert pending(edited) == ["default/p0", "default/p2"]


@pytest.mark.parametrize("depth", [1, 2])
def test_a_snapshot_in_yaml_is_one_too(documents: list[Document], tmp_path: Path, depth: int) -> None:
    path = tmp_path / "s.yaml"
    listed: Any = {"apiVersion": "v1", "kind": "List", "items": documents}
    for _ in range(depth - 1):
        listed = {"apiVersion": "v1", "kind": "List", "items": [listed]}
    listed["metadata"] = {"annotations": {"placer.dev/snapshot": "placer"}}
    path.write_text("# by hand\n" + json.dumps(listed, indent=1))
    assert pending(placer.read(path)) == ["default/p0", "default/p1", "default/p2"]


def test_an_object_with_the_annotation_makes_no_snapshot(documents: list[Document], tmp_path: Path) -> None:
    path = tmp_path / "s.json"
    marked = {**documents[0], "metadata": {"name": "n1", "annotations": {"placer.dev/snapshot": "placer"}}}
    path.write_text("\n".join(json.dumps(each) for each in (marked, *documents[1:])))
    assert len(pending(placer.read(path))) == 6


def test_snapshots_for_two_schedulers_are_no_instance(tmp_path: Path) -> None:
    one, other = tmp_path / "one.json", tmp_path / "other.json"
    snapshot_of([node("n1")]).write(one)
    snapshot_of([node("n2")], "volcano").write(other)
    with pytest.raises(BadInstance) as caught:
        placer.read(one, other)
    assert str(caught.value.faults[0]).endswith(
        "Node n2: found an object of a snapshot for the scheduler volcano, "
        "expected objects of one snapshot, such as that for placer"
    )


def test_the_file_says_when_each_list_was_taken(tmp_path: Path) -> None:
    path = tmp_path / "s.json.gz"
    take(ListServer(core(nodes=[node("n1")]))).write(path)
    notes = json.loads(gzip.decompress(path.read_bytes()))["metadata"]["annotations"]
    assert json.loads(notes["placer.dev/resource-versions"])["nodes"] == "7"
    assert notes["placer.dev/snapshot"] == "placer"
