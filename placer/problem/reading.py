"""From files to an instance, and a placement of any origin from a file."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from placer.base.codes import NO_ERRORS
from placer.base.errors import BadInstance, Fault, StrictFindings
from placer.base.text import shown
from placer.problem import Finding, Instance, Key
from placer.problem.placement import Binding, Placement, Step

if TYPE_CHECKING:
    from placer.kube.manifests import Objects, RawObject, Text

#: Kinds that are pods or make some.
_MAKE_PODS = ("Pod", "Deployment", "StatefulSet", "ReplicaSet", "Job", "JobSet", "LeaderWorkerSet")
#: Unknown keys of a placement that are told.
_MOST_KEYS = 200


def read(
    *paths: str | Path | Text,
    scheduler_name: str | None = None,
    strict: bool = False,
    with_: Sequence[str | Path | Text] = (),
    without: Sequence[str] = (),
    set_: Sequence[str] = (),
    lenient: bool = False,
) -> Instance:
    """Read an instance; all ``paths`` together are one.

    ``scheduler_name``: whose pending pods are ours, ``*``: any; None: any, or those of the snapshot. ``lenient``:
    objects that cannot be read are findings. Of a snapshot only workloads that ``with_`` adds are expanded.

    Raises
    ------
    BadInstance
        Every fault of every file.
    StrictFindings
        There are findings, and ``strict`` was asked for.
    UsageError
        An edit names an object that is not there.
    """
    from placer.kube.manifests import load
    from placer.kube.manifests.validation import no_collection
    from placer.problem.instance_builder import make_instance

    with no_collection():
        objects: Objects = load(paths, with_=with_, without=without, set_=set_, lenient=lenient)
        of_cluster = objects.snapshot is not None
        named = scheduler_name or objects.snapshot
        instance = make_instance(objects, scheduler_name=named, cluster=of_cluster, gates=objects.gates)
    if strict:
        refuse_findings(paths, instance.findings)
    return instance


def read_frame(
    paths: Sequence[str | Path | Text],
    *,
    scheduler_name: str | None = None,
    lenient: bool = False,
    **edits: Sequence[str],
) -> Instance:
    """As :func:`read`, of a cluster without its pods and workloads, which is most of the work."""
    from placer.kube.manifests import read_objects, validate
    from placer.problem.instance_builder import make_instance

    raws = [raw for raw in read_objects(paths, lenient=lenient, **edits) if raw.kind not in _MAKE_PODS]
    objects = validate(raws, lenient=lenient)
    of_cluster, named = objects.snapshot is not None, scheduler_name or objects.snapshot
    return make_instance(objects, scheduler_name=named, cluster=of_cluster, gates=objects.gates)


def read_expansion(
    paths: Sequence[str | Path], *, scheduler_name: str | None = None, strict: bool = False
) -> tuple[list[dict[str, Any]], tuple[Finding, ...]]:
    """Make the PodGroups and Pods that controllers would make of workloads: whole objects, and findings."""
    from placer.kube.manifests import load
    from placer.problem.expansion import documents, expand
    from placer.problem.findings import Findings
    from placer.problem.notices import note_ignored, note_managed_elsewhere
    from placer.problem.unread import note_pods_not_made

    objects = load(paths)
    noted = Findings()
    made = expand(objects)
    noted.update(made.findings)
    note_managed_elsewhere(made, noted)
    note_pods_not_made(objects, noted, cluster=False)
    note_ignored(objects, noted)
    findings = noted.all()
    if strict:
        refuse_findings(paths, findings)
    return _of_scheduler(list(documents(objects)), scheduler_name), findings


def _of_scheduler(documents: list[dict[str, Any]], name: str | None) -> list[dict[str, Any]]:
    from placer.problem import ANY_SCHEDULER
    from placer.problem.gangs import GROUP_ANNOTATIONS

    if name in (None, ANY_SCHEDULER):
        return documents
    groups: dict[tuple[str, str], bool] = {}
    kept = []
    for document in reversed(documents):  # pods stand behind their groups
        metadata = document["metadata"]
        if document["kind"] == "Pod":
            ours = document["spec"].get("schedulerName", "default-scheduler") == name
            notes = metadata.get("annotations") or {}
            for key in {(metadata["namespace"], notes[each]) for each in GROUP_ANNOTATIONS if each in notes}:
                groups[key] = groups.get(key, False) or ours
        else:
            ours = groups.get((metadata["namespace"], metadata["name"]), True)
        if ours:
            kept.append(document)
    return kept[::-1]


def refuse_findings(paths: Sequence[str | Path | Text], findings: Sequence[Finding]) -> None:
    """Raise :class:`StrictFindings`, as ``--strict`` asks, where there are any but those that are no errors."""
    errors = [each for each in findings if each.code not in NO_ERRORS]
    if errors:
        name = ", ".join(map(str, paths))
        raise StrictFindings([Fault(name, None, f.object, f.code, f.message, "no finding (--strict)") for f in errors])


@dataclass(frozen=True, slots=True)
class Unread:
    """Parts of a file with a placement that no judgement of it looks at, and findings of the unknown ones."""

    unknown: tuple[str, ...] = ()
    not_judged: tuple[str, ...] = ()
    findings: tuple[Finding, ...] = ()


def read_placement(path: str | Path) -> Placement:
    """Read a Placement of placer, v1 Bindings, or a List of them from a file.

    Parameters
    ----------
    path
        Of the file; ``-``: standard input.

    Raises
    ------
    BadInstance
        Names every fault.
    """
    return read_whole_placement(path)[0]


def read_whole_placement(path: str | Path | Text, *, strict: bool = False) -> tuple[Placement, Unread]:
    """Read a placement, and which keys of its file are not read; ``strict``: unknown ones are errors."""
    from placer.kube.manifests import read_texts, split

    faults: list[Fault] = []
    parts: list[Placement] = []
    others: list[RawObject] = []
    keys = _Keys()
    for raw in split(read_texts([path])):
        reader = _PlacementReader(raw, faults)
        if (raw.group, raw.kind) == ("placer.dev", "Placement"):
            parts.append(reader.placement())
            keys.of_placement(reader.value)
        elif (raw.group, raw.kind) == ("", "Binding"):
            parts.append(Placement(reader.of_binding()))
            keys.look("Binding", "", reader.value, keys.BINDING)
            keys.look("Binding", "target.", reader.value.get("target"), keys.TARGET)
        else:
            others.append(raw)
    if others:
        bound = faults or any(each.bindings for each in parts)
        hint = "" if bound else "; the Placement comes last: placer verify INSTANCE... PLACEMENT"
        _PlacementReader(others[0], faults).foreign(len(others) - 1, hint)
    if faults:
        raise BadInstance(faults)
    unread = keys.unread()
    if strict:
        refuse_findings([path], unread.findings)
    return _together(parts), unread


def _together(parts: Sequence[Placement]) -> Placement:
    found = {each.name: tuple(chain(*(getattr(part, each.name) for part in parts))) for each in fields(Placement)}
    sets = {name: tuple(sorted(set(found[name]))) for name in ("one_by_one", "lost", "freed")}
    return Placement(**{**found, **sets})


class _Keys:
    #: Keys of a Binding, and of its target.
    BINDING = ("apiVersion", "kind", "metadata", "target")
    TARGET = ("apiVersion", "kind", "name", "namespace", "uid", "resourceVersion", "fieldPath")
    #: Keys of a Placement that are judged, and those that its schema does not name.
    _PARTS = ("lost", "wanted", "freed", "evictions", "moves", "steps")
    _JUDGED = frozenset(("apiVersion", "kind", "bindings", "oneByOne", *_PARTS))
    _BESIDE = ("metadata", *_PARTS)
    #: Lists of a Placement: keys of an entry, and those that are not judged.
    _ENTRIES: ClassVar = {
        "bindings": (("namespace", "pod", "node", "numaZones"), ()),
        "evictions": (("namespace", "pod", "node", "unit", "priority"), ("node", "unit", "priority")),
        "moves": (("namespace", "pod", "from", "to", "unit", "numaZones"), ("from", "unit")),
        "steps": (("go", "bind"), ()),
    }

    def __init__(self) -> None:
        self._unknown: Counter[tuple[str, str]] = Counter()
        self._like: dict[tuple[str, str], str] = {}
        self._not_judged: set[str] = set()

    def of_placement(self, value: Mapping[str, Any]) -> None:
        known = (*_placement_keys(), *self._BESIDE)
        self.look("Placement", "", value, known)
        self._not_judged.update(key for key in value if key in known and key not in self._JUDGED)
        for name, (here, beside) in self._ENTRIES.items():
            for entry in value.get(name) or ():
                self.look("Placement", f"{name}[].", entry, here)
                self._not_judged.update(f"{name}[].{key}" for key in beside if isinstance(entry, dict) and key in entry)

    def look(self, kind: str, path: str, value: object, known: Sequence[str]) -> None:
        from placer.base.text import alike

        for key in value if isinstance(value, Mapping) else ():
            if key not in known and len(self._unknown) < _MOST_KEYS:
                place = kind, path + shown(key)
                self._unknown[place] += 1
                if place not in self._like:
                    like = alike(key, known)
                    self._like[place] = f"; found like it: {path}{like}" if like else ""

    def unread(self) -> Unread:
        findings = []
        for (kind, key), count in sorted(self._unknown.items()):
            others = f", here and in {count - 1:,} more" if count > 1 else ""
            words = f"{key} is no key of a {kind} and is not judged{others}{self._like[kind, key]}"
            findings.append(Finding("UnknownField", kind, words))
        unknown = dict.fromkeys(key for _, key in sorted(self._unknown))
        return Unread(tuple(unknown), tuple(sorted(self._not_judged)), tuple(findings))


def _placement_keys() -> tuple[str, ...]:
    from importlib import resources

    text = (resources.files("placer") / "schemas" / "placement.schema.json").read_text(encoding="utf-8")
    return tuple(json.loads(text)["properties"])


class _PlacementReader:
    """One object of a file that binds or disturbs something; its faults are added to ``faults``."""

    def __init__(self, raw: RawObject, faults: list[Fault]) -> None:
        self._raw, self._faults = raw, faults

    @cached_property
    def value(self) -> dict[str, Any]:
        value: dict[str, Any] = json.loads(bytes(self._raw.text))
        return value

    def placement(self) -> Placement:
        value = self.value
        bindings, one_by_one = tuple(self._bindings()), self._names(value.get("oneByOne"), "oneByOne")
        lost, freed = (self._names(value.get(name), name) for name in ("lost", "freed"))
        wanted = tuple(map(json.dumps, self._list(value.get("wanted"), "wanted", dict, "a list of objects")))
        going = [self._pod(entry, path) for path, entry in self._entries("evictions")]
        moves = tuple(self._moves())
        steps = ((entry, path) for path, entry in self._entries("steps"))
        return Placement(
            bindings,
            one_by_one,
            tuple(pod for pod in going if pod is not None),
            moves,
            tuple(Step(self._keys(*each, "go"), self._keys(*each, "bind")) for each in steps),
            lost,
            wanted,
            freed,
        )

    def of_binding(self) -> tuple[Binding, ...]:
        node = self._text(self.value.get("target"), "target", "name")
        pod = self._text(self.value.get("metadata"), "metadata", "name")
        if node is None or pod is None:
            return ()
        return (Binding(Key(self._raw.namespace or "default", pod), node),)

    def fault(self, field: str, found: str, expected: str) -> None:
        self._faults.append(Fault(self._raw.file, self._raw.document, self._raw.label, field, found, expected))

    def foreign(self, others: int, hint: str) -> None:
        more = f" and {others:,} more objects" if others else ""
        expected = f"Placement (placer.dev/v1alpha1) or Binding (v1){hint}"
        self.fault("kind", f"{self._raw.label or 'no kind'}{more}", expected)

    def _bindings(self) -> Iterator[Binding]:
        entries = self.value.get("bindings")
        if not isinstance(entries, list):
            self.fault("bindings", _type(entries), "a list")
            return
        for index, entry in enumerate(entries):
            path = f"bindings[{index}]"
            pod, node = self._pod(entry, path), self._text(entry, path, "node")
            if pod is not None and node is not None:
                yield Binding(pod, node, self._names(entry.get("numaZones"), f"{path}.numaZones"))

    def _moves(self) -> Iterator[Binding]:
        for path, entry in self._entries("moves"):
            pod, node = self._pod(entry, path), self._text(entry, path, "to")
            zones = self._names(entry.get("numaZones"), f"{path}.numaZones")
            if pod is not None and node is not None:
                yield Binding(pod, node, zones)

    def _entries(self, name: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
        entries = self.value.get(name)
        if entries is not None and not isinstance(entries, list):
            self.fault(name, _type(entries), "a list")
            return
        for index, entry in enumerate(entries or ()):
            if isinstance(entry, dict):
                yield f"{name}[{index}]", entry
            else:
                self.fault(f"{name}[{index}]", _type(entry), "an object")

    def _pod(self, entry: Any, path: str) -> Key | None:
        namespace, pod = self._text(entry, path, "namespace"), self._text(entry, path, "pod")
        return None if namespace is None or pod is None else Key(namespace, pod)

    def _keys(self, entry: Mapping[str, Any], path: str, name: str) -> tuple[Key, ...]:
        found = []
        for text in self._names(entry.get(name), f"{path}.{name}"):
            namespace, _, pod = text.partition("/")
            if namespace and pod and "/" not in pod:
                found.append(Key(namespace, pod))
            else:
                self.fault(f"{path}.{name}", repr(text[:80]), "NAMESPACE/NAME of a pod")
        return tuple(found)

    def _text(self, place: Any, path: str, name: str) -> str | None:
        value = place.get(name) if isinstance(place, Mapping) else None
        if isinstance(value, str) and value:
            return value
        self.fault(f"{path}.{name}", _type(value), "a name")
        return None

    def _names(self, value: Any, path: str) -> tuple[str, ...]:
        names = self._list(value, path, str, "a list of names")
        if all(names):
            return tuple(names)
        self.fault(path, _type(value), "a list of names")
        return ()

    def _list(self, value: Any, path: str, kind: type, expected: str) -> list[Any]:
        if value is None or (isinstance(value, list) and all(isinstance(each, kind) for each in value)):
            return value or []
        self.fault(path, _type(value), expected)
        return []


def _type(value: object) -> str:
    return "nothing" if value is None else repr(value)[:80]
