"""The sweep: what is run, what a line says, how it goes on from a file."""

from __future__ import annotations

import importlib
import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from placer.base.errors import BadInstance, PlacerError, UsageError
from placer.lab.generate import generate
from placer.lab.sweep.machine import this_machine
from placer.lab.sweep.records import KEY, RunRecord, Store
from placer.lab.sweep.runs import Run, Subject, answer, parse_seeds, parse_subject, plan, sweep
from placer.lab.sweep.statistics import duels, median_of, rows
from placer.problem import Instance
from placer.problem.reading import read, read_placement
from placer.rules.scoring import score
from placer.search.process import ProcessEnd, ProcessResult
from tests.support import node, pod, pod_group

DECIDING = importlib.import_module("placer.lab.deciders")


@pytest.fixture
def cluster(tmp_path: Path) -> Path:
    """One node of 8 cpu and three pods of 3: two fit. Planted beside it: one of them."""
    path = tmp_path / "cluster.json"
    objects = [node("a"), *(pod(f"p{index}", cpu=3) for index in range(3))]
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))
    write_planted(tmp_path / "cluster.planted.json", "p0")
    return path


def write_planted(path: Path, *pods: str) -> None:
    bindings = [{"namespace": "default", "pod": name, "node": "a"} for name in pods]
    path.write_text(json.dumps({"apiVersion": "placer.dev/v1alpha1", "kind": "Placement", "bindings": bindings}))


def run_of(word: str, seed: int = 1, policy: str = "greedy", limit: float = 60, workers: int = 1) -> Run:
    return Run(parse_subject(word), seed, policy, limit, workers)


# ------------------------------------------------------------------------------------------------------- what to run


def test_a_family_brings_its_options_and_a_path_is_a_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    word = "planted --nodes 10 --pod-sizes=1,2,4,8 --like-volcano --nodes 12"
    options = (("nodes", 12), ("pod_sizes", (1, 2, 4, 8)), ("like_volcano", True))
    assert parse_subject(word) == Subject(word, "planted", options)
    assert parse_subject("clos") == Subject("clos", "clos", ())
    monkeypatch.chdir(tmp_path)
    for name in ("clos", "it's one.json", "folder"):
        Path(name).mkdir()
    assert parse_subject("./clos") == Subject("./clos")
    assert parse_subject("it's one.json") == Subject("it's one.json")
    assert parse_subject("folder") == Subject("folder")
    assert parse_subject("nowhere.yaml.gz") == Subject("nowhere.yaml.gz")  # a line will say that it is not there


