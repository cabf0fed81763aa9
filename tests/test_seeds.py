"""What the designs that placer grew from say must come out of their examples, asked of the shipped instances."""

from __future__ import annotations

import json
import re
import runpy
import sys
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from placer.answers.document import placement_document
from placer.answers.solving import solve
from placer.cli import main
from placer.lab.policies.framework import ClusterState
from placer.lab.policies.mimicry import run
from placer.lab.policies.network_aware import Overhead
from placer.lab.policies.volcano.jobs import TOP, HyperNodesInfo, Wanted, read_jobs
from placer.lab.policies.volcano.topology import TopologyAware, TopologyWeights
from placer.problem import Instance
from placer.problem.network_objects import ALGORITHMS
from placer.problem.placement import Placement
from placer.problem.reading import read
from placer.problem.result import Result, Verdict
from placer.rules import verify
from placer.rules.scoring import score
from tests.problem.test_workload_sorts import TABLE
from tests.support import instance_of

ROOT = Path(__file__).parent.parent
SEEDS, NETWORK = ROOT / "instances" / "seeds", ROOT / "instances" / "network"

Capture = pytest.CaptureFixture[str]
#: A group of a Placement as what counts here: placed, pending, tier, HyperNode, and the same of its subgroups.
Found = Mapping[str, Any]


def path(name: str) -> Path:
    return SEEDS / (f"{name}.json.gz" if "use_case" in name else f"{name}.yaml")


@cache
def instance(name: str) -> Instance:
    return read(path(name), strict=True)


@cache
def answer(name: str, method: str) -> Result:
    """Every one of these is proved at once; the limit is one of work, so that no speed matters."""
    return solve(instance(name), method=method, workers=1, time_limit=None, work_limit=20)


def groups(result: Result) -> dict[str, Found]:
    return {group["name"]: group for group in placement_document(result).as_dict()["groups"]}


def place(group: Found) -> tuple[int, int | None, str | None]:
    return group["placed"], group["tier"], group["hyperNode"]


def bound(placement: Placement | None) -> dict[str, str]:
    assert placement is not None
    return {binding.pod.name: binding.node for binding in placement.bindings}


def values(problem: Instance, placement: Placement) -> dict[str, int]:
    return {value.name: value.value for value in score(problem, placement)}


# --------------------------------------------------------------------------------- what must come out, by every method

#: Instance to its groups: pods placed with those that run, tier, HyperNode; then the same of the subgroups, in any
#: order, where one is as good as another; then what stays pending, and why.
MUST: Mapping[str, Mapping[str, tuple[tuple[int, int | None, str | None], list[tuple[int, Any, Any]], str | None]]] = {
    "volcano_example_1": {"network-topology-job": ((8, 2, "s5"), [(4, 1, "s2"), (4, 1, "s3")], None)},
    "volcano_example_2": {
        "pair": ((2, 1, "nvlink-network2"), [], None),
        "quartet": ((4, 2, "roce-network0"), [], None),
        "single": ((1, 1, "nvlink-network3"), [], None),
    },
    "volcano_gradient_job": {"job0": ((4, 2, "hypernode5"), [(2, 1, "hypernode2"), (2, 1, "hypernode3")], None)},
    "volcano_gradient_subjob": {
        "job0": ((2, None, None), [(0, None, None), (2, 1, "hypernode1")], "TopologyTooNarrow"),
    },
    "volcano_gradient_subjob_in_hypernode4": {
        "job0": ((4, 2, "hypernode4"), [(2, 1, "hypernode0"), (2, 1, "hypernode1")], None)
    },
    "volcano_subjob_id": {"job": ((6, 2, "spine"), [(3, 1, "leaf0"), (3, 1, "leaf1")], "InsufficientResources")},
    "volcano_member_selectors": {
        "one": ((1, 1, "exact"), [], None),
        "two": ((2, 1, "regex"), [], None),
        "three": ((3, 1, "label"), [], None),
        "gpu-a": ((0, None, None), [], "TopologyTooNarrow"),
        "gpu-b": ((0, None, None), [], "TopologyTooNarrow"),
    },
    "label_plugin_drawback": {"train": ((4, 1, "bj/rack2/nvlink-b"), [], None)},
    "label_plugin_keys": {
        "three": ((3, 1, "sh/NvLink-A100/rack1"), [], None),
        "four": ((4, 2, "bj/NvLink-A100"), [], None),
    },
    "label_plugin_single_key": {"train": ((3, 1, "rack2"), [], None)},
    "kep_119_motivation": {
        "six-0": ((1, None, None), [], None),
        "six-1": ((1, None, None), [], None),
        "six-2": ((0, None, None), [], "Outcompeted"),
    },
    "kep_260_bandwidth": {"network-aware-bandwidth-example": ((1, None, None), [], None)},
}


