"""Why groups stay pending: each code once with its whole message, and all of them against brute force."""

from __future__ import annotations

import re
from collections import Counter

import pytest

from placer.answers.reasons import reasons
from placer.arrays import Dense
from placer.arrays.dense_builder import make_dense
from placer.problem import GroupKey, Instance, NetworkTopology, Policy, SubGroupPolicy
from placer.problem.instance import NO_TIER
from placer.problem.outcome import Outcome
from placer.problem.placement import Placement
from placer.problem.result import Reason
from placer.search.greedy.multi_start import greedy
from tests.oracle import best, placements
from tests.solving import carried_out
from tests.support import Document, hyper_node, instance_of, node, pod, pod_group, queue
from tests.tiny import tiny
from tests.world import World, hard, port


def found(instance: Instance) -> dict[str, Reason]:
    """The reasons after the greedy, by the group's name."""
    dense = make_dense(instance)
    return {key.name: reason for key, reason in reasons(instance, dense, greedy(dense)).items()}


def only(world: World) -> tuple[str, str]:
    """Code and message of the only group with pods left."""
    (reason,) = found(world.instance()).values()
    return reason.code, reason.message


def on(names: str, gpu: int = 4) -> World:
    """A world of equal nodes."""
    world = World()
    world.nodes(names, gpu)
    return world


def test_nothing_is_said_of_what_is_placed() -> None:
    world = on("n0")
    world.pod("p")
    assert found(world.instance()) == {}


def test_invalid_group() -> None:
    world = on("n0")
    world.pod("p", world.gang("g", invalid="both limits of its networkTopology are set"))
    assert only(world) == ("InvalidGroup", "both limits of its networkTopology are set")


def test_too_few_pods_for_min_member_a_role_or_a_policy() -> None:
    world = on("n0", 8)
    gang = world.gang("g", 4)
    world.running("a", "n0", gang)
    world.pods_of("b c", gang)
    assert only(world) == ("GangIncomplete", "minMember is 4, but there are 2 pending pods and 1 placed before")
    world = on("n0", 8)
    gang = world.gang("g", 3, roles={"worker": 3})
    for name in ("a", "b"):
        world.pod(name, gang, role="worker")
    world.pod("m", gang, role="master")
    assert only(world) == ("GangIncomplete", "minTaskMember of task worker is 3, but there are 2 pending pods")
    world = on("n0", 8)
    gang = world.gang("g", policies=[SubGroupPolicy("w", 2, 2)])
    world.pods_of("a b", gang, part="x")
    message = "minSubGroups of policy w is 2, but 1 of its subgroups have subGroupSize 2 pods"
    assert only(world) == ("GangIncomplete", message)


def test_a_subgroup_too_small_in_a_group_that_is_fine() -> None:
    world = on("n0", 8)
    gang = world.gang("g", policies=[SubGroupPolicy("w", 2)])
    world.pods_of("a b", gang, part="x")
    world.pods_of("c", gang, part="y")
    assert only(world) == ("GangIncomplete", "subGroupSize of subgroup w-y is 2, but there is 1 pending pod")


def test_unsupported() -> None:
    world = on("n0", 8)
    gang = world.gang("g", 2)
    world.pod("a", gang)
    world.pod("b", gang, unsupported=["spec.resourceClaims: gpu"])
    assert only(world) == ("Unsupported", "1 of 2 pods needs unsupported fields: spec.resourceClaims: gpu")


def test_no_eligible_node() -> None:
    world = World()
    world.node("n0", labels={"pool": "cpu"})
    world.node("n1", labels={"pool": "cpu"})
    world.node("n2", labels={"pool": "gpu"}, taints=["x"])
    world.node("n3", ready=False)
    world.node("n4", unschedulable=True)
    gang = world.gang("g", 2)
    for name in ("a", "b"):
        world.pod(name, gang, selector={"pool": "gpu"})
    message = (
        "0/5 nodes are eligible for 2 pods of nvidia.com/gpu 1: "
        "2 node selector pool=gpu (n0, n1), 1 node is not Ready and node selector pool=gpu (n3), "
        "1 node is unschedulable and node selector pool=gpu (n4), 1 untolerated taint x:NoSchedule (n2)"
    )
    assert only(world) == ("NoEligibleNode", message)


