"""What goes for groups that wait: the least there is by trying everything, and bounds that are never beaten."""

from __future__ import annotations

from dataclasses import replace

import pytest

from placer.answers.making_room import preempt
from placer.answers.summary.preempting import preempt_lines
from placer.base.deadline import NEVER
from placer.problem import Dependency, Instance, Key
from placer.problem.disruption import Disruption
from placer.problem.disruptions import limited
from placer.problem.instance import DisruptionBudget
from placer.problem.placement import Placement, better
from placer.problem.result import Verdict
from placer.rules import verify
from placer.rules.scoring import score
from placer.search.events import SearchOptions
from placer.search.preempt.domains import DomainSearch, disturbance
from placer.search.preempt.first_plan import Carried, Known
from placer.search.preempt.lifting import may_be_disturbed, waiting
from placer.search.preempt.method import _Search, search
from tests.disturbing import whole
from tests.examples import seed_blocks
from tests.oracle_disruption import best_preempting, only_for
from tests.shrink import describe
from tests.support import instance_of, pod, policy
from tests.support import node as node_of
from tests.tiny_disruption import tiny_disruption
from tests.world import World, apart, both, hard, near


def within_limits(seed: int) -> Instance:
    """The instance of a seed as a pass with a Policy has it: it may not evict, or not move, or only so many pods."""
    instance = tiny_disruption(seed).instance
    most = limited(Key("", "default"), seed % 4, instance.pods)
    budgets = (*instance.budgets, most)
    return replace(instance, may_evict=seed % 3 != 0, may_move=seed % 3 != 1, budgets=budgets)


@pytest.mark.parametrize("seeds", seed_blocks(64, 4))
def test_the_least_within_the_limits_of_a_policy_is_found(seeds: range) -> None:
    for seed in seeds:
        instance = within_limits(seed)
        found = preempt(instance, time_limit=None, workers=1)
        assert found.placement is not None
        assert verify(instance, found.placement) == []
        best = best_preempting(instance)[0]
        assert score(instance, found.placement, disturbing=True) == best, f"seed {seed}\n{describe(instance)}"


def test_what_a_bound_does_not_name_is_not_lost_in_it() -> None:
    """The domains bound priority 0 alone; the answer evicts a pod of priority 5 as well, and less of 0."""
    instance = tiny_disruption(278).instance
    result = preempt(only_for(instance, waiting(instance)[0].key), time_limit=None, workers=1)
    assert [each.code for each in result.findings] == []
    assert result.verdict is Verdict.OPTIMAL


# ------------------------------------------------------------------------------------------------- worked out by hand


def full_racks(racks: int, *, spare: int = 0) -> World:
    """Racks of two nodes of 4 GPUs, each node full with a gang of two; in the last rack with one gang of 2 and a lone
    pod; ``spare`` more nodes that are empty, in no rack.
    """
    world = World()
    for rack in range(racks):
        names = [f"n{rack}0", f"n{rack}1"]
        for name in names:
            world.node(name, 4)
        world.hyper(f"r{rack}", 1, " ".join(names))
        for name in names:
            if (rack, name) == (racks - 1, names[0]):
                world.running("lone", name, None, 4)
            else:
                gang = world.gang(f"g-{name}", 2, priority=0)
                world.running(f"{name}-a", name, gang, 2)
                world.running(f"{name}-b", name, gang, 2)
    for number in range(spare):
        world.node(f"s{number}", 4)
    train = world.gang("train", 1, topology=hard(1), priority=10)
    world.pods_of("train-0", train, 4)
    return world


def test_one_unit_goes_where_one_will_do_and_that_is_proved() -> None:
    """The lone pod and any gang weigh the same, so that one of them goes, and no group is touched in part."""
    result = preempt(full_racks(3).instance(), time_limit=None, workers=1)
    placement = result.placement or Placement()
    assert result.verdict is Verdict.OPTIMAL
    assert len(Disruption(result.instance, placement).units) == 1
    assert not placement.moves
    assert placement.evictions