@pytest.mark.parametrize(
    ("word", "words"),
    [
        ("plantd --nodes 8", "plantd --nodes 8: found neither a file or folder nor a family, expected one of"),
        ("planted --node 8", "planted --node 8: found '--node', expected one of --"),
        ("planted 8", "found '8', expected one of --"),
        ("planted --nodes", "planted --nodes: --nodes: found nothing, expected an integer from 1 to 100,000"),
        ("planted --nodes many", "--nodes: found 'many', expected an integer"),
        ("planted --nodes 0", "--nodes: found 0, expected an integer"),
        ("planted --pod-sizes 3", "--pod-sizes: found 3, expected sizes that sum to 8 GPUs"),
        ("planted --like-volcano=yes", "--like-volcano: found a value, expected none"),
        ("planted --seed 3", "found --seed in the family's options, expected it in --seeds"),
        ("-", "found standard input, expected a file or folder"),
        ("", "found neither"),
    ],
)
def test_a_word_that_makes_no_sense_is_a_usage_error(word: str, words: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_subject(word)
    assert words in str(caught.value)


def test_seeds_are_numbers_and_ranges() -> None:
    assert parse_seeds("7") == [7]
    assert parse_seeds("1-3,8,5-5") == [1, 2, 3, 8, 5]


@pytest.mark.parametrize("text", ["", "1-", "-1", "5-1", "1,,2", "one", "1.5", "1-5000000000", "²"])
def test_other_seeds_are_a_usage_error(text: str) -> None:
    with pytest.raises(UsageError, match="seeds: found"):
        parse_seeds(text)


def test_every_fault_of_a_plan_is_told_at_once() -> None:
    with pytest.raises(UsageError) as caught:
        plan(
            ["planted --nodes 0", "clos", "clos --gpu 3"],
            seeds=[1, 2**31],
            policies=["greedy", "magic"],
            time_limit=float("nan"),
            workers=0,
            arguments={"volcano": {}},
        )
    for words in (
        "planted --nodes 0: --nodes: found 0",
        "clos --gpu 3: found '--gpu'",
        "seed: found 2147483648, expected 0 to 2147483647",
        "policy: found 'magic', expected one of as-is, kube-default",
        "configuration: found one for volcano, expected it among the policies",
        "time limit: found nan, expected seconds",
        "workers: found 0, expected at least 1",
    ):
        assert words in str(caught.value)
    with pytest.raises(UsageError) as caught:
        plan([], seeds=[], policies=[])
    assert str(caught.value).count(": found none, expected at least one") == 3


# --------------------------------------------------------------------------------------------------------- real runs


def test_a_real_sweep_of_a_family_and_a_file(cluster: Path) -> None:
    family = "planted --nodes 4 --gpus 4 --pod-sizes 2,4"
    runs = plan([family, str(cluster)], seeds=[3], policies=["greedy", "auto"], time_limit=600, workers=1)
    lines = list(sweep(runs, jobs=2))
    assert sorted(line.key for line in lines) == sorted(run.key for run in runs)
    for line in lines:
        assert line.error is None
        assert line.placed_weight is not None
        assert line.weight_bound is not None
        assert line.placed_weight <= line.weight_bound
        assert line.seconds is not None
        assert line.seconds_to_first is not None
        assert 0 < line.seconds_to_first <= line.seconds
        assert line.peak_memory_mib is not None
        assert 20 < line.peak_memory_mib < 2000
        assert [value.name for value in line.objective][:2] == ["admitted", "placed"]
    for line in lines:
        if line.instance == family:
            made = generate("planted", nodes=4, gpus=4, pod_sizes=(2, 4), seed=line.seed)
            assert (line.nodes, line.pending) == (4, made.summary["podsPlanted"])
            # Every GPU of 4 nodes is in a planted pod, and GPU, CPU and memory go together: 4 average nodes.
            assert line.planted_weight == pytest.approx(4_000_000, rel=1e-4)
            assert line.placed_over_planted == (line.placed_weight or 0) / (line.planted_weight or 1)
        else:
            # A pod asks for 3/8 of all there is: 375,000. One is planted, two fit.
            assert (line.nodes, line.pending, line.placed_pods) == (1, 3, 2)
            assert (line.planted_weight, line.placed_weight, line.placed_over_planted) == (375_000, 750_000, 2.0)
            assert line.policy == "greedy" or (line.verdict, line.termination) == ("OPTIMAL", "proved")


def test_the_planted_weight_of_a_shipped_instance_is_that_of_its_file(tmp_path: Path) -> None:
    folder = Path(__file__).parents[3] / "instances" / "planted"
    path = folder / "planted-16.yaml"
    line = answer(run_of(str(path)), str(path), str(tmp_path / "placement.json"), lambda _: None)
    instance = read(path)
    # Everything that waits is planted.
    assert line.planted_weight == sum(instance.weights[pod.key] for pod in instance.pending)
    assert line.placed_over_planted == (line.placed_weight or 0) / line.planted_weight


def test_what_cannot_be_read_is_a_line_with_its_error_and_the_sweep_goes_on(cluster: Path, tmp_path: Path) -> None:
    broken = tmp_path / "broken.json"
    broken.write_text("{")
    words = [str(broken), str(tmp_path / "nowhere.json"), str(cluster)]
    lines = list(sweep(plan(words, seeds=[1], policies=["greedy"]), executor="inline"))
    assert [line.instance for line in lines] == words
    assert "broken.json" in (lines[0].error or "")
    assert "nowhere.json" in (lines[1].error or "")
    assert lines[0].placed_weight is lines[0].seconds is lines[1].placed_weight is None
    assert (lines[2].error, lines[2].placed_pods) == (None, 2)


def test_a_planted_placement_that_breaks_a_rule_is_an_error_beside_the_figures(cluster: Path, tmp_path: Path) -> None:
    write_planted(tmp_path / "cluster.planted.json", "p0", "p1", "p2")
    line = answer(run_of(str(cluster)), str(cluster), str(tmp_path / "p.json"), lambda _: None)
    assert "cluster.planted.json: the planted placement breaks 1 rules, the first: " in (line.error or "")
    assert (line.placed_weight, line.planted_weight, line.placed_over_planted) == (750_000, None, None)
    (tmp_path / "cluster.planted.json").write_text("[")
    line = answer(run_of(str(cluster)), str(cluster), str(tmp_path / "p.json"), lambda _: None)
    assert "cluster.planted.json" in (line.error or "")


def test_seeds_are_the_familys_or_the_solvers(cluster: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asking = importlib.import_module("placer.lab.deciders")
    honest, asked = asking.solve, list[dict[str, Any]]()

    def spied(instance: Instance, **options: Any) -> Any:
        asked.append(options)
        return honest(instance, **options)

    monkeypatch.setattr(asking, "solve", spied)
    for run in (run_of(str(cluster), 7, limit=30, workers=2), Run(Subject("planted", "planted"), 7, "greedy", 30, 2)):
        answer(run, str(cluster), str(tmp_path / "p.json"), lambda _: None)
    assert [options["seed"] for options in asked] == [7, 0]
    assert all((each["method"], each["time_limit"], each["workers"]) == ("greedy", 30, 2) for each in asked)


# ------------------------------------------------------------------------------------------------------------ policies


def test_a_policy_is_judged_and_written_as_its_bindings(cluster: Path, tmp_path: Path) -> None:
    """Three pods of 3 cpu; two fit. As a gang of three none of them may be there: kube-default knows no gangs."""
    objects = [node("a"), pod_group("g", minMember=3), *(pod(f"p{index}", cpu=3, group="g") for index in range(3))]
    gang = tmp_path / "gang.json"
    gang.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))
    target = tmp_path / "bindings.json"
    line = answer(run_of(str(gang), policy="kube-default"), str(gang), str(target), lambda _: None)
    assert (line.error, line.nodes, line.pending, line.placed_pods, line.placed_weight) == (None, 1, 3, 2, 750_000)
    assert (line.violations, line.verdict, line.termination) == ({"C5": 1}, None, "finished")
    assert (line.weight_bound, line.weight_gap, line.seconds_to_first) == (None, None, None)
    assert [(each.name, each.value) for each in line.objective][:2] == [("admitted", 0), ("placed", 750_000)]
    assert [each["target"]["name"] for each in json.loads(target.read_text())["items"]] == ["a", "a"]
    line = answer(run_of(str(cluster), policy="volcano"), str(cluster), str(target), lambda _: None)
    assert (line.placed_pods, line.violations, line.verdict, line.placed_over_planted) == (2, {}, "FEASIBLE", 2.0)


