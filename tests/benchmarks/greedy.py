"""How much the greedy places of queues that are known to fit, how long it takes, and how it bears large inputs.

Seconds are processor time of the step itself (arrays, greedy, reasons); reading and verifying are not in them.

    python -m tests.benchmarks.greedy --nodes 50 200 1000 5000 --seeds 1 2
    python -m tests.benchmarks.greedy --large
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from random import Random
from typing import Any, TypeVar

from placer.answers.reasons import reasons
from placer.arrays.dense_builder import make_dense
from placer.base.quantity import Resources
from placer.lab.generate import generate
from placer.problem import (
    Constraints,
    Group,
    GroupKey,
    HyperNode,
    Instance,
    Key,
    NetworkTopology,
    Node,
    Pod,
    PodState,
    TopologyTree,
)
from placer.rules import verify
from placer.search.greedy.multi_start import greedy
from tests.support import instance_of

T = TypeVar("T")

PLANTED: dict[str, dict[str, Any]] = {
    "whole nodes": {},
    "like Volcano's": {"like_volcano": True},
    "mixed": {"pod_sizes": (1, 2, 4, 8), "roles": 0.2, "elastic": 0.2},
    "odd sizes": {"pod_sizes": (1, 2, 3, 5, 7, 8), "uneven": 0.3, "node_types": 2},
    "overfull": {"pod_sizes": (1, 2, 4, 8), "overfull": 0.3, "priorities": 3, "running": 0.2, "elastic": 0.2},
}

NODES, LEAF, SPINE = 10_000, 16, 256


def timed(step: Callable[[], T]) -> tuple[T, float]:
    """What a step returns, and the processor seconds it took."""
    start = time.process_time()
    return step(), time.process_time() - start


def row(name: str, instance: Instance) -> str:
    """One line of the table."""
    dense, build = timed(lambda: make_dense(instance))
    solution, seconds = timed(lambda: greedy(dense))
    placement = dense.placement(solution)
    broken = verify(instance, placement)
    told, why = timed(lambda: reasons(instance, dense, solution))
    pods, total = len(instance.pending), sum(instance.weights.values())
    weight = sum(instance.weights[key] for key in placement.node_of)
    shares = f"{100 * len(placement.node_of) / pods:7.2f} {100 * weight / total:7.2f}"
    times = f"{build:6.2f} {seconds:7.2f} {why:8.2f}"
    sizes = f"{len(instance.nodes):6} {pods:7} {len(dense.groups):7}"
    return f"{name:24} {sizes} {shares} {times} {len(told):8} {len(broken):6}"


def planted(sizes: list[int], seeds: list[int]) -> Iterator[tuple[str, Instance]]:
    """Queues that fit entirely (but for those of family "overfull")."""
    for family, options in PLANTED.items():
        for nodes in sizes:
            for seed in seeds:
                made = generate("planted", nodes=nodes, seed=seed, **options)
                yield f"{family} {seed}", instance_of(*made.documents)


def large() -> Iterator[tuple[str, Instance]]:
    """Queues of extreme shape on 10,000 nodes of 8 GPUs."""
    random = Random(1)
    equal = Resources({"nvidia.com/gpu": 1, "cpu": 1000, "pods": 1})
    node = Resources({"nvidia.com/gpu": 8, "cpu": 64_000, "pods": 110})
    unequal = [
        Resources({"nvidia.com/gpu": random.randint(1, 8), "cpu": random.randint(100, 60_000), "pods": 1})
        for _ in range(20_000)
    ]
    yield "one gang of 5,000", assembled([("g", [Resources({"nvidia.com/gpu": 8, "pods": 1})] * 5_000, 5_000, 3)], node)
    gangs = [
        (
            f"g{index:04}",
            [Resources({"nvidia.com/gpu": 2 ** random.randint(0, 3), "pods": 1}) for _ in range(random.randint(8, 60))],
            8,
            random.choice([1, 2, 3]),
        )
        for index in range(1_000)
    ]
    yield "1,000 elastic gangs", assembled(gangs, node)
    yield "20,000 unequal pods", assembled([(f"p{i:05}", [each], 1, None) for i, each in enumerate(unequal)], node)
    yield "one gang of 200,000", assembled([("g", [equal] * 200_000, 20_000, 3)], node)
    yield "200,000 equal pods", assembled([(f"p{i:06}", [equal], 1, None) for i in range(200_000)], node)


def assembled(gangs: list[tuple[str, list[Resources], int, int | None]], room: Resources) -> Instance:
    """Make an instance of gangs: name, requests of the pods, minMember, and the tier limit (None: lone pods)."""
    pods: dict[Key, Pod] = {}
    groups: dict[GroupKey, Group] = {}
    for name, requests, least, tier in gangs:
        key = GroupKey("" if tier is None else "scheduling.volcano.sh", "default", name)
        members = [Key("default", name if tier is None else f"{name}-{at:06}") for at in range(len(requests))]
        for member, request in zip(members, requests, strict=True):
            pods[member] = Pod(*member, PodState.PENDING, request, Constraints(), group=key)
        topology = None if tier is None else NetworkTopology(hard=True, highest_tier=tier)
        groups[key] = Group(key, least, topology=topology, pending=tuple(members))
    nodes = {f"n{index:05}": Node(f"n{index:05}", room, {}) for index in range(NODES)}
    return Instance(nodes, dict(sorted(pods.items())), dict(sorted(groups.items())), tree(list(nodes)))


def tree(names: list[str]) -> TopologyTree:
    """Leaves of 16 nodes under spines of 16 leaves."""
    found: dict[str, HyperNode] = {}
    for first in range(0, NODES, SPINE):
        leaves = []
        for begin in range(first, min(first + SPINE, NODES), LEAF):
            leaf = f"leaf-{begin // LEAF:04}"
            found[leaf] = HyperNode(
                leaf, 1, parent=f"spine-{first // SPINE:03}", nodes=tuple(names[begin : begin + LEAF])
            )
            leaves.append(leaf)
        spine = f"spine-{first // SPINE:03}"
        found[spine] = HyperNode(spine, 2, children=tuple(leaves))
    return TopologyTree(dict(sorted(found.items())), 3)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, nargs="+", default=[50, 200, 1000], help="sizes of planted clusters")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2], help="seeds of planted queues")
    parser.add_argument("--large", action="store_true", help="queues of extreme shape instead")
    options = parser.parse_args()
    print(
        f"{'queue':24} {'nodes':>6} {'pods':>7} {'groups':>7} {'pods %':>7} {'weight%':>7} "
        f"{'arrays':>6} {'greedy':>7} {'reasons':>8} {'pending':>8} {'broken':>6}"
    )
    for name, instance in large() if options.large else planted(options.nodes, options.seeds):
        print(row(name, instance), flush=True)


if __name__ == "__main__":
    main()