def test_a_closed_queue() -> None:
    world = on("n0")
    world.queue("q", closed=True)
    world.pod("p", queue="q")
    assert only(world) == ("QueueClosed", "Queue q is closed and takes no new pods")


def test_a_queue_of_other_namespaces() -> None:
    world = on("n0")
    world.queue("q", namespaces=frozenset({"web", "ml"}))
    world.pod("p", queue="q")
    message = (
        "annotation placer.dev/namespaces of Queue q names ml, web: found a group of default, expected one of these"
    )
    assert only(world) == ("QueueClosed", message)


@pytest.mark.parametrize("least", [0, 1])
def test_a_closed_queue_comes_after_eligible_nodes(least: int) -> None:
    world = on("n0")
    world.queue("q", closed=True)
    world.pod("p", world.gang("g", least, queue="q"), selector={"no": "where"})
    message = "0/1 nodes are eligible for 1 pod of nvidia.com/gpu 1: 1 node selector no=where (n0)"
    assert only(world) == ("NoEligibleNode", message)


def test_a_full_queue() -> None:
    world = on("n0", 8)
    world.queue("q", gpu=4)
    world.running("r", "n0", gpu=3, queue="q")
    world.pods_of("a b", world.gang("g", 2, queue="q"))
    assert only(world) == ("QueueCapability", "needs nvidia.com/gpu 2 in Queue q: capability 4, 3 of it taken")


def test_no_node_has_room_or_the_host_port() -> None:
    world = World()
    world.node("n0", 2, cpu=4000)
    world.node("n1", 8, cpu=1000)
    world.node("n2", 8, cpu=4000, taints=["x"])
    world.pod("p", gpu=4, cpu=2000)
    message = (
        "0/3 nodes have room for a pod of cpu 2, nvidia.com/gpu 4: "
        "1 insufficient cpu, 1 insufficient nvidia.com/gpu, 1 not eligible; "
        "Node n0 comes nearest: nvidia.com/gpu 2 free, 2 too few; not eligible: 1 untolerated taint x:NoSchedule (n2)"
    )
    assert only(world) == ("InsufficientResources", message)
    world = on("n0")
    world.running("r", "n0", ports=[port(80)])
    world.pod("p", ports=[port(80)])
    message = (
        "0/1 nodes have room for a pod of nvidia.com/gpu 1: 1 host port taken; "
        "Node n0 comes nearest: host port 0.0.0.0:80/TCP is taken by Pod default/r"
    )
    assert only(world) == ("InsufficientResources", message)


def test_pods_too_large_for_any_node_are_told_with_what_each_asks_for() -> None:
    world = on("n0")
    world.pod("a", gpu=5)
    world.pod("b", gpu=6)
    told = found(world.instance())
    assert "for a pod of nvidia.com/gpu 5: " in told["a"].message
    assert "for a pod of nvidia.com/gpu 6: " in told["b"].message


def test_more_pods_than_there_is_room_for() -> None:
    world = on("n0 n1", 3)
    gang = world.gang("g", 3)
    world.pods_of("a b c", gang, 2)
    message = "needs room for 3 pods of nvidia.com/gpu 2; the nodes have room for 2 in all, 1 too few"
    assert only(world) == ("InsufficientResources", message)


def test_room_is_counted_on_the_nodes_that_the_pods_may_use() -> None:
    world = on("n0 n1", 3)
    for name in "abcd":
        world.node(f"c-{name}", unschedulable=True)
    world.node("x", labels={"pool": "x"}, taints=["x"])
    world.pods_of("a b c", world.gang("g", 3), 2)
    message = (
        "needs room for 3 pods of nvidia.com/gpu 2; 2 of 7 nodes are eligible and have room for 2 in all, 1 too few; "
        "not eligible: 4 nodes are unschedulable, 1 untolerated taint x:NoSchedule (x)"
    )
    assert only(world) == ("InsufficientResources", message)


def test_more_of_a_resource_than_is_free_or_of_use() -> None:
    world = on("n0 n1", 4)
    world.running("r", "n0")
    gang = world.gang("g", 3)
    world.pods_of("a", gang, 4)
    world.pods_of("b c", gang, 2)
    assert only(world) == ("InsufficientResources", "needs nvidia.com/gpu 8; the 2 nodes eligible for it have 7 free")
    world = on("n0 n1", 5)
    gang = world.gang("g", 3)
    world.pods_of("a b", gang, 4)
    world.pods_of("c", gang, 2)
    message = "needs nvidia.com/gpu 10; the 2 nodes eligible for it have 8 free in pieces of 2"
    assert only(world) == ("InsufficientResources", message)
    world = on("n0")
    gang = world.gang("g", 2)
    world.pods_of("a", gang, 3)
    world.pods_of("b", gang, 2)
    assert only(world)[1] == "needs nvidia.com/gpu 5; the 1 node eligible for it has 4 free"


