"""The methods' view: classes of equal pods, nodes in tree order, groups, scopes and queue rows by index.

Values of a solution are counted here for methods that compare many; :mod:`placer.rules.scoring` decides.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, TypeVar

import numpy as np
import numpy.typing as npt

from placer.arrays.solution import BoolArray, Counts, IntArray, Solution, placed_by_class
from placer.problem import GroupKey, HostPort, Key
from placer.problem.placement import MAXIMISED, Placement, Score

if TYPE_CHECKING:
    from placer.arrays.dense_neighbours import DenseNeighbours
    from placer.arrays.network import DenseNetwork
    from placer.arrays.numa import DenseNuma

_Number = TypeVar("_Number", np.int64, np.float64)


@dataclass(frozen=True)
class PodClass:
    """Pending pods that no rule and no value can tell apart, older first.

    ``group``, ``sub_group``: indices; -1: in none. ``request``: shape (resources,), scaled. ``weight``: micro-nodes of
    one pod. ``mask``: row of ``Dense.masks`` (C3). ``host_ports``: not empty: at most one per node. ``daemon``: does
    not make its node count as used (O4). ``zones``, ``neighbours``: numbers of their demands on NUMA zones (C10), and
    of those on and of other pods (C7 by label, C12 to C15); -1: none.
    """

    pods: tuple[Key, ...]
    group: int
    sub_group: int
    role: str
    request: IntArray
    weight: int
    mask: int
    host_ports: tuple[HostPort, ...] = ()
    daemon: bool = False
    queue: str | None = None
    zones: int = -1
    neighbours: int = -1

    @property
    def shape(self) -> tuple[object, ...]:
        """Pods of one shape fit on the same nodes, equally often."""
        return self.request.tobytes(), self.mask, self.host_ports, self.zones, self.neighbours

    @property
    def tied(self) -> bool:
        """Whether a node's room is not all that counts there: host ports, zones or other pods do too."""
        return bool(self.host_ports) or self.zones >= 0 or self.neighbours >= 0

    @property
    def size(self) -> int:
        """Number of pods."""
        return len(self.pods)


@dataclass(frozen=True)
class DenseScope:
    """A group or subgroup seen by the tree (C7, O2).

    ``limit``: highest tier that its placed pods may span; None: none. ``wanted``: it counts in O2. ``bound``: nodes of
    its running pods, one per pod; -1: absent. ``lost_leaves``: distinct absent nodes that they run on.
    """

    classes: tuple[int, ...]
    limit: int | None
    wanted: bool
    bound: tuple[int, ...] = ()
    lost_leaves: int = 0


@dataclass(frozen=True)
class DenseSubGroup:
    """A subgroup with pending pods that may be placed; ``short``: new pods that it needs to be ready."""

    name: str
    group: int
    policy: int
    classes: tuple[int, ...]
    short: int
    scope: int


@dataclass(frozen=True)
class DenseGroup:
    """A gang with pending pods that may be placed.

    ``short``, ``short_by_role``: new pods that it needs for ``minMember``, and per role. ``short_by_policy``: policy
    index to how many of ``sub_groups`` with ``short`` above 0 must still become ready. ``need_weight``: micro-nodes
    that ``admitted`` counts where the group is ready.
    """

    key: GroupKey
    classes: tuple[int, ...]
    sub_groups: tuple[int, ...]
    short: int
    short_by_role: tuple[tuple[str, int], ...]
    short_by_policy: tuple[tuple[int, int], ...]
    priority: int
    created: float
    need_weight: int
    scope: int


@dataclass(frozen=True)
class QueueRow:
    """One capability of one queue: ``request[resource] * count`` summed over ``classes`` is at most ``room`` (C11)."""

    queue: str
    resource: int
    room: int
    classes: tuple[int, ...]


