"""The order in which the pods of a node are bound, and the NUMA zones they get, for a whole placement (C10).

Any order where all work, else creation order if that works; else one that is kept by binding one after another.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from placer.arrays.admission_orders import Orders, find_order
from placer.arrays.packed_kubelet import PackedKubelet, packed_kubelets
from placer.problem import Finding, Instance, Key, Pod
from placer.problem.numa import NumaNode
from placer.problem.outcome import Outcome
from placer.problem.placement import Binding, Placement


def aligned(instance: Instance, placement: Placement) -> Placement:
    """Order the pods of each node so that the kubelet admits them, and name the zones that it will choose.

    Pods of a node keep the places of the plan that they have between them; ``one_by_one`` names the nodes where only
    that order works. A node whose pods work in no order that was found keeps the order it had, and a pod that is
    refused there has no zones.
    """
    if not instance.aligning_nodes:
        return placement
    bindings, one_by_one = list(placement.bindings), []
    # Pods that must come after those that they are near keep the order that they have, where it works (C12).
    near = any(pod.neighbours.affinity for pod in map(instance.pods.get, placement.node_of) if pod is not None)
    for crowd in _crowds(instance, placement):
        orders, ordered = crowd.as_it_is() if near and crowd.works else crowd.best_order()
        if orders is Orders.SOME:
            one_by_one.append(crowd.name)
        for place, binding in zip(crowd.places, crowd.with_zones(ordered), strict=True):
            bindings[place] = binding
    return Placement(tuple(bindings), tuple(sorted(one_by_one)))


def misstated(instance: Instance, placement: Placement) -> list[Finding]:
    """Zones and orders of a placement that kubelets will do otherwise; it may keep all rules all the same.

    ``BoundOneByOne``: the kubelet sorts pods that reach it together by age and then refuses one, and the node is not
    named as one where each waits for the answer to the one before. ``NumaZonesDiffer``: other zones are chosen.
    """
    found = []
    for crowd in _crowds(instance, placement):
        node = f"Node {crowd.name}"
        if crowd.name not in placement.one_by_one and crowd.best_order()[0] is Orders.SOME:
            text = "its kubelet refuses one of the pods if they reach it together; oneByOne does not name the node"
            found.append(Finding("BoundOneByOne", node, text))
        for said, chosen in zip(crowd.bindings, crowd.with_zones(crowd.bindings), strict=True):
            if said.numa_zones and chosen.numa_zones and said.numa_zones != chosen.numa_zones:
                told, true = (", ".join(each.numa_zones) for each in (said, chosen))
                text = f"numaZones: found {told}, expected {true}, which the kubelet of {node} chooses"
                found.append(Finding("NumaZonesDiffer", f"Pod {said.pod}", text))
    return sorted(found)


@dataclass(frozen=True)
class _Crowd:
    pods: Mapping[Key, Pod]
    name: str
    node: NumaNode
    kubelet: PackedKubelet
    places: Sequence[int]
    bindings: Sequence[Binding]

    def best_order(self) -> tuple[Orders, Sequence[Binding]]:
        by_name = sorted(self.bindings, key=lambda binding: binding.pod)
        pods = [self.pods[binding.pod] for binding in by_name]
        numbers = {binding.pod: number for number, binding in enumerate(by_name)}
        found = find_order(
            self.kubelet,
            self.kubelet.start(self.node),
            [self.kubelet.units(pod.numa) for pod in pods],
            [pod.created for pod in pods],
            hint=[numbers[binding.pod] for binding in self.bindings],
        )
        if found.sequence is None:
            return found.orders, self.bindings
        return found.orders, [by_name[index] for index in found.sequence]

    @property
    def works(self) -> bool:
        units = (self.kubelet.units(self.pods[binding.pod].numa) for binding in self.bindings)
        return self.kubelet.admit_all(self.kubelet.start(self.node), units) is not None

    def as_it_is(self) -> tuple[Orders, Sequence[Binding]]:
        return Orders.CREATION if len(self.bindings) == 1 else Orders.SOME, self.bindings

    def with_zones(self, bindings: Sequence[Binding]) -> list[Binding]:
        state, found = self.kubelet.start(self.node), []
        for binding in bindings:
            answer = self.kubelet.admit(state, self.kubelet.units(self.pods[binding.pod].numa))
            state = state if answer is None else answer[0]
            found.append(replace(binding, numa_zones=() if answer is None else self.kubelet.names(answer[1])))
        return found


def _crowds(instance: Instance, placement: Placement) -> Iterator[_Crowd]:
    outcome, seen = Outcome(instance, placement), set[Key]()
    nodes = {name: node for name, node in instance.aligning_nodes.items() if name in outcome.new_on}
    kubelets = packed_kubelets(nodes)
    places: dict[str, list[int]] = defaultdict(list)
    for place, binding in enumerate(placement.bindings):
        kubelet = kubelets.get(binding.node)
        if kubelet is not None and outcome.new.get(binding.pod) == binding.node and binding.pod not in seen:
            seen.add(binding.pod)
            if kubelet.units(instance.pods[binding.pod].numa):
                places[binding.node].append(place)
    for name, here in places.items():
        bindings = [placement.bindings[place] for place in here]
        yield _Crowd(instance.pods, name, nodes[name], kubelets[name], here, bindings)
