"""The words of the command line: whole names, what is meant where one is not known, ``--json`` wherever it stands."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

from placer.cli import main
from placer.cli.program import leaves, parser
from tests.support import node, pod

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def cluster(tmp_path: Path) -> Path:
    path = tmp_path / "cluster.json"
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": [node("a"), pod("p", cpu=3)]}))
    return path


def parsers(of: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    """A parser and all below it."""
    yield of
    for each in children(of).values():
        yield from parsers(each)


def children(of: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    return {
        name: each
        for action in of._actions
        if isinstance(action, argparse._SubParsersAction)
        for name, each in action.choices.items()
    }


def refused(capsys: Capture, *words: str) -> str:
    """What is said of words that make no sense, in one line or with the usage in a second one; exit code 2."""
    assert main(words) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith("placer: ")
    assert [line.split(" ")[0] for line in printed.err.splitlines()[1:]] in ([], ["usage:"])
    return printed.err


# --------------------------------------------------------------------------------------------------------------- names


@pytest.mark.parametrize("command", list(parsers(parser())), ids=lambda each: each.prog)
def test_every_option_has_help_and_no_name_is_shortened(command: argparse.ArgumentParser) -> None:
    assert command.description
    assert not command.allow_abbrev
    for action in command._actions:
        shown = None if action.help is None else action.help.strip()
        assert shown not in (None, "", argparse.SUPPRESS), f"{command.prog}: {action.option_strings or action.dest}"
    command.format_help()  # a stray % in a text breaks only this


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        (["sovle", "x"], "solve"),
        (["verfiy", "x"], "verify"),
        (["compair", "x"], "compare"),
        (["derfag", "x"], "defrag"),
        (["snap"], "snapshot"),
        (["topology", "cost", "x"], "costs"),
        (["generate", "plantet"], "planted"),
        (["solve", "x", "--method", "decomp"], "decomposed"),
        (["solve", "x", "--time", "3"], "--time-limit"),
        (["solve", "--time", "3"], "--time-limit"),  # told before the INSTANCE that is missing
        (["solve", "x", "--time=3"], "--time-limit"),
        (["solve", "x", "--requireall"], "--require-all"),
        (["--jsno", "solve", "x"], "--json"),
        (["topology", "costs", "x", "--percentil", "3"], "--percentile"),
        (["generate", "planted", "--node", "3"], "--node-types or --nodes"),
    ],
)
def test_what_is_meant_is_proposed(words: list[str], meant: str, capsys: Capture) -> None:
    assert f"did you mean {meant}?" in refused(capsys, *words)


def test_values_that_look_like_options(cluster: Path, capsys: Capture) -> None:
    assert "found -1.0, expected seconds" in refused(capsys, "solve", str(cluster), "--time-limit", "-1")
    assert main(["solve", str(cluster), "-o-"]) == 0
    assert json.loads(capsys.readouterr().out)["kind"] == "Placement"
    assert main(["solve", "--", str(cluster)]) == 0
    assert main(["solve", "--", "--json"]) == 3
    assert capsys.readouterr().err.startswith("placer: 1 fault")


# -------------------------------------------------------------------------------------------------------------- --json


@pytest.mark.parametrize(
    "words", [["solve", "{cluster}"], ["expand", "{cluster}"], ["generate", "planted", "--nodes", "4"]]
)
def test_json_wherever_it_stands(words: list[str], cluster: Path, capsys: Capture) -> None:
    words = [word.format(cluster=cluster) for word in words]
    for place in range(len(words) + 1):
        if words[place - 1].startswith("--"):
            continue  # an option's value stands there
        assert main([*words[:place], "--json", *words[place:]]) == 0
        assert isinstance(json.loads(capsys.readouterr().out), dict)


def test_json_of_every_command(cluster: Path, tmp_path: Path, capsys: Capture) -> None:
    """What needs a cluster apart (tests/cluster)."""
    placement, made = tmp_path / "placement.json", tmp_path / "made.yaml"
    assert main(["solve", str(cluster), "-o", str(placement)]) == 0
    capsys.readouterr()
    network = tmp_path / "network.json"
    network.write_text(
        json.dumps(
            {
                "apiVersion": "networktopology.diktyo.x-k8s.io/v1alpha1",
                "kind": "NetworkTopology",
                "metadata": {"name": "nt-default", "namespace": "default"},
                "spec": {"weights": []},
            }
        )
    )
    lines = tmp_path / "lines.jsonl"
    assert main(["sweep", str(cluster), "--policies", "greedy", "--seeds", "1", "-o", str(lines)]) == 0
    capsys.readouterr()
    calls = {
        "solve": ["solve", str(cluster)],
        "verify": ["verify", str(cluster), str(placement)],
        "queue": ["queue", str(cluster)],
        "explain": ["explain", str(cluster)],
        "preempt": ["preempt", str(cluster)],
        "defrag": ["defrag", str(cluster), "--want", "1 x 1 x cpu=1 @ kubernetes.io/hostname"],
        "repair": ["repair", str(cluster)],
        "audit": ["audit", str(cluster)],
        "report": ["report", str(cluster), str(placement)],
        "expand": ["expand", str(cluster)],
        "generate": ["generate", "planted", "--nodes", "4", "-o", str(made)],
        "compare": ["compare", str(cluster), "--policies", "greedy"],
        "sweep": ["sweep", str(cluster), "--policies", "greedy", "--seeds", "1"],
        "plot": ["plot", str(lines), "--figure", "placed"],
        "topology": ["topology", "costs", str(cluster), str(network)],
    }
    assert {*calls, "snapshot", "run", "check", "config", "completion", "version", "help"} == {*children(parser())}
    for words in calls.values():
        assert main([*words, "--json"]) == 0
        assert json.loads(capsys.readouterr().out) is not None
    assert main([*calls["generate"], "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["file"], told["planted"], told["nodes"]) == (str(made), str(tmp_path / "made.planted.yaml"), 4)
    assert main(["--version", "--json"]) == 0
    assert set(json.loads(capsys.readouterr().out)) == {"apiVersion", "kind", "placer"}


@pytest.mark.parametrize(
    "words",
    [
        ["--json"],
        ["--json", "sovle"],
        ["solve", "--json"],
        ["solve", "x", "--method", "magic", "--json"],
        ["solve", "x", "--foo", "--json"],
    ],
)
def test_usage_errors_are_data_with_json(words: list[str], capsys: Capture) -> None:
    assert main(words) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    document = json.loads(printed.err)
    assert (document["error"], document["faults"]) == ("UsageError", [])


def test_every_command_is_carried_out_by_a_function_that_is_there() -> None:
    for each in leaves(parser()):
        module, function = (each.get_default("run") or "lab.generating:run").split(":")
        assert callable(getattr(import_module(f"placer.cli.{module}"), function)), each.prog
