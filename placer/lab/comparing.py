"""Policies and methods side by side on one instance, with the best bound that any of them proves."""

from __future__ import annotations

import os
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any

from placer.answers.document import ValuePart, WeightPart
from placer.base.deadline import Deadline, within
from placer.base.errors import NothingFound, PlacerError, UsageError, VerificationFailed
from placer.lab.deciders import NAMES, Asked, PeakOfTree, apart, ask, configuration_of, faults_of, high_water
from placer.lab.own_policies import STATED, Proposal, load, parse
from placer.lab.placement_metrics import GroupFate, Metrics, Victims, fates, measure, victims
from placer.lab.policies.mimicry import POLICIES, PREEMPTING
from placer.problem import Instance
from placer.problem.disruption import outcome_of
from placer.problem.gpus import gpus_placed
from placer.problem.placement import MAXIMISED, Value, better
from placer.problem.result import WEIGHT, Bound, Judged
from placer.rules import in_order, verify
from placer.rules.scoring import level_values, placed_weight
from placer.search import METHODS

__all__ = ["DEFAULT", "NAMES", "ComparisonRow", "beside_proofs", "beside_today", "compare", "decide", "row"]


def decide(instance: Instance, asked: Asked, emit: Callable[[Any], None]) -> Proposal | ComparisonRow:
    """Decide and measure, or a row that says why there is no placement.

    ``emit`` gets the id of this process, then None after the decision.
    """
    emit(os.getpid())
    began = time.monotonic()
    try:
        found = _in_time(instance, asked, began)
    except PlacerError as error:
        return ComparisonRow(asked.name, error=str(error), exit_code=error.exit_code)
    if found is None:
        late = f"{asked.name} did not come to its end within the time limit of {asked.time_limit:g} s"
        return ComparisonRow(asked.name, error=late, exit_code=1)
    seconds, peak = time.monotonic() - began, high_water("self")
    emit(None)
    return replace(found, seconds=seconds, peak_memory=peak)


def _in_time(instance: Instance, asked: Asked, began: float) -> Proposal | None:
    """None where a policy is late. A method keeps the limit by itself."""
    if asked.name in METHODS or asked.time_limit is None:
        return _decide(instance, asked, began)
    return within(Deadline(began + asked.time_limit), lambda: _decide(instance, asked, began), None)


def _decide(instance: Instance, asked: Asked, began: float) -> Proposal:
    said = ask(instance, asked, began)
    if isinstance(said, Proposal):
        return said
    if said.placement is None:
        raise NothingFound(said.nothing_found)
    return Proposal(said.placement, (), tuple(judged.bound for judged in said.objective), said.weight.bound)


@dataclass(frozen=True)
class ComparisonRow:
    """One line of a comparison.

    A bound holds for valid placements; a placement with violations may be beyond it.

    Parameters
    ----------
    placed_groups
        Groups, single pods included, that become ready (:attr:`placer.problem.outcome.Outcome.made_ready`).
    objective
        Each with the best bound that any row proves for placements that equal this one on the values above it.
    weight
        Placed weight of all priorities, micro-nodes, with the best bound of any row.
    metrics, groups
        None and empty in a row that failed.
    peak_memory_mib
        Of the process and its children at once; None where the system does not say.
    error
        Why there is no placement; or the bound that this valid placement is beyond, which no sound proof allows.
    today
        The row of the same policy without the *what if*.
    victims
        None where nothing is evicted. Bounds of placements that evict nothing do not apply to such a row.
    """

    policy: str
    placed_pods: int | None = None
    placed_groups: int | None = None
    gpus_placed: int | None = None
    objective: tuple[Judged, ...] = ()
    weight: Judged | None = None
    violations: Mapping[str, int] = field(default_factory=dict)
    examples: Mapping[str, str] = field(default_factory=dict)
    metrics: Metrics | None = None
    groups: tuple[GroupFate, ...] = ()
    notes: tuple[str, ...] = ()
    seconds: float | None = None
    peak_memory_mib: float | None = None
    error: str | None = None
    exit_code: int = 0
    today: ComparisonRow | None = None
    victims: Victims | None = None

    def as_dict(self) -> dict[str, Any]:
        """Plain data with the names of models/interface.md."""
        metrics = None
        if self.metrics is not None and self.weight is not None:
            metrics = {"weight": WeightPart.of(self.weight).as_dict(), **self.metrics.as_dict()}
        return {
            "policy": self.policy,
            "placedPods": self.placed_pods,
            "placedGroups": self.placed_groups,
            "gpusPlaced": self.gpus_placed,
            "objective": [ValuePart.of(judged).as_dict() for judged in self.objective],
            "violations": dict(self.violations),
            "metrics": metrics,
            "groups": [fate.as_dict() for fate in self.groups],
            "seconds": self.seconds,
            "peakMemoryMiB": self.peak_memory_mib,
            **({} if self.victims is None else {"victims": self.victims.as_dict()}),
            **({"notes": list(self.notes)} if self.notes else {}),
            **({} if self.error is None else {"error": self.error}),
            **({} if self.today is None else {"today": self.today.as_dict()}),
        }