def test_domains_prove_the_least_without_the_whole_model() -> None:
    instance = full_racks(40).instance()
    (group,) = waiting(instance)
    domains = DomainSearch(instance, group, NEVER)
    placements = list(domains.run())
    assert placements
    assert domains.best.found
    assert domains.bound is not None
    assert not better(domains.bound, disturbance(domains.best.values))


def test_nothing_goes_for_a_group_that_does_not_fit_then() -> None:
    world = full_racks(2)
    huge = world.gang("huge", 9, topology=hard(1), priority=20)
    world.pods_of(" ".join(f"huge-{each}" for each in range(9)), huge)
    result = preempt(world.instance(), time_limit=None, workers=1)
    assert result.verdict is Verdict.INFEASIBLE
    placement = result.placement or Placement()
    assert {key.name for key in placement.node_of} == {"train-0"}
    assert placement.evictions


def kept_by_a_queue(*, beside: bool) -> World:
    """Two nodes; on one a pod of a queue that is not reclaimable, on the other two; one of no queue waits."""
    world = World()
    world.nodes("n1 n2", 2)
    world.queue("kept")
    world.queues["kept"] = replace(world.queues["kept"], reclaimable=False)
    world.running("a", "n1", None, 2, queue="kept")
    for name in "bc" if beside else "":
        world.running(name, "n2")
    if not beside:
        world.running("d", "n2", None, 2, queue="kept")
    world.pod("new", None, 2, priority=5)
    return world


def test_what_a_queue_keeps_stays_and_it_is_said_how_much_more_goes_for_it() -> None:
    found = preempt(kept_by_a_queue(beside=True).instance(), time_limit=None, workers=1)
    assert found.placement is not None
    assert sorted(key.name for key in found.placement.evictions) == ["b", "c"]
    told = [each.message for each in found.findings if each.code == "ProtectionCosts"]
    assert told == ["1 more unit goes since Queue kept is not reclaimable"]


def test_where_all_is_kept_nothing_goes_and_it_is_said_why() -> None:
    instance = kept_by_a_queue(beside=False).instance()
    found = preempt(instance, time_limit=None, workers=1)
    assert not (found.placement or Placement()).disturbs
    assert found.verdict is Verdict.INFEASIBLE
    said = "Cannot be had, which is proved: 0 of 1 group admitted. "
    said += "Pods of equal or higher priority are never evicted; they may be moved."
    assert next(preempt_lines(found)) == said
    told = [each.message for each in found.findings if each.code == "ProtectionCosts"]
    assert told == ["default/new is not admitted since Queue kept is not reclaimable"]
    quiet = preempt(instance, time_limit=None, workers=1, costs=False)
    assert "ProtectionCosts" not in {each.code for each in quiet.findings}


def test_zones_of_a_pod_that_goes_stay_taken_and_it_is_said() -> None:
    cpu = {"name": "cpu", "capacity": "8", "allocatable": "8", "available": "2"}
    kubelet = {
        "apiVersion": "topology.node.k8s.io/v1alpha2",
        "kind": "NodeResourceTopology",
        "metadata": {"name": "n"},
        "topologyPolicies": ["SingleNUMANodeContainerLevel"],
        "zones": [{"name": "node-0", "type": "Node", "resources": [cpu]}],
    }
    amounts = {"cpu": "6", "memory": "1Gi"}
    container = {"name": "main", "image": "x", "resources": {"requests": amounts, "limits": amounts}}
    runs, asks = (pod(name, node=at, priority=rank) for name, at, rank in (("old", "n", 0), ("new", None, 10)))
    for each in (runs, asks):
        each["spec"]["containers"] = [container]
    evicting = policy(disruption={"evict": "lower-priority"})
    instance = instance_of(node_of("n", cpu=8, memory="8Gi"), kubelet, runs, asks, evicting)
    found = preempt(instance, time_limit=None, workers=1)
    assert next(preempt_lines(found)).endswith("NUMA zones of pods that go count as taken, since no object names them.")


