"""Single objects to typed ones: every fault of every object at once."""

from __future__ import annotations

import gc
import hashlib
import os
import threading
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, Any

import msgspec

from placer.base.errors import Fault
from placer.base.quantity import LIMIT_UNITS, parse
from placer.base.text import shown
from placer.kube.base import CONTROL, FREE_TEXT
from placer.kube.kinds import BY_ATTRIBUTE, Fields, KindInfo, Steps, known_fields, nearest, nearest_kind, read_fields
from placer.kube.manifests import syntax
from placer.kube.manifests.faults import MOST, Faults, path_text, wrongs
from placer.kube.manifests.raw_objects import UNREADABLE, Identity, ObjectShape, Place, RawObject, split
from placer.kube.manifests.syntax import Text
from placer.kube.reader import Misfit
from placer.kube.unread_kinds import KUEUE_KINDS, WORKLOADS, UnreadWorkload, extended_resource, part, read_workload

if TYPE_CHECKING:
    from placer.kube import apps, core, policy, scheduler_plugins, scheduling, volcano, workload_sets
    from placer.kube.pod import PodManifest

#: Objects of these stand for all others: without them nothing is as it was meant.
NEVER_SET_ASIDE = frozenset({"policies"})
#: Fields of a pod that state its room on a node and its owner.
_HELD_SPEC = frozenset(
    ("nodeName", "containers", "initContainers", "resources", "overhead", "hostNetwork", "schedulerName", "priority")
)
_AMOUNTS = frozenset(("requests", "limits", "overhead", "allocatedResources"))
#: What has times in a status: a server takes the year 0 from a kubelet, and no datetime does.
_TIMED_STATUS = ("conditions", "startTime")
_HELD_METADATA = frozenset(("name", "namespace", "uid", "resourceVersion", "creationTimestamp", "deletionTimestamp"))
_SKIPPED_NAMES = 100_000
_MEMORY_CHECK = 4 * 2**20
KINDS_MOST = 10_000


@dataclass(frozen=True, slots=True)
class UnknownField:
    """A field that no object of its kind has, or a kind that is like one that is read.

    ``object``: the first that has it. ``path``: empty: there are more than are shown. ``elsewhere``: versions of the
    kind that have the field.
    """

    object: str
    kind: str
    path: str
    nearest: str
    count: int
    elsewhere: tuple[str, ...] = ()
    is_read: bool = False


@dataclass(frozen=True, slots=True)
class UnreadObject:
    """An object that is skipped because it cannot be read, so that its dependants wait.

    ``attribute``: of the :class:`Objects` that would hold it. ``holds_room``: a pod on a node whose room could be read.
    """

    label: str
    attribute: str
    namespace: str
    name: str
    wrong: str
    text: bytes
    holds_room: bool = False

    def at(self, *steps: str) -> Any:
        """The value at a place, of any type; None where there is none."""
        value: Any = msgspec.json.decode(self.text)
        for step in steps:
            value = value.get(step) if isinstance(value, dict) else None
        return value


