"""JSON and YAML text: limits that keep a hostile or broken one cheap, and YAML as JSON text, event by event.

Of JSON, nesting and values are counted before any parser sees the text. YAML is read by libyaml's events only, as by
kubectl; aliases are counted before they are expanded. The core schema of YAML 1.2 decides: ``on`` and times are text,
``010`` is ten. Not a number and infinity are refused, since JSON has no word for them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from json.encoder import encode_basestring
from typing import Any

import msgspec
import numpy as np
import yaml

from placer.base.text import shown

OBJECT_TEXT = 8 * 2**20
#: Objects in all: Kubernetes supports 150,000 pods in a cluster.
OBJECTS = 500_000
#: Levels of nesting, counted from the document.
DEEPEST = 100
#: Values that aliases may stand for in one text, and the bytes that they may come to.
ALIAS_VALUES = 1_000_000
ALIAS_TEXT = 64 * 2**20


def yaml_values_allowed(length: int) -> int:
    """Most events of a YAML text; ordinary YAML has one in 6 to 10 bytes."""
    return 5_000_000 + length // 7


def yaml_documents_allowed(length: int) -> int:
    """Most documents of a YAML text."""
    return min(OBJECTS, 100_000 + length // 300)


BOM = b"\xef\xbb\xbf"
_SPACE = b" \t\r\n"
#: The start of a text tells its format, and long texts are looked at piece by piece.
_HEAD = 2**20


@dataclass(frozen=True, slots=True, eq=False)
class Text:
    """The unpacked text of one file, in UTF-8; ``found``: without being named."""

    name: str
    data: bytes | bytearray
    found: bool = False

    def __str__(self) -> str:
        return self.name

    @property
    def is_json(self) -> bool:
        """Whether the text begins as a JSON object or list does."""
        return looks_like_json(self.data)


def looks_like_json(data: bytes | bytearray) -> bool:
    """Whether a text begins as a JSON object or list does."""
    head = bytes(data[:_HEAD]).removeprefix(BOM).lstrip(_SPACE)
    return head[:1] in (b"{", b"[")


# --------------------------------------------------------------------------------------------------------------- JSON

_PIECE = 4 * 2**20
_NOT_BRACKET = bytes(byte for byte in range(256) if byte not in b'"{}[]')
_NOT_TOKEN = bytes(byte for byte in range(256) if byte not in b'"{[,')
_CONTINUATION = bytes(range(0x80, 0xC0))
_AFTER_BACKSLASHES = re.compile(rb"[^\\]")
_TOKEN = re.compile(rb'"(?:[^"\\]|\\.)*"?|[][{}]', re.DOTALL)
_STEP = np.zeros(256, np.int8)
_STEP[list(b"{[")] = 1
_STEP[list(b"}]")] = -1


def object_refusal(text: bytes) -> str:
    """Why an object must not be read on: ``found ..., expected ...``; empty: it may."""
    if text.count(b",") + text.count(b"{") + text.count(b"[") <= min(DEEPEST, len(text) // 6):
        return ""  # as nearly all
    why = refusal(text, len(text) // 6)
    return f"found {why[1]}, expected {why[2]}" if why is not None else ""


def refusal(text: bytes | bytearray, values: int | None = None) -> tuple[str, str, str] | None:
    """Why a JSON text must not be parsed: place, found and expected; None: it may."""
    most = 1_000_000 + len(text) // 6 if values is None else values
    if text.count(b",") + text.count(b"{") + text.count(b"[") > most:  # strings may hold these too
        number = sum(len(piece) for piece, _ in _outside_strings(text, _NOT_TOKEN))
        if number > most:
            return "", f"{number} values in {len(text)} bytes", f"at most {most} values"
    depth = 0
    for brackets, start in _outside_strings(text, _NOT_BRACKET):
        if brackets:
            levels = np.cumsum(_STEP[np.frombuffer(brackets, np.uint8)], dtype=np.int64)
            if depth + int(levels.max()) > DEEPEST:
                offset = _too_deep(text, start, depth)
                return place(text, offset), f"more than {DEEPEST} levels of nesting", f"at most {DEEPEST} levels"
            depth += int(levels[-1])
    return None


def _outside_strings(text: bytes | bytearray, dropped: bytes) -> Iterator[tuple[bytes, int]]:
    start, inside = 0, False
    while start < len(text):
        stop = min(start + _PIECE, len(text))
        if text[stop - 1] == 0x5C:  # never cut an escape in two
            match = _AFTER_BACKSLASHES.search(text, stop)
            stop = match.end() if match else len(text)
        piece = bytes(text[start:stop])
        if b"\\" in piece:
            piece = piece.replace(b"\\\\", b"").replace(b'\\"', b"")
        # Taking neighbouring quotes away in pairs never changes which bytes stand between quotes.
        parts = piece.translate(None, dropped).replace(b'""', b"").split(b'"')
        yield b"".join(parts[inside::2]), start if not inside else -start
        inside ^= len(parts) % 2 == 0
        start = stop


def _too_deep(text: bytes | bytearray, start: int, depth: int) -> int:
    if start < 0:  # the piece begins inside a string
        start = -start
        end = re.compile(rb'(?:[^"\\]|\\.)*"', re.DOTALL).match(text, start)
        start = end.end() if end else start
    for token in _TOKEN.finditer(text, start):
        depth += {b"{": 1, b"[": 1, b"}": -1, b"]": -1}.get(token[0], 0)
        if depth > DEEPEST:
            return token.start()
    return start


def place(text: bytes | bytearray, offset: int) -> str:
    """Put an offset into words: ``line 2, column 3``."""
    before = text.rfind(b"\n", 0, offset) + 1
    line = text.count(b"\n", 0, before) + 1
    column = 1
    for start in range(before, offset, _PIECE):  # a line may be the whole text
        column += len(text[start : min(start + _PIECE, offset)].translate(None, _CONTINUATION))
    return f"line {line}, column {column}"


# ------------------------------------------------------------------------------------------------------------ scalars

_NULL = re.compile(r"(?:~|null|Null|NULL)?")
_BOOL = re.compile(r"true|True|TRUE|false|False|FALSE")
_INT = re.compile(r"[-+]?[0-9]+")
_WITH_BASE = re.compile(r"0o[0-7]+|0x[0-9a-fA-F]+")
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_NO_NUMBER = re.compile(r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)")
_LONGEST_NUMBER = 400

#: First characters of no null, boolean or number, so that most scalars are known to be text at once.
_TEXT_STARTS = frozenset("abcdeghijklmopqrsuvwxyzABCDEGHIJKLMOPQRSUVWXYZ_/")


def is_text(value: str) -> bool:
    """Whether a plain scalar is text."""
    patterns = (_NULL, _BOOL, _INT, _WITH_BASE, _FLOAT, _NO_NUMBER)
    return value[:1] in _TEXT_STARTS or not any(pattern.fullmatch(value) for pattern in patterns)


def scalar(value: str) -> str:
    """JSON text of a plain scalar, or ValueError.

    Examples
    --------
    >>> [scalar(text) for text in ("on", "true", "~", "010", "0o10", ".5", "1e3", "v1")]
    ['"on"', 'true', 'null', '10', '8', '0.5', '1000.0', '"v1"']
    """
    if is_text(value):
        return encode_basestring(value)
    if _NULL.fullmatch(value):
        return "null"
    if _BOOL.fullmatch(value):
        return value.lower()
    if len(value) > _LONGEST_NUMBER or _NO_NUMBER.fullmatch(value):
        raise ValueError(value)
    if _INT.fullmatch(value):
        return str(int(value))
    if _WITH_BASE.fullmatch(value):
        return str(int(value, 0))
    number = float(value)
    if number in (float("inf"), float("-inf")):
        raise ValueError(value)
    return repr(number)


# --------------------------------------------------------------------------------------------------------------- YAML

#: PyYAML's stubs make every mark and tag optional, which would need a check for each event.
_Event = Any
_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_CORE = "tag:yaml.org,2002:"
_TAGGED = {
    "null": re.compile("null"),
    "bool": re.compile("true|false"),
    "int": re.compile(r"-?\d+"),
    "float": re.compile(r"-?\d.*"),
}
_EVENTS_PER_CHECK = 4096
#: An element of ``items`` shorter than this is no object, and so many of them are no list of objects.
_SMALLEST_OBJECT = 20
_FEW_WORDS = 100_000
_CACHED_SCALARS = 100_000


class YamlError(Exception):
    """Text that is not YAML, or YAML that is not read."""

    def __init__(self, place: str, found: str, expected: str) -> None:
        super().__init__(place, found, expected)
        self.place = place
        self.found = found
        self.expected = expected


@dataclass(frozen=True, slots=True)
class Document:
    """One document as pieces of JSON text; ``items``: indexes of pieces that are elements of the root's ``items``."""

    pieces: list[str]
    items: list[int]


