"""Policies of the reader's own, functions and placements, in `compare` and `sweep` as users type them."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from placer.answers.document import placement_document
from placer.answers.solving import solve
from placer.base.errors import BadInstance, StrictFindings, UsageError
from placer.cli import main
from placer.lab.comparing import ComparisonRow, compare
from placer.lab.own_policies import OwnFunction, OwnPlacement, Proposal, examine, load, parse, propose
from placer.lab.sweep.runs import plan, sweep
from placer.problem.placement import Placement
from placer.problem.reading import read
from tests.support import Document, hyper_node, instance_of, listing, node, pod, pod_group

Capture = pytest.CaptureFixture[str]

ROOT = Path(__file__).parents[2]

#: Two nodes of 8 cpu, three pods of 3: two fit on one node, all three on both.
OBJECTS: list[Document] = [node("a"), node("b"), *(pod(f"p{index}", cpu=3) for index in range(3))]
INSTANCE = instance_of(*OBJECTS)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory of the call, with an instance in it."""
    monkeypatch.chdir(tmp_path)
    Path("cluster.json").write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": OBJECTS}))
    return tmp_path


def write(name: str, *lines: str) -> None:
    Path(name).parent.mkdir(parents=True, exist_ok=True)
    Path(name).write_text("\n".join((*lines, "")))


def bindings(**pods: str) -> str:
    entries = [{"namespace": "default", "pod": name, "node": on} for name, on in pods.items()]
    return json.dumps({"apiVersion": "placer.dev/v1alpha1", "kind": "Placement", "bindings": entries})


def rows(*policies: str, **options: Any) -> list[ComparisonRow]:
    return compare(INSTANCE, policies, workers=1, **options)


def typed(capsys: Capture, *words: str) -> Any:
    """What ``placer compare`` printed as JSON."""
    assert main(["compare", "cluster.json", "--json", *words]) == 0
    return listing(capsys.readouterr().out)


# ----------------------------------------------------------------------------------------------------------- functions


def test_a_function_stands_beside_policies_and_is_judged_like_them(here: Path, capsys: Capture) -> None:
    # All three on one node: 9 of 8 cpu. It may do so, and it is counted.
    write("pile.py", "def up(instance):", "    return {pod.key: 'a' for pod in instance.pending}")
    as_is, mine, greedy = typed(capsys, "--policies", "as-is,mine=pile:up,greedy")
    assert (as_is["policy"], as_is["placedPods"], as_is["violations"]) == ("as-is", 0, {})
    assert (mine["policy"], mine["placedPods"], mine["violations"]) == ("mine", 3, {"C2": 1})
    assert (greedy["placedPods"], greedy["violations"]) == (3, {})
    assert list(mine) == list(greedy)
    assert mine["seconds"] >= 0
    assert 20 < mine["peakMemoryMiB"] < 2000
    # What greedy proves by counting stands beside it, too.
    assert mine["objective"][0]["bound"] == greedy["objective"][0]["bound"] is not None
    assert [group["placed"] for group in mine["groups"]] == [1, 1, 1]


@pytest.mark.parametrize(
    "body",
    [
        "{pod.key: 'b' for pod in instance.pending}",
        "{(pod.namespace, pod.name): 'b' for pod in instance.pending}",
        "{f'{pod.namespace}/{pod.name}': 'b' for pod in instance.pending}",
        "Placement.of({pod.key: 'b' for pod in instance.pending})",
        "{}",
    ],
)
def test_pods_are_keys_pairs_or_texts(here: Path, body: str) -> None:
    write("mine.py", "from placer.problem.placement import Placement", "def f(instance):", f"    return {body}")
    assert in_process("mine:f").placement == Placement.of(
        {} if body == "{}" else {each.key: "b" for each in INSTANCE.pending}
    )


def in_process(target: str, **options: Any) -> Proposal:
    """Look at a function and ask it, both in this process, which is quicker, and leave nothing of it here."""
    path, modules, bytecode = list(sys.path), set(sys.modules), sys.dont_write_bytecode
    try:
        digest, fault = examine(target, str(Path.cwd()), lambda _: None)
        if fault:
            raise UsageError(fault)
        forget(modules)
        return propose(OwnFunction(target, str(Path.cwd()), digest), INSTANCE, **options)
    finally:
        sys.path[:], sys.dont_write_bytecode = path, bytecode
        forget(modules)


def forget(modules: set[str]) -> None:
    for name in set(sys.modules) - modules:
        del sys.modules[name]


