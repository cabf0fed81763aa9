"""Where a group that calls (C8, C9) or NUMA zones (C10) keep out comes nearest, in words."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import replace

import numpy as np

from placer.answers.reasons.cause import Cause, plural
from placer.arrays import Dense
from placer.arrays.numa import DenseNuma
from placer.base.words import Owned, Sentence
from placer.problem import Area, Dependency, Instance, Key, Link, Pod
from placer.problem.numa import TopologyManager
from placer.problem.outcome import Outcome
from placer.problem.placement import Placement, Violation
from placer.rules.calls import bandwidth, network_cost

NAMED = 3

#: Of so many areas at most a node is tried; where nodes are in no region each is an area of its own.
MOST_AREAS = 100

Workloads = set[tuple[Key | None, str | None]]
#: Whether a pod on a node is in the way of a group.
Holds = Callable[[Pod, str], bool]


def calls_cause(instance: Instance, dense: Dense, group: int, cause: Cause) -> Cause:
    """Add broken dependencies, all else kept, and the node where they are least broken, to a cause about calls."""
    if cause.code not in ("NetworkCost", "Bandwidth"):
        return cause
    by_cost = cause.code == "NetworkCost"
    said = _dependencies(instance, dense, group, by_cost)
    message = cause.message + ": " + said if said else cause.message
    trial = _CallTrial(instance, dense)
    found = trial.nearest(group, not by_cost)
    if by_cost:
        others = _other_ends(instance, dense, group)
        held = "the other end of its calls is"
        told = replace(cause, held=held, holds=lambda pod, _: (pod.app_group, pod.workload) in others)
    else:
        told = replace(cause, held="the link carries calls of")
        told = told if found is None else replace(told, holds=trial.using(found[1]))
    if found is None:
        return replace(told, message=message)
    node, violation, near = found
    nearest = f"; of the nodes with room Node {node} comes nearest: "
    calling = frozenset(pod.app_group for pod, _ in _calls(instance, dense, group) if pod.app_group is not None)
    said = _broken_words(instance, violation, calling)
    return replace(told, message=message + nearest + said, nodes=near)


def _broken_words(instance: Instance, violation: Violation, calling: Collection[Key]) -> Sentence:
    network, rest = instance.network, violation.message
    whose = frozenset(key.namespace for key in calling)
    topology = f"NetworkTopology {network.topology}" if network is not None else ""
    if network is not None and network.topology is not None and rest.startswith(topology):
        named = Owned(frozenset((network.topology.namespace,)), Sentence.of(topology), Sentence.of("NetworkTopology"))
        return Sentence.of(named, _of_callers(whose, rest.removeprefix(topology), ": a link carries too much"))
    return _of_callers(whose, rest, "calls would cost more than they may")


def _of_callers(whose: frozenset[str], text: str, other: str) -> Sentence:
    """For readers of the Namespace of the AppGroup, which need not be that of its pods."""
    return Sentence.of(Owned(whose, Sentence.of(text), Sentence.of(other))) if len(whose) == 1 else Sentence.of(other)


def _dependencies(instance: Instance, dense: Dense, group: int, by_cost: bool) -> Sentence:
    texts = {}
    for pod, each in _calls(instance, dense, group):
        whose = frozenset((pod.app_group.namespace,)) if pod.app_group is not None else frozenset[str]()
        if by_cost:
            said = f"{each.origin} calls {each.destination} at a cost of {each.max_network_cost} at most"
            said += _near(instance, pod, each)
        elif each.min_bandwidth:
            said = f"{each.origin} calls {each.destination} with {each.min_bandwidth} bit/s a pair of pods"
        else:
            continue
        texts[said] = _of_callers(whose, said, "a dependency of an AppGroup of another Namespace")
    more = len(texts) - NAMED
    return Sentence.joined(list(texts.values())[:NAMED]) + (f" and {more} more" if more > 0 else "")


def _other_ends(instance: Instance, dense: Dense, group: int) -> Workloads:
    found = Workloads()
    for pod, each in _calls(instance, dense, group):
        ends = {each.origin, each.destination}
        found |= {(pod.app_group, end) for end in (ends - {pod.workload} or ends)}
    return found


#: The node where a group comes nearest, the worst violation there, and nodes on which there would be none.
_Nearest = tuple[str, Violation, frozenset[str]]


class _CallTrial:
    def __init__(self, instance: Instance, dense: Dense) -> None:
        self.instance, self.dense, self.calling = instance, replace(dense, network=None), dense.workload_of

    def nearest(self, group: int, by_bandwidth: bool) -> _Nearest | None:
        calling = (index for index in self.dense.groups[group].classes if index in self.calling)
        return next(filter(None, (self._nearest(index, by_bandwidth) for index in calling)), None)

    def _nearest(self, index: int, by_bandwidth: bool) -> _Nearest | None:
        pod = self.instance.pods[self.dense.classes[index].pods[0]]
        room = {self.dense.nodes[node] for node in np.flatnonzero(self.dense.fits(index)).tolist()}
        broken = self._by_area(pod, by_bandwidth)
        amounts = {area: sum(each.amount for each in those) for area, those in broken.items()}
        found = [(amounts[area], name) for name in sorted(room) if (area := self._area(name)) in amounts]
        amount, node = min(found, default=(0, ""))
        if amount <= 0:
            return None
        worst = max(broken[self._area(node)], key=lambda each: each.amount)
        eligible = self.dense.masks[self.dense.classes[index].mask]
        usable = (self.dense.nodes[node] for node in np.flatnonzero(eligible).tolist())
        near = frozenset(name for name in usable if amounts.get(self._area(name)) == 0)
        return node, worst, near

    def _area(self, node: str) -> object:
        network = self.instance.network
        return node if network is None else network.area(node)

    def _by_area(self, pod: Pod, by_bandwidth: bool) -> dict[object, list[Violation]]:
        """One node per area: no rule about calls tells its nodes apart. Absent where the other rule keeps the pod off
        first.
        """
        one: dict[object, str] = {}
        for name in self.dense.nodes:
            one.setdefault(self._area(name), name)
        tried = one.items() if len(one) <= MOST_AREAS else ()
        found = ((area, self._broken(pod, node, by_bandwidth)) for area, node in tried)
        return {area: broken for area, broken in found if broken is not None}

    def _broken(self, pod: Pod, node: str, by_bandwidth: bool) -> list[Violation] | None:
        """None where another of the two rules keeps the pod off first."""
        outcome = Outcome(self.instance, Placement.of({pod.key: node}))
        off = self.instance.policy.rules_off
        far = [] if "C8" in off else list(network_cost(outcome))
        if not by_bandwidth:
            return far
        return None if far else list(bandwidth(outcome))

    def using(self, violation: Violation) -> Holds:
        network, there = self.instance.network, set[tuple[Key | None, str | None, Area]]()
        if network is None:
            return lambda _pod, _node: False
        for flow in Outcome(self.instance, Placement()).flows:
            for origin, destination, _ in flow.callers.total.pairs(flow.callees.total):
                if flow.dependency.min_bandwidth and _says(network.link(origin, destination), violation):
                    there.add((flow.app_group, flow.dependency.origin, origin))
                    there.add((flow.app_group, flow.dependency.destination, destination))
        return lambda pod, node: (pod.app_group, pod.workload, network.area(node)) in there


def _says(link: Link | None, violation: Violation) -> bool:
    return link is not None and violation.subjects[1] == f"Link {link.origin} -> {link.destination}"


def _calls(instance: Instance, dense: Dense, group: int) -> Iterator[tuple[Pod, Dependency]]:
    pods: dict[tuple[Key | None, str | None], Pod] = {}
    for index in dense.groups[group].classes:
        if index in dense.workload_of:
            pod = instance.pods[dense.classes[index].pods[0]]
            pods.setdefault((pod.app_group, pod.workload), pod)
    for pod in pods.values():
        app = instance.app_groups[pod.app_group] if pod.app_group else None
        for each in app.dependencies if app else ():
            if pod.workload in (each.origin, each.destination):
                yield pod, each


def _near(instance: Instance, pod: Pod, each: Dependency) -> str:
    network, app = instance.network, pod.app_group
    calling = pod.workload == each.origin
    other = each.destination if calling else each.origin
    if network is None or app is None or (app, other) not in instance.bound_spreads:
        return ""
    bound = instance.bound_spreads[app, other].areas
    near = sum(
        all(network.near(*((area, there) if calling else (there, area)), each.max_network_cost) for there in bound)
        for area in map(network.area, instance.nodes)
    )
    return f", {near}/{len(instance.nodes)} nodes are near enough to {plural(bound.total(), 'bound pod')} of {other}"


def zones_cause(instance: Instance, dense: Dense, group: int, cause: Cause) -> Cause:
    """Add how many nodes' kubelets admit the largest pod, and why the nearest does not."""
    numa = dense.numa
    classes = [index for index in dense.groups[group].classes if dense.classes[index].zones >= 0]
    if numa is None or not classes:
        return cause
    index = max(classes, key=lambda index: (dense.classes[index].weight, -index))
    pod = instance.pods[dense.classes[index].pods[0]]
    nodes = np.flatnonzero(replace(dense, numa=None).fits(index)).tolist()
    refusing = [node for node in nodes if not numa.admits(node, [(index, 1)])]
    own = Owned(frozenset((pod.key.namespace,)), Sentence.of(f"Pod {pod.key}"), Sentence.of("such a pod"))
    admitting = f": {len(nodes) - len(refusing)}/{len(nodes)} nodes with room for "
    text = cause.message + admitting + Sentence.of(own, " admit it")
    if not refusing or pod.numa is None:
        return replace(cause, message=text)
    best = min(refusing, key=lambda node: (_lacking(numa, index, node), dense.nodes[node]))
    refusal = TopologyManager(instance.aligning_nodes[dense.nodes[best]]).admit(pod.numa).refusal
    message = text + f"; Node {dense.nodes[best]} comes nearest: {refusal}"
    return replace(cause, message=message, nodes=frozenset({dense.nodes[best]}))


def _lacking(numa: DenseNuma, index: int, node: int) -> float:
    """Of containers, and of their resources, the one that lacks most counts."""
    zones = numa.kubelet(node).amounts(numa.start[node])
    worst = 0.0
    for unit in numa.of(index, node):
        rooms = zones if unit.width == 1 else [[sum(each) for each in zip(*zones, strict=True)]]
        lacks = (max((1 - room[at] / need for at, need, _ in unit.amounts if need), default=0.0) for room in rooms)
        worst = max(worst, min(lacks, default=0.0))
    return worst
