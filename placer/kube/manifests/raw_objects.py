"""Texts to single objects, each with its own slice of JSON text.

Only the header of an object is read. Its shape, a parser that makes a value of no field of the kind, tells quickly
whether it has only known fields. YAML takes a hundred times as long as JSON, so a text that is wrong all over is read
only as far as faults are reported.
"""

from __future__ import annotations

import hashlib
import itertools
import re
import types
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any, cast

import msgspec

from placer.base.errors import Fault
from placer.base.text import shown
from placer.kube.kinds import KINDS, Fields, KindInfo, known_fields
from placer.kube.manifests import syntax
from placer.kube.manifests.faults import Faults
from placer.kube.manifests.syntax import OBJECT_TEXT, OBJECTS, Text
from placer.kube.reader import Misfit

#: Annotation of a List that is a cluster's snapshot: the name of the scheduler it was taken for.
SNAPSHOT = "placer.dev/snapshot"
#: Annotation of such a List: ``gates`` where it was taken for passes with ``--enforce gates``.
ENFORCED = "placer.dev/enforce"
#: In a snapshot alone, of an object that could not be read: its fault, in words.
UNREADABLE = "placer.dev/unreadable"


class _HeaderMetadata(msgspec.Struct, gc=False):
    name: str | None = None
    namespace: str | None = None


_NAMELESS = _HeaderMetadata()


class _Header(msgspec.Struct, gc=False):
    apiVersion: str | None = None  # noqa: N815 - the name in the text
    kind: str | None = None
    metadata: _HeaderMetadata | None = None


class _TopMetadata(_HeaderMetadata):
    annotations: dict[str, str] | None = None


class _Top(_Header):
    metadata: _TopMetadata | None = None
    items: list[msgspec.Raw] | None = None


_read_header = msgspec.json.Decoder(_Header).decode
_decode_top = msgspec.json.Decoder(_Top).decode
_read_fields = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode


def is_list(header: _Header) -> bool:
    """Whether the kind is that of a list."""
    return header.kind is not None and header.kind.endswith("List")


def snapshot_of(header: _Header) -> str:
    """Name of the scheduler that a list is a snapshot for, if it is one."""
    if header.kind != "List" or not isinstance(header.metadata, _TopMetadata):
        return ""
    return (header.metadata.annotations or {}).get(SNAPSHOT, "")


def _is_enforced_by_gates(header: _Header) -> bool:
    notes = header.metadata.annotations if isinstance(header.metadata, _TopMetadata) else None
    return (notes or {}).get(ENFORCED) == "gates"


def _read_top(text: msgspec.Raw) -> _Top | None:
    try:
        return _decode_top(text)
    except (msgspec.DecodeError, RecursionError):
        header = _lenient_header(text)
    if header is None:
        return None
    items = bytes(_read_fields(text).get("items", msgspec.Raw(b"null")))
    raws = msgspec.json.decode(items, type=list[msgspec.Raw]) if items.startswith(b"[") else None
    return _Top(header.apiVersion, header.kind, items=raws)


def _bare_items(text: msgspec.Raw) -> list[msgspec.Raw] | None:
    with memoryview(text) as view:
        if not bytes(view[:100]).lstrip().startswith(b"["):
            return None
    try:
        items = msgspec.json.decode(text, type=list[msgspec.Raw])
    except (msgspec.DecodeError, RecursionError):
        return None
    return items if all(bytes(memoryview(each)[:1]) == b"{" for each in items) else None


def _wrong_items(text: msgspec.Raw) -> str | None:
    items = bytes(_read_fields(text).get("items", msgspec.Raw(b"null")))
    return None if items.startswith((b"[", b"null")) else _in_words(msgspec.Raw(items))


def _has_no_items(header: _Header, text: msgspec.Raw) -> bool:
    """Go writes an empty list without items."""
    return not (header.metadata or _NAMELESS).name or "items" in _read_fields(text)


