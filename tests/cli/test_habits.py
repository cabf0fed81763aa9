"""Habits of kubectl's users: names, namespaces, selectors, formats and durations are taken as kubectl takes them."""

from __future__ import annotations

import importlib.resources
import io
import json
import re
import shlex
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from placer import read
from placer.answers.progress import Progress
from placer.cli import commands, main
from placer.cli.program import leaves, parser
from tests.support import listing, node, pod, pod_group
from tests.write_schemas import REPORTS, report_schema

Capture = pytest.CaptureFixture[str]

GROUPS = ("team-a/train", "team-b/train", "team-b/tune")

KUBECONFIG = {
    "apiVersion": "v1",
    "kind": "Config",
    "clusters": [{"name": "c", "cluster": {"server": "https://127.0.0.1:1"}}],
    "users": [{"name": "u", "user": {}}],
    "contexts": [
        {"name": "one", "context": {"cluster": "c", "user": "u", "namespace": "team-a"}},
        {"name": "two", "context": {"cluster": "c", "user": "u"}},
    ],
    "current-context": "one",
}


def shipped(kind: str) -> Any:
    return json.loads((importlib.resources.files("placer") / "schemas" / f"{kind.lower()}.schema.json").read_text())


@pytest.fixture
def cluster(tmp_path: Path) -> str:
    """A file with waiting groups of one name in two namespaces, and one of a name of its own."""
    items = [node("n1", gpu=1), pod("runs", namespace="team-a", node="n1", labels={"app": "old"})]
    for namespace, name in (("team-a", "train"), ("team-b", "train"), ("team-b", "tune")):
        items.append(pod_group(name, namespace, minMember=1))
        items.append(pod(f"{name}-0", group=name, namespace=namespace, gpu=8, labels={"app": name, "team": namespace}))
    path = tmp_path / "cluster.json"
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    return str(path)


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ([], {"team-a/train", "team-b/train", "team-b/tune"}),
        (["-A"], {"team-a/train", "team-b/train", "team-b/tune"}),
        (["-n", "team-a"], {"team-a/train"}),
        (["-nteam-b", "-l", "app=train"], {"team-b/train"}),
        (["--selector", "app!=train,app"], {"team-b/tune"}),
        (["--group", "tune"], {"team-b/tune"}),
        (["--group", "pod/tune-0"], {"team-b/tune"}),
        (["--group", "podgroup/train", "-n", "team-b"], {"team-b/train"}),
        (["-n", "nowhere"], set()),
    ],
)
def test_explain_is_about_the_groups_that_are_selected(
    words: list[str], found: set[str], cluster: str, capsys: Capture
) -> None:
    assert main(["explain", cluster, "--json", "--time-limit", "600", *words]) == 0
    groups = [each["group"] for each in listing(capsys.readouterr().out)]
    assert {f"{each['namespace']}/{each['name']}" for each in groups} == found


def test_audit_is_about_the_groups_that_are_selected(cluster: str, capsys: Capture) -> None:
    for words, count in (([], 1), (["-n", "team-a"], 1), (["-n", "team-b"], 0), (["-l", "app=train"], 0)):
        assert main(["audit", cluster, "--json", "--time-limit", "600", *words]) == 0
        assert len(listing(capsys.readouterr().out)) == count


@pytest.mark.parametrize("command", [["solve", "--method", "greedy"], ["compare", "--policies", "greedy,kube-default"]])
def test_a_selector_changes_what_is_listed_and_not_what_is_decided(
    command: list[str], cluster: str, tmp_path: Path, capsys: Capture
) -> None:
    def shown(*words: str) -> str:
        assert main([*command, "-f", cluster, *words]) == 0
        return capsys.readouterr().out

    whole, some = (json.loads(shown("--json", *words)) for words in ((), ("-n", "team-b")))
    assert [each["groups"] for each in whole.get("items", [whole])] == [
        each["groups"] for each in some.get("items", [some])
    ]
    if command[0] == "solve":
        assert "team-a/train" in shown()
        listed = shown("-n", "team-b", "-l", "app=train")
        assert "Listed: groups of namespace team-b with pods of app=train (1 of 3 groups); all were decided" in listed
        assert "team-a" not in listed
    none = "has pending pods" if command[0] == "solve" else "fares differently"
    assert f"No group of namespace team-bb {none}; found like it: team-b." in shown("-n", "team-bb")


