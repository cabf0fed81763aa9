"""Reduces objects to the fields that placer reads.

Environment variables, commands, images and foreign annotations are skipped by the parser, so they cannot leak. The
shapes are made from the schemas of ``placer.kube``.
"""

from __future__ import annotations

import types
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache
from typing import Any, cast, get_args, get_origin

import msgspec

from placer.base.errors import ClusterError
from placer.kube.base import FREE_TEXT, LEFT_OUT, MOST_TEXT, TEXT_BYTES, Metadata
from placer.kube.kinds import KindInfo
from placer.kube.manifests import UNREADABLE, object_refusal
from placer.kube.marks import kept_annotations, kept_labels
from placer.kube.reader import Misfit, fields_of, is_closed, is_schema, schema_class, without_none
from placer.passes.cluster.reading.views import ListMetadata, MetadataView, ObjectView, Page, read_view
from placer.problem.gangs import GROUP_ANNOTATIONS, GROUP_LABELS
from placer.problem.neighbour_demand import EXCLUSIVE_ANNOTATIONS
from placer.problem.node_resource_topology import UPDATED

__all__ = ["ListReader", "essence", "is_kept", "is_of_kind", "list_reader", "readable", "unreadable", "within_bytes"]

#: Annotations that mean something to placer or to those whose objects it reads: keys, and domains with what is below.
_KEYS = frozenset(
    (
        *("kubernetes.io/config.mirror", "kubernetes.io/ingress-bandwidth", "kubernetes.io/egress-bandwidth"),
        *EXCLUSIVE_ANNOTATIONS,
        *kept_annotations(),
    )
)
_DOMAINS = (
    "placer.dev",
    "volcano.sh",
    "scheduling.k8s.io",
    "scheduling.x-k8s.io",
    "diktyo.x-k8s.io",
    "topology.node.k8s.io",
)
#: Annotations and labels that have a meaning of their own.
_MARKS = _KEYS.union(kept_labels(), GROUP_ANNOTATIONS, GROUP_LABELS)
#: Bytes of labels and annotations that are kept of an object that has more than can be: it may run, and others look at
#: its labels.
_SOME_TEXT = 16_384
#: What a pod asks of nodes, and of where other pods are.
_ASKED = frozenset(("affinity", "nodeSelector", "tolerations", "topologySpreadConstraints", "volumes"))
#: What says of a pod whose it is, in which gang, and how urgent.
_OF_WAITING = frozenset(
    ("schedulerName", "schedulingGates", "schedulingGroup", "workloadRef", "priority", "priorityClassName")
)


@cache
def is_kept(key: str) -> bool:
    """Whether an annotation is kept.

    Examples
    --------
    >>> is_kept("scheduling.volcano.sh/group-name"), is_kept("kubectl.kubernetes.io/last-applied-configuration")
    (True, False)
    """
    domain = key.rpartition("/")[0]
    return key in _KEYS or any(domain == each or domain.endswith(f".{each}") for each in _DOMAINS)