@dataclass(frozen=True)
class Domains:
    """The tier tree as arrays; the last index is the virtual root.

    Domain ``d`` holds the nodes ``begin[d]:end[d]``, and a parent (-1: none) has a larger tier. int64, shape
    (domains,); ``used``: bool: not empty before (O4).
    """

    names: tuple[str | None, ...]
    tier: IntArray
    parent: IntArray
    begin: IntArray
    end: IntArray
    used: BoolArray

    @property
    def root(self) -> int:
        """Index of the virtual root."""
        return len(self.names) - 1

    def sums(self, values: npt.NDArray[_Number]) -> npt.NDArray[_Number]:
        """Sum over the nodes of each domain: shape (domains,)."""
        before = np.concatenate((np.zeros(1, dtype=values.dtype), np.cumsum(values)))
        return before[self.end] - before[self.begin]

    def within(self, domain: int, other: int) -> bool:
        """Whether a domain is another one, or lies below it."""
        return bool(self.begin[other] <= self.begin[domain] and self.end[domain] <= self.end[other])

    def common(self, leaf: int, last: int) -> int:
        """Smallest domain at or above ``leaf`` that holds a node."""
        domain = leaf
        while not self.begin[domain] <= last < self.end[domain]:
            domain = int(self.parent[domain])
        return domain