@pytest.mark.parametrize(("command", "does"), [("queue", "waits"), ("explain", "waits"), ("audit", "runs")])
def test_a_namespace_without_groups_is_named(command: str, does: str, cluster: str, capsys: Capture) -> None:
    assert main([command, cluster, "-n", "team-aa", "--time-limit", "600"]) == 0
    assert f"No group of namespace team-aa {does}; found like it: team-a." in capsys.readouterr().out


def test_preempt_makes_room_for_the_groups_that_are_selected(cluster: str, capsys: Capture) -> None:
    for words, count in ((["-n", "team-b"], 2), (["-l", "app=train"], 2), (["--for", "tune"], 1), ([], 3)):
        assert main(["preempt", cluster, "--json", "--time-limit", "600", *words]) == 5
        assert len(listing(capsys.readouterr().out)["groups"]) == count
    assert main(["preempt", cluster, "--for", "train"]) == 2
    assert "found 2 groups of that name, expected one of podgroup." in capsys.readouterr().err


@pytest.mark.parametrize(("context", "found"), [(None, "team-a"), ("one", "team-a"), ("two", None), ("three", None)])
def test_the_namespace_of_the_context_is_the_users_own(context: str | None, found: str | None, tmp_path: Path) -> None:
    pytest.importorskip("kubernetes")
    from placer.passes.cluster.reading.credentials import context_namespace

    path = tmp_path / "config"
    path.write_text(json.dumps(KUBECONFIG))
    assert context_namespace(str(path), context) == found


def test_files_are_given_with_f_or_without(cluster: str, tmp_path: Path, capsys: Capture) -> None:
    more = tmp_path / "more.json"
    more.write_text(json.dumps(pod("more", namespace="team-c", gpu=8)))
    for words in (["-f", cluster, "-f", str(more)], [cluster, str(more)], [cluster, "-f", str(more)]):
        assert main(["solve", "--json", "--method", "greedy", *words]) == 0
        assert listing(capsys.readouterr().out)["instance"]["pods"] == 5
    assert main(["expand"]) == 2  # what reads no cluster
    assert "required: INSTANCE" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "seconds"), [("10s", 10), ("2m", 120), ("1m30s", 90), ("45", 45), ("0.5", 0.5), ("500ms", 0.5)]
)
def test_seconds_may_be_a_duration(words: str, seconds: float) -> None:
    for command in (["solve", "x"], ["explain"], ["preempt"], ["audit"], ["compare", "x"], ["sweep", "x"]):
        assert parser().parse_args([*command, "--time-limit", words]).time_limit == seconds
    assert parser().parse_args(["run", "--cool-down", words]).cool_down == seconds


def test_what_is_no_duration_is_refused(capsys: Capture) -> None:
    assert main(["solve", "x", "--time-limit", "10 s"]) == 2
    expected = "found '10 s', expected a number of seconds, or a duration such as 10s or 2m"
    assert expected in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "kind", "names"),
    [
        (["explain", "--time-limit", "600"], "ExplanationList", {f"podgroup/{each}" for each in GROUPS}),
        (["audit"], "AuditList", {"pod/team-a/runs"}),
        (["compare", "--policies", "greedy"], "ComparisonList", {"greedy"}),
        (["solve", "--method", "greedy"], "Placement", {f"podgroup/{each}" for each in GROUPS}),
        (["topology", "show"], "TopologyReport", set()),
        (["audit", "--sums"], "AuditSums", None),
        (["preempt", "--time-limit", "600"], "Placement", set()),
    ],
)
def test_formats_are_words_of_o(
    words: list[str], kind: str, names: set[str] | None, cluster: str, capsys: Capture
) -> None:
    code = 5 if words[0] == "preempt" else 0
    for form in (["--json"], ["-o", "json"], ["-ojson"], ["--output=yaml"]):
        assert main([*words, "-f", cluster, *form]) == code
        document = yaml.safe_load(capsys.readouterr().out)  # JSON is YAML
        assert (document["apiVersion"], document["kind"]) == ("placer.dev/v1alpha1", kind)
        if kind in REPORTS:
            jsonschema.validate(document, report_schema(kind))
    assert main([*words, "-f", cluster, "-o", "wide"]) == code
    assert capsys.readouterr().out
    if names is None:
        assert main([*words, "-f", cluster, "-o", "name"]) == 2
        assert "-o name: found a document whose entries have no names" in capsys.readouterr().err
    else:
        assert main([*words, "-f", cluster, "-o", "name"]) == code
        assert set(capsys.readouterr().out.splitlines()) == names