def test_the_configuration_goes_to_its_policy_and_its_fault_is_the_lines(cluster: Path, tmp_path: Path) -> None:
    profile = {"plugins": {"multiPoint": {"disabled": [{"name": "NodeResourcesFit"}]}}}
    runs = plan([str(cluster)], seeds=[1], policies=["kube-default", "greedy"], arguments={"kube-default": profile})
    kube, greedy = runs
    line = answer(kube, str(cluster), str(tmp_path / "p.json"), lambda _: None)
    assert (line.placed_pods, line.violations) == (3, {"C2": 1})  # nobody looks at the room
    assert (len(line.config), greedy.line().config) == (12, "")
    line = answer(replace(kube, arguments={"plugins": 5}), str(cluster), str(tmp_path / "p.json"), lambda _: None)
    assert "plugins: found" in (line.error or "")


# ------------------------------------------------------------------------------------ when a run or the executor dies


def test_a_process_that_dies_is_a_line_with_its_last_words(cluster: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        DECIDING, "run_apart", lambda *_: ProcessResult(ProcessEnd.DIED, detail="signal 9: out of memory")
    )
    (line,) = sweep([run_of(str(cluster))], executor="inline")
    assert line == run_of(str(cluster)).line(error="the process of the run ended with signal 9: out of memory")
    (line,) = sweep([run_of("planted")], executor="inline")
    assert line.error == "the process of the run ended with signal 9: out of memory"


