"""Snapshots and Placements of passes in a folder, so that ``placer solve`` can decide the same again.

A pair is two files whose names begin with the time. Other files are not touched.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from placer.passes.cluster.reading.snapshot import Snapshot

__all__ = ["SavedPasses", "saved_placements"]

_SNAPSHOT, _PLACEMENT = "-snapshot.json.gz", "-placement.json"
_NAME = "%Y-%m-%dT%H-%M-%S.%fZ"


def saved_placements(folder: Path) -> dict[datetime, Path]:
    """Time of each pass in a folder to its Placement, oldest first."""
    return _of_kind(folder, _PLACEMENT)


def _of_kind(folder: Path, ending: str) -> dict[datetime, Path]:
    found: dict[datetime, Path] = {}
    for path in sorted(folder.glob(f"*{ending}")):
        with suppress(ValueError):
            found[datetime.strptime(path.name.removesuffix(ending), _NAME).replace(tzinfo=UTC)] = path
    return found


@dataclass(frozen=True, slots=True)
class SavedPasses:
    """A folder of pairs, and its limits."""

    folder: Path  #: exists and is writable
    keep: int | None = None  #: most pairs, at least 1; None: all
    #: Most bytes of all pairs; None: any. The newest pair is always kept.
    keep_bytes: int | None = None

    def save(self, snapshot: Snapshot, placement: dict[str, Any]) -> list[str]:
        """Write a pair, then remove the oldest beyond the limits; the names of the two files.

        Raises
        ------
        OSError
            It cannot be written; no part of it is left.
        """
        from placer.kube.manifests import dump

        name = datetime.now(UTC).strftime(_NAME)
        pair = (self.folder / f"{name}{_SNAPSHOT}", self.folder / f"{name}{_PLACEMENT}")
        try:
            snapshot.write(pair[0])
            dump(placement, pair[1])
            self._prune()
        except OSError:
            for path in pair:
                with suppress(OSError):
                    path.unlink(missing_ok=True)
            raise
        return [str(path) for path in pair]

    def _prune(self) -> None:
        taken, pairs = 0, sorted(_of_kind(self.folder, _SNAPSHOT).items(), reverse=True)
        for newer, (_, snapshot) in enumerate(pairs):
            pair = snapshot, self.folder / f"{snapshot.name.removesuffix(_SNAPSHOT)}{_PLACEMENT}"
            taken += sum(path.stat().st_size for path in pair if path.exists())
            too_many = self.keep is not None and newer >= self.keep
            too_large = self.keep_bytes is not None and taken > self.keep_bytes
            if newer and (too_many or too_large):
                for path in pair:
                    path.unlink(missing_ok=True)
