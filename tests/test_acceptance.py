"""What the project promises, end to end and in small: real input, planted optima, limits, repeatability, bad input."""

from __future__ import annotations

import json
import signal
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from placer.answers.solving import solve
from placer.cli import main
from placer.kube.manifests import from_documents, validate
from placer.lab.generate import generate
from placer.problem import Instance
from placer.problem.instance_builder import make_instance
from placer.problem.placement import better
from placer.problem.reading import read, read_placement
from placer.problem.result import Judged, Result, Termination, Verdict
from placer.rules import verify
from tests.examples import exhaustive
from tests.support import instance_of, node, pod, pod_group, policy
from tests.waiting import interrupt, started, wait_until

ROOT = Path(__file__).parent.parent
INSTANCES = ROOT / "instances"

Capture = pytest.CaptureFixture[str]


def planted(**options: Any) -> Instance:
    return make_instance(validate(from_documents(generate("planted", **options).documents)))


def values(result: Result) -> tuple[Any, ...]:
    return tuple(judged.value for judged in result.objective)


def proved(objective: tuple[Judged, ...]) -> bool:
    return all(judged.bound is not None and judged.bound.value == judged.value.value for judged in objective)


def write(path: Path, documents: object) -> Path:
    path.write_text(json.dumps(documents))
    return path


# --------------------------------------------------------------------------------------------------------- real input


def test_online_boutique_is_placed_whole(tmp_path: Path, capsys: Capture) -> None:
    """12 Deployments of one replica: 1,570 m of cpu on nodes of 940 m, so two nodes at least, and two do."""
    target = tmp_path / "placement.yaml"
    assert main(["solve", str(INSTANCES / "online-boutique"), "-o", str(target)]) == 0
    document = yaml.safe_load(target.read_text())
    assert (document["verdict"], document["termination"]) == ("OPTIMAL", "proved")
    assert len(document["bindings"]) == document["instance"]["pending"] == 12
    assert document["objective"][-1] == {"name": "packedNodes", "value": 2, "bound": 2, "gap": 0.0} | {
        "provedBy": document["objective"][-1]["provedBy"]
    }
    assert all(group["admitted"] and group["pending"] == 0 for group in document["groups"])
    assert "12 of 12 pending" in capsys.readouterr().out
    assert main(["verify", str(INSTANCES / "online-boutique"), str(target)]) == 0


@pytest.mark.exhaustive
def test_the_lingjun_fabric_is_verified_and_never_below_greedy() -> None:
    """847 hosts, a queue for 95 % of the GPUs: a bound may be unknown at this size, the answer may not be worse."""
    instance = read(INSTANCES / "lingjun" / "lingjun.json.gz")
    greedy = solve(instance, method="greedy")
    auto = solve(instance, workers=1, time_limit=None, work_limit=3)
    for result in (greedy, auto):
        assert result.placement is not None
        assert verify(instance, result.placement) == []
        assert result.verdict is (Verdict.OPTIMAL if proved(result.objective) else Verdict.FEASIBLE)
    assert not better(values(greedy), values(auto))
    placed = sum(value.value for value in values(auto) if value.name == "placed")
    assert placed == auto.weight.value.value
    assert placed >= 0.9 * sum(instance.weights.values())


# ------------------------------------------------------------------------------------------------------------- planted


@pytest.mark.parametrize(
    "options",
    [
        {"nodes": 50, "seed": 32},
        {"nodes": 40, "seed": 34, "pod_sizes": (1, 2, 4, 8)},
        *exhaustive({"nodes": 50, "seed": 33}, {"nodes": 50, "seed": 11, "pod_sizes": (1, 2, 4, 8)}),
    ],
    ids=lambda options: "-".join(str(value) for value in options.values()),
)
def test_planted_up_to_50_nodes_is_proved(options: Mapping[str, Any]) -> None:
    """Every GPU has its pod when all is placed: the weights of all pods are the bound, and the rest is proved too."""
    result = solve(planted(**options), time_limit=600)
    assert result.everything_placed
    assert (result.verdict, result.termination) == (Verdict.OPTIMAL, Termination.PROVED)
    assert proved(result.objective)
    assert result.weight.gap == 0.0
    assert result.reasons == {}