def test_ctrl_c_in_a_run_ends_the_sweep(cluster: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(DECIDING, "run_apart", lambda *_: ProcessResult(ProcessEnd.INTERRUPTED))
    with pytest.raises(KeyboardInterrupt):
        list(sweep([run_of(str(cluster))], executor="inline"))


def test_an_executor_that_fails_ends_the_sweep(cluster: Path) -> None:
    with pytest.raises(PlacerError, match="the executor failed: BrokenThreadPool"):
        list(sweep([run_of(str(cluster))], executor="tests.executing:breaks"))
    with pytest.raises(UsageError, match="executor: found 'cloud'"):
        list(sweep([], executor="cloud"))
    with pytest.raises(UsageError, match="jobs: found 0"):
        list(sweep([], jobs=0))


def test_a_worker_need_not_be_where_the_sweep_was_started(cluster: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(cluster.parent)
    (line,) = sweep([run_of("./cluster.json")], executor="tests.executing:elsewhere")
    assert (line.instance, line.error, line.placed_pods) == ("./cluster.json", None, 2)


# ---------------------------------------------------------------------------------------------------------- the file


def test_lines_come_back_as_they_were(tmp_path: Path, cluster: Path) -> None:
    run, other = run_of(str(cluster)), run_of(str(cluster), seed=2)
    line = answer(run, str(cluster), str(tmp_path / "p.json"), lambda _: None)
    path = tmp_path / "lines.jsonl"
    Store(path, [run.key]).add(line)
    assert Store(path, [run.key, other.key]).known == {run.key: line}
    assert Store(path, [other.key]).known == {}
    names = list(json.loads(path.read_text()))
    key = ["instance", "seed", "policy", "limit", "workers", "version", "config"]
    assert names[:11] == ["apiVersion", "kind", *key, "nodes", "pending"]
    assert {"plantedWeight", "placedWeight", "placedOverPlanted", "weightProvedBy", "peakMemoryMiB"} < set(names)


def test_another_limit_policy_number_of_workers_version_or_configuration_is_another_run(tmp_path: Path) -> None:
    path = tmp_path / "lines.jsonl"
    runs = [run_of("clos"), run_of("clos", policy="auto"), run_of("clos", limit=30), run_of("clos", workers=2)]
    runs.append(replace(runs[0], arguments={"percentageOfNodesToScore": 50}))
    store = Store(path, [run.key for run in runs])
    store.add(runs[0].line())
    path.write_text(path.read_text() + runs[1].line().model_copy(update={"version": "0.0.1"}).text() + "\n")
    assert list(Store(path, [run.key for run in runs]).known) == [runs[0].key]


@pytest.mark.parametrize("cut", [1, 13, 40, -1])
def test_a_line_that_was_cut_off_is_replaced(tmp_path: Path, cut: int) -> None:
    path = tmp_path / "lines.jsonl"
    one, two = run_of("clos", 1), run_of("clos", 2)
    whole = one.line().text() + "\n"
    path.write_text(whole + two.line().text()[:cut])
    store = Store(path, [one.key, two.key])
    assert list(store.known) == [one.key]
    assert path.read_text() != whole  # nothing is written before there is something to write
    store.add(two.line(nodes=5))
    store.add(two.line(nodes=6))
    assert path.read_text() == whole + two.line(nodes=5).text() + "\n" + two.line(nodes=6).text() + "\n"
    assert Store(path, [two.key]).known[two.key].nodes == 6


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("my notes", "line 1: found 'my notes', expected a line of placer sweep"),
        ("my notes\n", "line 1: found 'my notes\\n', expected a line"),
        ('{"instance": "clos"}\n', "line 1: found "),
        ("GOOD\n{\n", "line 2: found '{\\n'"),
        ("GOOD\n[1]\nGOOD\n", "line 2: found '[1]\\n'"),
        ("GOOD\n" + json.dumps(dict.fromkeys(KEY, "") | {"instance": ["x"]}) + "\n", "line 2"),
        ("BAD\n", "line 1: nodes: found 'many', expected Input should be a valid integer"),
    ],
)
def test_another_file_is_refused_and_stays_as_it_is(tmp_path: Path, text: str, words: str) -> None:
    path, run = tmp_path / "lines.jsonl", run_of("clos")
    good = run.line().text()
    text = text.replace("GOOD", good).replace("BAD", good.replace('"nodes": null', '"nodes": "many"'))
    path.write_text(text)
    with pytest.raises(BadInstance) as caught:
        Store(path, [run.key])
    assert words in str(caught.value)
    assert path.read_text() == text


