"""Demands of pods on the pods around them (C12 to C15), in words: term, label, and the holders of each domain."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import islice

import numpy as np

from placer.answers.reasons.cause import NAMED, Cause, plural, pod_names
from placer.arrays import Dense
from placer.base.words import Owned, Sentence, and_list, some
from placer.problem import Instance, Pod, PodState
from placer.problem.keys import label_word
from placer.problem.neighbours import AffinityTerm, DomainUnit, PodSelector, SpreadLimit
from placer.problem.nodes import Requirement
from placer.problem.pod_index import PodIndex, domain_of


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
        return Sentence.listed(texts, NAMED) + f" {_verb(held)} in the way" if texts else Sentence()

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

#: What is said of terms of anti-affinity to who has none of them.
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


def _verb(held: Mapping[str, Sequence[Pod]]) -> str:
    return "is" if sum(map(len, held.values())) == 1 else "are"


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
