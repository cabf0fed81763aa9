"""Other seeds of families of ``instances/hard/``, whose generator is not part of the project.

Two instances of each are shipped: too few to say how often a method proves what it finds, and enough to be tuned to.
Each node drawn here has room and pods of a random node of the shipped ones, placed as in the best placement known,
so that all of it fits by construction. Pods that wait there are cut into gangs of the kinds that the family has: some
within a leaf or a spine, some with subgroups that keep to a leaf each, some that may be anywhere::

    python -m tests.benchmarks.redrawn -o FOLDER
    python -m tests.benchmarks.redrawn -o FOLDER --seeds 1-8 --like hetero-s,odd-s

writes ``NAME-SEED.json.gz``, and beside it ``NAME-SEED.best.json.gz``, the placement that it was cut out of, with the
bounds that cost nothing, as ``instances/best.py`` writes those of the shipped ones. The same seed gives the same bytes.
"""

from __future__ import annotations

import argparse
import json
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import NamedTuple

from instances.best import HERE as LIBRARY
from instances.best import beside, document, trimmed
from placer.arrays.dense_builder import make_dense
from placer.base.errors import PlacerError
from placer.bounds import bounds_for, named_bounds
from placer.cli.printing import writable
from placer.kube.manifests import dump
from placer.lab.generate.objects import (
    GROUP,
    NAMESPACE,
    Document,
    created,
    hyper_node,
    named,
    node_object,
    pod_group,
    run_on,
)
from placer.lab.generate.random_source import RandomSource
from placer.lab.sweep.runs import parse_seeds
from placer.problem import Instance, Key
from placer.problem.placement import Binding, Placement
from placer.problem.reading import read, read_placement
from placer.search.incumbent import Incumbent
from tests.support import queue

LEAF = "topology.example/leaf"
ROLE = "volcano.sh/task-spec"
PARTITION = "volcano.sh/partition-id"
#: Labels of a shipped node that say where it is, in place of what it is.
PLACES = ("kubernetes.io/hostname", LEAF)
#: So often at most gangs of one kind are tried: what is left over may have no equal pods where they are looked for.
MOST_TRIES = 500


class ShippedPod(NamedTuple):
    """A pod of a shipped node: its spec as JSON, without the node, and whether it runs there already."""

    spec: str
    runs: bool


@dataclass(frozen=True)
class ShippedNode:
    """A node of a shipped instance in the best placement known.

    Parameters
    ----------
    labels
        Those that do not say where it is.
    room
        What is allocatable.
    pods
        Who runs there, and who is to.
    """

    labels: Mapping[str, str]
    room: Mapping[str, str]
    pods: tuple[ShippedPod, ...]


class WaitingPod(NamedTuple):
    """A pod that is to be in a gang: a number of its own, its spec as JSON, and where it is planted."""

    number: int
    spec: str
    node: str
    leaf: str

    @property
    def spine(self) -> str:
        """The domain above its leaf."""
        return self.leaf.partition("-")[0]


class Gang(NamedTuple):
    """Pods that are placed together.

    Parameters
    ----------
    tier
        Highest tier that all of them must be in one domain of; None: wherever they are.
    subgroups
        Pods of which each part must be in one leaf.
    others
        Pods without such a part.
    """

    tier: int | None
    subgroups: Sequence[Sequence[WaitingPod]]
    others: Sequence[WaitingPod]


class Drawn(NamedTuple):
    """An instance: its objects, and pod to node of the placement that it was cut out of, in plan order."""

    documents: list[Document]
    planted: dict[str, str]


# -------------------------------------------------------------------------------------------------- what is shipped


@cache
def filled_nodes(name: str) -> tuple[ShippedNode, ...]:
    """Nodes of an instance in ``instances/hard/`` that take pods, with those that the best placement gives them."""
    path = LIBRARY / "hard" / f"{name}.json.gz"
    items = document(path)["items"]
    chosen = {binding.pod: binding.node for binding in read_placement(beside(path, "best")).bindings}
    pods = defaultdict(list)
    for item in items:
        if item["kind"] == "Pod":
            spec = dict(item["spec"])
            bound = spec.pop("nodeName", None)
            key = Key(item["metadata"]["namespace"], item["metadata"]["name"])
            pods[bound or chosen[key]].append(ShippedPod(json.dumps(spec), bound is not None))
    return tuple(
        _shipped_node(item, pods[item["metadata"]["name"]])
        for item in items
        if item["kind"] == "Node" and not item["spec"].get("unschedulable")
    )


def _shipped_node(item: Document, pods: Iterable[ShippedPod]) -> ShippedNode:
    labels = {key: value for key, value in item["metadata"]["labels"].items() if key not in PLACES}
    return ShippedNode(labels, item["status"]["allocatable"], tuple(pods))


