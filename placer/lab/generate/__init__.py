"""Instances from a seed: families of clusters with a queue, for tests, benchmarks and first steps.

A family is a class of options and a function from them to Kubernetes objects. No instance is made to suit a method.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from placer.answers.document import bindings_document
from placer.base.errors import UsageError
from placer.base.text import found_like
from placer.lab.generate.clos_fabric import ClosOptions, PlantedOptions, clos, planted
from placer.lab.generate.disruption import (
    FragmentedOptions,
    LostOptions,
    StrandedOptions,
    VictimOptions,
    fragmented,
    lost,
    stranded,
    victims,
)
from placer.lab.generate.neighbour_families import NeighbourOptions, neighbours
from placer.lab.generate.network_families import NetworkOptions, network
from placer.lab.generate.numa_families import NumaOptions, numa
from placer.lab.generate.objects import Document, Generated, binding
from placer.lab.generate.options import FamilyOptions, GangMix, Option, options_of

__all__ = [
    "FAMILIES",
    "ClosOptions",
    "FamilyOptions",
    "FragmentedOptions",
    "GangMix",
    "Generated",
    "InstanceFamily",
    "LostOptions",
    "NeighbourOptions",
    "NetworkOptions",
    "NumaOptions",
    "Option",
    "PlantedOptions",
    "StrandedOptions",
    "VictimOptions",
    "bindings",
    "clos",
    "fragmented",
    "generate",
    "lost",
    "neighbours",
    "network",
    "numa",
    "planted",
    "stranded",
    "victims",
]


@dataclass(frozen=True)
class InstanceFamily:
    """A family of instances: its options, the function from these to an instance, and one sentence of help."""

    options: type[FamilyOptions]
    function: Callable[[Any], Generated]
    text: str

    @property
    def flags(self) -> tuple[Option, ...]:
        """Its options, as a command line needs them."""
        return options_of(self.options)


FAMILIES: Mapping[str, InstanceFamily] = {
    "clos": InstanceFamily(ClosOptions, clos, "A Clos fabric with running jobs and a queue of others."),
    "fragmented": InstanceFamily(
        FragmentedOptions, fragmented, "Racks are to be empty, and the least that must be moved for that is known."
    ),
    "lost": InstanceFamily(
        LostOptions,
        lost,
        "Nodes of a gang are lost, and the least that must be moved to place its pods again is known.",
    ),
    "neighbours": InstanceFamily(
        NeighbourOptions, neighbours, "A full cluster whose pods keep near to others, away from others, or spread."
    ),
    "network": InstanceFamily(
        NetworkOptions, network, "Applications over regions and zones, whose limits are known to be kept."
    ),
    "numa": InstanceFamily(
        NumaOptions, numa, "Nodes of several NUMA zones, filled in an order that their kubelets admit."
    ),
    "planted": InstanceFamily(PlantedOptions, planted, "A full cluster whose queue is known to fit entirely."),
    "stranded": InstanceFamily(
        StrandedOptions, stranded, "A job waits for a rack, and the least that must be moved for it is known."
    ),
    "victims": InstanceFamily(
        VictimOptions, victims, "A job waits for a rack, and the least that must be evicted for it is known."
    ),
}


def generate(family: str, **values: Any) -> Generated:
    """Make an instance of a family of :data:`FAMILIES`; ``values`` are options by field name.

    Raises
    ------
    UsageError
        No such family or option, or a value out of range.

    Examples
    --------
    >>> made = generate("planted", nodes=4, leaf_size=2, seed=7)
    >>> made.summary["gpusPlanted"], len(made.planted) == made.summary["podsPlanted"]
    (32, True)
    """
    chosen = FAMILIES.get(family)
    if chosen is None:
        hint = found_like(family, FAMILIES)
        raise UsageError(f"family: found {family!r}, expected one of {', '.join(sorted(FAMILIES))}{hint}")
    known = {each.name: each for each in chosen.flags}
    for name in values:
        if name not in known:
            hint = found_like(name, known)
            raise UsageError(f"{family}: found option {name!r}, expected one of {', '.join(sorted(known))}{hint}")
    return chosen.function(chosen.options(**values))


def bindings(made: Generated) -> Document:
    """Write the planted placement: a v1 List of Bindings in plan order, or a Placement where pods have to leave."""
    if made.least is not None:
        return bindings_document(made.least)
    items = [binding(pod.namespace, pod.name, node) for pod, node in (made.planted or {}).items()]
    return {"apiVersion": "v1", "kind": "List", "items": items}
