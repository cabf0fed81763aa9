"""Generated networks: the planted placement keeps every limit and costs what is said, read from the documents."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from placer.base.quantity import NANO, parse
from placer.kube.manifests import from_documents, validate
from placer.lab.generate import Generated, NetworkOptions, generate, network
from placer.problem.network_objects import ALGORITHMS, find_cycle
from tests.examples import examples
from tests.lab.generate.judged import judged, name

REGION, ZONE = "topology.kubernetes.io/region", "topology.kubernetes.io/zone"
GROUP, WORKLOAD = "appgroup.diktyo.x-k8s.io", "appgroup.diktyo.x-k8s.io.workload"
Document = dict[str, Any]
Link = tuple[str, str, str]


class World:
    """What the documents say, with every pending pod where it was planted."""

    def __init__(self, made: Generated) -> None:
        self.made = made
        self.nodes = {name(node): node for node in self.of_kind("Node")}
        self.pods = {name(pod): pod for pod in self.of_kind("Pod")}
        self.where = {pod.name: node for pod, node in (made.planted or {}).items()}
        for pod in self.pods.values():
            assert ("nodeName" in pod["spec"]) != (name(pod) in self.where), "each pod runs or is planted"
            self.where.setdefault(name(pod), pod["spec"].get("nodeName"))
        (topology,) = self.of_kind("NetworkTopology")
        assert topology["metadata"] == {"name": "nt-default", "namespace": "default"}
        (weights,) = topology["spec"]["weights"]
        self.costs: dict[Link, int] = {}
        self.capacities: dict[Link, int] = {}
        for part in weights["topologyList"]:
            for origin in part["originList"]:
                for cost in origin["costList"]:
                    link = (part["topologyKey"], origin["origin"], cost["destination"])
                    assert link not in self.costs
                    self.costs[link] = cost["networkCost"]
                    self.capacities[link] = parse(cost["bandwidthCapacity"]) // NANO

    def of_kind(self, kind: str) -> list[Document]:
        return [document for document in self.made.documents if document["kind"] == kind]

    def labels(self, pod: str) -> dict[str, str]:
        labels: dict[str, str] = self.nodes[self.where[pod]]["metadata"]["labels"]
        return labels

    def link(self, pod: str, other: str) -> Link | None:
        here, there = self.labels(pod), self.labels(other)
        for key in (REGION, ZONE):
            if here[key] != there[key]:
                return key, here[key], there[key]
        return None

    def members(self, group: str, selector: str) -> list[str]:
        wanted = {GROUP: group, WORKLOAD: selector}
        return [pod for pod, text in self.pods.items() if text["metadata"]["labels"] == wanted]

    def dependencies(self) -> Iterator[tuple[Document, list[tuple[str, str]]]]:
        """Every dependency, and the pairs of pods that it is about."""
        for group in self.of_kind("AppGroup"):
            for entry in group["spec"]["workloads"]:
                callers = self.members(name(group), entry["workload"]["selector"])
                for dependency in entry.get("dependencies", ()):
                    called = self.members(name(group), dependency["workload"]["selector"])
                    yield dependency, [(one, two) for one in callers for two in called]


def check_network(world: World, tight: bool) -> int:
    """Check with ``tight`` that no limit could be lower. Returns the cost of all pairs."""
    used, total = Counter[Link](), 0
    for dependency, pairs in world.dependencies():
        links = [world.link(*pair) for pair in pairs]
        costs = [world.costs[link] for link in links if link is not None]
        assert not tight or max(costs, default=0) == dependency["maxNetworkCost"]
        bandwidth = parse(dependency.get("minBandwidth", "0")) // NANO
        used.update({link: bandwidth * count for link, count in Counter(links).items() if link is not None})
        nodes = [(world.where[one], world.where[two]) for one, two in pairs]
        total += sum(costs) + sum(one != two for (one, two), link in zip(nodes, links, strict=True) if link is None)
    for link, capacity in world.capacities.items():
        assert not tight or capacity == max(used[link], 10**7)
    return total


def check_spec(world: World) -> None:
    """Names and numbers of the AppGroups agree with the pods, and nobody calls in a circle."""
    for group in world.of_kind("AppGroup"):
        workloads = group["spec"]["workloads"]
        selectors = [entry["workload"]["selector"] for entry in workloads]
        assert len(set(selectors)) == len(selectors)
        sizes = [len(world.members(name(group), selector)) for selector in selectors]
        assert min(sizes) >= 1
        assert sum(sizes) == group["spec"]["numMembers"]
        assert group["spec"]["topologySortingAlgorithm"] in ALGORITHMS
        calls = {
            entry["workload"]["selector"]: [each["workload"]["selector"] for each in entry.get("dependencies", ())]
            for entry in workloads
        }
        assert find_cycle(calls) == ()
        called = {other for callees in calls.values() for other in callees}
        assert called < set(selectors)
        assert len(called) == len(selectors) - 1, "all but one are called"
        assert all(entry["workload"]["name"] == f"{name(group)}-{entry['workload']['selector']}" for entry in workloads)


def check(options: NetworkOptions) -> World:
    made = network(options)
    world = World(made)
    judged(made)
    check_spec(world)
    assert check_network(world, options.tight == 1) == made.summary["networkCostPlanted"]
    running = len(world.pods) - len(made.planted or {})
    assert (made.summary["pods"], made.summary["podsRunning"]) == (len(world.pods), running)
    return world


@st.composite
def mixes(draw: st.DrawFn) -> dict[str, Any]:
    share = st.sampled_from([0.0, 0.4, 1.0])
    regions, zones = draw(st.integers(1, 3)), draw(st.integers(1, 3))
    return {
        "seed": draw(st.integers(0, 10**6)),
        "app_groups": draw(st.integers(1, 5)),
        "workloads": draw(st.sampled_from([(1,), (2, 4), (5, 11), (30,)])),
        "replicas": draw(st.sampled_from([(1,), (1, 4), (3,)])),
        "calls": draw(st.sampled_from([0.0, 1.4, 3.0])),
        "regions": regions,
        "zones": zones,
        "nodes": regions * zones + draw(st.integers(0, 20)),
        "rack_size": draw(st.integers(1, 4)),
        "fill": draw(st.sampled_from([1.0, 0.7])),
        **{each: draw(share) for each in ("wide", "apart", "bandwidth", "tight", "running", "anchored", "gangs")},
    }


@examples(40)
@given(mix=mixes())
def test_every_planted_placement_keeps_every_limit(mix: dict[str, Any]) -> None:
    check(NetworkOptions(**mix))


def test_tight_limits_leave_other_placements_out_and_loose_ones_do_not() -> None:
    """The same places; without tightness every known cost is allowed."""
    tight, loose = (check(NetworkOptions(seed=4, app_groups=6, tight=share)) for share in (1.0, 0.0))
    assert tight.where == loose.where
    limits = [[each["maxNetworkCost"] for each, _ in world.dependencies()] for world in (tight, loose)]
    assert set(limits[1]) == {max(loose.costs.values())}
    assert 0 in limits[0]
    assert sum(limits[0]) < sum(limits[1])
    assert all(tight.capacities[link] < loose.capacities[link] for link in loose.capacities)


def test_some_pairs_go_over_every_kind_of_way() -> None:
    """Otherwise nothing of C8 and C9 would be tested with these instances."""
    world = check(NetworkOptions(seed=1, app_groups=12, regions=3, zones=3, nodes=36))
    ways = Counter((world.link(*pair) or ("zone",))[0] for _, pairs in world.dependencies() for pair in pairs)
    assert min(ways["zone"], ways[ZONE], ways[REGION]) > 20
    used = {
        world.link(*pair)
        for dependency, pairs in world.dependencies()
        if "minBandwidth" in dependency
        for pair in pairs
    }
    assert len(used & world.costs.keys()) > len(world.costs) // 3


def test_costs_are_the_same_both_ways_and_no_detour_is_cheaper() -> None:
    world = check(NetworkOptions(seed=2, regions=4, zones=4, nodes=16))
    for (key, one, two), cost in world.costs.items():
        assert cost == world.costs[key, two, one]
        for (also, start, over), first in world.costs.items():
            if (also, start) == (key, one) and (key, over, two) in world.costs:
                assert cost <= first + world.costs[key, over, two]
    regions = [cost for (key, _, _), cost in world.costs.items() if key == REGION]
    zones = [cost for (key, _, _), cost in world.costs.items() if key == ZONE]
    assert (len(regions), len(zones)) == (4 * 3, 4 * 4 * 3)
    assert max(zones) < min(regions)


def test_netperf_would_measure_the_costs() -> None:
    world = check(NetworkOptions(seed=2, regions=3, zones=2, nodes=12))
    (config_map,) = world.of_kind("ConfigMap")
    (topology,) = world.of_kind("NetworkTopology")
    assert config_map["metadata"]["name"] == topology["spec"]["configmapName"]
    measured = {}
    for key, value in config_map["data"].items():
        prefix, _, rest = key.partition(".origin.")
        assert prefix == "netperf.p90.latency.milliseconds"
        labels = [world.nodes[node]["metadata"]["labels"] for node in rest.split(".destination.")]
        kind = REGION if labels[0][REGION] != labels[1][REGION] else ZONE
        measured[kind, labels[0][kind], labels[1][kind]] = int(value)
    assert measured == world.costs


def test_half_or_all_of_an_application_runs() -> None:
    half = check(NetworkOptions(seed=3, anchored=1.0))
    for group in half.of_kind("AppGroup"):
        pods = [pod for pod, text in half.pods.items() if text["metadata"]["labels"][GROUP] == name(group)]
        assert sum("nodeName" in half.pods[pod]["spec"] for pod in pods) == (len(pods) + 1) // 2
    assert check(NetworkOptions(seed=3, running=1.0)).made.planted == {}


def test_a_gang_has_the_tier_of_what_is_around_it() -> None:
    world = check(NetworkOptions(seed=5, app_groups=12, gangs=0.5, wide=0.3, workloads=(2, 6), nodes=32, rack_size=8))
    made = world.made
    groups = world.of_kind("PodGroup")
    assert 0 < len(groups) == made.summary["gangs"] < 12
    tiers = Counter(group["spec"]["networkTopology"]["highestTierAllowed"] for group in groups)
    assert len(tiers) >= 3, "racks or zones, regions, and the world"
    assert {each["spec"]["tierName"] for each in world.of_kind("HyperNode")} == {"rack", "zone", "region", "world"}


def test_names_and_order_tell_nothing_of_the_layout() -> None:
    world = check(NetworkOptions(seed=5, nodes=64))
    zones = [world.nodes[node]["metadata"]["labels"][ZONE] for node in sorted(world.nodes)]
    assert sum(one == two for one, two in pairwise(zones)) < 30
    assert list(world.nodes) == sorted(world.nodes)


def test_two_hundred_app_groups_on_a_thousand_nodes() -> None:
    made = generate("network", app_groups=200, workloads=(11,), regions=3, zones=3, nodes=1000, seed=1)
    assert (made.summary["workloads"], made.summary["pods"], made.summary["nodes"]) == (
        2200,
        len(made.planted or {}),
        1000,
    )
    objects = validate(from_documents(made.documents))
    assert (len(objects.app_groups), len(objects.nodes), len(objects.config_maps)) == (200, 1000, 1)
