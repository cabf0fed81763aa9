"""The Lease on a real API server: passes that write hold it, and without it nothing is decided."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from placer.passes.cluster import Client
from placer.passes.cluster.writing.lease import PAUSED, LeaderElector, LeaseOptions
from tests.cluster.api import Api
from tests.cluster.deployed import Deployed, refused
from tests.cluster.faults import at_first_binding, at_first_binding_change_lease
from tests.cluster.passes import Passes, bound, gang
from tests.cluster.server import ControlPlane
from tests.cluster.things import live_pod
from tests.support import node

LEASES = "/apis/coordination.k8s.io/v1/namespaces/placer/leases"
#: Renewed often, and kept however long that takes on a busy machine.
FAST = LeaseOptions(duration=600, renew_deadline=300.0, retry_period=0.2)


@pytest.fixture
def fast(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("placer.cli.pass_flags.lease_of", lambda _options: FAST)


def other(control_plane: ControlPlane, name: str = "other", options: LeaseOptions = FAST) -> LeaderElector:
    client = Client.connect(str(control_plane.kubeconfig("others")))
    found = LeaderElector(client, name, options)
    assert found.acquire(threading.Event())
    return found


def test_a_pass_holds_it_and_gives_it_back(cluster: Api, passes: Passes, monkeypatch: pytest.MonkeyPatch) -> None:
    cluster.create(node("n1"), live_pod("a", cpu=1))
    seen: list[Any] = []
    at_first_binding(monkeypatch, lambda _: seen.append(cluster.get(f"{LEASES}/placer")["spec"]))
    told = passes()
    (held,) = seen
    assert held["holderIdentity"] == told["leader"]
    assert told["leader"].endswith(told["pass"])
    assert (held["leaseDurationSeconds"], held["leaseTransitions"]) == (15, 0)
    after = cluster.get(f"{LEASES}/placer")["spec"]
    assert "holderIdentity" not in after
    passes()
    assert cluster.get(f"{LEASES}/placer")["spec"]["leaseTransitions"] == 1


def test_without_it_nothing_is_decided_and_it_is_said_who_has_it(
    cluster: Api, passes: Passes, control_plane: ControlPlane, fast: None
) -> None:
    cluster.create(node("n1"), live_pod("a", cpu=1))
    with other(control_plane).leading():
        told = passes(code=0)
        assert (told["leader"], told["pending"], told["bound"]) == ("other", None, 0)
        assert passes.err == f"placer: nothing was decided: {FAST} is held by other\n"
        assert passes("--dry-run")["bindings"] == {"default/a": "n1"}  # looking needs none
    assert bound(cluster) == {}
    assert passes()["bound"] == 1


def test_lost_in_the_middle_nothing_more_is_bound(
    cluster: Api, passes: Passes, fast: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster.create(*(node(f"n{number}", pods=200, cpu=200) for number in range(2)))
    cluster.create(*gang("a", 100), *gang("b", 60))
    thief = {"spec": {"holderIdentity": "thief"}}
    at_first_binding_change_lease(monkeypatch, lambda: cluster.patch(f"{LEASES}/placer", thief))
    told = passes(code=6)
    assert told["error"].startswith(f"{FAST} is not held: thief has taken it")
    assert list(told["left"]) == ["PodGroup default/b"]
    assert {name[0] for name in bound(cluster)} == {"a"}
    assert len(bound(cluster)) < 100  # the thief may be at it already
    assert cluster.get(f"{LEASES}/placer")["spec"]["holderIdentity"] == "thief"  # what is another's is not released


def test_the_right_to_it_is_that_of_one_lease_in_our_namespace(deployed: Deployed) -> None:
    deployed.apply("base")
    placer = deployed.as_account("placer")
    made = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "placer"}, "spec": {}}
    placer.call("POST", LEASES, made)
    found = placer.get(f"{LEASES}/placer")
    placer.call("PUT", f"{LEASES}/placer", {**found, "spec": {"holderIdentity": "x"}})
    assert refused(placer.call, "DELETE", f"{LEASES}/placer") == 403
    assert refused(placer.get, "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/kube-scheduler") == 403
    assert refused(placer.get, f"{LEASES}/other") == 403


def pause(cluster: Api, why: str | None = "the fabric is upgraded") -> None:
    """As ``kubectl annotate lease`` does it; None: go on."""
    cluster.patch(f"{LEASES}/placer", {"metadata": {"annotations": {PAUSED: why}}})


def test_a_pause_before_a_pass_leaves_everything_as_it_is(cluster: Api, passes: Passes) -> None:
    passes()  # makes the Lease
    pause(cluster)
    cluster.create(node("n1"), live_pod("a", cpu=1))
    told = passes(code=0)
    assert told["paused"] == f"{LeaseOptions()} is annotated {PAUSED}: the fabric is upgraded"
    assert (told["pending"], told["bound"]) == (None, 0)
    assert bound(cluster) == {}
    assert "holderIdentity" not in cluster.get(f"{LEASES}/placer")["spec"]
    assert passes("--dry-run")["bindings"] == {"default/a": "n1"}  # looking goes on
    pause(cluster, None)
    again = passes()
    assert (again["bound"], again["paused"]) == (1, None)
