"""The network instances are what their texts say: graphs, limits, and optima found by two other ways than placer's."""

from __future__ import annotations

import gzip
import json
from collections import Counter, defaultdict
from collections.abc import Iterator
from functools import cache
from itertools import combinations, product
from pathlib import Path
from typing import Any

import pytest
import yaml
from ortools.sat.python import cp_model

from placer.base.quantity import NANO, Resources, parse
from placer.problem.reading import read
from tests.kep import ONLINE_BOUTIQUE

FOLDER = Path(__file__).parent.parent / "instances" / "network"
NAMES = sorted(path.name for path in FOLDER.glob("*") if not {"best", "planted", "md"} & set(path.name.split(".")))
REGION, ZONE = "topology.kubernetes.io/region", "topology.kubernetes.io/zone"
GROUP, WORKLOAD = "appgroup.diktyo.x-k8s.io", "appgroup.diktyo.x-k8s.io.workload"
Document = dict[str, Any]


@cache
def documents(name: str) -> list[Document]:
    path = FOLDER / name
    if path.suffix == ".gz":
        items: list[Document] = json.loads(gzip.decompress(path.read_bytes()))["items"]
        return items
    return [each for each in yaml.safe_load_all(path.read_text(encoding="utf-8")) if each]


def of_kind(name: str, kind: str) -> list[Document]:
    return [each for each in documents(name) if each["kind"] == kind]


def calls(name: str) -> Iterator[tuple[str, str, Document]]:
    """Caller and callee by selector (by name where there is none), and the dependency."""
    for group in of_kind(name, "AppGroup"):
        for entry in group["spec"]["workloads"]:
            for called in entry.get("dependencies", ()):
                one, two = entry["workload"], called["workload"]
                yield one.get("selector", one["name"]), two.get("selector", two["name"]), called


def links(name: str) -> dict[tuple[str, str, str], Document]:
    (topology,) = of_kind(name, "NetworkTopology")
    (weights,) = topology["spec"]["weights"]
    return {
        (part["topologyKey"], origin["origin"], entry["destination"]): entry
        for part in weights.get("topologyList") or weights["costList"]
        for origin in part.get("originList") or part["originCosts"]
        for entry in origin.get("costList") or origin["costs"]
    }


# ------------------------------------------------------------------------------------------------------ what they hold


def test_the_library_has_these() -> None:
    assert NAMES == [
        "cloud2edge.yaml",
        "kep-260.yaml",
        "online-boutique-2.yaml",
        "online-boutique-3.yaml",
        "redis-cluster.yaml",
        "tight-30.json.gz",
    ]


@pytest.mark.parametrize("name", NAMES)
def test_it_reads_without_a_finding_and_every_link_is_given_both_ways(name: str) -> None:
    assert read(FOLDER / name, strict=True).findings == ()
    found = links(name)
    assert all((key, two, one) in found for key, one, two in found)


@pytest.mark.parametrize("name", NAMES)
def test_every_readme_names_it(name: str) -> None:
    assert f"`{name}`" in (FOLDER / "README.md").read_text(encoding="utf-8")


KEP_NODES = {
    f"n{number}": ("us-west-1" if number < 5 else "us-east-1", f"z{(number + 1) // 2}") for number in range(1, 9)
}


@pytest.mark.parametrize("name", ["kep-260.yaml", "online-boutique-2.yaml", "online-boutique-3.yaml"])
def test_the_cluster_is_that_of_the_kep(name: str) -> None:
    labels = {node["metadata"]["name"]: node["metadata"]["labels"] for node in of_kind(name, "Node")}
    assert {node: (each[REGION], each[ZONE]) for node, each in labels.items()} == KEP_NODES
    expected = {}
    for key, one, two, cost, capacity in (
        (REGION, "us-west-1", "us-east-1", 20, "10Gi"),
        (ZONE, "z1", "z2", 5, "1Gi"),
        (ZONE, "z3", "z4", 10, "1Gi"),
    ):
        expected[key, one, two] = expected[key, two, one] = (cost, capacity)
    found = {link: (entry["networkCost"], entry["bandwidthCapacity"]) for link, entry in links(name).items()}
    assert found == expected


