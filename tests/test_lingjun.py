"""The converter of the Lingjun table: the tree is that of the table, and the queue fits."""

from __future__ import annotations

import csv
import gzip
import json
import runpy
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from placer.kube.manifests import load
from placer.problem.instance_builder import make_instance
from placer.problem.reading import read_placement
from placer.rules import verify

FOLDER = Path(__file__).parent.parent / "instances" / "lingjun"


def convert(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> None:
    monkeypatch.setattr(sys, "argv", ["convert.py", *arguments])
    runpy.run_path(str(FOLDER / "convert.py"), run_name="__main__")


def table() -> list[dict[str, str]]:
    with gzip.open(FOLDER / "lingjun2023_topo.csv.gz", "rt") as file:
        return list(csv.DictReader(file))


def content(path: Path) -> Any:
    return json.loads(gzip.decompress(path.read_bytes()))


def test_the_shipped_instance_is_what_the_command_makes(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    convert(monkeypatch, "--load", "0.95", "--seed", "1", "-o", str(tmp_path / "lingjun.json.gz"))
    for name in ("lingjun.json.gz", "lingjun.planted.json.gz"):
        assert content(tmp_path / name) == content(FOLDER / name)


def test_the_tree_is_that_of_the_table() -> None:
    instance = make_instance(load([FOLDER / "lingjun.json.gz"]))
    assert instance.findings == ()
    assert len(instance.nodes) == 847
    assert Counter(domain.tier for domain in instance.topology.hyper_nodes.values()) == {1: 119, 2: 3, 3: 1}
    for row in table():
        path = instance.topology.path(f"host-{row['ip'][:12]}")
        assert path == (f"{row['PSW']}-{row['ASW']}".lower(), row["PSW"].lower(), row["DSW"].lower())


def test_the_queue_fills_95_percent_and_fits() -> None:
    instance = make_instance(load([FOLDER / "lingjun.json.gz"]))
    asked = sum(pod.requests["nvidia.com/gpu"] for pod in instance.pending)
    assert asked == round(0.95 * 847) * 8
    assert any(group.policies for group in instance.groups.values())
    placement = read_placement(FOLDER / "lingjun.planted.json.gz")
    assert len(placement.bindings) == len(instance.pending)
    assert list(verify(instance, placement)) == []


def test_another_table_another_queue(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = ["ip,DSW,PSW,ASW", *(f"{n:02d}{'a' * 62},G1,P{n % 2},S{n % 4 // 2}" for n in range(12))]
    (tmp_path / "hosts.csv").write_text("\n".join(rows) + "\n")
    convert(monkeypatch, str(tmp_path / "hosts.csv"), "--load", "1", "--seed", "5", "-o", str(tmp_path / "out.json.gz"))
    assert capsys.readouterr().out.startswith("nodes 12, gpus 96, gpusPlanted 96")
    instance = make_instance(load([tmp_path / "out.json.gz"]))
    assert instance.topology.path("host-07aaaaaaaaaa") == ("p1-s1", "p1", "g1")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("ip,switch\na,b\n", "expected ip, DSW, PSW, ASW"),
        ("ip,DSW,PSW,ASW\na,G1,P1,S1\na,G1,P1,S2\n", "a host twice"),
        ("ip,DSW,PSW,ASW\na,G1,P1,S1\nb,G2,P2,S2\n", "several cores"),
    ],
)
def test_tables_it_cannot_use(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "hosts.csv").write_text(text)
    with pytest.raises(SystemExit, match=words):
        convert(monkeypatch, str(tmp_path / "hosts.csv"), "-o", str(tmp_path / "out.json.gz"))
