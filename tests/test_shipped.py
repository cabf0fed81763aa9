"""Shipped instances are what their READMEs say, made by the commands that stand there."""

from __future__ import annotations

import gzip
import re
import shlex
from pathlib import Path

import pytest

from placer.cli import main
from placer.instance.build import build
from placer.manifests import load
from placer.read import read_placement
from placer.verify import verify

INSTANCES = Path(__file__).parent.parent / "instances"
COMMANDS = re.findall(r"^    (placer generate .*)$", (INSTANCES / "planted" / "README.md").read_text(), re.MULTILINE)
PLANTED = sorted((INSTANCES / "planted").glob("*.planted.*"))


def content(path: Path) -> bytes:
    return gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()


@pytest.mark.parametrize("command", COMMANDS)
def test_the_command_makes_the_file(command: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(shlex.split(command)[1:]) == 0
    made = sorted(tmp_path.iterdir())
    assert len(made) == 2
    for path in made:
        assert content(path) == content(INSTANCES / "planted" / path.name)


def test_every_planted_file_has_its_command() -> None:
    named = {shlex.split(command)[-1] for command in COMMANDS}
    assert named == {path.name.replace(".planted.", ".") for path in PLANTED}


@pytest.mark.parametrize("path", PLANTED, ids=lambda path: path.name)
def test_what_is_planted_is_everything_and_breaks_nothing(path: Path) -> None:
    instance = build(load([path.with_name(path.name.replace(".planted.", "."))]))
    placement = read_placement(path)
    assert instance.findings == ()
    assert {binding.pod for binding in placement.bindings} == {pod.key for pod in instance.pending}
    assert list(verify(instance, placement)) == []


def test_online_boutique_is_twelve_pods_that_can_be_placed() -> None:
    instance = build(load([INSTANCES / "online-boutique"]))
    assert len(instance.pending) == 12
    assert "cartservice-0" in {pod.name for pod in instance.pending}
    assert not any(pod.unsupported for pod in instance.pending)
    assert instance.findings == ()
    assert instance.skipped == {"v1 Service": 12, "v1 ServiceAccount": 11}


def test_the_index_tells_the_sizes() -> None:
    rows = re.findall(r"^\| `([^`]+)` \| ([\d,]+) \| ([\d,]+) \|", (INSTANCES / "README.md").read_text(), re.MULTILINE)
    assert len(rows) == len(PLANTED) + 2
    for name, nodes, pods in rows:
        instance = build(load([INSTANCES / name]))
        assert (f"{len(instance.nodes):,}", f"{len(instance.pending):,}") == (nodes, pods)
