"""The whole library of instances: every one reads, its best placement verifies, and its table tells the truth."""

from __future__ import annotations

import csv
import gzip
import json
import re
import runpy
import shlex
import shutil
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from placer.cli import main
from placer.problem import Instance
from placer.problem.placement import MAXIMISED, Score
from placer.problem.reading import read, read_placement
from placer.rules import RULES, verify
from placer.rules.scoring import placed_weight, score
from tests.examples import every
from tests.oracle import best as best_of_all
from tests.oracle import binds, placements

LIBRARY = Path(__file__).parent.parent / "instances"
BEST = sorted(LIBRARY.rglob("*.best.*"))
PLANTED = sorted(LIBRARY.rglob("*.planted.*"))
READMES = sorted(LIBRARY.glob("*/README.md"))
TINY = sorted(path for path in (LIBRARY / "tiny").glob("*.yaml") if ".best." not in path.name)

#: Values in the order in which the tables name them.
COLUMNS = ("admitted", "placed", "locality", "span", "networkCost", "packedHyperNodes", "packedNodes")
#: Commands that are not run again here, and why.
NOT_RUN = {"openb.json.gz": "the trace is not shipped", "openb-typed.json.gz": "the trace is not shipped"}
#: Packed instances without a command, by the beginning of their names: what made them is not part of this project.
NO_COMMAND = ("hard/", "openb/openb-noshare-")

Table = dict[str, list[str]]


def of(placement: Path) -> Path:
    """The instance of a best or planted placement: the file, or the folder, that it lies beside."""
    stem, ending = re.split(r"\.(?:best|planted)(?=\.)", placement.name)
    folder = placement.with_name(stem)
    return folder if folder.is_dir() else placement.with_name(stem + ending)


def name(path: Path) -> str:
    return str(path.relative_to(LIBRARY))


@cache
def instance(path: Path) -> Instance:
    """Read strictly: no shipped instance is meant to have findings."""
    return read(path, strict=True)


def content(path: Path) -> bytes:
    return gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()


def document(path: Path) -> Any:
    return yaml.safe_load(content(path)) if ".yaml" in path.name else json.loads(content(path))


def table(readme: Path, head: str) -> Table:
    """The rows below the head, by the name in backquotes in the first cell."""
    lines = readme.read_text(encoding="utf-8").splitlines()
    rows: Table = {}
    for line in lines[lines.index(head) + 2 :]:
        if not line.startswith("|"):
            break
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        assert cells[0].strip("`") not in rows
        rows[cells[0].strip("`")] = cells[1:]
    return rows


def readme_of(path: Path) -> Path:
    return (path if path.is_dir() else path.parent) / "README.md"


every_best = pytest.mark.parametrize("best", BEST, ids=name)
#: Every third of them is enough for the test command.
every_third_best = pytest.mark.parametrize("best", every(3, BEST), ids=name)

# ------------------------------------------------------------------------------------------------------ what is shipped


def test_every_file_is_an_instance_or_a_placement_of_one() -> None:
    shipped = {of(best) for best in BEST}
    for path in LIBRARY.rglob("*"):
        if path.name.endswith((".yaml", ".json", ".gz")) and not path.name.endswith(".csv.gz"):
            assert path in (*BEST, *PLANTED) or shipped & {path, *path.parents}, path
    assert {of(planted) for planted in PLANTED} <= shipped


@every_third_best
def test_the_best_placement_keeps_every_rule_and_has_the_values_it_says(best: Path) -> None:
    problem, placement, said = instance(of(best)), read_placement(best), document(best)
    assert list(verify(problem, placement)) == []
    found = score(problem, placement)
    rows = said["objective"]
    assert [(row["name"], row.get("priority"), row["value"]) for row in rows] == [
        (value.name, value.priority, value.value) for value in found
    ]
    assert said["weight"]["value"] == placed_weight(problem, placement)
    assert said["instance"] == {
        "sha256": problem.digest,
        "nodes": len(problem.nodes),
        "pods": len(problem.pods),
        "pending": len(problem.pending),
        "groups": len(problem.groups),
        "hyperNodes": len(problem.topology.hyper_nodes),
    }