def test_the_example_of_the_page_is_a_policy_that_keeps_to_the_room(here: Path) -> None:
    page = (ROOT / "models" / "policies.md").read_text(encoding="utf-8")
    write("fits.py", *re.findall(r"```python\n(.*?)```", page, re.DOTALL))
    # Two on the first node, the third on the other one.
    expected = {each.key: on for each, on in zip(INSTANCE.pending, "aab", strict=True)}
    assert in_process("fits:first_fit").placement == Placement.of(expected)


def test_a_function_is_told_what_it_asks_for(here: Path) -> None:
    write(
        "asks.py",
        "def f(instance, seed, *, time_limit=None, workers=3, rate=0.5, **more):",
        "    assert (seed, workers, rate, more) == (7, 2, 0.5, {})",
        "    assert time_limit is None or 0 <= time_limit <= 5",
        "    return {}",
        "def g(instance):",
        "    return {}",
    )
    for target in ("asks:f", "asks:g"):
        for limit in (None, 5.0):
            assert in_process(target, seed=7, time_limit=limit, workers=2).placement == Placement()


def test_modules_are_found_in_packages_on_the_path_and_last_in_the_directory_of_the_call(here: Path) -> None:
    # A file of the directory of the call takes the place of no library: json stays Python's.
    write("json.py", "raise RuntimeError('not this one')")
    write("pack/__init__.py", "import json", "assert 'loads' in dir(json)")
    write("pack/inner/rules.py", "from pack.inner.names import NODE", "def f(instance):", "    return {}")
    write("pack/inner/names.py", "NODE = 'a'")
    (row,) = rows("mine=pack.inner.rules:f")
    assert (row.error, row.placed_pods) == (None, 0)
    # Children of placer's do not import from the directory that one happens to be in, but for such a function.
    write("elsewhere/there.py", "def f(instance):", "    return {}")
    with pytest.raises(UsageError, match="found no there, expected it to be installed, on PYTHONPATH or in "):
        rows("mine=there:f")
    environment = {**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{here / 'elsewhere'}"}
    command = [sys.executable, "-P", "-m", "placer", "compare", "cluster.json", "--policies", "mine=there:f"]
    done = subprocess.run([*command, "--json"], env=environment, capture_output=True, text=True, check=True)
    assert listing(done.stdout)[0]["placedPods"] == 0


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("def f(instance): return None", "mine:f: returned None, expected a Placement or a mapping of pods to nodes"),
        ("def f(instance): return [1]", "mine:f: returned a list, expected a Placement or a mapping"),
        (
            "def f(instance): return {'default/p0': 'z'}",
            "returned 'z' for a node, expected the name of one of its nodes",
        ),
        ("def f(instance): return {'default/x': 'a'}", "returned 'default/x' for a pod, expected one of its pods"),
        ("def f(instance): return {'p0': 'a'}", "returned 'p0' for a pod, expected the key of a pod (pod.key, or"),
        ("def f(instance): return {5: ['a']}", "returned 5 for a pod, expected the key of a pod"),
        ("def f(instance): return {5: ['a']}", "['a'] for a node, expected the name of one of its nodes"),
        ("def f(instance): return {i: 'a' for i in range(9)}", "; and 4 more"),
        (
            "from placer.problem.placement import Placement as P\ndef f(instance): return P(((('x', 'p0'), 'a'),))",
            "returned (('x', 'p0'), 'a') for a pod, expected the key of a pod",
        ),
        ("def f(instance):\n    return 1 / 0", "mine:f: found ZeroDivisionError: division by zero ("),
        ("def f(instance):\n    return 1 / 0", "mine.py, line 2), expected no error"),
        ("def f(instance):\n    raise SystemExit(0)", "mine:f: found SystemExit: 0"),
    ],
)
def test_a_faulty_function_says_what_it_did_and_where(here: Path, source: str, words: str) -> None:
    write("mine.py", source)
    with pytest.raises(UsageError) as caught:
        in_process("mine:f")
    assert words in str(caught.value)


def test_a_faulty_function_is_a_row_with_its_error_and_the_others_go_on(here: Path) -> None:
    write("mine.py", "import os", "def f(instance): return None", "def g(instance): os._exit(4)")
    f, g, greedy = rows("f=mine:f", "g=mine:g", "greedy")
    assert (f.error, f.exit_code) == ("mine:f: returned None, expected a Placement or a mapping of pods to nodes", 2)
    assert (g.error, g.exit_code) == ("the process of the row ended with exit status 4", 1)
    assert (greedy.error, greedy.placed_pods) == (None, 3)