@pytest.mark.parametrize(
    "options",
    [
        *exhaustive({"nodes": 100, "seed": 41, "pod_sizes": (1, 2, 4, 8)}, {"nodes": 200, "seed": 42}),
        {"nodes": 200, "seed": 43, "pod_sizes": (1, 2, 4, 8), "subgroup_sizes": (2, 3, 5)},
    ],
    ids=lambda options: "-".join(str(value) for value in options.values()),
)
def test_require_all_finds_the_planted_optimum(options: Mapping[str, Any], tmp_path: Path, capsys: Capture) -> None:
    documents = generate("planted", **options).documents
    path = write(tmp_path / "queue.json", {"apiVersion": "v1", "kind": "List", "items": documents})
    target = tmp_path / "placement.json"
    limits = ["--workers", "2", "--time-limit", "600", "--work-limit", "3"]
    assert main(["solve", str(path), "--require-all", *limits, "-o", str(target), "--quiet"]) == 0
    document = json.loads(target.read_text())
    assert len(document["bindings"]) == document["instance"]["pending"]
    placed = next(value for value in document["objective"] if value["name"] == "placed")
    assert (placed["gap"], placed["value"]) == (0.0, placed["bound"])
    instance = read(path)
    assert verify(instance, read_placement(target)) == []
    assert document["instance"]["pending"] == len(instance.pending)
    capsys.readouterr()


def test_require_all_of_one_pod_too_many_is_not_met(tmp_path: Path, capsys: Capture) -> None:
    """A full cluster and one pod more: exit 5, INFEASIBLE since the volume proves it, and the best answer is there."""
    made = generate("planted", nodes=16, seed=7)
    documents = [*made.documents, pod("one-too-many", gpu=1)]
    path = write(tmp_path / "queue.json", {"apiVersion": "v1", "kind": "List", "items": documents})
    target = tmp_path / "placement.json"
    assert main(["solve", str(path), "--require-all", "--time-limit", "600", "-o", str(target), "--quiet"]) == 5
    document = json.loads(target.read_text())
    assert document["verdict"] == "INFEASIBLE"
    assert len(document["bindings"]) >= document["instance"]["pending"] - 1 - 16
    assert verify(read(path), read_placement(target)) == []
    capsys.readouterr()


# -------------------------------------------------------------------------------------------------------- repeatability


@pytest.mark.parametrize("method", ["greedy", "exact", "auto"])
def test_the_same_call_twice_writes_the_same_bindings(method: str, tmp_path: Path, capsys: Capture) -> None:
    """A queue that is more than full, cut by work: one worker, the same seed, twice, in processes of their own."""
    made = generate("planted", nodes=20, seed=9, pod_sizes=(1, 2, 4, 8), overfull=0.5, priorities=2, uneven=0.3)
    path = write(tmp_path / "queue.json", {"apiVersion": "v1", "kind": "List", "items": made.documents})
    written = []
    for turn in ("one", "other"):
        target = tmp_path / f"{turn}.yaml"
        options = ["--method", method, "--workers", "1", "--time-limit", "600", "--work-limit", "2", "--seed", "3"]
        assert main(["solve", str(path), *options, "--bindings", str(target), "--quiet"]) == 0
        written.append(target.read_bytes())
    assert written[0] == written[1]
    assert len(yaml.safe_load(written[0])["items"]) >= 20
    capsys.readouterr()


# ----------------------------------------------------------------------------------------------------------- interrupts


#: The command, to which signals are one wish however much later than the first the second one comes.
ONE_WISH = """
import runpy
from placer.cli import signals
signals.SAME_WISH = 3600.0
runpy.run_module("placer.cli", run_name="__main__")
"""


@pytest.mark.parametrize(
    "signals",
    [[signal.SIGINT], [signal.SIGTERM, signal.SIGTERM], *exhaustive([signal.SIGTERM], [signal.SIGINT, signal.SIGINT])],
    ids=lambda signals: "+".join(each.name for each in signals),
)
def test_an_interrupted_search_shows_its_best_answer(signals: list[signal.Signals], tmp_path: Path) -> None:
    """Also when one wish arrives twice, as from timeout(1), which signals its child and then its whole group."""
    made = generate("clos", spines=4, load=0.3, seed=3, pod_sizes=(1, 2, 4, 8), uneven=0.4)
    path = write(tmp_path / "queue.json", {"apiVersion": "v1", "kind": "List", "items": made.documents})
    command = [sys.executable, "-c", ONE_WISH, "solve", str(path), "--time-limit", "600", "-o", "-"]
    with started(command) as running:
        wait_until(lambda: _searches(running.pid))
        out, _ = interrupt(running, *signals)
    assert running.returncode == 0
    document = json.loads(out)
    assert (document["termination"], document["verdict"]) == ("interrupted", "FEASIBLE")
    (tmp_path / "placement.json").write_text(out)
    assert verify(read(path), read_placement(tmp_path / "placement.json")) == []
    assert document["bindings"]