@pytest.mark.parametrize("limit", [None, 1])
def test_pods_that_fit_one_by_one_but_not_together(limit: int | None) -> None:
    """Of 3, 3 and 2 on nodes of 4 and 4 each finds room, and the sum is 8; whatever the tiers."""
    world = on("n0 n1")
    world.hyper("l0", 1, "n0")
    gang = world.gang("g", 3, topology=hard(limit) if limit else None)
    world.pods_of("a b", gang, 3)
    world.pods_of("c", gang, 2)
    message = "its pods do not fit on the nodes together (tried every way; pod by pod there is room)"
    assert only(world) == ("InsufficientResources", message)


@pytest.mark.parametrize("limit", [1, NO_TIER])
def test_resources_come_before_tiers(limit: int) -> None:
    world = on("n0 n1", 1)
    world.hyper("l0", 1, "n0")
    gang = world.gang("g", 3, policies=[SubGroupPolicy("w", 1, topology=hard(limit))])
    for part in "xyz":
        world.pods_of(part, gang, part=part)
    message = "needs room for 3 pods (nvidia.com/gpu 1 each); the nodes have room for 2 in all, 1 too few"
    assert only(world) == ("InsufficientResources", message)


def leaves(gpu: int = 2) -> World:
    world = World()
    world.nodes("n0 n1 n2 n3", gpu)
    world.hyper("l0", 1, "n0 n1")
    world.hyper("l1", 1, "n2 n3")
    return world


def test_no_domain_is_wide_enough() -> None:
    world = leaves()
    world.running("r", "n0")
    gang = world.gang("g", 5, topology=hard(1))
    world.pods_of("a b c d e", gang)
    message = (
        "needs 5 pods (nvidia.com/gpu 1 each) in one HyperNode of tier <= 1; "
        "the roomiest (l1, tier 1) has room for 4, 1 too few"
    )
    assert only(world) == ("TopologyTooNarrow", message)


def test_no_domain_has_the_sum_of_a_resource_or_room_for_a_subgroup() -> None:
    world = leaves(4)
    world.running("r0", "n0")
    world.running("r2", "n2", gpu=2)
    gang = world.gang("g", 3, topology=hard(1))
    world.pods_of("a", gang, 4)
    world.pods_of("b c", gang, 2)
    message = (
        "needs 3 pods (of 1 x nvidia.com/gpu 4, 2 x nvidia.com/gpu 2) in one HyperNode of tier <= 1; "
        "the roomiest (l0, tier 1) has nvidia.com/gpu 7 free of 8"
    )
    assert only(world) == ("TopologyTooNarrow", message)
    world = leaves()
    gang = world.gang("g", 5, policies=[SubGroupPolicy("w", 5, topology=hard(1))])
    world.pods_of("a b c d e", gang, part="x")
    message = (
        "subgroup w-x needs 5 pods (nvidia.com/gpu 1 each) in one HyperNode of tier <= 1; "
        "the roomiest (l0, tier 1) has room for 4, 1 too few"
    )
    assert only(world) == ("TopologyTooNarrow", message)


def test_running_pods_tie_to_a_domain_full_or_too_high() -> None:
    world = leaves(1)
    gang = world.gang("g", 2, topology=hard(1))
    world.running("r", "n0", gang)
    world.running("other", "n1")
    world.pods_of("a", gang)
    message = (
        "needs 1 pod (nvidia.com/gpu 1) in one HyperNode of tier <= 1; "
        "that of its placed pods (l0, tier 1) has room for 0, 1 too few"
    )
    assert only(world) == ("TopologyTooNarrow", message)
    world = leaves()
    world.hyper("s0", 2, "l0 l1")
    gang = world.gang("g", 3, topology=hard(1))
    world.running("r0", "n0", gang)
    world.running("r2", "n2", gang)
    world.pods_of("a", gang)
    assert only(world) == ("TopologyTooNarrow", "runs under s0, tier 2 already, above the highest tier 1 allowed")