def test_the_error_is_printed_as_it_is(here: Path, capsys: Capture) -> None:
    # Between colons stands the name of a function and no emoji; what is raised is no markup.
    write("mine.py", "def leaves(instance):", "    raise ValueError('[red]:leaves: [/red]')")
    assert main(["compare", "cluster.json", "--policies", "mine=mine:leaves"]) == 2
    assert "mine: mine:leaves: found ValueError: [red]:leaves: [/red] (" in capsys.readouterr().out


#: What cannot be imported or called, and what is said of it.
BROKEN = {
    "gone:f": "module gone: found no gone, expected it to be installed, on PYTHONPATH or in ",
    "pack.gone:f": "module pack.gone: found no pack.gone, expected it to be installed",
    "pack:f": "pack:f: found no f in the module pack (",
    "pack:number": "pack:number: found an int in ",
    "pack:needs": "pack:needs: called with (instance, seed) found missing a required argument: 'rate', expected",
    "pack:none": "pack:none: called with (instance) found too many positional arguments, expected a function of",
    "torn:f": "module torn: cannot be imported: found SyntaxError: ",
    "lacks:f": "module lacks: cannot be imported: found ModuleNotFoundError: No module named 'gone'",
    "leaves:f": "module leaves: cannot be imported: found SystemExit: 5 (",
    "dies:f": "the process that imported dies:f ended with exit status 4",
}


def test_what_is_no_function_is_refused_before_anything_runs_and_all_is_told(here: Path, capsys: Capture) -> None:
    write("pack/__init__.py", "number = 5", "def needs(instance, rate, *, order, seed): ...", "def none(): ...")
    write("torn.py", "def f(")
    write("lacks.py", "import gone")
    write("leaves.py", "raise SystemExit(5)")
    write("dies.py", "import os", "os._exit(4)")
    policies = ",".join(["greedy", *(f"m{index}={target}" for index, target in enumerate(BROKEN))])
    for command in (["compare", "cluster.json"], ["sweep", "cluster.json", "-o", "lines.jsonl"]):
        assert main([*command, "--policies", policies]) == 2
        printed = capsys.readouterr()
        assert printed.out == ""
        for index, words in enumerate(BROKEN.values()):
            assert f"policy m{index}: {words}" in printed.err
    assert not Path("lines.jsonl").exists()


@pytest.mark.parametrize(
    ("word", "words"),
    [
        ("m=", "policy 'm=': found nothing behind the name, expected package.module:function, or the file of"),
        ("m=-", "policy 'm=-': found standard input behind the name"),
        ("m=pack", "policy 'm=pack': found a folder, expected package.module:function"),
        ("m=gone.json", "policy 'm=gone.json': found no file of that name, expected package.module:function"),
        ("=pack:f", "policy '=pack:f': found the name '', expected letters"),
        ("[m]=pack:f", "found the name '[m]', expected letters, digits"),
        ("auto=pack:f", "policy 'auto=pack:f': found a name that placer has a policy of"),
        ("m=torn:f,m=pack:f", "policy 'm=pack:f': found m=torn:f, too, expected one meaning of m"),
    ],
)
def test_what_can_be_neither_function_nor_file_is_refused(here: Path, capsys: Capture, word: str, words: str) -> None:
    Path("pack").mkdir()
    assert main(["compare", "cluster.json", "--policies", f"greedy,{word}"]) == 2
    printed = capsys.readouterr()
    assert (words in printed.err, printed.out) == (True, "")


def test_all_faults_are_told_at_once() -> None:
    with pytest.raises(UsageError) as caught:
        rows("mine=gone:f", "yours=gone.json", "magic", seed=-1)
    for words in ("policy 'yours=gone.json'", "policy: found 'magic'", "NAME=PLACEMENT", "seed: found -1"):
        assert words in str(caught.value)
    with pytest.raises(UsageError) as caught:
        rows("mine=gone:f", "yours=missing:f")
    assert "policy mine: module gone: " in str(caught.value)
    assert "policy yours: module missing: " in str(caught.value)


def test_a_name_is_read_once_and_others_pass() -> None:
    assert parse(["greedy", "m=a:f", "greedy", "m=a:f", "magic"], ["greedy"]) == (
        {"greedy": None, "m": "a:f", "magic": None},
        [],
    )
    assert load({"greedy": None}) == {}