def documents(text: bytes) -> Iterator[Document]:
    """Read YAML documents one by one; :class:`YamlError` where the text does not parse or passes a limit."""
    if text.count(b"\n%TAG") > 100:  # libyaml compares each of them with all before it
        raise YamlError("", "more than 100 %TAG directives", "at most 100")
    reader, most = _YamlReader(text), yaml_documents_allowed(len(text))
    try:
        for number, document in enumerate(reader.documents()):
            if number >= most:
                raise YamlError("", f"more than {most} documents in {len(text)} bytes", f"at most {most}")
            yield document
    except yaml.YAMLError as error:
        raise _syntax(error, text) from None
    finally:
        reader.close()


#: What is expected where a text ends in the middle.
CUT_OFF = "to its end: write the file again if it is cut off"


def _indented_by_tab(text: bytes, line: int, column: int) -> bool:
    there = text.split(b"\n", line + 1)[line] if text.count(b"\n") >= line else b""
    indentation = there[: len(there) - len(there.lstrip(b" \t"))]
    return b"\t" in indentation and column <= len(indentation)


def _unprintable(error: yaml.reader.ReaderError, text: bytes) -> YamlError:
    character = ord(error.character) if isinstance(error.character, (str, bytes)) else error.character
    return YamlError(place(text, error.position), f"the character U+{character:04X}", "printable text")


