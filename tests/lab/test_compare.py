"""The comparison: rows of policies and methods, what is proved beside them, and `placer compare` as users type it."""

from __future__ import annotations

import gzip
import importlib
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from placer.base.errors import UsageError
from placer.cli import main
from placer.lab.comparing import DEFAULT, ComparisonRow, beside_proofs, compare, decide
from placer.lab.deciders import NAMES, Asked
from placer.lab.policies.mimicry import POLICIES, PREEMPTING, SORTED
from placer.problem import Instance
from placer.problem.placement import Value
from placer.problem.result import Bound, Judged
from placer.search import METHODS
from placer.search.process import ProcessEnd, ProcessResult
from tests.support import Document, hyper_node, instance_of, listing, node, pod, pod_group

Capture = pytest.CaptureFixture[str]

DECIDING = importlib.import_module("placer.lab.deciders")

#: A gang of two pods, each of a whole node, that must stay under one leaf; each leaf has one node.
APART: list[Document] = [
    node("a", gpu=1),
    node("b", gpu=1),
    hyper_node("l1", 1, nodes=("a",)),
    hyper_node("l2", 1, nodes=("b",)),
    hyper_node("s", 2, children=("l1", "l2")),
    pod_group("g", minMember=2, networkTopology={"mode": "hard", "highestTierAllowed": 1}),
    *(pod(f"g{index}", group="g", gpu=1) for index in range(2)),
]

KEYS = [
    "policy",
    "placedPods",
    "placedGroups",
    "gpusPlaced",
    "objective",
    "violations",
    "metrics",
    "groups",
    "seconds",
    "peakMemoryMiB",
]


def written(path: Path, documents: list[Document]) -> str:
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": documents}))
    return str(path)


@pytest.fixture
def apart(tmp_path: Path) -> str:
    return written(tmp_path / "apart.json", APART)


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> list[Asked]:
    """Decide in this process, which is quicker, and tell who was asked what."""
    asked_for: list[Asked] = []

    def in_place(target: str, arguments: tuple[Instance, Asked], *_: Any) -> ProcessResult:
        assert target == "placer.lab.comparing:decide"
        asked_for.append(arguments[1])
        return ProcessResult(ProcessEnd.RETURNED, decide(*arguments, lambda _: None))

    monkeypatch.setattr(DECIDING, "run_apart", in_place)
    return asked_for


# --------------------------------------------------------------------------------------------------------------- rows


def test_every_policy_and_method_has_a_name_and_no_two_the_same() -> None:
    assert (*POLICIES, *SORTED, *METHODS) == NAMES
    assert len(set(NAMES)) == len(NAMES)
    assert (*(name for name in POLICIES if name not in PREEMPTING), "greedy", "auto") == DEFAULT


def test_real_processes_and_what_they_break() -> None:
    plain, volcano, auto = compare(instance_of(*APART), ["kube-default", "volcano", "auto"], time_limit=600, workers=1)
    # kube-default knows no HyperNodes: both pods fit, under tier 2, and it binds them.
    assert (plain.placed_pods, plain.placed_groups, plain.gpus_placed) == (2, 1, 2)
    assert plain.violations == {"C7": 1}
    assert plain.metrics is not None
    assert (plain.metrics.tiers, plain.metrics.gpu_allocation_ratio) == ({2: 1.0}, 1.0)
    for row in (volcano, auto):
        assert (row.placed_pods, row.placed_groups, row.gpus_placed, row.violations) == (0, 0, 0, {})
    # Nothing valid places anything: that is proved, and it stands beside the row that breaks the rule too.
    for row in (plain, volcano, auto):
        assert row.error is None
        assert row.weight is not None
        assert (row.weight.bound and row.weight.bound.value) == 0
        assert (row.objective[0].bound and row.objective[0].bound.value) == 0
        assert (row.seconds or 0) > 0
        assert 20 < (row.peak_memory_mib or 0) < 2000
    assert [judged.value.value for judged in plain.objective[:2]] == [2_000_000, 2_000_000]
    assert all(judged.met for judged in auto.objective)
    assert all(judged.met for judged in volcano.objective)
    assert [judged.bound for judged in plain.objective[1:]] == [None] * (len(plain.objective) - 1)