@every_best
def test_no_bound_is_beaten_and_the_verdict_is_theirs(best: Path) -> None:
    said, proved = document(best), True
    for row in said["objective"]:
        value, bound = row["value"], row["bound"]
        assert (bound is None) == (row["provedBy"] is None) == (row["gap"] is None)
        if bound is not None:
            assert proved, "a bound counts only where every value above is proved"
            assert bound >= value if row["name"] in MAXIMISED else bound <= value
            assert row["gap"] == pytest.approx(abs(bound - value) / max(1, value), abs=1e-6)
        proved = proved and bound == value
    assert said["verdict"] == ("OPTIMAL" if proved else "FEASIBLE")
    weight = said["weight"]
    assert weight["bound"] is None or weight["bound"] >= weight["value"]


@pytest.mark.parametrize("planted", PLANTED, ids=name)
def test_what_is_planted_is_everything_and_the_best_is_not_worse(planted: Path) -> None:
    problem, placement = instance(of(planted)), read_placement(planted)
    assert {binding.pod for binding in placement.bindings} == {pod.key for pod in problem.pending}
    assert list(verify(problem, placement)) == []
    best = next(path for path in BEST if of(path) == of(planted))
    assert not _better(score(problem, placement), score(problem, read_placement(best)))


def _better(one: Score, other: Score) -> bool:
    mine, theirs = (
        [value.value if value.name in MAXIMISED else -value.value for value in values] for values in (one, other)
    )
    return mine > theirs


# -------------------------------------------------------------------------------------------------------- what they say


SIZES = ("nodes", "HyperNodes", "running pods", "pending pods", "groups")


@cache
def table_of_the_best() -> dict[str, list[str]]:
    with (LIBRARY / "best.csv").open(encoding="utf-8", newline="") as file:
        head, *rows = csv.reader(file)
    assert head == ["instance", *SIZES, *COLUMNS, "found by", "proved by"]
    return {row[0]: row[1:] for row in rows}


def test_every_instance_stands_in_the_table() -> None:
    assert list(table_of_the_best()) == sorted(name(of(best)) for best in BEST)


@every_third_best
def test_the_table_tells_the_size(best: Path) -> None:
    path = of(best)
    problem = instance(path)
    sizes = (
        len(problem.nodes),
        len(problem.topology.hyper_nodes),
        len(problem.pods) - len(problem.pending),
        len(problem.pending),
        sum(1 for group in problem.groups.values() if group.pending),
    )
    assert table_of_the_best()[name(path)][: len(SIZES)] == [str(size) for size in sizes]


@every_best
def test_the_table_tells_the_best_values_and_who_proved_them(best: Path) -> None:
    path, said = of(best), document(best)
    *cells, found_by, proved_by = table_of_the_best()[name(path)][len(SIZES) :]
    for column, cell in zip(COLUMNS, cells, strict=True):
        rows = [(row["value"], row["bound"]) for row in said["objective"] if row["name"] == column]
        assert list(_values(cell)) == rows
    assert found_by == said["method"]
    provers = dict.fromkeys(row["provedBy"] for row in said["objective"] if row["provedBy"])
    assert proved_by == (", ".join(provers) or "-")


def _values(cell: str) -> Iterator[tuple[int, int | None]]:
    """``5; 7 (bound 6); 9 (no bound)`` are three values, of which the first meets its bound; ``-``: none."""
    for part in cell.split("; ") if cell != "-" else ():
        match = re.fullmatch(r"(\d+)(?: \((?:bound (\d+)|no bound)\))?", part)
        assert match is not None, part
        value = int(match[1])
        bound = int(match[2]) if match[2] else value
        yield value, (None if "no bound" in part else bound)


@pytest.mark.exhaustive
def test_the_index_names_every_family_with_its_sizes() -> None:
    rows = table(LIBRARY / "README.md", "| family | instances | nodes | pending pods | purpose |")
    assert set(rows) == {f"{readme.parent.name}/" for readme in READMES}
    for family, (instances, nodes, pods, _) in rows.items():
        found = [instance(path) for path in _instances_of(family.strip("/"))]
        assert instances == str(len(found))
        assert nodes == _range([len(each.nodes) for each in found])
        assert pods == _range([len(each.pending) for each in found])


def _instances_of(family: str) -> list[Path]:
    return [of(best) for best in BEST if readme_of(of(best)).parent.name == family]


def _range(sizes: list[int]) -> str:
    low, high = f"{min(sizes):,}", f"{max(sizes):,}"
    return low if low == high else f"{low} to {high}"


def test_online_boutique_is_twelve_pods_of_deployments() -> None:
    problem = instance(LIBRARY / "online-boutique")
    assert len(problem.pending) == 12
    assert "cartservice-0" in {pod.name for pod in problem.pending}
    assert not any(pod.unsupported for pod in problem.pending)
    assert problem.skipped == {"v1 Service": 12, "v1 ServiceAccount": 11}


