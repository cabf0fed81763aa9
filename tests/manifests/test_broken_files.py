"""Every broken file gives exactly the faults that stand beside it."""

from __future__ import annotations

from pathlib import Path

import pytest

from placer.base.errors import BadInstance
from placer.kube import manifests

BROKEN = Path(__file__).parent.parent / "data" / "broken"
FILES = sorted(path for path in BROKEN.iterdir() if path.suffix in (".yaml", ".json"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_faults(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(BROKEN)
    with pytest.raises(BadInstance) as caught:
        manifests.load([path.name])
    assert [str(fault) for fault in caught.value.faults] == Path(f"{path.name}.txt").read_text().splitlines()


def test_all_files_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(BROKEN)
    with pytest.raises(BadInstance) as caught:
        manifests.load(["."])
    own = {fault.file for fault in caught.value.faults}
    assert own == {f"./{path.name}" for path in FILES}
    assert caught.value.exit_code == 3
