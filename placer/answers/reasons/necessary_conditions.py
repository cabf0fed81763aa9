"""Necessary conditions for a group alone; the first that fails is the reason, with the node that lacks least."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from placer.answers.reasons.cause import (
    NAMED,
    Cause,
    EligibleNodes,
    counted,
    not_offered,
    plural,
    pod_names,
    shape_text,
)
from placer.answers.reasons.prerequisites import BY_ROOM, task_word, too_wide
from placer.arrays import Dense, DenseGroup
from placer.arrays.amounts import NodeAmounts
from placer.arrays.dense_neighbours import ANY_NUMBER
from placer.base.quantity import PODS, format_amount
from placer.base.words import Sentence, and_list, some
from placer.problem import Instance, NetworkTopology, Pod, PodState
from placer.problem.instance import NO_TIER
from placer.problem.keys import label_word
from placer.problem.neighbours import DomainUnit
from placer.problem.pod_index import domain_of
from placer.search.greedy.best_fit import candidates, tops
from placer.search.greedy.state import GreedyLayout, GreedyState, least


class NearestNode:
    """Lacks of nodes for a pod, in amounts of the objects, neither scaled nor cut."""

    def __init__(self, instance: Instance, dense: Dense) -> None:
        self.instance, self.dense, self.amounts = instance, dense, NodeAmounts(instance)

    @cached_property
    def _free(self) -> npt.NDArray[np.float64]:
        rooms = map(self.amounts.left, self.dense.nodes)
        rows = [[float(room[name]) for name in self.dense.resources] for room in rooms]
        return np.array(rows, dtype=np.float64).reshape(len(rows), len(self.dense.resources))

    @cached_property
    def _ports(self) -> dict[str, list[Pod]]:
        found: dict[str, list[Pod]] = defaultdict(list)
        for pod in self.instance.pods.values():
            if pod.host_ports and pod.node is not None and pod.state is not PodState.PENDING:
                found[pod.node].append(pod)
        return found

    def to(self, pod: Pod, eligible: npt.NDArray[np.bool_]) -> tuple[str, Sentence]:
        """The eligible node with the least lack, as share of the pod's request, and that lack.

        The pod fits nowhere; ``eligible``: bool, shape (nodes,), True at least once.
        """
        takes = self.amounts.asked(pod)
        asked = np.array([float(takes[name]) for name in self.dense.resources])
        lack = np.maximum(0.0, asked - self._free) / np.maximum(asked, 1.0)
        share = np.where(asked > 0, lack, 0.0).max(axis=1, initial=0.0)
        share[~eligible] = np.inf
        node = self.dense.nodes[int(np.argmin(share))]
        said = Sentence.joined([*self._amounts(pod, node), *self._clashes(pod, node)], " and ")
        return node, f"Node {node} comes nearest: " + said + self._held_by_ending([pod], [node])

    def shortage(self, classes: Iterable[int], nodes: npt.NDArray[np.bool_] | None = None) -> Sentence:
        """Where places for pods are short, and amounts of pods being deleted.

        ``nodes``: bool, shape (nodes,); None: all.
        """
        pods = [self.instance.pods[self.dense.classes[index].pods[0]] for index in classes]
        there = self.dense.nodes if nodes is None else [self.dense.nodes[at] for at in np.flatnonzero(nodes)]
        return Sentence.of(self._slots(classes, nodes), self._held_by_ending(pods, there))

    @cached_property
    def _ending(self) -> dict[str, list[Pod]]:
        found: dict[str, list[Pod]] = defaultdict(list)
        for pod in self.instance.pods.values():
            if pod.node is not None and pod.state is PodState.TERMINATING:
                found[pod.node].append(pod)
        return found

    def _held_by_ending(self, pods: Sequence[Pod], nodes: Iterable[str]) -> Sentence:
        texts: list[Sentence] = []
        for node in nodes if self._ending else ():
            names = sorted({name for pod in pods for name in self._scarce(pod, node)})
            for each in self._ending.get(node, ()):
                amounts = [
                    f"{name} {format_amount(name, each.requests[name])}" for name in names if each.requests[name]
                ]
                texts += [pod_names([each]) + f" holds {', '.join(amounts)} of Node {node}"] if amounts else []
        return Sentence.of("; being deleted already: " if texts else "", Sentence.listed(texts, NAMED))

    def _scarce(self, pod: Pod, node: str) -> list[str]:
        if not pod.constraints.admits(self.instance.nodes[node]):
            return []
        free = self.amounts.left(node)
        rooms = {name: free[name] // amount for name, amount in self.amounts.asked(pod).items() if amount}
        return [name for name, room in rooms.items() if room == min(rooms.values())]

    def _slots(self, classes: Iterable[int], nodes: npt.NDArray[np.bool_] | None) -> str:
        if PODS not in self.dense.resources:
            return ""
        free, short = self.dense.free.copy(), np.zeros(len(self.dense.nodes), dtype=bool)
        free[:, self.dense.resources.index(PODS)] = ANY_NUMBER
        for index in classes:
            short |= self.dense.fits(index, free) > self.dense.fits(index)
        names = [self.dense.nodes[at] for at in np.flatnonzero(short if nodes is None else short & nodes)]
        left, whole = self.amounts.left, self.instance.nodes
        texts = [
            f"Node {each} has {max(0, left(each)[PODS])} of {whole[each].allocatable[PODS]} free" for each in names
        ]
        return f"; places for pods ({PODS}) are short: {and_list(some(texts, NAMED))}" if texts else ""

    def _amounts(self, pod: Pod, node: str) -> list[str]:
        free = self.amounts.left(node)
        found = []
        for name, amount in self.amounts.asked(pod).items():
            lacking = amount - free[name]
            if amount and lacking > 0:
                have, lack = (format_amount(name, each) for each in (free[name], lacking))
                offered = name in self.instance.offered
                found.append(f"{name} {have} free, {lack} too few" if offered else not_offered(self.instance, name))
        return found

    def _clashes(self, pod: Pod, node: str) -> list[Sentence]:
        return [
            f"host port {port.ip}:{port.port}/{port.protocol} is taken by "
            + pod_names([other])
            + (", which is being deleted" if other.state is PodState.TERMINATING else "")
            for port in pod.host_ports
            for other in self._ports.get(node, ())
            if any(port.clashes(theirs) for theirs in other.host_ports)
        ]


IntArray = npt.NDArray[np.int64]
_NAMED = 8
#: Class to how many of its pods could be placed.
Most = dict[int, int]


def countable(layout: GreedyLayout) -> GreedyLayout:
    """The same arrays without calls, kubelets and neighbours, which counting does not cover."""
    dense = layout.dense
    plain = dense.network is None and dense.numa is None and dense.neighbours is None
    return layout if plain else GreedyLayout(replace(dense, network=None, numa=None, neighbours=None))


@dataclass(frozen=True)
class Target:
    """All pending pods of a group, or only those that make it ready."""

    gang: DenseGroup
    whole: bool
    least_pods: int


class NecessaryConditions:
    """Counts over one instance without any new pod; ``layout``: arrays of :func:`countable`."""

    def __init__(self, instance: Instance, layout: GreedyLayout) -> None:
        self.instance, self.layout, self.dense = instance, layout, layout.dense
        self.state = GreedyState(layout)
        self.eligible = EligibleNodes(instance)
        self.nearest = NearestNode(instance, layout.dense)
        self.labels = LabelDomains(instance, self.state, self.nearest.shortage)
        self._queue_rooms: dict[int, tuple[int, int]] = {}

    def cause(self, group: int) -> Cause | None:
        """The first cause that counting finds; None where it finds none."""
        gang = self.dense.groups[group]
        sizes = {index: self.dense.classes[index].size for index in gang.classes}
        whole = not self.layout.elastic(group)
        by_role = sum(short for _, short in gang.short_by_role)
        target = Target(gang, whole, sum(sizes.values()) if whole else max(gang.short, by_role))
        most = dict(sizes)
        for step in (self._eligible, self._queues, self._resources, self._topology, self._labels):
            found = step(target, most)
            if found is not None:
                wide = found.code in BY_ROOM[:2] and too_wide(self.instance, self.instance.groups[gang.key])
                return Cause(found.code, wide, holds=None) if wide else found
        return None

    def _enough(self, target: Target, most: Most) -> bool:
        if target.whole:
            return all(most[index] == self.dense.classes[index].size for index in most)
        return least(self.dense, target.gang, self.layout.class_prices, most) is not None

    def _limit(self, target: Target, most: Most, room: Callable[[int], int]) -> int | None:
        """Returns the first class cut where the rest does not suffice."""
        cut = [index for index in most if room(index) < most[index]]
        for index in cut:
            most[index] = max(0, room(index))
        return cut[0] if cut and not self._enough(target, most) else None

    def _eligible(self, target: Target, most: Most) -> Cause | None:
        short = self._limit(target, most, lambda index: most[index] if self._is_eligible(index) else 0)
        if short is None:
            return None
        return Cause.of(self.eligible.reason(self._pod(short), self.dense.classes[short].size))

    def _queues(self, target: Target, most: Most) -> Cause | None:
        """C11: pod by pod, then the least sum that any choice of enough pods asks for."""
        for number, row in enumerate(self.dense.queue_rows):
            asks = {index: self._pod(index).requests[self._queued(number)] for index in row.classes if index in most}
            if not asks:
                continue
            room = self._queue_room(number)[1]
            least_sum = self._least(target.least_pods, {index: asks.get(index, 0) for index in most}, most)
            rooms = {index: max(0, room) // amount for index, amount in asks.items()}
            short = self._limit(target, most, lambda index, rooms=rooms: rooms.get(index, most[index]))  # type: ignore[misc]
            if least_sum > room:
                return self._queue_cause(number, least_sum)
            if short is not None:
                pods = self.dense.classes[short].size if target.whole else rooms[short] + 1
                return self._queue_cause(number, pods * asks[short])
        return None

    def _queued(self, number: int) -> str:
        return self.dense.resources[self.dense.queue_rows[number].resource]

    def _queue_room(self, number: int) -> tuple[int, int]:
        if number not in self._queue_rooms:
            queue, name = self.dense.queue_rows[number].queue, self._queued(number)
            taken = sum(
                pod.requests[name]
                for pod in self.instance.pods.values()
                if pod.state.on_node and queue in self.instance.queue_path(pod.queue)
            )
            self._queue_rooms[number] = taken, self.instance.queues[queue].capability[name] - taken
        return self._queue_rooms[number]

    def _queue_cause(self, number: int, asked: int) -> Cause:
        queue, name = self.dense.queue_rows[number].queue, self._queued(number)
        taken, left = self._queue_room(number)
        path = self.instance.queue_path
        ending = [
            f"{format_amount(name, pod.requests[name])} by " + pod_names([pod])
            for pod in self.instance.pods.values()
            if pod.state is PodState.TERMINATING and queue in path(pod.queue) and pod.requests[name]
        ]
        least, capability, used = (format_amount(name, each) for each in (asked, taken + left, taken))
        message = Sentence.of(f"needs {name} {least} in Queue {queue}: capability {capability}, {used} of it taken")
        if ending:
            message += " (of this " + Sentence.listed(ending, NAMED) + ", being deleted already)"
        held = f"the room in Queue {queue} went to"
        return Cause(
            "QueueCapability",
            message,
            held=held,
            holds=lambda pod, _: queue in path(pod.queue) and pod.requests[name] > 0,
        )

    def _least(self, pods: int, amounts: Most, most: Most) -> int:
        total = 0
        for index in sorted(amounts, key=lambda index: amounts[index]):
            count = min(pods, most[index])
            pods -= count
            total += count * amounts[index]
        return total

    def _least_sum(self, pods: int, resource: int, most: Most) -> int:
        return self._least(pods, {index: int(self.dense.classes[index].request[resource]) for index in most}, most)

    def _resources(self, target: Target, most: Most) -> Cause | None:
        """C2: pod by pod over all nodes, then summed per resource over the nodes eligible for any pod."""
        rooms = {index: int(self.state.fits(self.layout.shape_of[index]).sum()) for index in most}
        short = self._limit(target, most, lambda index: rooms[index])
        if short is not None:
            return self._room_cause(target, short, rooms[short])
        if len(most) == 1:
            return None
        room = int(self._joints(most, [self.layout.domains.root])[0])
        if room < target.least_pods:
            lack = target.least_pods - room
            pods = self._some(target.least_pods, [index for index in most if most[index]])
            message = f"needs room for {pods}; the nodes have room for {room} in all, {lack} too few"
            return Cause("InsufficientResources", message + self.nearest.shortage(most))
        return self._sums(target, most)

    def _sums(self, target: Target, most: Most) -> Cause | None:
        nodes = self.dense.masks[sorted({self.dense.classes[index].mask for index in most})].any(axis=0)
        for resource, name in enumerate(self.dense.resources):
            asked = self._least_sum(target.least_pods, resource, most)
            if asked > int(self.dense.free[nodes, resource].sum()):
                found = plural(int(nodes.sum()), "node")
                free_text = self._free_text(resource, np.flatnonzero(nodes), asked)
                have = "has" if nodes.sum() == 1 else "have"
                needed = f"{name} {self._amount(resource, asked)}"
                message = f"needs {needed}; the {found} eligible for it {have} {free_text}"
                return Cause("InsufficientResources", message + self.nearest.shortage(most, np.array(nodes)))
        return None

    def _amount(self, resource: int, scaled: int) -> str:
        return format_amount(self.dense.resources[resource], scaled * self.dense.scale[resource])

    def _free_text(self, resource: int, nodes: Iterable[int], asked: int) -> str:
        name, step = self.dense.resources[resource], self.dense.scale[resource]
        rooms = [max(0, self.nearest.amounts.left(self.dense.nodes[node])[name]) for node in nodes]
        if sum(rooms) < asked * step:
            return f"{format_amount(name, sum(rooms))} free"
        # Enough in all, but the last units on each node are of no use.
        usable = sum(room // step * step for room in rooms)
        return f"{format_amount(name, usable)} free in pieces of {format_amount(name, step)}"

    def _room_cause(self, target: Target, index: int, room: int) -> Cause:
        if room:
            return Cause("InsufficientResources", self._some_room(target, index, room))
        pod, pods = self._pod(index), self.dense.classes[index]
        eligible = self.dense.masks[pods.mask]
        causes: Counter[str] = Counter()
        lacking = self.dense.free < pods.request
        for resource, name in enumerate(self.dense.resources):
            causes[f"insufficient {name}"] = int((lacking[:, resource] & eligible).sum())
        causes["host port taken"] = int((eligible & ~lacking.any(axis=1)).sum())
        causes["not eligible"] = int((~eligible).sum())
        text = counted({cause: count for cause, count in causes.items() if count})
        node, nearest = self.nearest.to(pod, eligible)
        asked, but = shape_text(pod.requests), "" if eligible.all() else self._but(pod)
        counts = f"0/{len(eligible)} nodes have room for a pod of {asked}: {text}; "
        return Cause("InsufficientResources", counts + nearest + but + self._role(index, target), frozenset({node}))

    def _some_room(self, target: Target, index: int, room: int) -> Sentence:
        there, but = self._nodes_of(index)
        shape, like = self.layout.shape_of, [index]
        lack, least = "", f"at least {room + 1} of its "
        count = self.dense.classes[index].size
        if target.whole:  # then all pods of one shape are needed, whatever their tasks
            like = [each for each in target.gang.classes if shape[each] == shape[index]]
            count = sum(self.dense.classes[each].size for each in like)
            lack, least = f", {count - room} too few", ""
        asked = f"{plural(count, 'pod')} of {shape_text(self._pod(index).requests)}"
        role = self._role(index, target) if len(like) == 1 else ""
        message = f"needs room for {least}{asked}; {there} room for {room} in all{lack}{but}"
        return Sentence.of(message, self.nearest.shortage([index]), role)

    def _role(self, index: int, target: Target) -> str:
        pods, gang = self.dense.classes[index], target.gang
        if pods.role not in dict(gang.short_by_role) or len(gang.classes) == 1:
            return ""
        asks = "asks" if pods.size == 1 else "ask"
        of = task_word(self.instance.groups[gang.key], pods.role)
        return f"; {pods.size} of the {target.least_pods} pods that it needs {asks} for this: {of}"

    def _nodes_of(self, index: int) -> tuple[str, str]:
        pod, every = self._pod(index), len(self.instance.nodes)
        eligible = self.eligible.count(pod)
        if eligible == every:
            return "the nodes have", ""
        them = f"{eligible} of {plural(every, 'node')} {'is' if eligible == 1 else 'are'} eligible and"
        return f"{them} {'has' if eligible == 1 else 'have'}", self._but(pod)

    def _but(self, pod: Pod) -> str:
        return f"; not eligible: {self.eligible.refusals(pod)}"

    def _topology(self, target: Target, most: Most) -> Cause | None:
        """C7: each subgroup with a limit of its own in one domain, then the whole group."""
        for sub in target.gang.sub_groups:
            part = self.dense.sub_groups[sub]
            pods = {index: self.dense.classes[index].size for index in part.classes}
            asked = sum(pods.values()) if target.whole else part.short
            if self._roomiest(part.scope, pods)[0] < asked:
                most.update(dict.fromkeys(part.classes, 0))
                if not self._enough(target, most):
                    return self._narrow(part.scope, f"subgroup {part.name} ", asked, self._asked(target.gang, sub))
        scope = target.gang.scope
        if self.dense.scopes[scope].limit is None or self._fits_one_domain(target, most):
            return None
        return self._narrow(scope, "", target.least_pods, self._asked(target.gang))

    def _labels(self, target: Target, most: Most) -> Cause | None:
        del most
        return self.labels.cause(target.gang, target.least_pods, whole=target.whole)

    def _fits_one_domain(self, target: Target, most: Most) -> bool:
        scope, root = target.gang.scope, self.layout.domains.root
        if target.whole:
            demand: dict[int, int] = Counter()
            for index in target.gang.classes:
                demand[self.layout.shape_of[index]] += self.dense.classes[index].size
            return any(True for _ in candidates(self.state, scope, root, demand))
        domains = tops(self.state, scope, root)
        enough = np.flatnonzero(self._joints(most, domains) >= target.least_pods).tolist()
        return any(self._enough(target, self._room(most, domains[place])) for place in enough)

    def _asked(self, gang: DenseGroup, sub: int | None = None) -> NetworkTopology | None:
        group = self.instance.groups[gang.key]
        return group.topology if sub is None else group.policies[self.dense.sub_groups[sub].policy].topology

    def _room(self, most: Most, domain: int) -> Most:
        begin, end = self.layout.slice_of(domain)
        fits = {index: int(self.state.fits(self.layout.shape_of[index])[begin:end].sum()) for index in most}
        return {index: min(count, fits[index]) for index, count in most.items()}

    def _joints(self, most: Most, domains: Sequence[int]) -> IntArray:
        """No more pods of all classes that fit the same nodes than there is room."""
        counts: Counter[int] = Counter()
        for index, count in most.items():
            counts[self.layout.shape_of[index]] += count
        begin, end = np.array([self.layout.slice_of(domain) for domain in domains], dtype=np.int64).reshape(-1, 2).T
        found: IntArray = np.zeros(len(domains), dtype=np.int64)
        for shape, count in counts.items():
            room = np.concatenate(([0], np.cumsum(self.state.fits(shape))))
            found += np.minimum(count, room[end] - room[begin])
        return found

    def _roomiest(self, scope: int, pods: Most) -> tuple[int, int | None]:
        domains = tops(self.state, scope, self.layout.domains.root)
        if not domains:
            return 0, None
        counts = self._joints(pods, domains)
        best = int(np.argmax(counts))
        return int(counts[best]), domains[best]

    def _narrow(self, scope: int, who: str, asked: int, topology: NetworkTopology | None) -> Cause:
        it, tree = self.dense.scopes[scope], self.layout.domains
        pods = {index: self.dense.classes[index].size for index in it.classes if self._is_eligible(index)}
        best, where = self._roomiest(scope, pods)
        anchor, nodes = self.dense.anchor(scope), None
        text: str | Sentence
        if it.limit == NO_TIER and topology is not None:
            text = f"asks for {topology.asked}"
        elif it.limit is not None and anchor is not None and tree.tier[anchor] > it.limit:
            text = f"runs under {self._name(anchor)} already, above the highest tier {it.limit} allowed"
        elif where is None:
            text = f"needs a HyperNode of tier <= {it.limit}; none holds a node{self._left_out()}"
        else:
            text = (
                f"needs {self._some(asked, pods)} in one HyperNode{self._roomiest_word(scope)} ({self._name(where)}) "
            )
            text = text + self._lacking(pods, asked, where, best)
            nodes = frozenset(self.dense.nodes[slice(*self.layout.slice_of(where))])
        return Cause("TopologyTooNarrow", who + text, nodes)

    def _roomiest_word(self, scope: int) -> str:
        limit, anchor = self.dense.scopes[scope].limit, self.dense.anchor(scope)
        tier = "" if limit is None else f" of tier <= {limit}"
        return f"{tier}; {'the roomiest' if anchor is None else 'that of its placed pods'}"

    def _is_eligible(self, index: int) -> bool:
        return bool(self.dense.masks[self.dense.classes[index].mask].any())

    def _left_out(self) -> str:
        names = self.instance.topology.left_out
        more = f" and {len(names) - _NAMED:,} more" if len(names) > _NAMED else ""
        return f" (left out, as the findings say why: {', '.join(names[:_NAMED])}{more})" if names else ""

    def _lacking(self, pods: Most, count: int, domain: int, room: int) -> str | Sentence:
        begin, end = self.layout.slice_of(domain)
        if room < count:
            there = np.zeros(len(self.dense.nodes), dtype=bool)
            there[begin:end] = True
            return f"has room for {room}, {count - room} too few" + self.nearest.shortage(pods, there)
        for resource, name in enumerate(self.dense.resources):
            asked = self._least_sum(count, resource, pods)
            if asked > int(self.dense.free[begin:end, resource].sum()):
                free_text = self._free_text(resource, range(begin, end), asked)
                return f"has {name} {free_text} of {self._amount(resource, asked)}"
        return self._short_role(pods, domain) or "lacks room for enough of every role and subgroup"

    def _short_role(self, pods: Most, domain: int) -> str:
        room = self._room(pods, domain)
        gangs = {self.dense.classes[index].group for index in pods}
        shorts = ((gang, *each) for gang in gangs for each in self.dense.groups[gang].short_by_role)
        for group, role, short in shorts:
            there = sum(room[index] for index in pods if self.dense.classes[index].role == role)
            if there < short:
                of = task_word(self.instance.groups[self.dense.groups[group].key], role)
                return f"has room for {there} of {of}, {short - there} too few"
        return ""

    def _name(self, domain: int) -> str:
        name = self.layout.domains.names[domain]
        return "the virtual root" if name is None else f"{name}, tier {int(self.layout.domains.tier[domain])}"

    def _some(self, asked: int, classes: Iterable[int]) -> str:
        counts: Counter[str] = Counter()
        for index in classes:
            counts[shape_text(self._pod(index).requests)] += self.dense.classes[index].size
        kinds = ", ".join(f"{count} x {text}" for text, count in counts.items())
        if len(counts) == 1:
            (text,) = counts
            of, each = "" if counts[text] == asked else f"of {counts[text]}, ", " each" if counts[text] > 1 else ""
            return f"{plural(asked, 'pod')} ({of}{text}{each})"
        return f"{plural(asked, 'pod')} (of {kinds})"

    def _pod(self, index: int) -> Pod:
        return self.instance.pods[self.dense.classes[index].pods[0]]


BoolArray = npt.NDArray[np.bool_]


class LabelDomains:
    """``state``: arrays without new pods and neighbours; ``slots`` names nodes where places for pods are short."""

    def __init__(
        self, instance: Instance, state: GreedyState, slots: Callable[[Iterable[int], BoolArray], Sentence]
    ) -> None:
        self.instance, self.state, self.dense, self.slots = instance, state, state.dense, slots

    def cause(self, gang: DenseGroup, asked: int, *, whole: bool) -> Cause | None:
        """Why ``asked`` pods (``whole``: all of the group) find no domain; None: not known, or C7 off."""
        off, found = self.instance.policy.rules_off, []
        for unit, classes in self._units(gang).items() if "C7" not in off else ():
            pods = {index: self.dense.classes[index].size for index in classes}
            # Of an elastic group only a unit of all of its pods has to take so many.
            elastic = asked if len(pods) == len(gang.classes) else 1
            least = sum(pods.values()) if whole else elastic
            rooms = self._rooms(unit, pods)
            held = self._held(unit, least, rooms) if "C15" not in off else None
            found.append(self._with_slots(pods, self._narrow(unit, least, rooms) or held))
        causes = [cause for cause in found if cause is not None]
        return min(causes, key=lambda each: each.code != "TopologyTooNarrow", default=None)

    def _with_slots(self, classes: Iterable[int], cause: Cause | None) -> Cause | None:
        if cause is None or cause.nodes is None:
            return cause
        there = np.array([name in cause.nodes for name in self.dense.nodes], dtype=bool)
        return replace(cause, message=cause.message + self.slots(classes, there))

    def naming_units(self, gang: DenseGroup, cause: Cause) -> Cause:
        """Add units of a group that must be in one domain, and the label."""
        asked = [f"{unit.name} in one domain of {unit.topology_key}" for unit in self._units(gang)]
        more = f" and {len(asked) - NAMED} more" if len(asked) > NAMED else ""
        return replace(cause, message=cause.message + f": {', '.join(asked[:NAMED])}{more}") if asked else cause

    def _units(self, gang: DenseGroup) -> dict[DomainUnit, list[int]]:
        found: dict[DomainUnit, list[int]] = defaultdict(list)
        for index in gang.classes:
            for unit in self.instance.pods[self.dense.classes[index].pods[0]].neighbours.units:
                found[unit].append(index)
        return dict(found)

    def _narrow(self, unit: DomainUnit, asked: int, rooms: Mapping[str, int]) -> Cause | None:
        label, there = unit.topology_key, self._running.get(unit, set())
        who = f"{unit.name} needs {plural(asked, 'pod')} in one domain of {label}"
        if len(there) > 1 or None in there:
            named = sorted("no domain" if value is None else label_word(value) for value in there)
            where = and_list(some(named, NAMED))
            return Cause("TopologyTooNarrow", f"{who}; its running pods are in no one domain of it, but in {where}")
        if not rooms:
            return Cause("TopologyTooNarrow", f"{who}; no node carries that label")
        return self._lacking(
            "TopologyTooNarrow", f"{who}; {'that of its placed pods' if there else 'the roomiest'}", unit, asked, rooms
        )

    def _held(self, unit: DomainUnit, asked: int, rooms: Mapping[str, int]) -> Cause | None:
        held = {value for other, there in self._running.items() if other.keeps_off(unit) for value in there}
        free = {value: room for value, room in rooms.items() if value not in held}
        who = f"{unit.name} needs {plural(asked, 'pod')} in a domain of {unit.topology_key} of its own"
        if len(free) == len(rooms):
            return None
        if not free:
            every = "the only domain" if len(rooms) == 1 else f"each of the {len(rooms)} domains"
            return Cause("Exclusive", f"{who}; others hold {every}")
        return self._lacking("Exclusive", f"{who}; the roomiest that no other holds", unit, asked, free)

    def _lacking(self, code: str, who: str, unit: DomainUnit, asked: int, rooms: Mapping[str, int]) -> Cause | None:
        best = max(sorted(rooms), key=lambda value: rooms[value])
        if rooms[best] >= asked:
            return None
        text = (
            f"{who} ({unit.topology_key}={label_word(best)}) has room for {rooms[best]}, {asked - rooms[best]} too few"
        )
        nodes = (name for name, node in self.instance.nodes.items() if node.labels.get(unit.topology_key) == best)
        return Cause("Exclusive" if code == "Exclusive" else "TopologyTooNarrow", text, frozenset(nodes))

    def _rooms(self, unit: DomainUnit, pods: Mapping[int, int]) -> dict[str, int]:
        values, of = self._domains(unit.topology_key)
        counts: Counter[int] = Counter()
        for index, count in pods.items():
            counts[self.state.layout.shape_of[index]] += count
        found = np.zeros(len(values), dtype=np.int64)
        inside = of >= 0
        for shape, count in counts.items():
            room = np.bincount(of[inside], self.state.fits(shape)[inside], len(values)).astype(np.int64)
            found += np.minimum(count, room)
        there = self._running.get(unit)
        return {value: int(room) for value, room in zip(values, found, strict=True) if not there or value in there}

    def _domains(self, label: str) -> tuple[list[str], np.ndarray[tuple[int], np.dtype[np.int64]]]:
        written = [self.instance.nodes[name].labels.get(label) for name in self.dense.nodes]
        values = sorted({value for value in written if value is not None})
        number = {value: place for place, value in enumerate(values)}
        return values, np.array([-1 if value is None else number[value] for value in written], dtype=np.int64)

    @cached_property
    def _running(self) -> dict[DomainUnit, Collection[str | None]]:
        found: dict[DomainUnit, set[str | None]] = defaultdict(set)
        for unit, node in self._standing():
            found[unit].add(domain_of(self.instance.nodes, node, unit.topology_key))
        return dict(found)

    def _standing(self) -> Iterator[tuple[DomainUnit, str | None]]:
        for pod in self.instance.pods.values():
            if pod.state is PodState.BOUND:
                yield from ((unit, pod.node) for unit in pod.neighbours.units)