@pytest.mark.parametrize("method", ["greedy", "auto"])
@pytest.mark.parametrize("name", MUST)
def test_what_must_come_out(name: str, method: str) -> None:
    found = groups(answer(name, method))
    for group, (whole, parts, reason) in MUST[name].items():
        assert place(found[group]) == whole
        assert sorted(map(place, found[group]["subGroups"])) == parts
        assert (found[group]["reason"] or {"code": None})["code"] == reason
    assert set(found) == set(MUST[name])


@pytest.mark.parametrize("name", [*MUST, "volcano_job_controller"])
def test_it_is_proved(name: str) -> None:
    assert answer(name, "auto").verdict is Verdict.OPTIMAL


# ------------------------------------------------------------------------------------- Volcano: Use Case 1, by its size


@pytest.mark.parametrize(
    ("pods", "expected", "span"), [(3000, (3000, 1, "east-a"), 1), (5000, (5001, 2, "east"), 2)], ids=["3000", "5000"]
)
def test_all_in_one_zone_of_tier_1_else_in_one_of_tier_2(pods: int, expected: tuple[int, int, str], span: int) -> None:
    """West is empty and too small; east-a has 3,024 free nodes, and east the 5,000, launcher and all."""
    name = f"volcano_use_case_1_{pods}"
    result = answer(name, "auto")
    assert (result.verdict, result.termination) == (Verdict.OPTIMAL, "proved")
    (group,) = groups(result).values()
    assert (group["admitted"], place(group)) == (True, expected)
    assert result.placement is not None
    assert values(instance(name), result.placement)["span"] == span


@cache
def small(pods: int, framework: str, tier: int) -> Instance:
    """Use Case 1 in a hundredth of its size, by the same script."""
    case = runpy.run_path(str(SEEDS / "use_cases.py"))
    options = ["--pods", str(pods), "--framework", framework, "--east", "31,21", "--west", "10,10", "--busy", "1,1"]
    before, sys.argv = sys.argv, ["use_cases.py", "1", *options, "-o", "unused.json"]
    try:
        _, parsed = case["parse"]()
    finally:
        sys.argv = before
    documents = list(case["use_case_1"](parsed))
    documents[-1]["spec"]["networkTopology"]["highestTierAllowed"] = tier
    return instance_of(*documents)


@pytest.mark.parametrize(
    ("pods", "framework", "tier", "bound_at"),
    [
        (30, "pytorch", 2, {"east-a"}),
        (31, "pytorch", 2, {"east-a", "east-b"}),
        (50, "mpi", 2, {"east-a", "east-b"}),
        (51, "mpi", 2, set()),
        (51, "mpi", 3, {"east-a", "east-b", "west-a", "west-b"}),
        (31, "pytorch", 1, set()),
    ],
)
@pytest.mark.parametrize("who", ["greedy", "auto", "volcano"])
def test_the_gang_is_whole_or_not_at_all(pods: int, framework: str, tier: int, bound_at: set[str], who: str) -> None:
    """30 free nodes in east-a, 50 in east. Volcano's own order gives the same, tier by tier."""
    problem = small(pods, framework, tier)
    if who == "volcano":
        placement: Placement | None = run(problem, "volcano")
    else:
        result = solve(problem, method=who, workers=1, time_limit=None, work_limit=20)
        placement = result.placement
        (reason,) = [each.code for each in result.reasons.values()] or [None]
        assert reason == (None if bound_at else "TopologyTooNarrow")
    assert placement is not None
    assert verify(problem, placement) == []
    assert len(placement.bindings) == (len(problem.pending) if bound_at else 0)
    zones = {problem.topology.path(node)[0] for node in bound(placement).values()}
    assert zones <= bound_at if tier == 3 else zones == bound_at