def _wrong_field(text: msgspec.Raw, key: str, wanted: str) -> tuple[str, str]:
    value = bytes(_read_fields(text).get(key, msgspec.Raw(b"null"))).strip()
    return ("nothing", wanted) if value.startswith((b'"', b"null")) else (_in_words(msgspec.Raw(value)), "text")


def _list_header(pieces: list[str], items: list[int]) -> _Header | None:
    head = "".join(pieces[: items[0]] + pieces[items[-1] + 1 :]).encode()
    header = _read_top(msgspec.Raw(head))
    return header if header is not None and is_list(header) else None


def _lenient_header(text: msgspec.Raw) -> _Header | None:
    try:
        return _read_header(text)
    except (msgspec.DecodeError, RecursionError):
        pass
    try:
        fields = _read_fields(text)
    except (msgspec.DecodeError, RecursionError):
        return None
    try:
        metadata = _read_fields(fields.get("metadata", msgspec.Raw(b"{}")))
    except msgspec.DecodeError:
        metadata = {}
    names = _HeaderMetadata(_text_field(metadata, "name"), _text_field(metadata, "namespace"))
    return _Header(_text_field(fields, "apiVersion"), _text_field(fields, "kind"), names)


def _text_field(fields: Mapping[str, msgspec.Raw], key: str) -> str | None:
    try:
        return msgspec.json.decode(fields.get(key, msgspec.Raw(b"null")), type=str | None)
    except msgspec.DecodeError:
        return None


def _in_words(text: msgspec.Raw) -> str:
    with memoryview(text) as view:
        start = bytes(view[:100]).decode("utf-8", "replace").strip()
    if start.startswith(("[", "{")):
        return "a list" if start.startswith("[") else "an object"
    return shown(start) if start else "nothing"


def _inherit(header: _Header, parent: _Header, text: msgspec.Raw) -> msgspec.Raw:
    given = {key: getattr(parent, key) for key in ("apiVersion", "kind") if getattr(header, key) is None}
    missing = {key: value for key, value in given.items() if value}
    if not missing:
        return text
    for key, value in missing.items():
        setattr(header, key, value)
    fields = b",".join(msgspec.json.encode(key) + b":" + msgspec.json.encode(value) for key, value in missing.items())
    body = bytes(text).lstrip()[1:].lstrip()
    comma = b"" if body.startswith(b"}") else b","
    return msgspec.Raw(b"{" + fields + comma + body)


class Names:
    """Names for objects that have ``generateName``, from text and count of equal ones."""

    #: As in an API server: the characters, how many, and how much of the prefix they leave room for.
    _LETTERS, _LENGTH, _PREFIX = "bcdfghjklmnpqrstvwxz2456789", 5, 58

    def __init__(self, *, added: bool = False) -> None:
        self._salt = b"added" if added else b""
        self._taken: set[Identity] = set()

    def named(self, header: _Header, text: msgspec.Raw) -> msgspec.Raw:
        """Write a name into an object, and into its header, where it asks for one."""
        fields = _read_fields(text)
        try:
            metadata = _read_fields(fields.get("metadata", msgspec.Raw(b"{}")))
        except msgspec.DecodeError:
            return text
        prefix = _text_field(metadata, "generateName")
        if not prefix or bytes(metadata.get("name", msgspec.Raw(b"null"))) not in (b"null", b'""'):
            return text
        name = self._new(prefix[: self._PREFIX], header, bytes(text))
        header.metadata = _HeaderMetadata(name, header.metadata.namespace if header.metadata else None)
        metadata["name"] = msgspec.Raw(msgspec.json.encode(name))
        fields["metadata"] = msgspec.Raw(msgspec.json.encode(metadata))
        return msgspec.Raw(msgspec.json.encode(fields))

    def _new(self, prefix: str, header: _Header, text: bytes) -> str:
        group, namespace = (header.apiVersion or "").rpartition("/")[0], (header.metadata or _NAMELESS).namespace
        for number in itertools.count():
            digest = hashlib.sha256(b"%s %d %s" % (self._salt, number, text)).digest()
            name = prefix + "".join(self._LETTERS[each % len(self._LETTERS)] for each in digest[: self._LENGTH])
            identity = (group, header.kind or "", namespace or "", name)
            if identity not in self._taken:
                break
        self._taken.add(identity)
        return name


