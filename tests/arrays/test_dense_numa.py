"""C10 by index: which pods a kubelet tells apart, and which crowds it admits, against every order tried naively."""

from __future__ import annotations

from collections import Counter
from itertools import islice
from random import Random

import numpy as np

from placer.arrays import Dense, Solution
from placer.arrays.dense_builder import make_dense
from placer.problem import Instance
from placer.rules import verify
from tests.numa_naive import some_order
from tests.oracle import placements
from tests.tiny_numa import tiny_numa


def admitted(instance: Instance, dense: Dense, node: int, counts: dict[int, int]) -> bool:
    """Whether naive replay finds an order for some pods of each class on a node."""
    numa = instance.nodes[dense.nodes[node]].numa
    assert numa is not None
    pods = [instance.pods[pod] for index, count in counts.items() for pod in dense.classes[index].pods[:count]]
    return some_order(numa, tuple(pod.numa for pod in pods)) is not None


def test_crowds_are_admitted_as_naive_replay_says() -> None:
    told: Counter[bool] = Counter()
    for seed in range(200):
        random = Random(seed)
        instance = tiny_numa(seed).instance
        dense = make_dense(instance)
        if dense.numa is None:
            continue
        for node in np.flatnonzero(dense.numa.kind >= 0).tolist():
            for _ in range(6):
                counts = {index: random.randint(0, min(2, it.size)) for index, it in enumerate(dense.classes)}
                counts = dict(random.sample(sorted(counts.items()), min(3, len(counts))))
                expected = admitted(instance, dense, node, counts)
                assert dense.numa.admits(node, counts.items()) == expected, f"seed {seed}, node {node}: {counts}"
                told[expected] += 1
    assert min(told[True], told[False]) > 300, told


def test_refused_nodes_are_those_that_verify_names_in_every_order() -> None:
    """A solution with no refused node can be ordered so that verify finds nothing of C10."""
    for seed in range(60):
        instance = tiny_numa(seed).instance
        dense = make_dense(instance)
        if dense.numa is None:
            continue
        for placement in islice(placements(instance), 40):
            assert verify(instance, placement) == []
            assert dense.numa.refused(dense.solution(placement)) == {}


def test_a_part_keeps_kinds_and_counts_what_stays() -> None:
    compared = 0
    for seed in range(120):
        dense = make_dense(tiny_numa(seed).instance)
        numa = dense.numa
        if numa is None or not dense.classes:
            continue
        nodes = np.array(range(len(dense.nodes)))[::-1]
        classes = list(range(len(dense.classes)))
        first = int(nodes[0])
        for index in classes:
            part = numa.only(nodes, classes, {0: tuple(numa.pods(first, [(index, 1)]))})
            for other in classes:
                if not numa.of(other, first):
                    continue
                together = Counter([index, other])
                assert part.admits(0, [(other, 1)]) == numa.admits(first, together.items())
                compared += bool(numa.of(index, first))
    assert compared > 100


def test_a_solution_is_ordered_as_its_kubelets_admit_it() -> None:
    """Whatever order the entries come in: named as they then stand, no search for an order is needed."""
    ordered, none = 0, 0
    for seed in range(120):
        instance = tiny_numa(seed).instance
        dense = make_dense(instance)
        if dense.numa is None:
            continue
        for placement in islice(placements(instance), 12):
            entries = list(dense.solution(placement).items())
            Random(seed).shuffle(entries)
            order = {node: [index for (index, here), _ in entries if here == node] for (_, node), _ in entries}
            found = dense.numa.ordered(Solution(dict(entries), order))
            if found is None:
                none += 1
                continue
            assert sorted(found.items()) == sorted(entries)
            assert verify(instance, dense.placement(found)) == [], seed
            ordered += len(entries) > 1
    assert ordered > 100
    assert none <= 0.02 * ordered