@dataclass(frozen=True, kw_only=True, eq=False)
class Objects:
    """All objects of an instance, typed, in the order of the input.

    ``skipped``: ``apiVersion Kind`` of kinds that are not read, with counts; ``skipped_names``: at most 100,000.
    ``device_resources``: those that a DeviceClass serves. ``kueue``: by kind and name. ``sha256``: edits
    included. ``unread``: objects that are skipped.
    """

    nodes: tuple[core.NodeManifest, ...] = ()
    pods: tuple[PodManifest, ...] = ()
    config_maps: tuple[core.ConfigMapManifest, ...] = ()
    namespaces: tuple[core.NamespaceManifest, ...] = ()
    persistent_volume_claims: tuple[core.PersistentVolumeClaimManifest, ...] = ()
    persistent_volumes: tuple[core.PersistentVolumeManifest, ...] = ()
    priority_classes: tuple[core.PriorityClassManifest, ...] = ()
    upstream_pod_groups: tuple[scheduling.UpstreamPodGroupManifest, ...] = ()
    workloads: tuple[scheduling.WorkloadManifest, ...] = ()
    pod_groups: tuple[volcano.PodGroupManifest, ...] = ()
    queues: tuple[volcano.QueueManifest, ...] = ()
    volcano_jobs: tuple[volcano.VolcanoJobManifest, ...] = ()
    hyper_nodes: tuple[volcano.HyperNodeManifest, ...] = ()
    coscheduling_pod_groups: tuple[scheduler_plugins.CoschedulingPodGroupManifest, ...] = ()
    kai_pod_groups: tuple[scheduling.KaiPodGroupManifest, ...] = ()
    app_groups: tuple[scheduler_plugins.AppGroupManifest, ...] = ()
    network_topologies: tuple[scheduler_plugins.NetworkTopologyManifest, ...] = ()
    node_resource_topologies: tuple[scheduler_plugins.NodeResourceTopologyManifest, ...] = ()
    deployments: tuple[apps.DeploymentManifest, ...] = ()
    stateful_sets: tuple[apps.StatefulSetManifest, ...] = ()
    replica_sets: tuple[apps.ReplicaSetManifest, ...] = ()
    jobs: tuple[apps.JobManifest, ...] = ()
    job_sets: tuple[workload_sets.JobSetManifest, ...] = ()
    leader_worker_sets: tuple[workload_sets.LeaderWorkerSetManifest, ...] = ()
    pod_disruption_budgets: tuple[core.PodDisruptionBudgetManifest, ...] = ()
    policies: tuple[policy.PolicyManifest, ...] = ()
    skipped: Mapping[str, int] = field(default_factory=dict)
    skipped_names: frozenset[Identity] = frozenset()
    device_resources: Mapping[str, str] = field(default_factory=dict)
    kueue: Mapping[tuple[str, str], Mapping[str, Any]] = field(default_factory=dict)
    sha256: str = ""
    snapshot: str | None = None
    gates: bool = False
    unknown_fields: tuple[UnknownField, ...] = ()
    useless_files: tuple[str, ...] = ()
    unread: tuple[UnreadObject, ...] = ()
    unread_workloads: tuple[UnreadWorkload, ...] = ()
    _origins: Mapping[str, _Origins] = field(default_factory=dict, repr=False)

    def source(self, item: object) -> str:
        """Source of an object of this container: ``FILE (document N)``."""
        origins, index = self._place(item)
        return f"{origins.files[origins.file[index]]} (document {origins.document[index]})"

    def is_added(self, item: object) -> bool:
        """Whether an object of this container came by ``--with``."""
        origins, index = self._place(item)
        return index in origins.added

    def document(self, item: object) -> dict[str, Any]:
        """All fields of a workload; KeyError where its kind makes no pods."""
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
        """Leaves out maps by address."""
        return {key: value for key, value in self.__dict__.items() if key != "_places"}


@dataclass(frozen=True, slots=True)
class _Origins:
    files: tuple[str, ...]
    file: array[int]
    document: array[int]
    added: frozenset[int]
    texts: Mapping[int, bytes]

    @classmethod
    def of(cls, attribute: str, raws: Sequence[RawObject]) -> _Origins:
        files = {name: index for index, name in enumerate(dict.fromkeys(raw.file for raw in raws))}
        texts = enumerate(raws) if BY_ATTRIBUTE[attribute].keeps_text else ()
        return cls(
            files=tuple(files),
            file=array("L", [files[raw.file] for raw in raws]),
            document=array("L", [raw.document for raw in raws]),
            added=frozenset(index for index, raw in enumerate(raws) if raw.added),
            texts={index: bytes(raw.text) for index, raw in texts},
        )


def validate(
    raws: Iterable[RawObject],
    faults: Faults | None = None,
    *,
    lenient: bool = False,
    listed: bool = False,
    known: dict[int, Any] | None = None,
) -> Objects:
    """Read every object into its type, in the order of the input; :class:`BadInstance` has every fault of every object.

    ``lenient``: skip objects with a wrong field, but no Policy: no tenant may keep all others from being placed.
    ``listed``: read them all, however much memory they take. ``known``: address of a raw object to the object as read.
    """
    work = _Validation(Faults() if faults is None else faults, lenient, listed, {} if known is None else known)
    with no_collection():
        for raw in raws:
            work.take(raw)
    return work.finish()


_Seen = dict[tuple[str, str], RawObject]
_Held = tuple[list[Any], list[RawObject]]


