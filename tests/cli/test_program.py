"""The command line as users script against it: files, options, exit codes."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from placer.cli import main
from tests.support import node, pod
from tests.test_schemas import shipped

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def cluster(tmp_path: Path) -> Path:
    """Two nodes of 8 cpu and three pods of 3: two on one node, one on the other."""
    objects = [node("a"), node("b"), *(pod(f"p{index}", cpu=3) for index in range(3))]
    path = tmp_path / "cluster.json"
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))
    return path


def placement_of(path: Path) -> Any:
    text = gzip.decompress(path.read_bytes()).decode() if path.suffix == ".gz" else path.read_text()
    return yaml.safe_load(text)


def test_json_is_the_placement_and_keeps_its_schema(cluster: Path, capsys: Capture) -> None:
    assert main(["solve", str(cluster), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    jsonschema.validate(document, shipped("placement"))
    assert (document["verdict"], document["termination"]) == ("OPTIMAL", "proved")
    assert sorted(binding["pod"] for binding in document["bindings"]) == ["p0", "p1", "p2"]
    assert [(value["name"], value.get("priority"), value["value"]) for value in document["objective"]] == [
        ("admitted", 0, 3 * 375_000),
        ("placed", 0, 3 * 375_000),
        ("locality", None, 0),
        ("span", None, 0),
        ("packedHyperNodes", None, 0),
        ("packedNodes", None, 2),
    ]
    assert document["instance"] | {"sha256": ""} == {
        "sha256": "", "nodes": 2, "pods": 3, "pending": 3, "unsupported": 0, "groups": 3, "hyperNodes": 0,
        "schedulerName": None, "setAside": {"otherSchedulers": {}, "gated": 0, "kindsNotRead": {}},
    }  # fmt: skip
    assert len(document["instance"]["sha256"]) == 64


def test_bindings_are_a_list_of_v1_bindings_and_verify(cluster: Path, tmp_path: Path, capsys: Capture) -> None:
    target = tmp_path / "bindings.yaml"
    assert main(["solve", str(cluster), "--bindings", str(target)]) == 0
    document = yaml.safe_load(target.read_text())
    assert (document["apiVersion"], document["kind"]) == ("v1", "List")
    assert [item["kind"] for item in document["items"]] == ["Binding"] * 3
    assert {item["target"]["name"] for item in document["items"]} == {"a", "b"}
    assert main(["verify", str(cluster), str(target), "--json"]) == 0
    judged = json.loads(capsys.readouterr().out.partition("\n{")[2].join(["{", ""]))
    assert (judged["valid"], judged["violations"]) == (True, [])


def test_bindings_on_standard_output_stand_alone(cluster: Path, capsys: Capture) -> None:
    assert main(["solve", str(cluster), "--bindings", "-"]) == 0
    assert len(json.loads(capsys.readouterr().out)["items"]) == 3


def test_verify_prints_every_violation_and_exits_1(cluster: Path, tmp_path: Path, capsys: Capture) -> None:
    bindings = [
        {"namespace": "default", "pod": "p0", "node": "a"},
        {"namespace": "default", "pod": "p1", "node": "a"},
        {"namespace": "default", "pod": "p2", "node": "a"},
        {"namespace": "default", "pod": "ghost", "node": "a"},
    ]
    target = tmp_path / "anybody.json"
    target.write_text(json.dumps({"apiVersion": "placer.dev/v1alpha1", "kind": "Placement", "bindings": bindings}))
    assert main(["verify", str(cluster), str(target), "--json"]) == 1
    judged = json.loads(capsys.readouterr().out)
    assert judged["valid"] is False
    assert [(found["rule"], found["amount"]) for found in judged["violations"]] == [("C1", 1), ("C2", 1000)]
    assert main(["verify", str(cluster), str(target)]) == 1
    out = capsys.readouterr().out
    assert out.startswith("INVALID  4 bindings on 2 nodes; 2 violations: C1 1, C2 1\n")
    assert "default/ghost" in out


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            '{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x"}}',
            "; the Placement comes last: placer verify ",
        ),
        ('{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x"}}', "found Pod default/x, expected Placement"),
        ('{"apiVersion": "placer.dev/v1alpha1", "kind": "Placement"}', "bindings: found nothing, expected a list"),
        (
            '{"apiVersion": "placer.dev/v1alpha1", "kind": "Placement", "bindings": [{"pod": 3}]}',
            "bindings[0].pod: found 3, expected a name",
        ),
        ('{"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "x"}}', "target.name: found nothing"),
        ("{", "bad.json"),
    ],
)
def test_a_file_that_is_no_placement_is_a_bad_instance(
    cluster: Path, tmp_path: Path, text: str, words: str, capsys: Capture
) -> None:
    target = tmp_path / "bad.json"
    target.write_text(text)
    assert main(["verify", str(cluster), str(target)]) == 3
    assert words in capsys.readouterr().err


def test_require_all_exits_5_and_writes_the_best_answer(cluster: Path, tmp_path: Path, capsys: Capture) -> None:
    extra = tmp_path / "extra.json"
    extra.write_text(json.dumps(pod("giant", cpu=9)))
    target = tmp_path / "p.json"
    assert main(["solve", str(cluster), str(extra), "--require-all", "-o", str(target)]) == 5
    document = placement_of(target)
    assert document["verdict"] == "INFEASIBLE"
    assert len(document["bindings"]) == 3
    (giant,) = (group for group in document["groups"] if group["name"] == "giant")
    assert giant["reason"]["code"] == "InsufficientResources"
    assert "giant" in capsys.readouterr().out
    assert main(["solve", str(cluster), "--require-all"]) == 0


def test_what_if_adds_removes_and_changes(cluster: Path, tmp_path: Path, capsys: Capture) -> None:
    extra = tmp_path / "extra.yaml"
    extra.write_text(yaml.safe_dump(pod("more", cpu=2)))

    def pods(*options: str) -> list[str]:
        assert main(["solve", str(cluster), "--json", *options]) == 0
        return sorted(binding["pod"] for binding in json.loads(capsys.readouterr().out)["bindings"])

    assert pods("--with", str(extra)) == ["more", "p0", "p1", "p2"]
    assert pods("--without", "pod/default/p1") == ["p0", "p2"]
    assert pods("--without", "node/b") == ["p0", "p1"]
    assert pods("--set", "node/a:status.allocatable.cpu=1") == ["p0", "p1"]
    assert main(["solve", str(cluster), "--without", "pod/default/nobody"]) == 2
    assert "nobody" in capsys.readouterr().err


def test_scheduler_name_says_whose_pods_are_ours_and_all_may_be(cluster: Path, tmp_path: Path, capsys: Capture) -> None:
    """Also of a snapshot, which was taken for one scheduler."""
    snapshot = json.loads(cluster.read_text())
    snapshot["metadata"] = {"annotations": {"placer.dev/snapshot": "placer"}}
    snapshot["items"].append(pod("ours", cpu=1, spec={"schedulerName": "placer"}))
    path = tmp_path / "snapshot.json"
    path.write_text(json.dumps(snapshot))

    def told(*options: str) -> tuple[int, Any, Any]:
        assert main(["solve", str(path), "--json", *options]) == 0
        about = json.loads(capsys.readouterr().out)["instance"]
        return about["pending"], about["schedulerName"], about["setAside"]["otherSchedulers"]

    assert told() == (1, "placer", {"default-scheduler": 3})
    assert told("--scheduler-name", "default-scheduler") == (3, "default-scheduler", {"placer": 1})
    assert told("--scheduler-name", "*") == (4, None, {})


def test_what_other_schedulers_bind_too_is_never_bound(capsys: Capture) -> None:
    for more in ([], ["--dry-run=server"]):
        assert main(["run", "--scheduler-name", "*", *more]) == 2
        assert "--scheduler-name: found *, expected one name" in capsys.readouterr().err


def test_strict_makes_findings_errors(cluster: Path, tmp_path: Path, capsys: Capture) -> None:
    stray = tmp_path / "stray.json"
    stray.write_text(json.dumps(pod("stray", node="gone", cpu=1)))
    assert main(["solve", str(cluster), str(stray)]) == 0
    assert "UnknownReference" in capsys.readouterr().out
    assert main(["solve", str(cluster), str(stray), "--strict"]) == 3
    told = capsys.readouterr().err
    assert told.startswith("placer: 1 finding, an error under --strict\n  UnknownReference Node gone, named by Pod ")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["expand"], "INSTANCE"),
        (["solve", "x", "--method", "magic"], "argument --method: found 'magic', expected one of auto, greedy, "),
        (["solve", "x", "--workers", "many"], "--workers: found 'many', expected a whole number"),
        (["solve", "x", "--fast"], "\nusage: placer solve [INSTANCE...] [OPTION...] ("),
        (["verify", "x"], "\nusage: placer verify INSTANCE... PLACEMENT [OPTION...] ("),
        (["solve", "x", "--time-limit", "soon"], "--time-limit: found 'soon', expected a number"),
        (["fly"], "argument COMMAND: found 'fly', expected one of solve, verify, "),
    ],
)
def test_words_that_make_no_sense_exit_2(arguments: list[str], words: str, capsys: Capture) -> None:
    assert main(arguments) == 2
    assert words in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--time-limit", "-1"], "time limit: found -1.0, expected seconds"),
        (["--time-limit", "nan"], "time limit: found nan"),
        (["--workers", "0"], "workers: found 0, expected at least 1"),
        (["-o", "answer.txt"], "answer.txt: found no known ending"),
        (["-o", "nowhere/answer.json"], "found no folder"),
        (["-o", "/proc/answer.json"], "cannot be written"),
        (["-o", "-", "--bindings", "-"], "found two documents for standard output"),
    ],
)
def test_values_out_of_range_exit_2(cluster: Path, options: list[str], words: str, capsys: Capture) -> None:
    assert main(["solve", str(cluster), *options]) == 2
    assert words in capsys.readouterr().err


def test_errors_are_data_with_json(tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "bad.json"
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "a"}, "spec": {"taints": 3}}))
    assert main(["solve", str(path), "--json"]) == 3
    printed = capsys.readouterr()
    assert printed.out == ""
    (fault,) = json.loads(printed.err)["faults"]
    assert (fault["object"], fault["field"], fault["found"]) == ("Node a", "spec.taints", "3")


def test_exact_that_finds_nothing_in_time_exits_4(cluster: Path, capsys: Capture) -> None:
    assert main(["solve", str(cluster), "--method", "exact", "--time-limit", "0"]) == 4
    assert "found nothing" in capsys.readouterr().err


def test_generate_writes_an_instance_and_its_planted_placement(tmp_path: Path, capsys: Capture) -> None:
    target = tmp_path / "queue.yaml.gz"
    assert main(["generate", "planted", "--nodes", "8", "--seed", "5", "-o", str(target)]) == 0
    assert "nodes 8" in capsys.readouterr().out
    assert main(["verify", str(target), str(tmp_path / "queue.planted.yaml.gz")]) == 0
    again = tmp_path / "again.yaml.gz"
    assert main(["generate", "planted", "--nodes", "8", "--seed", "5", "-o", str(again)]) == 0
    assert target.read_bytes() == again.read_bytes()


def test_expand_prints_pods_of_workloads(tmp_path: Path, capsys: Capture) -> None:
    template = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "main", "image": "web:1"}]}}
    workload = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web"},
        "spec": {"replicas": 2, "selector": {"matchLabels": {"app": "web"}}, "template": template},
    }
    path = tmp_path / "web.json"
    path.write_text(json.dumps(workload))
    assert main(["expand", str(path)]) == 0
    made = list(yaml.safe_load_all(capsys.readouterr().out))
    assert [(each["kind"], each["metadata"]["name"]) for each in made] == [("Pod", "web-0"), ("Pod", "web-1")]
    assert made[0]["spec"]["containers"][0]["image"] == "web:1"


def test_schemas_of_kinds_that_no_object_has_are_not_made(cluster: Path) -> None:
    """Making the schemas of every kind takes longer than deciding a small instance."""
    code = "import sys; from placer.cli import main; main(sys.argv[1:]); print(*sys.modules, sep='\\n')"
    command = [sys.executable, "-c", code, "solve", str(cluster), "--method", "greedy", "--quiet"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    loaded = set(done.stdout.splitlines())
    assert {"placer.kube.pod", "placer.kube.core"} <= loaded
    assert not loaded & {"placer.kube.apps", "placer.kube.policy", "placer.kube.scheduler_plugins", "statistics"}


def test_what_the_greedy_proves_needs_no_process_no_solver_and_no_versions(cluster: Path) -> None:
    """Each of them takes a part of the time that a small instance is decided in."""
    code = "import sys; from placer.cli import main; main(sys.argv[1:]); print(*sys.modules, sep='\\n')"
    command = [sys.executable, "-c", code, "solve", str(cluster), "--quiet"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    loaded = set(done.stdout.splitlines())
    assert "placer.answers.solving" in loaded
    slow = {"ortools", "highspy", "pydantic", "placer.search.process", "subprocess", "importlib.metadata", "tempfile"}
    assert loaded & slow == set()


def test_standard_input_is_an_instance(cluster: Path) -> None:
    command = [sys.executable, "-m", "placer.cli", "solve", "-", "--json"]
    done = subprocess.run(command, input=cluster.read_bytes(), capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
    assert len(json.loads(done.stdout)["bindings"]) == 3


def test_help_and_version_need_no_solver() -> None:
    program = "import sys; import placer.cli\nplacer.cli.main(['--help'])\n"
    program += "print([name for name in ('ortools', 'numpy', 'pydantic') if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_no_command_imports_what_only_another_one_needs() -> None:
    """What is slow to import waits until it is used: other programs call ``placer --version`` and ``--help`` often."""
    code = "import sys; from placer.cli import main; main(['--help']); print(*sys.modules, sep='\\n')"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.splitlines())
    assert "placer.cli.program" in loaded
    assert not loaded & {
        "numpy",
        "pydantic",
        "yaml",
        "rich",
        "networkx",
        "placer.problem",
        "placer.lab.generate",
    }
