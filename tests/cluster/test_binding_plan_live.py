"""A plan carried out by hand at a real API server, with kubelets that admit as real ones do."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import placer
from placer.passes.cluster import Client, take
from placer.passes.cluster.planning.binding_plan import BindingPlan, WaitFor, plan_bindings
from placer.problem.instance_builder import make_instance
from tests.cluster.api import Api
from tests.cluster.kubelets import Kubelets
from tests.cluster.server import ControlPlane
from tests.cluster.things import live_pod, numa_topology
from tests.support import node
from tests.waiting import wait_until


@pytest.fixture
def kubelets(cluster: Api, install: Callable[[str], None]) -> Kubelets:
    """One node, node-0 of 4 cores and node-1 of 2; a pod of 2 and one of 4, made in the same second or nearly so."""
    install("noderesourcetopology")
    found = Kubelets(cluster)
    zones = ({"cpu": "4", "memory": "8Gi"}, {"cpu": "2", "memory": "8Gi"})
    found.add(node("n1", cpu=6), topologies=[numa_topology("n1", *zones)])
    cluster.create(live_pod("small", cpu=2, memory="1Gi", guaranteed=True))
    cluster.create(live_pod("large", cpu=4, memory="1Gi", guaranteed=True))
    return found


@pytest.fixture
def plan(kubelets: Kubelets, control_plane: ControlPlane) -> BindingPlan:
    snapshot = take(Client.connect(str(control_plane.kubeconfig())))
    instance = make_instance(snapshot.objects(), scheduler_name="placer", cluster=True)
    result = placer.solve(instance, method="greedy")
    assert result.placement is not None
    return plan_bindings(instance, result.placement, snapshot.identities)


def phase(cluster: Api, name: str) -> str:
    return str(cluster.get(f"/api/v1/namespaces/default/pods/{name}")["status"]["phase"])


def wait_for_answer(cluster: Api, name: str) -> None:
    wait_until(lambda: phase(cluster, name) != "Pending", f"an answer of the kubelet for {name}")


def test_in_the_order_of_the_plan_all_run(cluster: Api, kubelets: Kubelets, plan: BindingPlan) -> None:
    binds = [each for batch in plan.batches for each in batch.bindings]
    assert [(each.pod.name, each.wait) for each in binds] == [("large", WaitFor.NOTHING), ("small", WaitFor.ADMISSION)]
    uids = {each["metadata"]["name"]: each["metadata"]["uid"] for each in cluster.items("/api/v1/pods")}
    with kubelets.running(every=0.01):
        for each in binds:
            if each.after is not None:
                wait_for_answer(cluster, each.after.name)
            assert each.uid == uids[each.pod.name]
            cluster.bind(*each.pod, each.node)
        wait_for_answer(cluster, binds[-1].pod.name)
    assert kubelets.rejected == {}
    assert {phase(cluster, name) for name in uids} == {"Running"}


def test_both_at_once_one_is_refused(cluster: Api, kubelets: Kubelets, plan: BindingPlan) -> None:
    """What the order is for."""
    for batch in plan.batches:
        for each in batch.bindings:
            cluster.bind(*each.pod, each.node)
    kubelets.step()
    assert {name: each.reason for name, each in kubelets.rejected.items()} == {"default/large": "TopologyAffinityError"}