def test_rules_are_counted_not_amounts(here: list[Asked]) -> None:
    # Two gangs of two pods, one pod on each node, so that both gangs are beyond their tier: C7 twice.
    documents = APART[:5]
    for name in ("x", "y"):
        documents = [*documents, pod_group(name, minMember=2, networkTopology={"highestTierAllowed": 1})]
        for index, on in enumerate("ab"):
            spec = {"nodeSelector": {"kubernetes.io/hostname": on}}
            documents.append(pod(f"{name}{index}", group=name, cpu=1, spec=spec))
    (row,) = compare(instance_of(*documents), ["coscheduling"])
    assert (row.placed_pods, row.violations) == (4, {"C7": 2})
    assert [(rule, "PodGroup default/x" in text) for rule, text in row.examples.items()] == [("C7", True)]
    assert [asked.name for asked in here] == ["coscheduling"]


def test_each_once_and_in_order_with_what_it_was_asked(here: list[Asked]) -> None:
    begun: list[str] = []
    instance = instance_of(node("a"), pod("p", cpu=1))
    profile = {"plugins": {"score": {"disabled": [{"name": "*"}]}}}
    rows = compare(
        instance,
        ["greedy", "as-is", "greedy", "kube-default"],
        time_limit=7,
        workers=2,
        seed=3,
        arguments={"kube-default": profile},
        begin=begun.append,
    )
    names = ["greedy", "as-is", "kube-default"]
    assert [row.policy for row in rows] == begun == names
    assert here == [Asked(name, profile if name == "kube-default" else None, 7, None, 2, 3) for name in names]
    assert [row.placed_pods for row in rows] == [1, 0, 1]


def test_every_argument_that_makes_no_sense_is_told_at_once() -> None:
    with pytest.raises(UsageError) as caught:
        compare(
            instance_of(node("a")),
            ["greedy", "magic"],
            time_limit=-1,
            work_limit=0,
            workers=0,
            seed=-1,
            arguments={"volcano": {}},
        )
    for words in (
        "policy: found 'magic', expected one of as-is, kube-default",
        "configuration: found one for volcano, expected it among the policies",
        "time limit: found -1, expected seconds",
        "work limit: found 0, expected a number above 0",
        "workers: found 0, expected at least 1",
        "seed: found -1, expected 0 to 2147483647",
    ):
        assert words in str(caught.value)
    with pytest.raises(UsageError, match="policies: found none"):
        compare(instance_of(node("a")), [])


def test_what_fails_is_a_row_with_its_error(here: list[Asked], monkeypatch: pytest.MonkeyPatch) -> None:
    instance = instance_of(node("a"), pod("p", cpu=1))
    exact, greedy = compare(instance, ["exact", "greedy"], time_limit=0)
    assert (exact.error, exact.exit_code) == ("exact found nothing before it had to stop (time)", 4)
    assert exact.as_dict() == {
        **dict.fromkeys(KEYS),
        "policy": "exact",
        "objective": [],
        "violations": {},
        "groups": [],
        "error": exact.error,
    }
    assert (greedy.error, greedy.placed_pods, greedy.exit_code) == (None, 1, 0)
    monkeypatch.setattr(
        DECIDING, "run_apart", lambda *_: ProcessResult(ProcessEnd.DIED, detail="signal 9: out of memory")
    )
    (row,) = compare(instance, ["volcano"])
    assert (row.error, row.exit_code) == ("the process of the row ended with signal 9: out of memory", 1)
    monkeypatch.setattr(DECIDING, "run_apart", lambda *_: ProcessResult(ProcessEnd.INTERRUPTED))
    with pytest.raises(KeyboardInterrupt):
        compare(instance, ["volcano"])


def test_a_fault_of_the_arguments_is_the_rows_error() -> None:
    found = decide(instance_of(node("a")), Asked("kube-default", {"plugins": 5}), lambda _: None)
    assert isinstance(found, ComparisonRow)
    assert found.exit_code == 3
    assert "plugins: found" in (found.error or "")


