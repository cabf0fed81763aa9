"""C7 by label, C12 pod affinity, C13 pod anti-affinity, C14 spread, C15 exclusive, for all pods at once.

Source: kube-scheduler ``plugins/interpodaffinity`` and ``plugins/podtopologyspread``.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import chain, combinations, filterfalse

from placer.problem import Key, Pod, PodState
from placer.problem.findings import counted
from placer.problem.keys import label_word
from placer.problem.neighbours import AffinityTerm, SpreadLimit
from placer.problem.outcome import Outcome
from placer.problem.placement import Violation
from placer.problem.pod_index import by_domain, domain_of, owners_of_terms, pairs_apart
from placer.rules.words import bound_and_new, count_of, pod_name

Domain = tuple[str, str]


def pod_affinity(outcome: Outcome) -> Iterator[Violation]:
    """C12: each new pod with required pod affinity is admitted, when its turn in plan order comes, by bound and earlier
    pods, or as the first of its kind. The amount is 1 per pod, which counts for later ones.
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
        domains = ((key, domain_of(self._nodes, node, key)) for key in self._keys)
        self._there.update((key, value) for key, value in domains if value is not None)

    def refusal(self, pod: Key, node: str) -> str | None:
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
    """C13: no two pods, one of them new and one with a required term that matches the other, share a domain.

    The amount is the number of such pairs, per term and domain.
    """
    for term, domains, means in _apart(outcome):
        for value in sorted(domains.keys() & means.keys()):
            there, meant = domains[value], means[value]
            pairs = _new_pairs(outcome, there, meant)
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
    nodes = outcome.instance.nodes
    meanings: dict[tuple[str, int], dict[str, list[Key]]] = {}
    new = {id(outcome.instance.pods[key]) for key in outcome.new}
    pods = (pod for pod in outcome.instance.pods.values() if pod.state.on_node or id(pod) in new)
    for term, owners in owners_of_terms(pods).items():
        matched = outcome.neighbours.matching(term.pods)
        if not new.isdisjoint(map(id, chain(owners, matched))):
            place = term.topology_key, id(matched)
            if place not in meanings:
                meanings[place] = by_domain(nodes, term.topology_key, matched, outcome.node_of)
            yield term, by_domain(nodes, term.topology_key, owners, outcome.node_of), meanings[place]


def _new_pairs(outcome: Outcome, one: Sequence[Key], two: Sequence[Key]) -> int:
    return pairs_apart(one, two) - pairs_apart(*(filterfalse(outcome.new.__contains__, keys) for keys in (one, two)))


def spread(outcome: Outcome) -> Iterator[Violation]:
    """C14: for each spread constraint of a new pod that forbids, the node has its topology key, and the pod's domain
    has at most maxSkew more of the counted pods than the emptiest one. The amount is the excess, per domain.
    """
    limits: dict[SpreadLimit, list[Pod]] = defaultdict(list)
    for key in outcome.new:
        pod = outcome.instance.pods[key]
        for limit in pod.neighbours.spread:
            limits[limit].append(pod)
    for limit, pods in limits.items():
        yield from _skews(outcome, limit, pods)


def _skews(outcome: Outcome, limit: SpreadLimit, pods: Sequence[Pod]) -> Iterator[Violation]:
    key, (counts, fewest) = limit.topology_key, outcome.spread_over(limit)
    mine: dict[str, list[Key]] = defaultdict(list)
    for pod in pods:
        value = outcome.domain_of(pod, key)
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


def one_domain(outcome: Outcome) -> Iterator[Violation]:
    """C7 by label: all placed pods of a unit are in one domain. The amount is the number of pods outside the
    fullest.
    """
    for unit, domains in outcome.unit_places.items():
        counts = Counter({value: len(pods) for value, pods in domains.items()})
        new = sum(key in outcome.new for pods in domains.values() for key in pods)
        most = max(counts[value] for value in {*counts, ""} - {None})
        if new and most < counts.total():
            message = (
                f"{unit.name} asks for one domain of {unit.topology_key}: its "
                f"{bound_and_new(counts.total() - new, new)} {'is' if counts.total() == 1 else 'are'} in "
                f"{' and '.join(_domains(unit.topology_key, counts))}"
            )
            yield Violation("C7", (unit.name,), counts.total() - most, message)


def _domains(label: str, values: Collection[str | None]) -> Iterator[str]:
    yield from sorted(f"{label}={label_word(value)}" for value in values if value is not None)
    if None in values:
        yield f"nodes without {label}"


def exclusive(outcome: Outcome) -> Iterator[Violation]:
    """C15: units that are exclusive in one key share no domain of it, nor do an exclusive Job of a JobSet and another
    Job.

    The amount is the number of pairs, one of them new, per domain.
    """
    for (label, value), units in sorted(outcome.exclusive_units().items()):
        names = sorted(unit.name for unit in units)
        pairs = sum(not outcome.new.keys().isdisjoint((*one, *two)) for one, two in combinations(units.values(), 2))
        if pairs:
            domain = f"Domain {label}={label_word(value)}"
            message = (
                f"{domain} holds pods of {' and of '.join(names)}, each of which asks for a domain of {label} of its "
                f"own: {count_of(pairs, 'pair')} too many"
            )
            yield Violation("C15", (domain, *names), pairs, message)
    yield from _beside_exclusive_jobs(outcome)


def _beside_exclusive_jobs(outcome: Outcome) -> Iterator[Violation]:
    for (label, value), both in sorted(outcome.job_places().items()):
        pairs = _new_pairs(outcome, *both)
        if pairs:
            domain = f"Domain {label}={value}"
            alone, others = (counted(set(map(pod_name, keys))) for keys in both)
            message = (
                f"{domain} holds {alone} of a JobSet's Job that asks for a domain of {label} of its own, and {others} "
                f"of other Jobs of JobSets: {count_of(pairs, 'pair')} too many"
            )
            yield Violation("C15", (domain, pod_name(min(both[0]))), pairs, message)
