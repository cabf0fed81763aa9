"""From a layout to a placement: the exact model with every home given, but for which leaf of a block it is."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence

from ortools.sat.python import cp_model
from ortools.sat.python.cp_model import IntVar, LinearExpr

from placer.dense import Dense, Solution
from placer.methods.decomposed.master.dive import Home, Layout
from placer.methods.events import TooLarge
from placer.methods.exact.aggregation import Bundle
from placer.methods.exact.model import ExactModel

__all__ = ["place"]


def place(
    dense: Dense, layout: Layout, values: Sequence[int], level: int, solver: cp_model.CpSolver, seconds: float
) -> Solution | None:
    """Find a placement with this layout.

    Parameters
    ----------
    dense
        The instance.
    layout
        Homes of groups and subgroups.
    values
        Of the answer in hand; those before ``locality`` and ``span`` are kept.
    level
        What is made good; the layout decides the values before it that concern the tree.
    solver
        Set up with its limits.
    seconds
        How long building the model may take.

    Returns
    -------
    Solution or None
        None where there is none with this layout, or where none was found.
    """
    try:
        model = ExactModel(dense, seconds=seconds)
    except TooLarge:
        return None
    for before, (name, _) in enumerate(dense.levels[:level]):
        if name not in ("locality", "span"):
            model.keep(before, values[before])
    model.fill()
    for index, bundle in enumerate(model.variables.all):
        _settle(model, index, bundle, layout.groups if bundle.policy < 0 else layout.sub_groups)
    model.aim(level)
    status = solver.solve(model.proto)
    if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        return None
    return model.read(list(solver.response_proto.solution))


def _settle(model: ExactModel, index: int, bundle: Bundle, homes_of: Mapping[int, Home]) -> None:
    """Say how many members of a bundle have their home where; which leaf of a domain stays open."""
    homes = model.variables.homes[index]
    if not homes or any(member not in homes_of for member in bundle.members):
        return
    by_home: dict[Home, list[IntVar]] = defaultdict(list)
    for domain, variable in homes.items():
        by_home[_named(model.dense, domain)].append(variable)
    chosen = Counter[Home]()
    for member in bundle.members:
        home = _known(model, homes_of[member], by_home)
        if home is None:
            return
        chosen[home] += 1
    for home, variables in by_home.items():
        model.proto.add(LinearExpr.sum(variables) == chosen[home])


def _named(dense: Dense, domain: int) -> Home:
    """A leaf goes by the name of the domain above it."""
    leaf = domain in dense.leaf
    return (int(dense.domains.parent[domain]) if leaf else domain, leaf)


def _known(model: ExactModel, home: Home, known: Collection[Home]) -> Home | None:
    """The home, else the smallest known domain that holds it: where only the limit counts, that is all there is."""
    above = ((domain, False) for domain in model.variables.path(home[0]))
    return next((each for each in (home, *above) if each in known), None)
