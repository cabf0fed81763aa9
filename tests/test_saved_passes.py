"""Pairs of snapshot and Placement in a folder: the newest stay, other files are left alone."""

from __future__ import annotations

import errno
from pathlib import Path
from typing import Any

import pytest

from placer.passes.cluster.reading.snapshot import Snapshot
from placer.passes.saved_passes import SavedPasses
from tests.cluster.snapshots import snapshot_of
from tests.support import node


@pytest.fixture
def snapshot() -> Snapshot:
    return snapshot_of([node("n1")])


def pairs(folder: Path) -> list[str]:
    """Names of the snapshots, in order; each has its Placement."""
    names = sorted(path.name.removesuffix("-snapshot.json.gz") for path in folder.glob("*-snapshot.json.gz"))
    assert names == sorted(path.name.removesuffix("-placement.json") for path in folder.glob("*-placement.json"))
    return names


def test_without_a_limit_all_are_kept(snapshot: Snapshot, tmp_path: Path) -> None:
    saved = [SavedPasses(tmp_path).save(snapshot, {"kind": "Placement"}) for _ in range(3)]
    assert sorted(path for pair in saved for path in pair) == sorted(map(str, tmp_path.iterdir()))


def test_the_oldest_go(snapshot: Snapshot, tmp_path: Path) -> None:
    strange = tmp_path / "2026-snapshot.json.gz"
    strange.write_text("of the user")
    kept = SavedPasses(tmp_path, keep=2)
    names = [Path(kept.save(snapshot, {})[0]).name.removesuffix("-snapshot.json.gz") for _ in range(4)]
    strange_kept = strange.read_text()
    strange.unlink()
    assert (pairs(tmp_path), strange_kept) == (names[2:], "of the user")


def test_bytes_are_limited_and_the_newest_stays_whatever_its_size(snapshot: Snapshot, tmp_path: Path) -> None:
    SavedPasses(tmp_path).save(snapshot, {})
    size = sum(path.stat().st_size for path in tmp_path.iterdir())
    for _ in range(3):
        SavedPasses(tmp_path, keep_bytes=2 * size + size // 2).save(snapshot, {})
    assert len(pairs(tmp_path)) == 2
    SavedPasses(tmp_path, keep_bytes=1).save(snapshot, {})
    assert len(pairs(tmp_path)) == 1


def test_what_cannot_be_written_leaves_nothing_behind(
    snapshot: Snapshot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_document: Any, target: Path) -> None:
        target.write_text("half")
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("placer.kube.manifests.dump", full)
    with pytest.raises(OSError, match="No space left"):
        SavedPasses(tmp_path).save(snapshot, {})
    assert list(tmp_path.iterdir()) == []
