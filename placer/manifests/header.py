"""What an object's text says about itself, read without the rest: apiVersion, kind, name, namespace, items."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from placer.manifests.limits import shown

__all__ = [
    "SNAPSHOT",
    "Header",
    "completed",
    "in_words",
    "is_list",
    "lenient_header",
    "list_header",
    "read_header",
    "read_top",
    "snapshot_of",
    "wrong_field",
    "wrong_items",
]


#: Annotation of a List that is a cluster's snapshot: the name of the scheduler it was taken for.
SNAPSHOT = "placer.dev/snapshot"


class HeaderMetadata(msgspec.Struct, gc=False):
    """Name and namespace."""

    name: str | None = None
    namespace: str | None = None


class Header(msgspec.Struct, gc=False):
    """What every object says of itself."""

    apiVersion: str | None = None  # noqa: N815 - the name in the text
    kind: str | None = None
    metadata: HeaderMetadata | None = None


class TopMetadata(HeaderMetadata):
    """The same and the annotations, which only lists are asked for."""

    annotations: dict[str, str] | None = None


class Top(Header):
    """The same and the items, if the object is a list."""

    metadata: TopMetadata | None = None
    items: list[msgspec.Raw] | None = None


read_header = msgspec.json.Decoder(Header).decode
_decode_top = msgspec.json.Decoder(Top).decode
_read_fields = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode


def is_list(header: Header) -> bool:
    """Whether the kind is that of a list."""
    return header.kind is not None and header.kind.endswith("List")


def snapshot_of(header: Header) -> str:
    """Name of the scheduler that a list is a snapshot for; empty where it is none."""
    if header.kind != "List" or not isinstance(header.metadata, TopMetadata):
        return ""
    return (header.metadata.annotations or {}).get(SNAPSHOT, "")


def read_top(text: msgspec.Raw) -> Top | None:
    """Header and items, without what has the wrong type; None if the text is no object."""
    try:
        return _decode_top(text)
    except (msgspec.DecodeError, RecursionError):
        header = lenient_header(text)
    if header is None:
        return None
    items = bytes(_read_fields(text).get("items", msgspec.Raw(b"null")))
    raws = msgspec.json.decode(items, type=list[msgspec.Raw]) if items.startswith(b"[") else None
    return Top(header.apiVersion, header.kind, items=raws)


def wrong_items(text: msgspec.Raw) -> str | None:
    """What stands where a list has its items, if that is no list; None if there is nothing wrong with it."""
    items = bytes(_read_fields(text).get("items", msgspec.Raw(b"null")))
    return None if items.startswith((b"[", b"null")) else in_words(msgspec.Raw(items))


def wrong_field(text: msgspec.Raw, key: str) -> str | None:
    """What stands in a field that should hold text; None if it is text, or nothing."""
    value = bytes(_read_fields(text).get(key, msgspec.Raw(b"null"))).strip()
    return None if value.startswith((b'"', b"null")) else in_words(msgspec.Raw(value))


def list_header(pieces: list[str], items: list[int]) -> Header | None:
    """Header of a document that is a list, read without its items; None if it is none."""
    head = "".join(pieces[: items[0]] + pieces[items[-1] + 1 :]).encode()
    header = read_top(msgspec.Raw(head))
    return header if header is not None and is_list(header) else None


def lenient_header(text: msgspec.Raw) -> Header | None:
    """What an object is called, without what has the wrong type; None if it is no object."""
    try:
        return read_header(text)
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
    names = HeaderMetadata(_text_field(metadata, "name"), _text_field(metadata, "namespace"))
    return Header(_text_field(fields, "apiVersion"), _text_field(fields, "kind"), names)


def _text_field(fields: Mapping[str, msgspec.Raw], key: str) -> str | None:
    try:
        return msgspec.json.decode(fields.get(key, msgspec.Raw(b"null")), type=str | None)
    except msgspec.DecodeError:
        return None


def in_words(text: msgspec.Raw) -> str:
    """What a JSON text that is no object is, in words."""
    with memoryview(text) as view:
        start = bytes(view[:100]).decode("utf-8", "replace").strip()
    if start.startswith(("[", "{")):
        return "a list" if start.startswith("[") else "an object"
    return shown(start) if start else "nothing"


def completed(text: msgspec.Raw, missing: Mapping[str, str]) -> msgspec.Raw:
    """Write into an object what its list says of all items."""
    fields = b",".join(msgspec.json.encode(key) + b":" + msgspec.json.encode(value) for key, value in missing.items())
    body = bytes(text).lstrip()[1:].lstrip()
    comma = b"" if body.startswith(b"}") else b","
    return msgspec.Raw(b"{" + fields + comma + body)
