"""What the hand-made NUMA instances say of themselves is so."""

from __future__ import annotations

import re
from itertools import permutations, product
from pathlib import Path

import pytest

from placer.arrays.admission_orders import Orders, find_order
from placer.arrays.packed_kubelet import PackedKubelet
from placer.problem import Instance, Key
from placer.problem.numa import NumaNode
from placer.problem.placement import Placement
from placer.problem.reading import read
from placer.rules import verify
from placer.rules.scoring import score
from placer.search.numa.binding_order import aligned
from tests.oracle import best, binds

FOLDER = Path(__file__).parent.parent / "instances" / "numa"


def _node(instance: Instance) -> NumaNode:
    numa = instance.nodes["n1"].numa
    assert numa is not None
    return numa


def _on_n1(*names: str) -> Placement:
    return Placement.of((Key("default", name), "n1") for name in names)


def _assignments(instance: Instance, *names: str) -> list[tuple[int, ...]]:
    """Zones for each container of the pods, such that no zone has more than it can take."""
    demands = [instance.pods[Key("default", name)].numa for name in names]
    asked = [each.requests for demand in demands if demand is not None for each in demand.containers]
    rooms = [zone.available for zone in _node(instance).zones]
    found = []
    for zones in product(range(len(rooms)), repeat=len(asked)):
        left = list(rooms)
        for zone, requests in zip(zones, asked, strict=True):
            left[zone] -= requests
        if all(amount >= 0 for room in left for amount in room.values()):
            found.append(zones)
    return found


def test_no_order() -> None:
    instance = read(FOLDER / "no-order.yaml", strict=True)
    assert _assignments(instance, "torn") == [(1, 0)]
    assert verify(instance, _on_n1("lone")) == []
    for names in (("torn",), ("torn", "lone"), ("lone", "torn")):
        rules = {(violation.rule, violation.subjects[0]) for violation in verify(instance, _on_n1(*names))}
        assert ("C10", "Pod default/torn") in rules
    optimum, placement = best(instance)
    assert set(placement.node_of) == {Key("default", "lone")}
    assert binds(instance, "C10", optimum), "without the rule torn would be placed"
    kubelet, torn = PackedKubelet(_node(instance)), instance.pods[Key("default", "torn")].numa
    found = find_order(kubelet, kubelet.start(_node(instance)), [kubelet.units(torn)], [0.0])
    assert (found.orders, found.proved) == (Orders.NONE, True)


def test_one_order() -> None:
    instance = read(FOLDER / "one-order.yaml", strict=True)
    working = [names for names in permutations(("small", "large")) if verify(instance, _on_n1(*names)) == []]
    assert working == [("large", "small")]
    ages = [instance.pods[Key("default", name)].created for name in ("small", "large")]
    assert ages == sorted(ages)
    found = aligned(instance, _on_n1("small", "large"))
    assert [binding.pod.name for binding in found.bindings] == ["large", "small"]
    assert [binding.numa_zones for binding in found.bindings] == [("node-0",), ("node-1",)]
    assert found.one_by_one == ("n1",)
    (refused,) = verify(instance, _on_n1("small", "large"))
    assert refused.message in (FOLDER.parent.parent / "models/numa.md").read_text(encoding="utf-8")
    assert len(best(instance)[1].bindings) == 2


@pytest.mark.parametrize("name", ["no-order", "one-order"])
def test_the_optimum_is_the_one_of_the_comment(name: str) -> None:
    instance = read(FOLDER / f"{name}.yaml")
    optimum, placement = best(instance)
    said = re.search(r"# Optimum: .*placed = ([\d,]+)", (FOLDER / f"{name}.yaml").read_text())
    assert said is not None
    values = {value.name: value.value for value in optimum}
    assert values.pop("admitted") == values.pop("placed") == int(said[1].replace(",", ""))
    assert values.pop("packedNodes") == 1
    assert set(values.values()) == {0}
    assert score(instance, placement) == optimum
