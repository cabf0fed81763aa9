"""What names in a path: nothing that a tenant wrote leads anywhere else."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from placer.base.errors import ClusterError
from placer.passes.cluster.reading.client import Response
from placer.passes.cluster.reading.paths import segment
from placer.passes.cluster.writing.binding import pod_path
from placer.passes.cluster.writing.pod_group_status import PodGroupStatus, write_upstream_pod_group_status
from placer.passes.cluster.writing.volcano_pod_groups import write_pod_group_status
from placer.problem import GroupKey
from tests.cluster.test_any_object import ALL_GOOD, Double, good, good_ones, pass_at
from tests.cluster.things import live_pod
from tests.support import Document

ROOT = Path(__file__).parents[2] / "placer"
STEPS_UP = "../../../../../.."
ELSEWHERE = (
    "../../victim/podgroups/train",
    "..%2F..%2Fvictim%2Fpodgroups%2Ftrain",
    f"{STEPS_UP}/api/v1/namespaces/victim/pods/train-0/status",
    "train/status",
    "train?force=true",
    "train#",
    "..",
    ".",
    "%2e%2e",
    "\u002e\u002e/x",
    "train\n",
    "",
    "x" * 254,
)


@pytest.mark.parametrize("name", ELSEWHERE)
def test_a_name_that_no_object_has_gets_into_no_path(name: str) -> None:
    with pytest.raises(ClusterError, match="expected a name that an object of Kubernetes can have"):
        segment(name)
    with pytest.raises(ClusterError, match="expected a name"):
        pod_path("default", name)


class Nobody:
    """A server that must not be asked."""

    def get(self, path: str, _: Mapping[str, str] | None = None) -> Response:
        raise AssertionError(path)

    def send(self, _: str, path: str, __: object = None, **___: Any) -> Response:
        raise AssertionError(path)


@pytest.mark.parametrize("name", ELSEWHERE)
@pytest.mark.parametrize("write", [write_pod_group_status, write_upstream_pod_group_status])
def test_no_status_is_written_by_such_a_name(write: Any, name: str) -> None:
    wanted = PodGroupStatus(GroupKey("any", "evil", name), ready=False, some=False, reason="x", message="x")
    with suppress(ClusterError):
        assert not write(Nobody(), wanted, "now")


class Listening(Double):
    """A double that notes whatever it is asked for."""

    def __init__(self, documents: list[Document]) -> None:
        self.paths: list[str] = []
        super().__init__(documents, [])

    def get(self, path: str, parameters: Mapping[str, str] | None = None) -> Response:
        self.paths.append(path)
        return super().get(path, parameters)

    def send(self, method: str, path: str, body: Any = None, **options: Any) -> Response:
        self.paths.append(path)
        return super().send(method, path, body, **options)


@pytest.mark.parametrize("name", ELSEWHERE[:3])
def test_no_pass_asks_for_what_pods_say_their_groups_are_called(name: str) -> None:
    """Of a gang that is not there the pods are told why they wait, and no PodGroup is looked for."""
    volcano = live_pod("odd", namespace="evil", cpu=1, group=name)
    upstream = live_pod("even", namespace="evil", cpu=1, spec={"schedulingGroup": {"podGroupName": name}})
    server = Listening([*good(), volcano, upstream])
    _, done = pass_at(server)
    assert good_ones(server) == ALL_GOOD
    assert [path for path in server.paths if "victim" in path or ".." in path or "%" in path] == []
    assert done.report.status.troubles == []


def _paths(tree: ast.AST) -> Iterator[ast.JoinedStr]:
    """Texts with names in them that are paths of the API, or parts of such."""
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            written = "".join(str(each.value) for each in node.values if isinstance(each, ast.Constant))
            begins = [each.value for each in node.values[:1] if isinstance(each, ast.Constant)]
            if any(str(each).startswith(("/api", "/", "namespaces/")) for each in begins) or "namespaces/" in written:
                yield node


@pytest.mark.parametrize("package", ["passes/cluster", "passes/preflight"])
def test_names_in_paths_are_checked_wherever_one_is_made(package: str) -> None:
    found = 0
    for file in sorted((ROOT / package).rglob("*.py")):
        for path in _paths(ast.parse(file.read_text(encoding="utf-8"))):
            for part in (each.value for each in path.values if isinstance(each, ast.FormattedValue)):
                if "name" in ast.unparse(part).lower():
                    found += 1
                    assert ast.unparse(part).startswith("segment("), f"{file.name}:{path.lineno}: {ast.unparse(path)}"
    assert found >= {"passes/cluster": 12, "passes/preflight": 2}[package]
