"""What happens in the process of a run: the whole call as a user makes it, reading to writing, and its figures."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from placer.errors import PlacerError
from placer.laboratory.deciders import ask
from placer.laboratory.peak_memory import high_water
from placer.laboratory.policies import Mimicry
from placer.laboratory.sweep.line import Line
from placer.laboratory.sweep.plan import Run
from placer.laboratory.sweep.subject import planted_beside
from placer.result import Termination, Verdict

if TYPE_CHECKING:
    from placer.instance import Instance
    from placer.result import Result

__all__ = ["answer", "make"]

LONGEST = 2000  #: characters of an error in a line; a bad instance may have thousands of faults


def make(run: Run, target: str, emit: Callable[[Any], None]) -> str:  # noqa: ARG001  # nothing to tell on the way
    """Generate the instance of a run, with its planted placement beside it.

    Returns
    -------
    str
        What went wrong; empty: nothing.
    """
    from placer.laboratory.generate import bindings, generate
    from placer.manifests import dump

    try:
        made = generate(run.subject.family or "", **dict(run.subject.options), seed=run.seed)
        dump({"apiVersion": "v1", "kind": "List", "items": made.documents}, target)
        if made.planted is not None:
            dump(bindings(made), planted_beside(target))
    except PlacerError as error:
        return str(error)[:LONGEST]
    return ""


def answer(run: Run, path: str, target: str, emit: Callable[[Any], None]) -> Line:
    """Decide, write, measure.

    Parameters
    ----------
    run
        Its policy and limits; the instance is the one at ``path``.
    path
        File or folder of the instance.
    target
        Where the Placement is written; of a policy its Bindings.
    emit
        Is told the id of this process, and None when the call is over (:meth:`PeakOfTree.hear`).
    """
    began = time.monotonic()
    emit(os.getpid())
    try:
        instance, figures = _decide(run, path, target, began)
        seconds, peak = time.monotonic() - began, high_water("self")
        emit(None)
        line = run.line(
            nodes=len(instance.nodes),
            pending=len(instance.pending),
            seconds=round(seconds, 3),
            peak_memory_mib=round(peak / 1024, 1) or None,
            **figures,
        )
        return _beside_planted(line, instance, path)
    except PlacerError as error:
        return run.line(error=str(error)[:LONGEST])


def _decide(run: Run, path: str, target: str, began: float) -> tuple[Instance, dict[str, Any]]:
    """Read, decide and write; the figures of the answer."""
    from placer.read import read

    instance = read(path)
    said = ask(instance, run.asked, began)
    return instance, _of_policy(instance, said, target) if isinstance(said, Mimicry) else _of_method(said, target)


def _of_policy(instance: Instance, said: Mimicry, target: str) -> dict[str, Any]:
    """Judge as the call of a method does, and write."""
    from placer.document import ValuePart, bindings_document
    from placer.manifests import dump
    from placer.score import placed_weight, score
    from placer.verify import RULES, verify

    placement = said.placement
    broken = Counter(violation.rule for violation in verify(instance, placement))
    unproved = {"bound": None, "gap": None, "proved_by": None}
    figures = {
        "placed_pods": len(placement.bindings),
        "placed_weight": placed_weight(instance, placement),
        "objective": [
            ValuePart(name=each.name, priority=each.priority, value=each.value, **unproved)
            for each in score(instance, placement)
        ],
        "violations": {rule: broken[rule] for rule, _ in RULES if broken[rule]},
        "verdict": None if broken else Verdict.FEASIBLE,
        "termination": Termination.FINISHED,
        "notes": list(said.notes),
    }
    dump(bindings_document(placement), target)
    return figures


def _of_method(result: Result, target: str) -> dict[str, Any]:
    """Write what is verified already."""
    from placer.document import placement_document
    from placer.manifests import dump

    document = placement_document(result)
    dump(document.as_dict(), target)
    return {
        "placed_pods": len(document.bindings),
        "placed_weight": document.weight.value,
        "weight_bound": document.weight.bound,
        "weight_gap": document.weight.gap,
        "weight_proved_by": document.weight.proved_by,
        "objective": document.objective,
        "verdict": document.verdict,
        "termination": document.termination,
        "seconds_to_first": document.trace[0].seconds if document.trace else None,
    }


def _beside_planted(line: Line, instance: Instance, path: str) -> Line:
    """Compare with the planted placement, where one lies beside the instance; one that is broken is an error."""
    from placer.read import read_placement
    from placer.score import placed_weight
    from placer.verify import verify

    beside = planted_beside(path)
    if not Path(beside).is_file():
        return line
    try:
        planted = read_placement(beside)
    except PlacerError as error:
        return line.model_copy(update={"error": str(error)[:LONGEST]})
    broken = verify(instance, planted)
    if broken:
        text = f"{beside}: the planted placement breaks {len(broken):,} rules, the first: {broken[0].message}"
        return line.model_copy(update={"error": text[:LONGEST]})
    weight = placed_weight(instance, planted)
    share = (line.placed_weight or 0) / weight if weight else None
    return line.model_copy(update={"planted_weight": weight, "placed_over_planted": share})