#: Where a field stands, in whichever item of a list: None for the index.
Place = tuple[str | None, ...]

#: Fields by which an object can be read as its header: attributes of these names, of text but for the metadata.
_HEADER = frozenset(("apiVersion", "kind", "metadata", "name", "namespace"))
_UNNAMEABLE = re.compile(r'[\\"\x00-\x1f]')


class ObjectShape:
    """Tells whether an object has only known fields, or known strays."""

    def __init__(self, fields: Fields, strays: Iterable[Place] = ()) -> None:
        self._hits: set[Place] = set()
        self._marks: dict[type, Place] = {}
        self._made: dict[int, Any] = {}
        tree: dict[Any, Any] = {}
        for place in strays:
            if _UNNAMEABLE.search(str(place[-1])):
                continue  # objects that have it do not fit
            branch = tree
            for step in place:
                branch = branch if step is None else branch.setdefault(step, {})
            branch[None] = place
        self._decode = msgspec.json.Decoder(self._struct(fields, tree), dec_hook=self._note).decode

    def places(self, text: bytes) -> set[Place] | None:
        """Places of an object's strays; None where it does not fit."""
        self._hits.clear()
        return None if self.header(text) is None else set(self._hits)

    def header(self, text: msgspec.Raw | bytes) -> _Header | None:
        """Header of an object; None where it does not fit."""
        try:
            return cast(_Header, self._decode(text))
        except (msgspec.DecodeError, RecursionError):
            return None

    def _note(self, mark: type, _: object) -> object:
        self._hits.add(self._marks[mark])
        return mark()  # msgspec asks for a value of the type

    def _struct(self, fields: Fields, strays: Mapping[Any, Any]) -> Any:
        made = None if strays else self._made.get(id(fields))
        if made is None:
            parts = {name: self._part(name, each, strays.get(name, {})) for name, each in fields.names.items()}
            parts |= {name: self._mark(each[None]) for name, each in strays.items() if None in each}
            made = _object(parts)
            if not strays:
                self._made[id(fields)] = made
        return made

    def _part(self, name: str, fields: Fields, strays: Mapping[Any, Any]) -> Any:
        if fields.values is not None:
            return types.GenericAlias(dict, (str, self._part("", fields.values, {}))) | None
        if not fields.names:
            return str | None if name in _HEADER else msgspec.Raw
        made = self._struct(fields, strays)
        return made | None if name == "metadata" else types.GenericAlias(list, (made,)) | made | None

    def _mark(self, place: Place) -> Any:
        mark = type("Stray", (), {})
        self._marks[mark] = place
        return mark


def _object(parts: Mapping[str, Any]) -> Any:
    """Attributes by number take less time than names."""
    called = {name if name in _HEADER else f"f{number}": name for number, name in enumerate(parts)}
    return msgspec.defstruct(
        "Object",
        [(attribute, parts[name], None) for attribute, name in called.items()],
        rename=called,
        forbid_unknown_fields=True,
        gc=False,
    )


@cache
def shape_of(api_version: str, kind: str) -> ObjectShape | None:
    """The shape of a kind without strays, where its fields are known."""
    group, _, version = api_version.rpartition("/")
    info = KINDS.get((group, kind))
    fields = known_fields(info, version) if info is not None else None
    return None if fields is None else ObjectShape(fields)


#: One object in so many is looked at; reading stops after as many wrong ones as would make 20,000 in all, as with
#: faults.
_EVERY = 8
_WRONG = 2_500