def row(instance: Instance, asked: Asked, decided: Proposal, peak: int) -> ComparisonRow:
    """Judge and measure a placement, with its own bounds only; ``peak`` is KiB of the process tree, seen from
    outside.
    """
    placement = decided.placement
    outcome = outcome_of(instance, placement)
    values = level_values(outcome)
    bounds = decided.bounds or (None,) * len(values)
    violations = verify(instance, placement)
    broken = Counter(violation.rule for violation in violations)
    memory = max(peak, decided.peak_memory)
    return ComparisonRow(
        policy=asked.name,
        placed_pods=len(outcome.new),
        placed_groups=len(outcome.made_ready),
        gpus_placed=gpus_placed(outcome),
        objective=tuple(Judged(value, bound) for value, bound in zip(values, bounds, strict=True)),
        weight=Judged(Value(WEIGHT, placed_weight(instance, placement)), decided.weight_bound),
        violations=in_order(broken),
        examples={each.rule: each.message for each in reversed(violations)},
        metrics=measure(instance, placement),
        groups=fates(instance, placement),
        victims=victims(instance, placement, violations),
        notes=decided.notes,
        seconds=round(decided.seconds, 3),
        peak_memory_mib=round(memory / 1024, 1) or None,
    )


def beside_proofs(rows: Sequence[ComparisonRow]) -> list[ComparisonRow]:
    """Give every value the best bound that any row proves.

    A bound of a value holds among placements that equal those of its row on the values above, so only such rows get it;
    a bound of the weight goes to all rows. A valid row beyond a bound that holds for it gets an error, because the
    proof or the judge is wrong.
    """
    proofs: dict[tuple[tuple[int, ...], Value], list[Bound | None]] = defaultdict(list)
    for key, judged in chain.from_iterable(map(_placed_in_order, rows)):
        proofs[key].append(judged.bound)
    best = {key: _best(bounds, maximised=key[1].name in MAXIMISED) for key, bounds in proofs.items()}
    of_weight = _best((each.weight.bound for each in rows if each.weight is not None), maximised=True)
    found = [
        each
        if each.victims is not None
        else replace(
            each,
            objective=tuple(Judged(judged.value, best[key]) for key, judged in _placed_in_order(each)),
            weight=None if each.weight is None else Judged(each.weight.value, of_weight),
        )
        for each in rows
    ]
    return [_with_doubts(each, rows) for each in found]


def _with_doubts(one: ComparisonRow, rows: Sequence[ComparisonRow]) -> ComparisonRow:
    claims = () if one.violations or one.victims is not None else tuple(_doubts(one, rows))
    if not claims:
        return one
    stated = any(STATED in claim for claim in claims)
    blame = f"this is a bug in placer{', or the file was changed' if stated else ''}"
    return replace(one, error="; ".join((*claims, blame)), exit_code=VerificationFailed.exit_code)