# --------------------------------------------------------------------------------------------------- Volcano: gradients


class Gradients:
    """The two functions of the seed, over an instance; ``within`` is a HyperNode by name."""

    def __init__(self, name: str) -> None:
        state = ClusterState(instance(name), seed=0)
        self.domains = HyperNodesInfo(state)
        self.plugin = TopologyAware(state, self.domains, TopologyWeights())
        (self.job,) = read_jobs(state, self.domains)

    def for_job(self, within: str = TOP) -> list[list[str]]:
        return self._of(self.job.wanted, self.job.anchor, within)

    def for_subjob(self, name: str, within: str = TOP) -> list[list[str]]:
        subjob = next(each for each in self.job.subjobs if each.uid.endswith(name))
        return self._of(subjob.wanted, subjob.anchor, within)

    def _of(self, wanted: Wanted | None, anchor: int | None, within: str) -> list[list[str]]:
        """Without a look at room: the document's lists are those of an empty cluster."""
        nothing = np.zeros(len(self.plugin.state.resources), dtype=np.int64)
        found = self.plugin.gradients(wanted, anchor, self.domains.number[within], nothing)
        return [[self.domains.names[each] for each in gradient] for gradient in found]


LEAVES = [f"hypernode{number}" for number in range(4)]


def test_gradients_for_the_job_under_the_top() -> None:
    found = Gradients("volcano_gradient_job").for_job()
    assert [sorted(gradient) for gradient in found] == [LEAVES, ["hypernode4", "hypernode5"]]


def test_gradients_for_a_subjob_under_the_top() -> None:
    for name in ("volcano_gradient_job", "volcano_gradient_subjob"):
        (found,) = Gradients(name).for_subjob("subjob-0")
        assert sorted(found) == LEAVES


def test_gradients_for_a_subjob_under_hypernode4() -> None:
    for name in ("volcano_gradient_job", "volcano_gradient_subjob_in_hypernode4"):
        (found,) = Gradients(name).for_subjob("subjob-0", "hypernode4")
        assert sorted(found) == LEAVES[:2]


def test_without_a_limit_the_given_hyper_node_is_all_that_is_tried() -> None:
    assert Gradients("volcano_gradient_subjob").for_job() == [[TOP]]
    assert Gradients("volcano_gradient_subjob").for_job("hypernode4") == [["hypernode4"]]


def test_what_is_too_far_from_the_running_pods_is_not_tried() -> None:
    """SubJob1 runs in hypernode0; with hypernode2, 3 and 5 its lowest common ancestor has tier 3."""
    found = Gradients("volcano_gradient_subjob_in_hypernode4").for_job()
    assert [sorted(gradient) for gradient in found] == [LEAVES[:2], ["hypernode4"]]


# ---------------------------------------------------------------------------------- what the published schedulers make


@pytest.mark.parametrize(
    "name",
    [
        "volcano_gradient_job",
        "volcano_gradient_subjob",
        "volcano_gradient_subjob_in_hypernode4",
        "volcano_subjob_id",
        "volcano_member_selectors",
    ],
)
def test_volcano_comes_to_the_same_where_its_search_is_enough(name: str) -> None:
    best = answer(name, "auto").placement
    assert best is not None
    for seed in range(5):
        placement = run(instance(name), "volcano", seed=seed)
        assert verify(instance(name), placement) == []
        assert score(instance(name), placement) == score(instance(name), best)


def test_volcano_leaves_a_partition_out() -> None:
    """It fills leaves partition by partition and takes nothing back: 12 of 14 pods at every seed."""
    problem = instance("volcano_job_controller")
    for seed in range(5):
        placement = run(problem, "volcano", seed=seed)
        assert verify(problem, placement) == []
        assert len({pod.key for pod in problem.pending} - {each.pod for each in placement.bindings}) == 2


