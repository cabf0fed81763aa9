"""Eligibility (C3) of many constraints on many nodes at once, as :meth:`placer.problem.Constraints.admits` says of
one.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from placer.arrays.solution import BoolArray, IntArray
from placer.problem import Constraints, Node, Requirement, Taint, Term, Toleration
from placer.problem.nodes import UNSCHEDULABLE_TAINT


class Eligibility:
    """Rows of eligible nodes, with columns in the order of ``nodes``."""

    def __init__(self, nodes: Sequence[Node]) -> None:
        self._nodes = nodes
        profiles: dict[tuple[bool, tuple[Taint, ...]], list[int]] = {}
        for index, node in enumerate(nodes):
            if node.ready:
                profiles.setdefault((node.unschedulable, node.taints), []).append(index)
        self._profiles = [(*profile, np.array(members)) for profile, members in profiles.items()]
        self._tolerated: dict[tuple[Toleration, ...], BoolArray] = {}
        self._columns: dict[str, tuple[dict[str, int], IntArray]] = {}
        self._rows: dict[tuple[bool, Requirement], BoolArray] = {}

    def row(self, constraints: Constraints) -> BoolArray:
        """bool, shape (nodes,): where a pod with these constraints may be bound."""
        row = self._toleration_row(constraints.tolerations).copy()
        for label, value in constraints.selector:
            row &= self._requirement(Requirement(label, "In", (value,)), field=False)
        for terms in constraints.required:
            row &= self._any_term(terms)
        if constraints.os:
            row &= self._any_term(constraints.os_terms)
        for mark in constraints.marks:
            row &= self._any_term((mark.term,))
        return row

    def _toleration_row(self, tolerations: tuple[Toleration, ...]) -> BoolArray:
        if tolerations not in self._tolerated:
            row = np.zeros(len(self._nodes), dtype=bool)
            for unschedulable, taints, members in self._profiles:
                cordon = (Taint(UNSCHEDULABLE_TAINT, "", "NoSchedule"),) if unschedulable else ()
                row[members] = all(any(t.tolerates(taint) for t in tolerations) for taint in (*taints, *cordon))
            self._tolerated[tolerations] = row
        return self._tolerated[tolerations]

    def _any_term(self, terms: tuple[Term, ...]) -> BoolArray:
        found = np.zeros(len(self._nodes), dtype=bool)
        for term in terms:
            if term.expressions or term.fields:
                row = np.ones(len(self._nodes), dtype=bool)
                for requirement in term.expressions:
                    row &= self._requirement(requirement, field=False)
                for requirement in term.fields:
                    row &= self._requirement(requirement, field=True)
                found |= row
        return found

    def _requirement(self, requirement: Requirement, *, field: bool) -> BoolArray:
        key = (field, requirement)
        if key not in self._rows:
            codes, column = self._column(requirement.key, field=field)
            self._rows[key] = _holds(requirement, codes)[column]
        return self._rows[key]

    def _column(self, label: str, *, field: bool) -> tuple[dict[str, int], IntArray]:
        """Absent is the last code + 1, so index -1."""
        key = f"\0{label}" if field else label
        if key not in self._columns:
            values = [node.field(label) if field else node.labels.get(label) for node in self._nodes]
            codes = {value: code for code, value in enumerate(dict.fromkeys(v for v in values if v is not None))}
            column = np.array([-1 if value is None else codes[value] for value in values], dtype=np.int64)
            self._columns[key] = (codes, column)
        return self._columns[key]


def _holds(requirement: Requirement, codes: dict[str, int]) -> BoolArray:
    if requirement.operator in ("In", "NotIn"):  # both lists may be long: neither is gone through for each of the other
        named = [codes[value] for value in requirement.values if value in codes]
        found = np.full(len(codes) + 1, requirement.operator == "NotIn")
        found[named] = requirement.operator == "In"
        return found
    return np.array([*(requirement.holds(value) for value in codes), requirement.holds(None)])
