"""NodeResourceTopologyMatch: its own filter and score cases, and what it does not know of pods placed before."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest
import yaml

from placer.base.quantity import Resources
from placer.lab.policies.mimicry import run
from placer.lab.policies.numa_match import Ask, NodeZones, ask_of, narrowest, refusal, score
from placer.problem import Key
from placer.problem.numa import Stage
from tests.lab.policies.cases import plugin_cases
from tests.support import DATA, Document, instance_of, node, pod

NRT = {case["id"]: case for case in yaml.safe_load((DATA / "nrt_cases.yaml").read_text("utf-8"))}
FILTERS = [
    (name, index) for name, case in NRT.items() if case["kind"] == "nrt_filter" for index in range(len(case["cases"]))
]
SCORES = [
    (name, index)
    for name in ("nrt-score-strategies", "nrt-score-leastnuma")
    for index in range(len(plugin_cases()[name]["cases"]))
]


def texts(amounts: Mapping[str, object]) -> dict[str, str]:
    return {name: str(amount) for name, amount in amounts.items() if name != "id"}


def topology(name: str, written: Mapping[str, Any]) -> Document:
    numbers = [amounts.get("id", number) for number, amounts in enumerate(written["zones"])]
    zones = []
    for row, (number, amounts) in enumerate(zip(numbers, written["zones"], strict=True)):
        resources = [{"name": n, "capacity": a, "allocatable": a, "available": a} for n, a in texts(amounts).items()]
        costs = [
            {"name": f"node-{to}", "value": value}
            for to, value in zip(numbers, written.get("costs", [[]] * len(numbers))[row], strict=False)
        ]
        zones.append({"name": f"node-{number}", "type": "Node", "resources": resources, "costs": costs})
    return {
        "apiVersion": "topology.node.k8s.io/v1alpha2",
        "kind": "NodeResourceTopology",
        "metadata": {"name": name},
        "attributes": [
            {"name": "topologyManagerPolicy", "value": written["policy"]},
            {"name": "topologyManagerScope", "value": written["scope"]},
        ],
        "zones": zones,
    }


def host(name: str, written: Mapping[str, Any]) -> Document:
    total = Resources.parse({"pods": "110", "ephemeral-storage": "1Ti", **texts(written.get("extra", {}))})
    for amounts in written["zones"]:
        total += Resources.parse(texts(amounts))
    in_units = {key: f"{amount}m" if key == "cpu" else str(amount) for key, amount in total.items()}
    return node(name, None, **in_units)


def container(requests: Mapping[str, object], limits: object = "equal") -> Document:
    said = {"equal": texts(requests), "none": {}}.get(limits) if isinstance(limits, str) else limits
    return {"name": "c", "resources": {"requests": texts(requests), "limits": said}}


def asking(case: Mapping[str, Any], name: str = "p") -> Document:
    spec: dict[str, Any] = {"containers": [container(each, case.get("lim", "equal")) for each in case["containers"]]}
    if "init" in case:
        spec["initContainers"] = [container(each) for each in case["init"]]
    return pod(name, spec=spec)


def seen(case: Mapping[str, Any], name: str, written: Mapping[str, Any]) -> tuple[Ask, NodeZones]:
    instance = instance_of(host(name, written), topology(name, written), asking(case))
    found = instance.nodes[name]
    assert found.numa is not None
    return ask_of(instance.pods[Key("default", "p")]), NodeZones.of(found, found.numa)


@pytest.mark.parametrize(("name", "index"), FILTERS)
def test_filter(name: str, index: int) -> None:
    case = NRT[name]["cases"][index]
    ask, zones = seen(case, case["node"], NRT[name]["nodes"][case["node"]])
    assert (refusal(ask, zones) or "fit") == case["verdict"]


@pytest.mark.parametrize(("name", "index"), SCORES)
def test_scores(name: str, index: int) -> None:
    case, nodes = plugin_cases()[name]["cases"][index], plugin_cases()[name]["nodes"]
    found = {each: score(case["strategy"], *seen(case, each, nodes[each]), {}) for each in case["scores"]}
    assert found == case["scores"]


@pytest.mark.parametrize("case", plugin_cases()["nrt-score-strategies"]["cases"][:3], ids=str)
def test_the_best_node(case: Mapping[str, Any]) -> None:
    nodes = plugin_cases()["nrt-score-strategies"]["nodes"]
    found = {each: score(case["strategy"], *seen(case, each, written), {}) for each, written in nodes.items()}
    assert max(found, key=found.__getitem__) == case["best"]


@pytest.mark.parametrize("case", plugin_cases()["nrt-numa-required"]["cases"], ids=str)
def test_the_fewest_zones(case: Mapping[str, Any]) -> None:
    """Zones in the order of the list, which is not that of their ids."""
    ids: Sequence[int] = case.get("ids", range(len(case["zones"])))
    rooms = [Resources.parse(texts(zone)) for zone in case["zones"]]
    # A row of distances says how far it is to zone 0, 1, 2, ...
    rows = case.get("costs", [[None] * len(ids)] * len(ids))
    costs = [[row[other] for other in ids] for row in rows]
    found = narrowest(Resources.parse(texts(case["request"])), [dict(room) for room in rooms], costs)
    assert (None if found is None else sorted(ids[zone] for zone in found[0])) == case["mask"]
    assert (found is not None and found[1]) == case["min_distance"]


@pytest.mark.parametrize("case", plugin_cases()["effective-request"]["cases"], ids=str)
def test_effective_request(case: Mapping[str, Any]) -> None:
    def both(amounts: Sequence[int]) -> Document:
        return container({"cpu": amounts[0], "memory": amounts[1]})

    spec: dict[str, Any] = {"containers": [both(each) for each in case["containers"]]}
    spec["initContainers"] = [both(each) for each in case.get("init", ())]
    if "overhead" in case:
        spec["overhead"] = {"cpu": str(case["overhead"][0]), "memory": str(case["overhead"][1])}
    zone = {"policy": "none", "scope": "pod", "zones": [{"cpu": 1, "memory": 1}]}
    instance = instance_of(host("n", zone), topology("n", zone), pod("p", spec=spec))
    whole = ask_of(instance.pods[Key("default", "p")]).whole
    assert [whole["cpu"] // 1000, whole["memory"]] == case["want"]


def test_a_sidecar_counts_in_the_largest_and_takes_nothing_from_the_zones() -> None:
    two, three = Resources({"cpu": 2000}), Resources({"cpu": 3000})
    room = NodeZones("single-numa-node", "container", (0,), ((("cpu", 3000),),), frozenset(["cpu"]), ((None,),))
    ask = Ask(ask_of_guaranteed(), ((Stage.SIDECAR, two), (Stage.APP, three)), three)
    assert refusal(ask, room) is None  # the kubelet would refuse: 2 + 3 cores in a zone of 3
    assert refusal(Ask(ask.qos, ((Stage.SIDECAR, Resources({"cpu": 4000})),), three), room) == (
        "cannot align sidecar container"
    )


def ask_of_guaranteed() -> Any:
    case = {"containers": [{"cpu": 1, "memory": 1}]}
    return seen(case, "n", {"policy": "none", "scope": "pod", "zones": [{"cpu": 1, "memory": 1}]})[0].qos


def test_other_policies_pass_unchecked() -> None:
    for policy, verdict in (("restricted", None), ("best-effort", None), ("single-numa-node", "cannot align pod")):
        written = {"policy": policy, "scope": "pod", "zones": [{"cpu": 1, "memory": "1Gi"}] * 2}
        assert refusal(*seen({"containers": [{"cpu": 2, "memory": "1Gi"}]}, "n", written)) == verdict


def test_weights_of_resources() -> None:
    """Zone of 4 cpu and 100 bytes; 1 and 50 asked: 75 and 50 free. Weights 3 and 1: (3 x 75 + 50) / 4 = 68."""
    written = {"policy": "single-numa-node", "scope": "pod", "zones": [{"cpu": 4, "memory": 100}]}
    ask, zones = seen({"containers": [{"cpu": 1, "memory": 50}]}, "n", written)
    assert score("LeastAllocated", ask, zones, {}) == 62
    assert score("LeastAllocated", ask, zones, {"cpu": 3}) == 68


@pytest.mark.parametrize(
    ("most", "one", "two"),
    [(8, (94, 88), (82, 76)), (16, (97, 94), (91, 88)), (2, (75, 50), (25, 0)), (1024, (100, 100), (100, 100))],
)
def test_of_more_zones_that_a_node_may_have_each_counts_less(
    most: int, one: tuple[int, int], two: tuple[int, int]
) -> None:
    """A zone costs 100 // most; as near together as so many can be, half of that comes back.

    Of 16: 6 each and 3 back. Of 2: 50 and 25. Of 1,024: nothing.
    """
    rooms = ((("cpu", 4000), ("memory", 4)),) * 4
    near = ((10, 11, 20, 20), (11, 10, 20, 20), (20, 20, 10, 20), (20, 20, 20, 10))
    zones = NodeZones("none", "pod", (0, 1, 2, 3), rooms, frozenset(["cpu", "memory"]), near, most)
    ask, _ = seen(
        {"containers": [{"cpu": 1, "memory": 1}]}, "n", {"policy": "none", "scope": "pod", "zones": [{"cpu": 1}]}
    )

    def scored(cpu: int, room: NodeZones) -> int:
        return score("LeastNUMANodes", replace(ask, whole=Resources({"cpu": cpu, "memory": 1})), room, {})

    # Without zones 0 and 2 of cpu, those that fit are 1 and 3: 20 apart where 11 is the least.
    empty, full = (("cpu", 0), ("memory", 4)), (("cpu", 4000), ("memory", 4))
    apart = replace(zones, rooms=(empty, full, empty, full))
    far = replace(zones, costs=((10, 11, 20, 20), (11, 30, 20, 20), (20, 20, 10, 20), (20, 20, 20, 30)))
    single = replace(far, rooms=(empty, full, empty, full))
    assert (scored(1000, zones), scored(1000, single)) == one
    assert (scored(8000, zones), scored(8000, apart)) == two


def test_what_the_attribute_says_is_what_scores() -> None:
    """One zone of two that is as near as any: 100 - 12 + 6, and of 16 zones 100 - 6 + 3."""
    written = {"policy": "none", "scope": "pod", "zones": [{"cpu": 4, "memory": "4Gi"}] * 2}
    ask = asking({"containers": [{"cpu": 1, "memory": "1Gi"}]})
    for said, expected in (([], 94), ([{"name": "topologyManagerMaxNUMANodes", "value": "16"}], 97)):
        document = topology("n", written)
        instance = instance_of(host("n", written), {**document, "attributes": [*document["attributes"], *said]}, ask)
        found = instance.nodes["n"]
        assert found.numa is not None
        asked = ask_of(instance.pods[Key("default", "p")])
        assert score("LeastNUMANodes", asked, NodeZones.of(found, found.numa), {}) == expected


def test_taking_pods_off_leaves_the_rest_as_it_is() -> None:
    zones = NodeZones("none", "pod", (3,), ((("cpu", 4000),),), frozenset(["cpu"]), ((10,),), 16)
    assert zones.less({"cpu": 5000}) == replace(zones, rooms=((("cpu", 0),),))


def two_zones(pods: int) -> list[Document]:
    """Zones of 30 and 30 cores, pods of 16: one per zone."""
    written = {"policy": "single-numa-node", "scope": "container", "zones": [{"cpu": 30, "memory": "64Gi"}] * 2}
    ask = {"containers": [{"cpu": 16, "memory": "1Gi"}]}
    return [host("n", written), topology("n", written), *(asking(ask, f"p{number}") for number in range(pods))]


@pytest.mark.parametrize(("period", "discards", "placed"), [(0, False, 3), (60, False, 1), (60, True, 3)])
def test_what_the_cache_knows(period: int, discards: bool, placed: int) -> None:
    """Without one three pods of 16 see 30 + 30 free each time, and node capacity 60 is all that holds the fourth off.

    OverReserve takes the first pod's 16 from both zones: 14 and 14 are left, though one of the zones has 30.
    DiscardReserved, which counts where both are asked for, knows of no pod that is bound.
    """
    instance = instance_of(*two_zones(4))
    profile = {
        "plugins": {"multiPoint": {"enabled": [{"name": "NodeResourceTopologyMatch"}]}},
        "pluginConfig": [{"name": "NodeResourceTopologyMatch", "args": {"cacheResyncPeriodSeconds": period}}],
    }
    profile["pluginConfig"][0]["args"]["discardReservedNodes"] = discards
    assert len(run(instance, "numa-match", arguments=profile).bindings) == placed