def test_without_time_it_is_said_that_the_cost_of_protections_is_not_known() -> None:
    found = preempt(kept_by_a_queue(beside=False).instance(), time_limit=0.0, workers=1)
    said = "Not found in 0 s: 0 of 1 group admitted, which is not proved to be all. Try a longer --time-limit."
    assert next(preempt_lines(found)) == said
    (told,) = (each.message for each in found.findings if each.code == "ProtectionCosts")
    assert told.startswith("There was no time")
    assert told.endswith("Queue kept is not reclaimable")


def test_a_group_of_its_own_queue_takes_what_a_queue_keeps_from_others() -> None:
    world = kept_by_a_queue(beside=False)
    world.pod("own", None, 2, priority=9, queue="kept")
    found = preempt(world.instance(), time_limit=None, workers=1)
    assert found.placement is not None
    assert len(found.placement.evictions) == 2  # one of the two for the other group, as D2 has it
    assert {each.pod.name for each in found.placement.bindings} == {"own", "new"}


def test_a_pod_that_is_protected_stays() -> None:
    world = full_racks(1)
    instance = world.instance()
    pods = {key: replace(pod, protected="the Policy protects it") for key, pod in instance.pods.items() if pod.node}
    result = preempt(replace(instance, pods={**instance.pods, **pods}), time_limit=None, workers=1)
    assert (result.placement or Placement()).node_of.get(Key("default", "train-0")) is None
    assert result.verdict is Verdict.INFEASIBLE


# ------------------------------------------------------------------------------------ what runs, and pods around it


def labelled(*nodes: tuple[str, int]) -> World:
    """Nodes with so many GPUs, each a domain of ``host``."""
    world = World()
    for name, gpu in nodes:
        world.node(name, gpu, labels={"host": name})
    return world


def decided(world: World) -> Placement:
    """What the whole model finds; it is proved to be the least, and is what trying everything finds."""
    instance = world.instance()
    placement, bounds, ended = whole(instance)
    assert verify(instance, placement) == []
    assert ended == "proved"
    assert bounds
    assert score(instance, placement, disturbing=True) == best_preempting(instance)[0]
    return placement


def test_what_cannot_go_keeps_what_it_needs_near() -> None:
    """The database on n0 is the one that goes: the cache beside the other one must not be left without."""
    world = labelled(("n0", 2), ("n1", 3))
    world.running("db-0", "n0", None, 2, labels={"app": "db"})
    world.running("db-1", "n1", None, 2, labels={"app": "db"})
    world.running("cache", "n1", None, 1, priority=20, asks=near("host", app="db"))
    world.pods_of("new", world.gang("new", 1, priority=10), 2)
    assert decided(world).evictions == (Key("default", "db-0"),)


def test_what_stays_and_means_itself_needs_no_other() -> None:
    """Both others go: each of the two that stay has itself near, though neither could come as the first now."""
    world = labelled(("n0", 2), ("n1", 2))
    for node in ("n0", "n1"):
        world.running(f"stays-{node}", node, None, 1, priority=20, labels={"app": "x"}, asks=near("host", app="x"))
        world.running(f"goes-{node}", node, None, 1, labels={"app": "x"})
    world.pods_of("new-0 new-1", world.gang("new", 2, priority=10), 1)
    assert {key.name for key in decided(world).evictions} == {"goes-n0", "goes-n1"}


def test_what_is_moved_comes_after_who_has_to_be_the_first() -> None:
    """The new pod is admitted as long as nothing that it means is there: so it is bound before the one that moves."""
    world = labelled(("n0", 1), ("n1", 2))
    world.running("moves", "n1", None, 1, labels={"app": "x"}, asks=apart("host", app="y"))
    gang = world.gang("new", 1, priority=10)
    world.pod("new", gang, 2, labels={"app": "x"}, asks=both(near("host", app="x"), apart("host", app="y")))
    placement = decided(world)
    assert [move.node for move in placement.moves] == ["n0"]
    assert [key.name for step in placement.steps for key in step.bind] == ["new", "moves"]


