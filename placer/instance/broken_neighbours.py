"""Pod affinity (C12) and spread (C14) that bound pods do not keep any more, or never did, among themselves.

Kubernetes looks at both when a pod is bound, and never again: those that a pod was near may have gone since, and so may
pods that made a spread even. That is nobody's fault, but it says why new pods are kept off.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator

from placer.instance.findings import counted
from placer.instance.keys import Key
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
        asking[pod.neighbours.affinity].append(pod)
    asking.pop((), None)
    index = PodIndex(bound, instance.namespaces)
    for terms, pods in asking.items():
        matching = index.matching_all(term.pods for term in terms)
        for key in dict.fromkeys(term.topology_key for term in terms):
            alone = _outside(instance, key, pods, matching)
            if alone:
                who = counted({f"Pod {each}" for each in alone})
                yield f"Pod {alone[0]}", f"C12: no bound pod in its domain of {key} matches the pod affinity of {who}"


def _outside(instance: Instance, key: str, pods: Iterable[Pod], others: Iterable[Pod]) -> list[Key]:
    """Those of some pods that share no domain with any of the others."""
    there = {domain_of(instance.nodes, pod.node, key) for pod in others} - {None}
    return sorted(pod.key for pod in pods if domain_of(instance.nodes, pod.node, key) not in there)


def broken_spread(instance: Instance) -> Iterator[tuple[str, str]]:
    """One per constraint of bound pods: the domain of theirs that has most, more than maxSkew beyond the fewest."""
    bound = _bound(instance)
    owners: dict[SpreadLimit, list[Pod]] = defaultdict(list)
    for pod in bound:
        for limit in pod.neighbours.spread:
            owners[limit].append(pod)
    index = PodIndex(bound, instance.namespaces)
    for limit, pods in owners.items():
        counts = _counts(instance, limit, index.matching(limit.pods))
        fewest = min(counts.values(), default=0) if len(counts) >= limit.min_domains else 0
        mine = {str(domain_of(instance.nodes, pod.node, limit.topology_key)) for pod in pods} & counts.keys()
        most, domain = max(((counts[each], each) for each in mine), default=(0, ""))
        if most - fewest > limit.max_skew:
            first, where = min(pod.key for pod in pods), f"{limit.topology_key}={domain}"
            message = f"{where} has {most} bound pods that the spread of Pod {first} and its like counts"
            yield f"Pod {first}", f"C14: {message}, {most - fewest} more than the fewest; maxSkew is {limit.max_skew}"


def _counts(instance: Instance, limit: SpreadLimit, pods: Iterable[Pod]) -> Counter[str]:
    """Every domain that counts to the pods that are counted there."""
    counting = {name: node.labels[limit.topology_key] for name, node in instance.nodes.items() if limit.counts(node)}
    found = Counter(dict.fromkeys(counting.values(), 0))
    found.update(counting[pod.node] for pod in pods if pod.node in counting)
    return found