class _Kind:
    def __init__(self, raw: RawObject, seen: _Seen, held: _Held) -> None:
        self.info = raw.info
        self.seen = seen
        self.items, self.raws = held
        self.first = raw
        self.count = 0
        is_read = self.info is not None and raw.api_version.rpartition("/")[2] in self.info.versions
        self.strays = _Strays(self.info, raw.api_version) if is_read and self.info is not None else None
        self.is_skipped = self.info is None or (self.info.skips_versions and not is_read)

    def of_version(self, api_version: str) -> Iterator[RawObject]:
        return (raw for raw in self.seen.values() if raw.api_version == api_version)


class _Validation:
    def __init__(self, faults: Faults, lenient: bool, listed: bool, known: dict[int, Any]) -> None:
        self._faults, self._lenient, self._listed, self._known = faults, lenient, listed, known
        self._unread: list[UnreadObject] = []
        self._workloads: list[UnreadWorkload] = []
        self._kinds: dict[tuple[str, str], _Kind] = {}
        self._seen: dict[tuple[str, str], _Seen] = {}
        self._held: dict[str, _Held] = {}
        self._memory = _Memory()
        self._hash = hashlib.sha256()
        self._snapshot: RawObject | None = None
        self._resources: dict[str, str] = {}
        self._kueue: dict[tuple[str, str], Any] = {}
        self._affinities: dict[bytes, Any] = {}

    def take(self, raw: RawObject) -> None:
        text = bytes(raw.text)
        self._hash.update(text)
        if self._faults.enough:
            return
        if raw.snapshot and not raw.added:
            self._check_snapshot(raw)
        if not self._listed and self._memory.is_exceeded(len(text)):
            self._fault(raw, "", "an input that needs far more memory than its text", "fewer values in all")
            self._faults.enough = True
            return
        kind = self._kinds.get((raw.api_version, raw.kind)) or self._new_kind(raw)
        kind.count += 1
        if raw.name:
            self._check_once(raw, kind)
        if kind.strays is not None and kind.info is not None:
            self._type(raw, kind, kind.info, kind.strays, text)
        else:
            self._leave(raw, kind, text)

    def _leave(self, raw: RawObject, kind: _Kind, text: bytes) -> None:
        if kind.info is not None and not kind.is_skipped:
            versions = " or ".join(f"{raw.group}/{version}".lstrip("/") for version in kind.info.versions)
            self._fault(raw, "apiVersion", repr(shown(raw.api_version)), versions)
        elif raw.group == "placer.dev":
            remedy = "keep it in another folder; verify and report take a Placement after the instance"
            self._fault(raw, "kind", shown(raw.kind), f"objects of a cluster, or a Policy: {remedy}")
        elif raw.snapshot and UNREADABLE.encode() in text and (wrong := _known_wrong(text)):
            self._unread.append(UnreadObject(raw.label, "", raw.namespace, raw.name, wrong, text))
        else:
            self._check_words(raw)
            self._note(raw, text)

    def _note(self, raw: RawObject, text: bytes) -> None:
        if (raw.group, raw.kind) in WORKLOADS:
            self._note_workload(raw, text)
        elif (raw.group, raw.kind) == ("resource.k8s.io", "DeviceClass"):
            self._note_resource(raw, text)
        elif raw.group == "kueue.x-k8s.io" and raw.kind in KUEUE_KINDS and len(self._kueue) < _SKIPPED_NAMES:
            name = f"{raw.namespace or 'default'}/{raw.name}" if raw.kind == "LocalQueue" else raw.name
            self._kueue[raw.kind, name] = part(msgspec.json.decode(text), "spec")

    def _note_workload(self, raw: RawObject, text: bytes) -> None:
        if len(self._workloads) < _SKIPPED_NAMES:
            found = read_workload(raw.group, raw.kind, msgspec.json.decode(text))
            self._workloads += [found] if found is not None else []

    def _note_resource(self, raw: RawObject, text: bytes) -> None:
        resource = extended_resource(msgspec.json.decode(text))
        if resource:
            self._resources[resource] = min(raw.name, self._resources.get(resource, raw.name))

    def _new_kind(self, raw: RawObject) -> _Kind:
        if len(self._kinds) >= KINDS_MOST:
            self._fault(raw, "kind", f"more than {KINDS_MOST} kinds", f"at most {KINDS_MOST}")
            self._faults.enough = True
        seen = self._seen.setdefault((raw.group, raw.kind), {})
        held = self._held.setdefault(raw.info.attribute if raw.info else "", ([], []))
        kind = self._kinds[raw.api_version, raw.kind] = _Kind(raw, seen, held)
        return kind

    def _check_once(self, raw: RawObject, kind: _Kind) -> None:
        first = kind.seen.setdefault(raw.identity[2:], raw)
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
        """Control characters would reach a terminal."""
        words = {"kind": raw.kind, "apiVersion": raw.api_version}
        words |= {"metadata.name": raw.name, "metadata.namespace": raw.namespace}
        for field_name, word in words.items():
            if CONTROL.search(word):
                self._fault(raw, field_name, ascii(word[:80]), "a name without control characters")

    def _type(self, raw: RawObject, kind: _Kind, info: KindInfo, strays: _Strays, text: bytes) -> None:
        unread, known = len(self._unread), self._known.get(id(raw))
        item = known or self._read(raw, info, text)
        if item is None:
            return
        if item.kind != raw.kind or item.api_version != raw.api_version:
            self._fault(raw, "kind", "apiVersion or kind twice", "each key once")
        elif not self._faults:
            kind.items.append(item)
            kind.raws.append(raw)
            if known is None and not strays.look(raw, text) and unread == len(self._unread):
                self._known[id(raw)] = item

    def _wrong(self, raw: RawObject, misfit: Misfit) -> None:
        if not self._faults.tells:
            self._faults.count(misfit.count)
            return
        for where, found, expected in wrongs(misfit):
            self._fault(raw, where, found, expected)
        if misfit.count > MOST:  # told as one
            self._faults.count(misfit.count - 1)

    def _read(self, raw: RawObject, info: KindInfo, text: bytes) -> Any:
        lenient = (self._lenient or raw.snapshot) and info.attribute not in NEVER_SET_ASIDE
        if raw.snapshot and UNREADABLE.encode() in text and (wrong := _known_wrong(text)):
            return self._set_aside(raw, info, wrong)
        try:
            item = info.read(text)
            return self._shared(item) if info.attribute == "pods" and len(text) > FREE_TEXT else item
        except Misfit as misfit:
            if lenient:
                return self._set_aside(raw, info, _in_short(misfit))
            self._wrong(raw, misfit)
            return None

    def _shared(self, pod: PodManifest) -> PodManifest:
        """Pods of one template have one affinity: where it is long, there is one text of it."""
        if pod.spec.affinity is not None:
            digest = hashlib.sha256(msgspec.json.encode(pod.spec.affinity)).digest()
            kept = self._affinities.setdefault(digest, pod.spec.affinity)
            msgspec.structs.force_setattr(pod.spec, "affinity", kept)
        return pod

    def _set_aside(self, raw: RawObject, info: KindInfo, wrong: str) -> PodManifest | None:
        held = held_pod(info, bytes(raw.text)) if info.attribute == "pods" else None
        _, _, namespace, name = raw.identity
        text = bytes(raw.text)
        self._unread.append(UnreadObject(raw.label, info.attribute, namespace, name, wrong, text, held is not None))
        return held

    def _fault(self, raw: RawObject, where: str, found: str, expected: str) -> None:
        self._faults.add(Fault(shown(raw.file, 400), raw.document, raw.label, where, found, expected))

    def finish(self) -> Objects:
        self._faults.raise_any()
        self._held.pop("", None)  # of kinds that are not read
        skipped = {words: kind for words, kind in sorted(self._kinds.items()) if kind.is_skipped}
        names = (raw.identity for words, kind in skipped.items() for raw in kind.of_version(words[0]))
        return Objects(
            skipped={" ".join(words): kind.count for words, kind in skipped.items()},
            skipped_names=frozenset(islice(names, _SKIPPED_NAMES)),
            device_resources=self._resources,
            kueue=self._kueue,
            sha256=self._hash.hexdigest(),
            unknown_fields=tuple(self._unknown()),
            unread=tuple(self._unread),
            unread_workloads=tuple(self._workloads),
            snapshot=self._snapshot.snapshot if self._snapshot is not None else None,
            gates=self._snapshot is not None and self._snapshot.gates,
            _origins={attribute: _Origins.of(attribute, raws) for attribute, (_, raws) in self._held.items()},
            **{attribute: tuple(items) for attribute, (items, _) in self._held.items()},
        )

    def _unknown(self) -> Iterator[UnknownField]:
        for (api_version, name), kind in sorted(self._kinds.items()):
            if kind.strays is not None:
                yield from kind.strays.all()
            elif kind.info is None and (like := nearest_kind(kind.first.group, name)) is not None:
                meant = f"{like.group}/{like.versions[-1]} {like.kind}".lstrip("/")
                yield UnknownField(kind.first.label, f"{api_version} {name}", "kind", meant, kind.count)


