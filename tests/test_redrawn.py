"""Instances drawn from those of ``instances/hard/``: what is known of them is true, and a seed says what they are."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from placer.problem.placement import Placement
from placer.problem.reading import read, read_placement
from placer.rules import verify
from placer.rules.scoring import placed_weight
from tests.benchmarks.redrawn import main
from tests.examples import exhaustive

#: Nodes of each family, and HyperNodes: spines with their leaves below one core.
SIZES = {
    "hetero-s": (128, 37),
    "odd-s": (256, 37),
    "mixed-s": (512, 69),
    "hetero-m": (1024, 137),
    "odd-m": (1024, 137),
    "mixed-l": (4096, 529),
}


def run(monkeypatch: pytest.MonkeyPatch, *words: str | Path) -> None:
    monkeypatch.setattr(sys, "argv", ["redrawn", *map(str, words)])
    main()


@pytest.mark.parametrize("name", ["hetero-s", "odd-s", "mixed-s", *exhaustive("hetero-m", "odd-m", "mixed-l")])
def test_the_placement_beside_it_is_valid_and_places_everything(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run(monkeypatch, "-o", tmp_path, "--seeds", "3", "--like", name)
    target = tmp_path / f"{name}-3.json.gz"
    assert {path.name for path in tmp_path.iterdir()} == {target.name, f"{name}-3.best.json.gz"}
    instance = read(target, strict=True)
    placement = read_placement(tmp_path / f"{name}-3.best.json.gz")
    assert (len(instance.nodes), len(instance.topology.hyper_nodes)) == SIZES[name]
    assert instance.pending
    assert {binding.pod for binding in placement.bindings} == {pod.key for pod in instance.pending}
    assert verify(instance, placement) == []
    assert placed_weight(instance, placement) == sum(instance.weights[pod.key] for pod in instance.pending)
    assert verify(instance, Placement(placement.bindings[:1])) != []  # gangs: a part of one is refused
    assert capsys.readouterr().out == (
        f"{target}: {len(instance.nodes)} nodes, {len(instance.pods) - len(instance.pending)} running pods, "
        f"{len(instance.pending)} pending pods, {len(instance.groups)} gangs\n"
    )


def test_the_same_seed_gives_the_same_bytes_and_another_seed_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, again = tmp_path / "first", tmp_path / "again"
    for folder in (first, again):
        folder.mkdir()
    run(monkeypatch, "-o", first, "--seeds", "1-2", "--like", "hetero-s,odd-s")
    run(monkeypatch, "-o", again, "--seeds", "2,1", "--like", "odd-s,hetero-s")
    written = {path.name: path.read_bytes() for path in first.iterdir()}
    assert written == {path.name: path.read_bytes() for path in again.iterdir()}
    assert len(set(written.values())) == len(written) == 8


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--like", "odd-xl"), "like: found odd-xl, expected some of hetero-s, odd-s, mixed-s"),
        (("--like", "odd-s,,odd-xs"), "like: found '', odd-xs, expected some of hetero-s, odd-s, mixed-s"),
        (("--seeds", "4-2"), "seeds: found '4-2', expected numbers and ranges such as 1-5,8"),
        (("--seeds", ""), "seeds: found '', expected numbers and ranges such as 1-5,8"),
    ],
)
def test_what_cannot_be_meant_is_refused(
    words: tuple[str, ...],
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit) as ended:
        run(monkeypatch, "-o", tmp_path, *words)
    assert ended.value.code == 2
    assert said in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []
