"""The objective, executable and free of any solver: how good a placement is, in exact integers (models/README.md)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator

from placer.problem import Instance, PodState
from placer.problem.communication import SAME_ZONE_COST
from placer.problem.disruption import Disruption
from placer.problem.outcome import Outcome
from placer.problem.placement import Placement, Score, Value

#: A level of the objective: yields its values in the order they are compared.
LevelScore = Callable[[Outcome], Iterator[Value]]


def score(instance: Instance, placement: Placement, *, disturbing: bool = False) -> Score:
    """Evaluate a placement, valid or not; bindings that cannot be carried out count for nothing.

    ``disturbing``: something may be evicted or moved, though this placement does not: the values are in the order of D1
    to D5. Names and priorities are the same for every placement of the instance, but for ``evicted`` and
    ``evictedUnits``, which stand for the priorities that lose something.
    """
    if not (disturbing or placement.disturbs):
        return level_values(Outcome(instance, placement))
    return tuple(_values(Disruption(instance, placement)))


def level_values(outcome: Outcome) -> Score:
    """The values of the levels in the order of the policy, whatever the outcome disturbs."""
    return tuple(value for name in outcome.instance.policy.levels for value in LEVEL_SCORES[name](outcome))


def _values(disruption: Disruption) -> Iterator[Value]:
    before, after = disruption.instance, disruption.outcome
    gained = tuple(placed(after)) if "placed" in before.policy.levels else ()
    yield from (value for value in gained if value.name == "admitted")
    yield from disturbed(disruption)
    yield from (value for value in gained if value.name == "placed")
    for name in before.policy.levels:
        if name != "placed":
            yield from LEVEL_SCORES[name](after)


def disturbed(disruption: Disruption) -> Iterator[Value]:
    """``evicted`` and ``evictedUnits`` for each priority that loses something, highest first, then ``moved``,
    ``movedUnits``.

    evicted and moved are sums of the weights of the pods that go, in micro-nodes, the others numbers of units (D1). A
    unit of which some pods are moved and some evicted breaks D1 and counts as evicted.
    """
    weights = disruption.instance.weights_of(disruption.instance.pods[key] for key in disruption.gone)
    evicted: Counter[int] = Counter()
    evicted_units: Counter[int] = Counter()
    moved_units = 0
    for unit in disruption.units:
        lost = [key for key in unit.pods if key in disruption.gone and key not in disruption.moved]
        evicted[unit.priority] += sum(weights[key] for key in lost)
        evicted_units[unit.priority] += bool(lost)
        moved_units += not lost
    for priority in sorted(+evicted_units, reverse=True):
        yield Value("evicted", evicted[priority], priority)
        yield Value("evictedUnits", evicted_units[priority], priority)
    yield Value("moved", sum(weights[key] for key in disruption.moved))
    yield Value("movedUnits", moved_units)


def placed_weight(instance: Instance, placement: Placement) -> int:
    """Sum of the weights of all newly placed pods, in micro-nodes."""
    return sum(instance.weights[key] for key in Outcome(instance, placement).new)


def placed(outcome: Outcome) -> Iterator[Value]:
    """O1: for each distinct priority of groups with pending pods, highest first, ``admitted`` and ``placed``, in
    micro-nodes.

    admitted = sum of need weights of the groups that are ready (C5); placed = sum of the weights of the newly placed
    pods. Only pods that wait before anything is disturbed count.
    """
    instance = outcome.before
    admitted = dict.fromkeys(instance.priorities, 0)
    weight = dict.fromkeys(instance.priorities, 0)
    for group in instance.groups.values():
        if group.pending:
            weight[group.priority] += sum(instance.weights[key] for key in outcome.added(group.pending))
            # Bound pods alone need nothing more: only what this placement completes adds to the sum.
            after = outcome.instance.groups[group.key]
            admitted[group.priority] += instance.need_weights[group.key] if outcome.ready(after) else 0
    for priority in instance.priorities:
        yield Value("admitted", admitted[priority], priority)
        yield Value("placed", weight[priority], priority)


def locality(outcome: Outcome) -> Iterator[Value]:
    """O2: ``locality`` and ``span`` over all groups and subgroups with a networkTopology, hard or soft.

    locality = sum of placed pods × tier of their smallest common HyperNode; span = sum of the leaf HyperNodes that
    their placed pods touch, a node in no HyperNode being a leaf of its own. Bound pods of the scope count, too.
    """
    tree = outcome.instance.topology
    total = span = 0
    for scope in outcome.scopes():
        nodes = (*scope.before, *scope.new)
        if nodes:
            total += len(nodes) * tree.tier(tree.smallest_common(nodes))
            # (True, leaf) and (False, node): a HyperNode and a node may share a name.
            span += len({(True, tree.leaf[node]) if node in tree.leaf else (False, node) for node in nodes})
    yield Value("locality", total)
    yield Value("span", span)


def network_cost(outcome: Outcome) -> Iterator[Value]:
    """O3: ``networkCost``, the sum over all placed pairs of all dependencies of their cost.

    A pair costs 0 on one node, 1 in one zone, else the entry of the link from caller to callee, 100 without an entry.
    Pairs of two bound pods count, too. Without any NetworkTopology the level has no value.
    """
    network = outcome.instance.network
    if network is None:
        return
    total = 0
    for flow in outcome.flows:
        callers, callees = flow.callers.after, flow.callees.after
        total += sum(pairs * network.area_cost(one, other) for one, other, pairs in callers.pairs(callees))
        total -= callers.pairs_on_one_node(callees) * SAME_ZONE_COST
    yield Value("networkCost", total)


def packing(outcome: Outcome) -> Iterator[Value]:
    """O4: ``packedHyperNodes`` and ``packedNodes``, whatever was empty before and is no longer.

    A node or HyperNode is empty while only DaemonSet and static pods run there; terminating and nominated pods do not
    count either. HyperNodes of any tier count, the virtual root does not.
    """
    instance = outcome.instance
    used = used_nodes(outcome.before)
    opened = {node for key, node in outcome.new.items() if node not in used and not instance.pods[key].daemon}
    path = instance.topology.path
    used_above = {name for node in used for name in path(node)}
    opened_above = {name for node in opened for name in path(node)}
    yield Value("packedHyperNodes", len(opened_above - used_above))
    yield Value("packedNodes", len(opened))


def used_nodes(instance: Instance) -> set[str]:
    """Nodes on which more than DaemonSet and static pods run (O4)."""
    bound = (pod for pod in instance.pods.values() if pod.state is PodState.BOUND and not pod.daemon)
    return {pod.node for pod in bound if pod.node is not None}


#: Level name of the policy to its function.
LEVEL_SCORES: dict[str, LevelScore] = {
    "placed": placed,
    "locality": locality,
    "networkCost": network_cost,
    "packing": packing,
}
