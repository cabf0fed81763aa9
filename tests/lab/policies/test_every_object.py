"""Every policy bears every kind of object: no input, however odd, ends ``compare``, ``sweep`` or ``explain``."""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest

from placer.answers.explain.cases import Case
from placer.answers.explain.explanation import as_things_stand
from placer.base.deadline import Deadline
from placer.cli import main
from placer.kube.manifests import dump, from_documents
from placer.lab.comparing import compare, row
from placer.lab.deciders import Asked
from placer.lab.other_schedulers import OtherSchedulers
from placer.lab.own_policies import Proposal
from placer.lab.policies.mimicry import POLICIES, SORTED, mimic
from placer.lab.sweep.runs import answer, plan
from placer.search.process import ProcessEnd, ProcessResult
from tests.examples import seed_blocks
from tests.netdocs import APP, REGION, WORKLOAD, ZONE, app_group, call, costs, network_topology, weights
from tests.support import Document, hyper_node, instance_of, listing, node, pod, pod_group, queue

MIMICRY = importlib.import_module("placer.lab.policies.mimicry")
DECIDERS = importlib.import_module("placer.lab.deciders")


class Odd:
    """A few objects, drawn: each kind of pod, group, queue and node may be there or not."""

    def __init__(self, seed: int) -> None:
        self.random = Random(f"odd {seed}")
        self.nodes = [f"n{at}" for at in range(self.random.choice([1, 1, 2, 3, 5]))]
        self.tree = self.chance(0.6)

    def chance(self, probability: float) -> bool:
        return self.random.random() < probability

    def documents(self) -> list[Document]:
        return [*self._cluster(), *self._queues(), *self._groups(), *self._pods()]

    def _cluster(self) -> Iterator[Document]:
        for at, name in enumerate(self.nodes):
            labels = {REGION: f"r{at % 2}", ZONE: f"z{at % 3}", "rack": "" if self.chance(0.2) else f"k{at % 2}"}
            yield from self._node(name, labels if self.chance(0.8) else {})
        if self.tree:
            leaves = self.nodes if self.chance(0.6) else self.nodes[:1]
            yield from (hyper_node(f"h-{name}", 1, nodes=(name,)) for name in leaves)
            if self.chance(0.7):
                yield hyper_node("top", self.random.choice([2, 4]), children=tuple(f"h-{name}" for name in leaves))
        if self.chance(0.5):
            links = costs(("r0", "r1", 20), ("r1", "r0", 20)), costs(("z0", "z1", 5, "2G"), ("z1", "z0", 5))
            yield network_topology(weights(region=links[0], zone=links[1]))

    def _node(self, name: str, labels: dict[str, str]) -> Iterator[Document]:
        if self.chance(0.15):
            yield {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}}
            return
        amounts: dict[str, object] = {"cpu": self.random.choice([0, 2, 4]), "memory": "4Gi", "pods": 10}
        kept = {key: amount for key, amount in amounts.items() if self.chance(0.85)}
        made = dict(node(name, labels, **kept, **({"gpu": 2} if self.chance(0.4) else {})))
        taint = [{"key": "t", "effect": "NoSchedule"}] if self.chance(0.1) else []
        yield made | {"spec": {"taints": taint, "unschedulable": self.chance(0.05)}}
        if self.chance(0.4):
            yield self._zones(name)

    def _zones(self, name: str) -> Document:
        amounts = [{"name": "cpu", "capacity": "2", "allocatable": "2", "available": self.random.choice("012")}]
        zones = [
            {"name": f"node-{at}", "type": "Node", "resources": amounts} for at in range(self.random.choice([0, 1, 2]))
        ]
        return {
            "apiVersion": "topology.node.k8s.io/v1alpha2",
            "kind": "NodeResourceTopology",
            "metadata": {"name": name},
            "attributes": [
                {
                    "name": "topologyManagerPolicy",
                    "value": self.random.choice(["single-numa-node", "restricted", "none"]),
                }
            ],
            "zones": zones,
        }

    def _queues(self) -> Iterator[Document]:
        for name in ("default", "q"):
            if self.chance(0.5):
                made = queue(name, {"cpu": 2} if self.chance(0.5) else None)
                yield dict(made) | {"status": {"state": self.random.choice(["Open", "Closed"])}}

    def _groups(self) -> Iterator[Document]:
        topologies: list[dict[str, Any]] = [
            {},
            {"networkTopology": {"mode": "soft"}},
            {"networkTopology": {"mode": "hard", "highestTierAllowed": 1}},
            {"networkTopology": {"mode": "hard", "highestTierName": "nowhere"}},
            {
                "subGroupPolicy": [
                    {
                        "name": "s",
                        "subGroupSize": 1,
                        "labelSelector": {"matchLabels": {"role": "s"}},
                        "matchLabelKeys": ["index"],
                    }
                ]
            },
            {"minTaskMember": {"w": 1}},
            {"minResources": {"cpu": "3"}},
        ]
        for name in "ab":
            asked = self.random.choice(topologies) | (
                {"queue": self.random.choice(["q", "gone"])} if self.chance(0.4) else {}
            )
            yield pod_group(name, minMember=self.random.randint(0, 3), **asked)
        yield pod_group("c", minMember=2) | {"apiVersion": "scheduling.x-k8s.io/v1alpha1"}
        if self.chance(0.6):
            yield app_group("shop", {"w": [call("v", cost=self.random.choice([0, 10]), bandwidth="1G")], "v": []})

    def _pods(self) -> Iterator[Document]:
        for at in range(self.random.randint(1, 8)):
            yield self._pod(f"p-{at}")

    def _pod(self, name: str) -> Document:
        random = self.random
        labels: dict[str, str] = {"app": random.choice("xy")}
        annotations: dict[str, str] = {}
        if self.chance(0.5):
            annotations = {
                "scheduling.k8s.io/group-name": random.choice("ab"),
                "volcano.sh/task-spec": random.choice(["w", ""]),
            }
            labels |= {"role": random.choice("st"), "index": random.choice("01")}
        elif self.chance(0.3):
            labels["scheduling.x-k8s.io/pod-group"] = random.choice("cd")
        if self.chance(0.3):
            labels |= {APP: "shop", WORKLOAD: random.choice("wv")}
        if self.chance(0.1):
            annotations["scheduling.volcano.sh/queue-name"] = "q"
        asked = random.choice(
            [{}, {}, {"cpu": 1}, {"cpu": "500m", "memory": "1Gi"}, {"gpu": 1}, {"example.com/none": 1}]
        )
        bound = random.choice([*self.nodes, "gone"]) if self.chance(0.3) else None
        gone = {"deletionTimestamp": "2026-01-01T00:00:00Z"} if bound and self.chance(0.2) else {}
        scheduler = random.choice(["volcano", "default-scheduler", "placer", ""])
        spec = {"schedulerName": scheduler, "priority": random.choice([0, 0, 10]), **self._spec(name)}
        return pod(
            name,
            labels=labels,
            annotations=annotations,
            node=bound,
            spec=spec,
            metadata=gone,
            **asked,  # type: ignore[arg-type]
        )

    def _spec(self, name: str) -> dict[str, Any]:
        spec: dict[str, Any] = {}
        if self.chance(0.1):
            spec["schedulingGates"] = [{"name": "g"}]
        if self.chance(0.2):
            term = {
                "topologyKey": self.random.choice(["rack", ZONE, "none"]),
                "labelSelector": {"matchLabels": {"app": "x"}},
            }
            kind = self.random.choice(["podAffinity", "podAntiAffinity"])
            spec["affinity"] = {kind: {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
        if self.chance(0.15):
            limit = {"topologyKey": ZONE, "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule", "labelSelector": {}}
            spec["topologySpreadConstraints"] = [limit]
        if self.chance(0.15):
            spec["volumes"] = [{"name": "v", "persistentVolumeClaim": {"claimName": name}}]
        if self.chance(0.1):
            spec["nodeSelector"] = {"rack": "k0"}
        return spec


@pytest.mark.parametrize("seeds", seed_blocks(4000, 40))
def test_no_policy_fails(seeds: range) -> None:
    """What each binds is judged and measured as ``compare`` does, and told as ``explain`` does."""
    bound = 0
    for seed in seeds:
        documents = Odd(seed).documents()
        instance = instance_of(*documents)
        for name in (*POLICIES, *SORTED[:1]):
            found = mimic(instance, name, seed=seed)
            told = row(instance, Asked(name), Proposal(found.placement, found.notes), 0)
            bound += told.placed_pods or 0
        case = Case(from_documents(documents))
        others = OtherSchedulers(case, as_things_stand(case, Deadline.within(3600)))
        for key in others.names:
            fate = others.fate(key, Deadline.within(3600))
            assert fate is not None
            assert not fate.error
    assert bound


def test_a_policy_that_fails_is_a_row_that_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """``compare`` and ``sweep`` tell of the others, ``explain`` of all but that scheduler."""
    file = tmp_path / "i.json"
    waits = [pod(name, spec={"schedulerName": "volcano"}, cpu=cpu) for name, cpu in (("p", 1), ("q", 9))]
    dump({"apiVersion": "v1", "kind": "List", "items": [node("n", cpu=2), *waits]}, str(file))
    monkeypatch.setattr(MIMICRY, "Session", _fails)
    monkeypatch.setattr(DECIDERS, "run_apart", _in_place)

    failure = r"policy volcano failed, which is a bug in placer: KeyError: 'no such thing' \(test_every_object.py:\d+\)"
    volcano, ours = compare(instance_of(*map(dict, waits), node("n", cpu=2)), ["volcano", "greedy"])
    assert re.fullmatch(failure, volcano.error or "")
    assert (volcano.placed_pods, ours.error, ours.placed_pods) == (None, None, 1)

    (run,) = plan([str(file)], seeds=[1], policies=["volcano"])
    line = answer(run, str(file), str(tmp_path / "p.json"), lambda _: None)
    assert re.fullmatch(failure, line.error or "")

    assert main(["explain", str(file), "--json"]) == 0
    told = listing(capsys.readouterr().out)
    assert {each["scheduler"]["mimicry"] for each in told} == {None}
    assert all(re.fullmatch(failure, each["scheduler"]["error"]) for each in told)
    assert main(["explain", str(file)]) == 0
    assert re.search(f"The order of volcano is not known: {failure}", capsys.readouterr().out)


def _in_place(target: str, arguments: tuple[Any, ...], _: object) -> ProcessResult:
    """Decide in this process, where the policy is made to fail."""
    module, _, name = target.partition(":")
    return ProcessResult(
        ProcessEnd.RETURNED, getattr(importlib.import_module(module), name)(*arguments, lambda _: None)
    )


def _fails(*_: object) -> None:
    raise KeyError("no such thing")
