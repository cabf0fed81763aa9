"""Where a group that calls (C8, C9), NUMA zones (C10) or pods around it (C12 to C15) keep out comes nearest, in words.

Of pods around it: term, label, and the holders of each domain.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import islice

import numpy as np

from placer.answers.reasons.cause import NAMED, Cause, plural, pod_names
from placer.arrays import Dense
from placer.arrays.numa import DenseNuma
from placer.base.words import Owned, Sentence, and_list, some
from placer.problem import Area, Dependency, Instance, Key, Pod, PodState
from placer.problem.keys import label_word
from placer.problem.neighbours import AffinityTerm, DomainUnit, PodSelector, SpreadLimit
from placer.problem.nodes import Requirement
from placer.problem.numa import TopologyManager
from placer.problem.outcome import Outcome
from placer.problem.placement import Placement, Violation
from placer.problem.pod_index import PodIndex, domain_of
from placer.rules.calls import bandwidth, network_cost

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
                link = network.link(origin, destination) if flow.dependency.min_bandwidth else None
                if link is not None and violation.subjects[1] == f"Link {link.origin} -> {link.destination}":
                    there.add((flow.app_group, flow.dependency.origin, origin))
                    there.add((flow.app_group, flow.dependency.destination, destination))
        return lambda pod, node: (pod.app_group, pod.workload, network.area(node)) in there


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


class NeighbourWords:
    """Demands on pods around; pods with a node are those in the way."""

    def __init__(self, instance: Instance) -> None:
        self.instance = instance
        self._with_room: dict[tuple[frozenset[str], str], set[str | None]] = {}

    @cached_property
    def _standing(self) -> PodIndex:
        return PodIndex((pod for pod in self.instance.pods.values() if pod.state.on_node), self.instance.namespaces)

    @cached_property
    def _repelling(self) -> Mapping[AffinityTerm, list[Pod]]:
        found: dict[AffinityTerm, list[Pod]] = defaultdict(list)
        for pod in self.instance.pods.values():
            for term in pod.neighbours.anti_affinity if pod.state.on_node else ():
                found[term].append(pod)
        return found

    def asked(self, pods: Iterable[Pod], code: str, roomy: frozenset[str] = frozenset()) -> Sentence:
        """Demands of pods by the rule of a cause, and their state; domains with ``roomy`` nodes first."""
        told = _TOLD.get(code)
        kinds = {(pod.neighbours, tuple(sorted(pod.labels.items()))): pod for pod in pods if told is not None}
        texts = (text for pod in kinds.values() for text in told(self, pod, roomy)) if told is not None else iter(())
        shown = list(dict.fromkeys(islice(texts, TERMS)))
        return Sentence.joined([*shown, *(["and more"] if next(texts, None) is not None else [])])

    def cause(self, dense: Dense, group: int, cause: Cause) -> Cause:
        """Add the term that keeps a group out, its label and holders, to a cause of C12 to C15."""
        if cause.code not in _TOLD:
            return cause
        plain = replace(dense, neighbours=None, network=None, numa=None)
        classes = dense.groups[group].classes
        fits = np.any([plain.fits(index) > 0 for index in classes], axis=0)
        roomy = frozenset(dense.nodes[node] for node in np.flatnonzero(fits).tolist())
        pods = [self.instance.pods[dense.classes[index].pods[0]] for index in classes]
        said = self.asked(pods, cause.code, roomy)
        # Near others there is no room: then whoever took it there is in the way, else those who are named already.
        nodes = self._near(pods) if cause.code == "PodAffinity" else frozenset[str]()
        return replace(cause, message=cause.message + ": " + said, nodes=nodes, holds=None) if said else cause

    def _near(self, pods: Iterable[Pod]) -> frozenset[str]:
        nodes, found = self.instance.nodes, set[str]()
        for term in {term for pod in pods for term in pod.neighbours.affinity}:
            there = {domain_of(nodes, pod.node, term.topology_key) for pod in self._running(term.pods)} - {None}
            found |= {name for name, node in nodes.items() if node.labels.get(term.topology_key) in there}
        return frozenset(found)

    def _running(self, selector: PodSelector) -> list[Pod]:
        return [pod for pod in self._standing.matching(selector) if pod.state is not PodState.TERMINATING]

    def _there(self, selector: PodSelector, key: str) -> Sentence:
        place = id(self._standing.matching(selector)), key
        if place not in self._written:
            those = self._running(selector)
            self._written[place] = _pods(self.instance, those, key) if those else Sentence()
        return self._written[place]

    @cached_property
    def _written(self) -> dict[tuple[int, str], Sentence]:
        return {}

    def _ending(self, selector: PodSelector) -> Sentence:
        """Pods being deleted attract nobody any more."""
        those = [pod for pod in self._standing.matching(selector) if pod.state is PodState.TERMINATING]
        verb = "is" if len(those) == 1 else "are"
        return " but " + pod_names(those) + f", which {verb} being deleted" if those else Sentence()

    def _own(self, selector: PodSelector, pod: Pod) -> str:
        return ", themselves among them" if selector.matches(pod, self.instance.namespaces) else ""

    # Each of the following gives the sentences about one pod.

    def near(self, pod: Pod, roomy: frozenset[str]) -> Iterator[Sentence]:
        """C12: pods to be near."""
        for term in pod.neighbours.affinity:
            key = term.topology_key
            there = self._there(term.pods, key) or f"none runs{_where(term.pods)}" + self._ending(term.pods)
            room, own = _room(self.instance, roomy, key), self._own(term.pods, pod)
            values = _values(self.instance, key) if own or not room else ""
            said = Sentence.joined((there, room, values))
            yield f"its pods must be in one {key} with {_meant(term.pods)}{own}: " + said

    def apart(self, pod: Pod, roomy: frozenset[str]) -> Iterator[Sentence]:
        """C13: pods to be apart from, in both directions."""
        for term in pod.neighbours.anti_affinity:
            key = term.topology_key
            held = self._holders(self._standing.matching(term.pods), key, roomy)
            own, values = self._own(term.pods, pod), _values(self.instance, key)
            yield f"its pods must be in no {key} with {_meant(term.pods)}{own}: " + Sentence.joined((held, values))
        for term, owners in self._repelling.items():
            if term.pods.matches(pod, self.instance.namespaces):
                named = self._standing.matching(term.pods) if term in pod.neighbours.anti_affinity else ()
                held = self._holders((each for each in owners if each not in named), term.topology_key, roomy)
                if held:
                    asked = f"others must be in no {term.topology_key} with {_meant(term.pods)}, as its pods are: "
                    whose = frozenset(each.key.namespace for each in owners)
                    yield Sentence.of(Owned(whose, Sentence.of(asked), _APART), held)

    def spread(self, pod: Pod, roomy: frozenset[str]) -> Iterator[Sentence]:
        """C14: domains to be spread over."""
        for limit in pod.neighbours.spread:
            least = f", at least {plural(limit.min_domains, 'domain')}" if limit.min_domains > 1 else ""
            asked = f"its pods must be spread over {limit.topology_key} with maxSkew {limit.max_skew}{least}"
            yield f"{asked}: " + self._counted(limit, roomy) + _values(self.instance, limit.topology_key)

    def alone(self, pod: Pod, _: frozenset[str]) -> Iterator[Sentence]:
        """C15: others in its domain."""
        for unit in pod.neighbours.units:
            if unit.exclusive:
                values = _values(self.instance, unit.topology_key)
                yield f"no other may be in its {unit.topology_key}: " + Sentence.joined((self._units(unit), values))

    def _holders(self, pods: Iterable[Pod], key: str, roomy: frozenset[str]) -> Sentence:
        nodes = self.instance.nodes
        if (roomy, key) not in self._with_room:
            self._with_room[roomy, key] = {nodes[name].labels.get(key) for name in roomy}
        with_room = self._with_room[roomy, key]
        held: dict[str, list[Pod]] = defaultdict(list)
        for pod in pods:
            value = domain_of(nodes, pod.node, key)
            if value is not None and (not roomy or value in with_room):
                held[value].append(pod)
        named = sorted(held)[:NAMED]
        texts = [pod_names(held[value], _name) + f" in {label_word(value)}" for value in named]
        texts += [Sentence()] * (len(held) - len(named))  # they are counted
        verb = "is" if sum(map(len, held.values())) == 1 else "are"
        return Sentence.listed(texts, NAMED) + f" {verb} in the way" if texts else Sentence()

    def _counted(self, limit: SpreadLimit, roomy: frozenset[str]) -> Sentence:
        there, nodes, key = self._by_domain(limit), self.instance.nodes, limit.topology_key
        fewest = sorted(there, key=lambda value: (len(there[value]), value))[:1]
        roomiest = {domain_of(nodes, name, key) for name in roomy} - {*fewest}
        shown = [*fewest, *(value for value in there if value in roomiest)]
        texts = [_of_domain(value, there[value], limit) for value in shown]
        said = Sentence.listed(texts, NAMED) if any(there.values()) else ""
        return Sentence.of(
            *(part for text in (said, _room(self.instance, roomy, key)) if text for part in (text, "; "))
        )

    def _by_domain(self, limit: SpreadLimit) -> dict[str, list[Pod]]:
        nodes = self.instance.nodes
        counting = {name: node.labels[limit.topology_key] for name, node in nodes.items() if limit.counts(node)}
        there: dict[str, list[Pod]] = {value: [] for value in sorted(counting.values())}
        for pod in self._running(limit.pods):
            if pod.node in counting:
                there[counting[pod.node]].append(pod)
        return there

    def _units(self, unit: DomainUnit) -> Sentence:
        held = {
            (other.name, _domain(self.instance, pod, other.topology_key)): pod
            for pod in self.instance.pods.values()
            if pod.state is PodState.BOUND
            for other in pod.neighbours.units
            if other.keeps_off(unit)
        }
        texts = [_unit(name, held[name, where]) + f" holds {where}" for name, where in sorted(held)]
        return Sentence.listed(texts, NAMED)


#: So many sentences about terms are in one reason: more help nobody, and a tenant writes as many terms as they like.
TERMS = 2

#: Words about terms of anti-affinity, for readers who have none of these.
_APART = Sentence.of("others keep its pods off where they are: ")

_TOLD: Mapping[str, Callable[[NeighbourWords, Pod, frozenset[str]], Iterator[Sentence]]] = {
    "PodAffinity": NeighbourWords.near,
    "PodAntiAffinity": NeighbourWords.apart,
    "TopologySpread": NeighbourWords.spread,
    "Exclusive": NeighbourWords.alone,
}


def _name(pod: Pod) -> str:
    return f"Pod {pod.key}" + (", which is being deleted," if pod.state is PodState.TERMINATING else "")


def _unit(name: str, pod: Pod) -> Sentence:
    other = f"another of a pod of priority {pod.priority}"
    return Sentence.of(Owned(frozenset((pod.key.namespace,)), Sentence.of(name), Sentence.of(other)))


def _of_domain(value: str, pods: Sequence[Pod], limit: SpreadLimit) -> Sentence:
    there = f"{label_word(value)} has {len(pods)} of {_meant(limit.pods)}"
    return there + (" (" + pod_names(pods, _name) + ")" if pods else Sentence())


def _pods(instance: Instance, pods: Sequence[Pod], key: str) -> Sentence:
    return pod_names(pods, lambda pod: f"Pod {pod.key} is in {_domain(instance, pod, key)}")


def _domain(instance: Instance, pod: Pod, key: str) -> str:
    value = domain_of(instance.nodes, pod.node, key)
    return "none" if value is None else label_word(value)


def _room(instance: Instance, names: Collection[str], key: str) -> str:
    values = {instance.nodes[name].labels.get(key) for name in names}
    named = (
        [f"in {and_list(some(sorted(map(label_word, inside)), NAMED))}"]
        if (inside := {each for each in values if each is not None})
        else []
    )
    named += ["on nodes without this label"] if None in values else []
    return f"there is room for one of them {and_list(named)}" if named else ""


def _values(instance: Instance, key: str) -> str:
    found = sorted({node.labels[key] for node in instance.nodes.values() if key in node.labels})
    shown = [*map(label_word, found[:NAMED]), *(["..."] if len(found) > NAMED else [])]
    return f"{plural(len(found), 'such domain')} ({', '.join(shown)})" if found else "no node has this label"


def _where(selector: PodSelector) -> str:
    if selector.namespace_requirements == ():
        return ""
    named = [f"Namespace{'s' if len(selector.namespaces) > 1 else ''} {and_list(selector.namespaces)}"]
    labels = ", ".join(map(_requirement, selector.namespace_requirements or ()))
    words = [*(named if selector.namespaces else []), *([f"Namespaces of {labels}"] if labels else [])]
    return f" in {and_list(words)}"


def _meant(selector: PodSelector) -> str:
    if selector.requirements is None:
        return "no pod at all"
    return "pods of " + (", ".join(map(_requirement, selector.requirements)) or "any labels")


def _requirement(asked: Requirement) -> str:
    if asked.operator == "In" and len(asked.values) == 1:
        return f"{asked.key}={label_word(asked.values[0])}"
    return " ".join(part for part in (asked.key, asked.operator, ",".join(asked.values)) if part)