@pytest.mark.parametrize("room", [2, 3])
def test_the_online_boutique_is_that_of_the_kep(room: int) -> None:
    name = f"online-boutique-{room}.yaml"
    expected = [(one, two) for one, called in ONLINE_BOUTIQUE.items() for two in called.split()]
    found = list(calls(name))
    assert len(expected) == 15
    assert [(one, two) for one, two, _ in found] == expected
    assert len(of_kind(name, "Pod")) == len(of_kind(name, "AppGroup")[0]["spec"]["workloads"]) == 11
    assert {node["status"]["allocatable"]["pods"] for node in of_kind(name, "Node")} == {room}
    largest = max(entry["networkCost"] for entry in links(name).values())
    assert {dependency["maxNetworkCost"] for _, _, dependency in found} == {largest}
    least = min(parse(entry["bandwidthCapacity"]) for entry in links(name).values())
    assert sum(parse(dependency["minBandwidth"]) for _, _, dependency in found) < least


def test_cloud2edge_has_the_services_of_both_projects() -> None:
    workloads = {
        entry["workload"]["selector"] for entry in of_kind("cloud2edge.yaml", "AppGroup")[0]["spec"]["workloads"]
    }
    ditto = {each for each in workloads if each.startswith("ditto-")} | {"mongodb"}
    assert (len(workloads), len(ditto)) == (16, 8)
    pairs = [(one, two) for one, two, _ in calls("cloud2edge.yaml")]
    assert len(pairs) == len(set(pairs)) == 31
    hono = workloads - ditto
    assert [(one, two) for one, two in pairs if (one in hono) != (two in hono)] == [
        ("device-registry", "mongodb"),
        ("ditto-connectivity", "dispatch-router"),
    ]


def test_thirty_workloads() -> None:
    (group,) = of_kind("tight-30.json.gz", "AppGroup")
    assert len(group["spec"]["workloads"]) == 30
    assert len(of_kind("tight-30.json.gz", "Pod")) == 78


# -------------------------------------------------------------------------------------------------------- what is best


def test_the_optimum_of_the_online_boutique_by_all_cuts() -> None:
    """Over regions, then zones, then nodes; 84 with two pods a node and 29 with three."""
    names = [f"P{number}" for number in range(1, 12)]
    edges = [(names.index(one), names.index(two)) for one, text in ONLINE_BOUTIQUE.items() for two in text.split()]
    assert {room: _least(len(names), edges, room) for room in (2, 3)} == {2: 84, 3: 29}


def _least(size: int, edges: list[tuple[int, int]], room: int) -> int:
    def between(one: int, two: int) -> int:
        return sum((one >> a & two >> b | one >> b & two >> a) & 1 for a, b in edges)

    def halves(pods: int, most: int) -> Iterator[tuple[int, int]]:
        """Every way to cut a set of pods (bits) in two of at most so many."""
        inside = [number for number in range(size) if pods >> number & 1]
        for count in range(max(0, len(inside) - most), min(len(inside), most) + 1):
            for chosen in combinations(inside, count):
                one = sum(1 << number for number in chosen)
                yield one, pods - one

    @cache
    def zone(pods: int) -> int:
        """Two nodes: a call between them costs 1."""
        return min(between(one, two) for one, two in halves(pods, room))

    @cache
    def region(pods: int, cost: int) -> int:
        """Two zones of two nodes each."""
        return min(zone(one) + zone(two) + cost * between(one, two) for one, two in halves(pods, 2 * room))

    everything = (1 << size) - 1
    return min(
        region(west, 5) + region(east, 10) + 20 * between(west, east) for west, east in halves(everything, 4 * room)
    )


@pytest.mark.parametrize(
    ("name", "optimum"),
    [("kep-260.yaml", 5), ("redis-cluster.yaml", 60), ("cloud2edge.yaml", 317), ("online-boutique-3.yaml", 29)],
)
def test_the_optimum_by_a_model_of_pods_and_nodes(name: str, optimum: int) -> None:
    """Every pod on one node, all rules that matter here, all pairs one by one; made from the text and solved wholly."""
    assert _solved(name) == optimum