# ---------------------------------------------------------------------------------------------------- cut into gangs


class UncutPods:
    """Pods that wait and are in no gang yet.

    Parameters
    ----------
    pods
        All of them.
    source
        What draws.
    """

    def __init__(self, pods: Iterable[WaitingPod], source: RandomSource) -> None:
        self.source = source
        self._free = dict.fromkeys(pods)
        self._all = len(self._free)
        self._of: dict[str, list[WaitingPod]] = defaultdict(list)
        for pod in self._free:
            self._of[pod.leaf].append(pod)
        self.leaves = tuple(self._of)
        self.spines = tuple(dict.fromkeys(pod.spine for pod in self._free))
        for pod in self._free:
            self._of[pod.spine].append(pod)

    def alike(self, domain: str | None = None) -> list[list[WaitingPod]]:
        """Pods that are free, in a domain or anywhere, those with the same spec together."""
        found = defaultdict(list)
        for pod in self._free if domain is None else self._of[domain]:
            if pod in self._free:
                found[pod.spec].append(pod)
        return list(found.values())

    def take(self, domains: Iterable[str], size: int) -> list[WaitingPod]:
        """Take so many equal pods out of one of the domains, by chance; none where no domain has so many."""
        enough = [pods for domain in domains for pods in self.alike(domain) if len(pods) >= size]
        return self._taken(self.source.shuffled(self.source.pick(enough))[:size]) if enough else []

    def several(self, domains: Sequence[str], sizes: Sequence[int]) -> list[list[WaitingPod]]:
        """Take equal pods for each of the sizes out of one of the domains each; what is not there is left out."""
        return [pods for size in sizes if (pods := self.take([self.source.pick(domains)], size))]

    def rest(self, size: Callable[[], int]) -> list[list[WaitingPod]]:
        """Take all that is left, equal pods together, in parts as large as ``size`` draws."""
        parts = []
        for pods in map(self.source.shuffled, self.alike()):
            while pods:
                most = size()
                parts.append(self._taken(pods[:most]))
                pods = pods[most:]
        return parts

    def until(self, share: float) -> Iterator[None]:
        """Go on until no more than this share of all pods is left, or a good many tries have been made."""
        for _ in range(MOST_TRIES):
            if len(self._free) <= share * self._all:
                return
            yield

    def sizes(self, most: int) -> list[int]:
        """Draw sizes of two to ``most`` subgroups."""
        return [self.source.pick((3, 3, 5)) for _ in range(2 + self.source.below(most - 1))]

    def _taken(self, pods: list[WaitingPod]) -> list[WaitingPod]:
        for pod in pods:
            del self._free[pod]
        return pods


def cut_few(uncut: UncutPods) -> list[Gang]:
    """Few gangs, as ``planted-hetero-s`` has them: most may be anywhere, and some of these have a subgroup or three."""
    source = uncut.source
    leaves = [uncut.take(uncut.leaves, source.pick((3, 3, 3, 3, 5))) for _ in range(8)]
    subgroups = [uncut.take(uncut.leaves, source.pick((3, 3, 3, 6))) for _ in range(7)]
    subgroups = [pods for pods in subgroups if pods]
    others = source.shuffled(uncut.rest(lambda: 3 + source.below(21)))
    gangs = [Gang(None, (), pods) for pods in others[3:]]
    for pods in others[:3]:
        several = 1 + source.below(3)
        gangs.append(Gang(None, subgroups[:several], pods))
        subgroups = subgroups[several:]
    return gangs + [Gang(1, (), pods) for pods in (*leaves, *subgroups) if pods]


def cut_many(uncut: UncutPods) -> list[Gang]:
    """Many gangs, as ``planted-odd-m`` and ``planted-mixed-l`` have them: most within a leaf, the large ones not."""
    gangs = [*_leaf_gangs(uncut, 0.62), *_spine_gangs(uncut, 0.4), *_core_gangs(uncut, 0.28)]
    return gangs + [Gang(None, (), pods) for pods in uncut.rest(lambda: uncut.source.pick((12, 16, 20, 24, 32)))]


def _leaf_gangs(uncut: UncutPods, left: float) -> Iterator[Gang]:
    """Gangs of one to four sorts of pods, within a leaf."""
    source = uncut.source
    for _ in uncut.until(left):
        sizes = [source.pick((3, 3, 3, 5)) for _ in range(source.pick((1, 1, 1, 1, 2, 2, 3, 4)))]
        if parts := uncut.several([source.pick(uncut.leaves)], sizes):
            yield Gang(1, (), [pod for pods in parts for pod in pods])