def test_the_roomiest_domain_is_counted_over_subgroups_and_eligible_pods() -> None:
    world = leaves(1)
    world.running("r", "n0")
    gang = world.gang("g", 3, topology=hard(1), policies=[SubGroupPolicy("w", 1)])
    world.pods_of("a b", gang, part="x")
    world.pods_of("c", gang, part="y")
    world.pod("d", gang, selector={"no": "where"})
    message = "needs 3 pods (nvidia.com/gpu 1 each) in one HyperNode of tier <= 1; "
    assert only(world) == ("TopologyTooNarrow", message + "the roomiest (l1, tier 1) has room for 2, 1 too few")


@pytest.mark.parametrize(
    ("topology", "message"),
    [
        (
            NetworkTopology(hard=True, highest_tier=NO_TIER, tier_name="rack"),
            "asks for tierName rack, which is not the name of one tier (the findings say why), so that it admits "
            "nothing",
        ),
        (hard(0), "needs a HyperNode of tier <= 0; none holds a node"),
    ],
)
def test_limits_that_no_domain_meets(topology: NetworkTopology, message: str) -> None:
    world = leaves()
    world.pods_of("a", world.gang("g", 1, topology=topology))
    assert only(world) == ("TopologyTooNarrow", message)


def test_limits_that_only_together_are_too_narrow() -> None:
    """Each of two subgroups of two fits a leaf of three, but one leaf has room for one of them only."""
    world = on("n0 n1 n2", 1)
    world.nodes("n3", 1)
    world.hyper("l0", 1, "n0 n1 n2")
    world.hyper("l1", 1, "n3")
    gang = world.gang("g", 4, policies=[SubGroupPolicy("w", 2, topology=hard(1))])
    world.pods_of("a b", gang, part="x")
    world.pods_of("c d", gang, part="y")
    tried = "tried every way; pod by pod there is room"
    message = f"wherever its pods fit otherwise, they would break its limits of tiers or node labels ({tried})"
    assert only(world) == ("TopologyTooNarrow", message)


def test_outcompeted_names_who_took_the_room() -> None:
    world = on("n0 n1", 4)
    world.pods_of("a0 a1", world.gang("a", 2, priority=5), 3)
    world.pod("b", gpu=1, priority=5)
    world.pods_of("c0 c1", world.gang("c", 2), 3)
    message = (
        "fits alone; with this placement: 0/2 nodes have room for a pod of nvidia.com/gpu 3: "
        "2 insufficient nvidia.com/gpu; Node n1 comes nearest: nvidia.com/gpu 1 free, 2 too few; "
        "the room went to PodGroup default/a (1 pod)"
    )
    assert only(world) == ("Outcompeted", message)


def test_outcompeted_in_a_domain_that_its_running_pods_choose() -> None:
    world = leaves()
    gang = world.gang("g", 2, topology=hard(1))
    world.running("r", "n0", gang)
    world.pods_of("a b c", gang)
    world.pods_of("x0 x1 x2 x3 x4 x5", world.gang("x", 6, priority=1))
    reason = found(world.instance())["g"]
    assert reason.code == "Outcompeted"
    assert reason.message.startswith("fits alone; with this placement: ")
    assert "Node n0 comes nearest: nvidia.com/gpu 0 free, 1 too few; the room went to PodGroup default/x (" in (
        reason.message
    )


def test_outcompeted_in_a_queue() -> None:
    world = on("n0", 8)
    world.queue("q", gpu=3)
    world.pods_of("a0 a1", world.gang("a", 2, queue="q", priority=1))
    world.pods_of("b0 b1", world.gang("b", 2, queue="q"))
    message = (
        "fits alone; with this placement: needs nvidia.com/gpu 2 in Queue q: capability 3, 2 of it taken; "
        "the room in Queue q went to PodGroup default/a (2 pods)"
    )
    assert only(world) == ("Outcompeted", message)