# ---------------------------------------------------------------------------------------------------------- placements


def test_a_placement_in_a_file_is_judged_with_what_it_states(here: Path, capsys: Capture) -> None:
    result = solve(read("cluster.json"), time_limit=600, workers=1)
    document = placement_document(result).as_dict()
    assert document["verdict"] == "OPTIMAL"
    Path("solved.json").write_text(json.dumps(document))
    write("low.py", "def f(instance):", "    return {}")
    mine, done = typed(capsys, "--policies", "mine=low:f,done=solved.json")
    assert [value["value"] for value in done["objective"]] == [value["value"] for value in document["objective"]]
    assert [value["bound"] for value in done["objective"]] == [value["bound"] for value in document["objective"]]
    assert done["objective"][0]["provedBy"].endswith(" (stated in solved.json)")
    # ... and it holds for all.
    assert (mine["objective"][0]["value"], mine["objective"][0]["bound"]) == (0, document["objective"][0]["bound"])
    assert "notes" not in done
    # With a bound that something valid exceeds, the file is as suspect as placer.
    document["objective"][0]["bound"] = document["objective"][0]["value"] - 1
    Path("solved.json").write_text(json.dumps(document))
    assert main(["compare", "cluster.json", "--policies", "greedy,done=solved.json"]) == 1
    assert "this is a bug in placer, or the file was changed" in " ".join(capsys.readouterr().out.split())


def test_of_a_placement_that_breaks_a_rule_nothing_is_believed(here: Path, capsys: Capture) -> None:
    document = placement_document(solve(read("cluster.json"), time_limit=600, workers=1)).as_dict()
    for binding in document["bindings"]:
        binding["node"] = "a"
    Path("solved.json").write_text(json.dumps(document))
    (done,) = typed(capsys, "--policies", "done=solved.json")
    assert done["violations"] == {"C2": 1}
    assert {value["bound"] for value in done["objective"]} == {None}


def test_a_placement_of_other_input_is_told_and_under_strict_an_error(here: Path, capsys: Capture) -> None:
    document = placement_document(solve(read("cluster.json"), time_limit=600, workers=1)).as_dict()
    document["instance"]["sha256"] = "0" * 64
    Path("other.json").write_text(json.dumps({**document, "colour": "blue"}))
    (row,) = typed(capsys, "--policies", "done=other.json")
    assert (row["placedPods"], row["objective"][0]["bound"]) == (3, None)
    assert row["notes"] == [
        "UnknownField colour is no key of a Placement and is not judged",
        "PlacementOfOtherInput other.json: the Placement was made for other input than this; its bounds are left out",
    ]
    assert main(["compare", "cluster.json", "--policies", "done=other.json"]) == 0
    assert "done: PlacementOfOtherInput other.json: " in capsys.readouterr().out
    with pytest.raises(StrictFindings, match="UnknownField"):
        rows("done=other.json", strict=True)
    Path("other.json").write_text(json.dumps(document))
    assert main(["compare", "cluster.json", "--policies", "done=other.json", "--strict"]) == 3
    assert "PlacementOfOtherInput" in capsys.readouterr().out


def test_bindings_will_do_and_wrong_names_in_a_file_are_counted(here: Path, capsys: Capture) -> None:
    Path("mine.yaml").write_text(
        "apiVersion: v1\nkind: Binding\nmetadata: {name: p0}\ntarget: {apiVersion: v1, kind: Node, name: a}\n---\n"
        "apiVersion: v1\nkind: Binding\nmetadata: {name: nobody}\ntarget: {apiVersion: v1, kind: Node, name: a}\n"
    )
    (row,) = typed(capsys, "--policies", "mine=mine.yaml")
    assert (row["placedPods"], row["violations"]) == (1, {"C1": 1})


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "a"}}', "found Node a, expected Placement"),
        ("{", "mine.json"),
        ("", "mine.json"),
    ],
)
def test_a_file_without_a_placement_is_a_bad_instance(here: Path, text: str, words: str) -> None:
    Path("mine.json").write_text(text)
    with pytest.raises(BadInstance) as caught:
        rows("mine=mine.json")
    assert words in str(caught.value)


def test_a_file_goes_before_a_function_of_the_name(here: Path) -> None:
    Path("pile:up").write_text(bindings(p0="a"))
    assert isinstance(load({"m": "pile:up"})["m"], OwnPlacement)