# -------------------------------------------------------------------------------------------------- what is proved


def judged_row(
    policy: str, *values: tuple[str, int, int | None], weight: int, weight_bound: int | None = None
) -> ComparisonRow:
    """A row with its own bounds; ``policy`` is also who proved them."""
    objective = tuple(
        Judged(Value(name, value), None if bound is None else Bound(bound, policy)) for name, value, bound in values
    )
    of_weight = None if weight_bound is None else Bound(weight_bound, policy)
    return ComparisonRow(policy, objective=objective, weight=Judged(Value("weight", weight), of_weight))


def test_a_bound_stands_beside_rows_that_are_equal_above_it() -> None:
    rows = beside_proofs(
        [
            judged_row("volcano", ("placed", 8, None), ("locality", 7, None), ("span", 3, None), weight=8),
            judged_row("as-is", ("placed", 0, None), ("locality", 0, None), ("span", 0, None), weight=0),
            judged_row("auto", ("placed", 8, 8), ("locality", 5, 4), ("span", 2, None), weight=8, weight_bound=9),
            judged_row("exact", ("placed", 8, 9), ("locality", 6, 3), ("span", 2, 1), weight=8, weight_bound=10),
            ComparisonRow("milp", error="found nothing", exit_code=4),
        ]
    )
    # 8 beats 9 above, where more is better; 4 beats 3 below, where less is. The span's 1 is of locality 6 only.
    expected = {
        "volcano": [Bound(8, "auto"), Bound(4, "auto"), None],
        "as-is": [Bound(8, "auto"), None, None],
        "auto": [Bound(8, "auto"), Bound(4, "auto"), None],
        "exact": [Bound(8, "auto"), Bound(4, "auto"), Bound(1, "exact")],
        "milp": [],
    }
    assert {row.policy: [judged.bound for judged in row.objective] for row in rows} == expected
    assert [row.weight and row.weight.bound for row in rows] == [Bound(9, "auto")] * 4 + [None]
    assert [row.weight and row.weight.value.value for row in rows] == [8, 0, 8, 8, None]
    assert rows[0].objective[1].gap == 3 / 7


def test_a_valid_row_beyond_a_bound_tells_of_a_bug() -> None:
    exact = judged_row("exact", ("placed", 8, 8), ("locality", 5, 5), weight=8, weight_bound=8)
    more = judged_row("volcano", ("placed", 9, None), ("locality", 3, None), weight=9)
    nearer = judged_row("as-is", ("placed", 8, None), ("locality", 4, None), weight=8)
    first, second, third, broken = beside_proofs([exact, more, nearer, replace(more, violations={"C7": 1})])
    assert (first.error, broken.error, broken.exit_code) == (None, None, 0)
    assert second.error == (
        "exact claimed that placed cannot be better than 8, but this valid placement has 9; "
        "exact claimed that weight cannot be better than 8, but this valid placement has 9; this is a bug in placer"
    )
    assert "locality cannot be better than 5, but this valid placement has 4" in (third.error or "")
    assert (second.exit_code, third.exit_code) == (1, 1)


# ------------------------------------------------------------------------------------------------------------- typed


def test_json_has_the_keys_of_the_page(apart: str, here: list[Asked], capsys: Capture) -> None:
    assert main(["compare", apart, "--policies", "kube-default, auto", "--json", "--seed", "5"]) == 0
    printed = capsys.readouterr()
    rows = listing(printed.out)
    assert printed.err == ""
    assert [list(row) for row in rows] == [KEYS, KEYS]
    assert [(row["policy"], row["placedPods"], row["violations"]) for row in rows] == [
        ("kube-default", 2, {"C7": 1}),
        ("auto", 0, {}),
    ]
    first = rows[0]["objective"][0]
    assert list(first) == ["name", "priority", "value", "bound", "gap", "provedBy"]
    assert (first["name"], first["priority"], first["value"], first["bound"], first["gap"]) == (
        "admitted",
        0,
        2_000_000,
        0,
        1.0,
    )
    locality = next(value for value in rows[1]["objective"] if value["name"] == "locality")
    assert list(locality) == ["name", "value", "bound", "gap", "provedBy"]
    assert next(iter(rows[0]["metrics"])) == "weight"
    assert rows[0]["metrics"]["weight"]["value"] == 2_000_000
    assert [asked.seed for asked in here] == [5, 5]