class Probe:
    """Looks at every eighth object."""

    def __init__(self) -> None:
        self._count = 0
        self._wrong = 0
        self._seen: set[Identity] = set()

    def finds_enough(self, raw: RawObject) -> bool:
        """Take one object; returns whether so many were wrong that reading on is useless."""
        self._count += 1
        if self._count % _EVERY:
            return False
        self._wrong += self._is_wrong(raw)
        return self._wrong >= _WRONG

    def _is_wrong(self, raw: RawObject) -> bool:
        identity = raw.identity
        if raw.name and identity in self._seen:
            return True
        self._seen.add(identity)
        info = raw.info
        if info is None:
            return False
        if raw.api_version.rpartition("/")[2] not in info.versions:
            return True
        try:
            info.read(bytes(raw.text))
        except Misfit:
            return True
        return False


Identity = tuple[str, str, str, str]

#: JSON documents in one text; JSON comes in lists.
JSON_DOCUMENTS = 100_000
_BYTE = re.compile(r"^(?:JSON is malformed: )?(.*?)(?: \(byte (\d+)\))?$", re.DOTALL)
_SPACE = re.compile(rb"[ \t\r\n]*")
_FLOW_YAML = re.compile(rb"\s*[\[{]\s*(?![\"{}\[\]\s0-9tfn-])")
_HALF_PAIR = re.compile(rb"\\u[dD](?:[89abAB]..(?!\\u[dD][c-fC-F])|[c-fC-F])")
#: Lists may hold lists, as kubectl get of several resources once printed them, but not lists of lists.
_LISTS_DEEP = 2
#: After so many objects of one kind in a row the next is expected to be another, of known fields alone.
_ALIKE = 64


class RawObject(msgspec.Struct, frozen=True, gc=False):
    """One object as text.

    ``text``: JSON, mostly a slice of the file's text. ``document``: counts from 1. ``snapshot``, ``gates``: scheduler
    and mode of its snapshot. ``fits``: known to have only fields of its kind.
    """

    api_version: str
    kind: str
    namespace: str
    name: str
    text: msgspec.Raw
    file: str
    document: int
    added: bool = False
    snapshot: str = ""
    gates: bool = False
    fits: bool = False

    @property
    def group(self) -> str:
        """API group, empty for the core group."""
        return self.api_version.rpartition("/")[0]

    @property
    def info(self) -> KindInfo | None:
        """How the kind is read; None if it is not."""
        return KINDS.get((self.group, self.kind))

    @property
    def identity(self) -> Identity:
        """No two objects share it."""
        info = self.info
        namespace = self.namespace
        if info is not None:
            namespace = (namespace or "default") if info.namespaced else ""
        return self.group, self.kind, namespace, self.name

    @property
    def label(self) -> str:
        """Kind, namespace and name, for people."""
        _, kind, namespace, name = self.identity
        full = f"{namespace}/{name}" if namespace and name else name
        return shown(f"{kind} {full}".strip(), 400)


def split(texts: Iterable[Text], faults: Faults | None = None, *, added: bool = False) -> list[RawObject]:
    """Take texts apart into objects, in their order, lists replaced by their items.

    ``faults``: takes the faults, else they raise :class:`BadInstance`.
    """
    log = Faults() if faults is None else faults
    raws: list[RawObject] = []
    probe, names = Probe(), Names(added=added)
    for text in texts:
        if log.enough:
            continue
        own = Faults() if text.found else log
        splitter = _Splitter(text, raws, own, names, added=added)
        goes_on = splitter.run(probe)
        if own is not log and splitter.means_objects:
            log.take(own)
        if not goes_on:
            break
    if faults is None:
        log.raise_any()
    return raws


def from_documents(
    documents: Iterable[Mapping[str, Any]], name: str = "memory", *, added: bool = False
) -> list[RawObject]:
    """Take objects that are Python values already, in the form of their JSON; else :class:`BadInstance`."""
    log = Faults()
    raws: list[RawObject] = []
    splitter = _Splitter(Text(name, b""), raws, log, Names(added=added), added=added)
    for document in documents:
        splitter.document(msgspec.Raw(msgspec.json.encode(document)))
    log.raise_any()
    return raws


_read_raw = msgspec.json.Decoder(msgspec.Raw).decode