# ------------------------------------------------------------------------------------------------------- the figures


def test_rows_are_what_is_counted_by_hand() -> None:
    def line(word: str, policy: str, seed: int, share: float | None, gap: float | None, **more: Any) -> RunRecord:
        figures = {"placed_over_planted": share, "weight_gap": gap, "verdict": "FEASIBLE", **more}
        return run_of(word, seed, policy).line(**figures)

    found = rows(
        [
            line("clos", "auto", 1, None, None, seconds=1.0, seconds_to_first=None, peak_memory_mib=7.0),
            line("planted", "auto", 1, 0.9, 0.2, seconds=5.0, seconds_to_first=1.0, peak_memory_mib=80.0),
            line("planted", "greedy", 1, 0.8, 0.1, seconds=2.0, seconds_to_first=2.0),
            line("planted", "auto", 2, 1.0, 0.0, verdict="OPTIMAL", seconds=4.0, seconds_to_first=4.0),
            line("planted", "auto", 3, 0.5, 0.9, seconds=99.0, error="a bug", peak_memory_mib=900.0),
            line("planted", "auto", 4, 0.98, 0.01, seconds=60.0, seconds_to_first=1.5, peak_memory_mib=100.5),
            line("planted", "greedy", 2, 0.6, None, seconds=3.0, seconds_to_first=1.0),
        ]
    )
    assert [(row.instance, row.policy, row.runs, row.failed) for row in found.itertuples()] == [
        ("clos", "auto", 1, 0), ("planted", "auto", 4, 1), ("planted", "greedy", 2, 0),
    ]  # fmt: skip
    clos, auto, greedy = found.itertuples()
    assert (clos.over_planted, clos.first, clos.of_bound) == (None,) * 3
    assert math.isnan(clos.worst_over_planted)
    assert (clos.seconds, clos.peak_memory_mib) == ((1.0, 1.0, 1.0, 1), 7.0)
    # Three of auto did not fail: shares 0.9, 1.0, 0.98; first 1, 4, 1.5; total 5, 4, 60.
    assert (auto.over_planted, auto.worst_over_planted, auto.optimal) == ((0.98, 0.9, 1.0, 3), 0.9, 1)
    assert (auto.first, auto.seconds) == ((1.5, 1.0, 4.0, 3), (5.0, 4.0, 60.0, 3))
    assert (auto.worst_seconds, auto.peak_memory_mib) == (60.0, 100.5)
    assert greedy.over_planted[0] == pytest.approx(0.7)
    assert (greedy.worst_over_planted, greedy.optimal, greedy.first) == (0.6, 0, (1.5, 1.0, 2.0, 2))
    assert math.isnan(greedy.peak_memory_mib)


