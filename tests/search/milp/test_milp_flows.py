"""The variables of calls in the MILP: no more of them is made than is known before."""

from __future__ import annotations

from dataclasses import replace

import pytest

from placer.arrays import Dense
from placer.arrays.dense_builder import make_dense
from placer.search.milp.flows import size_of_flows
from placer.search.milp.method import MilpModel
from tests.tiny import tiny_network

# ------------------------------------------------------------------------------------------------------ what is made


def model_with_all_values(dense: Dense) -> MilpModel:
    model = MilpModel(dense)
    for criterion in range(len(dense.criteria)):
        model.objective.criterion(criterion)
    return model


@pytest.mark.parametrize("seed", range(40))
def test_what_is_made_is_known_before(seed: int) -> None:
    """The limit on variables is checked against a number that is never less than what the network comes to."""
    dense = make_dense(tiny_network(seed).instance)
    names = [each.name for each in model_with_all_values(dense).program.variables if each.name[0] != "q"]
    others = [each.name for each in model_with_all_values(replace(dense, network=None)).program.variables]
    made = [name for name in names if name[0] in "cuys"]
    assert set(names) - set(made) == {name for name in others if name[0] != "q"}
    assert len(made) <= size_of_flows(dense, [dense.fits(index) for index in range(len(dense.classes))])
    assert dense.network is not None or not made