def far_from_its_store(*, capacity: int | None = None) -> World:
    """A cart far from the store that it calls, and the shop that waits calls both; z2 has room for two more pods."""
    world = World()
    for name, gpu, area in (("a", 2, "r/z1"), ("b1", 2, "r/z2"), ("b2", 1, "r/z2")):
        world.node(name, gpu, area=area)
    limit = 100 if capacity is not None else 0
    world.links("zone", "z1=z2", 10, capacity)
    bandwidth = None if capacity is None else 5
    calls = ("shop", "cart"), ("cart", "store"), ("shop", "store")
    app = world.app_group("app", *(Dependency(*ends, limit, bandwidth) for ends in calls))
    world.running("cart", "a", None, app=app, workload="cart")
    world.running("store", "b1", None, app=app, workload="store")
    world.pod("shop", None, app=app, workload="shop", priority=10)
    return world


@pytest.mark.parametrize("capacity", [None, 0, 4])
def test_calls_and_links_that_break_rules_as_they_stand_keep_nobody(capacity: int | None) -> None:
    """The cart and the store come together; a link that carries too much is used by nobody new."""
    placement = decided(far_from_its_store(capacity=capacity))
    assert [key.name for key in placement.node_of] == ["shop"]
    assert len(placement.moves) == 1


def test_what_a_budget_keeps_is_no_candidate_and_neither_is_what_would_go_with_it() -> None:
    """A gang of two of which a budget lets no pod go stays; of one that needs two of its three pods any one may go."""
    world = World()
    world.nodes("n0 n1 n2", 4)
    tight, loose = world.gang("tight", 2), world.gang("loose", 2)
    for node in ("n0", "n1"):
        world.running(f"tight-{node}", node, tight)
    for node in ("n0", "n1", "n2"):
        world.running(f"loose-{node}", node, loose)
    world.running("alone", "n2")
    instance = world.instance()
    held = [Key("default", "tight-n0"), Key("default", "loose-n0")]
    none = replace(instance, budgets=(DisruptionBudget(Key("default", "none"), frozenset(held), 0),))
    assert {key.name for key in may_be_disturbed(none, 10)} == {"alone", "loose-n1", "loose-n2"}
    one = replace(instance, budgets=(DisruptionBudget(Key("default", "one"), frozenset(held), 1),))
    assert len(may_be_disturbed(one, 10)) == 6


@pytest.mark.parametrize("queue", ["", "all"])
def test_one_lone_pod_after_another_gets_room(queue: str) -> None:
    """The second is looked at where the first, which is in no group any more, has its place."""
    world = World()
    world.node("n1", 4)
    world.node("n2", 1)
    if queue:
        world.queue(queue, gpu=100)
    for name in "ab":
        world.running(name, "n1", None, 2, priority=0)
    for name in ("new1", "new2"):
        world.pod(name, None, 2, priority=10, queue=queue or None)
    instance = world.instance()
    events: list[Carried | Known] = []
    search(instance, None, SearchOptions(workers=1), events.append)
    placement = next(each for each in reversed(events) if isinstance(each, Carried)).placement
    assert {key.name for key in placement.evictions} == {"a", "b"}
    assert score(instance, placement, disturbing=True) == best_preempting(instance)[0]


def test_a_gang_that_goes_as_one_is_moved_although_one_of_its_pods_finds_room_only_where_it_was(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(_Search, "_whole", lambda _: None)  # which would find it here
    world = World()
    world.nodes("n0 n1", 4)
    gang = world.gang("moves", 2)
    for node in ("n0", "n1"):
        world.running(f"on-{node}", node, gang, 2)
    world.pods_of("new", world.gang("new", 1, priority=10), 4)
    instance = world.instance()
    events: list[Carried | Known] = []
    search(instance, None, SearchOptions(workers=1), events.append)
    placement = next(each for each in reversed(events) if isinstance(each, Carried)).placement
    (node,) = placement.node_of.values()
    assert [move.node for move in placement.moves] == 2 * [{"n0": "n1", "n1": "n0"}[node]]
    assert not placement.evictions
    assert score(instance, placement, disturbing=True) == best_preempting(instance)[0]