def _spine_gangs(uncut: UncutPods, left: float) -> Iterator[Gang]:
    """Gangs within a spine: some of equal pods, most of subgroups and a few other pods."""
    source = uncut.source
    for _ in uncut.until(left):
        spine = source.pick(uncut.spines)
        if source.chance(0.3):
            subgroups, others = [], uncut.take([spine], 8 + source.below(9))
        else:
            subgroups = uncut.several([leaf for leaf in uncut.leaves if leaf.startswith(spine)], uncut.sizes(6))
            others = uncut.take([spine], 3) if subgroups else []
        if subgroups or others:
            yield Gang(2, subgroups, others)


def _core_gangs(uncut: UncutPods, left: float) -> Iterator[Gang]:
    """Gangs that may be anywhere, of subgroups alone."""
    for _ in uncut.until(left):
        if subgroups := uncut.several(uncut.leaves, uncut.sizes(6)):
            yield Gang(None, subgroups, ())


# ------------------------------------------------------------------------------------------------------------- drawn


@dataclass(frozen=True)
class RedrawnFamily:
    """What is drawn, and from what.

    Parameters
    ----------
    text
        What it is, for people.
    shipped
        Instances of ``instances/hard/`` that nodes are drawn from.
    spines
        Domains above leaves.
    leaves
        Of each spine.
    size
        Nodes of each leaf.
    cut
        How pods that wait become gangs.
    """

    text: str
    shipped: tuple[str, ...]
    spines: int
    leaves: int
    size: int
    cut: Callable[[UncutPods], list[Gang]]


FAMILIES: Mapping[str, RedrawnFamily] = {
    "hetero-s": RedrawnFamily(
        "three types of nodes, 128 nodes", ("planted-hetero-s-1", "planted-hetero-s-2"), 4, 8, 4, cut_few
    ),
    "odd-s": RedrawnFamily("odd sizes, 256 nodes", ("planted-odd-m-1", "planted-odd-m-2"), 4, 8, 8, cut_many),
    "mixed-s": RedrawnFamily(
        "1 to 8 GPUs on equal nodes, 512 nodes", ("planted-mixed-l-1", "planted-mixed-l-2"), 4, 16, 8, cut_many
    ),
    "hetero-m": RedrawnFamily(
        "three types of nodes, 1,024 nodes", ("planted-hetero-m-1", "planted-hetero-m-2"), 8, 16, 8, cut_many
    ),
    "odd-m": RedrawnFamily("odd sizes, 1,024 nodes", ("planted-odd-m-1", "planted-odd-m-2"), 8, 16, 8, cut_many),
    "mixed-l": RedrawnFamily(
        "1 to 8 GPUs on equal nodes, 4,096 nodes", ("planted-mixed-l-1", "planted-mixed-l-2"), 16, 32, 8, cut_many
    ),
}


def draw(name: str, seed: int) -> Drawn:
    """Draw an instance of a family."""
    family = FAMILIES[name]
    leaves = {
        f"s{spine:02}": [f"s{spine:02}-l{leaf:02}" for leaf in range(family.leaves)] for spine in range(family.spines)
    }
    places = {f"{leaf}-n{node:02}": leaf for below in leaves.values() for leaf in below for node in range(family.size)}
    nodes, running, waiting = _filled(places, family.shipped, RandomSource(seed, f"{name} nodes"))
    source = RandomSource(seed, f"{name} gangs")
    gangs = source.shuffled(family.cut(UncutPods(waiting, source)))
    made = Drawn([*nodes, *_hyper_nodes(leaves, places), dict(queue("default")), *running], {})
    for number, gang in enumerate(gangs):
        _add_gang(made, named("job", number, len(gangs)), created(10 * (number + 1)), gang)
    return made


def _filled(
    places: Mapping[str, str], shipped: Iterable[str], source: RandomSource
) -> tuple[list[Document], list[Document], list[WaitingPod]]:
    """Draw the nodes, which are named with their leaf: objects of them and of the pods that run, and pods that wait."""
    known = [node for name in shipped for node in filled_nodes(name)]
    nodes: list[Document] = []
    running: list[Document] = []
    waiting: list[WaitingPod] = []
    for name, leaf in places.items():
        like = source.pick(known)
        nodes.append(node_object(name, {**like.labels, LEAF: leaf}, like.room))
        for spec, runs in like.pods:
            if runs:
                running.append(_pod(f"run-{len(running):04}", spec, creationTimestamp=created(0)))
                run_on(running[-1], name)
            else:
                waiting.append(WaitingPod(len(waiting), spec, name, leaf))
    return nodes, running, waiting