# --------------------------------------------------------------------------------------------------------------- sweep


def lines_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_a_sweep_runs_again_what_was_changed_and_nothing_else(here: Path, capsys: Capture) -> None:
    write("pile.py", "from helper import NODE", "def up(instance):", "    return {'default/p0': NODE}")
    write("helper.py", "NODE = 'a'")
    Path("file.json").write_text(bindings(p0="a", p1="b"))
    target = here / "lines.jsonl"
    policies = "as-is,mine=pile:up,done=file.json"
    command = ["sweep", "cluster.json", "--seeds", "1", "--policies", policies, "-o", str(target)]
    command += ["--workers", "1", "--executor", "inline"]
    assert main(command) == 0
    assert [(line["policy"], line["placedPods"], line["error"]) for line in lines_of(target)] == [
        ("as-is", 0, None),
        ("mine", 1, None),
        ("done", 2, None),
    ]
    assert [len(line["config"]) for line in lines_of(target)] == [0, 12, 12]
    assert all(line["peakMemoryMiB"] > 20 for line in lines_of(target))
    assert main(command) == 0
    assert len(lines_of(target)) == 3
    # Of the same length and within a second: what is compared is what is written.
    write("pile.py", "from helper import NODE", "def up(instance):", "    return {'default/p2': NODE}")
    assert main(command) == 0
    assert [line["policy"] for line in lines_of(target)[3:]] == ["mine"]
    write("helper.py", "NODE = 'b'")
    assert main(command) == 0
    assert [line["policy"] for line in lines_of(target)[4:]] == ["mine"]
    Path("file.json").write_text(bindings(p0="a"))
    assert main(command) == 0
    assert [(line["policy"], line["placedPods"]) for line in lines_of(target)[5:]] == [("done", 1)]
    assert len({line["config"] for line in lines_of(target)}) == 6
    assert not list(here.rglob("*.pyc"))


def test_a_function_that_changes_while_a_sweep_runs_is_an_error_of_its_line(here: Path) -> None:
    write("mine.py", "def f(instance): return {}")
    runs = plan(["cluster.json"], seeds=[1], policies=["mine=mine:f"])
    write("mine.py", "def f(instance): return {'default/p0': 'a'}")
    (line,) = sweep(runs, executor="inline")
    assert line.error == "mine:f: found other sources than when this began, expected the same"


def test_a_function_that_empties_its_instance_is_judged_on_the_whole_one(here: Path) -> None:
    write("mine.py", "def f(instance):", "    instance.pods.clear()", "    return {}")
    (line,) = sweep(plan(["cluster.json"], seeds=[1], policies=["mine=mine:f"]), executor="inline")
    assert (line.error, line.pending, line.placed_pods, line.verdict) == (None, 3, 0, "FEASIBLE")
    (row,) = rows("mine=mine:f")
    assert (row.error, row.placed_pods, len(row.groups)) == (None, 0, 3)


def test_a_sweep_counts_what_a_function_breaks_and_has_a_file_with_its_bounds(here: Path) -> None:
    gang = [
        *(node(name, gpu=1) for name in "ab"),
        *(hyper_node(f"l-{name}", 1, nodes=(name,)) for name in "ab"),
        hyper_node("s", 2, children=("l-a", "l-b")),
        pod_group("g", minMember=2, networkTopology={"mode": "hard", "highestTierAllowed": 1}),
        *(pod(f"g{index}", group="g", gpu=1) for index in range(2)),
    ]
    Path("gang.json").write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": gang}))
    write("mine.py", "def f(instance, seed):", "    return dict(zip((p.key for p in instance.pending), 'ab'))")
    document = placement_document(solve(read("gang.json"), time_limit=600, workers=1)).as_dict()
    Path("solved.json").write_text(json.dumps(document))
    policies = ["mine=mine:f", "done=solved.json"]
    mine, done = sweep(plan(["gang.json"], seeds=[4], policies=policies), executor="inline")
    assert (mine.error, mine.violations, mine.verdict) == (None, {"C7": 1}, None)
    assert (done.error, done.violations, done.verdict, done.placed_pods) == (None, {}, "OPTIMAL", 0)
    assert done.weight_bound == 0
    strict = plan(["cluster.json"], seeds=[4], policies=["done=solved.json"], strict=True)
    (other,) = sweep(strict, executor="inline")
    assert "PlacementOfOtherInput" in (other.error or "")
