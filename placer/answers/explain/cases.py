"""An input that can be changed, and its placement."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar, Unpack

from placer.answers.solving import solve
from placer.arrays.dense_builder import make_dense
from placer.base.deadline import Deadline
from placer.kube.manifests import Edits, Objects, RawObject, Text, edit, from_documents, read_objects, validate
from placer.kube.manifests.faults import path_text
from placer.kube.manifests.validation import no_collection
from placer.problem import GroupKey, Instance, Key
from placer.problem.blueprints import Blueprint
from placer.problem.expansion import expand
from placer.problem.findings import Findings
from placer.problem.gangs import named_group
from placer.problem.instance_builder import make_instance
from placer.problem.outcome import Outcome
from placer.problem.placement import Placement
from placer.problem.pod_states import Ownership, gated_pods
from placer.problem.what_if import only_waiting
from placer.rules import verify
from placer.search.greedy.multi_start import complete, greedy
from placer.search.numa.binding_order import aligned

MORE_ORDERS = 0.5

#: Seconds of a search where the greedy does not admit a group; with less time left none is begun.
SEARCH, LEAST_SEARCH = 1.0, 1.0

#: Things that are left out one by one, to see whether the group fits without them.
DROPPED = 12

Thing = TypeVar("Thing")

#: Field of a workload's spec, its value with which there are no pods, that in words, and one with which there are some.
_NO_PODS = (
    ("suspend", True, "is suspended", "false"),
    ("replicas", 0, "is scaled to none", "1"),
    ("parallelism", 0, "runs none at a time", "1"),
)


def needed(things: Sequence[Thing], fits: Callable[[Sequence[Thing]], bool]) -> list[Thing]:
    """Those of some things that a group cannot fit without; only the first are left out."""
    left = list(things)
    for each in things[:DROPPED]:
        less = [other for other in left if other != each]
        left = less if fits(less) else left
    return left


@dataclass(frozen=True)
class Change:
    """A change of the input, as the what-if options make it; ``rank``: how much it disturbs, by kind and size."""

    message: str
    rank: tuple[int, ...]
    with_: tuple[Mapping[str, Any], ...] = ()
    without: tuple[str, ...] = ()
    set_: tuple[str, ...] = ()

    def then(self, other: Change) -> Change:
        """Both changes; the rank is the worse kind with the sum of both sizes."""
        rank = max(self.rank[0], other.rank[0]), self.rank[-1] + other.rank[-1]
        both = (self.with_ + other.with_, self.without + other.without, self.set_ + other.set_)
        return Change(f"{self.message}, and {other.message}", rank, *both)

    @property
    def edits(self) -> frozenset[str]:
        """Its edits, in any order."""
        return frozenset((*map(json.dumps, self.with_), *self.without, *self.set_))


def pod_words(keys: Iterable[Key]) -> tuple[str, ...]:
    """Pods as ``--without`` takes them."""
    return tuple(f"pod/{key.namespace}/{key.name}" for key in sorted(keys))


@dataclass(frozen=True)
class Gated:
    """A pod that scheduling gates hold back, the PodGroup that it names, and its labels."""

    gates: tuple[str, ...]
    group: GroupKey | None
    labels: Mapping[str, str]


@dataclass(frozen=True)
class Placed:
    """A verified placement of all that waits."""

    instance: Instance
    placement: Placement

    @cached_property
    def admitted(self) -> frozenset[GroupKey]:
        """Groups that had pending pods and are ready."""
        outcome = Outcome(self.instance, self.placement)
        groups = (group for group in self.instance.groups.values() if group.pending)
        return frozenset(group.key for group in groups if outcome.ready(group))


def place(instance: Instance, more: float = MORE_ORDERS) -> Placed | None:
    """Place all that waits by the greedy, with ``more`` seconds for other orders; None: a broken rule, a bug."""
    dense = make_dense(instance)
    solution = greedy(dense, None, Deadline.within(more), Deadline())
    placement = aligned(instance, dense.placement(complete(dense, solution)))
    return None if verify(instance, placement) else Placed(instance, placement)


def place_by_search(instance: Instance, deadline: Deadline) -> Placed | None:
    """Place all that waits by ``auto``; None: no time."""
    seconds = min(SEARCH, deadline.left)
    if seconds < LEAST_SEARCH:
        return None
    return Placed(instance, solve(instance, time_limit=seconds).placement or Placement())


@dataclass(frozen=True, eq=False)
class Case:
    """The objects of an instance, to be changed and read again.

    ``only``: the one group that waits. ``before``: bindings carried out. ``least``: a group, and how many pods it
    needs.
    """

    raws: Sequence[RawObject]
    scheduler_name: str | None = None
    lenient: bool = False
    only: GroupKey | None = None
    before: Placement | None = None
    least: tuple[GroupKey, int] | None = None

    @classmethod
    def read(
        cls,
        paths: Sequence[str | Path | Text],
        *,
        scheduler_name: str | None = None,
        lenient: bool = False,
        **edits: Unpack[Edits],
    ) -> Case:
        """Read files as :func:`placer.problem.reading.read` does, and keep the objects."""
        return cls(read_objects(paths, lenient=lenient, **edits), scheduler_name, lenient)

    @cached_property
    def _objects(self) -> Objects:
        return validate(self.raws, lenient=self.lenient)

    @cached_property
    def scheduler_names(self) -> Mapping[Key, str]:
        """Pod to the scheduler that it, or the workload that would make it, names."""
        made = {key: each.template.spec.scheduler_name or each.scheduler_name for key, each in self._blueprints.items()}
        there = {Key(pod.namespace, pod.metadata.name): pod.spec.scheduler_name for pod in self._objects.pods}
        return {pod: name for pod, name in (made | there).items() if name}

    @cached_property
    def gated(self) -> Mapping[Key, Gated]:
        """Pods that scheduling gates hold back."""
        objects, known = self._objects, self.instance.groups
        named = self.scheduler_name or objects.snapshot
        ownership = Ownership(named, objects.snapshot is not None, objects.gates)
        found = {}
        for pod in gated_pods(objects.pods, ownership):
            gates = tuple(sorted({gate.name for gate in pod.spec.scheduling_gates or ()}))
            group = named_group(pod, pod.namespace, known, Findings())
            found[Key(pod.namespace, pod.metadata.name)] = Gated(gates, group, pod.metadata.labels or {})
        return found

    @cached_property
    def instance(self) -> Instance:
        """The instance of the objects."""
        objects = self._objects
        named = self.scheduler_name or objects.snapshot
        with no_collection():
            of_cluster = objects.snapshot is not None
            found = make_instance(objects, scheduler_name=named, cluster=of_cluster, gates=objects.gates)
        if self.before is not None:
            found = Outcome(found, self.before).carried_out()
        group, count = (found.groups.get(self.least[0]), self.least[1]) if self.least is not None else (None, 0)
        if group is not None:
            found = found.keeping_held(groups={**found.groups, group.key: replace(group, min_member=count)})
        return found if self.only is None else only_waiting(found, {self.only})

    @cached_property
    def placed(self) -> Placed | None:
        """A placement of all that waits; None: a bug."""
        return place(self.instance)

    def changed(self, change: Change) -> Case:
        """The case with a change made; ``BadInstance`` or ``UsageError``: it cannot be."""
        added = from_documents(change.with_, "change", added=True)
        return replace(self, raws=edit(self.raws, with_=added, without=change.without, set_=change.set_))

    def without_pods(self, name: str, namespace: str | None) -> str:
        """Why a workload of this name makes no pods, and an option with which it does; else empty."""
        named = [raw for raw in self.raws if raw.name == name and namespace in (None, raw.namespace or "default")]
        for raw in named:
            full = f"{raw.kind} {raw.identity[2]}/{name}"
            spec = json.loads(bytes(raw.text)).get("spec") or {}
            for path, found, words, value in _NO_PODS:
                if spec.get(path) == found:
                    makes = f"{full} {words} (spec.{path}: {json.dumps(found)}) and makes no pods"
                    return f"{makes}; {self._options_to_make(raw, path, found, value)} explains it as if it did"
            if raw.info is None:
                return f"{full} has no pods in the input, and placer makes none of this kind"
        return ""

    def _options_to_make(self, owner: RawObject, path: str, found: object, value: object) -> str:
        every = (owner, *self._made_likewise(owner, path, found))
        names = (self.words(each.kind, each.identity[2], each.name, each.group) for each in every)
        return " ".join(f"--set {each}:spec.{path}={value}" for each in names)

    def _made_likewise(self, owner: RawObject, path: str, value: object) -> Iterator[RawObject]:
        """Objects that a workload made with the same field, such as the suspended Jobs of a JobSet."""
        for raw in self.raws:
            if raw.kind == "Job" and raw.identity[2] == owner.identity[2]:
                document = json.loads(bytes(raw.text))
                owners = document["metadata"].get("ownerReferences") or ()
                owned = any((each["kind"], each["name"]) == (owner.kind, owner.name) for each in owners)
                if owned and (document.get("spec") or {}).get(path) == value:
                    yield raw

    def objects_beside(self, other: Case) -> list[dict[str, Any]]:
        """Objects that the case it was made from does not have."""
        before = {id(raw) for raw in other.raws}
        return [json.loads(bytes(raw.text)) for raw in self.raws if id(raw) not in before]

    def document(self, kind: str, namespace: str, name: str, group: str = "") -> dict[str, Any] | None:
        """An object as it is written, or None."""
        for raw in self._named.get((kind, name), ()):
            of = raw.info.group if raw.info is not None else raw.group  # an older spelling is the same group
            if raw.identity[2] == namespace and group in ("", of):
                found: dict[str, Any] = json.loads(bytes(raw.text))
                return found
        return None

    def pod_spec(self, key: Key) -> tuple[str, Mapping[str, Any]] | None:
        """Words of ``--set`` for a pod's spec, in its object or its workload's, and the value."""
        document = self.document("Pod", key.namespace, key.name)
        if document is not None:
            return f"{self.words('Pod', *key)}:spec", document.get("spec") or {}
        made = self._blueprints.get(key)
        if made is None:
            return None
        kind, group = made.owner.kind, made.owner.api_version.rpartition("/")[0]
        found: Any = self.document(kind, made.owner.namespace, made.owner.metadata.name, group)
        for step in (*made.path, "spec") if found is not None else ():
            found = found[step]
        words = self.words(kind, made.owner.namespace, made.owner.metadata.name, group)
        return None if found is None else (f"{words}:{path_text((*made.path, 'spec'))}", found)

    @cached_property
    def _blueprints(self) -> Mapping[Key, Blueprint]:
        objects = self._objects
        made = expand(objects, only_added=objects.snapshot is not None).blueprints
        return {Key(each.owner.namespace, name): each for each in made for _, name in each.names()}

    @cached_property
    def _named(self) -> Mapping[tuple[str, str], list[RawObject]]:
        found: dict[tuple[str, str], list[RawObject]] = defaultdict(list)
        for raw in self.raws:
            found[raw.kind, raw.name].append(raw)
        return found

    def words(self, kind: str, namespace: str, name: str, group: str = "") -> str:
        """``KIND/NAMESPACE/NAME`` for what-if options, with the API group where two share the rest."""
        named = [raw for raw in self._named.get((kind, name), ()) if raw.identity[2] == namespace]
        full = f"{kind.lower()}.{group}" if len(named) > 1 and group else kind.lower()
        return "/".join(part for part in (full, namespace, name) if part)
