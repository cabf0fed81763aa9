"""Generated NUMA nodes: the planted order is admitted, by a replay that reads nothing but the documents."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from placer.base.quantity import Resources
from placer.lab.generate import Generated, NumaOptions, bindings, numa
from placer.problem.numa import NumaContainer, NumaDemand, NumaNode, NumaZone, Qos, Stage
from tests.examples import examples
from tests.lab.generate.judged import GPU, judged
from tests.numa_naive import creation_order, replayed

Document = dict[str, Any]


def of_kind(made: Generated, kind: str) -> dict[str, Document]:
    return {each["metadata"]["name"]: each for each in made.documents if each["kind"] == kind}


def zones_of(document: Document) -> NumaNode:
    """A NodeResourceTopology, read plainly."""
    said = {each["name"]: each["value"] for each in document["attributes"]}
    zones = []
    for number, zone in enumerate(document["zones"]):
        assert zone["name"] == f"node-{number}"
        parts = [
            Resources.parse({each["name"]: each[kind] for each in zone["resources"]})
            for kind in ("capacity", "allocatable", "available")
        ]
        listed = frozenset(each["name"] for each in zone["resources"])
        zones.append(NumaZone(number, zone["name"], parts[0], parts[2], parts[1], listed))
    return NumaNode(said["topologyManagerPolicy"], said["topologyManagerScope"], tuple(zones))


def demand_of(pod: Document) -> NumaDemand:
    """A pod, whose containers all have limits that are their requests."""
    containers = []
    for each in pod["spec"]["containers"]:
        assert each["resources"]["requests"] == each["resources"]["limits"]
        assert {"cpu", "memory"} <= each["resources"]["limits"].keys()
        containers.append(NumaContainer(each["name"], Stage.APP, Resources.parse(each["resources"]["requests"])))
    return NumaDemand(Qos.GUARANTEED, tuple(containers))


def total(pod: Document) -> Resources:
    return sum((each.requests for each in demand_of(pod).containers), Resources())


def check(made: Generated, options: NumaOptions) -> None:
    judged(made)
    nodes, zones, pods = of_kind(made, "Node"), of_kind(made, "NodeResourceTopology"), of_kind(made, "Pod")
    assert nodes.keys() == zones.keys()
    order: dict[str, list[str]] = defaultdict(list)
    for key, on in (made.planted or {}).items():
        order[on].append(key.name)
    running: dict[str, list[str]] = defaultdict(list)
    for name, pod in pods.items():
        if "nodeName" in pod["spec"]:
            running[pod["spec"]["nodeName"]].append(name)
    assert len(made.planted or {}) + sum(map(len, running.values())) == len(pods)
    for name, document in zones.items():
        node = zones_of(document)
        assert len(node.zones) in options.zones
        allocatable = Resources.parse(nodes[name]["status"]["allocatable"])
        for each in node.zones:
            assert each.capacity == each.allocatable
            assert each.capacity["cpu"] == options.cores * 1000
        whole = sum((each.capacity for each in node.zones), Resources({"pods": allocatable["pods"]}))
        assert whole == allocatable
        free = sum((each.available for each in node.zones), Resources())
        assert free == whole - Resources({"pods": whole["pods"]}) - _sum(pods, running[name])
        used = _sum(pods, [*order[name], *running[name]])
        assert used[GPU] == whole[GPU]
        for resource in ("cpu", "memory"):
            assert options.fill - 0.001 <= used[resource] / whole[resource] <= 1


def _sum(pods: dict[str, Document], names: list[str]) -> Resources:
    return sum((total(pods[name]) for name in names), Resources())


@st.composite
def options(draw: st.DrawFn) -> NumaOptions:
    share = st.sampled_from([0.0, 0.3, 1.0])
    sizes = draw(st.sampled_from([(2, 3, 4, 6), (4, 8), (1, 5, 7, 12)]))
    return NumaOptions(
        seed=draw(st.integers(0, 10**6)),
        nodes=draw(st.integers(1, 6)),
        zones=draw(st.sampled_from([(1,), (2,), (2, 4, 8), (3,)])),
        cores=draw(st.sampled_from([16, 24])),
        gpus=draw(st.integers(0, 4)),
        pod_cores=sizes,
        fill=draw(st.sampled_from([0.7, 0.95, 1.0])),
        uneven=draw(st.sampled_from([0.0, 0.3, 0.9])),
        pod_scope=draw(share),
        restricted=draw(share),
        wide=draw(share),
        pairs=draw(share),
        in_order=draw(share),
        running=draw(st.sampled_from([0.0, 0.5])),
    )


@examples(60, derandomize=True)
@given(options())
def test_every_zone_is_filled_and_the_planted_order_is_admitted(chosen: NumaOptions) -> None:
    check(numa(chosen), chosen)


def test_the_default_has_two_four_and_eight_zones_both_scopes_and_pods_of_two_zones() -> None:
    chosen = NumaOptions(nodes=40, seed=1)
    made = numa(chosen)
    check(made, chosen)
    nodes = {name: zones_of(each) for name, each in of_kind(made, "NodeResourceTopology").items()}
    assert set(Counter(len(node.zones) for node in nodes.values())) == {2, 4, 8}
    assert set(Counter(node.scope for node in nodes.values())) == {"pod", "container"}
    pods = of_kind(made, "Pod")
    sizes = Counter(total(pod)["cpu"] for pod in pods.values())
    assert len(sizes) > 8
    several = 0
    for name, node in nodes.items():
        here = [pods[pod.name] for pod, on in (made.planted or {}).items() if on == name]
        several += sum(len(zones or ()) > 1 for zones in replayed(node, list(map(demand_of, here))))
    assert several > 10
    cores = sum(each["cpu"] for each in map(total, pods.values())) // 1000
    assert made.summary["coresPlanted"] == cores
    assert made.summary["podsOfTwoContainers"] == sum(len(pod["spec"]["containers"]) == 2 for pod in pods.values())


@pytest.mark.parametrize(("share", "expected"), [(1.0, {True}), (0.0, {True, False})])
def test_in_order_is_the_order_of_creation(share: float, expected: set[bool]) -> None:
    made = numa(NumaOptions(nodes=12, zones=(2,), pod_cores=(4, 6, 8), in_order=share, seed=3))
    pods, found = of_kind(made, "Pod"), set[bool]()
    ages = {name: pod["metadata"]["creationTimestamp"] for name, pod in pods.items()}
    assert len(set(ages.values())) == len(pods)
    seconds = {age: float(number) for number, age in enumerate(sorted(ages.values()))}
    for name, document in of_kind(made, "NodeResourceTopology").items():
        here = [pod.name for pod, on in (made.planted or {}).items() if on == name]
        demands = [demand_of(pods[each]) for each in here]
        found.add(creation_order(zones_of(document), demands, [seconds[ages[each]] for each in here]))
    assert found == expected


def test_restricted_nodes_have_a_pod_that_fills_two_zones() -> None:
    made = numa(NumaOptions(nodes=5, zones=(4,), restricted=1.0, wide=1.0, seed=2))
    containers = [each for pod in of_kind(made, "Pod").values() for each in demand_of(pod).containers]
    assert [dict(each.requests) for each in containers if each.requests["cpu"] > 24_000] == [
        {"cpu": 48_000, "memory": 48 << 32, GPU: 4}
    ] * 5


def test_the_list_of_bindings_keeps_the_order() -> None:
    made = numa(NumaOptions(nodes=3, seed=5))
    pairs = [(each["metadata"]["name"], each["target"]["name"]) for each in bindings(made)["items"]]
    assert pairs == [(pod.name, node) for pod, node in (made.planted or {}).items()]