def _solved(name: str) -> int:
    model = cp_model.CpModel()
    nodes = {node["metadata"]["name"]: node for node in of_kind(name, "Node")}
    pods = {pod["metadata"]["name"]: pod for pod in of_kind(name, "Pod")}
    at = {(pod, node): model.new_bool_var(f"{pod} {node}") for pod, node in product(pods, nodes)}
    for pod, written in pods.items():
        model.add_exactly_one(at[pod, node] for node in nodes)
        for node, there in nodes.items():
            wanted = written["spec"].get("nodeSelector", {}).items() <= there["metadata"]["labels"].items()
            if not wanted or written["spec"].get("nodeName", node) != node:
                model.add(at[pod, node] == 0)
    requests = {pod: Resources.parse({"pods": "1"} | _quantities(each)) for pod, each in pods.items()}
    for node, there in nodes.items():
        room = Resources.parse({key: str(value) for key, value in there["status"]["allocatable"].items()})
        for resource in room:
            model.add(sum(requests[pod][resource] * at[pod, node] for pod in pods) <= room[resource])
    cost, used = _pairs(name, model, at)
    for link, amount in used.items():
        model.add(sum(amount) <= parse(links(name)[link]["bandwidthCapacity"]) // NANO)
    model.minimize(sum(cost))
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    assert solver.solve(model) == cp_model.OPTIMAL
    return round(solver.objective_value)


def _quantities(pod: Document) -> dict[str, str]:
    (container,) = pod["spec"]["containers"]
    return {resource: str(amount) for resource, amount in container["resources"]["requests"].items()}


def _pairs(
    name: str, model: cp_model.CpModel, at: dict[tuple[str, str], Any]
) -> tuple[list[Any], dict[Any, list[Any]]]:
    """Cost of every pair and place of the two, and what it takes of which link; too far is forbidden."""
    labels = {node["metadata"]["name"]: node["metadata"]["labels"] for node in of_kind(name, "Node")}
    cost, used = [], defaultdict(list)
    for caller, called, dependency in calls(name):
        for one, two in product(_members(name, caller), _members(name, called)):
            for here, there in product(labels, labels):
                link = _link(labels[here], labels[there])
                both = at[one, here], at[two, there]
                if link is not None and links(name)[link]["networkCost"] > dependency["maxNetworkCost"]:
                    model.add(sum(both) <= 1)
                elif here != there:
                    together = model.new_bool_var("")
                    model.add(together >= sum(both) - 1)
                    cost.append(together * (1 if link is None else links(name)[link]["networkCost"]))
                    if link is not None:
                        used[link].append(together * (parse(dependency["minBandwidth"]) // NANO))
    return cost, used


def _members(name: str, workload: str) -> list[str]:
    pods = of_kind(name, "Pod")
    return [pod["metadata"]["name"] for pod in pods if pod["metadata"].get("labels", {}).get(WORKLOAD) == workload]


def _link(here: dict[str, str], there: dict[str, str]) -> tuple[str, str, str] | None:
    for key in (REGION, ZONE):
        if here[key] != there[key]:
            return key, here[key], there[key]
    return None


def test_the_planted_placement_of_the_tight_one_keeps_its_limits_and_none_could_be_lower() -> None:
    name = "tight-30.json.gz"
    planted = json.loads(gzip.decompress((FOLDER / "tight-30.planted.json.gz").read_bytes()))["items"]
    where = {item["metadata"]["name"]: item["target"]["name"] for item in planted}
    labels = {node["metadata"]["name"]: node["metadata"]["labels"] for node in of_kind(name, "Node")}
    used: Counter[tuple[str, str, str]] = Counter()
    for caller, called, dependency in calls(name):
        far = [0]
        for one, two in product(_members(name, caller), _members(name, called)):
            link = _link(labels[where[one]], labels[where[two]])
            if link is not None:
                far.append(links(name)[link]["networkCost"])
                used[link] += parse(dependency.get("minBandwidth", "0")) // NANO
        assert max(far) == dependency["maxNetworkCost"]
    capacities = {link: parse(entry["bandwidthCapacity"]) // NANO for link, entry in links(name).items()}
    assert capacities == {link: max(used[link], 10**7) for link in capacities}
