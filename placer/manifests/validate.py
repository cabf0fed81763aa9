"""Single objects to typed ones: every fault of every object at once."""

from __future__ import annotations

import gc
import hashlib
import os
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import Any

import msgspec
from pydantic import ValidationError

from placer.errors import Fault
from placer.kube import KindInfo, apps, core, coscheduling, diktyo, numa, policy, volcano
from placer.kube.pod import Pod
from placer.manifests.limits import Faults, memory_allowed
from placer.manifests.objects import Identity, RawObject
from placer.manifests.wording import wrongs

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
    """

    nodes: tuple[core.Node, ...] = ()
    pods: tuple[Pod, ...] = ()
    config_maps: tuple[core.ConfigMap, ...] = ()
    namespaces: tuple[core.Namespace, ...] = ()
    persistent_volume_claims: tuple[core.PersistentVolumeClaim, ...] = ()
    persistent_volumes: tuple[core.PersistentVolume, ...] = ()
    priority_classes: tuple[core.PriorityClass, ...] = ()
    pod_groups: tuple[volcano.PodGroup, ...] = ()
    queues: tuple[volcano.Queue, ...] = ()
    volcano_jobs: tuple[volcano.Job, ...] = ()
    hyper_nodes: tuple[volcano.HyperNode, ...] = ()
    coscheduling_pod_groups: tuple[coscheduling.PodGroup, ...] = ()
    app_groups: tuple[diktyo.AppGroup, ...] = ()
    network_topologies: tuple[diktyo.NetworkTopology, ...] = ()
    node_resource_topologies: tuple[numa.NodeResourceTopology, ...] = ()
    deployments: tuple[apps.Deployment, ...] = ()
    stateful_sets: tuple[apps.StatefulSet, ...] = ()
    replica_sets: tuple[apps.ReplicaSet, ...] = ()
    jobs: tuple[apps.Job, ...] = ()
    policies: tuple[policy.Policy, ...] = ()
    skipped: Mapping[str, int] = field(default_factory=dict)
    skipped_names: frozenset[Identity] = frozenset()
    sha256: str = ""
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


@dataclass(slots=True)
class _Origins:
    """Where the objects of one kind came from, by their index."""

    files: list[str]
    file: array[int] = field(default_factory=lambda: array("L"))
    document: array[int] = field(default_factory=lambda: array("L"))
    added: set[int] = field(default_factory=set)
    texts: dict[int, bytes] = field(default_factory=dict)

    def add(self, raw: RawObject, *, keeps_text: bool) -> None:
        """Take the origin of the next object."""
        if not self.files or self.files[-1] != raw.file:
            self.files.append(raw.file)
        index = len(self.file)
        self.file.append(len(self.files) - 1)
        self.document.append(raw.document)
        if raw.added:
            self.added.add(index)
        if keeps_text:
            self.texts[index] = bytes(raw.text)


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


class _Validation:
    """The state of one pass over all objects."""

    def __init__(self, faults: Faults) -> None:
        self._faults = faults
        self._seen: dict[Identity, tuple[str, int]] = {}
        self._items: dict[str, list[Any]] = {}
        self._origins: dict[str, _Origins] = {}
        self._skipped: Counter[str] = Counter()
        self._skipped_names: set[Identity] = set()
        self._hash = hashlib.sha256()
        self._memory = _Memory()

    def take(self, raw: RawObject) -> None:
        """Validate one object."""
        text = bytes(raw.text)
        self._hash.update(text)
        if self._faults.enough:
            return
        if self._memory.is_exceeded(len(text)):
            self._fault(raw, "", "an input that needs far more memory than its text", "fewer values in all")
            self._faults.count(10**9)  # enough: nothing more is read
            return
        identity = raw.identity
        info = raw.info
        self._check_once(raw, identity)
        if info is None:
            self._skip(raw, identity)
        elif raw.api_version.rpartition("/")[2] not in info.versions:
            versions = " or ".join(f"{raw.group}/{version}".lstrip("/") for version in info.versions)
            self._fault(raw, "apiVersion", repr(raw.api_version), versions)
        else:
            self._type(raw, info, text)

    def _type(self, raw: RawObject, info: KindInfo, text: bytes) -> None:
        try:
            item = info.adapter.validate_json(text, by_alias=True, by_name=False)
        except ValidationError as error:
            if not self._faults.tells:
                self._faults.count(error.error_count())
                return
            for where, found, expected in wrongs(error):
                self._fault(raw, where, found, expected)
            return
        if (item.kind, item.api_version) != (raw.kind, raw.api_version):
            self._fault(raw, "kind", "apiVersion or kind twice", "each key once")
        if not len(self._faults):
            self._items.setdefault(info.attribute, []).append(item)
            self._origins.setdefault(info.attribute, _Origins([])).add(raw, keeps_text=info.keeps_text)

    def _check_once(self, raw: RawObject, identity: Identity) -> None:
        if not raw.name:
            return
        first = self._seen.setdefault(identity, (raw.file, raw.document))
        if first != (raw.file, raw.document):
            self._fault(raw, "", f"the object of {first[0]} (document {first[1]}) again", "each object once")
        elif raw.info is not None and raw.info.attribute == "policies" and len(self._policies()) > 1:
            self._fault(raw, "", "a second Policy", "at most one")

    def _policies(self) -> list[Identity]:
        return [identity for identity in self._seen if identity[:2] == ("placer.dev", "Policy")]

    def _skip(self, raw: RawObject, identity: Identity) -> None:
        self._skipped[f"{raw.api_version} {raw.kind}"] += 1
        if len(self._skipped_names) < _SKIPPED_NAMES:
            self._skipped_names.add(identity)

    def _fault(self, raw: RawObject, where: str, found: str, expected: str) -> None:
        self._faults.add(Fault(raw.file, raw.document, raw.label, where, found, expected))

    def finish(self) -> Objects:
        """Give all objects, or raise all faults."""
        self._faults.raise_any()
        return Objects(
            skipped=MappingProxyType(dict(sorted(self._skipped.items()))),
            skipped_names=frozenset(self._skipped_names),
            sha256=self._hash.hexdigest(),
            _origins=self._origins,
            **{attribute: tuple(items) for attribute, items in self._items.items()},
        )


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