def _in_short(misfit: Misfit) -> str:
    (where, found, expected), *others = wrongs(misfit)
    more = f" and {len(others)} more" if others else ""
    return f"{where}: found {found}, expected {expected}{more}".removeprefix(": ")


def _known_wrong(text: bytes) -> str:
    metadata = msgspec.json.decode(text).get("metadata")
    notes = metadata.get("annotations") if isinstance(metadata, dict) else None
    wrong = notes.get(UNREADABLE) if isinstance(notes, dict) else None
    return shown(wrong, 400) if isinstance(wrong, str) else ""


def held_pod(info: KindInfo, text: bytes) -> PodManifest | None:
    """Read of a pod on a node only its room there, if it can be; an amount beyond all bounds is the most there
    can be.
    """
    document = msgspec.json.decode(text)
    spec, metadata = document.get("spec"), document.get("metadata")
    if not isinstance(spec, dict) or not isinstance(metadata, dict) or not spec.get("nodeName"):
        return None
    reduced = document | {
        "spec": {key: spec[key] for key in spec.keys() & _HELD_SPEC},
        "metadata": {key: metadata[key] for key in metadata.keys() & _HELD_METADATA},
    }
    if isinstance(document.get("status"), dict):
        reduced["status"] = {key: value for key, value in document["status"].items() if key not in _TIMED_STATUS}
    for each in (reduced, _bounded(reduced)):
        with suppress(Misfit):
            read: PodManifest = info.read(msgspec.json.encode(each))
            return read
    return None


