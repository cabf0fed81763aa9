"""Rows of ``placer compare`` next to each other, and groups that fare differently."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from placer.answers.report.inputs import ComparedRow
from placer.base.words import amount_digits, is_amount, nodes_worth, number_word, value_word
from placer.problem import GroupKey
from placer.problem.placement import MAXIMISED
from placer.rules import rules_said

#: Name of the row, and of the column, of the page's own placement.
OWN = "this placement"


#: Whether a group is admitted, its pods with a node, tier and domain.
_Fate = tuple[bool, int, int | None, str | None]
_Name = tuple[str, str, str]
_Fates = dict[_Name, _Fate]


def beside(others: Sequence[ComparedRow], own: ComparedRow | None, index: Mapping[GroupKey, int]) -> dict[str, Any]:
    """Put rows next to each other; ``own``: the page's placement, the first row; ``index``: group to its index."""
    rows = others if own is None else [own, *others]
    fates = [(row.policy, _fates(row)) for row in rows if row.groups]
    keys = list(dict.fromkeys((each.name, each.priority) for row in rows for each in row.objective))
    several = len({priority for _, priority in keys} - {None}) > 1
    return {
        "policies": [_policy(row) | _only(row, own) for row in rows],
        "values": [_value(key, rows, several=several) for key in keys],
        "groups": _differing(fates, index),
    }


def _policy(row: ComparedRow) -> dict[str, Any]:
    weight = None if row.metrics is None else row.metrics.weight
    return {
        "name": row.policy,
        "pods": row.placed_pods,
        "groups": row.placed_groups,
        "gpus": row.gpus_placed,
        "weight": None if weight is None else weight.value,
        "weightBound": None if weight is None else weight.bound,
        "weightText": None if weight is None else nodes_worth(weight.value),
        "weightBoundText": None if weight is None or weight.bound is None else nodes_worth(weight.bound),
        "breaks": rules_said(row.violations),
        "seconds": row.seconds,
        "error": row.error,
    }


def _only(row: ComparedRow, own: ComparedRow | None) -> dict[str, int | None]:
    if own is None or row is own or not row.groups:
        return {"onlyThere": None, "onlyHere": None}
    there, here = ({name for name, fate in _fates(each).items() if fate[0]} for each in (row, own))
    return {"onlyThere": len(there - here), "onlyHere": len(here - there)}


def _value(key: tuple[str, int | None], rows: Sequence[ComparedRow], *, several: bool) -> dict[str, Any]:
    name, priority = key
    found = [{(each.name, each.priority): each for each in row.objective}.get(key) for row in rows]
    numbers, bounds = ([None if each is None else getattr(each, what) for each in found] for what in ("value", "bound"))
    digits = amount_digits(*numbers, *bounds)
    return {
        "name": value_word(name, priority if several else None) + (", nodes" if is_amount(name) else ""),
        "more": name in MAXIMISED,
        "numbers": numbers,
        "bounds": bounds,
        "texts": [_text(name, number, digits) for number in numbers],
        "boundTexts": [_text(name, number, digits) for number in bounds],
    }


def _text(name: str, number: int | None, digits: int) -> str | None:
    if number is None:
        return None
    return f"{number / 1e6:,.{digits}f}" if is_amount(name) else number_word(name, number)


def _fates(row: ComparedRow) -> _Fates:
    return {
        (each.kind, each.namespace, each.name): (each.admitted, each.placed, each.tier, each.hyper_node)
        for each in row.groups
    }


def _differing(fates: list[tuple[str, _Fates]], numbers: Mapping[GroupKey, int]) -> dict[str, Any]:
    table = _table([column for _, column in fates])
    differing = [name for name, row in table.items() if len(set(row)) > 1]
    differing.sort(key=lambda name: not _differs_in_number(table[name]))
    index = {(key.kind, key.namespace, key.name): number for key, number in numbers.items()}
    return {
        "columns": [policy for policy, _ in fates],
        "compared": len(table),
        "names": [f"{namespace}/{name}" for _, namespace, name in differing],
        "index": [index.get(name, -1) for name in differing],
        "fates": [list(map(_plain, table[name])) for name in differing],
    }


def _plain(fate: _Fate | None) -> list[Any] | None:
    return fate and list(fate)


def _table(columns: Sequence[_Fates]) -> dict[_Name, list[_Fate | None]]:
    names = dict.fromkeys(name for column in columns for name in column)
    return {name: [column.get(name) for column in columns] for name in names}


def _differs_in_number(row: Iterable[_Fate | None]) -> bool:
    return len({fate and fate[:2] for fate in row}) > 1
