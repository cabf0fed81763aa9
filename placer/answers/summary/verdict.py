"""What is proved of an answer and what of it may still improve, in sentences."""

from __future__ import annotations

from placer.base.words import amount_digits, and_list, is_amount, number_word, prover_word, value_word
from placer.problem.placement import MAXIMISED
from placer.problem.result import Judged, Result, Termination, Verdict


def _several_priorities(result: Result) -> bool:
    return len({judged.value.priority for judged in result.objective} - {None}) > 1


def is_shown(judged: Judged) -> bool:
    """Whether a value says anything: not 0 with nothing better."""
    if judged.value.value:
        return True
    return is_amount(judged.value.name) and (judged.bound is None or judged.bound.value != 0)


def name_of(judged: Judged, result: Result) -> str:
    """What a value is called beside the others of an answer."""
    return value_word(judged.value.name, judged.value.priority if _several_priorities(result) else None)


def verdict_sentence(result: Result) -> str:
    """What is proved, and the first value that may still improve."""
    if result.placement is None:
        return result.nothing_found
    open_values = [judged for judged in result.objective if not judged.met]
    parts = [part for part in (_of_placed(result), *_of_open(result, open_values)) if part]
    if not open_values:
        parts.append("every value is at its best (proved)")
    if result.verdict is Verdict.INFEASIBLE:
        parts.insert(0, "not every pending pod can be placed (proved), and this is the best that was found")
    return f"{'; '.join(parts)}{result.reach}"


def _of_placed(result: Result) -> str:
    if result.everything_placed:
        return "all pending pods are placed"
    amounts = [judged for judged in result.objective if judged.value.name in MAXIMISED]
    if not amounts or not all(judged.met for judged in amounts):
        return ""
    if result.objective[0].value.name in MAXIMISED:
        return "all that can be placed is placed (proved)"
    return "as much is placed as the values compared before allow (proved)"


def _of_open(result: Result, open_values: list[Judged]) -> list[str]:
    if not open_values:
        return []
    first, after = open_values[0], open_values[1:]
    name, value, bound = name_of(first, result), first.value, first.bound
    if bound is None:
        said = f"{name}: {number_word(value.name, value.value)}, and how much better it may be is not proved"
    else:
        said = f"{name}: {number_word(value.name, value.value, bound.value)}, {_limit(first)}"
    return [said, *(["the values after it may improve, too"] if any(map(is_shown, after)) else [])]


def _limit(judged: Judged) -> str:
    value, bound = judged.value, judged.bound
    if bound is None:
        return ""
    limit = "at most" if value.name in MAXIMISED else "at least"
    if is_amount(value.name):
        return f"{limit} {bound.value / 1e6:,.{amount_digits(value.value, bound.value)}f}"
    return f"{limit} {bound.value:,}"


def bound_words(judged: Judged, result: Result) -> str:
    """What is proved of one value."""
    bound = judged.bound
    if bound is None or judged.gap is None:
        return "not proved"
    if _is_all(judged, result):
        return "best: nothing more is asked for"
    by = f"proved by {prover_word(bound.by)}"
    gap = f" (gap {judged.gap:.2%})" if judged.value.value else ""  # of nothing there is no share
    return f"best, {by}" if judged.met else f"{_limit(judged)}{gap}, {by}"


def stopped(result: Result) -> str:
    """Why the search ended, and who found and proved the answer."""
    told = [j for j in result.objective if is_shown(j) and not _is_all(j, result)]
    provers = list(dict.fromkeys(prover_word(judged.bound.by) for judged in told if judged.bound is not None))
    proved = f", {'proved' if result.verdict is Verdict.OPTIMAL else 'bounds proved'} by {and_list(provers)}"
    found = _FIRST_FIT if result.method == "first-fit" else f"found by {result.method}"
    return f"{_end(result)}; {found}{proved if provers else ''}"


#: In place of a search.
_FIRST_FIT = "no time was left for a search, and pods were placed by first fit: a longer --time-limit finds more"


def _is_all(judged: Judged, result: Result) -> bool:
    return judged.value.name in MAXIMISED and judged.met and result.everything_placed


def _end(result: Result) -> str:
    seconds = result.seconds["total"]
    if result.termination is Termination.TIME:
        limits = [
            *([f"the {result.time_limit:g} s limit"] if result.time_limit is not None else []),
            *([f"the work limit of {result.work_limit:g}"] if result.work_limit is not None else []),
        ]
        return f"stopped at {' or '.join(limits) or 'its limit'}"
    word = {Termination.PROVED: "proved", Termination.INTERRUPTED: "interrupted"}.get(result.termination, "finished")
    return f"{word} after {seconds:.1f} s"
