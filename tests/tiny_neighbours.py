"""Seeded tiny instances whose pods ask something of the pods around them (C12 to C15, C7 by label).

Those of :mod:`tests.tiny` and :mod:`tests.tiny_numa`, with labels laid over nodes and pods: so gangs, tier limits,
calls, NUMA zones and neighbours meet. The instance below stays as it is.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from random import Random

from placer.problem import Constraints, GroupKey, Instance, Node, Pod, PodState, Requirement, Toleration
from placer.problem.neighbours import (
    NO_NEIGHBOURS,
    AffinityTerm,
    ChildJob,
    DomainUnit,
    Neighbours,
    PodSelector,
    SpreadLimit,
)
from tests.tiny import Tiny, tiny, tiny_network
from tests.tiny_numa import tiny_numa

#: Topology keys; each node has a host, most a zone, many a rack.
KEYS = ("host", "zone", "zone", "rack")
APPS = ("web", "db")
EVERYTHING = (Toleration(operator="Exists"),)


def tiny_neighbours(seed: int) -> Tiny:
    """Make the instance of a seed."""
    base = {4: tiny_network, 5: tiny_numa}.get(seed % 6, tiny)(seed)
    maker = _Maker(Random(f"tiny neighbours {seed}"), base.instance)
    units = _Units(Random(f"tiny units {seed}"))
    instance = units.over(maker.make()) if seed % 2 else maker.make()
    return Tiny(seed, instance, base.tags | maker.tags | units.tags)


def with_neighbours(random: Random, instance: Instance) -> tuple[Instance, frozenset[str]]:
    """An instance with labels over its nodes and terms over its pods, and what it uses of these."""
    maker = _Maker(random, instance)
    return maker.make(), frozenset(maker.tags)


class _Maker:
    """Labels over the nodes of one instance, terms over its pods."""

    def __init__(self, random: Random, instance: Instance) -> None:
        self.random, self.instance = random, instance
        self.tags: set[str] = set()
        self.templates: dict[object, tuple[dict[str, str], Neighbours]] = {}

    def make(self) -> Instance:
        nodes = {name: self._node(node) for name, node in self.instance.nodes.items()}
        pods = {key: self._pod(pod) for key, pod in self.instance.pods.items()}
        return replace(self.instance, nodes=nodes, pods=pods, namespaces={"default": {"team": "t"}})

    def _chance(self, probability: float, tag: str = "") -> bool:
        yes = self.random.random() < probability
        if yes and tag:
            self.tags.add(tag)
        return yes

    def _node(self, node: Node) -> Node:
        labels = {"host": node.name, "zone": self.random.choice("ab"), "rack": self.random.choice("xy")}
        if self._chance(0.1, "noZoneLabel"):
            del labels["zone"]
        if self._chance(0.2, "noRackLabel"):
            del labels["rack"]
        return replace(node, labels={**node.labels, **labels})

    def _pod(self, pod: Pod) -> Pod:
        """Mostly what its group has; pods of a group are seldom of two kinds."""
        home: object = pod.group if pod.group is not None and pod.state is not PodState.NOMINATED else pod.key
        if home not in self.templates or self._chance(0.12, "mixedGang"):
            self.templates[home] = self._template()
        labels, asks = self.templates[home]
        return replace(pod, labels=labels, neighbours=asks)

    def _template(self) -> tuple[dict[str, str], Neighbours]:
        labels = {"app": self.random.choice(APPS)}
        if self._chance(0.3):
            labels["tier"] = "front"
        if self._chance(0.25):
            return labels, NO_NEIGHBOURS
        kind = self.random.choices(["near", "apart", "spread", "nearApart", "spreadApart"], [4, 3, 4, 1, 1])[0]
        self.tags.add(kind)
        return labels, Neighbours(
            affinity=self._near(labels) if kind.startswith("near") else (),
            anti_affinity=self._terms() if kind.lower().endswith("apart") else (),
            spread=self._spread() if kind.startswith("spread") else (),
        )

    def _near(self, labels: dict[str, str]) -> tuple[AffinityTerm, ...]:
        """Most are near their like, where the first of them may be anywhere."""
        own = self._chance(0.6, "nearItsLike")
        terms = {AffinityTerm(self.random.choice(KEYS), self._selector(labels["app"] if own else None))}
        if self._chance(0.2, "twoTerms"):
            terms.add(AffinityTerm(self.random.choice(KEYS), self._selector(labels["app"] if own else None)))
        return tuple(sorted(terms, key=repr))

    def _terms(self) -> tuple[AffinityTerm, ...]:
        terms = {AffinityTerm(self.random.choice(KEYS), self._selector()) for _ in range(self.random.choice([1, 1, 2]))}
        return tuple(sorted(terms, key=repr))

    def _selector(self, app: str | None = None) -> PodSelector:
        app = self.random.choice(APPS) if app is None else app
        requirements = [Requirement("app", "In", (app,))]
        if self._chance(0.15, "everyPod"):
            requirements = []
        elif self._chance(0.15, "exists"):
            requirements = [Requirement("tier", self.random.choice(["Exists", "DoesNotExist"]))]
        if self._chance(0.1, "namespaceSelector"):
            return PodSelector((), (Requirement("team", "In", ("t",)),), tuple(requirements))
        if self._chance(0.04, "otherNamespace"):
            return PodSelector(("other",), None, tuple(requirements))
        return PodSelector(("default",), None, tuple(requirements))

    def _spread(self) -> tuple[SpreadLimit, ...]:
        keys = sorted({self.random.choice(KEYS) for _ in range(self.random.choice([1, 1, 1, 2]))})
        return tuple(self._limit(key, tuple(keys)) for key in keys)

    def _limit(self, key: str, keys: tuple[str, ...]) -> SpreadLimit:
        selector = None if self._chance(0.04, "countsNothing") else self._selector().requirements or None
        pods = PodSelector(("default",), None, selector)
        counted = Constraints(tolerations=() if self._chance(0.2, "honoursTaints") else EVERYTHING)
        if self._chance(0.2, "honoursSelector"):
            counted = replace(counted, selector=(("disk", "ssd"),))
        least = self.random.choice([1, 1, 1, 2, 3])
        return SpreadLimit(key, pods, self.random.choice([1, 1, 2]), least, keys, counted)


class _Units:
    """Units over the pods of one instance: of whole groups, of parts of them, and of pods in no group."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.tags: set[str] = set()
        self.shares: dict[GroupKey | None, int] = {}
        self.known: dict[str, tuple[DomainUnit, ...]] = {}
        self.of_jobs: dict[str, bool] = {}

    def over(self, instance: Instance) -> Instance:
        return replace(instance, pods={key: self._pod(pod) for key, pod in instance.pods.items()})

    def _pod(self, pod: Pod) -> Pod:
        if pod.state is PodState.NOMINATED:
            return pod
        home = pod.group if pod.group is not None and pod.group.api_group else None
        if home not in self.shares:
            self.shares[home] = self.random.choice([1, 1, 1, 2] if home is not None else [2, 3])
        part = self.random.randrange(self.shares[home])
        name = f"{home.name if home is not None else 'job'}-{part}"
        if name not in self.known:
            self.known[name] = tuple(self._asked(name))
        units = self.known[name]
        return replace(pod, neighbours=replace(pod.neighbours, units=units, jobs=tuple(self._jobs(name, units))))

    def _jobs(self, name: str, units: Sequence[DomainUnit]) -> Iterator[ChildJob]:
        """Exclusive units may be Jobs of JobSets, and other pods of further ones."""
        if name not in self.of_jobs:
            self.of_jobs[name] = Random(f"of a Job {name}").random() < 0.8
        exclusive = {unit.topology_key for unit in units if unit.exclusive}
        for key in sorted(set(KEYS)) if self.of_jobs[name] else ():
            self.tags.add("exclusiveJob" if key in exclusive else "otherJob")
            yield ChildJob(key, key in exclusive)

    def _asked(self, name: str) -> Iterator[DomainUnit]:
        if self.random.random() < 0.3:
            return
        for key in sorted({self.random.choice(KEYS) for _ in range(self.random.choice([1, 1, 1, 2]))}):
            exclusive = self.random.random() < 0.5
            self.tags.add("exclusive" if exclusive else "oneDomain")
            yield DomainUnit(name, key, exclusive)