def test_outcompeted_in_every_domain() -> None:
    """One leaf has room for one of four, the other for two."""
    world = leaves()
    world.pods_of("x0 x1 x2", world.gang("x", 3, topology=hard(1), priority=1))
    world.pods_of("y0 y1", world.gang("y", 2, topology=hard(1), priority=1))
    world.pods_of("c d e", world.gang("h", 3, topology=hard(1)))
    reason = found(world.instance())["h"]
    assert reason.code == "Outcompeted"
    text = (
        r"fits alone; with this placement: needs 3 pods \(nvidia.com/gpu 1 each\) in one HyperNode of tier <= 1; "
        r"the roomiest \((l\d), tier 1\) has room for (\d), 1 too few; the room went to "
        r"PodGroup default/(\w) \(\d pods\)"
    )
    told = re.match(text, reason.message)
    assert told, reason.message
    assert told[2] == "2"


def test_outcompeted_for_a_host_port() -> None:
    world = on("n0 n1")
    world.running("r", "n1", ports=[port(80)])
    world.pod("a", ports=[port(80)], priority=1)
    world.pod("b", ports=[port(80)])
    message = (
        "fits alone; with this placement: 0/2 nodes have room for a pod of nvidia.com/gpu 1: 2 host port taken; "
        "Node n0 comes nearest: host port 0.0.0.0:80/TCP is taken by Pod default/a; "
        "the room went to Pod default/a (1 pod)"
    )
    assert only(world) == ("Outcompeted", message)


@pytest.mark.parametrize("gpu", [8, 64])
def test_a_pod_larger_than_every_node_and_its_queue(gpu: int) -> None:
    """What it asks is told as it is written, and a queue that has room is not blamed."""
    world = on("n0", 4)
    world.queue("q", gpu=8)
    world.pod("small", queue="q")
    world.pod("p", gpu=16, queue="q")
    assert only(world) == ("QueueCapability", "needs nvidia.com/gpu 16 in Queue q: capability 8, 0 of it taken")
    world = on("n0", 4)
    world.queue("q", gpu=64)
    world.pod("p", gpu=gpu, queue="q")
    code, message = only(world)
    assert code == "InsufficientResources"
    assert f"Node n0 comes nearest: nvidia.com/gpu 4 free, {gpu - 4} too few" in message


def test_elastic_groups_are_told_what_they_need_and_not_what_they_could_use() -> None:
    world = on("n0 n1", 1)
    world.pods_of("a b c d e", world.gang("g", 3))
    message = "needs room for at least 3 of its 5 pods of nvidia.com/gpu 1; the nodes have room for 2 in all"
    assert only(world) == ("InsufficientResources", message)
    world = on("n0", 8)
    world.queue("q", gpu=2)
    world.pods_of("a b c d e", world.gang("g", 3, queue="q"))
    assert only(world) == ("QueueCapability", "needs nvidia.com/gpu 3 in Queue q: capability 2, 0 of it taken")


def test_a_policy_that_puts_something_before_placing() -> None:
    world = World(Policy(levels=("packing", "placed")))
    world.node("n0")
    world.pod("p")
    assert only(world) == ("Outcompeted", "fits alone; the policy puts packedHyperNodes, packedNodes before placing it")


def test_optional_pods_of_a_group_that_runs() -> None:
    world = leaves()
    world.pods_of("a0 a1 a2 a3 a4", world.gang("a", 2, topology=hard(1)))
    message = (
        "ready; with 1 pod more: needs 5 pods (nvidia.com/gpu 1 each) in one HyperNode of tier <= 1; "
        "the roomiest (l0, tier 1) has room for 4, 1 too few"
    )
    assert only(world) == ("TopologyTooNarrow", message)


@pytest.mark.parametrize("capability", [None, 2])
def test_optional_pods_need_room_for_one_of_them_only(capability: int | None) -> None:
    world = on("n0", 2)
    if capability:
        world.queue("q", gpu=capability)
    world.pods_of("a b", world.gang("g", 0, queue="q" if capability else None), 2)
    world.pod("big", gpu=2, priority=10)
    message = (
        "fits alone; with this placement: ready; with 1 pod more: 0/1 nodes have room for a pod of nvidia.com/gpu 2: "
        "1 insufficient nvidia.com/gpu; Node n0 comes nearest: nvidia.com/gpu 0 free, 2 too few; "
        "the room went to Pod default/big (1 pod)"
    )
    assert only(world) == ("Outcompeted", message)


def test_optional_pods_of_which_one_is_not_supported() -> None:
    world = on("n0", 2)
    gang = world.gang("g", 1)
    world.pods_of("a", gang, 2)
    world.pod("b", gang, unsupported=["spec.resourceClaims: gpu"])
    world.pod("c", gang, gpu=2)
    message = (
        "ready; with 1 pod more: needs room for 2 pods of nvidia.com/gpu 2; the nodes have room for 1 in all, 1 too few"
    )
    assert only(world) == ("InsufficientResources", message)


