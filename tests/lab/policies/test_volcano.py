"""Volcano's rules one by one: limits, anchors, order, queues, what is bound and what only waits."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest

from placer.base.quantity import Resources
from placer.lab.policies.framework import ClusterState
from placer.lab.policies.mimicry import run
from placer.lab.policies.volcano.allocate import Worksheet
from placer.lab.policies.volcano.jobs import TOP, HyperNodesInfo, read_jobs, task_order
from placer.lab.policies.volcano.queues import Proportion, deserved
from placer.problem import Finding, GroupKey, Instance, NetworkTopology, PodState, SubGroupPolicy
from placer.problem.instance import NO_TIER
from placer.rules import verify
from tests.support import instance_of, node, pod, pod_group
from tests.world import GPU, VOLCANO, World, hard, soft


def conf(*names: str, **arguments: dict[str, Any]) -> dict[str, Any]:
    named = {name.replace("_", "-"): each for name, each in arguments.items()}
    return {"tiers": [{"plugins": [{"name": name, "arguments": named.get(name, {})} for name in names]}]}


BARE = ("priority", "gang", "predicates", "network-topology-aware")


def bound(instance: Instance, *plugins: str, seed: int = 0) -> dict[str, str]:
    placement = run(instance, "volcano", seed=seed, arguments=conf(*(plugins or BARE)))
    return {binding.pod.name: binding.node for binding in placement.bindings}


def leaves(gpu: int = 1, topology: NetworkTopology | None = None, least: int = 2, pods: str = "a b") -> World:
    """Two leaves of two nodes below one spine, and one gang."""
    world = World()
    world.nodes("n1 n2 n3 n4", gpu=gpu)
    world.hyper("l1", 1, "n1 n2")
    world.hyper("l2", 1, "n3 n4")
    world.hyper("s", 2, "l1 l2")
    world.pods_of(pods, world.gang("g", least, topology=topology))
    return world


# -------------------------------------------------------------------------------------------------------------- limits


@pytest.mark.parametrize(
    ("topology", "count"),
    [
        (hard(1), 0),
        (hard(2), 3),
        (hard(3), 3),  # the virtual top has tier 3
        (hard(), 3),  # no limit at all
        (hard(NO_TIER), 3),  # an unknown tierName is no limit either
        (soft(), 3),
        (soft(1), 3),  # soft ignores its tier
        (None, 3),
    ],
)
def test_three_pods_over_leaves_of_two(topology: NetworkTopology | None, count: int) -> None:
    world = leaves(topology=topology, least=3, pods="a b c")
    assert {len(bound(world.instance(), seed=seed)) for seed in range(10)} == {count}


def test_without_hyper_nodes_the_whole_cluster_has_tier_1() -> None:
    world = World()
    world.nodes("n1 n2", gpu=1)
    world.pods_of("a b", world.gang("g", 2, topology=hard(1)))
    assert len(bound(world.instance())) == 2


@pytest.mark.parametrize("topology", [hard(1), soft()])
def test_soft_climbs_no_higher_than_it_must(topology: NetworkTopology) -> None:
    world = leaves(topology=topology)
    for seed in range(10):
        nodes = set(bound(world.instance(), seed=seed).values())
        assert nodes in ({"n1", "n2"}, {"n3", "n4"})


def test_without_the_plugin_hard_limits_are_silently_not_enforced() -> None:
    world = leaves(topology=hard(1), least=3, pods="a b c")
    found = bound(world.instance(), "gang", "predicates")
    assert len(found) == 3
    placement = run(world.instance(), "volcano", arguments=conf("gang", "predicates"))
    assert [violation.rule for violation in verify(world.instance(), placement)] == ["C7"]


def test_nodes_in_no_hyper_node_are_for_soft_and_normal_jobs_only() -> None:
    for topology, count in ((hard(1), 0), (soft(), 2), (None, 2)):
        world = leaves(topology=topology)
        for number in range(1, 5):
            world.running(f"r{number}", f"n{number}")
        world.nodes("x1 x2", gpu=1)
        assert len(bound(world.instance())) == count


def test_a_broken_tree_stops_every_job_with_a_topology() -> None:
    world = leaves(topology=soft())
    world.pod("lone")
    instance = world.instance()
    broken = replace(instance, findings=(Finding("HyperNodeCycle", "HyperNode l1", "a circle"),))
    assert len(bound(instance)) == 3
    assert bound(broken).keys() == {"lone"}


# ------------------------------------------------------------------------------------------------------------- anchors


@pytest.mark.parametrize(("topology", "allowed"), [(hard(1), {"n2"}), (hard(2), {"n2", "n3", "n4"})])
def test_running_pods_hold_the_rest_within_the_limit(topology: NetworkTopology, allowed: set[str]) -> None:
    """Within limit 2 the leaf of the running pod is no better than the other: each is scored alone, GPUs count not."""
    world = leaves(topology=topology, pods="a")
    world.running("r", "n1", next(iter(world.gangs)))
    assert {node for seed in range(40) for node in bound(world.instance(), seed=seed).values()} == allowed
    world.running("full", "n2")
    assert {node for seed in range(40) for node in bound(world.instance(), seed=seed).values()} == allowed - {"n2"}


def test_pods_that_already_span_more_than_the_limit_keep_the_rest_pending() -> None:
    world = leaves(topology=hard(1), least=3, pods="a")
    group = next(iter(world.gangs))
    world.running("r1", "n1", group)
    world.running("r3", "n3", group)
    assert bound(world.instance()) == {}


def test_a_node_that_is_gone_drops_the_anchor() -> None:
    world = leaves(topology=hard(1), pods="a")
    world.running("r", "gone", next(iter(world.gangs)))
    instance = world.instance()
    state = ClusterState(instance, seed=0)
    (job,) = read_jobs(state, HyperNodesInfo(state))
    assert job.anchor is None
    assert len({next(iter(bound(instance, seed=seed).values())) for seed in range(40)}) == 4


def test_common_ancestors() -> None:
    domains = HyperNodesInfo(ClusterState(leaves().instance(), seed=0))
    number = domains.number
    assert domains.common(number["l1"], number["l2"]) == number["s"]
    assert domains.common(number["s"], number["l2"]) == number["s"]
    assert domains.common(None, number["l1"]) == number["l1"]
    assert domains.common(number["l1"], number[TOP]) == number[TOP]
    assert domains.smallest([0, 1]) == number["l1"]


# --------------------------------------------------------------------------------------------------------------- gangs


def test_pods_beyond_the_minimum_come_one_at_a_time_and_are_never_required() -> None:
    world = World()
    world.nodes("n1 n2 n3", gpu=1)
    world.pods_of("a b c d e", world.gang("g", 2))
    assert len(bound(world.instance())) == 3


def test_the_elastic_gang_asks_for_room_for_all_its_pods() -> None:
    """Four pods, two of them required, leaves of two: 4 > 2, though two would fit. With room for four all go."""
    assert bound(leaves(topology=hard(1), least=2, pods="a b c d").instance()) == {}
    assert len(bound(leaves(gpu=2, topology=hard(1), least=2, pods="a b c d").instance())) == 4


def test_a_role_that_failed_is_not_tried_again_and_others_are() -> None:
    """big fits nowhere; with slack (minMember 2 of 4) the small ones are still tried, without slack none is."""
    for least, count in ((2, 2), (4, 0)):
        world = World()
        world.nodes("n1 n2", gpu=1)
        key = world.gang("g", least)
        for name, gpu, role in (("a", 2, "big"), ("b", 2, "big"), ("c", 1, "small"), ("d", 1, "small")):
            world.pod(name, key, gpu, role=role)
        assert len(bound(world.instance())) == count


def test_roles_need_their_minimum() -> None:
    world = World()
    world.nodes("n1 n2", gpu=1)
    key = world.gang("g", 2, roles={"w": 1, "m": 1})
    world.pod("a", key, role="w")
    world.pod("b", key, role="w")
    world.pod("c", key, gpu=2, role="m")
    assert bound(world.instance()) == {}


def test_a_group_with_too_few_pods_is_not_tried() -> None:
    world = leaves(least=3)
    assert bound(world.instance()) == {}


def test_subgroups_are_whole_or_empty_and_enough_of_them() -> None:
    """Parts of two pods, hard tier 1, at least one; three nodes are free: one part, and no half of the other."""
    for needed, count in ((1, 2), (2, 0)):
        world = World()
        world.nodes("n1 n2 n3 n4", gpu=1)
        world.hyper("l1", 1, "n1 n2")
        world.hyper("l2", 1, "n3 n4")
        world.running("r", "n4")
        policy = SubGroupPolicy("p", 2, needed, hard(1))
        key = world.gang("g", 2, policies=[policy])
        for part in "01":
            world.pods_of(f"a{part} b{part}", key, part=part)
        assert len(bound(world.instance())) == count


def test_subgroups_of_one_policy_by_number_the_required_ones_first() -> None:
    world = World()
    world.node("n1", gpu=9)
    key = world.gang("g", 1, policies=[SubGroupPolicy("x"), SubGroupPolicy("y", 1, 1)])
    for part in ("10", "9"):
        world.pod(f"x{part}", key, part=part, policy=0)
        world.pod(f"y{part}", key, part=part, policy=1)
    state = ClusterState(world.instance(), seed=0)
    (job,) = read_jobs(state, HyperNodesInfo(state))
    sheet, order = Worksheet.of(job), []
    while sheet.queue:
        order.append(sheet.pop()[0])
    assert [each.uid for each in order] == [f"default/g/{name}" for name in ("y-9", "x-9", "x-10", "y-10")]


def test_tasks_by_priority_then_by_number_then_by_name_never_by_size() -> None:
    world = World()
    key = world.gang("g", 1)
    for name, gpu, priority in (("b", 9, 0), ("a", 1, 0), ("j-w-10", 1, 0), ("j-w-9", 5, 0), ("z", 1, 3)):
        world.pod(name, key, gpu, priority=priority)
    world.node("n")
    tasks = sorted(ClusterState(world.instance(), seed=0).tasks, key=task_order)
    assert [task.pod.name for task in tasks] == ["z", "a", "b", "j-w-9", "j-w-10"]


def test_pods_that_request_nothing_count_for_their_gang_and_are_bound_at_the_end() -> None:
    world = World()
    world.node("n1", gpu=1, pods=2)
    key = world.gang("g", 2)
    world.pod("a", key)
    world.pod("b", key, gpu=0)
    assert list(bound(world.instance())) == ["a", "b"]


def test_who_waits_for_a_pod_that_is_being_deleted_holds_its_room_and_is_not_bound() -> None:
    """g is complete only with a pod that waits on n1: nothing of it is bound, and n2 is not given to later (#5044)."""
    world = World()
    world.nodes("n1 n2", gpu=1)
    world.pod("leaving", state=PodState.TERMINATING, node="n1")
    world.pods_of("a b", world.gang("g", 2, priority=1))
    world.pod("later")
    assert bound(world.instance()) == {}


def test_a_job_is_tried_only_where_its_min_resources_were_idle() -> None:
    """Two pods of one GPU fit into a leaf of two. With minResources of 3 no leaf is tried for them, of 5 not even the
    spine; one that runs already is anchored, and nothing is asked.
    """
    for least, anchored, expected in ((2, False, 2), (3, False, 0), (5, False, 0), (5, True, 2)):
        world = leaves(topology=hard(1), gpu=2 if anchored else 1)
        if anchored:
            world.running("r", "n1", GroupKey(VOLCANO, "default", "g"))
        (gang,) = world.gangs.values()
        gang.group = replace(gang.group, min_resources=Resources({GPU: least}))
        assert len(bound(world.instance())) == expected
        gang.group = replace(gang.group, topology=hard(2))
        assert len(bound(world.instance())) == (0 if least == 5 and not anchored else 2)


# --------------------------------------------------------------------------------------------------------------- order


def test_jobs_by_priority_then_share_then_age() -> None:
    world = World()
    world.node("n1", gpu=9)
    world.pods_of("p1 p2", world.gang("prior", 2, priority=9))
    has = world.gang("has", 1)
    world.running("r", "n1", has)
    world.pod("h", has)
    world.pods_of("a1", world.gang("young", 1))
    order = list(bound(world.instance(), "priority", "gang", "drf", "predicates"))
    assert order == ["p1", "p2", "a1", "h"]
    # Without gang and drf by name alone: has, prior, young.
    assert list(bound(world.instance(), "predicates", "gang")) == ["p1", "p2", "a1", "h"]


def test_without_gang_every_pod_counts() -> None:
    world = World()
    world.node("n1", gpu=1)
    world.pods_of("a b", world.gang("g", 2))
    assert bound(world.instance(), "predicates") == {}


# -------------------------------------------------------------------------------------------------------------- queues


def test_an_unknown_or_closed_queue_takes_nothing() -> None:
    world = World()
    world.node("n1", gpu=9)
    world.queue("open")
    world.queue("closed", closed=True)
    for name in ("open", "closed", "missing"):
        world.pod(name, world.gang(f"g-{name}", 1, queue=name))
    world.pod("lone")
    assert sorted(bound(world.instance())) == ["lone", "open"]


def test_capability_is_looked_at_pod_by_pod_so_that_a_gang_is_rolled_back() -> None:
    for least, count in ((3, 0), (2, 2)):
        world = World()
        world.node("n1", gpu=9)
        world.queue("q", gpu=2)
        world.pods_of("a b c", world.gang("g", least, queue="q"))
        assert len(bound(world.instance(), *BARE, "proportion")) == count
        assert len(bound(world.instance(), *BARE)) == 3


def test_two_queues_share_alike_what_both_want() -> None:
    """Nine GPUs, both want nine: 4.5 each, so four pods each, in turn; the ninth GPU stays free."""
    world = World()
    world.node("n1", gpu=9)
    for name in ("q1", "q2"):
        world.queue(name)
        for number in range(9):
            world.pod(f"{name}-{number}", world.gang(f"{name}-{number}", 1, queue=name))
    order = list(bound(world.instance(), *BARE, "proportion"))
    assert [name[:2] for name in order] == ["q1", "q2"] * 4


def test_what_one_queue_does_not_want_goes_to_the_other() -> None:
    state = ClusterState(World().instance(), seed=0)
    total = state.alloc.sum(axis=0).astype(float) + 9
    request = {"a": total / 9 * 2, "b": total}
    limits = {"a": total * 9, "b": total * 9}
    found = deserved(total, request, limits, {"a": 1, "b": 1})
    assert (found["a"] == 2).all()
    assert (found["b"] == 7).all()
    assert Proportion(state, [], on=True).deserved == {}


def test_queues_get_by_their_weight() -> None:
    """Nine GPUs, both want nine, weights 2 and 1: six and three."""
    queue = {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue"}
    instance = instance_of(
        node("n1", gpu=9),
        {**queue, "metadata": {"name": "heavy"}, "spec": {"weight": 2}},
        {**queue, "metadata": {"name": "light"}, "spec": {}},
        *(pod_group(f"{name}-{number}", queue=name, minMember=1) for name in ("heavy", "light") for number in range(9)),
        *(
            pod(f"{name}-{number}", group=f"{name}-{number}", gpu=1)
            for name in ("heavy", "light")
            for number in range(9)
        ),
    )
    found = Counter(name.partition("-")[0] for name in bound(instance, *BARE, "proportion"))
    assert found == {"heavy": 6, "light": 3}


# -------------------------------------------------------------------------------------------------------------- labels


def test_labels_draw_pods_to_the_first_one_and_force_nothing() -> None:
    """r1 has two nodes, r2 three. With the label plug-in alone the second pod follows the first one, wherever it is;
    the third follows too where there is room, else goes to the other rack.
    """
    racks = {"n1": "r1", "n2": "r1", "n3": "r2", "n4": "r2", "n5": "r2"}
    objects = [node(name, {"rack": rack}, cpu=1) for name, rack in racks.items()]
    objects += [pod_group("g", minMember=3), *(pod(name, group="g", cpu=1) for name in "abc")]
    instance = instance_of(*objects)
    arguments = conf("gang", "predicates", "network-topology", network_topology={"network-topology.keys": "rack"})
    seen = set()
    for seed in range(40):
        nodes = [each.node for each in run(instance, "volcano-labels", seed=seed, arguments=arguments).bindings]
        found = [racks[each] for each in nodes]
        assert found[0] == found[1]
        seen.add("".join(found))
    assert seen == {"r1r1r2", "r2r2r2"}


def test_without_keys_hyper_nodes_stand_for_labels_and_limits_are_not_known() -> None:
    world = leaves(topology=hard(1), least=3, pods="a b c")
    placement = run(world.instance(), "volcano-labels")
    assert len(placement.bindings) == 3
    assert [violation.rule for violation in verify(world.instance(), placement)] == ["C7"]


def test_the_keys_of_the_policy_are_those_of_the_plugin() -> None:
    racks = {"n1": "r1", "n2": "r2", "n3": "r1", "n4": "r2"}
    policy = {"apiVersion": "placer.dev/v1alpha1", "kind": "Policy", "metadata": {"name": "default"}}
    objects = [
        *(node(name, {"rack": rack}, cpu=1) for name, rack in racks.items()),
        {**policy, "spec": {"topologyKeys": ["rack"]}},
        pod_group("g", minMember=2),
        *(pod(name, group="g", cpu=1) for name in "ab"),
    ]
    instance = instance_of(*objects)
    for seed in range(20):
        nodes = [binding.node for binding in run(instance, "volcano-labels", seed=seed).bindings]
        assert len({racks[name] for name in nodes}) == 1