@pytest.mark.parametrize(
    ("count", "ends"),
    # P(no more than k - 1 of n coins show heads), twice: n = 8, k = 2: 2 * 9 / 256; n = 9, k = 2: 2 * 10 / 512;
    # n = 20, k = 6: 2 * 21,700 / 2^20 (k = 7 would be 60,460: 88 percent).
    [(1, (1, 1)), (5, (1, 5)), (6, (1, 6)), (8, (1, 8)), (9, (2, 8)), (20, (6, 15))],
)
def test_the_interval_is_the_narrowest_that_is_sure_enough(count: int, ends: tuple[int, int]) -> None:
    found = median_of(float(figure) for figure in range(count, 0, -1))
    assert found == ((count + 1) / 2, *ends, count)
    assert median_of([]) is None


def test_who_does_better_is_counted_pair_by_pair() -> None:
    def line(policy: str, seed: int, *values: int, broken: int = 0, error: str | None = None) -> RunRecord:
        unproved = {"bound": None, "gap": None, "provedBy": None}
        named = zip(("placed", "locality"), values, strict=False)
        objective = [{"name": name, "value": value, **unproved} for name, value in named]
        violations = {"C7": broken} if broken else {}
        return run_of("clos", seed, policy).line(objective=objective, violations=violations, error=error)

    found = duels(
        [
            line("volcano", 1, 8, 3),  # placed decides: 8 beats 7
            line("volcano", 2, 8, 3),  # then locality, of which less is better
            line("volcano", 3, 8, 3),
            line("volcano", 4, 9, 0, broken=1),  # breaks a rule
            line("volcano", 5, 9, 0, broken=1),
            line("volcano", 6, error="died"),
            line("volcano", 7, 9, 9),  # nobody else was asked
            line("auto", 1, 7, 0),
            line("auto", 2, 8, 2),
            line("auto", 3, 8, 3),
            line("auto", 4, 1, 1),
            line("auto", 5, 1, 1, broken=2),
            line("auto", 6, 1, 1),
            line("greedy", 1, 8, 3),
        ]
    )
    assert found == [("volcano", "auto", 1, 1, 2, 2), ("volcano", "greedy", 0, 1, 0, 0), ("auto", "greedy", 0, 0, 1, 0)]


# ------------------------------------------------------------------------------------------- what is known beside a run


def test_the_best_placement_known_stands_beside_the_answer_with_what_is_proved_of_it(
    cluster: Path, tmp_path: Path
) -> None:
    (line,) = sweep([run_of(str(cluster))], executor="inline")
    assert line.known is not None  # the planted one, of which nothing is proved
    assert (line.known.weight, line.known.weight_bound, set(line.known.bounds)) == (375_000, None, {None})
    document = json.loads((tmp_path / "cluster.planted.json").read_text())
    document["bindings"].append({"namespace": "default", "pod": "p1", "node": "a"})
    values = [value.value for value in score(read(cluster), read_placement(tmp_path / "cluster.planted.json"))]
    document["objective"] = [{"name": "x", "value": value, "bound": index} for index, value in enumerate(values)]
    document["weight"] = {"value": 750_000, "bound": 800_000}
    (tmp_path / "cluster.best.json").write_text(json.dumps(document))
    (line,) = sweep([run_of(str(cluster))], executor="inline")
    assert line.known is not None
    assert (line.known.weight, line.known.weight_bound) == (750_000, 800_000)
    assert (line.known.values[:2], line.known.bounds) == ([750_000, 750_000], list(range(len(values))))
    assert line.planted_weight == 375_000


def test_a_line_says_how_the_answer_came_about_and_on_what_machine(cluster: Path) -> None:
    auto, policy = sweep([run_of(str(cluster), policy=name) for name in ("auto", "volcano")], executor="inline")
    assert auto.trace
    assert auto.trace[-1].values == [each.value for each in auto.objective]
    assert auto.trace[0].seconds == auto.seconds_to_first
    assert policy.trace == []
    for line in (auto, policy):
        assert 0.05 < (line.processor_seconds or 0) < 60
        assert line.machine == this_machine()
