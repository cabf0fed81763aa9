"""C12, C13 and C14 that bound pods do not keep among themselves."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from operator import attrgetter
from typing import TypeVar

from placer.instance.findings import counted
from placer.instance.keys import Key, label_word
from placer.instance.neighbours import Neighbours
from placer.instance.pod_index import CountedDomains, PodIndex, by_domain, domain_of, pairs_apart
from placer.instance.problem import Instance, Pod, PodState

Asked = TypeVar("Asked")
_node = attrgetter("node")


def _asking(
    instance: Instance, what: Callable[[Neighbours], Iterable[Asked]]
) -> tuple[dict[Asked, list[Pod]], PodIndex]:
    bound = [pod for pod in instance.pods.values() if pod.state is PodState.BOUND]
    asking: dict[Asked, list[Pod]] = defaultdict(list)
    for pod in bound:
        for each in what(pod.neighbours):
            asking[each].append(pod)
    return asking, PodIndex(bound, instance.namespaces)


def broken_affinity(instance: Instance) -> Iterator[tuple[str, str]]:
    """Bound pods in whose domain no bound pod matches all their terms."""
    asking, index = _asking(instance, lambda asked: [asked.affinity] if asked.affinity else [])
    for terms, pods in asking.items():
        matching = index.matching_all(term.pods for term in terms)
        for key in dict.fromkeys(term.topology_key for term in terms):
            alone = _outside(instance, key, pods, matching)
            if alone:
                who = counted({f"Pod {each}" for each in alone})
                yield f"Pod {alone[0]}", f"C12: no bound pod in its domain of {key} matches the pod affinity of {who}"


def _outside(instance: Instance, key: str, pods: Iterable[Pod], others: Iterable[Pod]) -> list[Key]:
    there = {domain_of(instance.nodes, pod.node, key) for pod in others} - {None}
    return sorted(pod.key for pod in pods if domain_of(instance.nodes, pod.node, key) not in there)


def broken_anti_affinity(instance: Instance) -> Iterator[tuple[str, str]]:
    """One per term and domain in which pods are together that it keeps apart."""
    asking, index = _asking(instance, lambda asked: asked.anti_affinity)
    meanings: dict[tuple[str, int], Mapping[str, list[Key]]] = {}  # of terms that mean the same pods
    for term, pods in asking.items():
        key, matched = term.topology_key, index.matching(term.pods)
        if (key, id(matched)) not in meanings:
            meanings[key, id(matched)] = by_domain(instance.nodes, key, matched, _node)
        having, meant = by_domain(instance.nodes, key, pods, _node), meanings[key, id(matched)]
        for value in sorted(having.keys() & meant.keys()):
            pairs = pairs_apart(having[value], meant[value])
            if pairs:
                first, what = min(having[value]), "1 pair" if pairs == 1 else f"{pairs} pairs"
                message = f"C13: required pod anti-affinity of Pod {first} and its like keeps {what} of bound pods"
                yield f"Pod {first}", f"{message} apart that are in one domain, {key}={label_word(value)}"


def broken_spread(instance: Instance) -> Iterator[tuple[str, str]]:
    """One per constraint of bound pods: their fullest domain, more than maxSkew beyond the emptiest."""
    asking, index = _asking(instance, lambda asked: asked.spread)
    domains = CountedDomains(instance.nodes, index, _node)
    for limit, pods in asking.items():
        counts = domains.counts(limit)
        fewest = min(counts.values(), default=0) if len(counts) >= limit.min_domains else 0
        mine = {str(domain_of(instance.nodes, pod.node, limit.topology_key)) for pod in pods} & counts.keys()
        most, domain = max(((counts[each], each) for each in mine), default=(0, ""))
        if most - fewest > limit.max_skew:
            first, where = min(pod.key for pod in pods), f"{limit.topology_key}={label_word(domain)}"
            message = f"{where} has {most} bound pods that the spread of Pod {first} and its like counts"
            yield f"Pod {first}", f"C14: {message}, {most - fewest} more than the fewest; maxSkew is {limit.max_skew}"
