"""C7 by label (a part of the tier limit) and C15 exclusive."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping
from itertools import combinations, filterfalse

from placer.instance import Key, PodState
from placer.instance.findings import counted
from placer.instance.keys import label_word
from placer.instance.neighbours import DomainUnit
from placer.instance.pod_index import domain_of, pairs_apart
from placer.outcome import Outcome
from placer.placement import Violation
from placer.verify.words import bound_and_new, count_of, pod_name

#: Value of the unit's topology key to pods there, bound and new; None: on nodes without the label.
ByDomain = Mapping[str | None, list[Key]]


def one_domain(outcome: Outcome) -> Iterator[Violation]:
    """C7 by label: all placed pods of a unit are in one domain. The amount is the number of pods outside the
    fullest.
    """
    for unit, domains in _places(outcome).items():
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
    for (label, value), units in sorted(_exclusive_units(outcome).items()):
        names = sorted(unit.name for unit in units)
        pairs = sum(units[one] or units[other] for one, other in combinations(units, 2))
        if pairs:
            domain = f"Domain {label}={label_word(value)}"
            message = (
                f"{domain} holds pods of {' and of '.join(names)}, each of which asks for a domain of {label} of its "
                f"own: {count_of(pairs, 'pair')} too many"
            )
            yield Violation("C15", (domain, *names), pairs, message)
    yield from _beside_exclusive_jobs(outcome)


def _beside_exclusive_jobs(outcome: Outcome) -> Iterator[Violation]:
    for (label, value), both in sorted(_jobs_by_domain(outcome).items()):
        pairs = pairs_apart(*both) - pairs_apart(*(filterfalse(outcome.new.__contains__, keys) for keys in both))
        if pairs:
            domain = f"Domain {label}={value}"
            alone, others = (counted(set(map(pod_name, keys))) for keys in both)
            message = (
                f"{domain} holds {alone} of a JobSet's Job that asks for a domain of {label} of its own, and {others} "
                f"of other Jobs of JobSets: {count_of(pairs, 'pair')} too many"
            )
            yield Violation("C15", (domain, pod_name(min(both[0]))), pairs, message)


def _jobs_by_domain(outcome: Outcome) -> dict[tuple[str, str], tuple[list[Key], list[Key]]]:
    found: dict[tuple[str, str], tuple[list[Key], list[Key]]] = defaultdict(lambda: ([], []))
    for pod in outcome.instance.pods.values():
        for job in pod.neighbours.jobs if pod.state is PodState.BOUND or pod.key in outcome.new else ():
            value = domain_of(outcome.instance.nodes, outcome.node_of(pod), job.topology_key)
            if value is not None:
                found[job.topology_key, value][not job.exclusive].append(pod.key)
    return found


def _exclusive_units(outcome: Outcome) -> dict[tuple[str, str], dict[DomainUnit, bool]]:
    found: dict[tuple[str, str], dict[DomainUnit, bool]] = defaultdict(dict)
    for unit, domains in _places(outcome).items():
        for value, pods in domains.items() if unit.exclusive else ():
            if value is not None:
                found[unit.topology_key, value][unit] = any(key in outcome.new for key in pods)
    return found


def _places(outcome: Outcome) -> dict[DomainUnit, ByDomain]:
    found: dict[DomainUnit, dict[str | None, list[Key]]] = {}
    for pod in outcome.instance.pods.values():
        for unit in pod.neighbours.units:
            if pod.state is PodState.BOUND or pod.key in outcome.new:
                value = domain_of(outcome.instance.nodes, outcome.node_of(pod), unit.topology_key)
                found.setdefault(unit, defaultdict(list))[value].append(pod.key)
    return dict(found)
