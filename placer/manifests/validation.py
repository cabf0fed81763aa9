"""Single objects to typed ones: every fault of every object at once."""

from __future__ import annotations

import gc
import hashlib
import os
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from typing import Any

import msgspec
from pydantic import ValidationError

from placer.errors import Fault
from placer.kube import BY_ATTRIBUTE, apps, core, coscheduling, diktyo, numa, policy, volcano
from placer.kube.base import CONTROL
from placer.kube.fields import nearest_kind
from placer.kube.pod import PodManifest
from placer.manifests.limits import KINDS_MOST, Faults, memory_allowed, shown
from placer.manifests.raw_objects import Identity, RawObject
from placer.manifests.unknown import Strays, UnknownField
from placer.manifests.useless import UselessFile
from placer.manifests.wording import MOST, wrongs

__all__ = ["Objects", "validate"]

#: Names of skipped objects that are kept.
_SKIPPED_NAMES = 100_000
_MEMORY_CHECK = 4 * 2**20


@dataclass(frozen=True, kw_only=True, eq=False)
class Objects:
    """All objects of an instance, typed, in the order of the input.

    Parameters
    ----------
    skipped
        ``apiVersion Kind`` of what is not read, and how many there were.
    skipped_names
        Identities of skipped objects, at most 100,000 of them.
    sha256
        Hash of the text of all objects, skipped ones included, in order; edits are part of it.
    snapshot
        Name of the scheduler that the cluster's snapshot among the input was taken for; None where there is none.
    unknown_fields
        Fields that no object of their kind has, each place once, and kinds that are like one that is read.
    useless_files
        Files that give the instance nothing.
    """

    nodes: tuple[core.NodeManifest, ...] = ()
    pods: tuple[PodManifest, ...] = ()
    config_maps: tuple[core.ConfigMapManifest, ...] = ()
    namespaces: tuple[core.NamespaceManifest, ...] = ()
    persistent_volume_claims: tuple[core.PersistentVolumeClaimManifest, ...] = ()
    persistent_volumes: tuple[core.PersistentVolumeManifest, ...] = ()
    priority_classes: tuple[core.PriorityClassManifest, ...] = ()
    pod_groups: tuple[volcano.PodGroupManifest, ...] = ()
    queues: tuple[volcano.QueueManifest, ...] = ()
    volcano_jobs: tuple[volcano.VolcanoJobManifest, ...] = ()
    hyper_nodes: tuple[volcano.HyperNodeManifest, ...] = ()
    coscheduling_pod_groups: tuple[coscheduling.CoschedulingPodGroupManifest, ...] = ()
    app_groups: tuple[diktyo.AppGroupManifest, ...] = ()
    network_topologies: tuple[diktyo.NetworkTopologyManifest, ...] = ()
    node_resource_topologies: tuple[numa.NodeResourceTopologyManifest, ...] = ()
    deployments: tuple[apps.DeploymentManifest, ...] = ()
    stateful_sets: tuple[apps.StatefulSetManifest, ...] = ()
    replica_sets: tuple[apps.ReplicaSetManifest, ...] = ()
    jobs: tuple[apps.JobManifest, ...] = ()
    policies: tuple[policy.PolicyManifest, ...] = ()
    skipped: Mapping[str, int] = field(default_factory=dict)
    skipped_names: frozenset[Identity] = frozenset()
    sha256: str = ""
    snapshot: str | None = None
    unknown_fields: tuple[UnknownField, ...] = ()
    useless_files: tuple[UselessFile, ...] = ()
    _origins: Mapping[str, _Origins] = field(default_factory=dict, repr=False)

    def source(self, item: object) -> str:
        """Say where an object of this container came from: ``FILE (document N)``."""
        origins, index = self._place(item)
        return f"{origins.files[origins.file[index]]} (document {origins.document[index]})"

    def is_added(self, item: object) -> bool:
        """Whether an object of this container came by ``--with``."""
        origins, index = self._place(item)
        return index in origins.added

    def document(self, item: object) -> dict[str, Any]:
        """Give all fields of a workload, also those that no rule reads, as its pods inherit them.

        Raises
        ------
        KeyError
            The object's kind makes no pods, so its text was not kept.
        """
        origins, index = self._place(item)
        return msgspec.json.decode(origins.texts[index], type=dict[str, Any])

    def _place(self, item: object) -> tuple[_Origins, int]:
        attribute, index = self._places[id(item)]
        return self._origins[attribute], index

    @cached_property
    def _places(self) -> dict[int, tuple[str, int]]:
        return {
            id(item): (attribute, index)
            for attribute in self._origins
            for index, item in enumerate(getattr(self, attribute))
        }

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what is known by address."""
        return {key: value for key, value in self.__dict__.items() if key != "_places"}


@dataclass(frozen=True, slots=True)
class _Origins:
    """Where the objects of one kind came from, by their index."""

    files: tuple[str, ...]
    file: array[int]
    document: array[int]
    added: frozenset[int]
    texts: Mapping[int, bytes]

    @classmethod
    def of(cls, attribute: str, raws: Sequence[RawObject]) -> _Origins:
        """Keep the origins of objects, and their text where pods are made from it."""
        files = {name: index for index, name in enumerate(dict.fromkeys(raw.file for raw in raws))}
        texts = enumerate(raws) if BY_ATTRIBUTE[attribute].keeps_text else ()
        return cls(
            files=tuple(files),
            file=array("L", [files[raw.file] for raw in raws]),
            document=array("L", [raw.document for raw in raws]),
            added=frozenset(index for index, raw in enumerate(raws) if raw.added),
            texts={index: bytes(raw.text) for index, raw in texts},
        )


def validate(raws: Iterable[RawObject], faults: Faults | None = None) -> Objects:
    """Read every object into its type.

    Parameters
    ----------
    raws
        Objects as text. Kinds that are not read are counted and skipped.
    faults
        Takes the faults beside those that are found here; all are raised together.

    Returns
    -------
    Objects
        Typed, in the order of the input.

    Raises
    ------
    BadInstance
        With every fault of every object: a field that is missing or of a wrong type or value, an object that is there
        twice, a second Policy, a version that is not read.
    """
    work = _Validation(Faults() if faults is None else faults)
    with _no_collection():
        for raw in raws:
            work.take(raw)
    return work.finish()


_Seen = dict[tuple[str, str], RawObject]
_Held = tuple[list[Any], list[RawObject]]


class _Kind:
    """What one pass knows of an apiVersion and kind; versions and old groups of one kind share their lists."""

    def __init__(self, raw: RawObject, seen: _Seen, held: _Held) -> None:
        self.info = raw.info
        self.is_read = self.info is not None and raw.api_version.rpartition("/")[2] in self.info.versions
        self.is_namespaced = self.info is not None and self.info.namespaced
        self.seen = seen
        self.items, self.raws = held
        self.first = raw
        self.count = 0
        self.strays = Strays(self.info) if self.is_read and self.info is not None else None


class _Validation:
    """The state of one pass over all objects."""

    def __init__(self, faults: Faults) -> None:
        self._faults = faults
        self._kinds: dict[tuple[str, str], _Kind] = {}
        self._seen: dict[tuple[str, str], _Seen] = {}
        self._held: dict[str, _Held] = {}
        self._memory = _Memory()
        self._hash = hashlib.sha256()
        self._snapshot: RawObject | None = None

    def take(self, raw: RawObject) -> None:
        """Validate one object."""
        text = bytes(raw.text)
        self._hash.update(text)
        if self._faults.enough:
            return
        if raw.snapshot and not raw.added:
            self._check_snapshot(raw)
        if self._memory.is_exceeded(len(text)):
            self._fault(raw, "", "an input that needs far more memory than its text", "fewer values in all")
            self._faults.enough = True
            return
        kind = self._kinds.get((raw.api_version, raw.kind)) or self._new_kind(raw)
        kind.count += 1
        if raw.name:
            self._check_once(raw, kind)
        if kind.is_read:
            self._type(raw, kind, text)
        elif kind.info is not None:
            versions = " or ".join(f"{raw.group}/{version}".lstrip("/") for version in kind.info.versions)
            self._fault(raw, "apiVersion", repr(shown(raw.api_version)), versions)
        else:
            self._check_words(raw)

    def _new_kind(self, raw: RawObject) -> _Kind:
        if len(self._kinds) >= KINDS_MOST:
            self._fault(raw, "kind", f"more than {KINDS_MOST} kinds", f"at most {KINDS_MOST}")
            self._faults.enough = True
        seen = self._seen.setdefault((raw.group, raw.kind), {})
        held = self._held.setdefault(raw.info.attribute if raw.info else "", ([], []))
        kind = self._kinds[raw.api_version, raw.kind] = _Kind(raw, seen, held)
        return kind

    def _check_once(self, raw: RawObject, kind: _Kind) -> None:
        namespace = raw.namespace
        if kind.info is not None:
            namespace = (namespace or "default") if kind.is_namespaced else ""
        first = kind.seen.setdefault((namespace, raw.name), raw)
        if first is not raw:
            where = f"{shown(first.file, 400)} (document {first.document})"
            self._fault(raw, "", f"the object of {where} again", "each object once")
        elif len(kind.seen) == 2 and kind.info is not None and kind.info.attribute == "policies":
            self._fault(raw, "", "a second Policy", "at most one")

    def _check_snapshot(self, raw: RawObject) -> None:
        first = self._snapshot = self._snapshot or raw
        if first.snapshot != raw.snapshot:
            found = f"an object of a snapshot for the scheduler {shown(raw.snapshot)}"
            self._fault(raw, "", found, f"objects of one snapshot, such as that for {shown(first.snapshot)}")

    def _check_words(self, raw: RawObject) -> None:
        """Keep control characters out of what is said of an object that is not read; they would reach a terminal."""
        words = {"kind": raw.kind, "apiVersion": raw.api_version}
        words |= {"metadata.name": raw.name, "metadata.namespace": raw.namespace}
        for field_name, word in words.items():
            if CONTROL.search(word):
                self._fault(raw, field_name, ascii(word[:80]), "a name without control characters")

    def _type(self, raw: RawObject, kind: _Kind, text: bytes) -> None:
        info = kind.info
        assert info is not None
        try:
            item = info.read(text)
        except ValidationError as error:
            self._wrong(raw, error)
            return
        if item.kind != raw.kind or item.api_version != raw.api_version:
            self._fault(raw, "kind", "apiVersion or kind twice", "each key once")
        elif not self._faults:
            kind.items.append(item)
            kind.raws.append(raw)
            if kind.strays is not None:
                kind.strays.look(raw, text)

    def _wrong(self, raw: RawObject, error: ValidationError) -> None:
        if not self._faults.tells:
            self._faults.count(error.error_count())
            return
        for where, found, expected in wrongs(error):
            self._fault(raw, where, found, expected)
        if error.error_count() > MOST:  # told as one
            self._faults.count(error.error_count() - 1)

    def _fault(self, raw: RawObject, where: str, found: str, expected: str) -> None:
        self._faults.add(Fault(shown(raw.file, 400), raw.document, raw.label, where, found, expected))

    def finish(self) -> Objects:
        """Give all objects, or raise all faults."""
        self._faults.raise_any()
        skipped = {words: kind for words, kind in sorted(self._kinds.items()) if kind.info is None}
        names = (raw.identity for kind in skipped.values() for raw in kind.seen.values())
        held = {attribute: pair for attribute, pair in self._held.items() if attribute}
        return Objects(
            skipped={" ".join(words): kind.count for words, kind in skipped.items()},
            skipped_names=frozenset(islice(names, _SKIPPED_NAMES)),
            sha256=self._hash.hexdigest(),
            unknown_fields=tuple(self._unknown()),
            snapshot=self._snapshot.snapshot if self._snapshot is not None else None,
            _origins={attribute: _Origins.of(attribute, raws) for attribute, (_, raws) in held.items()},
            **{attribute: tuple(items) for attribute, (items, _) in held.items()},
        )

    def _unknown(self) -> Iterator[UnknownField]:
        for (api_version, name), kind in sorted(self._kinds.items()):
            if kind.strays is not None:
                yield from kind.strays.all(f"{api_version} {name}")
            elif kind.info is None and (like := nearest_kind(kind.first.group, name)) is not None:
                meant = f"{like.group}/{like.versions[-1]} {like.kind}".lstrip("/")
                yield UnknownField(kind.first.label, f"{api_version} {name}", "kind", meant, kind.count)


class _Memory:
    """Watches how the process grows, so that small text that makes many values cannot take all memory."""

    def __init__(self) -> None:
        self._start = _resident()
        self._length = 0
        self._next = _MEMORY_CHECK

    def is_exceeded(self, length: int) -> bool:
        """Whether the objects so far take more than their text may; looked at once in 4 MiB of text."""
        self._length += length
        if self._length < self._next:
            return False
        self._next = self._length + _MEMORY_CHECK
        return _resident() - self._start > memory_allowed(self._length)


def _resident() -> int:
    """Bytes of memory that this process has now; 0 where the system does not say."""
    try:
        with open("/proc/self/statm", "rb") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError):
        return 0


@contextmanager
def _no_collection() -> Iterator[None]:
    """Keep the garbage collector from walking over objects that are all kept anyway."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
