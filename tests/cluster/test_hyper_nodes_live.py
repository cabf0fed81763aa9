"""``topology discover --apply`` against a real API server: written once, changed, pruned, refused, with the rights of
``deploy/discover``.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from placer.cli import main
from tests.cluster.api import Api
from tests.cluster.deployed import Deployed
from tests.cluster.server import ControlPlane
from tests.support import Document, hyper_node, node

HYPER_NODES = "/apis/topology.volcano.sh/v1alpha1/hypernodes"
Discover = Callable[..., dict[str, Any]]


@pytest.fixture
def discover(
    cluster: Api, install: Callable[[str], None], control_plane: ControlPlane, capsys: pytest.CaptureFixture[str]
) -> Discover:
    """Make a call with --apply and --json, and give what it says it did; where it fails, what the error says."""
    install("volcano")

    def work(*words: str, code: int = 0, config: str | None = None) -> dict[str, Any]:
        capsys.readouterr()
        where = config or str(control_plane.kubeconfig())
        source = [] if "--from" in words else ["--labels", "switch,rack"]
        found = main(["topology", "discover", *source, "--apply", "--json", "--kubeconfig", where, *words])
        printed = capsys.readouterr()
        assert found == code, printed.err
        told: dict[str, Any] = json.loads(printed.out if code == 0 else printed.err)
        return told

    return work


def racks(count: int, nodes: int = 2) -> Iterator[Document]:
    """Nodes n-SWITCH-NUMBER, two switches a rack."""
    for switch in range(count):
        for number in range(nodes):
            yield node(f"n-{switch}-{number}", {"switch": f"s{switch}", "rack": f"r{switch // 2}"})


def stored(cluster: Api) -> dict[str, Document]:
    return {each["metadata"]["name"]: each for each in cluster.items(HYPER_NODES)}


def versions(cluster: Api) -> dict[str, str]:
    return {name: each["metadata"]["resourceVersion"] for name, each in stored(cluster).items()}


def told(created: int = 0, changed: int = 0, removed: int = 0, unchanged: int = 0, left: int = 0) -> dict[str, int]:
    return {"created": created, "changed": changed, "removed": removed, "unchanged": unchanged, "left": left}


def counts(found: dict[str, Any]) -> dict[str, int]:
    return {key: each if isinstance(each, int) else len(each) for key, each in found.items() if key in told()}


def test_the_second_call_writes_nothing(
    cluster: Api, discover: Discover, control_plane: ControlPlane, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster.create(*racks(4))
    assert counts(discover("--dry-run")) == told(created=6)
    assert stored(cluster) == {}
    assert counts(discover()) == told(created=6)
    made = stored(cluster)
    assert sorted(made) == ["r0", "r0.s0", "r0.s1", "r1", "r1.s2", "r1.s3"]
    managers = {entry["manager"]: entry["operation"] for entry in made["r0"]["metadata"]["managedFields"]}
    assert managers == {"placer-discover": "Apply"}
    before = versions(cluster)
    assert counts(discover()) == told(unchanged=6)
    assert versions(cluster) == before
    assert main(["topology", "show", "--json", "--strict", "--kubeconfig", str(control_plane.kubeconfig())]) == 0
    domains = json.loads(capsys.readouterr().out)["domains"]
    assert [(each["name"], each["nodes"]) for each in domains] == [
        ("r0", 4),
        ("r0.s0", 2),
        ("r0.s1", 2),
        ("r1", 4),
        ("r1.s2", 2),
        ("r1.s3", 2),
    ]


def test_a_change_writes_what_has_changed(cluster: Api, discover: Discover) -> None:
    cluster.create(*racks(2))
    discover()
    before = versions(cluster)
    cluster.create(node("n-0-2", {"switch": "s0", "rack": "r0"}))
    found = discover()
    assert counts(found) == told(changed=1, unchanged=2)
    assert found["changed"] == ["r0.s0"]
    assert {name for name, version in versions(cluster).items() if version != before[name]} == {"r0.s0"}


def test_what_is_found_no_longer_goes_only_with_prune(cluster: Api, discover: Discover) -> None:
    cluster.create(*racks(4), hyper_node("theirs", 1, nodes=("other",)))
    discover()
    for number in (2, 3):
        for place in (0, 1):
            cluster.delete(f"/api/v1/nodes/n-{number}-{place}")
    found = discover()
    assert counts(found) == told(unchanged=3, left=3)
    assert found["left"] == ["r1", "r1.s2", "r1.s3"]
    assert counts(discover("--prune", "--dry-run")) == told(unchanged=3, removed=3)
    assert counts(discover("--prune")) == told(unchanged=3, removed=3)
    assert sorted(stored(cluster)) == ["r0", "r0.s0", "r0.s1", "theirs"]
    assert counts(discover("--prune")) == told(unchanged=3)


def test_a_switch_that_has_moved_needs_prune(cluster: Api, discover: Discover) -> None:
    """Its nodes would be in two leaves: nothing is written."""
    cluster.create(*racks(3))
    discover()
    before = versions(cluster)
    for number in (0, 1):
        cluster.patch(f"/api/v1/nodes/n-1-{number}", {"metadata": {"labels": {"rack": "r1"}}})
    refused = discover(code=3)
    assert {each["field"] for each in refused["faults"]} == {"HyperNodeOverlap"}
    assert "--prune removes HyperNodes of placer that are not found" in refused["message"]
    assert versions(cluster) == before
    assert counts(discover("--prune")) == told(created=1, changed=2, removed=1, unchanged=2)
    assert sorted(stored(cluster)) == ["r0", "r0.s0", "r1", "r1.s1", "r1.s2"]


def test_hyper_nodes_of_others_are_left_alone(cluster: Api, discover: Discover) -> None:
    """A name that is taken, and a leaf that has the same nodes, are refused; nothing is written."""
    cluster.create(*racks(2), hyper_node("r0", 2, nodes=("else",)))
    before = versions(cluster)
    (fault,) = discover(code=3)["faults"]
    assert (fault["object"], fault["field"]) == ("HyperNode r0", "metadata.labels")
    assert fault["found"] == "no volcano.sh/network-topology-source"
    cluster.delete(f"{HYPER_NODES}/r0")
    cluster.create(hyper_node("leaf", 1, nodes=("n-0-0",)))
    assert {each["field"] for each in discover(code=3)["faults"]} == {"HyperNodeOverlap"}
    assert versions(cluster).keys() == {"leaf"}
    assert before.keys() == {"r0"}


def test_a_field_that_another_manager_owns_is_refused_unless_it_is_taken_over(cluster: Api, discover: Discover) -> None:
    cluster.create(*racks(1))
    discover()
    members = [{"type": "Node", "selector": {"exactMatch": {"name": "n-0-0"}}}]
    cluster.patch(f"{HYPER_NODES}/r0.s0", {"spec": {"members": members}})
    refused = discover(code=6)
    assert "HyperNode r0.s0: 409" in refused["message"]
    assert "--force-conflicts takes it over" in refused["message"]
    assert counts(discover("--force-conflicts")) == told(changed=1, unchanged=1)
    assert len(stored(cluster)["r0.s0"]["spec"]["members"]) == 2


def test_the_rights_of_deploy_discover_are_enough(cluster: Api, deployed: Deployed, discover: Discover) -> None:
    deployed.apply("base", "discover")
    cluster.create(*racks(2))
    config = deployed.kubeconfig("placer-discover")
    assert counts(discover(config=config)) == told(created=3)
    for number in (0, 1):
        cluster.delete(f"/api/v1/nodes/n-1-{number}")
    assert counts(discover("--prune", config=config)) == told(unchanged=1, changed=1, removed=1)
    cluster.create(node("n-0-2", {"switch": "s0", "rack": "r0"}))
    assert "403" in discover(config=deployed.kubeconfig("placer"), code=6)["message"]


def test_a_cluster_without_the_kind(undefined: Api, control_plane: ControlPlane, capsys: Any) -> None:
    undefined.create(*racks(1))
    words = [
        "topology",
        "discover",
        "--labels",
        "switch,rack",
        "--apply",
        "--kubeconfig",
        str(control_plane.kubeconfig()),
    ]
    assert main(words) == 6
    assert "the cluster knows no HyperNodes (topology.volcano.sh/v1alpha1)" in capsys.readouterr().err