@pytest.mark.parametrize(
    ("name", "policy", "level", "best"),
    [
        ("volcano_example_1", "volcano", "placed", 4_000_000),
        ("volcano_example_2", "volcano", "placed", 7_000_000),
        ("label_plugin_drawback", "volcano-labels", "locality", 4),
        ("label_plugin_keys", "volcano-labels", "locality", 11),
        ("label_plugin_single_key", "volcano-labels", "locality", 3),
    ],
)
def test_where_ties_decide_a_policy_meets_the_best_at_some_seeds_only(
    name: str, policy: str, level: str, best: int
) -> None:
    """Which node or HyperNode of equal score comes first is chance, and nothing is taken back."""
    proved = answer(name, "auto").placement
    assert proved is not None
    assert values(instance(name), proved)[level] == best
    found = {values(instance(name), run(instance(name), policy, seed=seed))[level] for seed in range(30)}
    assert best in found
    assert len(found) > 1
    assert (max(found) if level == "placed" else min(found)) == best


# ------------------------------------------------------------------------------------------------- Volcano: the objects


def test_the_job_controllers_pod_group_is_that_of_the_text(capsys: Capture) -> None:
    """What the document writes, each field; what its text leaves out (minResources, minTaskMember) may stand beside."""
    assert main(["expand", str(path("volcano_job_controller")), "-o", "-"]) == 0
    made = list(yaml.safe_load_all(capsys.readouterr().out))
    documents = [item for document in made for item in document.get("items", [document])]
    (group,) = (each for each in documents if each["kind"] == "PodGroup")
    hard = {"mode": "hard", "highestTierAllowed": 1}
    assert group["metadata"]["name"] == "network-topology-job-5d5c1b0e-8d0a-4b7e-9d8e-3f6f0f4b2c11"
    assert group["spec"]["minMember"] == 3
    assert group["spec"]["networkTopology"] == {"mode": "hard", "highestTierAllowed": 2}
    assert [_without_none(policy) for policy in group["spec"]["subGroupPolicy"]] == [
        {
            "name": name,
            "subGroupSize": size,
            "labelSelector": {"matchLabels": {"volcano.sh/task-spec": name}},
            "matchLabelKeys": ["volcano.sh/partition-id"],
            "networkTopology": hard,
        }
        for name, size in (("task0", 3), ("task1", 2))
    ]
    partitions = {
        each["metadata"]["name"]: each["metadata"]["labels"]["volcano.sh/partition-id"]
        for each in documents
        if each["kind"] == "Pod" and "partition-id" in json.dumps(each)
    }
    assert [partitions[f"network-topology-job-task0-{number}"] for number in range(6)] == list("000111")
    assert [partitions[f"network-topology-job-task1-{number}"] for number in range(8)] == list("00112233")


def _without_none(policy: Mapping[str, Any]) -> dict[str, Any]:
    """The least number of subgroups is 0 where the Job says nothing, as the API's default has it."""
    return {key: value for key, value in policy.items() if not (key == "minSubGroups" and value == 0)}


@pytest.mark.parametrize("method", ["greedy", "auto"])
def test_fourteen_pods_fill_s5_partition_by_partition(method: str) -> None:
    (group,) = groups(answer("volcano_job_controller", method)).values()
    assert place(group) == (14, 2, "s5")
    assert [part["name"] for part in group["subGroups"]] == [
        "task0-0", "task0-1", "task1-0", "task1-1", "task1-2", "task1-3",
    ]  # fmt: skip
    assert all(part["tier"] == 1 for part in group["subGroups"])
    sizes = {leaf: sum(p["placed"] for p in group["subGroups"] if p["hyperNode"] == leaf) for leaf in ("s2", "s3")}
    assert sizes == {"s2": 8, "s3": 6}


def test_a_subjobs_id_is_its_policy_and_its_values() -> None:
    (group,) = groups(answer("volcano_subjob_id", "auto")).values()
    assert [part["name"] for part in group["subGroups"]] == ["task0-12-server", "task0-12-worker"]
    assert "job-task1-0" not in bound(answer("volcano_subjob_id", "auto").placement)


