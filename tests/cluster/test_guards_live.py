"""What keeps a pass within bounds, on a real API server: namespaces, nodes, a number of bindings, a pause."""

from __future__ import annotations

import pytest

from placer.passes.cluster.writing.lease import PAUSED, LeaseOptions
from tests.cluster.api import Api
from tests.cluster.faults import at_first_binding_change_lease
from tests.cluster.passes import Passes, bound, gang
from tests.cluster.things import live_pod
from tests.support import node

LEASE = "/apis/coordination.k8s.io/v1/namespaces/placer/leases/placer"
FAST = LeaseOptions(duration=600, renew_deadline=300.0, retry_period=0.2)


def pause(cluster: Api, why: str | None = "the fabric is upgraded") -> None:
    """As ``kubectl annotate lease`` does it; None: go on."""
    cluster.patch(LEASE, {"metadata": {"annotations": {PAUSED: why}}})


def test_pods_of_other_namespaces_and_other_nodes_are_left_alone(cluster: Api, passes: Passes) -> None:
    cluster.create(node("n1", {"pool": "batch"}), node("n2", {"pool": "web"}))
    cluster.create(live_pod("ours", cpu=1), live_pod("theirs", namespace="tenant", cpu=1))
    told = passes("--namespaces", "default,elsewhere", "--node-selector", "pool=web")
    assert (told["bound"], told["setAside"]["gated"]) == (1, 1)
    assert bound(cluster) == {"ours": "n2"}
    theirs = cluster.get("/api/v1/namespaces/tenant/pods/theirs")
    assert theirs["spec"].get("schedulingGates") is None
    assert theirs["status"].get("conditions") is None  # it is not told anything either
    told = passes("--namespaces", "tenant", "--node-selector", "pool=neither")
    assert (told["bound"], told["pending"], told["gangs"]["waiting"]) == (0, 1, 1)
    assert passes()["bound"] == 1


def test_a_pause_before_a_pass_leaves_everything_as_it_is(
    cluster: Api, passes: Passes, capsys: pytest.CaptureFixture[str]
) -> None:
    passes()  # makes the Lease
    pause(cluster)
    cluster.create(node("n1"), live_pod("a", cpu=1))
    told = passes(code=0)
    assert told["paused"] == f"{LeaseOptions()} is annotated {PAUSED}: the fabric is upgraded"
    assert (told["pending"], told["bound"]) == (None, 0)
    assert bound(cluster) == {}
    assert "holderIdentity" not in cluster.get(LEASE)["spec"]
    assert passes("--dry-run")["bindings"] == {"default/a": "n1"}  # looking goes on
    pause(cluster, None)
    again = passes()
    assert (again["bound"], again["paused"]) == (1, None)


def test_a_pause_in_the_middle_ends_the_gang_under_way_and_begins_no_other(
    cluster: Api, passes: Passes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("placer.cli.pass_flags.lease_of", lambda _options: FAST)
    cluster.create(*(node(f"n{number}", pods=200, cpu=200) for number in range(2)))
    cluster.create(*gang("a", 100), *gang("b", 60))
    at_first_binding_change_lease(monkeypatch, lambda: pause(cluster))
    told = passes(code=0)
    assert (told["bound"], told["gangs"]["bound"], told["gangs"]["left"]) == (100, 1, 1)
    assert told["left"] == {"PodGroup default/b": told["paused"]}
    assert {name[0] for name in bound(cluster)} == {"a"}
    assert "holderIdentity" not in cluster.get(LEASE)["spec"]
    pause(cluster, None)
    assert passes()["bound"] == 60
