"""From a layout to a placement: the exact model with every smallest common domain given."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from ortools.sat.python import cp_model

from placer.dense import Dense, Solution
from placer.methods.decomposed.master.dive import Layout
from placer.methods.exact.bundles import Bundle
from placer.methods.exact.model import Model, TooLarge

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
        Domains of groups and subgroups.
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
        model = Model(dense, seconds=seconds)
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


def _settle(model: Model, index: int, bundle: Bundle, domains: Mapping[int, int]) -> None:
    """Say how many members of a bundle have their home where; nothing of a bundle that the layout leaves open."""
    homes = model.variables.homes[index]
    if not homes or any(member not in domains for member in bundle.members):
        return
    chosen = Counter[int]()
    for member in bundle.members:
        home = next((each for each in model.variables.path(domains[member]) if each in homes), None)
        if home is None:
            return
        chosen[home] += 1
    for home, variable in homes.items():
        model.proto.add(variable == chosen[home])