def _syntax(error: yaml.YAMLError, text: bytes) -> YamlError:
    if isinstance(error, yaml.reader.ReaderError):
        return _unprintable(error, text)
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    where = f"line {mark.line + 1}, column {mark.column + 1}" if mark else ""
    if mark and _indented_by_tab(text, mark.line, mark.column):
        return YamlError(where, "a tab", "spaces: YAML is not indented by tabs")
    return _torn(error, where, mark is not None and _ends(text, mark.line, mark.column))


def _torn(error: yaml.YAMLError, where: str, at_end: bool) -> YamlError:
    problem, context = getattr(error, "problem", None), getattr(error, "context", None)
    words = shown(f"{problem or 'something unreadable'} {context or ''}".strip(), 180)
    if not at_end:
        return YamlError(where, f"text that is not YAML ({words})", "YAML")
    begun = getattr(error, "context_mark", None)
    began = f" that begins in line {begun.line + 1}" if begun else ""
    return YamlError(where, f"the end of the text ({words}{began})", f"YAML {CUT_OFF}")


def _ends(text: bytes, line: int, column: int) -> bool:
    lines = text.split(b"\n", line)
    return len(lines) <= line or not lines[line][column:].strip()


class _YamlReader:
    def __init__(self, text: bytes) -> None:
        self._loader = _Loader(text)
        self._get: Callable[[], _Event] = self._loader.get_event
        self._events_left = yaml_values_allowed(len(text))
        self._until_check = _EVENTS_PER_CHECK
        self._plain: dict[str, str] = {}
        self._keys: dict[str, str] = {}
        self._expanded_values = 0
        self._expanded_text = 0

    def close(self) -> None:
        self._loader.dispose()

    def documents(self) -> Iterator[Document]:
        while self._loader.check_event():
            event = self._get()
            if event.__class__ is yaml.DocumentStartEvent:
                self._out: list[str] = []
                self._items: list[int] = []
                self._anchors: dict[str, tuple[str, int]] = {}  # to text and number of values
                mark: Any = event.start_mark
                self._unit_start: int | None = mark.index
                self._value(self._get(), 0)
                self._get()
                yield Document([] if self._out == ["null"] else self._out, self._items)

    def _check(self, event: _Event) -> None:
        self._events_left -= _EVENTS_PER_CHECK - self._until_check
        self._until_check = _EVENTS_PER_CHECK
        if self._events_left < 0:
            raise self._error(event, "too many values for the length of the text", "fewer values, or longer ones")
        here = event.start_mark.index
        if self._unit_start is None:
            self._unit_start = here
        if here - self._unit_start > OBJECT_TEXT:
            raise self._error(event, f"an object of more than {OBJECT_TEXT >> 20} MiB", "a smaller object")

    def _error(self, event: _Event, found: str, expected: str) -> YamlError:
        mark = event.start_mark
        return YamlError(f"line {mark.line + 1}, column {mark.column + 1}", found, expected)

    # Values

    def _value(self, event: _Event, depth: int) -> None:
        kind = event.__class__
        start, expanded = len(self._out), self._expanded_values
        if kind is yaml.MappingStartEvent:
            self._mapping(event, depth + 1)
        elif kind is yaml.SequenceStartEvent:
            self._sequence(event, depth + 1)
        elif kind is yaml.ScalarEvent:
            self._out.append(self._scalar(event))
        else:
            self._alias(event)
            return
        if event.anchor is not None:
            pieces = self._out[start:]  # two to a value: its key or comma, and itself
            self._keep(event, "".join(pieces), max(1, len(pieces) // 2) + self._expanded_values - expanded)

    def _sequence(self, event: _Event, depth: int) -> None:
        if depth > DEEPEST or event.tag is not None:
            self._check_collection(event, depth, "seq")
        out, get, plain = self._out, self._get, self._plain
        start, count = len(out), 0
        out.append("[")
        while (event := get()).__class__ is not yaml.SequenceEndEvent:
            out.append(",")
            if event.__class__ is yaml.ScalarEvent and event.implicit[0] and event.anchor is None:
                out.append(plain.get(event.value) or self._resolve(event))
            else:
                self._value(event, depth)
            count += 1
            if not count & 1023:
                self._spend(1024, event)
        if count:
            out[start + 1] = ""  # the first comma is one too many
        out.append("]")
        self._spend(count & 1023, event)

    def _mapping(self, event: _Event, depth: int) -> None:
        if depth > DEEPEST or event.tag is not None:
            self._check_collection(event, depth, "map")
        out, get, plain = self._out, self._get, self._plain
        start, keys, merged = len(out), set[str](), None
        out.append("{")
        while (event := get()).__class__ is not yaml.MappingEndEvent:
            text = self._key(event, keys)
            if text is None:
                merged = self._merged(depth)
                continue
            out.append(text)
            event = get()
            if event.__class__ is yaml.ScalarEvent and event.implicit[0] and event.anchor is None:
                out.append(plain.get(event.value) or self._resolve(event))
            elif depth == 1:
                self._root_value(text, event)
            else:
                self._value(event, depth)
        self._end_mapping(start, keys, merged, event)

    def _end_mapping(self, start: int, keys: set[str], merged: str | None, event: _Event) -> None:
        if merged is not None:
            self._add_merged(merged, keys, event)
        if keys:
            self._out[start + 1] = self._out[start + 1][1:]  # the first comma is one too many
        self._out.append("}")
        self._spend(2 * len(keys), event)

    def _root_value(self, key: str, event: _Event) -> None:
        if key == ',"items":' and event.__class__ is yaml.SequenceStartEvent:
            self._root_items(event)
        else:
            self._value(event, 1)

    def _spend(self, events: int, event: _Event) -> None:
        self._until_check -= events + 2
        if self._until_check < 0:
            self._check(event)

    def _check_collection(self, event: _Event, depth: int, tag: str) -> None:
        if depth > DEEPEST:
            raise self._error(event, f"more than {DEEPEST} levels of nesting", f"at most {DEEPEST} levels")
        if event.tag not in ("!", _CORE + tag):
            raise self._error(event, f"the tag {shown(event.tag)}", "a tag of the core schema, or none")

    def _root_items(self, event: _Event) -> None:
        if event.tag is not None or event.anchor is not None:
            self._value(event, 1)
            return
        out, few_words = self._out, 0
        start = len(out)
        out.append("[")
        while (event := self._get()).__class__ is not yaml.SequenceEndEvent:
            out.append(",")
            item = len(out)
            self._value(event, 2)
            text = "".join(out[item:])
            if len(text) > OBJECT_TEXT:
                raise self._error(event, f"an object of more than {OBJECT_TEXT >> 20} MiB", "a smaller object")
            few_words += len(text) < _SMALLEST_OBJECT
            if few_words > _FEW_WORDS:
                raise self._error(event, f"more than {_FEW_WORDS} items that are no objects", "Kubernetes objects")
            out[item:] = [text]
            self._items.append(item)
            self._unit_start = None
        if self._items:
            out[start + 1] = ""
        out.append("]")

    # Scalars and keys

    def _scalar(self, event: _Event) -> str:
        if event.implicit[0]:
            return self._plain.get(event.value) or self._resolve(event)
        tag = (event.tag or "!").removeprefix(_CORE)
        if tag in ("!", "str"):
            return encode_basestring(event.value)
        pattern = _TAGGED.get(tag)
        if pattern is None:
            raise self._error(event, f"the tag {shown(event.tag)}", "a tag of the core schema, or none")
        text = self._resolve(event)
        if not pattern.fullmatch(text):
            raise self._error(event, shown(event.value), f"a value for the tag !!{tag}")
        return text

    def _resolve(self, event: _Event) -> str:
        try:
            text = scalar(event.value)
        except ValueError:
            raise self._error(event, shown(event.value), "a number that JSON can hold, or text in quotes") from None
        if len(event.value) <= 64 and len(self._plain) < _CACHED_SCALARS:
            self._plain[event.value] = text
        return text

    def _key(self, event: _Event, keys: set[str]) -> str | None:
        if event.__class__ is not yaml.ScalarEvent:
            what = "an alias" if event.__class__ is yaml.AliasEvent else "a list or a mapping"
            raise self._error(event, f"a key that is {what}", "a key that is a scalar")
        value = event.value
        if value in keys:
            expected = "each key once in a mapping"
            if value == "apiVersion":
                expected += ", and --- between two objects"
            raise self._error(event, f"the key {shown(value)!r} a second time", expected)
        keys.add(value)
        text = self._keys.get(value)
        if text is None or event.anchor is not None or event.tag is not None:
            return self._new_key(event, keys)
        return text

    def _new_key(self, event: _Event, keys: set[str]) -> str | None:
        value = event.value
        if event.anchor is not None:
            self._keep(event, encode_basestring(value), 1)
        if event.tag is not None:
            self._scalar(event)
        if value == "<<" and event.implicit[0]:
            return None
        text = f",{encode_basestring(value)}:"
        if len(value) <= 64 and len(self._keys) < _CACHED_SCALARS and value != "<<":
            self._keys[value] = text
        elif not len(keys) & 1023:  # only here can one mapping grow without an end
            self._spend(2048, event)
        return text

    # Anchors, aliases, merge keys

    def _keep(self, event: _Event, text: str, values: int) -> None:
        self._anchors[event.anchor] = text, values
        self._take_text(len(text), event)

    def _take_text(self, length: int, event: _Event) -> None:
        self._expanded_text += length
        if self._expanded_text > ALIAS_TEXT:
            found = f"anchors and aliases of more than {ALIAS_TEXT >> 20} MiB in all"
            raise self._error(event, found, "less text behind aliases")

    def _alias(self, event: _Event) -> None:
        anchored = self._anchors.get(event.anchor)
        if anchored is None:
            expected = "an anchor of that name, complete before the alias"
            raise self._error(event, f"the alias *{shown(event.anchor)}", expected)
        text, values = anchored
        self._expanded_values += values
        if self._expanded_values > ALIAS_VALUES:
            raise self._error(event, f"more than {ALIAS_VALUES} values behind aliases", f"at most {ALIAS_VALUES}")
        self._take_text(len(text), event)
        self._out.append(text)

    def _merged(self, depth: int) -> str:
        start = len(self._out)
        self._value(self._get(), depth)
        text = "".join(self._out[start:])
        del self._out[start:]
        return text

    def _add_merged(self, text: str, keys: set[str], event: _Event) -> None:
        """Of several merged mappings the first one decides, and the mapping's own keys before them."""
        several = msgspec.json.decode(text, type=list[msgspec.Raw]) if text.startswith("[") else [text.encode()]
        keys.discard("<<")
        for mapping in map(bytes, several):
            if not mapping.startswith(b"{"):
                raise self._error(event, "a merge key << with something else", "a mapping, or a list of mappings")
            for key, raw in msgspec.json.decode(mapping, type=dict[str, msgspec.Raw]).items():
                if key not in keys:
                    keys.add(key)
                    self._out.append(f",{encode_basestring(key)}:{bytes(raw).decode()}")
