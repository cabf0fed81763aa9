"""Tenants who mean harm, where passes may evict: what they write on their pods gets them no room and nobody evicted."""

from __future__ import annotations

import pytest

from tests.cluster.api import Api
from tests.cluster.applied import Run, allowed, evictions, full
from tests.cluster.controllers import PODS, Controllers, owned, priority_class
from tests.cluster.passes import bound
from tests.cluster.proxy import Proxy, Spoil
from tests.cluster.things import live_pod
from tests.support import node, pod_group, policy

pytestmark = pytest.mark.usefixtures("lasting_lease")

EVICT = {"evict": "lower-priority"}
GAINING = {"train-0", "train-1"}


def test_a_finalizer_that_never_goes_holds_no_room_once_the_pod_has_ended(cluster: Api, run: Run, proxy: Proxy) -> None:
    """Its kubelet ends it and says so; the object stays for ever, and is not evicted once more."""
    full(cluster)
    for number in range(2):
        cluster.patch(f"{PODS}/eval0-{number}", {"metadata": {"finalizers": ["example.com/never"]}})
    allowed(cluster, **EVICT)
    first = run("--gone-within", "1")
    assert sorted(first["disruption"]["standing"]) == ["default/eval0-0", "default/eval0-1"]
    assert run()["room"] == "made"
    for number in range(2):
        cluster.patch(f"{PODS}/eval0-{number}/status", {"status": {"phase": "Failed"}})
    assert run()["room"] == "free"
    assert bound(cluster).keys() == {*GAINING, "eval1-0", "filler"}
    assert evictions(proxy) == {"eval0-0": 2, "eval0-1": 2}  # asked whether, and then done
    assert run()["disruption"] is None


BUDGET = {"maxUnavailable": "100%", "selector": {"matchLabels": {"app": "cheap"}}}
ALLOWS = {"disruptionsAllowed": 9, "currentHealthy": 9, "desiredHealthy": 0, "expectedPods": 9, "observedGeneration": 1}


@pytest.mark.parametrize("way", ["two budgets", "a refusal"])
def test_who_makes_its_cheapest_pod_one_that_nobody_can_evict_keeps_nobody_from_room(
    cluster: Api, run: Run, proxy: Proxy, way: str
) -> None:
    """Else the pass would ask for that one each time, be refused, and make room for nobody."""
    cluster.create(priority_class("lowest", 1), priority_class("low", 10), priority_class("high", 1000))
    cluster.create(*(node(f"n{number}", cpu=8) for number in range(2)))
    running = [
        owned("cheap", "cheap", "lowest", "n0", labels={"app": "cheap"}, cpu=8),
        owned("fair", "fair", "low", "n1", cpu=8),
    ]
    cluster.create(*running, owned("train", "train", "high", cpu=8))
    if way == "two budgets":
        about = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "spec": BUDGET, "status": ALLOWS}
        cluster.create(*({**about, "metadata": {"name": name}} for name in ("one", "other")))
    else:
        proxy.rule = lambda _method, path, _times: Spoil(403) if path.endswith("/cheap/eviction") else None
    allowed(cluster, **EVICT)
    with Controllers(cluster, running).running():
        assert run()["disruption"]["evicted"] == ["default/fair"]
    assert bound(cluster) == {"cheap": "n0", "train": "n1"}


def test_a_pod_group_is_no_more_urgent_than_its_pods(cluster: Api, run: Run) -> None:
    """Nothing that runs goes for the class of a PodGroup, unless an operator lets the class decide."""
    running = [owned(f"eval-{at}", f"eval-{at}", "low", "n0", cpu=4) for at in range(2)]
    cluster.create(priority_class("low", 10), priority_class("high", 1_000))
    cluster.create(node("n0", cpu=8), node("n1", cpu=4), *running)
    cluster.create(*(pod_group(name, minMember=1, priorityClassName="high") for name in ("a-rush", "b-rush")))
    cluster.create(*(live_pod(f"{name}-0", group=name, cpu=4) for name in ("a-rush", "b-rush")))
    (made, _) = cluster.create(policy(disruption={"evict": "lower-priority"}), owned("fair", "fair", "low", cpu=4))
    with Controllers(cluster, []).running():
        done = run()
        assert done["disruption"] is None
        assert bound(cluster) == {"eval-0": "n0", "eval-1": "n0", "fair": "n1"}
        assert done["findings"]["PriorityAboveItsPods"] == 2
        cluster.patch(cluster.path(made), {"spec": {"groupPriority": "class"}})
        assert run()["disruption"]["evicted"]
