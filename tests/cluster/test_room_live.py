"""`placer run` with a Policy that lets it disturb, on a real API server: room is made for a gang, and held for it."""

from __future__ import annotations

from typing import Any

import pytest

from tests.cluster.api import Api
from tests.cluster.applied import Run, allowed, evictions, full, nominated, still_run, told
from tests.cluster.controllers import PODS, Controllers, owned, priority_class
from tests.cluster.faults import steal
from tests.cluster.passes import bound, overfull
from tests.cluster.proxy import Proxy
from tests.support import Document, node

pytestmark = pytest.mark.usefixtures("lasting_lease")

EVICT = {"evict": "lower-priority"}
GAINING = {"train-0", "train-1"}


def test_victims_go_and_the_gang_has_their_room(cluster: Api, run: Run, proxy: Proxy) -> None:
    controllers = Controllers(cluster, full(cluster))
    allowed(cluster, **EVICT)
    with controllers.running():
        done = run()
    assert sorted(done["disruption"]["evicted"]) == ["default/eval0-0", "default/eval0-1"]
    assert done["disruption"]["trouble"] is None
    assert "DisruptionIgnored" not in done["findings"]
    assert set(bound(cluster)) == {*GAINING, "eval1-0", "filler"}
    assert controllers.nominated == {"train-0": "n0", "train-1": "n0"}
    note = "evicted from Node n0 so that PodGroup default/train is admitted"
    assert told(cluster, "Preempted") == {"eval0-0": note, "eval0-1": note}
    assert evictions(proxy) == {"eval0-0": 2, "eval0-1": 2}
    assert overfull(cluster) == []
    assert run()["disruption"] is None  # what waits now is of no higher priority than anything that runs


@pytest.mark.parametrize(
    ("disruption", "hourly"),
    [({"evict": "none"}, 20), ({"move": "fewest"}, 20), (EVICT, 0), (EVICT | {"maxPods": 1}, 20), (EVICT, 1)],
)
def test_what_is_not_allowed_is_not_done(disruption: dict[str, Any], hourly: int, cluster: Api, run: Run) -> None:
    """Two pods have to be evicted; nothing has room elsewhere."""
    full(cluster)
    allowed(cluster, **disruption)
    before = bound(cluster)
    done = run(hourly=hourly)
    assert still_run(cluster) == before.keys()
    assert done["disruption"] is None
    assert ("DisruptionIgnored" in done["findings"]) == (hourly == 0)


@pytest.mark.exhaustive
def test_room_is_held_until_the_victims_are_gone(cluster: Api, run: Run) -> None:
    """A pod of the same priority that comes meanwhile does not get it, though it has a place as soon as one is gone."""
    controllers = Controllers(cluster, full(cluster))
    allowed(cluster, **EVICT)
    first = run("--gone-within", "1")
    assert first["disruption"]["standing"] == ["default/eval0-0", "default/eval0-1"]
    assert nominated(cluster) == {"train-0": "n0", "train-1": "n0"}
    cluster.create(owned("late", "late", "high", cpu=4))
    for each in cluster.items(PODS):
        if each["metadata"]["name"] == "eval0-0":
            cluster.delete(f"{PODS}/eval0-0", each["metadata"]["uid"])
    second = run()
    assert (second["room"], second["bound"], second["disruption"]) == ("made", 0, None)
    assert "late" not in bound(cluster)
    controllers.step()
    third = run()
    assert third["room"] == "free"
    assert bound(cluster).keys() >= GAINING
    assert "late" not in bound(cluster)
    assert overfull(cluster) == []
    assert run("--gone-within", "1")["room"] == "none"  # what goes for the late one has no kubelet that ends it


def test_room_that_was_stolen_is_told_and_nothing_more_goes_for_it(cluster: Api, run: Run) -> None:
    controllers = Controllers(cluster, full(cluster))
    allowed(cluster, **EVICT)
    run("--gone-within", "1")
    controllers.step()
    steal(cluster, "thief", "n0", cpu=4)
    second = run()
    assert second["room"] == "free"
    assert second["disruption"]["trouble"].startswith("room is held no longer for ")
    assert not GAINING & bound(cluster).keys()
    assert nominated(cluster) == {}
    assert sorted(controllers.ended) == ["eval0-0", "eval0-1"]
    assert still_run(cluster) >= {"eval1-0", "filler", "thief"}


def two_gangs(cluster: Api) -> list[Document]:
    """Two nodes with a gang of low priority each, and two single pods of high priority that each need one of them."""
    cluster.create(priority_class("low", 10), priority_class("high", 1000))
    cluster.create(node("n0", cpu=4), node("n1", cpu=4))
    running = [owned(f"eval{number}", f"eval{number}", "low", f"n{number}", cpu=4) for number in range(2)]
    cluster.create(*running, *(owned(f"train{number}", f"train{number}", "high", cpu=4) for number in range(2)))
    return running


def test_no_more_goes_within_an_hour_than_is_allowed(cluster: Api, run: Run) -> None:
    controllers = Controllers(cluster, two_gangs(cluster))
    allowed(cluster, **EVICT)
    with controllers.running():
        assert len(run(hourly=1)["disruption"]["evicted"]) == 1
        second = run(hourly=1)
        assert second["disruption"]["evicted"] == []
        assert second["disruption"]["trouble"] == "1 pod was disturbed within the last hour, the most that may be"
        assert len(run(hourly=2)["disruption"]["evicted"]) == 1
    assert {"train0", "train1"} <= bound(cluster).keys()


def test_one_plan_is_carried_out_in_a_pass(cluster: Api, run: Run) -> None:
    controllers = Controllers(cluster, two_gangs(cluster))
    allowed(cluster, **EVICT)
    with controllers.running():
        assert [len(run()["disruption"]["evicted"]) for _ in range(2)] == [1, 1]
    assert {"train0", "train1"} <= bound(cluster).keys()