def _searches(pid: int) -> bool:
    """Whether the process has a child: the search, which is started once there is an answer."""
    return bool(Path(f"/proc/{pid}/task/{pid}/children").read_text().split())


# ------------------------------------------------------------------------------------------------------ odd instances


@pytest.mark.parametrize("method", ["greedy", "exact", "auto"])
@pytest.mark.parametrize(
    ("documents", "levels"),
    [
        ([], None),
        ([node("a")], None),
        ([node("a"), policy(levels=["placed"])], ["placed"]),
        ([node("a"), pod_group("nobodys", minMember=3)], None),
        ([node("a"), pod("runs", node="a", cpu=1)], None),
    ],
    ids=["nothing", "a node", "no value at all", "a group without pods", "a running pod"],
)
def test_nothing_to_do_is_done(documents: list[Any], levels: list[str] | None, method: str) -> None:
    result = solve(instance_of(*documents), method=method, workers=1, time_limit=600)
    assert (result.verdict, result.termination) == (Verdict.OPTIMAL, Termination.PROVED)
    assert result.placement is not None
    assert result.placement.bindings == ()
    assert (result.objective == ()) == (levels == ["placed"])


@pytest.mark.parametrize("method", ["exact", "auto"])
@pytest.mark.parametrize(
    "documents",
    [
        [node("a"), pod("giant", cpu=9)],
        [{**node("a"), "spec": {"unschedulable": True}}, pod("p", cpu=1)],
        [node("a"), pod_group("g", minMember=2), pod("p", group="g", cpu=1)],
        [node("a"), node("b"), pod_group("g", minMember=3), *(pod(f"p{i}", group="g", cpu=8) for i in range(3))],
        [
            node("a"),
            node("b"),
            pod_group("g", minMember=2, networkTopology={"mode": "hard", "highestTierAllowed": 0}),
            *(pod(f"p{i}", group="g", cpu=5) for i in range(2)),
        ],
    ],
    ids=["a pod too large", "all cordoned", "a gang incomplete", "a gang too large", "a limit that nothing meets"],
)
def test_that_nothing_can_be_placed_is_proved(documents: list[Any], method: str) -> None:
    result = solve(instance_of(*documents), method=method, workers=1, time_limit=600)
    assert (result.verdict, result.termination) == (Verdict.OPTIMAL, Termination.PROVED)
    assert result.placement is not None
    assert result.placement.bindings == ()
    assert [judged.gap for judged in result.objective] == [0.0] * len(result.objective)


@pytest.mark.parametrize("method", ["greedy", "exact", "auto"])
def test_quantities_up_to_the_limit_do_not_overflow(method: str) -> None:
    """Six nodes of 2^63 - 1 bytes; two pods of 2^62 are a byte too much for one: six of the seven are placed."""
    nodes = [node(f"n{index}", memory=str(2**63 - 1)) for index in range(6)]
    pods = [pod(f"p{index}", memory=str(2**62)) for index in range(7)]
    result = solve(instance_of(*nodes, *pods), method=method, workers=1, time_limit=600)
    assert result.placement is not None
    assert sorted(result.placement.node_of.values()) == [f"n{index}" for index in range(6)]
    assert values(result)[0].value == 6 * 500_000


# -------------------------------------------------------------------------------------------------------- bad instances

NODE = node("a")


def _changed(document: Mapping[str, Any], path: str, value: object) -> dict[str, Any]:
    """A copy of a document with one field changed; None takes it away."""
    copy: dict[str, Any] = json.loads(json.dumps(document))
    *parents, last = path.split("/")
    place: Any = copy
    for step in parents:
        place = place[int(step)] if isinstance(place, list) else place[step]
    if value is None:
        del place[last]
    else:
        place[last] = value
    return copy


def test_all_faults_of_all_files_are_told_at_once(tmp_path: Path, capsys: Capture) -> None:
    write(tmp_path / "one.json", _changed(NODE, "status/allocatable/cpu", "x"))
    write(
        tmp_path / "two.json", {"apiVersion": "v1", "kind": "List", "items": [pod("p", cpu=-1), pod("q", memory="y")]}
    )
    (tmp_path / "three.yaml").write_text("{")
    assert main(["solve", str(tmp_path), "--json"]) == 3
    faults = json.loads(capsys.readouterr().err)["faults"]
    assert {Path(fault["file"]).name for fault in faults} == {"one.json", "two.json", "three.yaml"}
    assert {(fault["object"], fault["field"]) for fault in faults if "three" not in fault["file"]} == {
        ("Node a", "status.allocatable.cpu"),
        ("Pod default/p", "spec.containers[0].resources.requests.cpu"),
        ("Pod default/q", "spec.containers[0].resources.requests.memory"),
    }
