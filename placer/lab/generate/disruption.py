"""Families ``victims``, ``stranded``, ``lost`` and ``fragmented``: the fewest pods that leave for a job, or for nodes.

Racks hold gangs of whole nodes, of equal pods. ``victims``: a job waits for a rack, and one rack alone has room, all
but ``v`` of its nodes. The gang on these goes, since any rack needs as much room. If a budget keeps it, or it spans
another rack, another rack is emptied: a gang on v nodes is evicted, the other moves into the room.

``stranded``: every rack has some room and nothing has a lower priority. The rack with the fewest nodes taken, by a gang
that may be anywhere, is emptied by moving it.

``lost``: some nodes of a gang that has to stay in its rack are not Ready, and the rack has no room for its pods. A gang
on as many nodes, which may be anywhere, moves; if budgets keep its neighbours, the whole gang moves.

``fragmented``: racks are to be empty. In some one gang that may be anywhere takes the fewest nodes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from placer.lab.generate.objects import (
    GROUP,
    NAMESPACE,
    Document,
    Generated,
    by_name,
    created,
    disruption_budget,
    hyper_node,
    most_pods,
    named,
    names_by_chance,
    node_object,
    pod_group,
    pod_object,
    priority_class,
    requests,
    run_on,
)
from placer.lab.generate.options import FamilyOptions, option
from placer.lab.generate.random_source import RandomSource
from placer.problem import Key
from placer.problem.placement import Binding, Placement, Step

__all__ = [
    "FragmentedOptions",
    "LostOptions",
    "StrandedOptions",
    "VictimOptions",
    "fragmented",
    "lost",
    "stranded",
    "victims",
]

JOB = "volcano.sh/job-name"
#: Priority classes, the lowest first; the job that waits has the last one.
CLASSES = {"priority-low": 100, "priority-mid": 200, "priority-high": 1000}
LOWEST, *_, HIGHEST = CLASSES
#: Milli-cores and MiB of a node and of pods, for each GPU: pods take no larger share of these than of GPUs.
CPU, MEMORY = (12_000, 8_000), (128 * 1024, 96 * 1024)


@dataclass(frozen=True, kw_only=True)
class _RackOptions(FamilyOptions):
    nodes: int = option(64, "number of nodes", 4, 100_000)
    leaf_size: int = option(8, "nodes of a rack (tier 1); the last one has the rest", 3, 4096)
    gpus: int = option(8, "GPUs per node", 1, 64)
    node_pods: int = option(1, "pods that fill a node", 1, 64)

    def check(self) -> None:
        self.demand(self.gpus % self.node_pods == 0, "node_pods", str(self.node_pods), f"a divisor of {self.gpus} GPUs")

    def demand_racks(self, least: int, why: str) -> None:
        there = self.nodes // self.leaf_size
        self.demand(
            there >= least, "nodes", f"{self.nodes}", f"at least {least * self.leaf_size}, {least} racks, {why}"
        )


@dataclass(frozen=True, kw_only=True)
class VictimOptions(_RackOptions):
    """Options of ``victims``."""

    budget: bool = option(False, "a disruption budget keeps the gang whose place would be enough")
    spanning: bool = option(False, "the gang whose place would be enough lies in another rack, too")

    def check(self) -> None:
        """Demand racks."""
        super().check()
        self.demand_racks(1 + self.budget + 2 * self.spanning - (self.budget and self.spanning), "as this needs")


@dataclass(frozen=True, kw_only=True)
class StrandedOptions(_RackOptions):
    """Options of ``stranded``."""

    def check(self) -> None:
        """Demand racks."""
        super().check()
        self.demand_racks(2, "so that something can be moved to another")


@dataclass(frozen=True, kw_only=True)
class LostOptions(_RackOptions):
    """Options of ``lost``."""

    lost: int = option(1, "nodes that are lost, all of one gang", 1, 1000)
    kept: bool = option(False, "disruption budgets keep all pods next to the gang: it is moved as a whole")

    def check(self) -> None:
        """Demand racks, and a gang that is larger than its loss."""
        super().check()
        self.demand_racks(2, "so that something can be moved to another")
        most = self.leaf_size // 3
        self.demand(self.lost <= most, "lost", f"{self.lost}", f"at most {most}, a third of the nodes of a rack")


@dataclass(frozen=True, kw_only=True)
class FragmentedOptions(_RackOptions):
    """Options of ``fragmented``."""

    domains: int = option(2, "racks that can be emptied at the price that is known", 1, 1000)

    def check(self) -> None:
        """Demand racks."""
        super().check()
        self.demand_racks(2 * self.domains, "two for each that is to be empty")


class _RackGang(NamedTuple):
    name: str
    nodes: tuple[int, ...]
    priority: str = LOWEST
    limited: bool = True
    kept: bool = False


@dataclass
class _RackedCluster:
    options: _RackOptions
    gangs: list[_RackGang] = field(default_factory=list)
    lost: set[int] = field(default_factory=set)

    def __post_init__(self) -> None:
        count, size = self.options.nodes, self.options.leaf_size
        source = RandomSource(self.options.seed, "names of nodes")
        self.nodes = names_by_chance("node", count, source)
        self.racks = [range(start, min(start + size, count)) for start in range(0, count, size)]
        self.rack_names = names_by_chance("rack", len(self.racks), source)
        self.source = RandomSource(self.options.seed, "gangs")
        # More names than there can be gangs: one for each node, and the one that waits.
        self._names = iter(names_by_chance("job", count + 1, RandomSource(self.options.seed, "names of jobs")))

    def whole_racks(self) -> list[range]:
        return self.source.shuffled([rack for rack in self.racks if len(rack) == self.options.leaf_size])

    def name(self) -> str:
        return next(self._names)

    def fill_beside(self, homes: Sequence[range], free: Sequence[int], *, keep_parts: bool = False) -> None:
        """``keep_parts``: budgets keep pods in a rack of fewer nodes."""
        for rack in self.racks:
            if rack not in homes:
                kept = keep_parts and len(rack) < self.options.leaf_size
                self.fill([node for node in rack if node not in free], *CLASSES, kept=kept)

    def summary(self, **more: int) -> dict[str, int]:
        running = sum(len(self.pods(gang)) for gang in self.gangs)
        nodes = len(self.nodes)
        gpus = nodes * self.options.gpus
        return {"nodes": nodes, "gpus": gpus, "gangsRunning": len(self.gangs), "podsRunning": running, **more}

    def run(
        self, nodes: Sequence[int], *, priority: str = LOWEST, limited: bool = True, kept: bool = False
    ) -> _RackGang:
        gang = _RackGang(self.name(), tuple(nodes), priority, limited, kept)
        self.gangs.append(gang)
        return gang

    def fill(self, nodes: Sequence[int], *classes: str, kept: bool = False) -> None:
        left = list(nodes)
        while left:
            size = int(self.source.log_between(1, len(left) + 0.999))
            self.run(left[:size], priority=self.source.pick(classes), limited=self.source.chance(0.5), kept=kept)
            del left[:size]

    def pods(self, gang: _RackGang) -> tuple[Key, ...]:
        count = len(gang.nodes) * self.options.node_pods
        return tuple(Key(NAMESPACE, named(gang.name, number, count)) for number in range(count))

    def to(self, gang: _RackGang, nodes: Sequence[int]) -> tuple[Binding, ...]:
        places = (self.nodes[node] for node in nodes for _ in range(self.options.node_pods))
        return tuple(Binding(pod, node) for pod, node in zip(self.pods(gang), places, strict=True))

    def documents(self, waiting: _RackGang | None = None) -> Iterator[Document]:
        yield from by_name(self._nodes())
        yield from by_name(self._hyper_nodes())
        yield from (priority_class(*each) for each in CLASSES.items())
        ordered = sorted((*self.gangs, *([] if waiting is None else [waiting])))
        ages = dict(zip(ordered, self.source.shuffled(range(len(ordered))), strict=True))
        if waiting is not None:
            ages[waiting] = len(ordered)
        yield from (self._pod_group(gang, gang is not waiting, ages[gang]) for gang in ordered)
        for gang in ordered:
            yield from self._pods(gang, gang is not waiting, ages[gang])
        yield from (disruption_budget(gang.name, NAMESPACE, {JOB: gang.name}, 0) for gang in ordered if gang.kept)

    def _nodes(self) -> Iterator[Document]:
        gpus = self.options.gpus
        room = requests(gpus, CPU[0] * gpus, MEMORY[0] * gpus) | {"pods": most_pods(0)}
        for rack, numbers in zip(self.rack_names, self.racks, strict=True):
            for number in numbers:
                found = node_object(self.nodes[number], {"placer.dev/rack": rack}, room)
                if number in self.lost:
                    found["status"]["conditions"] = [
                        {"type": "Ready", "status": "Unknown", "reason": "NodeStatusUnknown"}
                    ]
                yield found

    def _hyper_nodes(self) -> Iterator[Document]:
        for rack, numbers in zip(self.rack_names, self.racks, strict=True):
            yield hyper_node(rack, 1, "rack", [("Node", self.nodes[number]) for number in numbers])
        yield hyper_node("fabric", 2, "fabric", [("HyperNode", name) for name in self.rack_names])

    def _pod_group(self, gang: _RackGang, runs: bool, age: int) -> Document:
        spec: Document = {"minMember": len(self.pods(gang)), "priorityClassName": gang.priority}
        if gang.limited:
            spec["networkTopology"] = {"mode": "hard", "highestTierAllowed": 1}
        return pod_group(gang.name, spec, runs, creationTimestamp=created(age))

    def _pods(self, gang: _RackGang, runs: bool, age: int) -> Iterator[Document]:
        each = self.options.gpus // self.options.node_pods
        room = requests(each, CPU[1] * each, MEMORY[1] * each)
        owner = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "name": gang.name, "controller": True}
        for pod, node in self._places(gang):
            found = pod_object(
                pod.name,
                "job",
                [("main", room)],
                labels={JOB: gang.name},
                annotations={GROUP: gang.name},
                creationTimestamp=created(age),
                ownerReferences=[{**owner, "uid": gang.name}],
            )
            found["spec"] |= {"priorityClassName": gang.priority, "priority": CLASSES[gang.priority]}
            if runs:
                run_on(found, self.nodes[node])
                found["status"]["startTime"] = created(age)
            yield found

    def _places(self, gang: _RackGang) -> Iterator[tuple[Key, int]]:
        nodes = (node for node in gang.nodes for _ in range(self.options.node_pods))
        return zip(self.pods(gang), nodes, strict=True)


def _made(
    cluster: _RackedCluster,
    rack: range,
    evicted: _RackGang | None = None,
    moved: _RackGang | None = None,
    to: Sequence[int] = (),
) -> Generated:
    waiting = _RackGang(cluster.name(), tuple(rack), HIGHEST)
    bound = cluster.to(waiting, waiting.nodes)
    going = cluster.pods(evicted) if evicted is not None else ()
    moves = cluster.to(moved, to) if moved is not None else ()
    step = Step((*going, *(each.pod for each in moves)), tuple(each.pod for each in (*moves, *bound)))
    summary = cluster.summary(podsPlanted=len(bound), podsEvicted=len(going), podsMoved=len(moves))
    least = Placement(bound, evictions=going, moves=moves, steps=(step,))
    planted = {each.pod: each.node for each in bound}
    return Generated(list(cluster.documents(waiting)), planted, summary, least)


def victims(options: VictimOptions) -> Generated:
    """Make a cluster with room in one rack only, and a job that waits for a rack."""
    cluster, size = _RackedCluster(options), options.leaf_size
    home, *others = cluster.whole_racks()
    short = 1 + cluster.source.below(size - 1)
    taken, free = home[:short], home[short:]
    if not (options.budget or options.spanning):
        evicted = cluster.run(taken)
        _fill_all(cluster, home)
        return _made(cluster, home, evicted)
    goal, *rest = others
    evicted, moved = cluster.run(goal[:short]), cluster.run(goal[short:])
    wide = (*taken, *rest[0]) if options.spanning else taken
    cluster.run(wide, limited=not options.spanning, kept=options.budget)
    _fill_all(cluster, home, goal, *(rest[:1] if options.spanning else ()))
    return _made(cluster, goal, evicted, moved, free)


def _fill_all(cluster: _RackedCluster, *apart: range) -> None:
    for rack in cluster.racks:
        if rack not in apart:
            cluster.fill(rack, *list(CLASSES)[:-1])


def stranded(options: StrandedOptions) -> Generated:
    """Make a cluster with some room in every rack, in which nothing has a lower priority than the job that waits."""
    cluster, size = _RackedCluster(options), options.leaf_size
    home, *others = cluster.whole_racks()
    least = 1 + cluster.source.below((size - 1) // 2)
    moved = cluster.run(home[:least], priority=HIGHEST, limited=False)
    spare = [1 + cluster.source.below(size - least - 1) for _ in others]
    spare[0] = max(spare[0], least - sum(spare[1:]))
    free = [node for rack, count in zip(others, spare, strict=True) for node in rack[:count]]
    for rack in cluster.racks:
        if rack != home:
            cluster.fill([node for node in rack if node not in free], HIGHEST)
    return _made(cluster, home, None, moved, cluster.source.shuffled(free)[:least])


def lost(options: LostOptions) -> Generated:
    """Make a cluster that lost some nodes of a gang that has to stay in one rack."""
    cluster, size, gone = _RackedCluster(options), options.leaf_size, options.lost
    home, goal, *_ = cluster.whole_racks()
    wide = 2 * gone + cluster.source.below(size - 3 * gone + 1)
    gang = cluster.run(home[:wide])
    cluster.lost.update(home[:gone])
    if options.kept:
        places = cluster.to(gang, goal[:wide])
        free, moves = goal[:wide], places[gone * options.node_pods :]
        cluster.fill(home[wide:], *CLASSES, kept=True)
    else:
        moved = cluster.run(home[wide : wide + gone], priority=HIGHEST, limited=False)
        places = cluster.to(gang, (*moved.nodes, *home[gone:wide]))
        free, moves = goal[:gone], cluster.to(moved, goal[:gone])
        cluster.fill(home[wide + gone :], *CLASSES)
    cluster.fill_beside([home], free)
    return _repaired(cluster, places[: gone * options.node_pods], moves)


def _repaired(cluster: _RackedCluster, bound: tuple[Binding, ...], moves: tuple[Binding, ...]) -> Generated:
    going = tuple(move.pod for move in moves)
    step = Step(going, (*going, *(each.pod for each in bound)))
    nodes = tuple(sorted(cluster.nodes[node] for node in cluster.lost))
    summary = cluster.summary(nodesLost=len(nodes), podsPlanted=len(bound), podsMoved=len(moves))
    least = Placement(bound, moves=moves, steps=(step,), lost=nodes)
    return Generated(list(cluster.documents()), {each.pod: each.node for each in bound}, summary, least)


def fragmented(options: FragmentedOptions) -> Generated:
    """Make a cluster in which nothing waits and every rack has some room."""
    cluster, size, count = _RackedCluster(options), options.leaf_size, options.domains
    racks = cluster.whole_racks()
    homes, others = racks[:count], racks[count:]
    least = 1 + cluster.source.below((size - 1) // 2)
    gangs = [cluster.run(rack[:least], priority=cluster.source.pick([*CLASSES]), limited=False) for rack in homes]
    # One rack for each that is emptied has room for what comes from there, and takes more nodes than that.
    spare = [least if number < count else cluster.source.below(size - least) for number, _ in enumerate(others)]
    free = [node for rack, room in zip(others, spare, strict=True) for node in rack[:room]]
    cluster.fill_beside(homes, free, keep_parts=True)
    return _emptied(cluster, homes, gangs, cluster.source.shuffled(free))


def _emptied(
    cluster: _RackedCluster, homes: Sequence[range], gangs: Sequence[_RackGang], free: Sequence[int]
) -> Generated:
    places, moves = iter(free), list[Binding]()
    for gang in gangs:
        moves += cluster.to(gang, [next(places) for _ in gang.nodes])
    going = tuple(move.pod for move in moves)
    names = sorted(cluster.rack_names[cluster.racks.index(rack)] for rack in homes)
    plan = Placement(moves=tuple(moves), steps=(Step(going, going),), freed=tuple(names))
    return Generated(
        list(cluster.documents()), {}, cluster.summary(racksEmptied=len(homes), podsMoved=len(moves)), plan
    )