def _hyper_nodes(leaves: Mapping[str, Sequence[str]], places: Mapping[str, str]) -> Iterator[Document]:
    """The fabric: a core, spines, leaves."""
    inside = defaultdict(list)
    for node, leaf in places.items():
        inside[leaf].append(("Node", node))
    yield hyper_node("core", 3, "tier-3", [("HyperNode", spine) for spine in leaves])
    for spine, below in leaves.items():
        yield hyper_node(spine, 2, "tier-2", [("HyperNode", leaf) for leaf in below])
        for leaf in below:
            yield hyper_node(leaf, 1, "tier-1", inside[leaf])


def _pod(name: str, spec: str, **metadata: object) -> Document:
    """A pending pod with a spec of the shipped ones."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": NAMESPACE, **metadata},
        "spec": json.loads(spec),
        "status": {"phase": "Pending"},
    }


def _add_gang(made: Drawn, name: str, when: str, gang: Gang) -> None:
    """Add a PodGroup and its pods, which are planted where they were drawn."""
    parts = {f"u{number}": pods for number, pods in enumerate(gang.subgroups)}
    made.documents.append(pod_group(name, _said_of(gang, parts), running=False, creationTimestamp=when))
    members = [(role, pod) for role, pods in {**parts, "w": gang.others}.items() for pod in pods]
    for number, (role, pod) in enumerate(members):
        labels = {ROLE: role, "volcano.sh/job-name": name} | ({PARTITION: "0"} if role in parts else {})
        notes = {GROUP: name, ROLE: role}
        member = f"{name}-{number}"
        made.documents.append(_pod(member, pod.spec, creationTimestamp=when, labels=labels, annotations=notes))
        made.planted[member] = pod.node


def _said_of(gang: Gang, parts: Mapping[str, Sequence[WaitingPod]]) -> Document:
    """The spec of a PodGroup, which needs all of its pods; ``parts`` are its subgroups by role."""
    spec: Document = {"minMember": sum(map(len, parts.values())) + len(gang.others), "queue": "default"}
    if gang.tier is not None:
        spec["networkTopology"] = _within(gang.tier)
    if parts:
        spec["subGroupPolicy"] = [_subgroup(role, len(pods)) for role, pods in parts.items()]
    return spec


def _subgroup(role: str, size: int) -> Document:
    """What a PodGroup says of a subgroup: all of it, in one leaf."""
    return {
        "name": role,
        "subGroupSize": size,
        "minSubGroups": 1,
        "labelSelector": {"matchLabels": {ROLE: role}},
        "matchLabelKeys": [PARTITION],
        "networkTopology": _within(1),
    }


def _within(tier: int) -> Document:
    return {"mode": "hard", "highestTierAllowed": tier}


# ----------------------------------------------------------------------------------------------------------- written


def write(made: Drawn, target: Path) -> Instance:
    """Write an instance, and beside it the placement that it was cut out of; what is read again is returned."""
    dump(made.documents, target)
    instance = read(target, strict=True)
    placement = Placement(tuple(Binding(Key(NAMESPACE, pod), node) for pod, node in made.planted.items()))
    dense = make_dense(instance)
    known = Incumbent(dense, time.monotonic())
    known.add_bounds(*named_bounds(dense))
    known.offer(dense.solution(placement), "planted")
    known.add_bounds(*bounds_for(dense, known.values))
    dump(trimmed(instance, placement, known), beside(target, "best"))
    return instance


def carry_out(names: Iterable[str], seeds: Iterable[int], folder: Path) -> None:
    """Draw all that is asked for, and say how large it is."""
    targets = {folder / f"{name}-{seed}.json.gz": (name, seed) for name in names for seed in seeds}
    writable([path for target in targets for path in (target, beside(target, "best"))])
    for target, (name, seed) in targets.items():
        instance = write(draw(name, seed), target)
        waiting = len(instance.pending)
        print(
            f"{target}: {len(instance.nodes)} nodes, {len(instance.pods) - waiting} running pods, "
            f"{waiting} pending pods, {len(instance.groups)} gangs",
            flush=True,
        )


def main() -> None:
    """Write what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", dest="folder", metavar="FOLDER", type=Path, required=True, help="where to write")
    parser.add_argument("--seeds", default="1-8", metavar="LIST", help="numbers and ranges (1-8)")
    known = "; ".join(f"{name}: {family.text}" for name, family in FAMILIES.items())
    parser.add_argument("--like", default=",".join(FAMILIES), metavar="LIST", help=f"families (all): {known}")
    options = parser.parse_args()
    names = options.like.split(",")
    if unknown := [name or "''" for name in names if name not in FAMILIES]:
        parser.error(f"like: found {', '.join(unknown)}, expected some of {', '.join(FAMILIES)}")
    try:
        carry_out(names, parse_seeds(options.seeds), options.folder)
    except PlacerError as error:
        parser.exit(error.exit_code, f"{parser.prog}: {error}\n")


if __name__ == "__main__":
    main()
