"""YAML to JSON text, event by event: what no rule reads never becomes a Python value.

The parser is libyaml by way of PyYAML, taken for its events only. kubectl's own parser is a port of libyaml, so the two
agree on what is YAML; it is well kept, it has line and column for every error, and as events it reads 14 MB of kubectl
output in a second where loading it into Python values does 1.5. Parsers in Rust and C++ are faster but build the whole
tree before anything can be counted or refused, resolve scalars in ways of their own, and are young (measured on that
text: py-yaml12 0.2.0 22 MB/s, yaml-rs 0.1.6 43 MB/s, rapidyaml 0.15.2 138 MB/s to a tree of its own).

What scalars mean is decided in ``scalars``. Merge keys (``<<``) work as in kubectl. Aliases are counted before they are
expanded. Two equal keys in a mapping, keys that are not scalars, and tags beyond those of the core schema are faults.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from json.encoder import encode_basestring
from typing import Any

import msgspec
import yaml

from placer.manifests.jsontext import place
from placer.manifests.limits import (
    ALIAS_NODES,
    ALIAS_TEXT,
    DOCUMENTS,
    LEVELS,
    OBJECT_TEXT,
    shown,
    yaml_values_allowed,
)
from placer.manifests.scalars import scalar

__all__ = ["Document", "YamlError", "documents"]

#: PyYAML's stubs make every mark and tag optional, which would need a check for each event.
_Event = Any
_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_TAG_DIRECTIVE = re.compile(rb"^%TAG", re.MULTILINE)
_CORE = "tag:yaml.org,2002:"
#: What JSON text of a tagged scalar must look like, by tag.
_TAGGED = {
    "null": re.compile("null"),
    "bool": re.compile("true|false"),
    "int": re.compile(r"-?\d+"),
    "float": re.compile(r"-?\d.*"),
}
_EVENTS_PER_CHECK = 4096
_CACHED_SCALARS = 100_000


class YamlError(Exception):
    """Text that is not YAML, or YAML that is not read: ``place``, ``found`` and ``expected`` make the fault."""

    def __init__(self, place: str, found: str, expected: str) -> None:
        super().__init__(place, found, expected)
        self.place = place
        self.found = found
        self.expected = expected


@dataclass(frozen=True, slots=True)
class Document:
    """One document as JSON text.

    Parameters
    ----------
    pieces
        Pieces of JSON text that make the document when they are put together; empty where the document is.
    items
        Indexes of those pieces that are whole elements of the list ``items`` at the root.
    """

    pieces: list[str]
    items: list[int]


def documents(text: bytes) -> Iterator[Document]:
    """Read YAML documents one by one.

    Parameters
    ----------
    text
        UTF-8 text.

    Yields
    ------
    Document
        In the order of the text.

    Raises
    ------
    YamlError
        The text does not parse or passes a limit; the documents before that place have been yielded.
    """
    if len(_TAG_DIRECTIVE.findall(text)) > 100:  # libyaml compares each of them with all before it
        raise YamlError("", "more than 100 %TAG directives", "at most 100")
    reader = _Reader(text)
    try:
        for number, document in enumerate(reader.documents()):
            if number >= DOCUMENTS:
                raise YamlError("", f"more than {DOCUMENTS} documents", f"at most {DOCUMENTS} documents")
            yield document
    except yaml.YAMLError as error:
        raise _syntax(error, text) from None
    finally:
        reader.close()


def _syntax(error: yaml.YAMLError, text: bytes) -> YamlError:
    """Put an error of the parser into words."""
    if isinstance(error, yaml.reader.ReaderError):
        character = ord(error.character) if isinstance(error.character, (str, bytes)) else error.character
        return YamlError(place(text, error.position), f"the character U+{character:04X}", "printable text")
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    where = f"line {mark.line + 1}, column {mark.column + 1}" if mark else ""
    problem = getattr(error, "problem", None) or "something unreadable"
    context = getattr(error, "context", None)
    return YamlError(where, shown(f"text that is not YAML ({problem} {context or ''}".strip(), 200) + ")", "YAML")


class _Frame:
    """A collection that is being read."""

    __slots__ = ("anchor", "first", "hook", "is_map", "key", "keys", "merged", "nodes", "start", "wants_key")

    def __init__(self, start: int, nodes: int, anchor: str | None, *, is_map: bool) -> None:
        self.start = start
        self.nodes = nodes
        self.anchor = anchor
        self.is_map = is_map
        self.wants_key = is_map
        self.first = True
        self.key = ""
        self.keys: set[str] = set()
        #: Called with the frame and the start of each value once that is complete; None for most collections.
        self.hook: Any = None
        self.merged: list[str] = []


@dataclass(frozen=True, slots=True)
class _Anchored:
    text: str
    nodes: int


class _Reader:
    """Turns the events of one text into JSON text."""

    def __init__(self, text: bytes) -> None:
        self._loader = _Loader(text)
        self._events_left = yaml_values_allowed(len(text))
        self._handlers: dict[type, Callable[[_Event], None]] = {
            yaml.ScalarEvent: self._scalar,
            yaml.MappingStartEvent: self._start_mapping,
            yaml.MappingEndEvent: self._end_mapping,
            yaml.SequenceStartEvent: self._start_sequence,
            yaml.SequenceEndEvent: self._end_sequence,
            yaml.AliasEvent: self._alias,
        }
        self._plain: dict[str, str] = {}
        self._keys: dict[str, str] = {}
        self._expanded_nodes = 0
        self._expanded_text = 0

    def close(self) -> None:
        """Let the parser go."""
        self._loader.dispose()

    def documents(self) -> Iterator[Document]:
        """Read all documents."""
        while self._loader.check_event():
            event = self._loader.get_event()
            if event.__class__ is yaml.DocumentStartEvent:
                yield self._document(event)

    def _document(self, event: _Event) -> Document:
        self._out: list[str] = []
        self._items: list[int] = []
        self._stack: list[_Frame] = []
        self._frame = _Frame(0, 0, None, is_map=False)
        self._anchors: dict[str, _Anchored] = {}
        self._nodes = 0
        self._unit_start: int | None = event.start_mark.index
        get, handlers, end = self._loader.get_event, self._handlers, yaml.DocumentEndEvent
        until_check = _EVENTS_PER_CHECK
        while True:
            event = get()
            if event.__class__ is end:
                break
            handlers[event.__class__](event)
            until_check -= 1
            if not until_check:
                until_check = self._check(event)
        return Document([] if self._out == ["null"] else self._out, self._items)

    def _check(self, event: _Event) -> int:
        """See now and then that neither the text nor the object at hand grows beyond its limit."""
        self._events_left -= _EVENTS_PER_CHECK
        if self._events_left < 0:
            raise self._error(event, "too many values for the length of the text", "one value in eight bytes or fewer")
        here = event.start_mark.index
        if self._unit_start is None:
            self._unit_start = here
        if here - self._unit_start > OBJECT_TEXT:
            raise self._error(event, f"an object of more than {OBJECT_TEXT >> 20} MiB", "a smaller object")
        return _EVENTS_PER_CHECK

    def _error(self, event: _Event, found: str, expected: str) -> YamlError:
        mark = event.start_mark
        return YamlError(f"line {mark.line + 1}, column {mark.column + 1}", found, expected)

    def _scalar(self, event: _Event) -> None:
        frame = self._frame
        if frame.wants_key:
            self._key(frame, event)
            return
        if frame.is_map:
            frame.wants_key = True
        elif frame.first:
            frame.first = False
        else:
            self._out.append(",")
        value = event.value
        if event.implicit[0]:
            text = self._plain.get(value) or self._resolve(event)
        else:
            text = encode_basestring(value) if event.tag is None else self._tagged(event)
        self._out.append(text)
        self._nodes += 1
        if event.anchor is not None:
            self._keep(event.anchor, text, 1, event)
        if frame.hook is not None:
            frame.hook(frame, len(self._out) - 1, event)

    def _resolve(self, event: _Event) -> str:
        try:
            text = scalar(event.value)
        except ValueError:
            raise self._error(event, shown(event.value), "a number that JSON can hold, or text in quotes") from None
        if len(event.value) <= 64 and len(self._plain) < _CACHED_SCALARS:
            self._plain[event.value] = text
        return text

    def _tagged(self, event: _Event) -> str:
        tag = event.tag.removeprefix(_CORE)
        if tag in ("!", "str"):
            return encode_basestring(event.value)
        pattern = _TAGGED.get(tag)
        if pattern is None:
            raise self._error(event, f"the tag {shown(event.tag)}", "a tag of the core schema, or none")
        text = self._resolve(event)
        if not pattern.fullmatch(text):
            raise self._error(event, shown(event.value), f"a value for the tag !!{tag}")
        return text

    def _key(self, frame: _Frame, event: _Event) -> None:
        value = event.value
        frame.wants_key = False
        frame.key = value
        if value in frame.keys:
            raise self._error(event, f"the key {shown(value)!r} a second time", "each key once in a mapping")
        frame.keys.add(value)
        if value == "<<" and event.implicit[0]:
            frame.hook = self._merge
            return
        if event.tag is not None:
            self._tagged(event)
        if event.anchor is not None:
            self._keep(event.anchor, encode_basestring(value), 1, event)
        text = self._keys.get(value)
        if text is None:
            text = f",{encode_basestring(value)}:"
            if len(value) <= 64 and len(self._keys) < _CACHED_SCALARS:
                self._keys[value] = text
        self._out.append(text[1:] if frame.first else text)
        frame.first = False

    def _start(self, event: _Event, bracket: str, tag: str, *, is_map: bool) -> None:
        frame, out = self._frame, self._out
        if frame.wants_key:
            raise self._error(event, "a key that is a list or a mapping", "a key that is a scalar")
        if len(self._stack) >= LEVELS:
            raise self._error(event, f"more than {LEVELS} levels of nesting", f"at most {LEVELS} levels")
        if event.tag is not None and event.tag not in ("!", _CORE + tag):
            raise self._error(event, f"the tag {shown(event.tag)}", "a tag of the core schema, or none")
        if frame.is_map:
            frame.wants_key = True
        elif frame.first:
            frame.first = False
        else:
            out.append(",")
        self._stack.append(frame)
        self._frame = _Frame(len(out), self._nodes, event.anchor, is_map=is_map)
        self._nodes += 1
        out.append(bracket)

    def _start_mapping(self, event: _Event) -> None:
        self._start(event, "{", "map", is_map=True)

    def _start_sequence(self, event: _Event) -> None:
        at_root = len(self._stack) == 1 and self._frame.is_map and self._frame.key == "items"
        self._start(event, "[", "seq", is_map=False)
        if at_root and self._stack[-1].hook is None:
            self._frame.hook = self._item

    def _end_mapping(self, event: _Event) -> None:
        if self._frame.merged:
            self._add_merged(self._frame, event)
        self._end(event, "}")

    def _end_sequence(self, event: _Event) -> None:
        self._end(event, "]")

    def _end(self, event: _Event, bracket: str) -> None:
        frame = self._frame
        self._out.append(bracket)
        if frame.anchor is not None:
            self._keep(frame.anchor, "".join(self._out[frame.start :]), self._nodes - frame.nodes, event)
        self._frame = parent = self._stack.pop()
        if parent.hook is not None:
            parent.hook(parent, frame.start, event)

    def _item(self, _frame: _Frame, start: int, event: _Event) -> None:
        """Put the pieces of a complete element of ``items`` together."""
        text = "".join(self._out[start:])
        if len(text) > OBJECT_TEXT:
            raise self._error(event, f"an object of more than {OBJECT_TEXT >> 20} MiB", "a smaller object")
        self._out[start:] = [text]
        self._items.append(start)
        self._unit_start = None

    def _keep(self, anchor: str, text: str, nodes: int, event: _Event) -> None:
        self._anchors[anchor] = _Anchored(text, nodes)
        self._take_text(len(text), event)

    def _take_text(self, length: int, event: _Event) -> None:
        self._expanded_text += length
        if self._expanded_text > ALIAS_TEXT:
            found = f"anchors and aliases of more than {ALIAS_TEXT >> 20} MiB in all"
            raise self._error(event, found, "less text behind aliases")

    def _alias(self, event: _Event) -> None:
        frame = self._frame
        anchored = self._anchors.get(event.anchor)
        if frame.wants_key:
            raise self._error(event, "a key that is an alias", "a key that is a scalar")
        if anchored is None:
            expected = "an anchor of that name, complete before the alias"
            raise self._error(event, f"the alias *{shown(event.anchor)}", expected)
        self._expanded_nodes += anchored.nodes
        if self._expanded_nodes > ALIAS_NODES:
            raise self._error(event, f"more than {ALIAS_NODES} values behind aliases", f"at most {ALIAS_NODES}")
        self._take_text(len(anchored.text), event)
        if frame.is_map:
            frame.wants_key = True
        elif frame.first:
            frame.first = False
        else:
            self._out.append(",")
        self._out.append(anchored.text)
        self._nodes += anchored.nodes
        if frame.hook is not None:
            frame.hook(frame, len(self._out) - 1, event)

    def _merge(self, frame: _Frame, start: int, _event: _Event) -> None:
        """Set the complete value of a merge key aside."""
        frame.merged.append("".join(self._out[start:]))
        del self._out[start:]
        frame.hook = None

    def _add_merged(self, frame: _Frame, event: _Event) -> None:
        """Write the merged keys that the mapping does not have itself; of several mappings the first wins."""
        for text in frame.merged:
            if text.startswith("["):
                for raw in msgspec.json.decode(text, type=list[msgspec.Raw]):
                    self._merge_one(frame, bytes(raw), event)
            else:
                self._merge_one(frame, text.encode(), event)

    def _merge_one(self, frame: _Frame, text: bytes, event: _Event) -> None:
        if not text.startswith(b"{"):
            raise self._error(event, "a merge key << with something else", "a mapping, or a list of mappings, to merge")
        for key, raw in msgspec.json.decode(text, type=dict[str, msgspec.Raw]).items():
            if key not in frame.keys:
                frame.keys.add(key)
                comma = "" if frame.first else ","
                frame.first = False
                self._out.append(f"{comma}{encode_basestring(key)}:{bytes(raw).decode()}")