def one_more(instance: Instance, dense: Dense, key: GroupKey, placement: Placement) -> bool:
    """Whether brute force places as many pods of each class of a group alone, and more."""
    now = Counter(dense.class_of[pod] for pod in instance.groups[key].pending if pod in placement.node_of)
    alone = placements(carried_out(instance, Placement(), key))
    return any(Counter(map(dense.class_of.__getitem__, each.node_of)) > now for each in alone)


def test_reasons_are_true() -> None:
    """Outcompeted: brute force places the group alone, or more of a ready group. Any other reason: it does not."""
    codes: Counter[str] = Counter()
    for seed in range(250):
        instance = tiny(seed).instance
        dense = make_dense(instance)
        solution = greedy(dense)
        placement = dense.placement(solution)
        outcome = Outcome(instance, placement)
        told = reasons(instance, dense, solution)
        assert set(told) == {
            key for key, group in instance.groups.items() if set(group.pending) - set(placement.node_of)
        }
        for key, reason in told.items():
            codes[reason.code] += 1
            if instance.policy.levels[:1] == ("placed",) and reason.code != "NotDecided":
                group = instance.groups[key]
                alone = best(carried_out(instance, Placement(), key))[1].node_of
                fits = one_more(instance, dense, key, placement) if outcome.ready(group) else bool(alone)
                assert fits == (reason.code == "Outcompeted"), f"seed {seed}: {key}: {reason}"
    names = "InvalidGroup GangIncomplete Unsupported NoEligibleNode QueueClosed QueueCapability"
    assert set(codes) >= {*names.split(), "InsufficientResources", "TopologyTooNarrow", "Outcompeted"}
    assert codes["NotDecided"] <= 0.02 * codes.total()


def test_hyper_nodes_that_are_left_out_are_named_where_nothing_else_holds_a_node() -> None:
    rack_0, rack_1 = hyper_node("rack-0", 1, nodes=("a", "b")), hyper_node("rack-1", 1, nodes=("b", "c"))
    limit = {"mode": "hard", "highestTierAllowed": 1}
    instance = instance_of(
        *(node(name) for name in "abc"),
        rack_0,
        rack_1,
        pod_group("g", minMember=1, networkTopology=limit),
        pod("p", group="g"),
    )
    reason = found(instance)["g"]
    assert reason.code == "TopologyTooNarrow"
    says = "needs a HyperNode of tier <= 1; none holds a node (left out, as the findings say why: rack-0, rack-1)"
    assert reason.message == says


def ending(name: str, on: str, group: str | None = None, **requests: object) -> Document:
    held = pod(name, node=on, group=group, **requests)
    return {**held, "metadata": {**held["metadata"], "deletionTimestamp": "2026-01-01T00:00:00Z"}}


@pytest.mark.parametrize(
    ("documents", "says"),
    [
        (
            [pod("r", node="n", cpu=4), ending("t", "n", cpu=2), pod("p", cpu=6)],
            "cpu 2 free, 4 too few; being deleted already: Pod default/t holds cpu 2 of Node n",
        ),
        (
            [pod("r", node="n", cpu=2), ending("t", "n", cpu=4), *(pod(f"g{at}", group="g", cpu=2) for at in range(4))],
            "1 in all, 3 too few; being deleted already: Pod default/t holds cpu 4 of Node n",
        ),
        (
            [
                pod("r", node="n", cpu=2, group="h"),
                ending("t", "n", group="h", cpu=2),
                pod("q0", group="q", cpu=5),
            ],
            "4 of it taken (of this 2 by Pod default/t, being deleted already)",
        ),
    ],
    ids=["on the nearest node", "of a gang", "in a queue"],
)
def test_a_pod_that_is_being_deleted_and_holds_a_part_is_named(documents: list[Document], says: str) -> None:
    groups = [
        pod_group("g", minMember=4),
        pod_group("h", minMember=1, queue="q"),
        pod_group("q", minMember=1, queue="q"),
    ]
    instance = instance_of(node("n"), queue("q", {"cpu": 6}), *groups, *documents)
    (why,) = found(instance).values()
    assert says in why.message
    assert "it fits once" not in why.message
