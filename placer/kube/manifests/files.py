"""Files, folders and standard input to texts, unpacked within the limits."""

from __future__ import annotations

import io
import os
import sys
import zlib
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import chain
from pathlib import Path
from typing import BinaryIO

from placer.base.errors import Fault
from placer.base.text import found_like, shown
from placer.kube.base import Problem
from placer.kube.manifests.faults import Faults
from placer.kube.manifests.syntax import BOM, Text, looks_like_json

STDIN = "-"
_SUFFIXES = (".yaml", ".yml", ".json", ".yaml.gz", ".yml.gz", ".json.gz")
_PIECE = 2**20
#: Bytes of text in all, unpacked.
JSON_TEXT = 2 * 2**30
YAML_TEXT = 256 * 2**20
#: Packed text may come to so many times its size, once it is longer than the second figure; deflate gets to 1,032, and
#: 55,000 equal pods stay below 150.
UNPACKED_TIMES = 300
UNPACKED_FREE = 64 * 2**20


#: Whether text is JSON to the bytes of it that are left.
_Budget = dict[bool, int]


def read_texts(paths: Sequence[str | Path | Text], faults: Faults | None = None) -> list[Text]:
    """Read files, folders and standard input: one text for each file that could be read.

    ``faults``: takes the faults, else they raise :class:`BadInstance`.
    """
    log = Faults() if faults is None else faults
    budget = {True: JSON_TEXT, False: YAML_TEXT}
    texts = []
    for name, found in _files(paths, log):
        try:
            texts.append(name if isinstance(name, Text) else Text(name, _read(name, budget), found))
        except Problem as refusal:
            log.add(Fault(shown(str(name), 400), None, "", "", refusal.found or "", refusal.expected))
        except OSError as error:
            log.add(Fault(shown(str(name), 400), None, "", "", _trouble(error), _readable(str(name))))
    if faults is None:
        log.raise_any()
    return texts


def _files(paths: Iterable[str | Path | Text], faults: Faults) -> Iterator[tuple[str | Text, bool]]:
    for each in paths:
        path = str(each)
        if isinstance(each, Text) or path == STDIN or not os.path.isdir(path):
            yield (each if isinstance(each, Text) else path), False
            continue
        found = sorted(_in_folder(path, faults))
        yield from ((name, True) for name in found)
        if not found:
            expected = "a folder with .yaml, .yml or .json files"
            faults.add(Fault(shown(path, 400), None, "", "", "no such file in it", expected))


def _in_folder(folder: str, faults: Faults) -> Iterator[str]:
    def unreadable(error: OSError) -> None:
        name = str(error.filename)
        faults.add(Fault(shown(name, 400), None, "", "", _trouble(error), "a folder that can be read"))

    for root, _, names in os.walk(folder, onerror=unreadable):
        yield from (os.path.join(root, name) for name in names if name.lower().endswith(_SUFFIXES))


def _read(name: str, budget: _Budget) -> bytearray:
    if name == STDIN:
        data = _take(sys.stdin.buffer, budget)
    else:
        with open(name, "rb") as file:
            data = _take(file, budget)
    _check_encoding(data)
    if data.startswith(BOM):
        del data[: len(BOM)]
    budget[looks_like_json(data)] -= len(data)
    return data


def _take(file: BinaryIO | io.BufferedIOBase, budget: _Budget) -> bytearray:
    data = bytearray()
    first = file.read(_PIECE)
    rest = iter(partial(file.read, _PIECE), b"")
    pieces = _unpacked(first, file) if first[:2] == b"\x1f\x8b" else chain((first,), rest)
    is_json = False
    for piece in pieces:
        data += piece
        is_json = is_json or looks_like_json(data[:_PIECE])
        if len(data) > budget[is_json]:
            kind, limit = ("JSON", "2 GiB") if is_json else ("YAML", "256 MiB")
            raise Problem(f"at most {limit} of {kind}, unpacked", f"more than {limit} of {kind} in all")
    return data


def _unpacked(first: bytes, file: BinaryIO | io.BufferedIOBase) -> Iterator[bytes]:
    member, packed = zlib.decompressobj(wbits=31), first
    taken, given = len(first), 0
    try:
        while packed or not member.eof:
            piece = member.decompress(packed, _PIECE)
            packed = member.unused_data + member.unconsumed_tail  # one of them is empty
            yield piece
            if not packed:
                packed = file.read(_PIECE)
                taken += len(packed)
            given += len(piece)
            if given > UNPACKED_FREE + taken * UNPACKED_TIMES:
                raise Problem("less of it", f"text of more than {UNPACKED_TIMES} times the size it is packed in")
            if member.eof:
                packed = _skip_padding(packed, file)
                member = zlib.decompressobj(wbits=31) if packed else member
            elif not packed and not piece:
                raise Problem("a whole gzip file", "a gzip file that ends too early")
    except zlib.error as error:
        raise Problem("a whole gzip file", f"a damaged gzip file ({error})") from None


def _skip_padding(packed: bytes, file: BinaryIO | io.BufferedIOBase) -> bytes:
    """Zeros may follow a member of a gzip file."""
    rest = packed.lstrip(b"\0")
    while packed and not rest:
        packed = file.read(_PIECE)
        rest = packed.lstrip(b"\0")
    return rest


def _check_encoding(data: bytearray) -> None:
    with memoryview(data) as view:
        start = 0
        while start < len(view):
            stop = min(start + 16 * _PIECE, len(view))
            while stop < len(view) and view[stop] & 0xC0 == 0x80 and stop - start > _PIECE:
                stop -= 1  # do not cut a character in two
            try:
                str(view[start:stop], "utf-8")
            except UnicodeDecodeError as error:
                place = start + error.start
                line = data.count(b"\n", 0, place) + 1
                found = f"byte 0x{view[place]:02x} at line {line}, which is not UTF-8"
                raise Problem("text in UTF-8", found) from None
            start = stop


def _readable(name: str) -> str:
    """A noun that follows *expected*, with the file next to it that may be meant."""
    folder, last = os.path.split(name)
    there = next(os.walk(folder or "."), ("", [], []))[2]  # empty where the folder cannot be read
    return "a file that can be read" + found_like(last, (each for each in there if each.lower().endswith(_SUFFIXES)))


def _trouble(error: OSError) -> str:
    """A noun that follows *found*."""
    return "no such file" if isinstance(error, FileNotFoundError) else (error.strerror or str(error)).lower()