class ListReader:
    """Reads pages of lists of one kind."""

    def __init__(self, info: KindInfo, api_version: str) -> None:
        self._info, self._item = info, _struct(cast(Any, info.model), info.kind)
        metadata = ("metadata", ListMetadata, msgspec.field(default_factory=ListMetadata))
        page = msgspec.defstruct("List", [metadata, ("items", _list_of(self._item), None)])
        self._decode = msgspec.json.Decoder(page).decode
        self._encode = msgspec.json.Encoder().encode
        self._version, self._kind = (msgspec.Raw(msgspec.json.encode(each)) for each in (api_version, info.kind))

    def read(self, text: bytes) -> Page[bytes]:
        """Read a page: JSON text of each object, with its apiVersion and kind.

        Of an unreadable object, or one with far more values than its length allows, the names are kept, and the
        annotation ``placer.dev/unreadable`` with the reason.

        Raises
        ------
        ClusterError
            The text is no list.
        """
        try:
            page = cast(Any, self._decode(text))
        except msgspec.ValidationError as error:
            return self._one_by_one(text, error)
        except msgspec.DecodeError as error:
            raise self._no_list(error) from None
        return Page(page.metadata, [self._text(item) for item in page.items or ()])

    def _one_by_one(self, text: bytes, error: msgspec.ValidationError) -> Page[bytes]:
        try:
            page = msgspec.json.decode(text, type=Page[msgspec.Raw])
        except msgspec.ValidationError:
            raise self._no_list(error) from None
        return Page(page.metadata, [self.object_or_name(bytes(item)) for item in page.items or ()])

    def object_or_name(self, item: bytes) -> bytes:
        """One object as :meth:`read` keeps it."""
        try:
            return self.object(item)
        except msgspec.ValidationError as error:
            what, _, where = str(error).partition(" - at `$.")
            expected, _, found = what.removeprefix("Expected ").partition(", got ")
            return self._encode(self._name_of(item, f"{where.rstrip('`')}: found {found}, expected {expected}"))

    def _no_list(self, error: msgspec.DecodeError) -> ClusterError:
        return ClusterError(f"the list of {self._info.plural} is no list: {error}")

    def object(self, text: bytes) -> bytes:
        """One object as :meth:`read` keeps it; raises where it cannot be read."""
        return self._text(msgspec.json.decode(text, type=self._item))

    def _name_of(self, item: bytes, wrong: str) -> dict[str, Any]:
        document = _dict(msgspec.json.decode(item))
        metadata = _dict(document.get("metadata"))
        notes = _kept_notes(_texts(metadata.get("annotations")))
        names = _some(metadata, "name", "namespace", "uid", "resourceVersion")
        labels = _texts(metadata.get("labels"))
        kept: dict[str, Any] = {"apiVersion": self._version, "kind": self._kind}
        kept["metadata"] = names | {"labels": labels, "annotations": notes | {UNREADABLE: wrong}}
        if self._info.attribute == "pods":
            kept["spec"] = _some(document.get("spec"), "nodeName")
            kept["status"] = _some(document.get("status"), "phase")
        listed = _dict(document.get("spec")).get("workloads") if self._info.attribute == "app_groups" else None
        if isinstance(listed, list):
            kept["spec"] = {"workloads": [_workload(each) for each in listed]}  # its pods wait, and no others
        return kept

    def _text(self, item: Any) -> bytes:
        item.apiVersion, item.kind = self._version, self._kind  # items of typed lists leave them out
        metadata = item.metadata
        if metadata is not msgspec.UNSET:
            notes = metadata.annotations
            kept = _kept_notes(notes) if isinstance(notes, dict) else {}
            times = [each.time for each in getattr(metadata, "managedFields", None) or () if each.time]
            if times:
                kept[UPDATED] = max(times)
                metadata.managedFields = msgspec.UNSET
            metadata.annotations = kept or msgspec.UNSET
        return self._checked(self._encode(item))

    def _checked(self, text: bytes) -> bytes:
        wrong = object_refusal(text)
        kept = self._encode(self._name_of(text, wrong)) if wrong else text
        long = len(kept) > MOST_TEXT and self._info.namespaced
        return self._encode(_shortened(kept, self._info.attribute)) if long else kept


def _kept_notes(notes: Mapping[str, str]) -> dict[str, str]:
    """Annotations that are kept; those that say that something is not read are ours to write alone."""
    return {key: text for key, text in notes.items() if is_kept(key) and key not in (UNREADABLE, LEFT_OUT, TEXT_BYTES)}


def _shortened(text: bytes, attribute: str) -> dict[str, Any]:
    """A long object with labels and annotations up to :data:`_SOME_TEXT`, short ones first.

    A pod that is still long loses its constraints. Its requests are kept, since it may have a node.
    """
    document: dict[str, Any] = msgspec.json.decode(text)
    metadata, said, length = _dict(document.get("metadata")), [], len(text)
    written = {name: _texts(metadata.get(name)) for name in ("labels", "annotations")}
    count = sum(len(key) + len(value) for each in written.values() for key, value in each.items())
    if count > MOST_TEXT:
        said.append(f"metadata: {count:,} bytes of labels and annotations, of {MOST_TEXT:,} at most")
        metadata |= _short_ones(written)
        length = len(msgspec.json.encode(document))
    if attribute == "pods" and length > MOST_TEXT:
        said.append(f"spec: {length:,} bytes of all that is read, of {MOST_TEXT:,} at most")
        document["spec"] = {key: value for key, value in _dict(document.get("spec")).items() if key not in _ASKED}
    if said:
        metadata["annotations"] = _dict(metadata.get("annotations")) | {LEFT_OUT: "; ".join(said)}
    return document


class _DatedMetadata(MetadataView, rename="camel"):
    namespace: str = ""
    creation_timestamp: str = ""


class _PlaceView(msgspec.Struct, rename="camel"):
    node_name: str = ""


class _LongView(ObjectView):
    """Enough of an object to say whose it is, whether it waits, and since when."""

    metadata: _DatedMetadata = msgspec.field(default_factory=_DatedMetadata)
    spec: _PlaceView = msgspec.field(default_factory=_PlaceView)

    @property
    def order(self) -> tuple[bool, str, str]:
        """Pods that wait come last, the newest of them at the end."""
        waits = self.kind == "Pod" and not self.spec.node_name
        return waits, self.metadata.creation_timestamp, self.metadata.name


def within_bytes(items: Sequence[bytes], most: int) -> tuple[bytes, ...]:
    """Objects of which each namespace has at most so many bytes of long ones: of its newest waiting pods beyond these
    only what they are called and their gangs are kept, so they wait.
    """
    found: dict[str, list[tuple[tuple[bool, str, str], int]]] = defaultdict(list)
    for place, item in enumerate(items):
        if len(item) > FREE_TEXT:
            long = read_view(item, _LongView)
            found[long.metadata.namespace].append((long.order, place))
    kept = list(items)
    for namespace, each in found.items():
        total, spent = sum(len(items[place]) for _, place in each), 0
        for (waits, *_), place in sorted(each) if namespace and total > most else ():
            spent += len(items[place])
            if spent > most and waits:
                kept[place] = _beyond(items[place], total, most)
    return tuple(kept)


