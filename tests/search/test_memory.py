"""What memory a container has left, by the files of both versions of control groups."""

from __future__ import annotations

from pathlib import Path

import pytest

from placer.search.memory import memory_left, memory_limit


def write(folder: Path, **files: str) -> None:
    """Write files; ``__`` in a name stands for a dot."""
    folder.mkdir(exist_ok=True)
    for name, text in files.items():
        (folder / name.replace("__", ".")).write_text(text)


def test_version_2_counts_without_what_is_given_back_first(tmp_path: Path) -> None:
    write(tmp_path, memory__max="1000\n", memory__current="700\n", memory__stat="anon 500\ninactive_file 150\n")
    assert memory_left(tmp_path) == 450


def test_version_1(tmp_path: Path) -> None:
    statistics = "cache 9\ntotal_inactive_file 20\n"
    write(tmp_path / "memory", memory__limit_in_bytes="100", memory__usage_in_bytes="130", memory__stat=statistics)
    assert memory_left(tmp_path) == 0


@pytest.mark.parametrize("limit", ["max", "", "9223372036854771712"])
def test_without_a_limit_nothing_is_said(tmp_path: Path, limit: str) -> None:
    write(tmp_path, memory__max=limit, memory__current="1", memory__stat="")
    assert memory_left(tmp_path) is None
    assert memory_left(tmp_path / "absent") is None


def test_the_limit_of_the_container_counts_and_never_more_than_the_machine_has(tmp_path: Path) -> None:
    machine = memory_limit(tmp_path)
    assert machine > 2**20
    (tmp_path / "memory.max").write_text("max\n")
    assert memory_limit(tmp_path) == machine
    (tmp_path / "memory.max").write_text("1048576\n")
    assert memory_limit(tmp_path) == 2**20
    (tmp_path / "memory.max").unlink()
    (tmp_path / "memory").mkdir()
    (tmp_path / "memory" / "memory.limit_in_bytes").write_text("9223372036854771712\n")
    assert memory_limit(tmp_path) == machine
