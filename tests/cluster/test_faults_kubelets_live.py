"""Kubelets that reject and solvers that die, at a real API server."""

from __future__ import annotations

import importlib
import json
import subprocess
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from placer.methods import process
from tests.cluster.api import Api
from tests.cluster.faults import half_bound, recreate
from tests.cluster.kubelets import Kubelets
from tests.cluster.passes import Passes, bound, gang
from tests.cluster.things import live_pod
from tests.support import node


def test_a_kubelet_that_rejects_cools_down_and_the_gang_is_repaired(cluster: Api, passes: Passes) -> None:
    """n1's kubelet knows of less than it told: of two pods of 4 cpu it takes one."""
    kubelets = Kubelets(cluster)
    kubelets.add(node("n1"))
    kubelets.admissions["n1"] = type(kubelets.admissions["n1"]).of(node("n1", cpu=5))
    group, first, second = gang("train", 2, cpu=4)
    cluster.create(group, first, second)
    with kubelets.running(every=0.01):
        told = passes("--settle", "20", code=6)
        (name,) = told["rejected"]
        assert told["rejected"][name] == "OutOfcpu on n1"
        (found,) = half_bound(told).values()
        assert found["missing"] == {name: "the kubelet of Node n1 rejected it (OutOfcpu)"}
    # The controller of the pods makes another one; n1 has room for it, and n2 comes too. No kubelet looks meanwhile: a
    # pod that has its node and no status yet is one to start.
    kubelets.add(node("n2"))
    recreate(cluster, next(each for each in (first, second) if each["metadata"]["name"] == name.split("/")[1]))
    lost = live_pod("failed-before", node="n1", scheduler="placer", cpu=1)
    cluster.create({**lost, "status": {"phase": "Failed", "reason": "OutOfcpu", "startTime": _now()}})
    with kubelets.running(every=0.01):
        told = passes("--settle", "20")
        assert told["coolingNodes"] == ["n1"]
        assert sorted(bound(cluster).values()) == ["n1", "n2"]
        assert (told["gangs"]["bound"], told["rejected"]) == (1, {})


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def test_a_solver_that_is_killed_costs_no_more_than_its_answer(
    cluster: Api, passes: Passes, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    really, killed = process._start, []

    def start(*arguments: Any) -> subprocess.Popen[bytes]:
        child = really(*arguments)
        child.kill()
        killed.append(child.pid)
        return child

    monkeypatch.setattr(process, "_start", start)
    monkeypatch.setattr(importlib.import_module("placer.solve")._Job, "_proved", lambda *_: False)
    cluster.create(node("n1"), node("n2"), *gang("train", 4, cpu=4))
    told = passes("--method", "auto", "--save", str(tmp_path))
    assert killed
    assert (told["bound"], told["incomplete"]) == (4, [])
    document = json.loads(Path(told["saved"][1]).read_text())
    assert "SolverDied" in {each["code"] for each in document["findings"]}
