"""How fast kubelets are replayed and put in order: pods per second of one replay, seconds for a whole placement.

``python -m tests.benchmarks.numa_replay [NODES]`` makes nodes of 2, 4 and 8 zones, filled (default 1,000), and prints
a line each for the replay of all their pods and for :func:`placer.search.numa.binding_order.aligned`; seconds are
those of the CPU.
"""

from __future__ import annotations

import sys
import time
from collections import defaultdict

from placer.arrays.packed_kubelet import PackedKubelet, State, Units, packed_kubelets
from placer.kube.manifests import from_documents, validate
from placer.lab.generate import generate
from placer.problem import Instance
from placer.problem.instance_builder import make_instance
from placer.problem.placement import Placement
from placer.search.numa.binding_order import aligned


def main(nodes: int) -> None:
    for restricted in (0.0, 1.0):
        made = generate("numa", nodes=nodes, pod_cores=(8, 10, 12, 14, 16, 24), pairs=0.2, restricted=restricted)
        instance = make_instance(validate(from_documents(made.documents)))
        placement = Placement.of(made.planted or {})
        print(f"restricted {restricted:g}: {len(placement.bindings):,} pods on {nodes:,} nodes")
        print(f"  replayed: {_replayed(instance, placement):,.0f} pods per second")
        start = time.process_time()
        found = aligned(instance, placement)
        seconds = time.process_time() - start
        print(f"  put in order: {seconds:.2f} s, one by one on {len(found.one_by_one):,} nodes")


def _replayed(instance: Instance, placement: Placement, times: int = 20) -> float:
    """Pods per second, each made ready for its kubelet before."""
    order: dict[str, list[Units]] = defaultdict(list)
    kubelets = packed_kubelets(instance.aligning_nodes)
    for binding in placement.bindings:
        order[binding.node].append(kubelets[binding.node].units(instance.pods[binding.pod].numa))
    work: list[tuple[PackedKubelet, State, list[Units]]] = []
    for name, pods in order.items():
        work.append((kubelets[name], kubelets[name].start(instance.aligning_nodes[name]), pods))
    start = time.process_time()
    for _ in range(times):
        for kubelet, state, pods in work:
            for units in pods:
                answer = kubelet.admit(state, units)
                if answer is None:
                    raise AssertionError("the planted order is admitted")
                state = answer[0]
    return times * len(placement.bindings) / (time.process_time() - start)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1000)
