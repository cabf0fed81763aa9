"""`placer preempt --apply` on a real API server: nothing is evicted for nothing, nothing twice, everything is told."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.cluster.api import Api
from tests.cluster.applied import REFUSED, Applied, evictions, full, told
from tests.cluster.controllers import PODS, Controllers, owned, priority_class
from tests.cluster.passes import Passes, bound, overfull
from tests.cluster.proxy import Proxy, Spoil
from tests.support import Document, node, pod_group


def test_victims_go_and_the_gang_has_their_room(cluster: Api, preempt: Applied, proxy: Proxy) -> None:
    """eval0 has a node of its own; the filler beside eval1 does not go, so two pods of 4 fit on no other node."""
    controllers = Controllers(cluster, full(cluster))
    with controllers.running():
        done = preempt("--for", "default/train")
    assert {each["pod"] for each in done["evictions"]} == {"eval0-0", "eval0-1"}
    assert sorted(done["applied"]["evicted"]) == ["default/eval0-0", "default/eval0-1"]
    assert done["applied"]["bound"] == {"default/train-0": "n0", "default/train-1": "n0"}
    assert done["applied"]["trouble"] is None
    assert done["applied"]["troubles"] == []
    assert controllers.nominated == {"train-0": "n0", "train-1": "n0"}
    assert sorted(controllers.ended) == ["eval0-0", "eval0-1"]
    assert evictions(proxy) == {"eval0-0": 2, "eval0-1": 2}  # asked whether, and then done, each once
    note = "evicted from Node n0 so that PodGroup default/train is admitted"
    assert told(cluster, "Preempted") == {"eval0-0": note, "eval0-1": note}
    assert set(bound(cluster)) == {"eval1-0", "filler", "train-0", "train-1"}
    assert overfull(cluster) == []


@pytest.mark.parametrize("renamed", [True, False])
def test_what_is_moved_is_placed_where_the_plan_says_once_it_is_made_again(
    cluster: Api, preempt: Applied, renamed: bool
) -> None:
    controllers = Controllers(cluster, full(cluster, spare=2), renamed=renamed)
    with controllers.running():
        done = preempt()
    names = {each["pod"]: each["to"] for each in done["moves"]}
    assert set(names) == {"eval0-0", "eval0-1"}
    assert set(names.values()) == {"s0", "s1"}
    end = "-again" if renamed else ""
    assert done["applied"]["moved"] == {f"default/{name}": f"default/{name}{end}" for name in names}
    assert done["applied"]["notMoved"] == []
    there = bound(cluster)
    assert {name: there[f"{name}{end}"] for name in names} == names
    assert (there["train-0"], there["train-1"]) == ("n0", "n0")
    assert told(cluster, "Preempted")["eval0-0"] == (
        f"evicted from Node n0 to be placed on Node {names['eval0-0']} so that PodGroup default/train is admitted"
    )


def test_what_no_controller_makes_again_is_told_and_the_gang_is_bound(cluster: Api, preempt: Applied) -> None:
    full(cluster, spare=2)
    controllers = Controllers(cluster, [])
    with controllers.running():
        done = preempt("--gone-within", "3")
    assert done["applied"]["notMoved"] == ["default/eval0-0", "default/eval0-1"]
    assert done["applied"]["bound"] == {"default/train-0": "n0", "default/train-1": "n0"}


def test_where_one_eviction_would_be_refused_none_is_made(cluster: Api, preempt: Applied, proxy: Proxy) -> None:
    full(cluster)
    proxy.rule = lambda _method, path, _times: Spoil(429, text=REFUSED) if path.endswith("eval0-1/eviction") else None
    done = preempt(code=6)
    assert done["applied"]["evicted"] == []
    assert done["applied"]["trouble"] == (
        "Pod default/eval0-1 cannot be evicted: 429 Cannot evict pod as it would violate the pod's disruption budget."
    )
    assert "and nothing was evicted" in preempt.err
    assert len(bound(cluster)) == 4
    assert not any(each["metadata"].get("deletionTimestamp") for each in cluster.items(PODS))


def test_for_a_half_bound_gang_no_more_goes_than_it_lacks_room_for(
    cluster: Api, preempt: Applied, passes: Passes, proxy: Proxy
) -> None:
    """Room that passes hold for it is there for its own pods."""
    cluster.create(priority_class("low", 10), priority_class("high", 1000), *(node(f"n{at}", cpu=4) for at in range(3)))
    cluster.create(pod_group("half", minMember=3), owned("lone", "lone", "low", cpu=4))
    cluster.create(*(owned(f"half-{number}", "half", "high", group="half", cpu=4) for number in range(3)))
    proxy.rule = lambda _method, path, _times: (
        Spoil(403) if path.endswith(("half-1/binding", "half-2/binding")) else None
    )
    passes(code=6)
    free = sorted({"n0", "n1", "n2"} - set(bound(cluster).values()))
    cluster.create(victim := owned("eval-0", "eval", "low", free[0], cpu=4))
    proxy.rule = lambda *_: None
    with Controllers(cluster, [victim]).running():
        done = preempt("--for", "default/half")
    assert done["applied"]["evicted"] == ["default/eval-0"]
    assert bound(cluster).keys() >= {"half-0", "half-1", "half-2"}


def budget(allowed: int, name: str = "evals") -> Document:
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": name},
        "spec": {"selector": {"matchLabels": {"app": "eval0"}}, "maxUnavailable": allowed},
        "status": {
            "disruptionsAllowed": allowed,
            "observedGeneration": 1,
            "currentHealthy": 2,
            "desiredHealthy": 2 - allowed,
            "expectedPods": 2,
        },
    }


def test_a_budget_is_kept_by_the_plan_and_by_the_server(cluster: Api, preempt: Applied, proxy: Proxy) -> None:
    full(cluster)
    for number in range(2):
        cluster.patch(f"{PODS}/eval0-{number}", {"metadata": {"labels": {"app": "eval0"}}})
    (made,) = cluster.create(budget(1))
    assert "evictions" not in preempt(code=5)  # D2: both of the gang would have to go

    where = f"{cluster.path(made)}/status"
    cluster.patch(where, {"status": {"disruptionsAllowed": 2, "desiredHealthy": 0}})

    def meanwhile(_method: str, path: str, _times: int) -> None:
        """Somebody drains a node, after the plan was made."""
        if path.endswith("/eviction"):
            cluster.patch(where, {"status": {"disruptionsAllowed": 0, "desiredHealthy": 2}})

    proxy.rule = meanwhile
    done = preempt(code=6)
    assert done["applied"]["evicted"] == []
    assert "disruption budget" in done["applied"]["trouble"]
    assert len(bound(cluster)) == 4


def free_the_room(cluster: Api) -> None:
    for number in range(2):
        cluster.delete(f"{PODS}/eval0-{number}")


def take_a_pod_of_the_gang(cluster: Api) -> None:
    cluster.delete(f"{PODS}/train-0")


def cordon(cluster: Api) -> None:
    cluster.patch("/api/v1/nodes/n0", {"spec": {"unschedulable": True}})


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (take_a_pod_of_the_gang, "Pod default/train-0 is gone"),
        (cordon, "the cluster has changed: "),
        (free_the_room, "Pod default/eval0-0 is gone"),
    ],
)
def test_a_plan_whose_cluster_has_changed_is_told_and_not_done(
    change: Callable[[Api], None], why: str, cluster: Api, preempt: Applied, proxy: Proxy
) -> None:
    full(cluster)
    changed = list[str]()

    def meanwhile(_method: str, path: str, _times: int) -> None:
        if path.endswith("eval0-1/eviction") and not changed:  # the last that is asked about before anything goes
            changed.append(path)
            change(cluster)

    proxy.rule = meanwhile
    done = preempt(code=6)
    assert changed
    assert done["applied"]["trouble"].startswith(why)
    assert done["applied"]["evicted"] == []
    assert told(cluster, "Preempted") == {}


def test_victims_that_do_not_end_are_told_and_the_next_pass_binds_the_gang(
    cluster: Api, preempt: Applied, passes: Passes
) -> None:
    controllers = Controllers(cluster, full(cluster))
    done = preempt("--gone-within", "1", code=6)
    assert done["applied"]["standing"] == ["default/eval0-0", "default/eval0-1"]
    assert done["applied"]["trouble"] == "2 of 2 evicted pods are still there after 1 s"
    nominated = {each["metadata"]["name"]: each["status"].get("nominatedNodeName") for each in cluster.items(PODS)}
    assert nominated["train-0"] == "n0"
    controllers.step()
    passes()
    assert {"train-0", "train-1"} <= set(bound(cluster))


def test_without_the_lease_nothing_is_decided(cluster: Api, preempt: Applied, passes: Passes) -> None:
    full(cluster)
    passes()  # makes the Lease
    lease = "/apis/coordination.k8s.io/v1/namespaces/placer/leases/placer"
    cluster.patch(lease, {"metadata": {"annotations": {"placer.dev/paused": "an upgrade"}}})
    assert preempt(code=6) == {"code": 6}
    assert "nothing was decided: " in preempt.err
    assert "an upgrade" in preempt.err


def test_an_eviction_refused_after_others_were_made_is_told(cluster: Api, preempt: Applied, proxy: Proxy) -> None:
    full(cluster)
    proxy.rule = lambda _method, path, times: (
        Spoil(403, text='{"message": "no more"}') if path.endswith("eval0-1/eviction") and times > 1 else None
    )
    done = preempt("--gone-within", "2", code=6)
    assert done["applied"]["evicted"] == ["default/eval0-0"]
    assert done["applied"]["trouble"] == "the eviction of Pod default/eval0-1 was refused: 403 no more"
    assert set(told(cluster, "Preempted")) == {"eval0-0"}
    nominated = [each["status"].get("nominatedNodeName") for each in cluster.items(PODS)]
    assert nominated == [None] * len(nominated)
