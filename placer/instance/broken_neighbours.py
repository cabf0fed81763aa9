"""Pod affinity (C12) and spread (C14) that bound pods do not keep any more, or never did, among themselves.

Kubernetes looks at both when a pod is bound, and never again: those that a pod was near may have gone since, and so may
pods that made a spread even. That is nobody's fault, but it says why new pods are kept off.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator

from placer.instance.findings import counted
from placer.instance.pod_index import PodIndex, domain_of
from placer.instance.problem import AffinityTerm, Instance, Pod, PodState, SpreadLimit

__all__ = ["broken_affinity", "broken_spread"]


def _bound(instance: Instance) -> list[Pod]:
    return [pod for pod in instance.pods.values() if pod.state is PodState.BOUND]


def broken_affinity(instance: Instance) -> Iterator[tuple[str, str]]:
    """Bound pods in whose domain of a key no bound pod matches all their terms; who matches them itself is at home."""
    bound = _bound(instance)
    asking: dict[tuple[AffinityTerm, ...], list[Pod]] = defaultdict(list)
    for pod in bound:
        if pod.neighbours.affinity:
            asking[pod.neighbours.affinity].append(pod)
    index = PodIndex(bound, instance.namespaces) if asking else None
    for terms, pods in asking.items():
        matching = index.matching_all(term.pods for term in terms) if index is not None else ()
        for key in dict.fromkeys(term.topology_key for term in terms):
            there = {domain_of(instance.nodes, pod.node, key) for pod in matching} - {None}
            alone = sorted(pod.key for pod in pods if domain_of(instance.nodes, pod.node, key) not in there)
            if alone:
                who = counted({f"Pod {each}" for each in alone})
                yield f"Pod {alone[0]}", f"C12: no bound pod in its domain of {key} matches the pod affinity of {who}"


def broken_spread(instance: Instance) -> Iterator[tuple[str, str]]:
    """One per constraint of bound pods: the domain of theirs that has most, more than maxSkew beyond the fewest."""
    bound = _bound(instance)
    owners: dict[SpreadLimit, list[Pod]] = defaultdict(list)
    for pod in bound:
        for limit in pod.neighbours.spread:
            owners[limit].append(pod)
    index = PodIndex(bound, instance.namespaces) if owners else None
    for limit, pods in owners.items():
        key = limit.topology_key
        counting = {name: node.labels[key] for name, node in instance.nodes.items() if limit.counts(node)}
        counts = Counter(dict.fromkeys(counting.values(), 0))
        for pod in index.matching(limit.pods) if index is not None else ():
            if pod.node in counting:
                counts[counting[pod.node]] += 1
        fewest = min(counts.values(), default=0) if len(counts) >= limit.min_domains else 0
        mine = {domain_of(instance.nodes, pod.node, key) for pod in pods} & counts.keys()
        most, domain = max(((counts[each], each) for each in mine if each is not None), default=(0, ""))
        if most - fewest > limit.max_skew:
            first = min(pod.key for pod in pods)
            message = f"{key}={domain} has {most} bound pods that the spread of Pod {first} and its like counts"
            yield f"Pod {first}", f"C14: {message}, {most - fewest} more than the fewest; maxSkew is {limit.max_skew}"