class _Splitter:
    def __init__(self, text: Text, raws: list[RawObject], faults: Faults, names: Names, *, added: bool) -> None:
        self._text = text
        self._raws = raws
        self._faults = faults
        self._names = names
        self._added = added
        self.means_objects = False  #: Whether anything in the text is meant as an object.
        self._position = 0
        self._probe: Probe | None = None
        self._snapshot, self._gates = "", False
        self._stopped = False
        self._kind, self._alike = ("", ""), 0

    def run(self, probe: Probe) -> bool:
        if self._text.is_json and not _FLOW_YAML.match(self._text.data):
            self._json()
        else:
            self._probe = probe
            self._yaml()
        return not self._stopped

    def _torn(self, field: str, found: str, expected: str) -> None:
        self.means_objects = True
        self._fault(field, found, expected)

    def _fault(self, field: str, found: str, expected: str, label: str = "") -> None:
        self._faults.add(Fault(shown(self._text.name, 400), self._position or None, label, field, found, expected))

    # JSON: one document after another

    def _json(self) -> None:
        data = self._text.data
        refusal = syntax.refusal(data)
        if refusal is not None:
            self._torn(*refusal)
            return
        view = memoryview(data)
        start, count = _end_of_space(data, 0), 0
        while start < len(data) and not self._faults.enough:
            count += 1
            if count > JSON_DOCUMENTS:
                self._fault("", f"more than {JSON_DOCUMENTS} documents", f"at most {JSON_DOCUMENTS}")
                return
            stop = self._end_of_document(view, start)
            if stop is None:
                return
            self.document(msgspec.Raw(view[start:stop]))
            start = _end_of_space(data, stop)

    def _end_of_document(self, view: memoryview, start: int) -> int | None:
        try:
            _read_raw(view[start:])
        except (msgspec.DecodeError, RecursionError) as error:
            reason, offset = _malformed(error, view, start)
            if reason == "trailing characters":
                return offset - 1  # the parser has taken the first of them
            self._position += 1
            self._not_json(reason, offset)
            return None
        return len(view)

    def _not_json(self, reason: str, offset: int) -> None:
        there = bytes(self._text.data[offset : offset + 20]).decode("utf-8", "replace").split("\n")[0]
        found = f"{shown(there)!r}" if there else "the end of the text"
        expected = "JSON"
        if reason.startswith("expected "):
            expected = reason.removeprefix("expected ")
        elif reason == "ends too early":
            expected = f"JSON {syntax.CUT_OFF}"
        else:
            found = f"{found} ({reason})"
        self._torn(syntax.place(self._text.data, offset), found, expected)

    # YAML: documents that were made JSON

    def _yaml(self) -> None:
        try:
            for document in syntax.documents(bytes(self._text.data)):
                self._yaml_document(document)
                if self._faults.enough or self._stopped:
                    return
        except syntax.YamlError as error:
            self._position += 1
            self._torn(error.place, error.found, error.expected)

    def _yaml_document(self, document: syntax.Document) -> None:
        pieces, items = document.pieces, document.items
        if not pieces:
            self._position += 1
        elif items and (header := _list_header(pieces, items)):
            self._items(header, (msgspec.Raw(pieces[item].encode()) for item in items))
        else:
            self.document(msgspec.Raw("".join(pieces).encode()))

    # Both: documents to objects

    def document(self, text: msgspec.Raw) -> None:
        top = _read_top(text)
        if top is not None and top.items is not None and is_list(top):
            self._items(top, top.items)
        elif top is None and (items := _bare_items(text)) is not None:
            self._items(_Header(kind="List"), items)
        else:
            self._snapshot, self._gates = "", False
            self._slowly(text, _Header())

    def _items(self, parent: _Header, items: Iterable[msgspec.Raw], depth: int = 1) -> None:
        if depth == 1 or snapshot_of(parent):
            self._snapshot, self._gates = snapshot_of(parent), _is_enforced_by_gates(parent)
        typed = _Header()
        if parent.kind != "List":
            typed = _Header(parent.apiVersion, (parent.kind or "").removesuffix("List"))
        for item in items:
            if self._faults.enough or self._stopped:
                return
            self._item(item, typed, depth)

    def _item(self, text: msgspec.Raw, typed: _Header, depth: int) -> None:
        try:
            header, fits = self._header(text)
        except (msgspec.DecodeError, RecursionError):
            header, fits = _Header(), False
        if not header.kind or not header.apiVersion:
            self._slowly(text, typed)
        elif is_list(header):
            self._list_in_list(text, depth)
        else:
            self._position += 1
            self._add(header, text, fits)

    def _header(self, text: msgspec.Raw) -> tuple[_Header, bool]:
        if self._alike >= _ALIKE:
            shape = shape_of(*self._kind)
            header = shape.header(text) if shape is not None else None
            if header is not None and (header.apiVersion, header.kind) == self._kind:
                return header, True
            self._alike = 0
        header = _read_header(text)
        kind = header.apiVersion or "", header.kind or ""
        self._alike = self._alike + 1 if kind == self._kind else 0
        self._kind = kind
        return header, False

    def _list_in_list(self, text: msgspec.Raw, depth: int) -> None:
        top = _read_top(text)
        if top is None or top.items is None:
            self._slowly(text, _Header())
        elif depth >= _LISTS_DEEP:
            self._fault("", "a list in a list in a list", "objects, or a list of them")
        else:
            self._items(top, top.items, depth + 1)

    def _slowly(self, text: msgspec.Raw, parent: _Header) -> None:
        self._position += 1
        header = _lenient_header(text)
        if header is None:
            self._fault("", _in_words(text), "a Kubernetes object")
            return
        self.means_objects = self.means_objects or bool(header.kind or header.apiVersion)
        if is_list(header) and (found := _wrong_items(text)) is not None:
            self._fault("items", found, "a list of objects", header.kind or "")
        elif not (is_list(header) and _has_no_items(header, text)):
            self._add(header, _inherit(header, parent, text))

    def _add(self, header: _Header, text: msgspec.Raw, fits: bool = False) -> None:
        if not (header.metadata or _NAMELESS).name:
            text = self._names.named(header, text)
        names = header.metadata or _NAMELESS
        origin = (self._text.name, self._position, self._added, self._snapshot)
        called = (header.apiVersion or "", header.kind or "", names.namespace or "", names.name or "")
        self._keep(RawObject(*called, text, *origin, self._gates, fits))

    def _keep(self, raw: RawObject) -> None:
        text = raw.text
        size = len(memoryview(text))
        if size > OBJECT_TEXT:
            self._fault("", f"{size} bytes", f"an object of at most {OBJECT_TEXT >> 20} MiB", raw.label)
        elif not raw.api_version:
            self._fault("apiVersion", *_wrong_field(text, "apiVersion", "an API version such as v1"), raw.label)
        elif not raw.kind:
            self._fault("kind", *_wrong_field(text, "kind", "a kind such as Pod"), raw.label)
        elif len(self._raws) >= OBJECTS:
            self._fault("", f"more than {OBJECTS} objects", f"at most {OBJECTS}")
            self._faults.enough = True
        else:
            self._raws.append(raw)
            self.means_objects = True
            if self._probe is not None and self._probe.finds_enough(raw):
                self._fault("", "wrong objects all the way to here, where reading stops", "objects that are right")
                self._stopped = True


def _malformed(error: Exception, view: memoryview, start: int) -> tuple[str, int]:
    if isinstance(error, RecursionError):
        return "too deeply nested", start
    match = _BYTE.match(str(error))
    if match and match[2]:
        return match[1], start + int(match[2])
    surrogate = _HALF_PAIR.search(view, start)
    return ("half of a surrogate pair", surrogate.start()) if surrogate else ("ends too early", len(view))


def _end_of_space(data: bytes | bytearray, start: int) -> int:
    match = _SPACE.match(data, start)
    return match.end() if match else start
