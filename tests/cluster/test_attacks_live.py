"""Tenants who mean harm, where passes may evict: what they write on their pods gets them no room and nobody evicted."""

from __future__ import annotations

import pytest

from tests.cluster.api import Api
from tests.cluster.applied import Run, allowed, evictions, full
from tests.cluster.controllers import PODS, Controllers, owned, priority_class
from tests.cluster.passes import bound, overfull
from tests.cluster.proxy import Proxy, Spoil
from tests.support import node

pytestmark = pytest.mark.usefixtures("lasting_lease")

EVICT = {"evict": "lower-priority"}
GAINING = {"train-0", "train-1"}


def test_who_says_that_room_is_held_for_it_gets_none(cluster: Api, run: Run) -> None:
    """Annotations, labels and names like our own, and a nomination, which its owner may not even write."""
    controllers = Controllers(cluster, full(cluster))
    notes = {"placer.dev/room": "n0", "placer.dev/made-by": "placer"}
    thief = owned("moved-1", "thief", "low", cpu=4, annotations=notes, labels=notes)
    cluster.create({**thief, "status": {"nominatedNodeName": "n0"}})
    allowed(cluster, **EVICT)
    with controllers.running():
        done = run()
        assert sorted(done["disruption"]["evicted"]) == ["default/eval0-0", "default/eval0-1"]
        assert (done["disruption"]["trouble"], done["reserved"]) == (None, 0)
        run()
    assert bound(cluster).keys() == {*GAINING, "eval1-0", "filler"}
    assert overfull(cluster) == []


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
