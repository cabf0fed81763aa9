"""placer beside a real kube-scheduler on the same nodes: each takes its own pods, and counts those of the other."""

from __future__ import annotations

import pytest

from tests.cluster.api import Api
from tests.cluster.passes import Passes, bound, gang, overfull
from tests.cluster.things import live_pod
from tests.support import node
from tests.waiting import wait_until


def of(name: str, places: dict[str, str]) -> set[str]:
    return {pod for pod in places if pod.startswith(name)}


@pytest.mark.usefixtures("kube_scheduler")
def test_each_takes_its_own(cluster: Api, passes: Passes) -> None:
    """kube-scheduler binds its pods and leaves ours; ours go where its pods have left room, and the other way round."""
    cluster.create(node("n1"), node("n2"), *gang("train", 2, cpu=6))
    cluster.create(*(live_pod(f"web-{number}", scheduler="default-scheduler", cpu=2) for number in range(2)))
    wait_until(lambda: len(of("web", bound(cluster))) == 2)
    assert of("train", bound(cluster)) == set()
    # It spreads equal pods, so 6 of 8 cpu are left on each node.
    assert set(bound(cluster).values()) == {"n1", "n2"}
    told = passes()
    assert (told["bound"], told["overfull"]) == (2, [])
    assert {pod: bound(cluster)[pod] for pod in of("train", bound(cluster))}.keys() == {"train-0", "train-1"}
    cluster.create(live_pod("late", scheduler="default-scheduler", cpu=1))
    wait_until(lambda: _refused(cluster, "late"))
    assert overfull(cluster) == []


def _refused(cluster: Api, pod: str) -> bool:
    """Whether kube-scheduler has said that there is no room."""
    status = cluster.get(f"/api/v1/namespaces/default/pods/{pod}")["status"]
    return any(each.get("reason") == "Unschedulable" for each in status.get("conditions") or ())
