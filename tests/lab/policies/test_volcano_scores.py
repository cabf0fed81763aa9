"""Scores of HyperNodes and nodes as Volcano's own tests have them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import yaml

from placer.lab.policies.framework import ClusterState
from placer.lab.policies.volcano.jobs import HyperNodesInfo, SubJob, read_jobs
from placer.lab.policies.volcano.topology import TopologyAware, TopologyWeights
from placer.problem import Key
from tests.support import Document, case_documents, instance_of

DATA = Path(__file__).parent / "data" / "volcano_scores.yaml"
CASES = {case["id"]: case for case in yaml.safe_load(DATA.read_text("utf-8"))["score_cases"]}


class Bench:
    """The plug-in over one case."""

    def __init__(self, case: Document) -> None:
        scheduler = case.get("scheduler", {})
        weights = TopologyWeights(scheduler.get("weight", 1), scheduler.get("hnw", {"cpu": 1, "memory": 1}))
        self.state = ClusterState(instance_of(*case_documents(case)), seed=0)
        self.domains = HyperNodesInfo(self.state)
        self.plugin = TopologyAware(self.state, self.domains, weights)
        (self.job,) = read_jobs(self.state, self.domains)

    def subjob(self, name: str) -> SubJob:
        return next(each for each in self.job.subjobs if each.uid == f"default/{name}")


@pytest.mark.parametrize(
    "case", [case for case in CASES.values() if case["kind"] == "hypernode"], ids=lambda c: c["id"]
)
def test_hyper_nodes(case: Document) -> None:
    bench = Bench(case)
    domains = [bench.domains.number[name] for name in case["scores"]]
    found = bench.plugin.hyper_nodes(bench.subjob(case["subjob"]), domains)
    assert dict(zip(case["scores"], found.tolist(), strict=True)) == pytest.approx(case["scores"], abs=0.1)


@pytest.mark.parametrize("case", [case for case in CASES.values() if case["kind"] == "node"], ids=lambda c: c["id"])
def test_nodes(case: Document) -> None:
    bench = Bench(case)
    (subjob,) = bench.job.subjobs
    nodes = np.array([bench.state.number[name] for name in case["scores"]])
    task = bench.state.task_of[Key("default", case["task"])]
    found = bench.plugin.nodes(subjob, subjob.anchor, task, nodes)
    assert dict(zip(case["scores"], found.tolist(), strict=True)) == pytest.approx(case["scores"], abs=0.1)


def test_the_anchor_is_where_the_running_pods_are() -> None:
    bench = Bench(CASES["score-node-lca-and-task-count"])
    (subjob,) = bench.job.subjobs
    assert subjob.anchor == bench.domains.number["s1"]
    assert subjob.running == {bench.state.number[name]: 1 for name in ("s3-n1", "s3-n2", "s4-n1")}


def test_there_are_two_of_each() -> None:
    assert sorted(case["kind"] for case in CASES.values()) == ["hypernode", "hypernode", "node", "node"]
