"""What is bound in which order: whole gangs, and on nodes with zones an order that their kubelets admit."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest

import placer
from placer.passes.cluster.planning.binding_plan import BindingPlan, PlannedBinding, plan_bindings
from placer.passes.cluster.reading.snapshot import Identity
from placer.problem import GroupKey, Instance, Key, Policy
from placer.problem.numa import TopologyManager
from placer.problem.placement import Placement
from placer.rules import verify
from placer.search.numa.binding_order import aligned
from tests.cluster.snapshots import snapshot_of
from tests.examples import exhaustive
from tests.numa_words import demand, numa
from tests.support import instance_of, node, pod
from tests.world import World, calls

INSTANCES = Path(__file__).parent.parent.parent / "instances"


def plan(
    world: World | Instance, where: dict[str, str], changed: Iterable[str] = (), most: int | None = None
) -> BindingPlan:
    """Plan a placement, pod name to node; it must be a valid one."""
    instance = world.instance() if isinstance(world, World) else world
    placement = aligned(instance, Placement.of({Key("default", name): node for name, node in where.items()}))
    assert verify(instance, placement) == []
    return plan_bindings(instance, placement, uids(instance), [Key("default", name) for name in changed], most)


def uids(instance: Instance) -> dict[Key, Identity]:
    return {key: Identity(f"uid-{key.name}", "1") for key in instance.pods}


def shown(found: BindingPlan) -> list[str]:
    """Batches as words: pods in order, ``-`` before one that waits for the server, ``=`` for the kubelet."""

    def mark(each: PlannedBinding) -> str:
        return "=" if each.admitted else "" if each.after is None else "-"

    return [" ".join(f"{mark(each)}{each.pod.name}" for each in batch.bindings) for batch in found.batches]


def names(gangs: Iterable[GroupKey]) -> list[str]:
    return [gang.name for gang in gangs]


# --------------------------------------------------------------------------------------------------------- whole gangs


def two_gangs(priority: int = 0) -> World:
    world = World()
    world.nodes("n1 n2", gpu=4)
    world.pods_of("a1 a2", world.gang("a", 2))
    world.pods_of("b1 b2", world.gang("b", 2, priority=priority))
    world.pod("lone")
    return world


WHERE = {"a1": "n1", "b1": "n1", "a2": "n2", "b2": "n2", "lone": "n1"}


def test_gangs_come_one_after_another_as_they_stand_in_the_placement() -> None:
    found = plan(two_gangs(), WHERE)
    assert shown(found) == ["a1 a2", "b1 b2", "lone"]
    assert [names(batch.gangs) for batch in found.batches] == [["a"], ["b"], ["lone"]]
    assert found.dropped == {}


def test_the_higher_priority_comes_first() -> None:
    assert shown(plan(two_gangs(priority=5), WHERE)) == ["b1 b2", "a1 a2", "lone"]


def test_namespaces_take_turns_so_that_nobody_waits_for_all_pods_of_another() -> None:
    keys = [Key("loud", "a1"), Key("loud", "a2"), Key("loud", "a3"), Key("quiet", "b1")]
    instance = instance_of(node("n1", cpu=8), *(pod(each.name, namespace=each.namespace) for each in keys))
    found = plan_bindings(instance, Placement.of(dict.fromkeys(keys, "n1")), uids(instance))
    assert shown(found) == ["a1", "b1", "a2", "a3"]


def test_a_pod_that_changed_drops_its_gang_and_no_other() -> None:
    found = plan(two_gangs(), WHERE, ["a2"])
    assert shown(found) == ["b1 b2", "lone"]
    assert names(found.stale) == ["a"]
    assert {gang.name: why for gang, why in found.dropped.items()} == {
        "a": "Pod default/a2 has changed since the snapshot"
    }


def test_a_pod_that_changed_and_is_not_bound_drops_nothing() -> None:
    """`lone` stays pending by this placement, and `other` is of no interest."""
    found = plan(two_gangs(), {name: node for name, node in WHERE.items() if name != "lone"}, ["lone", "other"])
    assert shown(found) == ["a1 a2", "b1 b2"]
    assert found.dropped == {}


@pytest.mark.parametrize(
    ("most", "bound", "why"),
    [
        (5, ["a1 a2", "lone", "b1 b2"], {}),
        (4, ["a1 a2", "lone"], {"b": "it takes 2 bindings, only 1 of --max-bindings 4"}),
        (2, ["a1 a2"], {"b": "only 0 of", "lone": "it takes 1 binding, only 0 of --max-bindings 2"}),
        (1, ["lone"], {"a": "it takes 2 bindings, more than --max-bindings 1", "b": "more than"}),
    ],
)
def test_whole_gangs_are_bound_up_to_a_number(most: int, bound: list[str], why: dict[str, str]) -> None:
    where = {"a1": "n1", "a2": "n2", "lone": "n1", "b1": "n1", "b2": "n2"}
    found = plan(two_gangs(), where, most=most)
    assert shown(found) == bound
    assert {gang.name for gang in found.dropped} == why.keys()
    assert found.stale == frozenset()
    assert all(why[gang.name] in text for gang, text in found.dropped.items())


def test_gangs_that_are_bound_together_are_left_together_beyond_the_number() -> None:
    """As one batch they are, where each must come before the other on a node that aligns."""
    world = zoned("5 cpu", "3 cpu", a1=1, b1=4, a2=3)
    assert shown(plan(world, on_n1(world), most=3)) == ["a1 -b1 -a2"]
    less = plan(world, on_n1(world), most=2)
    assert (less.batches, names(less.dropped)) == ((), ["a", "b"])


def test_who_cannot_stand_without_a_dropped_gang_is_dropped_too() -> None:
    """Under networkCost: majority the caller may have one callee too far away because another one is near. Without the
    near one it may not. Who is left of that AppGroup waits for the next pass; the lone pod does not.
    """
    world = World(Policy(network_cost="majority"))
    world.node("n1", area="r/z1")
    world.node("n2", area="r/z2")
    world.links("zone", "z1=z2", 50)
    shop = world.app_group("shop", calls("web>db", cost=10))
    world.pod("web", app=shop, workload="web")
    world.pod("near", app=shop, workload="db")
    world.pod("far", app=shop, workload="db")
    world.pod("lone")
    where = {"web": "n1", "near": "n1", "far": "n2", "lone": "n2"}
    assert shown(plan(world, where)) == ["web", "near", "far", "lone"]
    found = plan(world, where, ["near"])
    assert shown(found) == ["lone"]
    reasons = {gang.name: why for gang, why in found.dropped.items()}
    assert reasons["near"] == "Pod default/near has changed since the snapshot"
    assert reasons["web"] == reasons["far"]
    assert reasons["web"].startswith("without the gangs left out AppGroup default/shop: each of 1 pod of web in ")


# ---------------------------------------------------------------------------------------------------------------- zones


def zoned(*rooms: str, urgent: str = "", **pods: int) -> World:
    """One node with zones of so many cores; pods of so many cores, created one after another, gang by first letter.

    The gang ``urgent`` has a higher priority than the others.
    """
    world = World()
    world.node("n1", gpu=0, numa=numa("single", "pod", *rooms))
    gangs = {name: world.gang(name, 1, priority=int(name == urgent)) for name in {name[0] for name in pods}}
    for age, (name, cores) in enumerate(pods.items()):
        world.pod(name, gangs[name[0]], gpu=0, numa=demand(f"{cores} cpu"), created=float(age))
    return world


def on_n1(world: World) -> dict[str, str]:
    return {key.name: "n1" for key in world.pods}


def test_pods_of_one_gang_follow_each_other_on_their_node() -> None:
    """4 cores and 4: any order works; the plan is kept all the same, so that the zones it tells are those they get."""
    world = zoned("4 cpu", "4 cpu", a1=2, a2=3)
    found = plan(world, on_n1(world))
    assert shown(found) == ["a1 -a2"]
    assert [each.numa_zones for each in found.batches[0].bindings] == [("node-0",), ("node-1",)]
    assert found.batches[0].bindings[1].after == Key("default", "a1")


def test_where_only_one_order_works_the_kubelet_is_waited_for() -> None:
    """4 cores and 2: the large one, younger, must take node-0 first; by age the small one would."""
    world = zoned("4 cpu", "2 cpu", a1=2, a2=4)
    assert shown(plan(world, on_n1(world))) == ["a2 =a1"]


def test_that_order_goes_across_gangs_and_before_priority() -> None:
    world = zoned("4 cpu", "2 cpu", urgent="s", small=2, large=4)
    found = plan(world, on_n1(world))
    assert shown(found) == ["large", "=small"]
    assert found.batches[1].bindings[0].after == Key("default", "large")
    assert [batch.bindings[0].numa_zones for batch in found.batches] == [("node-0",), ("node-1",)]


def test_gangs_that_meet_where_any_order_works_are_not_mixed() -> None:
    """Each zone takes any two pods: a1 b1 a2 b2 by age becomes a1 a2, then b1 b2, with the zones of that order."""
    world = zoned("4 cpu", "4 cpu", a1=2, b1=2, a2=2, b2=2)
    found = plan(world, on_n1(world))
    assert shown(found) == ["a1 -a2", "-b1 -b2"]
    zones = [each.numa_zones[0] for batch in found.batches for each in batch.bindings]
    assert zones == ["node-0", "node-0", "node-1", "node-1"]


def test_an_order_by_gang_that_is_none_by_age_waits_for_the_kubelet() -> None:
    """5 and 4 cores, a1=3 b1=4 a2=2. By age: a1 in node-0, b1 in node-1, a2 in node-0. By gang it works too, but were
    b1 first it would take node-0, so not every order does.
    """
    world = zoned("5 cpu", "4 cpu", a1=3, b1=4, a2=2)
    found = plan(world, on_n1(world))
    assert shown(found) == ["a1 =a2", "=b1"]


def test_gangs_that_must_each_come_before_the_other_are_one_batch() -> None:
    """5 and 3 cores, a1=1 b1=4 a2=3. By age a1 and b1 fill node-0 and a2 node-1; by gang a2 would take of node-0
    before b1 needs it.
    """
    world = zoned("5 cpu", "3 cpu", a1=1, b1=4, a2=3)
    found = plan(world, on_n1(world))
    assert shown(found) == ["a1 -b1 -a2"]
    assert [names(batch.gangs) for batch in found.batches] == [["a", "b"]]
    assert [each.numa_zones for each in found.batches[0].bindings] == [("node-0",), ("node-0",), ("node-1",)]


def test_one_of_them_that_changed_leaves_the_other_with_zones_of_its_own() -> None:
    world = zoned("5 cpu", "3 cpu", a1=1, b1=4, a2=3)
    found = plan(world, on_n1(world), ["b1"])
    assert shown(found) == ["a1 -a2"]
    assert [each.numa_zones for each in found.batches[0].bindings] == [("node-0",), ("node-0",)]
    assert names(found.dropped) == ["b"]


def test_pods_of_which_nothing_is_aligned_wait_for_none() -> None:
    world = zoned("4 cpu", "4 cpu", a1=2, a2=3)
    world.node("n1", gpu=4, numa=numa("single", "pod", "4 cpu", "4 cpu"))
    world.pod("free", GroupKey("scheduling.volcano.sh", "default", "a"))
    assert shown(plan(world, on_n1(world))) == ["a1 -a2 free"]


# -------------------------------------------------------------------------------------------------- shipped instances


@pytest.mark.parametrize(
    "name",
    [
        "planted/planted-50.json.gz",
        "numa/numa-3.yaml",
        "clos/clos-16.yaml",
        *exhaustive("numa/numa-50-restricted.json.gz", "numa/numa-50.json.gz"),
    ],
)
def test_carried_out_in_its_order_a_plan_is_the_placement(name: str) -> None:
    """Every pod once, every gang in one batch, every wait for a pod that stands before; and a placement in that order
    is valid, with the zones that were promised.
    """
    result = placer.solve(placer.read(INSTANCES / name), method="greedy")
    assert result.placement is not None
    instance = result.instance
    found = plan_bindings(instance, result.placement, uids(instance))
    binds = [each for batch in found.batches for each in batch.bindings]
    assert {each.pod: each.node for each in binds} == result.placement.node_of
    assert len(binds) == len(result.placement.bindings)
    gangs = [gang for batch in found.batches for gang in batch.gangs]
    assert len(set(gangs)) == len(gangs)
    for batch in found.batches:
        assert {instance.pods[each.pod].group for each in batch.bindings} == set(batch.gangs)
    places = {each.pod: place for place, each in enumerate(binds)}
    for each in binds:
        assert each.after is not None or not each.admitted
        if each.after is not None:
            assert places[each.after] < places[each.pod]
            assert result.placement.node_of[each.after] == each.node
    carried_out = Placement.of((each.pod, each.node) for each in binds)
    assert verify(instance, carried_out) == []
    for node_name, zones in instance.aligning_nodes.items():
        manager = TopologyManager(zones)
        for each in (each for each in binds if each.node == node_name):
            assert manager.admit(instance.pods[each.pod].numa) == (each.numa_zones, "")


def test_a_snapshot_knows_which_pods_there_were() -> None:
    there = pod("p", namespace="ns", metadata={"uid": "u", "resourceVersion": "7"})
    assert snapshot_of([node("n1"), there]).identities == {Key("ns", "p"): Identity("u", "7")}
