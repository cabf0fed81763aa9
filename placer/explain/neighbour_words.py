"""What a group asks of the pods around it, in words: which pods, by which label, and what there is of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from placer.instance import Group, Instance, Pod, PodState
from placer.instance.pod_index import domain_of
from placer.instance.problem import DomainUnit, PodSelector, Requirement
from placer.reasons.cause import plural
from placer.words import and_list, some

__all__ = ["asked_words"]

#: Pods, and values of a label, that are named.
NAMED = 3


def asked_words(instance: Instance, group: Group, code: str) -> str:
    """What the pods of a group ask by the rule of a cause, and how that stands; empty where no rule of neighbours is.

    Parameters
    ----------
    instance
        As things stand.
    group
        Who asks.
    code
        The cause.
    """
    told = _TOLD.get(code)
    pods = [instance.pods[key] for key in group.pending] if told is not None else []
    kinds = {(pod.neighbours, tuple(sorted(pod.labels.items()))): pod for pod in pods}.values()
    return "; ".join(dict.fromkeys(each for pod in kinds for each in told(instance, pod))) if told is not None else ""


def _near(instance: Instance, pod: Pod) -> Iterator[str]:
    for term in pod.neighbours.affinity:
        those = _running(instance, term.pods)
        there = _pods(instance, those, term.topology_key) if those else "none runs"
        yield f"its pods must be in one {term.topology_key} with {_meant(term.pods)}: {there}"


def _apart(instance: Instance, pod: Pod) -> Iterator[str]:
    for term in pod.neighbours.anti_affinity:
        those = _running(instance, term.pods)
        there = f"{_pods(instance, those, term.topology_key)}; " if those else ""
        own = ", themselves among them" if term.pods.matches(pod, instance.namespaces) else ""
        values = _values(instance, term.topology_key)
        yield f"its pods must be in no {term.topology_key} with {_meant(term.pods)}{own}: {there}{values}"
    for other in instance.pods.values():
        for term in other.neighbours.anti_affinity if other.state.on_node else ():
            if term.pods.matches(pod, instance.namespaces):
                yield f"Pod {other.key} on Node {other.node} keeps them off its {term.topology_key}"


def _spread(instance: Instance, pod: Pod) -> Iterator[str]:
    for limit in pod.neighbours.spread:
        least = f", at least {plural(limit.min_domains, 'domain')}" if limit.min_domains > 1 else ""
        values = _values(instance, limit.topology_key)
        yield f"its pods must be spread over {limit.topology_key} with maxSkew {limit.max_skew}{least}: {values}"


def _alone(instance: Instance, pod: Pod) -> Iterator[str]:
    for unit in pod.neighbours.units:
        if unit.exclusive:
            held = _holders(instance, unit)
            there = f"{and_list(held)}; " if held else ""
            yield f"no other may be in its {unit.topology_key}: {there}{_values(instance, unit.topology_key)}"


def _holders(instance: Instance, unit: DomainUnit) -> list[str]:
    """Running units that keep a unit off their domains, each with its domain; some of them."""
    held = {
        f"{other.name} holds {domain_of(instance.nodes, pod.node, other.topology_key) or 'none'}"
        for pod in instance.pods.values()
        if pod.state is PodState.BOUND
        for other in pod.neighbours.units
        if other.keeps_off(unit)
    }
    return some(sorted(held), NAMED)


_TOLD: Mapping[str, Callable[[Instance, Pod], Iterator[str]]] = {
    "PodAffinity": _near,
    "PodAntiAffinity": _apart,
    "TopologySpread": _spread,
    "Exclusive": _alone,
}


def _running(instance: Instance, selector: PodSelector) -> list[Pod]:
    bound = (pod for pod in instance.pods.values() if pod.state is PodState.BOUND)
    return [pod for pod in bound if selector.matches(pod, instance.namespaces)]


def _pods(instance: Instance, pods: Sequence[Pod], key: str) -> str:
    """Where pods run, by name and domain."""
    named = [f"{pod.key} runs in {domain_of(instance.nodes, pod.node, key) or 'none'}" for pod in pods]
    return and_list(some(named, NAMED))


def _values(instance: Instance, key: str) -> str:
    """How many values of a label nodes have, and some of them."""
    found = sorted({node.labels[key] for node in instance.nodes.values() if key in node.labels})
    shown = [*found[:NAMED], *(["..."] if len(found) > NAMED else [])]
    return f"{plural(len(found), 'such domain')} ({', '.join(shown)})" if found else "no node has this label"


def _meant(selector: PodSelector) -> str:
    if selector.requirements is None:
        return "no pod at all"
    return "pods of " + (", ".join(map(_requirement, selector.requirements)) or "any labels")


def _requirement(asked: Requirement) -> str:
    if asked.operator == "In" and len(asked.values) == 1:
        return f"{asked.key}={asked.values[0]}"
    return " ".join(part for part in (asked.key, asked.operator, ",".join(asked.values)) if part)
