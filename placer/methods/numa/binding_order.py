"""The order in which the pods of a node are bound, and the NUMA zones they get, for a whole placement (C10).

A method says which pods share a node; here they are put into an order in which the kubelet admits them, as good a one
as there is: where any will do, or creation order, that one; else one that is kept by binding one after another.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace

from placer.instance import Finding, Instance, Key
from placer.instance.numa import Kubelet, NumaNode, Orders, find_order
from placer.outcome import Outcome
from placer.placement import Binding, Placement

__all__ = ["aligned", "misstated"]


def aligned(instance: Instance, placement: Placement) -> Placement:
    """Order the pods of each node so that the kubelet admits them, and say what it will do.

    Parameters
    ----------
    instance
        The problem.
    placement
        Any; bindings that cannot be carried out stay as they are.

    Returns
    -------
    Placement
        The same pods on the same nodes. Where C10 applies, the pods of a node stand in a good order, in the places of
        the plan that they had between them, with the zones that the kubelet will choose; ``one_by_one`` names the nodes
        where only that order works. A node whose pods work in no order that was found keeps the order it had, and a
        pod that is refused there has no zones.
    """
    if not instance.kubelets:
        return placement
    slots = _slots(instance, placement)
    bindings, one_by_one = list(placement.bindings), []
    for name, places in slots.items():
        kubelet, node = instance.kubelets[name], instance.nodes[name].numa
        if node is None:
            continue
        here = [placement.bindings[place] for place in places]
        orders, ordered = _ordered(instance, kubelet, node, here)
        if orders is Orders.SOME:
            one_by_one.append(name)
        for place, binding in zip(places, _with_zones(instance, kubelet, node, ordered), strict=True):
            bindings[place] = binding
    return Placement(tuple(bindings), tuple(sorted(one_by_one)))


def misstated(instance: Instance, placement: Placement) -> list[Finding]:
    """What a placement says of zones and orders that kubelets will do otherwise; it may keep all rules all the same.

    Parameters
    ----------
    instance
        The problem.
    placement
        Anybody's; bindings without zones say nothing of them.

    Returns
    -------
    list[Finding]
        ``BoundOneByOne``: the kubelet sorts pods that reach it together by age and then refuses one, and the node is
        not named as one where each waits for the answer to the one before. ``NumaZonesDiffer``: other zones are chosen.
    """
    found = []
    for name, places in _slots(instance, placement).items() if instance.kubelets else ():
        kubelet, node = instance.kubelets[name], instance.nodes[name].numa
        if node is None:
            continue
        here = [placement.bindings[place] for place in places]
        orders, _ = _ordered(instance, kubelet, node, here)
        if orders is Orders.SOME and name not in placement.one_by_one:
            text = "its kubelet refuses one of the pods if they reach it together; oneByOne does not name the node"
            found.append(Finding("BoundOneByOne", f"Node {name}", text))
        for said, chosen in zip(here, _with_zones(instance, kubelet, node, here), strict=True):
            if said.numa_zones and chosen.numa_zones and said.numa_zones != chosen.numa_zones:
                told, true = (", ".join(each.numa_zones) for each in (said, chosen))
                text = f"numaZones: found {told}, expected {true}, which the kubelet of Node {name} chooses"
                found.append(Finding("NumaZonesDiffer", f"Pod {said.pod}", text))
    return sorted(found)


def _slots(instance: Instance, placement: Placement) -> Mapping[str, Sequence[int]]:
    """Node to the places in the plan of its new pods of which something is aligned there."""
    new, seen = Outcome(instance, placement).new, set[Key]()
    slots: dict[str, list[int]] = defaultdict(list)
    for place, binding in enumerate(placement.bindings):
        kubelet = instance.kubelets.get(binding.node)
        if kubelet is not None and new.get(binding.pod) == binding.node and binding.pod not in seen:
            seen.add(binding.pod)
            if kubelet.units(instance.pods[binding.pod].numa):
                slots[binding.node].append(place)
    return slots


def _ordered(
    instance: Instance, kubelet: Kubelet, node: NumaNode, bindings: Sequence[Binding]
) -> tuple[Orders, Sequence[Binding]]:
    """The bindings of a node in a good order, those of one age by name; the one they have where no better is found."""
    sorted_bindings = sorted(bindings, key=lambda binding: binding.pod)
    pods = [instance.pods[binding.pod] for binding in sorted_bindings]
    units = [kubelet.units(pod.numa) for pod in pods]
    places = {binding.pod: place for place, binding in enumerate(sorted_bindings)}
    found = find_order(
        kubelet,
        kubelet.start(node),
        units,
        [pod.created for pod in pods],
        hint=[places[binding.pod] for binding in bindings],
        tell_any=False,
    )
    if found.sequence is None:
        return found.orders, bindings
    return found.orders, [sorted_bindings[index] for index in found.sequence]


def _with_zones(instance: Instance, kubelet: Kubelet, node: NumaNode, bindings: Sequence[Binding]) -> list[Binding]:
    """The bindings with the zones that the kubelet will choose in this order."""
    state, found = kubelet.start(node), []
    for binding in bindings:
        answer = kubelet.admit(state, kubelet.units(instance.pods[binding.pod].numa))
        state = state if answer is None else answer[0]
        found.append(replace(binding, numa_zones=() if answer is None else kubelet.names(answer[1])))
    return found
