"""Rules about pods and the pods around them: C12 pod affinity, C13 pod anti-affinity, C14 spread.

A domain of a topology key is the set of the nodes of one value of that label. Source: kube-scheduler
``plugins/interpodaffinity`` and ``plugins/podtopologyspread``, judged for all pods of a placement at once.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain

from placer.instance import Key, Pod, PodState
from placer.instance.findings import counted
from placer.instance.keys import label_word
from placer.instance.neighbours import AffinityTerm, SpreadLimit
from placer.instance.pod_index import CountedDomains, domain_of, owners_of_terms, pairs_apart
from placer.outcome import Outcome
from placer.placement import Violation
from placer.verify.words import count_of, pod_name

__all__ = ["pod_affinity", "pod_anti_affinity", "spread"]

Domain = tuple[str, str]


def pod_affinity(outcome: Outcome) -> Iterator[Violation]:
    """C12: each new pod with required pod affinity is admitted, when its turn in plan order comes, by bound and earlier
    pods.

    Its node has the topology key of every term, and the node's domain of every key holds a pod that matches all of its
    terms; or no such pod is on a node with one of the keys, and the pod matches its terms itself: it is the first.
    Terminating pods attract nobody. A pod that is not admitted is a violation of amount 1, and counts for those after
    it all the same.
    """
    asking = {outcome.instance.pods[key].neighbours.affinity for key in outcome.new} - {()}
    if not asking:
        return
    attractions, matched = _attractions(outcome, asking)
    for key, node in outcome.new.items():
        terms = outcome.instance.pods[key].neighbours.affinity
        refusal = attractions[terms].refusal(key, node) if terms else None
        if refusal is not None:
            subjects = (pod_name(key), f"Node {node}")
            yield Violation("C12", subjects, 1, f"{subjects[0]} may not be on {subjects[1]}: {refusal}")
        for each in matched[key]:
            each.add(node)


def _attractions(
    outcome: Outcome, asking: Iterable[tuple[AffinityTerm, ...]]
) -> tuple[dict[tuple[AffinityTerm, ...], _Matches], dict[Key, list[_Matches]]]:
    alike: dict[object, _Matches] = {}
    found: dict[tuple[AffinityTerm, ...], _Matches] = {}
    for terms in asking:
        place = tuple((term.topology_key, id(outcome.neighbours.matching(term.pods))) for term in terms)
        if place not in alike:
            alike[place] = _Matches(outcome, terms)
        found[terms] = alike[place]
    matched: dict[Key, list[_Matches]] = defaultdict(list)
    for each in alike.values():
        for key in each.new:
            matched[key].append(each)
    return found, matched


class _Matches:
    def __init__(self, outcome: Outcome, terms: Sequence[AffinityTerm]) -> None:
        self._nodes = outcome.instance.nodes
        self._keys = tuple(dict.fromkeys(term.topology_key for term in terms))
        self._there: set[Domain] = set()
        self.new: set[Key] = set()
        for pod in outcome.neighbours.matching_all(term.pods for term in terms):
            if pod.key in outcome.new:
                self.new.add(pod.key)
            elif pod.state is PodState.BOUND and pod.node is not None:
                self.add(pod.node)

    def add(self, node: str) -> None:
        """Count a pod that matches."""
        domains = ((key, domain_of(self._nodes, node, key)) for key in self._keys)
        self._there.update((key, value) for key, value in domains if value is not None)

    def refusal(self, pod: Key, node: str) -> str | None:
        """Why a pod is not admitted on a node next to the pods counted so far; None where it is."""
        for key in self._keys:
            value = domain_of(self._nodes, node, key)
            if value is None:
                return f"its pod affinity is over {key}, which the node has no label of"
            if (key, value) not in self._there and (self._there or pod not in self.new):
                first = "" if pod in self.new else ", and it does not match them itself"
                where = f"{key}={label_word(value)}"
                return f"no pod that is there before it in {where} matches all terms of its pod affinity{first}"
        return None


def pod_anti_affinity(outcome: Outcome) -> Iterator[Violation]:
    """C13: no two pods, one of them new and one with a required anti-affinity term that matches the other, share a
    domain of the term's topology key.

    Terms of bound and terminating pods count as those of new ones. One violation per term and domain; the amount is the
    number of such pairs.
    """
    for term, domains, means in _apart(outcome):
        for value in sorted(domains.keys() & means.keys()):
            there, meant = domains[value], means[value]
            pairs = pairs_apart(there, meant)
            pairs -= pairs_apart(_old(outcome, there), _old(outcome, meant))
            if pairs:
                where = f"{term.topology_key}={label_word(value)}"
                others = counted({pod_name(key) for key in meant})
                message = (
                    f"Domain {where}: required pod anti-affinity of {counted({pod_name(key) for key in there})} keeps "
                    f"off {others}: {count_of(pairs, 'pair')} too many"
                )
                yield Violation("C13", (f"Domain {where}", pod_name(min(there))), pairs, message)


def _apart(outcome: Outcome) -> Iterator[tuple[AffinityTerm, dict[str, list[Key]], dict[str, list[Key]]]]:
    """Terms that mean the same pods share one look-up."""
    meanings: dict[tuple[str, int], dict[str, list[Key]]] = {}
    new = {id(outcome.instance.pods[key]) for key in outcome.new}
    pods = (pod for pod in outcome.instance.pods.values() if pod.state.on_node or id(pod) in new)
    for term, owners in owners_of_terms(pods).items():
        matched = outcome.neighbours.matching(term.pods)
        if not new.isdisjoint(map(id, chain(owners, matched))):
            place = term.topology_key, id(matched)
            if place not in meanings:
                meanings[place] = _by_domain(outcome, term, matched)
            yield term, _by_domain(outcome, term, owners), meanings[place]


def _by_domain(outcome: Outcome, term: AffinityTerm, pods: Iterable[Pod]) -> dict[str, list[Key]]:
    found: dict[str, list[Key]] = defaultdict(list)
    for pod in pods:
        value = domain_of(outcome.instance.nodes, outcome.node_of(pod), term.topology_key)
        if value is not None:
            found[value].append(pod.key)
    return found


def _old(outcome: Outcome, keys: Iterable[Key]) -> list[Key]:
    return [key for key in keys if key not in outcome.new]


def spread(outcome: Outcome) -> Iterator[Violation]:
    """C14: for each spread constraint of a new pod that forbids, the node has its topology key, and the pod's domain
    has at most maxSkew more of the counted pods than the emptiest one.

    Counted are bound and new pods on nodes that count. With fewer than minDomains domains the fewest is 0. One
    violation per constraint and domain: the amount is the excess over maxSkew; nodes without the key: one violation per
    pod, of amount 1.
    """
    limits: dict[SpreadLimit, list[Pod]] = defaultdict(list)
    for key in outcome.new:
        pod = outcome.instance.pods[key]
        for limit in pod.neighbours.spread:
            limits[limit].append(pod)
    domains = CountedDomains(outcome.instance.nodes, outcome.neighbours, outcome.node_of)
    for limit, pods in limits.items():
        yield from _skews(outcome, domains, limit, pods)


def _skews(outcome: Outcome, domains: CountedDomains, limit: SpreadLimit, pods: Sequence[Pod]) -> Iterator[Violation]:
    key, counts = limit.topology_key, domains.counts(limit)
    fewest = min(counts.values(), default=0) if len(counts) >= limit.min_domains else 0
    mine: dict[str, list[Key]] = defaultdict(list)
    for pod in pods:
        value = domain_of(outcome.instance.nodes, outcome.node_of(pod), key)
        if value is None:
            subjects = (pod_name(pod.key), f"Node {outcome.node_of(pod)}")
            message = f"{subjects[0]} is spread over {key}, which {subjects[1]} has no label of"
            yield Violation("C14", subjects, 1, message)
        else:
            mine[value].append(pod.key)
    for value, there in sorted(mine.items()):
        excess = counts[value] - fewest - limit.max_skew
        if excess > 0:
            message = (
                f"Domain {key}={label_word(value)} has {count_of(counts[value], 'pod')} that the spread of "
                f"{counted({pod_name(each) for each in there})} counts, {counts[value] - fewest} more than the fewest, "
                f"{fewest}; maxSkew is {limit.max_skew}"
            )
            yield Violation("C14", (f"Domain {key}={label_word(value)}", pod_name(min(there))), excess, message)
