"""Run them all on one instance, one after another, each in a process of its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from placer.errors import UsageError
from placer.instance import Instance
from placer.laboratory.compare.decide import Decided, Failed
from placer.laboratory.compare.rows import Row, beside_proofs, failed_row, row
from placer.laboratory.deciders import NAMES, Asked, configuration_of
from placer.laboratory.peak_memory import PeakOfTree
from placer.laboratory.policies import POLICIES
from placer.methods.process import ProcessEnd, run_apart

__all__ = ["DEFAULT", "NAMES", "compare"]

#: What is compared where nothing is chosen: every policy, and what placer itself does, fast and by default.
DEFAULT = (*POLICIES, "greedy", "auto")


def compare(
    instance: Instance,
    names: Sequence[str] = DEFAULT,
    *,
    time_limit: float | None = 60.0,
    work_limit: float | None = None,
    workers: int | None = None,
    seed: int = 0,
    arguments: Mapping[str, Mapping[str, Any]] | None = None,
    begin: Callable[[str], None] | None = None,
) -> list[Row]:
    """Compare policies and methods.

    Parameters
    ----------
    instance
        The problem.
    names
        Of :data:`NAMES`; one given twice counts once.
    time_limit, work_limit, workers
        Of each method, as :func:`placer.solve` takes them. Policies run to their end.
    seed
        Of each, 0 .. 2^31 - 1.
    arguments
        Policy to its configuration (:func:`placer.laboratory.policies.config.read_config`).
    begin
        Called with each name before it runs (progress).

    Returns
    -------
    list[Row]
        One per name, in their order; one that fails is a row with its error. The first value of every row, and each
        further one as far as the row is as good as the best, has the best bound that any method proved.

    Raises
    ------
    UsageError
        With every argument that makes no sense.
    """
    configured = arguments or {}
    _check(names, configured, time_limit, work_limit, workers, seed)
    rows = []
    for name in dict.fromkeys(names):
        if begin is not None:
            begin(name)
        asked = Asked(name, configuration_of(name, configured), time_limit, work_limit, workers, seed)
        rows.append(_run(instance, asked))
    return beside_proofs(rows)


def _check(
    names: Sequence[str],
    arguments: Mapping[str, Any],
    time_limit: float | None,
    work_limit: float | None,
    workers: int | None,
    seed: int,
) -> None:
    endless = float("inf")
    bare = {name.partition(":")[0] for name in names}
    faults = [
        f"{what}: found {found}, expected {expected}"
        for what, found, expected, fine in (
            ("policies", "none", "at least one", bool(names)),
            *(("policy", repr(name), f"one of {', '.join(NAMES)}", name in NAMES) for name in names),
            *(("configuration", f"one for {name}", "it among the policies", name in bare) for name in arguments),
            ("time limit", time_limit, "seconds, at least 0", time_limit is None or 0 <= time_limit < endless),
            ("work limit", work_limit, "a number above 0", work_limit is None or 0 < work_limit < endless),
            ("workers", workers, "at least 1", workers is None or workers >= 1),
            ("seed", seed, "0 to 2147483647", 0 <= seed < 2**31),
        )
        if not fine
    ]
    if faults:
        raise UsageError("; ".join(faults))


def _run(instance: Instance, asked: Asked) -> Row:
    """Decide in another process, judge in this one: what judging takes is not the decision's."""
    with PeakOfTree() as tree:
        ended = run_apart("placer.laboratory.compare.decide:decide", (instance, asked), tree.hear)
    if ended.how is ProcessEnd.INTERRUPTED:
        raise KeyboardInterrupt
    found: Decided | Failed = ended.value or Failed(f"the process of the row ended with {ended.detail}")
    if isinstance(found, Failed):
        return failed_row(asked, found)
    return row(instance, asked, found, tree.peak)