def _doubts(one: ComparisonRow, rows: Sequence[ComparisonRow]) -> Iterator[str]:
    judged = list(one.objective)
    if one.weight is not None:
        bound = _best((each.weight.bound for each in rows if each.weight and _at_least(one, each)), maximised=True)
        judged.append(Judged(one.weight.value, bound))
    for each in judged:
        if each.beyond and each.bound is not None:
            yield (
                f"{each.bound.by} claimed that {each.value.name} cannot be better than {each.bound.value}, but this "
                f"valid placement has {each.value.value}"
            )


def _at_least(one: ComparisonRow, other: ComparisonRow) -> bool:
    mine, theirs = (tuple(judged.value for judged in row.objective) for row in (one, other))
    return not better(theirs, mine)


def _placed_in_order(one: ComparisonRow) -> list[tuple[tuple[tuple[int, ...], Value], Judged]]:
    numbers = tuple(judged.value.value for judged in one.objective)
    return [((numbers[:index], replace(judged.value, value=0)), judged) for index, judged in enumerate(one.objective)]


def _best(bounds: Iterable[Bound | None], *, maximised: bool) -> Bound | None:
    proved = [bound for bound in bounds if bound is not None]
    return min(proved, key=lambda bound: bound.value if maximised else -bound.value, default=None)


#: What is compared where nothing is chosen: every policy that evicts nothing, and placer, fast and by default.
DEFAULT = (*(name for name in POLICIES if name not in PREEMPTING), "greedy", "auto")


def compare(
    instance: Instance,
    names: Sequence[str] = DEFAULT,
    *,
    time_limit: float | None = 60.0,
    work_limit: float | None = None,
    workers: int | None = None,
    seed: int = 0,
    arguments: Mapping[str, Mapping[str, Any]] | None = None,
    begin: Callable[[str], None] = lambda _: None,
    done: Callable[[ComparisonRow], None] = lambda _: None,
    strict: bool = False,
) -> list[ComparisonRow]:
    """Compare policies and methods.

    Parameters
    ----------
    names
        Of :data:`NAMES`, and the reader's own (:mod:`placer.lab.own_policies`). One given twice counts once.
    time_limit, work_limit, workers
        Of each method, as :func:`placer.solve` takes them. A policy that is a second late is a row with an error.
    arguments
        Policy to its configuration (:func:`placer.lab.policies.mimicry.read_config`).
    begin, done
        Called with each name before it runs, and with each row, which has its own bounds only.

    Returns
    -------
    list[ComparisonRow]
        One per name; one that fails is a row with its error.

    Raises
    ------
    UsageError
        Names every argument that makes no sense.
    BadInstance, StrictFindings
        As :func:`placer.lab.own_policies.load` raises them.
    """
    configured = arguments or {}
    targets, faults = parse(names, NAMES)
    faults += faults_of(
        targets, configured, time_limit=time_limit, workers=workers, seeds=(seed,), work_limit=work_limit
    )
    if faults:
        raise UsageError("; ".join(faults))
    own = load(targets, strict=strict)
    rows = []
    for name in targets:
        begin(name)
        configuration = configuration_of(name, configured)
        asked = Asked(name, configuration, time_limit, work_limit, workers, seed, own.get(name))
        rows.append(_run(instance, asked))
        done(rows[-1])
    return beside_proofs(rows)


def beside_today(rows: Sequence[ComparisonRow], today: Sequence[ComparisonRow]) -> list[ComparisonRow]:
    """Give every row under a *what if* the row of the same policy without it."""
    now = {each.policy: each for each in today}
    return [replace(each, today=now.get(each.policy)) for each in rows]


def _run(instance: Instance, asked: Asked) -> ComparisonRow:
    with PeakOfTree() as tree:
        ended = apart(decide, (instance, asked), tree.hear)
    died = f"the process of the row ended with {ended.detail}"
    found: Proposal | ComparisonRow = ended.value or ComparisonRow(asked.name, error=died, exit_code=1)
    if isinstance(found, ComparisonRow):
        return found
    return row(instance, asked, found, tree.peak)
