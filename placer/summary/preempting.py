"""What must go, as an operator reads it: each unit, what it makes room for, whether less would do, and the steps."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime

from placer.disruption import Disruption, DisruptionUnit
from placer.instance import Group
from placer.legible import legible
from placer.placement import LOSSES, Placement
from placer.result import Judged, Result
from placer.words import and_list, counted, prover_word

__all__ = ["preempt_lines"]

#: Lines of units, and of steps, that are shown.
SHOWN = 40


def preempt_lines(result: Result) -> Iterator[str]:
    """Say what goes for what, whether that is proved to be the least, and in which steps.

    Parameters
    ----------
    result
        What :func:`placer.preempt.preempt` returned.
    """
    disruption = Disruption(result.instance, result.placement or Placement())
    if not disruption.gone:
        yield ("Nothing has to go." if disruption.admitted else "Nothing goes: no group would be admitted by it.")
    for verb, units in _ways(disruption):
        yield f"{verb} {_kinds(units)}:"
        yield from _shortened(f"  {_unit(disruption, unit)}" for unit in units)
    yield from (f"-> {line}" for line in _gained(disruption))
    yield from _left(result, disruption)
    if disruption.gone:
        yield _proof(result)
        yield from _steps(disruption)


def _ways(disruption: Disruption) -> Iterator[tuple[str, list[DisruptionUnit]]]:
    """Units that are evicted, then those that are moved."""
    moved = [unit for unit in disruption.units if disruption.moved.keys() >= set(unit.pods)]
    evicted = [unit for unit in disruption.units if unit not in moved]
    yield from ((verb, units) for verb, units in (("Evict", evicted), ("Move", moved)) if units)


def _kinds(units: Sequence[DisruptionUnit]) -> str:
    alone = sum(unit.name.startswith("Pod/") for unit in units)
    counts = ((len(units) - alone, "gang"), (alone, "single pod"))
    return and_list(counted(count, word) for count, word in counts if count)


def _unit(disruption: Disruption, unit: DisruptionUnit) -> str:
    """``ml/eval-7, 8 pods, priority 100, since 2026-11-23 07:40 UTC, from n3 to n9``."""
    name = legible(unit.name.split("/", 1)[1])
    pods = [disruption.instance.pods[key] for key in unit.pods]
    parts = [name, counted(len(pods), "pod"), f"priority {unit.priority:,}"]
    began = min(pod.created for pod in pods)
    if began:
        parts.append(f"since {datetime.fromtimestamp(began, UTC):%Y-%m-%d %H:%M} UTC")
    parts.append(f"from {_nodes(pod.node or '' for pod in pods)}")
    targets = [disruption.moved[key].node for key in unit.pods if key in disruption.moved]
    return ", ".join(parts) + (f" to {_nodes(targets)}" if targets else "")


def _nodes(names: Iterable[str]) -> str:
    found = sorted(set(names))
    return legible(found[0]) if len(found) == 1 else f"{len(found):,} nodes"


def _gained(disruption: Disruption) -> Iterator[str]:
    """Each group that is admitted, and where its pods are."""
    outcome = disruption.outcome
    for group in outcome.made_ready:
        new = outcome.added(group.pending)
        _, domain = outcome.common(group.topology, (*group.bound, *new))
        where = f"in {legible(domain)}" if domain else f"on {_nodes(outcome.new[key] for key in new)}"
        all_of_it = len(new) == len(group.pending)
        pods = (
            f"all {counted(len(new), 'pod')}" if all_of_it else f"{len(new):,} of {counted(len(group.pending), 'pod')}"
        )
        yield f"{_name(group)} is admitted: {pods} {where}"


def _name(group: Group) -> str:
    return legible(f"{group.key.namespace}/{group.key.name}")


def _left(result: Result, disruption: Disruption) -> Iterator[str]:
    """Groups that wait still, each with its reason."""
    ready = {group.key for group in disruption.outcome.made_ready}
    for key, reason in result.reasons.items():
        if key not in ready and result.instance.need_weights.get(key):
            yield f"{legible(f'{key.namespace}/{key.name}')} still waits: {legible(reason.message)}"


def _proof(result: Result) -> str:
    """Whether less would do."""
    values = [each for each in result.objective if each.value.name in (*LOSSES, "moved", "movedUnits")]
    if all(judged.met for judged in values):
        verb = "evicts" if values[0].value.name in LOSSES else "moves"
        return f"Proved by {_provers(values)}: no other choice {verb} less."
    if all(judged.met for judged in values if judged.value.name == "evicted"):
        return "Proved: no other choice evicts less work; whether fewer units or moves would do is not proved."
    return "Not proved: less might do."


def _provers(values: Iterable[Judged]) -> str:
    told = (judged.bound for judged in values if judged.value.value)
    return and_list(dict.fromkeys(prover_word(bound.by) for bound in told if bound is not None))


def _steps(disruption: Disruption) -> Iterator[str]:
    """The steps, each with how much goes and is bound."""
    steps = disruption.placement.steps
    if len(steps) < 2:
        return
    yield f"In {len(steps)} steps:"
    numbered = list(enumerate(steps, 1))
    yield from _shortened(f"  {number}. {_step(step.go, step.bind, disruption)}" for number, step in numbered)


def _step(go: tuple[object, ...], bind: tuple[object, ...], disruption: Disruption) -> str:
    back = Counter(key in disruption.moved for key in bind)
    parts = [(len(go), "{} go{}"), (back[True], "{} moved"), (back[False], "{} bound")]
    words = [text.format(counted(count, "pod"), "es" if count == 1 else "") for count, text in parts if count]
    return ", ".join(words)


def _shortened(lines: Iterable[str]) -> Iterator[str]:
    found = list(lines)
    yield from found[:SHOWN]
    if len(found) > SHOWN:
        yield f"  ... and {len(found) - SHOWN:,} more (-o and --json have all)"
