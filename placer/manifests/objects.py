"""Texts to single objects: documents told apart, lists taken apart, each object keeps its own slice of JSON text."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from placer.errors import Fault
from placer.kube import KINDS, KindInfo
from placer.manifests import jsontext, yamltext
from placer.manifests.files import Text
from placer.manifests.limits import DOCUMENTS, OBJECT_TEXT, Faults, shown

__all__ = ["Identity", "RawObject", "from_documents", "split"]

#: API group, kind, namespace and name.
Identity = tuple[str, str, str, str]

_BYTE = re.compile(r"^(?:JSON is malformed: )?(.*?)(?: \(byte (\d+)\))?$", re.DOTALL)
_SPACE = re.compile(rb"[ \t\r\n]*")


@dataclass(frozen=True, slots=True)
class RawObject:
    """One object as text.

    Parameters
    ----------
    api_version, kind, namespace, name
        As they are written; empty where they are left out.
    text
        JSON text; of JSON files a slice of the file's text, not a copy.
    file, document
        Where it came from; ``document`` counts from 1.
    added
        Whether it came by ``--with``.
    """

    api_version: str
    kind: str
    namespace: str
    name: str
    text: msgspec.Raw
    file: str
    document: int
    added: bool = False

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
        """What no two objects share; of kinds that are read, with the namespace they are in."""
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


class _HeaderMetadata(msgspec.Struct, gc=False):
    name: str | None = None
    namespace: str | None = None


class _Header(msgspec.Struct, gc=False):
    apiVersion: str | None = None  # noqa: N815 - the name in the text
    kind: str | None = None
    metadata: _HeaderMetadata | None = None


class _Top(_Header):
    items: list[msgspec.Raw] | None = None


_read_header = msgspec.json.Decoder(_Header).decode
_read_top = msgspec.json.Decoder(_Top).decode
_read_raw = msgspec.json.Decoder(msgspec.Raw).decode
_read_fields = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode


def split(texts: Iterable[Text], faults: Faults | None = None, *, added: bool = False) -> list[RawObject]:
    """Take texts apart into objects.

    Parameters
    ----------
    texts
        JSON (one or several objects, one after another) or YAML (one or several documents).
    faults
        Takes the faults instead of an exception.
    added
        Whether the objects came by ``--with``.

    Returns
    -------
    list of RawObject
        In the order of the texts, lists replaced by their items.

    Raises
    ------
    BadInstance
        A text does not parse, passes a limit, or holds what is no object; only without ``faults``.
    """
    log = Faults() if faults is None else faults
    raws: list[RawObject] = []
    for text in texts:
        if not log.enough:
            raws.extend(_Splitter(text, log, added=added).objects())
    if faults is None:
        log.raise_any()
    return raws


def from_documents(documents: Iterable[Mapping[str, Any]], name: str = "memory") -> list[RawObject]:
    """Take objects that are Python values already, such as a client library's, in the form of their JSON.

    Raises
    ------
    BadInstance
        One of them is no object.
    """
    log = Faults()
    splitter = _Splitter(Text(name, b""), log, added=False)
    raws = [raw for document in documents for raw in splitter.document(msgspec.Raw(msgspec.json.encode(document)))]
    log.raise_any()
    return raws


class _Splitter:
    """Takes one text apart."""

    def __init__(self, text: Text, faults: Faults, *, added: bool) -> None:
        self._text = text
        self._faults = faults
        self._added = added
        self._position = 0

    def objects(self) -> Iterator[RawObject]:
        """Every object of the text."""
        if self._text.is_json and not self._is_flow_yaml():
            return self._of_json()
        return self._of_yaml()

    def _is_flow_yaml(self) -> bool:
        """Whether a text that begins like JSON is YAML in flow style: its first key has no quotes."""
        return re.match(rb"\s*[\[{]\s*(?![\"{}\[\]\s0-9tfn-])", self._text.data) is not None

    def _fault(self, field: str, found: str, expected: str, label: str = "") -> None:
        self._faults.add(Fault(self._text.name, self._position or None, label, field, found, expected))

    # JSON

    def _of_json(self) -> Iterator[RawObject]:
        data = self._text.data
        refusal = jsontext.refusal(data)
        if refusal is not None:
            self._fault(*refusal)
            return
        view = memoryview(data)
        start = _end_of_space(data, 0)
        while start < len(data) and not self._faults.enough:
            if self._position >= DOCUMENTS:
                self._fault("", f"more than {DOCUMENTS} documents", f"at most {DOCUMENTS} documents")
                return
            stop = self._end_of_document(view, start)
            if stop is None:
                return
            yield from self.document(msgspec.Raw(view[start:stop]))
            start = _end_of_space(data, stop)

    def _end_of_document(self, view: memoryview, start: int) -> int | None:
        """Where the document ends that begins at ``start``; None, and a fault, if it does not parse."""
        try:
            _read_raw(view[start:])
        except (msgspec.DecodeError, RecursionError) as error:
            reason, offset = _malformed(error, len(view) - start)
            if reason == "trailing characters":
                return start + offset - 1  # the parser has taken the first of them
            self._position += 1
            where = jsontext.place(self._text.data, start + offset)
            there = bytes(view[start + offset : start + offset + 20]).decode("utf-8", "replace").split("\n")[0]
            expected = reason.removeprefix("expected ") if reason.startswith("expected ") else "JSON"
            found = f"{shown(there)!r}" if there else "the end of the text"
            self._fault(where, found if expected != "JSON" else f"{found} ({reason})", expected)
            return None
        return len(view)

    # YAML

    def _of_yaml(self) -> Iterator[RawObject]:
        try:
            for document in yamltext.documents(bytes(self._text.data)):
                yield from self._yaml_document(document)
                if self._faults.enough:
                    return
        except yamltext.YamlError as error:
            self._position += 1
            self._fault(error.place, error.found, error.expected)

    def _yaml_document(self, document: yamltext.Document) -> Iterator[RawObject]:
        pieces, items = document.pieces, document.items
        if not pieces:
            self._position += 1
            return
        if not items:
            yield from self.document(msgspec.Raw("".join(pieces).encode()))
            return
        head = "".join(pieces[: items[0]] + pieces[items[-1] + 1 :]).encode()
        header = self._header(msgspec.Raw(head))
        if header is not None and (header.kind or "").endswith("List"):
            yield from self._items(header, (msgspec.Raw(pieces[item].encode()) for item in items))
        else:
            yield from self.document(msgspec.Raw("".join(pieces).encode()))

    # Both

    def document(self, text: msgspec.Raw, parent: _Header | None = None) -> Iterator[RawObject]:
        """Objects of one document: itself, or the items of a list."""
        try:
            top = _read_top(text)
        except (msgspec.DecodeError, RecursionError):
            top = None
        if top is None:  # something has the wrong type; the object's own faults are told later
            yield from self._one(text, parent)
        elif top.items is not None and (top.kind or "").endswith("List"):
            yield from self._items(top, top.items)
        else:
            yield from self._one(text, parent)

    def _items(self, header: _Header, items: Iterable[msgspec.Raw]) -> Iterator[RawObject]:
        """Objects of a list; of a typed list the items may leave out what the list says."""
        kind, version = header.kind or "", header.apiVersion or ""
        typed = _Header(apiVersion=version, kind=kind.removesuffix("List")) if kind != "List" else _Header()
        for item in items:
            if self._faults.enough:
                return
            yield from self._one(item, typed)

    def _one(self, text: msgspec.Raw, parent: _Header | None) -> Iterator[RawObject]:
        """One object, unless it is a list in a list."""
        header = self._header(text)
        if header is None:
            self._position += 1
            self._fault("", f"{_value(text)}", "a Kubernetes object")
            return
        if (header.kind or "").endswith("List") and parent is not None and _has_items(text):
            yield from self.document(text)
            return
        self._position += 1
        inherited = parent or _Header()
        missing = {
            key: value
            for key, value in (("apiVersion", inherited.apiVersion), ("kind", inherited.kind))
            if value and getattr(header, key) is None
        }
        if missing:
            text = _completed(text, missing)
        yield from self._raw(header, inherited, text)

    def _raw(self, header: _Header, inherited: _Header, text: msgspec.Raw) -> Iterator[RawObject]:
        metadata = header.metadata or _HeaderMetadata()
        raw = RawObject(
            api_version=header.apiVersion or inherited.apiVersion or "",
            kind=header.kind or inherited.kind or "",
            namespace=metadata.namespace or "",
            name=metadata.name or "",
            text=text,
            file=self._text.name,
            document=self._position,
            added=self._added,
        )
        size = len(memoryview(text))
        if size > OBJECT_TEXT:
            self._fault("", f"{size} bytes", f"an object of at most {OBJECT_TEXT >> 20} MiB", raw.label)
        elif not raw.api_version:
            self._fault("apiVersion", "nothing", "an API version such as v1", raw.label)
        elif not raw.kind:
            self._fault("kind", "nothing", "a kind such as Pod", raw.label)
        else:
            yield raw

    def _header(self, text: msgspec.Raw) -> _Header | None:
        """What an object is called; None if it is no object. Parts of the wrong type are left out."""
        try:
            return _read_header(text)
        except (msgspec.DecodeError, RecursionError):
            pass
        try:
            fields = _read_fields(text)
        except (msgspec.DecodeError, RecursionError):
            return None
        header = _Header()
        header.apiVersion = self._text_field(fields, "apiVersion")
        header.kind = self._text_field(fields, "kind")
        header.metadata = _HeaderMetadata()
        try:
            metadata = _read_fields(fields.get("metadata", msgspec.Raw(b"{}")))
        except msgspec.DecodeError:
            return header
        header.metadata.name = self._text_field(metadata, "name")
        header.metadata.namespace = self._text_field(metadata, "namespace")
        return header

    def _text_field(self, fields: Mapping[str, msgspec.Raw], key: str) -> str | None:
        try:
            return msgspec.json.decode(fields.get(key, msgspec.Raw(b"null")), type=str | None)
        except msgspec.DecodeError:
            return None


def _malformed(error: Exception, length: int) -> tuple[str, int]:
    """Reason and offset of a parser's error."""
    if isinstance(error, RecursionError):
        return "too deeply nested", 0
    match = _BYTE.match(str(error))
    return (match[1], int(match[2])) if match and match[2] else ("ends too early", length)


def _end_of_space(data: bytes | bytearray, start: int) -> int:
    match = _SPACE.match(data, start)
    return match.end() if match else start


def _value(text: msgspec.Raw) -> str:
    """What a JSON text that is no object is, in words."""
    with memoryview(text) as view:
        start = bytes(view[:100]).decode("utf-8", "replace").strip()
    if start.startswith("["):
        return "a list"
    return shown(start) if start else "nothing"


def _has_items(text: msgspec.Raw) -> bool:
    try:
        return _read_top(text).items is not None
    except (msgspec.DecodeError, RecursionError):
        return False


def _completed(text: msgspec.Raw, missing: Mapping[str, str]) -> msgspec.Raw:
    """Write into an object what its list says of all items."""
    fields = b",".join(msgspec.json.encode(key) + b":" + msgspec.json.encode(value) for key, value in missing.items())
    body = bytes(text).lstrip()[1:].lstrip()
    comma = b"" if body.startswith(b"}") else b","
    return msgspec.Raw(b"{" + fields + comma + body)
