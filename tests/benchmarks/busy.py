"""Who must go at 5,120 busy nodes: the first plan, the last one and its bound, beside the plan of a plain greedy.

The cluster is drawn, not planted: 16 nodes of 8 GPUs to a leaf, 16 leaves to a spine; single pods and gangs of pods of
1, 2 and 4 GPUs wherever there is room until a sixth of the GPUs is free, and pods without GPUs up to 50,000 pods. Every
command runs in a process of its own and is a line of JSON; a table of all of them comes last. Plans are compared by the
work that goes, in GPUs, as ``moved`` and ``evicted`` count it::

    python -m tests.benchmarks.busy FOLDER
    python -m tests.benchmarks.busy FOLDER --nodes 512 --asks "1 x 1,gang" --time-limit 20
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from placer.lab.generate.objects import (
    GPU,
    GROUP,
    Document,
    created,
    hyper_node,
    named,
    node_object,
    pod_group,
    pod_object,
    priority_class,
    requests,
    run_on,
)
from placer.problem import Instance, Key
from placer.problem.reading import read, read_placement
from tests.benchmarks.goals import markdown

LEAF, SPINE, GPUS = 16, 16, 8
#: Share of the GPUs that is free, share of the pods with GPUs that are in gangs.
FREE, IN_GANGS = 1 / 6, 0.2
CLASSES = {"low": 0, "middle": 100, "high": 1000}
#: Outranks two thirds of what runs.
BETWEEN = 500
WHOLE = "nvidia.com/gpu=8,cpu=32"
ASKS: Mapping[str, Sequence[str]] = {
    "1 x 1": ("defrag", "--want", f"1 x 1 x {WHOLE} @ 1"),
    "2 x 4": ("defrag", "--want", f"2 x 4 x {WHOLE} @ 1"),
    "4 x 8": ("defrag", "--want", f"4 x 8 x {WHOLE} @ 1"),
    "empty": ("defrag", "--free-domains", "2@1"),
    "gang": ("preempt", "--for", "train"),
    "repair": ("repair", "--lost", "LOST"),
    "audit": ("audit",),
}
#: Asks that the plain greedy answers; values that count work; columns of the table.
OPPOSED = ("1 x 1", "2 x 4", "4 x 8", "gang")
WORK = ("evicted", "moved")
COLUMNS = [
    "ask",
    "exit",
    "first",
    "first work",
    "pods",
    "work",
    "bound",
    "greedy pods",
    "greedy work",
    "seconds",
    "load",
]


class _Busy:
    """Draws the cluster."""

    def __init__(self, nodes: int, pods: int, seed: int) -> None:
        self.random, self.pods = random.Random(seed), pods
        self.names = [named("node", number, nodes) for number in range(nodes)]
        self.free = dict.fromkeys(self.names, GPUS)
        self.number = 0

    def documents(self) -> Iterator[Document]:
        yield from (priority_class(name, value) for name, value in {**CLASSES, "between": BETWEEN}.items())
        room = requests(GPUS, 128_000, 1 << 20) | {"pods": "110"}
        yield from (node_object(name, {}, room) for name in self.names)
        yield from self._tree()
        for name in self.names:  # no node is empty
            self.free[name] -= 1
            yield self._pod(f"run-{self.number}", name, 1, self.random.choice([*CLASSES]))
        enough = round(FREE * GPUS * len(self.names))
        while sum(self.free.values()) > enough:
            yield from self._running()
        while self.number < self.pods:
            yield self._pod(f"web-{self.number}", self.random.choice(self.names), 0, "low")

    def _tree(self) -> Iterator[Document]:
        leaves = [self.names[at : at + LEAF] for at in range(0, len(self.names), LEAF)]
        names = [named("leaf", number, len(leaves)) for number in range(len(leaves))]
        for name, members in zip(names, leaves, strict=True):
            yield hyper_node(name, 1, "leaf", [("Node", member) for member in members])
        for number, at in enumerate(range(0, len(names), SPINE)):
            yield hyper_node(f"spine-{number}", 2, "spine", [("HyperNode", each) for each in names[at : at + SPINE]])

    def _running(self) -> Iterator[Document]:
        gpus = self.random.choice((1, 1, 2, 2, 4))
        level = self.random.choice([*CLASSES])
        if self.random.random() > IN_GANGS / 4:
            yield from (self._pod(f"run-{self.number}", name, gpus, level) for name in self._places(1, gpus))
            return
        name, places = f"gang-{self.number}", self._places(self.random.choice((2, 4, 8)), gpus)
        yield pod_group(name, {"minMember": len(places)}, True)
        for number, target in enumerate(places):
            yield self._pod(f"{name}-{number}", target, gpus, level, group=name)

    def _places(self, count: int, gpus: int) -> list[str]:
        found: list[str] = []
        while len(found) < count:
            name = max(self.random.sample(self.names, 2), key=self.free.__getitem__)
            if self.free[name] >= gpus:
                self.free[name] -= gpus
                found.append(name)
        return found

    def _pod(self, name: str, target: str, gpus: int, level: str, group: str = "") -> Document:
        self.number += 1
        owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": name, "uid": name, "controller": True}
        notes = {"annotations": {GROUP: group}} if group else {}
        room = requests(gpus, 4000 * gpus or 2000, 8192)
        pod = pod_object(
            name, "job", [("main", room)], creationTimestamp=created(self.number), ownerReferences=[owner], **notes
        )
        pod["spec"]["priorityClassName"] = level
        run_on(pod, target)
        return pod


def waiting_gang(pods: int = 32) -> Iterator[Document]:
    """A gang of whole nodes under tier 2 that outranks two thirds of what runs."""
    spec = {"minMember": pods, "networkTopology": {"mode": "hard", "highestTierAllowed": 2}}
    yield pod_group("train", spec | {"priorityClassName": "between"}, False)
    for number in range(pods):
        pod = pod_object(
            f"train-{number}", "job", [("main", requests(GPUS, 32_000, 1024))], annotations={GROUP: "train"}
        )
        pod["spec"]["priorityClassName"] = "between"
        yield pod


def made(folder: Path, nodes: int, pods: int, seed: int) -> tuple[Path, Path]:
    """Files of the cluster alone, and of the gang that waits, made where they are not there."""
    paths = folder / f"busy-{nodes}-{seed}.json", folder / "train.json"
    for path, documents in zip(paths, (_Busy(nodes, pods, seed).documents(), waiting_gang()), strict=True):
        if not path.exists():
            path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": [*documents]}), encoding="utf-8")
    return paths


# ------------------------------------------------------------------------------------------------------------- opponent


class PlainGreedy:
    """Per domain its emptiest nodes, the domains where least has to go, each pod to the fullest node that takes it.

    A gang goes whole. Pods without GPUs stay; where it evicts, nothing is moved.
    """

    def __init__(self, instance: Instance, evicting: int | None = None) -> None:
        self.instance, self.evicting = instance, evicting
        self.free = {name: Counter(node.allocatable) for name, node in instance.nodes.items()}
        self.going: dict[str, set[Key]] = {name: set() for name in instance.nodes}
        for key, pod in instance.pods.items():
            if pod.node is not None:
                self.free[pod.node].subtract(pod.requests)
                if pod.requests[GPU]:
                    self.going[pod.node].update([key] if pod.group is None else instance.groups[pod.group].bound)

    def _cost(self, name: str) -> tuple[bool, int]:
        keys = self.going[name]
        priorities = (self.instance.pods[key].unit_priority for key in keys)
        return self.evicting is not None and any(each >= self.evicting for each in priorities), len(keys)

    def cleared(self, domains: Sequence[Sequence[str]], gangs: int, pods: int) -> set[Key] | None:
        """Pods that go for so many gangs of so many whole nodes; None: it finds no room for all."""
        ranked = sorted(([*sorted(names, key=self._cost)[:pods]] for names in domains), key=self._of_domain)
        nodes = {name for names in ranked[:gangs] for name in names}
        going = set[Key]().union(*(self.going[name] for name in nodes))
        if len(nodes) < gangs * pods or any(self._cost(name)[0] for name in nodes):
            return None
        return going if self.evicting is not None or self._has_room(going, nodes) else None

    def _of_domain(self, names: Sequence[str]) -> tuple[bool, int]:
        return any(self._cost(name)[0] for name in names), sum(self._cost(name)[1] for name in names)

    def _has_room(self, going: set[Key], nodes: set[str]) -> bool:
        pods = self.instance.pods
        for key in going:
            self.free[pods[key].node or ""].update(pods[key].requests)
        for key in sorted(going, key=lambda key: (-pods[key].requests[GPU], key)):
            asked = pods[key].requests
            able = (
                name
                for name in self.free.keys() - nodes
                if all(self.free[name][each] >= amount for each, amount in asked.items())
            )
            target = min(able, key=lambda name: (self.free[name][GPU], name), default=None)
            if target is None:
                return False
            self.free[target].subtract(asked)
        return True


def opponent(instance: Instance, ask: str) -> dict[str, int]:
    """How many pods the plain greedy moves or evicts for an ask, and the GPUs of these; empty: it finds no room."""
    tree, tier = instance.topology, 1 + (ask == "gang")
    domains = defaultdict[str, list[str]](list)
    for name in instance.nodes:
        domains[tree.path(name)[tier - 1]].append(name)
    gangs, pods = (1, 32) if ask == "gang" else map(int, ask.split(" x "))
    going = PlainGreedy(instance, BETWEEN if ask == "gang" else None).cleared([*domains.values()], gangs, pods)
    return {} if going is None else {"pods": len(going), "work": sum(instance.pods[key].requests[GPU] for key in going)}


# ----------------------------------------------------------------------------------------------------------------- runs


def asked(folder: Path, ask: str, options: argparse.Namespace) -> dict[str, Any]:
    """Ask about the cluster in a process of its own; a line about what is found, and what the opponent finds."""
    cluster, gang = made(folder, options.nodes, options.pods, options.seed)
    lost = ",".join(named("node", number, options.nodes) for number in range(7, options.nodes, options.nodes // 10))
    command = [lost if word == "LOST" else word for word in ASKS[ask]]
    files = [str(cluster), str(gang)] if ask == "gang" else [str(cluster)]
    plan = folder / "plan.json"
    words = [sys.executable, "-m", "placer", command[0], *files, *command[1:], "--time-limit", str(options.time_limit)]
    before, start = os.times(), time.monotonic()
    ended = subprocess.run(
        [*words, "--quiet", *([] if ask == "audit" else ["-o", str(plan)])], stdout=subprocess.PIPE, check=False
    )
    after, line = os.times(), {"ask": ask, "nodes": options.nodes, "seed": options.seed, "exit": ended.returncode}
    used = after.children_user + after.children_system - before.children_user - before.children_system
    line |= {"seconds": round(time.monotonic() - start, 1), "processor": round(used, 1), "load": os.getloadavg()[0]}
    if ask == "audit":
        return line
    answer, placement = json.loads(plan.read_text(encoding="utf-8")), read_placement(plan)
    values = [(each["name"], each["value"], each["bound"]) for each in answer["objective"]]
    at = [index for index, (name, *_) in enumerate(values) if name in WORK]
    first = next((each for each in answer["trace"] if any(each["values"][index] for index in at)), None)
    line |= {
        "pods": len(placement.moves) + len(placement.evictions),
        "work": sum(_gpus(values[index][1]) for index in at),
    }
    line["bound"] = sum(_gpus(values[index][2] or 0) for index in at)
    line |= {"read": answer["seconds"]["read"], "first": first and first["seconds"], "by": first and first["phase"]}
    line["first work"] = first and sum(_gpus(first["values"][index]) for index in at)
    if ask in OPPOSED:
        line |= {f"greedy {name}": each for name, each in opponent(read(*files), ask).items()}
    return line


def _gpus(weight: int) -> float:
    """The GPUs of pods of a weight: a whole node has :data:`GPUS` and weighs a million."""
    return round(weight * GPUS / 1_000_000, 1)


def main() -> int:
    """Ask everything once."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", type=Path, help="where files go; a cluster that is there is not made again")
    parser.add_argument("--nodes", type=int, default=5120)
    parser.add_argument("--pods", type=int, default=50_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--asks", default=",".join(ASKS), help="some of them, with commas")
    parser.add_argument("--time-limit", type=float, default=60.0)
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    lines = []
    for ask in options.asks.split(","):
        lines.append(asked(options.folder, ask, options))
        print(json.dumps(lines[-1]), flush=True)
    print("\n".join(markdown([COLUMNS, *([str(line.get(name, "-")) for name in COLUMNS] for line in lines)], left=1)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
