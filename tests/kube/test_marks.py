"""The table of marks: every row has a reader or a test, and each mark stands in it once."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

import placer
from placer.kube import marks
from placer.kube.marks import MARKS, Mark, Meaning, Place

ROOT = Path(placer.__file__).parent
#: What reads marks: all of the package but the table.
READERS = [path.read_text() for path in ROOT.rglob("*.py") if path != ROOT / "kube" / "marks.py"]
TESTS = [
    path.read_text() for path in (ROOT.parent / "tests").rglob("*.py") if path.resolve() != Path(__file__).resolve()
]
#: What the names of marks are called in the table.
CALLED = {value: name for name, value in vars(marks).items() if name.isupper() and isinstance(value, str)}
GANGS = [
    mark
    for mark in MARKS
    if mark.meaning in (Meaning.GANG, Meaning.REFUSED)
    and mark.name not in (*marks.SHARES, *marks.SLICES, *marks.KAI_TOPOLOGIES)
]


@pytest.mark.parametrize("mark", GANGS, ids=lambda mark: f"{mark.place.value} {mark.name}")
def test_every_mark_of_a_gang_has_a_reader_or_a_test(mark: Mark) -> None:
    called = CALLED.get(mark.name, mark.name)
    kind = mark.on[0] if mark.place is Place.KIND else called
    words = (called, mark.name, kind, mark.name.rpartition("/")[2])
    assert any(word in text for text in READERS for word in words[:3]) or any(f"/{words[3]}" in text for text in TESTS)


def test_every_mark_stands_once_in_the_table() -> None:
    counted = Counter((mark.name, mark.place, kind) for mark in MARKS for kind in mark.on)
    assert [each for each, count in counted.items() if count > 1] == []


def test_snapshots_keep_every_annotation_that_is_a_mark() -> None:
    from placer.cluster.reading.field_filter import is_kept

    assert [mark.name for mark in MARKS if mark.place is Place.ANNOTATION and not is_kept(mark.name)] == []