# -------------------------------------------------------------------------------------------------------- how they came


@dataclass(frozen=True)
class Command:
    """A command of a README that makes an instance; it is meant to be run in the README's folder."""

    folder: Path
    words: tuple[str, ...]

    @property
    def output(self) -> str:
        return self.words[self.words.index("-o") + 1]


def _commands() -> Iterator[Command]:
    for readme in READMES:
        for line in re.findall(r"^    ((?:placer generate|python) .*)$", readme.read_text(), re.MULTILINE):
            yield Command(readme.parent, tuple(shlex.split(line)))


COMMANDS = list(_commands())


@pytest.mark.parametrize(
    "command", [each for each in COMMANDS if each.output not in NOT_RUN], ids=lambda command: command.output
)
def test_the_command_makes_the_file(command: Command, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    if command.words[0] == "placer":
        assert main(command.words[1:]) == 0
    else:
        monkeypatch.setattr(sys, "argv", list(command.words[1:]))
        runpy.run_path(str(command.folder / command.words[1]), run_name="__main__")
    made = sorted(tmp_path.iterdir())
    assert command.output in {path.name for path in made}
    for path in made:
        assert content(path) == content(command.folder / path.name)


def test_every_packed_file_has_its_command() -> None:
    packed = {name(path) for best in BEST if (path := of(best)).suffix == ".gz"}
    made = {name(command.folder / command.output) for command in COMMANDS}
    assert {each for each in packed if not each.startswith(NO_COMMAND)} <= made
    assert not {each for each in made if each.startswith(NO_COMMAND)}
    assert set(NOT_RUN) <= {command.output for command in COMMANDS}


@pytest.mark.parametrize("path", [TINY[0], TINY[-1]], ids=name)
def test_a_best_placement_is_looked_for_and_kept(path: Path, tmp_path: Path) -> None:
    """Without a search: the greedy alone; and what is better already stays."""
    improve: Callable[..., str] = runpy.run_path(str(LIBRARY / "best.py"))["improve"]
    copy = tmp_path / path.name
    shutil.copy(path, copy)
    assert improve(copy, [], 0, 1).startswith("nothing -> ")
    made = tmp_path / f"{path.stem}.best.yaml"
    assert list(verify(read(copy), read_placement(made))) == []
    shutil.copy(path.with_name(made.name), made)
    assert improve(copy, [], 0, 1) == "nothing better"
    assert made.read_bytes() == path.with_name(made.name).read_bytes()


# ---------------------------------------------------------------------------------------- tiny: exactly that decides


@pytest.mark.parametrize("path", [path for path in TINY if path.name.startswith("c")], ids=name)
def test_that_rule_decides_and_no_other_but_room(path: Path) -> None:
    problem = instance(path)
    optimum, _ = best_of_all(problem)
    assert score(problem, read_placement(path.with_name(f"{path.stem}.best.yaml"))) == optimum
    rule = path.name.split("_")[0].upper()
    deciding = {each for each, _ in RULES if binds(problem, each, optimum)}
    assert rule in deciding
    assert deciding <= {rule, "C2"}


@pytest.mark.parametrize("path", [path for path in TINY if path.name.startswith("o")], ids=name)
def test_that_level_decides_and_no_other_but_placing(path: Path) -> None:
    problem = instance(path)
    optimum, _ = best_of_all(problem)
    assert score(problem, read_placement(path.with_name(f"{path.stem}.best.yaml"))) == optimum
    named = {"network": "networkCost"}.get(word := path.stem.split("_")[1], word)
    deciding = {level for level in problem.policy.levels if _decides(problem, level, optimum)}
    assert named in deciding
    assert deciding <= {named, "placed"}


def _decides(problem: Instance, level: str, optimum: Score) -> bool:
    """Whether without the level some best placement is not the best any more."""
    levels = tuple(each for each in problem.policy.levels if each != level)
    without = replace(problem, policy=replace(problem.policy, levels=levels))
    most, _ = best_of_all(without)
    return any(score(without, each) == most and score(problem, each) != optimum for each in placements(problem))


def test_there_is_one_for_each_rule_and_level() -> None:
    rules = {rule.lower() for rule, _ in RULES}
    assert {path.name.split("_")[0] for path in TINY} == rules | {"o1", "o2", "o3", "o4"}
    for path in TINY:
        text = path.read_text(encoding="utf-8")
        assert "\n# Optimum: " in text
        assert re.search(r"^#     └── ", text, re.MULTILINE), "the tree is drawn"
