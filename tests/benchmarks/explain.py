"""How long reasons, one explanation, copies and an audit take on 1,000 nodes, or on as many as are asked for.

Each figure is a JSON line with processor seconds (``seconds``; child processes included) and what is asked of them
(``goal``, of 1,000 nodes). The cluster is made from a seed: racks of 16 nodes with 8 GPUs, gangs of 2 to 16 pods.

``reasons``
    Why 100 groups wait, on top of the greedy.
``explain``
    Causes and changes of two groups that do not fit alone, and of one that does.
``how-many``
    Copies of a gang of 8 pods within a rack.
``audit``
    The running gangs, one for every second node.

    python -m tests.benchmarks.explain [NODES]
"""

from __future__ import annotations

import json
import os
import random
import sys
from collections.abc import Callable, Iterator
from typing import Any

from placer.answers.audit.groups import audit
from placer.answers.explain.cases import Case
from placer.answers.explain.copies import how_many
from placer.answers.explain.explanation import explain
from placer.answers.reasons import reasons
from placer.arrays.dense_builder import make_dense
from placer.base.deadline import Deadline
from placer.kube.manifests import from_documents
from placer.problem import GroupKey
from placer.search.greedy.multi_start import greedy
from tests.support import Document, hyper_node, node, pod, pod_group

RACK = 16
#: What is made again elsewhere may be evicted and moved.
OWNED = {"ownerReferences": [{"apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": "u", "controller": True}]}
HARD = {"mode": "hard", "highestTierAllowed": 1}


def racks(nodes: int) -> Iterator[Document]:
    """The nodes and their tree."""
    names = [f"n{at:04}" for at in range(nodes)]
    yield from (node(name, cpu=96, memory="1Ti", gpu=8) for name in names)
    leaves = [names[at : at + RACK] for at in range(0, nodes, RACK)]
    yield from (hyper_node(f"rack-{at:02}", 1, nodes=tuple(those)) for at, those in enumerate(leaves))
    yield hyper_node("spine", 2, children=tuple(f"rack-{at:02}" for at in range(len(leaves))))


def running(nodes: int, seed: int) -> Iterator[Document]:
    """Gangs that run, each of two pods of half a node, a third of them in two racks."""
    draw = random.Random(seed)
    room = [f"n{at:04}" for at in range(nodes)]
    draw.shuffle(room)
    for at in range(nodes // 2):
        yield pod_group(f"run-{at:03}", minMember=2, networkTopology={"mode": "soft"})
        places = room[2 * at : 2 * at + 2]
        if draw.random() < 2 / 3:
            places = [places[0]] * 2
        for number, on in enumerate(places):
            yield pod(f"run-{at:03}-{number}", group=f"run-{at:03}", node=on, metadata=OWNED, gpu=4)


def waiting(count: int) -> Iterator[Document]:
    """Gangs that wait: too many for the racks, each within one of them."""
    for at in range(count):
        size = (16, 12, 8, 17)[at % 4]
        yield pod_group(f"wait-{at:03}", minMember=size, networkTopology=HARD)
        yield from (pod(f"wait-{at:03}-{i}", group=f"wait-{at:03}", gpu=8) for i in range(size))


def told(name: str, goal: float, work: Callable[[], Any]) -> None:
    """Do it and print a line."""
    began = os.times()
    found = work()
    ended = os.times()
    print(json.dumps({"what": name, "seconds": round(sum(ended[:4]) - sum(began[:4]), 2), "goal": goal, "of": found}))


def main(nodes: int = 1_000) -> None:
    """Measure all of it."""
    full = Case(from_documents([*racks(nodes), *running(nodes, 1), *waiting(nodes // 10)]))
    dense = make_dense(full.instance)
    solution = greedy(dense)
    found = reasons(full.instance, dense, solution)
    told("reasons", 2.0, lambda: len(reasons(full.instance, dense, solution)))
    asked = [GroupKey("scheduling.volcano.sh", "default", name) for name in ("wait-000", "wait-003")]
    asked += [key for key, reason in found.items() if reason.code == "Outcompeted"][:1]
    for key in asked:
        told(f"explain {key.name}", 5.0, lambda key=key: len(next(explain(full, [key], Deadline.within(60))).changes))  # type: ignore[misc]
    bare = Case(from_documents([*racks(nodes), *waiting(3)]))
    third = GroupKey("scheduling.volcano.sh", "default", "wait-002")
    told("how-many", 10.0, lambda: how_many(bare.instance, third, Deadline.within(60)).as_dict())
    told("audit", 30.0, lambda: len(audit(full.instance, Deadline.within(600))))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:2]))