def test_another_word_after_o_is_a_file(cluster: str, tmp_path: Path, capsys: Capture) -> None:
    target = tmp_path / "placed.yaml"
    assert main(["solve", cluster, "--method", "greedy", "-o", str(target), "-o", "name"]) == 0
    assert yaml.safe_load(target.read_text())["kind"] == "Placement"
    assert "podgroup/team-a/train" in capsys.readouterr().out
    assert main(["explain", cluster, "-o", "x.yaml"]) == 2
    assert "found 'x.yaml', expected one of json, yaml, wide, name" in capsys.readouterr().err


@pytest.mark.parametrize("form", [["--json"], ["-o", "json"], ["-o", "yaml"]])
def test_an_error_has_a_kind_too(form: list[str], capsys: Capture) -> None:
    assert main(["solve", "nowhere.yaml", *form]) == 3
    document = json.loads(capsys.readouterr().err)
    jsonschema.validate(document, report_schema("Error"))


@pytest.mark.parametrize(
    ("words", "kind"),
    [
        (["version"], "Version"),
        (["config"], "ConfigurationReport"),
        (["audit", "-f", "FILE", "--sums"], "AuditSums"),
        (["report", "FILE", "-o", "page.html"], "Report"),
        (["generate", "planted", "--nodes", "4", "-o", "made.json"], "GeneratedInstance"),
        (["sweep", "FILE", "--policies", "greedy", "--seeds", "1", "--executor", "inline"], "SweepRunList"),
        (["explain", "FILE", "--group", "tune", "--how-many"], "CopiesList"),
        (["queue", "FILE", "--time-limit", "600"], "QueueList"),
        (["queue", "FILE", "--cost"], "NamespaceCostList"),
        (["defrag", "FILE", "--want", "2 x 1 x cpu=1 @ kubernetes.io/hostname", "--frontier"], "FrontierList"),
    ],
    ids=lambda words: " ".join(words) if isinstance(words, list) else words,
)
def test_json_is_what_its_schema_says(
    words: list[str], kind: str, cluster: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main([*(cluster if word == "FILE" else word for word in words), "--json"]) in (0, 5)
    document = json.loads(capsys.readouterr().out)
    jsonschema.validate(document, shipped(kind))


def test_verify_and_sweep_print_what_their_schemas_say(cluster: str, tmp_path: Path, capsys: Capture) -> None:
    placed = str(tmp_path / "placed.json")
    assert main(["solve", cluster, "--method", "greedy", "-o", placed, "--quiet"]) == 0
    capsys.readouterr()
    assert main(["verify", cluster, placed, "--json"]) == 0
    jsonschema.validate(json.loads(capsys.readouterr().out), report_schema("Verification"))
    assert main(["sweep", cluster, "--policies", "greedy", "--seeds", "1", "--executor", "inline", "-o", "-"]) == 0
    jsonschema.validate(json.loads(capsys.readouterr().out), report_schema("SweepRun"))


@pytest.mark.parametrize("kind", ["Placement", "ExplanationList", "Verification", "Configuration"])
def test_what_placer_has_written_is_no_part_of_an_instance(
    kind: str, cluster: str, tmp_path: Path, capsys: Capture
) -> None:
    document: dict[str, Any] = {"apiVersion": "placer.dev/v1alpha1", "kind": kind}
    path = tmp_path / "written.json"
    path.write_text(json.dumps(document | ({"items": [{"group": {}}]} if kind.endswith("List") else {})))
    for words in (["solve", str(path)], ["explain", cluster, str(path)]):
        assert main(words) == 3
        err = capsys.readouterr().err
        assert f"kind: found {kind.removesuffix('List')}, expected" in err


MISTYPED = [
    node("worker-1", cpu=8, gpu=8),
    {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "Queue",
        "metadata": {"name": "research"},
        "spec": {"weight": 1},
    },
    pod_group("train", minMember=1, queue="reserch"),
    pod("train-0", group="train", cpu=1, **{"nvida.com/gpu": 8}),
]


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        (["solve", "FILE", "--method", "greedy"], "no node offers nvida.com/gpu (found like it: nvidia.com/gpu)"),
        (
            ["solve", "FILE", "--method", "greedy"],
            "Queue reserch, named by PodGroup default/train, is not in the instance; found like it: research",
        ),
        (["explain", "FILE", "--group", "train"], "no node offers nvida.com/gpu (found like it: nvidia.com/gpu)"),
        (["explain", "FILE", "--group", "trian"], "; found like it: default/train"),
        (["solve", "FILE", "--set", "podgrup/train:spec.minMember=2"], "; found like it: podgroup"),
        (["solve", "FILE", "--without", "queue/reserch"], "; found like it: queue.scheduling.volcano.sh/research"),
        (["compare", "FILE", "--policies", "volcan"], "; found like it: volcano"),
        (["sweep", "FILE", "--policies", "gredy"], "; found like it: greedy"),
        (["sweep", "plantd"], "; found like it: planted"),
        (["sweep", "planted --nods 4"], "; found like it: --nodes"),
        (["generate", "plantd"], "; did you mean planted?"),
        (["topology", "show", "FILE", "--resource", "nvida.com/gpu"], "; found like it: nvidia.com/gpu"),
        (["repair", "FILE", "--lost", "worker-2"], "; found like it: worker-1"),
    ],
)
def test_a_name_that_is_not_there_is_followed_by_the_one_that_may_be_meant(
    words: list[str], meant: str, tmp_path: Path, capsys: Capture
) -> None:
    path = tmp_path / "mistyped.json"
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": MISTYPED}))
    main([str(path) if word == "FILE" else word for word in words])
    printed = capsys.readouterr()
    assert meant in " ".join((printed.out + printed.err).split())