def test_the_table_says_what_was_reached_and_what_was_broken(apart: str, here: list[Asked], capsys: Capture) -> None:
    assert main(["compare", apart, "--policies", "kube-default,exact,greedy", "--time-limit", "0"]) == 4
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "2 pending pods, 2 nodes, 3 HyperNodes"
    assert "still fits:" in lines[1]
    assert "1/2/4/8-GPU pods" in lines[2]
    words = [line.split() for line in lines]
    kube, greedy = words[3:5]
    assert kube[:-2] == ["kube-default", "2", "1", "2", "-*", "100.0%", "0/0/0/0", "0", "2:", "100%", "C7", "1"]
    assert greedy[:-2] == ["greedy", "0", "0", "0", "100.00%", "0.0%", "2/0/0/0", "0", "-"]
    assert ["bound", "0.0", "0.0"] in [line[:3] for line in words]
    assert ["kube-default", "2.0*", "2.0", "4", "2"] in [line[:5] for line in words]
    assert lines[-4:] == [
        "",
        "kube-default is not valid here:",
        "  C7: PodGroup default/g asks for highest tier 1: "
        "the smallest common HyperNode of its 2 new pods is HyperNode s, tier 2",
        "exact: exact found nothing before it had to stop (time)",
    ]


def test_a_configuration_goes_to_its_policy(tmp_path: Path, here: list[Asked], capsys: Capture) -> None:
    # The default spreads, so the pod opens node b; MostAllocated fills a. Cpu and memory go together, so both balance.
    runs = pod("runs", node="a", cpu=4, memory="16Gi")
    path = written(tmp_path / "two.json", [node("a"), node("b"), runs, pod("p", cpu=1, memory="4Gi")])
    config = tmp_path / "scheduler.yaml"
    config.write_text(
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nprofiles:\n"
        "- pluginConfig:\n  - name: NodeResourcesFit\n    args: {scoringStrategy: {type: MostAllocated}}\n"
    )
    opened = []
    for more in ([], ["--scheduler-config", str(config)]):
        assert main(["compare", path, "--policies", "kube-default", "--json", *more]) == 0
        (row,) = listing(capsys.readouterr().out)
        opened.append(next(value["value"] for value in row["objective"] if value["name"] == "packedNodes"))
    assert opened == [1, 0]
    assert main(["compare", path, "--policies", "volcano", "--scheduler-config", str(config)]) == 2
    assert "configuration: found one for kube-default" in capsys.readouterr().err
    twice = ["--scheduler-config", str(config)] * 2
    assert main(["compare", path, *twice]) == 2
    assert "found another configuration for kube-default, expected one" in capsys.readouterr().err
    assert main(["compare", path, "--scheduler-config", str(tmp_path / "nowhere.yaml")]) == 2
    assert "nowhere.yaml: cannot be read: No such file" in capsys.readouterr().err


def test_what_if_and_where_to_write(apart: str, here: list[Asked], tmp_path: Path, capsys: Capture) -> None:
    target = tmp_path / "rows.json"
    path = "podgroup/g:spec.networkTopology.highestTierAllowed=2"
    command = ["compare", apart, "--policies", "greedy,kube-default", "--set", path, "-o", str(target)]
    assert main(command) == 0
    assert [(row["placedPods"], row["violations"]) for row in listing(target.read_text())] == [(2, {}), (2, {})]
    assert capsys.readouterr().out.startswith("2 pending pods")
    assert main([*command[:-1], f"{target}.gz"]) == 0
    packed = listing(gzip.decompress(Path(f"{target}.gz").read_bytes()))
    assert [row["policy"] for row in packed] == ["greedy", "kube-default"]
    assert main([*command[:-1], str(tmp_path / "rows.yaml")]) == 0
    plain = yaml.safe_load((tmp_path / "rows.yaml").read_text())["items"]
    assert [(row["policy"], list(row)) for row in plain] == [
        ("greedy", [*KEYS, "today"]),
        ("kube-default", [*KEYS, "today"]),
    ]
    capsys.readouterr()
    assert main([*command[:-1], "-", "--without", "node/b"]) == 0
    # One node: no gang of two. kube-default knows no gangs and binds one pod.
    rows = listing(capsys.readouterr().out)
    assert [(row["placedPods"], row["violations"]) for row in rows] == [(0, {}), (1, {"C5": 1})]