@dataclass(frozen=True)
class Dense:
    """The instance by index; everything is read-only and can be pickled.

    A method decides how many pods of each class go to each node (:class:`Solution`). Two nodes below one HyperNode, a
    gang of three trainers and a server::

        nodes       ("n1", "n2")
        domains     names ("rack", None), tier [1, 2], begin [0, 0], end [2, 2]: the rack and the virtual root
        classes     trainers: pods of group 0; the server: the pod of group 1

    ``nodes``: in tree order: every domain is a slice of them; those in no HyperNode come last. ``scale``: int per
    resource: amounts are divided by it. ``free``: int64, shape (nodes, resources): scaled, never negative, cut at the
    sum of all requests. ``masks``: bool, shape (distinct constraints, nodes): eligibility (C3). ``leaf``,
    ``span_leaf``: int64, shape (nodes,): leaf domain of each node; of nodes in no HyperNode the virtual root, one each
    for ``span``. ``node_used``: bool, shape (nodes,) (O4). ``ports``: those taken on each node. ``criteria``: name and,
    of O1, priority of each value, in the order of comparison. ``exact``: else a bound from amounts proves nothing.
    ``constant_...``: part of the value of scopes and calls without placeable pods.
    """

    nodes: tuple[str, ...]
    resources: tuple[str, ...]
    scale: tuple[int, ...]
    free: IntArray
    masks: BoolArray
    leaf: IntArray
    span_leaf: IntArray
    node_used: BoolArray
    domains: Domains
    classes: tuple[PodClass, ...]
    groups: tuple[DenseGroup, ...]
    sub_groups: tuple[DenseSubGroup, ...]
    scopes: tuple[DenseScope, ...]
    queue_rows: tuple[QueueRow, ...]
    ports: dict[int, tuple[HostPort, ...]]
    criteria: tuple[tuple[str, int | None], ...]
    network: DenseNetwork | None = None
    numa: DenseNuma | None = None
    neighbours: DenseNeighbours | None = None
    exact: bool = True
    constant_locality: int = 0
    constant_span: int = 0
    constant_network: int = 0

    @cached_property
    def node_index(self) -> dict[str, int]:
        """Node name to index."""
        return {name: index for index, name in enumerate(self.nodes)}

    @cached_property
    def with_port(self) -> Mapping[tuple[str, int], Sequence[int]]:
        """Protocol and port to the nodes on which it is taken."""
        found: dict[tuple[str, int], list[int]] = defaultdict(list)
        for node, taken in self.ports.items():
            for port in taken:
                found[port.protocol, port.port].append(node)
        return found

    @cached_property
    def requests(self) -> IntArray:
        """int64, shape (classes, resources)."""
        rows = [pod_class.request for pod_class in self.classes]
        return np.array(rows, dtype=np.int64).reshape(len(rows), len(self.resources))

    @cached_property
    def rows_of(self) -> list[tuple[tuple[int, int], ...]]:
        """Per class its queue rows, each with the amount of one pod."""
        found: list[list[tuple[int, int]]] = [[] for _ in self.classes]
        for number, row in enumerate(self.queue_rows):
            for index in row.classes:
                found[index].append((number, int(self.classes[index].request[row.resource])))
        return [tuple(rows) for rows in found]

    @cached_property
    def workload_of(self) -> dict[int, int]:
        """Class to workload of the network; a class without calls is absent."""
        workloads = self.network.workloads if self.network is not None else ()
        return {index: number for number, each in enumerate(workloads) for index in each.classes}

    @cached_property
    def area(self) -> IntArray:
        """int64, shape (nodes,): network area of each node; one for all without a network."""
        return np.zeros(len(self.nodes), dtype=np.int64) if self.network is None else self.network.area

    @cached_property
    def class_of(self) -> dict[Key, int]:
        """Pod to class index."""
        return {pod: index for index, pod_class in enumerate(self.classes) for pod in pod_class.pods}

    def fits(self, index: int, free: IntArray | None = None) -> IntArray:
        """How many pods of a class each node could take alone: int64, shape (nodes,), at most the size of the class.

        ``free``: shape (nodes, resources); default ``self.free``.
        """
        room = self.free if free is None else free
        pod_class = self.classes[index]
        asked = np.flatnonzero(pod_class.request)
        count = np.full(len(self.nodes), pod_class.size, dtype=np.int64)
        if len(asked):
            count = np.minimum(count, (room[:, asked] // pod_class.request[asked]).min(axis=1))
        if pod_class.host_ports:
            count = np.minimum(count, 1)
            count[list(self._clashing(pod_class.host_ports))] = 0
        if self.numa is not None:
            count = np.minimum(count, self.numa.most(index))
        if self.neighbours is not None:
            count = np.minimum(count, self.neighbours.most(index, pod_class.neighbours))
        count[~self.masks[pod_class.mask]] = 0
        return np.maximum(count, 0)

    def _clashing(self, ports: Sequence[HostPort]) -> Iterator[int]:
        for node in {node for port in ports for node in self.with_port.get((port.protocol, port.port), ())}:
            if any(port.clashes(other) for port in ports for other in self.ports[node]):
                yield node

    def limit_domains(self, scope: int) -> tuple[int, ...] | None:
        """Highest domains of which one must hold all pods of the scope (C7), disjoint; None: no limit."""
        limit = self.scopes[scope].limit
        if limit is None:
            return None
        tree = self.domains
        within = tree.tier <= limit
        top = within & ((tree.parent < 0) | ~within[tree.parent])
        anchor = self.anchor(scope)
        if anchor is not None:
            if tree.tier[anchor] > limit:
                return ()
            top &= (tree.begin <= tree.begin[anchor]) & (tree.end >= tree.end[anchor])
        return tuple(int(domain) for domain in np.flatnonzero(top))

    def free_beside(self, pods: Counts) -> IntArray:
        """Room that some placed pods leave, as ``free``; below 0 where they do not fit."""
        free = self.free.copy()
        for (index, node), count in pods.items():
            free[node] -= self.classes[index].request * count
        return free

    def queued(self, pods: Iterable[tuple[int, int]]) -> list[int]:
        """Per queue row the amount of some pods, given as (class, pods)."""
        taken = [0] * len(self.queue_rows)
        for index, count in pods:
            for row, amount in self.rows_of[index]:
                taken[row] += amount * count
        return taken

    def each_pod(self, classes: Iterable[int]) -> Iterator[int]:
        """The class of each pod of some classes, one after another."""
        return (index for index in classes for _ in range(self.classes[index].size))

    def weight_of(self, classes: Iterable[int]) -> int:
        """Weight of all pods of some classes."""
        return sum(self.classes[index].weight * self.classes[index].size for index in classes)

    def scopes_of(self, index: int) -> list[int]:
        """Scopes of the pods of a class: of their group, then of their subgroup."""
        one = self.classes[index]
        group = self.groups[one.group].scope
        return [group] if one.sub_group < 0 else [group, self.sub_groups[one.sub_group].scope]

    def anchor(self, scope: int) -> int | None:
        """Smallest domain that holds the running pods of a scope; None where none runs."""
        return self.common(self.scopes[scope].bound)

    def common(self, nodes: Iterable[int]) -> int | None:
        """Smallest domain that holds the nodes (-1: absent); None: of none."""
        found = sorted(set(nodes))
        if not found:
            return None
        if found[0] < 0:
            return self.domains.root
        return self.domains.common(int(self.leaf[found[0]]), found[-1])

    def with_constants(self, counted: Sequence[int], before: Score) -> Dense:
        """Set the constants so that placing nothing scores ``before``."""
        rest = {value.name: value.value - mine for value, mine in zip(before, counted, strict=True)}
        names = {"constant_locality": "locality", "constant_span": "span", "constant_network": "networkCost"}
        return replace(self, **{field: rest.get(name, 0) for field, name in names.items()})  # type: ignore[arg-type]

    def placement(self, solution: Solution) -> Placement:
        """Name the pods: bindings gang by gang, higher priority and older gangs first, older pods first, each node's in
        order.
        """
        by_class: dict[int, list[tuple[int, int]]] = {}
        for (index, node), count in sorted(solution.items()):
            by_class.setdefault(index, []).append((node, count))
        pairs: list[tuple[Key, str]] = []
        order = sorted(by_class, key=lambda index: self._plan_order(self.classes[index].group, index))
        for index in order:
            pods = iter(self.classes[index].pods)
            pairs.extend((next(pods), self.nodes[node]) for node, count in by_class[index] for _ in range(count))
        ordered = self._in_order(pairs, solution.order) if solution.order else pairs
        return Placement.of(ordered if self.neighbours is None else self._admitted(ordered, self.neighbours))

    def _admitted(self, pairs: Sequence[tuple[Key, str]], neighbours: DenseNeighbours) -> Sequence[tuple[Key, str]]:
        if not neighbours.attractions:
            return pairs
        entries = [(self.class_of[pod], self.node_index[name]) for pod, name in pairs]
        order = neighbours.order(entries, self.numa)
        return pairs if order is None else [pairs[place] for place in order]

    def orderable(self, solution: Solution) -> bool:
        """Whether the pods have an order in which each is admitted (C12)."""
        if self.neighbours is None:
            return True
        return self.neighbours.order([(index, node) for index, node, _ in solution.in_order()], self.numa) is not None

    def _in_order(self, pairs: Sequence[tuple[Key, str]], order: Mapping[int, Sequence[int]]) -> list[tuple[Key, str]]:
        places: dict[int, list[int]] = {}
        for place, (_, name) in enumerate(pairs):
            places.setdefault(self.node_index[name], []).append(place)
        found = list(pairs)
        for node, classes in order.items():
            rank = dict(zip(classes, range(len(classes)), strict=True))
            here = [(rank.get(self.class_of[pairs[place][0]], len(rank)), place) for place in places.get(node, ())]
            for place, (_, taken) in zip(places.get(node, ()), sorted(here), strict=True):
                found[place] = pairs[taken]
        return found

    def _plan_order(self, group: int, index: int) -> tuple[int, float, GroupKey, int]:
        gang = self.groups[group]
        return (-gang.priority, gang.created, gang.key, index)

    def solution(self, placement: Placement) -> Solution:
        """Count the bindings of a placement that this instance can express."""
        counts: Counter[tuple[int, int]] = Counter()
        for pod, name in placement.node_of.items():
            if pod in self.class_of and name in self.node_index:
                counts[self.class_of[pod], self.node_index[name]] += 1
        order: dict[int, list[int]] = {}
        for index, node in counts:  # as they are first bound
            if self.numa is not None and self.numa.of(index, node):
                order.setdefault(node, []).append(index)
        return Solution(counts, order)


def score_solution(dense: Dense, solution: Counts) -> tuple[int, ...]:
    """Value of each of ``dense.criteria`` as :func:`placer.rules.scoring.score` gives it; the solution keeps the
    rules.
    """
    values: dict[str, Callable[[], Mapping[int | None, int]]] = {
        "admitted": lambda: _admitted(dense, solution),
        "placed": lambda: _placed(dense, solution),
        "locality": lambda: {None: _locality(dense, solution)},
        "span": lambda: {None: _span(dense, solution)},
        "networkCost": lambda: {None: _network_cost(dense, solution)},
        "packedHyperNodes": lambda: {None: _packed_hyper_nodes(dense, solution)},
        "packedNodes": lambda: {None: len(_newly_used(dense, solution))},
    }
    found = {name: values[name]() for name in dict.fromkeys(name for name, _ in dense.criteria)}
    return tuple(found[name].get(priority, 0) for name, priority in dense.criteria)


def beats(dense: Dense, values: Sequence[int], others: Sequence[int], criteria: int | None = None) -> bool:
    """Whether values are strictly better: the first difference decides, among the first ``criteria`` of them."""
    for (name, _), mine, other in zip(dense.criteria[:criteria], values, others, strict=criteria is None):
        if mine != other:
            return (mine > other) == (name in MAXIMISED)
    return False


def ready(dense: Dense, group: int, placed: Mapping[int, int]) -> bool:
    """Whether a group is ready (C5) when ``placed`` new pods of each class are placed."""
    gang = dense.groups[group]
    if sum(placed.get(index, 0) for index in gang.classes) < gang.short:
        return False
    for role, short in gang.short_by_role:
        if sum(placed.get(i, 0) for i in gang.classes if dense.classes[i].role == role) < short:
            return False
    return all(_ready_of(dense, gang, policy, placed) >= short for policy, short in gang.short_by_policy)


def _ready_of(dense: Dense, gang: DenseGroup, policy: int, placed: Mapping[int, int]) -> int:
    subs = (sub for sub in map(dense.sub_groups.__getitem__, gang.sub_groups) if sub.policy == policy and sub.short)
    return sum(sum(placed.get(index, 0) for index in sub.classes) >= sub.short for sub in subs)


def _admitted(dense: Dense, solution: Counts) -> dict[int | None, int]:
    counts = placed_by_class(solution)
    values: dict[int | None, int] = defaultdict(int)
    for index, gang in enumerate(dense.groups):
        if gang.need_weight and ready(dense, index, counts):
            values[gang.priority] += gang.need_weight
    return values


def _placed(dense: Dense, solution: Counts) -> dict[int | None, int]:
    values: dict[int | None, int] = defaultdict(int)
    for index, count in placed_by_class(solution).items():
        pod_class = dense.classes[index]
        values[dense.groups[pod_class.group].priority] += pod_class.weight * count
    return values


def _wanted(dense: Dense, solution: Counts) -> Iterator[tuple[DenseScope, list[tuple[int, int]]]]:
    wanted = [scope for scope in dense.scopes if scope.wanted]
    by_class: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for (index, node), count in solution.items() if wanted else ():
        by_class[index].append((node, count))
    for scope in wanted:
        yield scope, [place for index in scope.classes for place in by_class.get(index, ())]


def _locality(dense: Dense, solution: Counts) -> int:
    total = dense.constant_locality
    for scope, new in _wanted(dense, solution):
        domain = dense.common([*scope.bound, *(node for node, _ in new)])
        if domain is not None:
            total += (len(scope.bound) + sum(count for _, count in new)) * int(dense.domains.tier[domain])
    return total


def _span(dense: Dense, solution: Counts) -> int:
    total = dense.constant_span
    for scope, new in _wanted(dense, solution):
        nodes = {node for node, _ in new} | {node for node in scope.bound if node >= 0}
        total += len({int(dense.span_leaf[node]) for node in nodes}) + scope.lost_leaves
    return total


def _network_cost(dense: Dense, solution: Counts) -> int:
    calls = 0 if dense.network is None else dense.network.total_cost(solution.items())
    return dense.constant_network + calls


def _newly_used(dense: Dense, solution: Counts) -> set[int]:
    return {node for index, node in solution if not dense.classes[index].daemon and not dense.node_used[node]}


def _packed_hyper_nodes(dense: Dense, solution: Counts) -> int:
    tree = dense.domains
    opened: set[int] = set()
    for node in _newly_used(dense, solution):
        domain = int(dense.leaf[node])
        while domain != tree.root and domain not in opened and not tree.used[domain]:
            opened.add(domain)
            domain = int(tree.parent[domain])
    return len(opened)