def _bounded(value: Any) -> Any:
    if isinstance(value, list):
        return [_bounded(each) for each in value]
    if not isinstance(value, dict):
        return value
    return {
        key: {name: _amount(each) for name, each in inner.items()}
        if key in _AMOUNTS and isinstance(inner, dict)
        else _bounded(inner)
        for key, inner in value.items()
    }


def _amount(written: Any) -> Any:
    try:
        parse(str(written))
    except ValueError:
        return str(LIMIT_UNITS)
    return written


def memory_allowed(length: int) -> int:
    """Bytes by which the process may grow while a text of so many bytes becomes objects."""
    return 512 * 2**20 + 4 * length


class _Memory:
    """Watches the process grow, so that small text with many values cannot take all memory."""

    def __init__(self) -> None:
        self._start = _resident()
        self._length = 0
        self._next = _MEMORY_CHECK

    def is_exceeded(self, length: int) -> bool:
        self._length += length
        if self._length < self._next:
            return False
        self._next = self._length + _MEMORY_CHECK
        return _resident() - self._start > memory_allowed(self._length)


def _resident() -> int:
    try:
        with open("/proc/self/statm", "rb") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError):
        return 0


@contextmanager
def no_collection() -> Iterator[None]:
    """Keep the garbage collector from walking over objects that are all kept anyway."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


# ---------------------------------------------------------------------------------------------- unknown fields

#: After so many walked objects a shape is made, and again after twice as many as the last time.
_WALKED = 64
#: Places shown of one kind, since somebody with more gave other objects than of that kind; characters of each.
_TOLD = 200
_LONGEST = 200


class _Strays:
    def __init__(self, info: KindInfo, api_version: str) -> None:
        self._info, self._kind = info, f"{api_version} {info.kind}"
        self._fields = known_fields(info, api_version.rpartition("/")[2])
        self._found: dict[Place, UnknownField] = {}  #: () stands for those beyond the ones that are shown
        self._counts: Counter[Place] = Counter()
        self._walked = 0
        self._enough = _WALKED
        self._shape: ObjectShape | None = None

    def look(self, raw: RawObject, text: bytes) -> bool:
        if raw.fits or self._fields is None:
            return False
        if () in self._found:
            return True
        places = self._shape.places(text) if self._shape is not None else None
        if places is None:
            places = self._walk(raw, text, self._fields)
        self._counts.update(places)
        return bool(places)

    def all(self) -> Iterator[UnknownField]:
        return (replace(each, count=max(1, self._counts[place])) for place, each in self._found.items())

    def _walk(self, raw: RawObject, text: bytes, fields: Fields) -> set[Place]:
        places: set[Place] = set()
        for steps, above in _unknown(msgspec.json.decode(text), (), [((), fields)]):
            place = tuple(None if isinstance(step, int) else step for step in steps)
            if place not in self._found:
                if len(self._found) == _TOLD:
                    self._found[()] = UnknownField(raw.label, self._kind, "", "", 1)
                    break
                self._found[place] = self._stray(raw, steps, place, path_text(nearest(str(steps[-1]), above)))
            places.add(place)
        self._walked += 1
        if self._walked == self._enough:
            self._enough *= 2
            self._shape = ObjectShape(fields, filter(None, self._found))
        return places

    def _stray(self, raw: RawObject, steps: Steps, place: Place, like: str) -> UnknownField:
        known = {each: known_fields(self._info, each) for each in self._info.versions}
        elsewhere = tuple(each for each, fields in known.items() if fields is not None and fields.at(place) is not None)
        is_read = bool(elsewhere) and read_fields(self._info).at(place) is not None
        return UnknownField(raw.label, self._kind, path_text(steps), like, 1, elsewhere, is_read)


def _unknown(
    value: Any, steps: Steps, above: Sequence[tuple[Steps, Fields]]
) -> Iterator[tuple[Steps, Sequence[tuple[Steps, Fields]]]]:
    if isinstance(value, list):
        for index, each in enumerate(value):
            item = (*steps, index)
            yield from _unknown(each, item, [*above[:-1], (item, above[-1][1])])
    elif isinstance(value, dict):
        here = above[-1][1]
        for key, each in value.items():
            below = here.under(key)
            if below is None:
                yield (*steps, shown(key, _LONGEST)), above
            elif below.names or below.values is not None:
                yield from _unknown(each, (*steps, key), [*above, ((*steps, key), below)])


# ----------------------------------------------------------------------------------------------- useless files


def useless_files(texts: Iterable[Text], raws: Iterable[RawObject]) -> list[str]:
    """Names of files, read without fault, that give an instance nothing; an empty list is no empty file."""
    held = {raw.file for raw in raws}
    return [
        text.name for text in texts if text.name not in held and (_is_stray(text) if text.found else _is_empty(text))
    ]


def _is_empty(text: Text) -> bool:
    return not text.is_json and not any(document.pieces for document in syntax.documents(bytes(text.data)))


def _is_stray(text: Text) -> bool:
    faults = Faults()
    split([replace(text, found=False)], faults)
    return bool(faults) or _is_empty(text)


class KeptObjects:
    """Objects of a cluster by their texts; one with something to report is not kept."""

    def __init__(self) -> None:
        self._raws: dict[bytes, RawObject] = {}
        self._typed: dict[int, Any] = {}  # by the address of the raw object, which is kept
        self._used: set[bytes] = set()
        self._guard = threading.Lock()  # what has come is read while a plan is carried out

    def read(self, items: Sequence[bytes], text: Callable[[Sequence[bytes]], Text]) -> Objects:
        """Read the ``items`` of a snapshot, no two alike; ``text`` makes a file of some."""
        with self._guard:
            return self._read(items, text)

    def _read(self, items: Sequence[bytes], text: Callable[[Sequence[bytes]], Text]) -> Objects:
        new = [item for item in items if item not in self._raws]
        split_off = split([text(new)]) if new else []
        if len(split_off) != len(new) or len(set(items)) != len(items):  # a list in a list, or an object twice
            return validate(split([text(items)]), listed=True)
        for item, raw in zip(new, split_off, strict=True):  # a raw object holds the whole text that it was split off
            written = bytes(raw.text)
            kept = item if written == item else written
            self._raws[item] = msgspec.structs.replace(raw, text=msgspec.Raw(kept))
        self._used.update(items)
        return validate([self._raws[item] for item in items], listed=True, known=self._typed)

    def forget_unused(self) -> None:
        """Forget the objects that were not read since this was called last."""
        for item in self._raws.keys() - self._used:
            self._typed.pop(id(self._raws.pop(item)), None)
        self._used.clear()
