"""What an object says is shown and never obeyed: sequences for terminals, turned letters, lines that look like ours."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from placer.base.errors import BadInstance
from placer.base.text import safe_lines
from placer.cli import main
from placer.problem.reading import read
from tests.report.scenes import fleet
from tests.support import node, pod, pod_group, policy
from tests.test_terminal import on_terminal

Document = dict[str, Any]

#: What begins a forged line, and all that a terminal would obey: a title, a colour by C1, a turned word, a new line.
FORGED = "FORGED"
PLANTED = f"\x1b]0;{FORGED}\x07\n{FORGED}\r\u202e\x9b31m\u2028"
OBEYED = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")

#: Words that decide what kind of object, amount or choice it is: with more behind them they would be refused.
FIXED = ("apiVersion", "kind", "operator", "effect", "phase", "mode", "allocatable", "capability", "requests", "limits")


def world() -> list[Document]:
    """A cluster in which every command has something to tell: gangs, calls, zones, findings, other schedulers."""
    app = {"appgroup.diktyo.x-k8s.io": "shop", "appgroup.diktyo.x-k8s.io.workload": "web"}
    places = {"topology.kubernetes.io/region": "north", "topology.kubernetes.io/zone": "north-1", "row": "r1"}
    workload = {"workload": {"kind": "Deployment", "name": "web", "selector": "web", "namespace": "default"}}
    cost = {"origin": "north-1", "costList": [{"destination": "north-2", "bandwidthCapacity": "1G", "networkCost": 5}]}
    extra = pod("lost", group="nowhere", cpu=1)
    foreign = pod("theirs", cpu=1)
    foreign["spec"]["schedulerName"] = "another"
    return [
        *fleet(),
        node("z1", places, cpu=4, **{"example.com/card": 3}),
        node("z2", {**places, "topology.kubernetes.io/zone": "north-2"}, cpu=4),
        {
            "apiVersion": "appgroup.diktyo.x-k8s.io/v1alpha1",
            "kind": "AppGroup",
            "metadata": {"name": "shop", "namespace": "default"},
            "spec": {"numMembers": 1, "topologySortingAlgorithm": "KahnSort", "workloads": [workload]},
        },
        {
            "apiVersion": "networktopology.diktyo.x-k8s.io/v1alpha1",
            "kind": "NetworkTopology",
            "metadata": {"name": "nt", "namespace": "default"},
            "spec": {
                "configmapName": "measured",
                "weights": [
                    {
                        "name": "Mine",
                        "topologyList": [{"topologyKey": "topology.kubernetes.io/zone", "originList": [cost]}],
                    }
                ],
            },
        },
        {
            "apiVersion": "topology.node.k8s.io/v1alpha2",
            "kind": "NodeResourceTopology",
            "metadata": {"name": "z1"},
            "topologyPolicies": ["mystery"],
            "zones": [{"name": "node-0", "type": "Node", "resources": []}],
        },
        {
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "metadata": {"name": "urgent"},
            "value": 7,
        },
        policy(topologyKeys=["row"]),
        pod_group(
            "wants",
            minMember=1,
            priorityClassName="vip",
            queue="missing",
            networkTopology={"mode": "hard", "highestTierName": "pod-of-racks"},
        ),
        pod("wants-0", group="wants", cpu=1),
        {**extra, "metadata": {**extra["metadata"], "labels": app}},
        foreign,
        {"apiVersion": "example.com/v1", "kind": "Gadget", "metadata": {"name": "unknown"}},
    ]


def replaced(value: Any, word: str, other: str, above: str = "") -> Any:
    """A value with one word replaced wherever it is all of a text or of a label's key; of fixed fields nothing is."""
    if isinstance(value, dict):
        return {
            (other if key == word and above in ("labels", "annotations") else key): (
                part if key in FIXED else replaced(part, word, other, key)
            )
            for key, part in value.items()
        }
    if isinstance(value, list):
        return [replaced(each, word, other, above) for each in value]
    return other if value == word else value


def words(value: Any) -> Iterator[str]:
    """Every text and key."""
    if isinstance(value, dict):
        for key, part in value.items():
            yield from words(part)
            yield from part if key in ("labels", "annotations") else ()
    elif isinstance(value, list):
        for each in value:
            yield from words(each)
    elif isinstance(value, str):
        yield value