@pytest.mark.parametrize(
    ("spec", "names"),
    [
        ({"resourceWeights": {"nvida.com/gpu": 2}}, "Resource nvida.com/gpu"),
        ({"topologyKeys": ["rak"]}, "Node label rak"),
    ],
)
def test_a_policy_that_names_nothing_of_the_nodes_is_a_finding(spec: dict[str, Any], names: str) -> None:
    policy = {"apiVersion": "placer.dev/v1alpha1", "kind": "Policy", "metadata": {"name": "default"}, "spec": spec}
    items = [node("n1", gpu=8, labels={"rack": "r1"}), policy]
    (finding,) = read(items).findings
    assert finding.message.startswith(f"{names}, named by Policy, is not in the instance; found like it: ")


@pytest.mark.parametrize(
    ("words", "phases"),
    [
        (["solve", "--method", "greedy"], ["reading", "3 pending pods, 1 node: greedy"]),
        (
            ["explain", "--group", "tune", "--time-limit", "600"],
            [
                "reading",
                "placing all waiting groups",
                "team-b/tune (1 of 1): looking for causes",
                "team-b/tune (1 of 1): trying change 1: ",
            ],
        ),
        (
            ["preempt", "--time-limit", "600"],
            ["reading", "looking for the fewest pods that must go or move"],
        ),
        (["queue", "--time-limit", "600"], ["reading", "3 pending pods"]),
        (["audit", "--time-limit", "600"], ["reading", "judging 1 group together"]),
        (["compare", "--policies", "kube-default,greedy"], ["reading", "kube-default (1 of 2)", "greedy (2 of 2)"]),
        (["report"], ["reading", "gathering facts for the page"]),
    ],
    ids=lambda words: words[0],
)
def test_progress_says_what_is_done(
    words: list[str], phases: list[str], cluster: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []
    monkeypatch.setattr(Progress, "phase", lambda _, text: said.append(text))
    monkeypatch.setattr(Progress, "_shows", True)
    output = ["-o", str(tmp_path / "page.html")] if words[0] == "report" else []
    assert main([*words, "-f", cluster, *output]) in (0, 5)
    left = iter(said)
    assert all(any(phase in text for text in left) for phase in phases), said
    assert not any("proved" in text for text in said if words[0] == "preempt")


def test_every_command_is_in_a_group_and_has_two_examples() -> None:
    names = [each.prog.removeprefix("placer ") for each in leaves(parser())]
    grouped = {name for group in commands.GROUPS.values() for name in group}
    assert {name.split(" ")[0] for name in names} <= grouped
    for name in names:
        if not name.startswith("generate "):
            first, second = commands.CALLS[name]
            assert first != second
            for line in (first, second):
                words = shlex.split(line.partition(" > ")[0].partition(" | ")[0])
                if words[0] == "placer" and words[1] != "help":
                    assert parser().parse_args(words[1:]).command == name.split(" ")[0]


def test_help_lists_commands_in_groups_and_hides_leader_election(capsys: Capture) -> None:
    assert main(["help"]) == 0
    text = capsys.readouterr().out
    assert [title for title in commands.GROUPS if f"\n{title}:\n" in text] == list(commands.GROUPS)
    for words in (["help", "preempt"], ["preempt", "--help"]):
        assert main(words) == 0
        shown = capsys.readouterr().out
        assert "leader-elect" not in shown.partition("\n\n")[2]
        assert "Examples:\n  placer preempt --for ml/train\n" in shown
    assert main(["preempt", "--help-all"]) == 0
    assert "--leader-elect-resource-name NAME\n" in capsys.readouterr().out.partition("\n\n")[2]
    assert main(["help", "premept"]) == 2
    assert "did you mean preempt?" in capsys.readouterr().err


def test_version_is_a_command_too(capsys: Capture) -> None:
    assert main(["--version"]) == main(["version"]) == 0
    first, second = capsys.readouterr().out.splitlines()
    assert first == second


@pytest.mark.parametrize(
    "words",
    [
        ["solve", "--method", "greedy"],
        ["solve", "--method", "greedy", "-o", "wide"],
        ["explain", "--time-limit", "600"],
        ["audit"],
        ["preempt", "--time-limit", "600"],
        ["compare", "--policies", "kube-default,greedy"],
        ["topology", "show"],
        ["sweep", "--policies", "greedy", "--seeds", "1", "--executor", "inline"],
        ["queue", "--time-limit", "600"],
        ["queue", "--cost"],
        ["queue", "--wide", "--time-limit", "600"],
        ["audit", "--sums"],
        ["repair", "--time-limit", "600"],
        ["config"],
        ["expand"],
        ["help"],
        ["help", "solve"],
        ["version"],
    ],
    ids=" ".join,
)
@pytest.mark.parametrize("width", [60, 140])
def test_no_line_ends_in_blanks_or_beyond_the_terminal(
    words: list[str], width: int, cluster: str, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    given = [] if words[0] in ("config", "help", "version") else ["-f", cluster]
    assert main([*words, *given]) in (0, 5)
    printed = capsys.readouterr()
    assert printed.out or printed.err
    lines = printed.out.splitlines()
    assert [line for line in lines if line != line.rstrip()] == []
    copied = (" " * 9 + "--", "  placer ", str(Path(cluster).parent))  # options, examples and paths are copied
    assert [line for line in lines if len(line) > width and not line.startswith(copied)] == []


def test_a_placement_in_the_folder_of_an_instance_names_its_file_and_the_remedy(
    tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "c.json").write_text(json.dumps(node("n", cpu=1)))
    monkeypatch.chdir(tmp_path)
    assert main(["solve", ".", "-o", "placement.yaml"]) == 0
    capsys.readouterr()
    assert main(["solve", "."]) == 3
    said = capsys.readouterr().err
    assert "./placement.yaml (document 1): Placement: kind: found Placement" in said
    assert "keep it in another folder; verify and report take a Placement after the instance" in said


@pytest.mark.parametrize(
    ("text", "began"),
    [
        ("kind: List\nitems: [{kind: Node, metadata: {name: a", "a flow mapping that begins in line 2"),
        ("kind: Node\nmetadata:\n  name: 'a\n", "a quoted scalar that begins in line 3"),
    ],
)
def test_yaml_that_is_cut_off_says_so(text: str, began: str, tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "c.yaml"
    path.write_text(text)
    assert main(["solve", str(path)]) == 3
    said = capsys.readouterr().err
    assert f"{path} (document 1): line " in said
    assert ": found the end of the text (" in said
    assert f"{began}), expected YAML to its end: write the file again if it is cut off" in said


def test_verify_without_a_placement_says_what_it_takes(capsys: Capture) -> None:
    assert main(["verify", "c.yaml"]) == 2
    assert "found c.yaml alone, expected INSTANCE... PLACEMENT" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["solve", "queue"])
def test_an_unknown_format_lists_those_that_there_are(command: str, tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "c.json"
    path.write_text(json.dumps(node("n", cpu=1)))
    assert main([command, str(path), "-o", "table"]) == 2
    assert re.search(r"table'?[:,] .*json, yaml, wide, name", capsys.readouterr().err)


def test_next_steps_of_piped_input_name_a_file(monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    items = [node("n", cpu=2), pod("r", node="n", cpu=2), pod("p", cpu=2)]
    objects = {"apiVersion": "v1", "kind": "List", "items": items}
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(json.dumps(objects).encode())))
    assert main(["solve", "-"]) == 0
    lines = capsys.readouterr().out.splitlines()
    at = lines.index("Next (FILE: a file with the same input)")
    assert lines[at + 1].startswith("  `placer preempt --for default/p FILE` ")