def test_today_stands_beside_a_what_if(apart: str, here: list[Asked], tmp_path: Path, capsys: Capture) -> None:
    path = "podgroup/g:spec.networkTopology.highestTierAllowed=2"
    command = ["compare", apart, "--policies", "greedy", "--set", path]
    assert main([*command, "--json"]) == 0
    (row,) = listing(capsys.readouterr().out)
    assert (row["placedPods"], row["today"]["placedPods"]) == (2, 0)
    assert list(row["today"]) == KEYS, "one row, and no today of today"
    assert main(command) == 0
    out = capsys.readouterr().out
    lines = out[out.index("What if, and today") :].splitlines()
    figures = next(line.split() for line in lines if line.startswith("greedy"))
    assert figures[1:5] == ["2", "0", "1", "0"], "\n".join(lines)
    fate = next(line.split() for line in out.splitlines() if line.startswith("default/g "))
    assert fate == ["default/g", "2", "2", "-"]
    assert len(here) == 4


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["--policies", "magic"], 2, "policy: found 'magic', expected one of as-is"),
        (["--seed", "-1"], 2, "seed: found -1"),
        (["-o", "rows.txt"], 2, "found no known ending"),
        (["--set", "podgroup/none:spec.minMember=1"], 2, "none"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_runs(
    apart: str, here: list[Asked], capsys: Capture, arguments: list[str], code: int, words: str
) -> None:
    assert main(["compare", apart, *arguments]) == code
    assert words in capsys.readouterr().err
    assert here == []


# ------------------------------------------------------------------------------- groups, marks, notes, narrow terminals


def test_every_group_is_in_json_with_what_becomes_of_it(apart: str, here: list[Asked], capsys: Capture) -> None:
    more = ["--with", written(Path(apart).with_name("more.json"), [node("c"), pod("alone", cpu=1)])]
    assert main(["compare", apart, *more, "--policies", "kube-default,greedy", "--json"]) == 0
    kube, greedy = (row["groups"] for row in listing(capsys.readouterr().out))
    gang = {"kind": "PodGroup", "namespace": "default", "name": "g"}
    alone = {"kind": "Pod", "namespace": "default", "name": "alone"}
    assert kube == [
        {**alone, "admitted": True, "placed": 1, "tier": None, "hyperNode": None},
        {**gang, "admitted": True, "placed": 2, "tier": 2, "hyperNode": "s"},
    ]
    assert greedy == [
        {**alone, "admitted": True, "placed": 1, "tier": None, "hyperNode": None},
        {**gang, "admitted": False, "placed": 0, "tier": None, "hyperNode": None},
    ]


#: Gangs of four pods and of two, a node with room for five: who has gangs leaves one, who has not tears one apart.
CONTENDED: list[Document] = [
    node("a", gpu=5),
    *(pod_group(name, minMember=size, namespace="ml") for name, size in (("big", 4), ("small", 2))),
    *(pod(f"big-{index}", group="big", gpu=1, namespace="ml") for index in range(4)),
    *(pod(f"small-{index}", group="small", gpu=1, namespace="ml") for index in range(2)),
    pod("alone", cpu=1),
]


def test_groups_that_fare_differently_are_printed(tmp_path: Path, here: list[Asked], capsys: Capture) -> None:
    path = written(tmp_path / "contended.json", CONTENDED)
    # What is bound already is beside the point: it places nothing.
    assert main(["compare", path, "--policies", "as-is,kube-default,greedy"]) == 0
    out = capsys.readouterr().out
    shown = out[out.index("Groups that fare") :].split("\n\n")[0].splitlines()
    assert [line.split() for line in shown] == [
        ["Groups", "that", "fare", "differently:", "new", "pods", "of", "each"],
        ["group", "pods", "kube-default", "greedy"],
        ["ml/small", "2", "1!", "-"],
    ]
    assert "! bound although the gang is not ready" in out
    assert main(["compare", path, "--policies", "greedy,as-is"]) == 0
    assert "Groups that fare" not in capsys.readouterr().out


def test_of_many_groups_the_first_are_printed_and_the_rest_are_counted(
    tmp_path: Path, here: list[Asked], capsys: Capture
) -> None:
    # Thirty gangs of two that must be on one leaf of one node: kube-default spreads them, volcano places none.
    leaves = [hyper_node(f"l{index}", 1, nodes=(f"n{index}",)) for index in range(30)]
    documents = [*(node(f"n{index}", gpu=2) for index in range(30)), *leaves]
    for index in range(30):
        documents.append(pod_group(f"g{index:02}", minMember=2, networkTopology={"highestTierAllowed": 0}))
        documents += [pod(f"g{index:02}-{number}", group=f"g{index:02}", gpu=1) for number in range(2)]
    path = written(tmp_path / "many.json", documents)
    assert main(["compare", path, "--policies", "coscheduling,greedy"]) == 0
    out = capsys.readouterr().out
    assert "Groups that fare differently: new pods of each, the first 20 of 30; --json has all" in out
    table = out[out.index("Groups that fare") :].split("\n\n")[0].splitlines()
    assert len(table) == 22
    assert table[2].split() == ["default/g00", "2", "2", "-"]


def test_a_valid_row_beyond_the_bound_of_better_ones_says_so(capsys: Capture) -> None:
    from placer.cli.lab.comparing import print_rows
    from placer.cli.printing import console

    instance = instance_of(node("a"), pod("p", cpu=1))
    (found,) = compare(instance, ["greedy"])
    assert found.weight is not None
    weight = Judged(found.weight.value, Bound(found.weight.value.value // 2, "exact"))
    print_rows(instance, [replace(found, weight=weight)], console())
    out = capsys.readouterr().out
    assert "200.00%+" in out
    assert "+ more in all, and less of the values before it" in out


def test_what_is_not_mimicked_is_in_the_table_and_in_json(tmp_path: Path, here: list[Asked], capsys: Capture) -> None:
    config = tmp_path / "volcano-scheduler.conf"
    config.write_text("tiers:\n- plugins: [{name: gang}, {name: predicates}, {name: capacity}, {name: deviceshare}]\n")
    path = written(tmp_path / "one.json", [node("a"), pod("p", cpu=1)])
    command = ["compare", path, "--policies", "volcano,greedy", "--scheduler-config", str(config)]
    assert main([*command, "--json"]) == 0
    volcano, greedy = listing(capsys.readouterr().out)
    assert volcano["placedPods"] == 1
    assert volcano["notes"] == [
        f"tiers[0].plugins[{index}].name: the plug-in {name} is not mimicked"
        for index, name in ((2, "capacity"), (3, "deviceshare"))
    ]
    assert "notes" not in greedy
    assert main(command) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[-3:] == [
        "Not mimicked, not judged, or to be read in more than one way",
        *(f"  volcano: {note}" for note in volcano["notes"]),
    ]


def test_no_line_is_wider_than_a_narrow_terminal_and_no_figure_is_cut(
    tmp_path: Path, here: list[Asked], monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    from rich.console import Console

    common = importlib.import_module("placer.cli.printing")
    path = written(tmp_path / "contended.json", CONTENDED)
    monkeypatch.setattr(common, "console", lambda: Console(width=80, highlight=False))
    names = "kube-default,coscheduling,volcano,volcano-labels,network-overhead:AlternateTarjan,greedy"
    assert main(["compare", path, "--policies", names]) == 0
    out = capsys.readouterr().out
    assert max(len(line.rstrip()) for line in out.splitlines()) <= 80
    assert "…" not in out
    for heading in ("weight", "excess", "MiB", "span", "packing", "gangs by tier"):
        assert heading in out