def written(folder: Path, documents: list[Document]) -> str:
    path = folder / "cluster.json"
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": documents}))
    return str(path)


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The world with the sequences planted in every text that reading lets hold them."""
    folder = tmp_path_factory.mktemp("hostile")
    documents, planted = world(), []
    read(written(folder, documents))
    for word in dict.fromkeys(words(documents)):
        if word == "row":  # which a command names
            continue
        trial = replaced(documents, word, f"{word}{PLANTED}")
        try:
            read(written(folder, trial))
        except BadInstance:
            continue
        if trial != documents:
            documents, planted = trial, [*planted, word]
    unchecked = {"rack", "vip", "missing", "pod-of-racks", "Mine", "mystery", "nowhere", "another", "north", "web"}
    assert unchecked <= {*planted}, unchecked - {*planted}
    return written(folder, documents)


def harmless(text: str) -> None:
    """Assert that nothing of a text is obeyed, and that no line of it is forged."""
    assert not OBEYED.findall(text), text
    assert not [line for line in text.splitlines() if line.lstrip().startswith(FORGED)]


COMMANDS = [
    ["solve", "--method", "greedy"],
    ["solve", "--method", "greedy", "--wide"],
    ["solve", "--method", "greedy", "--strict"],
    ["solve", "--method", "greedy", "--json"],
    ["solve", "--method", "greedy", "-o", "-"],
    ["topology", "show"],
    ["topology", "costs"],
    ["topology", "discover", "--labels", "row"],
    ["compare", "--policies", "kube-default,volcano,as-is"],
    ["sweep", "--policies", "kube-default", "--seeds", "1", "--quiet"],
    ["expand"],
    ["report", "-o", "-"],
]


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_no_command_obeys_what_objects_say(
    command: list[str], hostile: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each by itself, without what guards the streams of the process."""
    code = main(
        [*command[:1], *command[1:2], hostile, *command[2:]] if command[0] == "topology" else [*command, hostile]
    )
    told = capsys.readouterr()
    assert code in (0, 3, 5), told.err
    if command[0] != "report":  # a page names things in text nodes; what is in its source nothing obeys
        harmless(told.out)
    harmless(told.err)
    assert FORGED in told.out + told.err or command[0] in ("sweep", "expand")


def test_verify_obeys_nothing(hostile: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    placement = {
        "apiVersion": "placer.dev/v1alpha1",
        "kind": "Placement",
        "bindings": [{"namespace": f"default{PLANTED}", "pod": f"x{PLANTED}", "node": f"n{PLANTED}"}],
        f"more{PLANTED}": 1,
    }
    path = tmp_path / "placement.json"
    path.write_text(json.dumps(placement))
    assert main(["verify", hostile, str(path)]) == 1
    told = capsys.readouterr()
    harmless(told.out + told.err)
    assert FORGED in told.out


@pytest.mark.parametrize("where", ["name", "namespace", "labels", "queue", "priorityClassName", "file", "unread"])
def test_errors_obey_nothing(where: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What reading refuses is told, by text and by file name."""
    group = pod_group("g", minMember="x" if where == "unread" else 1)
    if where in ("name", "namespace"):
        group["metadata"][where] = f"g{PLANTED}"
    elif where == "labels":
        group["metadata"]["labels"] = {f"k{PLANTED}": 3}
    else:
        group["spec"][where] = [PLANTED]
    path = tmp_path / (f"f{PLANTED}.yaml" if where == "file" else "f.yaml")
    path.write_text(json.dumps(group))
    main(["solve", str(path), "--method", "greedy"])
    told = capsys.readouterr()
    harmless(told.out + told.err)


def test_arguments_that_are_wrong_are_told_and_not_obeyed() -> None:
    """By the process itself, whose streams guard what is told about words of the call."""
    done = subprocess.run(
        [sys.executable, "-m", "placer", "solve", f"--x{PLANTED}"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert not OBEYED.findall(done.stdout + done.stderr)


def test_a_terminal_obeys_nothing_but_the_console(hostile: str) -> None:
    """On a real one there are colours and a moving line, and none of it is the objects'."""
    for command in (
        ["solve", hostile, "--method", "greedy"],
        ["topology", "show", hostile],
        ["topology", "costs", hostile],
    ):
        code, text = on_terminal(command, 100)
        assert code == 0
        assert FORGED in text
        assert "\x1b[" in text or command[0] == "topology"
        assert "\x1b]" not in text
        assert not re.findall("[\x07\x80-\x9f\u202e\u2028]", text)


def test_lines_stay_where_a_text_has_several() -> None:
    assert safe_lines("one\n\ttwo\x1b[2J\r\n") == "one\n\ttwo\\x1b[2J\\r\n"
    assert safe_lines("a\xa0b ✓") == "a\xa0b ✓"