def _beyond(item: bytes, total: int, most: int) -> bytes:
    document: dict[str, Any] = msgspec.json.decode(item)
    spec = {key: value for key, value in _dict(document.get("spec")).items() if key in _OF_WAITING}
    metadata = _dict(document.get("metadata"))
    metadata |= _short_ones({name: _texts(metadata.get(name)) for name in ("labels", "annotations")})
    said = f"namespaceBudget.bytes: found {total:,} bytes of its namespace, expected at most {most:,}"
    metadata["annotations"] |= {LEFT_OUT: said, TEXT_BYTES: str(len(item))}
    return msgspec.json.encode(document | {"metadata": metadata, "spec": spec})


def _short_ones(written: Mapping[str, Mapping[str, str]]) -> dict[str, dict[str, str]]:
    kept: dict[str, dict[str, str]] = {name: {} for name in written}
    entries = [(name, key, value) for name, each in written.items() for key, value in each.items()]
    entries.sort(key=lambda entry: (entry[1] not in _MARKS, len(entry[1]) + len(entry[2])))
    left = _SOME_TEXT
    for name, key, value in entries:
        left -= len(key) + len(value)
        if left < 0:
            break
        kept[name][key] = value
    return kept


def _workload(entry: object) -> dict[str, Any] | None:
    """The name of a workload that an AppGroup lists; None where it has none."""
    named = _some(_dict(entry).get("workload"), "name")
    return {"workload": named} if named else None


def _dict(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _texts(value: object) -> dict[str, str]:
    return {key: text for key, text in _dict(value).items() if isinstance(text, str)}


def _some(value: object, *keys: str) -> dict[str, str]:
    return {key: text for key, text in _texts(value).items() if key in keys}


def essence(info: KindInfo, item: bytes) -> dict[str, Any]:
    """A kept object without its version and the time of its last write; a pod also without its status."""
    document: dict[str, Any] = msgspec.json.decode(item)
    metadata = {key: value for key, value in document.get("metadata", {}).items() if key != "resourceVersion"}
    notes = {key: text for key, text in metadata.pop("annotations", {}).items() if key != UPDATED}
    metadata |= {"annotations": notes} if notes else {}
    if info.attribute == "pods":
        document.pop("status", None)
    return document | {"metadata": metadata}


def readable(info: KindInfo, items: Iterable[bytes]) -> Iterator[Any]:
    """Read objects of a kind, without those that cannot be read."""
    for item in items:
        with suppress(Misfit):
            yield info.read(item)


def is_of_kind(item: bytes, kind: str) -> bool:
    """Whether a kept object is of a kind; apiVersion and kind come first in it."""
    return item.split(b'"kind":"', 1)[-1].startswith(f'{kind}"'.encode())


def unreadable(api_version: str, kind: str, namespace: str, name: str, wrong: str) -> bytes:
    """An object of which nothing can be read: its name, and the reason."""
    metadata = {"namespace": namespace, "name": name, "annotations": {UNREADABLE: wrong}}
    return msgspec.json.encode({"apiVersion": api_version, "kind": kind, "metadata": metadata})


@cache
def list_reader(info: KindInfo, api_version: str) -> ListReader:
    """The reader of a kind at a version."""
    return ListReader(info, api_version)


# ------------------------------------------------------------------------------------------------- schemas to shapes


@cache
def _struct(model: Any, name: str = "") -> Any:
    fields: list[tuple[str, Any, Any]] = [
        (field.encode_name, _kept(field.type), msgspec.UNSET) for field in fields_of(model)
    ]
    if issubclass(schema_class(model), Metadata):
        fields = [each for each in fields if each[0] not in ("annotations", "managedFields")]
        fields.append(("annotations", dict[str, str] | None, msgspec.UNSET))
        fields.append(("resourceVersion", msgspec.Raw, msgspec.UNSET))
        if hasattr(model, "managed_fields"):
            fields.append(("managedFields", list[_Written] | None, msgspec.UNSET))
    return msgspec.defstruct(name or model.__name__, fields, gc=False, omit_defaults=True)


class _Written(msgspec.Struct):
    time: str | None = None


def _kept(annotation: Any) -> Any:
    inner = without_none(annotation)
    if _is_object(inner):
        # What is an object now may have been a word in an older version.
        return _struct(inner) | (str if str in get_args(annotation) else None) | None
    arguments = get_args(inner)
    if get_origin(inner) is tuple and _is_object(without_none(arguments[0])):
        return _list_of(_struct(without_none(arguments[0])))
    return msgspec.Raw


def _list_of(shape: Any) -> Any:
    return types.GenericAlias(list, (shape,)) | None


def _is_object(annotation: Any) -> bool:
    """Whether a type is a schema of others' kinds; our own are kept whole, since an unknown field is a fault."""
    return is_schema(annotation) and not is_closed(annotation)
