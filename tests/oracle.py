"""The optimum of a tiny instance by trying everything: no solver, no array, no bound, only the executable rules.

Every placement that the rules of :mod:`placer.rules` allow is looked at and scored by :mod:`placer.rules.scoring`.
Three things keep that short, and none of them looks at the objective:

* a branch ends where a rule is broken that no further pod can mend (all but C5 and C6, which are then checked group by
  group: no pod of another group changes them; and C8 under ``majority``, which is checked at the end, as C10 is: a
  placement is valid if the pods of each node have an order that its kubelet admits, and is given in that order);
  C12 and C14 are checked at the end, too: with an order in which each pod is admitted;
* equal pods of a group are counted, not named;
* of placements that differ only by renaming equal nodes or equal groups, the lexicographically greatest is looked at.

What C8, C9 and O3 say of the best placement is said by :mod:`tests.pairs` once more, pair by pair. Orders for C10 come
from :mod:`tests.numa_naive`, those for C12 from :mod:`tests.neighbours_naive`, which try them all.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice

from placer.problem import Group, GroupKey, Instance, Key, Node, Pod, PodState
from placer.problem.numa import NumaNode
from placer.problem.outcome import Outcome
from placer.problem.placement import Placement, Score, better
from placer.rules import RULES, Rule, verify
from placer.rules.scoring import score
from tests.neighbours_naive import some_order as some_affinity_order
from tests.numa_naive import some_order
from tests.pairs import Pairs

#: Rules that a partly built placement may break because pods still to come can mend it.
MENDABLE = ("C5", "C6")
#: The same of rules that pods of other groups can mend.
MENDED_BY_OTHERS = {"majority": ("C8", "C12", "C14"), "all": ("C12", "C14")}

#: Per class of equal pods of a group, how many go to each node.
Counts = tuple[tuple[int, ...], ...]


def best(instance: Instance) -> tuple[Score, Placement]:
    """The best score there is and a placement that has it."""
    found: tuple[Score, Placement] | None = None
    for placement in placements(instance):
        value = score(instance, placement)
        if found is None or better(value, found[0]):
            found = value, placement
    assert found is not None, "placing nothing is always allowed"
    assert verify(instance, found[1]) == []
    if instance.network is not None:
        _assert_pairs(instance, *found)
    return found


def _assert_pairs(instance: Instance, value: Score, placement: Placement) -> None:
    pairs = Pairs(instance, placement)
    off = instance.policy.rules_off
    majority = instance.policy.network_cost == "majority"
    assert "C8" in off or (pairs.surplus() if majority else pairs.cost_above_limits()) == 0
    assert "C9" in off or not pairs.bandwidth_above_capacity()
    assert [each.value for each in value if each.name == "networkCost"] in ([], [pairs.network_cost()])


def placements(instance: Instance) -> Iterator[Placement]:
    """Every valid placement, one of each kind; the one that places nothing among them."""
    return Search(instance).placements()


def holds(instance: Instance, placement: Placement, rules: Iterable[Rule]) -> bool:
    """Whether a placement keeps rules; the first violation ends it, so of many placements it is told sooner than by
    :func:`placer.rules.verify`.
    """
    outcome = Outcome(instance, placement)
    return not any(True for rule in rules for _ in rule(outcome))


def binds(instance: Instance, rule: str, optimum: Score, most: int = 2000) -> bool:
    """Whether leaving the rule out is seen to make a better placement possible, among the first ``most``."""
    search = Search(let_go(instance)) if rule == "C1" else Search(instance, without=rule)
    return any(better(score(search.instance, placement), optimum) for placement in islice(search.placements(), most))


def let_go(instance: Instance) -> Instance:
    """The instance without C1: running pods count as before but no longer keep their nodes."""
    pods = {key: replace(pod, node=None) if pod.state is PodState.BOUND else pod for key, pod in instance.pods.items()}
    return replace(instance, pods=pods)


class Search:
    """All placements of an instance, one of each kind.

    Parameters
    ----------
    instance
        The problem.
    without
        A rule that is left out.
    bound_again
        Waiting pods that every placement must bind.
    promises
        Whether placements that begin with what is chosen are to be looked at.
    """

    def __init__(
        self,
        instance: Instance,
        without: str | None = None,
        bound_again: Collection[Key] = (),
        promises: Callable[[Mapping[GroupKey, Counts]], bool] = lambda _: True,
    ) -> None:
        self.instance, self.bound_again, self.promises = instance, bound_again, promises
        off = (without, *instance.policy.rules_off)
        rules = [(name, rule) for name, rule in RULES if name not in off and name != "C10"]
        self.zones = {} if "C10" in off else _zones(instance)
        self.orders: dict[object, tuple[int, ...] | None] = {}
        others = MENDED_BY_OTHERS[instance.policy.network_cost]
        self.rules = [rule for name, rule in rules if name not in others]
        self.unmendable = [rule for name, rule in rules if name not in (*MENDABLE, *others)]
        self.at_the_end = [rule for name, rule in rules if name in others and name != "C12"]
        self.near = "C12" not in off and any(pod.neighbours.affinity for pod in instance.pending)
        self.nodes = list(instance.nodes)
        waiting = (group for group in instance.groups.values() if group.pending)
        self.groups = sorted(waiting, key=lambda group: (group.pending[0] in bound_again, self._group_kind(group)))
        self.classes = {group.key: self._classes(group) for group in self.groups}
        self.options = {group.key: sorted(self._options(group), key=_size, reverse=True) for group in self.groups}
        self.equal_nodes = self._equal_nodes()

    def placements(self) -> Iterator[Placement]:
        """Every valid placement of the kinds to look at."""
        yield from self._extend(0, {}, [], ())

    def _extend(
        self, index: int, chosen: Mapping[GroupKey, Counts], rows: Sequence[tuple[int, ...]], last: Counts
    ) -> Iterator[Placement]:
        placement = self.placement(chosen)
        if index == len(self.groups):
            ordered = self._ordered(placement) if self._holds(placement, self.at_the_end) else None
            if ordered is not None:
                yield ordered
            return
        group = self.groups[index]
        twin = index > 0 and self._group_kind(self.groups[index - 1]) == self._group_kind(group)
        for option in self.options[group.key]:
            if twin and option > last:
                continue
            grown = [*rows, *option]
            if not self._leads(grown):
                continue
            more = {**chosen, group.key: option}
            if not self.promises(more):
                continue
            if not any(map(any, option)) or self._holds(self.placement(more), self.unmendable):
                yield from self._extend(index + 1, more, grown, option)

    def _options(self, group: Group) -> Iterator[Counts]:
        """What the rules allow the group when it is alone."""
        for counts in self._fill(group, ()):
            if self._holds(self.placement({group.key: counts}), self.rules):
                yield counts

    def _fill(self, group: Group, done: Counts) -> Iterator[Counts]:
        """Extend the counts by the classes still to come, as far as nothing is broken for good."""
        if len(done) == len(self.classes[group.key]):
            yield done
            return
        members = self.classes[group.key][len(done)]
        for row in _rows(len(members), len(self.nodes)):
            if members[0] in self.bound_again and sum(row) < len(members):
                continue
            counts = (*done, row)
            if self._holds(self.placement({group.key: counts}), self.unmendable):
                yield from self._fill(group, counts)

    def placement(self, chosen: Mapping[GroupKey, Counts]) -> Placement:
        """Name the pods that the counts mean: of each class the first ones, node by node."""
        pairs: list[tuple[Key, str]] = []
        for key, counts in chosen.items():
            for members, row in zip(self.classes[key], counts, strict=False):
                targets = [name for name, count in zip(self.nodes, row, strict=True) for _ in range(count)]
                pairs += zip(members, targets, strict=False)
        return Placement.of(pairs)

    def _ordered(self, placement: Placement) -> Placement | None:
        """The placement with the pods of each node in an order that its kubelet admits; None where there is none."""
        pairs = [(binding.pod, binding.node) for binding in placement.bindings if binding.node not in self.zones]
        for name, node in self.zones.items():
            pods = [binding.pod for binding in placement.bindings if binding.node == name]
            demands = tuple(self.instance.pods[key].numa for key in pods)
            if (name, demands) not in self.orders:
                self.orders[name, demands] = some_order(node, demands)
            order = self.orders[name, demands]
            if order is None:
                return None
            pairs += [(pods[index], name) for index in order]
        return self._admitted(Placement.of(pairs)) if self.near else Placement.of(pairs)

    def _admitted(self, placement: Placement) -> Placement | None:
        """The placement in an order in which each pod is admitted by those before it (C12); None: there is none."""
        pairs = [(binding.pod, binding.node) for binding in placement.bindings]
        kubelets = [rule for name, rule in RULES if name == "C10" and self.zones]
        order = some_affinity_order(self.instance, pairs, lambda found: self._holds(Placement.of(found), kubelets))
        return None if order is None else Placement.of(order)

    def _holds(self, placement: Placement, rules: Iterable[Rule]) -> bool:
        return holds(self.instance, placement, rules)

    def _leads(self, rows: Sequence[tuple[int, ...]]) -> bool:
        """Whether no exchange of equal nodes makes the rows lexicographically greater."""
        return all([row[first] for row in rows] >= [row[second] for row in rows] for first, second in self.equal_nodes)

    def _equal_nodes(self) -> list[tuple[int, int]]:
        """Neighbouring pairs of nodes that nothing tells apart."""
        seen: dict[object, int] = {}
        pairs = []
        for index, name in enumerate(self.nodes):
            kind = self.node_kind(self.instance.nodes[name])
            if kind in seen:
                pairs.append((seen[kind], index))
            seen[kind] = index
        return pairs

    def node_kind(self, node: Node) -> object:
        """What tells a node from others; one that holds something already is like no other."""
        if any(pod.node == node.name for pod in self.instance.pods.values()):
            return node.name
        admitted = tuple(pod.constraints.admits(node) for pod in self.instance.pending)
        network = self.instance.network
        area = network.area(node.name) if network is not None else None
        if any(pod.neighbours for pod in self.instance.pods.values()):
            area = (area, tuple(sorted(node.labels.items())))
        return node.allocatable, self.instance.topology.leaf.get(node.name), admitted, area, node.numa

    def _group_kind(self, group: Group) -> str:
        """What tells a group from others; only pods in no group can be alike."""
        pod = self.instance.pods[group.pending[0]]
        again = group.pending[0] in self.bound_again
        alike = (group.min_member, group.priority, group.invalid, again, kind_of(pod))
        return repr(group.key if group.key.api_group else alike)

    def _classes(self, group: Group) -> list[list[Key]]:
        """The group's pending pods in sets of equal ones."""
        found: dict[object, list[Key]] = {}
        for key in group.pending:
            found.setdefault((key in self.bound_again, kind_of(self.instance.pods[key])), []).append(key)
        return list(found.values())


def kind_of(pod: Pod) -> object:
    """Everything about a pending pod that can matter, its name apart."""
    home = (pod.app_group, pod.workload, pod.numa, pod.neighbours, tuple(sorted(pod.labels.items())))
    return pod.requests, pod.constraints, pod.host_ports, pod.sub_group, pod.role, pod.queue, pod.unsupported, home


def _zones(instance: Instance) -> dict[str, NumaNode]:
    """Nodes whose kubelets refuse what they cannot align."""
    found = {name: node.numa for name, node in instance.nodes.items() if node.numa is not None}
    return {name: node for name, node in found.items() if node.policy in ("single-numa-node", "restricted", "unknown")}


def _size(counts: Counts) -> int:
    """How many pods are placed."""
    return sum(map(sum, counts))


def _rows(most: int, width: int) -> Iterator[tuple[int, ...]]:
    """Every way to put at most ``most`` equal things into ``width`` places."""
    if not width:
        yield ()
        return
    for count in range(most + 1):
        for rest in _rows(most - count, width - 1):
            yield (count, *rest)
