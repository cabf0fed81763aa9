"""Habits of kubectl's users: names, namespaces, selectors, formats and durations are taken as kubectl takes them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from placer.cli import main
from tests.support import node, pod, pod_group

Capture = pytest.CaptureFixture[str]

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


def items(document: Any) -> list[Any]:
    """The entries of a list, whether or not it says of which kind it is."""
    return list(document["items"] if isinstance(document, dict) else document)


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
    assert main(["explain", cluster, "--json", "--time-limit", "5", *words]) == 0
    groups = [each["group"] for each in items(json.loads(capsys.readouterr().out))]
    assert {f"{each['namespace']}/{each['name']}" for each in groups} == found


def test_audit_is_about_the_groups_that_are_selected(cluster: str, capsys: Capture) -> None:
    for words, count in (([], 1), (["-n", "team-a"], 1), (["-n", "team-b"], 0), (["-l", "app=train"], 0)):
        assert main(["audit", cluster, "--json", "--time-limit", "5", *words]) == 0
        assert len(items(json.loads(capsys.readouterr().out))) == count


def test_preempt_makes_room_for_the_groups_that_are_selected(cluster: str, capsys: Capture) -> None:
    for words, count in ((["-n", "team-b"], 2), (["-l", "app=train"], 2), (["--for", "tune"], 1), ([], 3)):
        assert main(["preempt", cluster, "--json", "--time-limit", "5", *words]) == 5
        assert len(json.loads(capsys.readouterr().out)["groups"]) == count
    assert main(["preempt", cluster, "--for", "train"]) == 2
    assert "found 2 groups of that name, expected one of podgroup." in capsys.readouterr().err


def test_one_namespace_and_all_of_them_are_not_asked_for_together(cluster: str, capsys: Capture) -> None:
    assert main(["explain", cluster, "-A", "-n", "team-a"]) == 2
    assert "not allowed with argument" in capsys.readouterr().err


@pytest.mark.parametrize(("context", "found"), [(None, "team-a"), ("one", "team-a"), ("two", None), ("three", None)])
def test_the_namespace_of_the_context_is_the_users_own(context: str | None, found: str | None, tmp_path: Path) -> None:
    pytest.importorskip("kubernetes")
    from placer.cluster.reading.credentials import context_namespace

    path = tmp_path / "config"
    path.write_text(json.dumps(KUBECONFIG))
    assert context_namespace(str(path), context) == found
