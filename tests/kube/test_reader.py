"""The two looks of a reader never differ: what msgspec reads, the validator that names faults reads alike."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import msgspec
import pytest

from placer.kube.kinds import KINDS, KindInfo
from placer.kube.manifests import read_texts, split
from placer.kube.reader import Misfit, SchemaReader, is_closed
from placer.lab.generate import generate

ROOT = Path(__file__).parent.parent.parent
SOURCES = (ROOT / "tests" / "data" / "samples", ROOT / "instances" / "tiny", ROOT / "instances" / "network")

#: What a mutation puts in place of a value: right in some places, wrong in most.
JUNK: tuple[Any, ...] = (
    *(None, True, 0, -1, 1.0, 1.5, 2**31, 2**70, 1e300, "", "x", "1", "500m", "-2Gi", "a\x1bb", "x" * 300),
    *([], [None], ["x"], {}, {"x": 1}, {"cpu": "1"}, {"x": None}, [{}], [[]]),
    *("2026-01-31T12:00:00Z", "2026-01-31T12:00:00", "2026-01-31 12:00:00+02:00", "hard", "In", "Exists", "Pending"),
)


def documents() -> Iterator[dict[str, Any]]:
    """Objects of every kind that is read."""
    paths = [path for source in SOURCES for path in sorted(source.rglob("*.yaml"))]
    for raw in split(read_texts(paths)):
        if raw.info is not None:
            yield msgspec.json.decode(raw.text, type=dict[str, Any])
    yield from list(generate("planted", nodes=12, seed=5, pod_sizes=(1, 2, 4, 8), overfull=0.5).documents)[::20]
    yield from list(generate("numa", nodes=3, seed=1).documents)[::5]


def places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every container and key of a document."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in list(items):
        yield value, key
        yield from places(inner)


def mutants() -> Iterator[dict[str, Any]]:
    chance = Random(0)
    for document in documents():
        yield document
        for _ in range(12):
            mutant = copy.deepcopy(document)
            holder, key = chance.choice(list(places(mutant)))
            if isinstance(holder, dict) and chance.random() < 0.2:
                del holder[key]
            else:
                holder[key] = chance.choice(JUNK)
            yield mutant


@cache
def reader_of(info: KindInfo) -> SchemaReader[Any]:
    return SchemaReader(info.model)


def test_what_the_first_look_reads_the_second_reads_alike() -> None:
    outcomes = {True: 0, False: 0}
    for document in mutants():
        info = KINDS.get((str(document.get("apiVersion")).rpartition("/")[0], str(document.get("kind"))))
        if info is None or is_closed(info.model):
            continue
        reader, text = reader_of(info), json.dumps(document).encode()
        try:
            found = reader._decode(text)
        except msgspec.DecodeError:
            outcomes[False] += 1
            continue
        outcomes[True] += 1
        assert reader._look_again(text) == found, document
    assert min(outcomes.values()) > 500


def test_every_fault_of_an_object_is_found_at_once() -> None:
    metadata = {"name": "a\x1b", "namespace": "b\x07", "labels": {"x": 1}, "creationTimestamp": "soon"}
    text = json.dumps({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"priority": 2**40}}).encode()
    with pytest.raises(Misfit) as caught:
        KINDS["", "Pod"].read(text)
    assert caught.value.count == 5
    assert [detail["loc"][-1] for detail in caught.value.details()] == [
        *("name", "namespace", "x", "creationTimestamp", "priority")
    ]