def test_each_selector_takes_the_nodes_that_it_says() -> None:
    tree = instance("volcano_member_selectors").topology
    leaves = {node: tree.path(node) for node in instance("volcano_member_selectors").nodes}
    assert leaves == {
        "node1": ("exact", "top"),
        **dict.fromkeys(["node-1", "node-20"], ("regex", "top")),
        **dict.fromkeys(["alpha", "beta", "gamma"], ("label", "top")),
        **dict.fromkeys(["node-x", "delta"], ()),
    }


# -------------------------------------------------------------------------------------------------------------- KEP-260


@pytest.mark.parametrize(("limit", "candidates"), [(15, 4), (30, 8)])
def test_the_filter_and_the_score_of_the_kep(limit: int, candidates: int) -> None:
    """15 in its text and figures: n5 to n8 are filtered out. With 30, as in its YAML, nothing is; n1 stays the best."""
    text = (
        (NETWORK / "kep-260.yaml").read_text(encoding="utf-8").replace("maxNetworkCost: 15", f"maxNetworkCost: {limit}")
    )
    problem = instance_of(text)
    state = ClusterState(problem, seed=0)
    (task,), nodes = state.tasks, np.arange(8)
    overhead = Overhead(state)
    assert overhead.filter(task, nodes).tolist() == [True] * candidates + [False] * (8 - candidates)
    assert overhead.score(task, nodes).tolist() == [0, 1, 5, 5, 20, 20, 20, 20]
    for placement in (run(problem, "network-overhead"), solve(problem, method="greedy").placement):
        assert bound(placement) == {"p1-0": "n1"}


@pytest.mark.parametrize("algorithm", [name for name in ALGORITHMS if "Kahn" in name])
def test_pods_go_in_the_order_of_the_keps_table(algorithm: str) -> None:
    problem = read(NETWORK / "online-boutique-2.yaml")
    found = run(problem, f"network-overhead:{algorithm}").bindings
    assert " ".join(problem.pods[binding.pod].workload or "" for binding in found) == TABLE[algorithm]


def test_bandwidth_that_is_requested_is_there() -> None:
    """n1 has half of what is asked for, n2 just that, n3 advertises none; kube-scheduler sees it the same."""
    problem = instance("kep_260_bandwidth")
    for placement in (answer("kep_260_bandwidth", "auto").placement, run(problem, "kube-default")):
        assert bound(placement) == {"network-aware-bandwidth-example": "n2"}


# -------------------------------------------------------------------------------------------------------------- KEP-119


def test_the_kubelet_would_refuse_what_the_total_allows() -> None:
    """6 cores on zones of 4 and 4: kube-scheduler binds such a pod, the plug-in's filter does not, nor do we."""
    problem = instance("kep_119_motivation")
    for placement in (answer("kep_119_motivation", "auto").placement, run(problem, "numa-match")):
        assert placement is not None
        assert verify(problem, placement) == []
        assert sorted(bound(placement).values()) == ["loose", "thirds"]
    totals = run(problem, "kube-default")
    assert sorted(bound(totals).values()) == ["halves", "loose", "thirds"]
    (violation,) = verify(problem, totals)
    assert (violation.rule, "halves" in violation.message) == ("C10", True)


# ------------------------------------------------------------------------------------------------- what the README says


def test_every_example_of_the_table_has_its_instance_and_its_test() -> None:
    """The instance is a file, the test a function; and every instance of the family stands in the table."""
    lines = (SEEDS / "README.md").read_text(encoding="utf-8").splitlines()
    start = lines.index("| example | section | instance | expected | test |") + 2
    rows = [line.strip("|").split("|") for line in lines[start : lines.index("", start)]]
    assert len(rows) > 25
    named: set[str] = set()
    for _, _, file, _, test in rows:
        for each in re.findall(r"`([^`]+)`", file):
            assert (SEEDS / each).exists(), each
            named.add((SEEDS / each).name)
        held = re.findall(r"`(tests/\S+\.py)(?:::(\w+))?`", test)
        assert held, test
        for where, function in held:
            assert f"def {function}" in (ROOT / where).read_text(encoding="utf-8"), (where, function)
    shipped = {each.name for each in SEEDS.iterdir() if each.name.endswith((".yaml", ".gz"))}
    assert {each for each in shipped if ".best." not in each} <= named
