"""Generated instances: what is planted fits, and every option does what it says."""

from __future__ import annotations

import hashlib
import json
from collections import Counter, defaultdict
from dataclasses import fields, replace
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from placer.base.errors import UsageError
from placer.base.quantity import Resources
from placer.lab.generate import (
    FAMILIES,
    ClosOptions,
    Generated,
    PlantedOptions,
    bindings,
    clos,
    generate,
    planted,
)
from tests.examples import examples
from tests.lab.generate.judged import GPU, judged, name, of_kind, used


def requests(pod: dict[str, Any]) -> Resources:
    return Resources.parse(pod["spec"]["containers"][0]["resources"]["requests"] | {"pods": "1"})


def check_planted(options: PlantedOptions) -> Generated:
    made = planted(options)
    instance, placement = judged(made)
    full = max(1, round(options.fill * options.nodes))
    if not options.held or options.fill == 1:
        assert Counter(used(instance, placement).values()) == {options.gpus: full}
    if not options.overfull:
        assert len(placement.bindings) == len(instance.pending)
    return made


@st.composite
def mixes(draw: st.DrawFn) -> dict[str, Any]:
    share = st.sampled_from([0.0, 0.3, 1.0])
    return {
        "seed": draw(st.integers(0, 10**6)),
        "leaf_size": draw(st.integers(1, 9)),
        "leaves_per_spine": draw(st.integers(1, 4)),
        "spines_per_pod": draw(st.integers(0, 3)),
        "pod_sizes": draw(st.sampled_from([(8,), (1,), (1, 2, 4, 8), (3, 5, 1), (8, 4)])),
        "gang_pods": draw(st.sampled_from([(), (1, 3), (5, 40), (900, 1000)])),
        "subgroups": draw(share),
        "subgroup_sizes": draw(st.sampled_from([(2,), (3, 5, 7), (12, 24)])),
        "tight": draw(share),
        "soft": draw(share),
        "unlimited": draw(share),
        "elastic": draw(share),
        "roles": draw(share),
        "priorities": draw(st.integers(1, 4)),
        "queues": draw(st.integers(0, 3)),
        "node_types": draw(st.integers(1, 3)),
        "selectors": draw(share),
        "uneven": draw(st.sampled_from([0.0, 0.2, 0.7])),
        "services": draw(st.integers(0, 2)),
    }


@examples(30)
@given(
    mix=mixes(),
    nodes=st.integers(1, 60),
    fill=st.sampled_from([1.0, 0.9, 0.3]),
    running=st.sampled_from([0.0, 0.4]),
    overfull=st.sampled_from([0.0, 0.3]),
    held=st.sampled_from([0.0, 0.5, 1.0]),
)
def test_every_planted_placement_is_full_and_keeps_all_rules(
    mix: dict[str, Any], nodes: int, fill: float, running: float, overfull: float, held: float
) -> None:
    shares = {"fill": fill, "running": running, "anchored": running, "overfull": overfull, "held": held}
    check_planted(PlantedOptions(nodes=nodes, beyond_last=overfull > 0, **shares, **mix))


def test_gangs_of_the_highest_tier_may_state_no_limit() -> None:
    options = PlantedOptions(nodes=300, tier_shares=(0.2, 0.2, 0.6), subgroups=0.5, soft=0.0, seed=5)
    limited, some, none = (
        {group["metadata"]["name"]: group["spec"] for group in of_kind(check_planted(made), "PodGroup")}
        for made in (options, replace(options, unlimited=0.5), replace(options, unlimited=1.0))
    )
    highest = {each for each, spec in limited.items() if spec["networkTopology"]["highestTierAllowed"] == 3}
    assert {each for each, spec in none.items() if "networkTopology" not in spec} == highest
    assert {each for each, spec in some.items() if "networkTopology" not in spec} < highest
    for each, spec in none.items():  # nothing else is drawn otherwise
        assert {"networkTopology": limited[each]["networkTopology"]} | spec == limited[each]


def test_single_pods_run_on_a_share_of_the_nodes_and_the_queue_has_the_rest() -> None:
    made = check_planted(PlantedOptions(nodes=60, held=0.5, pod_sizes=(1, 2, 4, 8), node_types=3, seed=4))
    alone = [pod for pod in of_kind(made, "Pod") if pod["metadata"]["namespace"] == "singles"]
    on: Counter[str] = Counter()
    for pod in alone:
        on[pod["spec"]["nodeName"]] += requests(pod)[GPU]
    assert len(on) == 30
    assert 8 < sum(gpus == 8 for gpus in on.values()) < 22
    assert sum(on.values()) + made.summary["gpusPlanted"] == 60 * 8
    assert made.summary["podsRunning"] == len(alone)


def test_jobs_beyond_the_planted_ones_come_last() -> None:
    made = generate("planted", nodes=24, overfull=0.5, priorities=3, beyond_last=True, seed=2)
    values = {name(document): document["value"] for document in of_kind(made, "PriorityClass")}
    assert values == {"priority-last": -100, "priority-1": 100, "priority-2": 200, "priority-3": 300}
    inside = {pod.name for pod in made.planted or {}}
    for pod in of_kind(made, "Pod"):
        assert (pod["spec"]["priorityClassName"] == "priority-last") == (name(pod) not in inside)


@examples(25)
@given(mix=mixes(), spines=st.integers(1, 3), load=st.sampled_from([0.0, 0.5, 1.0]))
def test_what_runs_in_clos_keeps_all_rules(mix: dict[str, Any], spines: int, load: float) -> None:
    made = clos(ClosOptions(spines=spines, load=load, **mix | {"gang_pods": ()}))
    instance, nothing = judged(made)
    assert made.summary["gpusRunning"] == used(instance, nothing).total() <= load * made.summary["gpus"]
    assert made.summary["podsPending"] == len(instance.pending)


def test_tight_leaves_are_made_of_subgroups_only() -> None:
    made = check_planted(PlantedOptions(nodes=64, tight=1.0, subgroup_sizes=(3, 5), soft=0.0, seed=3))
    policies = [group["spec"].get("subGroupPolicy") for group in of_kind(made, "PodGroup")]
    assert all(policies)
    limits = {json.dumps(policy[0]["networkTopology"]) for policy in policies if policy}
    assert limits == {'{"mode": "hard", "highestTierAllowed": 1}'}


def test_queues_have_room_for_exactly_what_is_planted() -> None:
    made = planted(PlantedOptions(nodes=20, queues=2, overfull=0.5, pod_sizes=(2, 4, 8)))
    groups = {name(group): group["spec"]["queue"] for group in of_kind(made, "PodGroup")}
    pods = {name(pod): pod for pod in of_kind(made, "Pod")}
    asked: dict[str, Resources] = defaultdict(Resources)
    for pod in made.planted or {}:
        queue = groups[pods[pod.name]["metadata"]["annotations"]["scheduling.k8s.io/group-name"]]
        asked[queue] = asked[queue] + requests(pods[pod.name])
    for queue in of_kind(made, "Queue"):
        limit = Resources.parse(queue["spec"]["capability"])
        assert {resource: asked[name(queue)][resource] for resource in limit} == dict(limit)


def test_another_seed_is_another_instance() -> None:
    for family in FAMILIES:
        one, other = (json.dumps(generate(family, seed=seed).documents) for seed in (3, 4))
        assert one != other


#: Digests of documents and bindings with seed 1.
FOR_EVER = {
    "clos": "3ad0da9e8d16fb84",
    "fragmented": "e01b7ab63aff72bf",
    "lost": "1cafcfec33441f00",
    "neighbours": "505fafa66f2f3108",
    "network": "4ae66b17c109bcb9",
    "numa": "7353638bf37387d5",
    "planted": "67c4916c0a8c6889",
    "stranded": "9b2984e96cdbe5af",
    "victims": "49b5dd826aa14f3c",
}


@pytest.mark.parametrize("family", sorted(FAMILIES))
def test_one_seed_gives_this_instance_for_ever(family: str) -> None:
    made = generate(family, seed=1)
    text = json.dumps([made.documents, bindings(made), dict(made.summary)])
    assert hashlib.sha256(text.encode()).hexdigest()[:16] == FOR_EVER[family]


def test_names_and_order_tell_nothing_of_the_layout() -> None:
    made = planted(PlantedOptions(nodes=64, seed=5))
    lowest = [each for each in judged(made)[0].topology.hyper_nodes.values() if each.tier == 1]
    leaf_of = {node: leaf.name for leaf in lowest for node in leaf.nodes}
    assert sum(leaf_of[one] == leaf_of[two] for one, two in pairwise(sorted(leaf_of))) < 20
    assert [name(node) for node in of_kind(made, "Node")] == sorted(leaf_of)


def test_like_volcano_has_the_layout_of_the_measured_runs() -> None:
    made = check_planted(PlantedOptions(nodes=1024, like_volcano=True).settled())
    assert len(made.planted or {}) == round(0.949 * 1024)
    tiers = {name(group): group["spec"]["networkTopology"] for group in of_kind(made, "PodGroup")}
    sizes = Counter(pod.name.rsplit("-", 2)[0] for pod in made.planted or {})
    assert {topology["mode"] for topology in tiers.values()} == {"hard"}
    assert max(sizes[job] for job, topology in tiers.items() if topology["highestTierAllowed"] == 1) <= 16
    assert 17 <= max(sizes[job] for job, topology in tiers.items() if topology["highestTierAllowed"] == 2) <= 243
    assert all(group["spec"]["minMember"] == sizes[name(group)] for group in of_kind(made, "PodGroup"))


def test_like_volcano_leaves_alone_what_was_chosen() -> None:
    settled = PlantedOptions(like_volcano=True, leaf_size=4, subgroups=0.5).settled()
    assert (settled.leaf_size, settled.subgroups, settled.leaves_per_spine) == (4, 0.5, 16)


def test_uneven_pods_make_cpu_and_memory_scarce_too() -> None:
    made = check_planted(PlantedOptions(nodes=64, pod_sizes=(1, 2, 4), uneven=0.5, seed=2))
    rates = [requests(pod)["cpu"] / requests(pod)[GPU] for pod in of_kind(made, "Pod")]
    assert min(rates) < 10_000 < 19_000 < max(rates)
    total = sum(Resources.parse(node["status"]["allocatable"])["cpu"] for node in of_kind(made, "Node"))
    assert sum(requests(pod)["cpu"] for pod in of_kind(made, "Pod")) > 0.85 * total


def test_one_huge_gang_and_many_domains() -> None:
    huge = generate(
        "clos", leaf_size=16, leaves_per_spine=16, spines=20, load=0.0, gangs=1, gang_pods=(5008, 5008),
        subgroups=1.0, subgroup_sizes=(16,), tier_shares=(0, 0, 1), soft=0.0,
    )  # fmt: skip
    spec = of_kind(huge, "PodGroup")[0]["spec"]
    assert spec["minMember"] == 5008
    assert spec["networkTopology"] == {"mode": "hard", "highestTierAllowed": 3}
    policy = spec["subGroupPolicy"][0]
    assert (policy["subGroupSize"], policy["minSubGroups"]) == (16, 313)
    assert policy["networkTopology"] == {"mode": "hard", "highestTierAllowed": 1}
    many = generate(
        "clos", leaf_size=1, leaves_per_spine=2, spines_per_pod=5, spines=300, gangs=5, gang_pods=(64, 512), load=0
    )
    assert len(of_kind(many, "HyperNode")) == 600 + 300 + 60 + 1
    assert len(of_kind(many, "PodGroup")) == 5


def test_bindings_are_the_planted_placement() -> None:
    made = generate("planted", nodes=4)
    listed = bindings(made)
    assert (listed["apiVersion"], listed["kind"]) == ("v1", "List")
    pairs = {
        (item["metadata"]["namespace"], item["metadata"]["name"]): item["target"]["name"] for item in listed["items"]
    }
    assert pairs == dict(made.planted or {})


@pytest.mark.parametrize(
    ("family", "values", "words"),
    [
        ("planted", {"nodes": 0}, ["--nodes", "found 0", "from 1"]),
        ("planted", {"pod_sizes": (3,)}, ["--pod-sizes", "found 3", "8 GPUs"]),
        ("planted", {"pod_sizes": ()}, ["--pod-sizes", "an empty list"]),
        ("planted", {"tight": 0.5, "subgroups": 0.0, "subgroup_sizes": ()}, ["--subgroup-sizes", "an empty list"]),
        ("planted", {"gang_pods": (5, 2)}, ["--gang-pods", "found 5,2"]),
        ("planted", {"tier_shares": (1.0,)}, ["--tier-shares", "3 numbers"]),
        ("planted", {"uneven": 2.0}, ["--uneven", "found 2", "0.9"]),
        ("planted", {"colour": 1}, ["colour", "leaf_size"]),
        ("clos", {"spines": 100_000}, ["--spines", "3,200,000 nodes"]),
        ("clos", {"gangs": 1, "gang_pods": (900, 1000)}, ["--gang-pods", "found 900,1000"]),
        ("neighbours", {"app_pods": (4,)}, ["--app-pods", "found 4", "two numbers"]),
        ("neighbours", {"app_pods": (9, 3)}, ["--app-pods", "found 9,3"]),
        ("neighbours", {"spread": 1.5}, ["--spread", "found 1.5"]),
        ("neighbours", {"skew": 0}, ["--skew", "found 0", "from 1"]),
        ("neighbours", {"by_label": True, "queues": 2}, ["--queues", "found 2", "expected 0 with by_label"]),
        ("neighbours", {"by_label": True, "subgroups": 0.5}, ["--subgroups", "found 0.5"]),
        ("numa", {"zones": ()}, ["--zones", "an empty list"]),
        ("numa", {"zones": (9,)}, ["--zones", "found 9", "from 1 to 8"]),
        ("numa", {"pod_cores": ()}, ["--pod-cores", "an empty list"]),
        ("numa", {"pod_cores": (5,), "cores": 24}, ["--pod-cores", "found 5", "sizes that sum to 23 to 24 cores"]),
        ("numa", {"uneven": 1.0}, ["--uneven", "0.9"]),
        ("network", {"nodes": 3}, ["--nodes", "found 3", "at least 4, one for each zone"]),
        ("network", {"workloads": (5, 2)}, ["--workloads", "found 5,2", "one number, or two with the least one first"]),
        ("network", {"workloads": ()}, ["--workloads", "found an empty list"]),
        ("network", {"replicas": (1, 2, 3)}, ["--replicas", "found 1,2,3"]),
        ("network", {"replicas": (0,)}, ["--replicas", "found 0", "from 1 to 100"]),
        ("network", {"tight": 1.5}, ["--tight", "found 1.5", "from 0 to 1"]),
        ("network", {"leaf_size": 8}, ["network: found option 'leaf_size'", "rack_size"]),
        ("victims", {"nodes": 8, "budget": True}, ["--nodes: found 8, expected at least 16, 2 racks, as this needs"]),
        ("victims", {"nodes": 16, "spanning": True}, ["--nodes: found 16, expected at least 24, 3 racks"]),
        ("stranded", {"nodes": 8}, ["--nodes: found 8, expected at least 16, 2 racks, so that something"]),
        ("lost", {"lost": 3}, ["--lost: found 3, expected at most 2, a third of the nodes of a rack"]),
        ("fragmented", {"domains": 5}, ["--nodes: found 64, expected at least 80, 10 racks, two for each that is to"]),
        ("stranded", {"node_pods": 3}, ["--node-pods: found 3, expected a divisor of 8 GPUs"]),
        ("ring", {}, ["ring", "clos, fragmented, lost, neighbours, network, numa, planted"]),
    ],
)
def test_bad_options_are_named(family: str, values: dict[str, Any], words: list[str]) -> None:
    with pytest.raises(UsageError) as caught:
        generate(family, **values)
    assert all(word in str(caught.value) for word in words), str(caught.value)


#: Of each family an option that takes a number, a list and a share.
FLAGS = {
    "clos": ("--leaf-size", "--pod-sizes", "--soft"),
    "neighbours": ("--nodes", "--app-pods", "--near"),
    "network": ("--nodes", "--workloads", "--tight"),
    "numa": ("--nodes", "--zones", "--pairs"),
    "planted": ("--leaf-size", "--pod-sizes", "--soft"),
}


def test_options_describe_themselves_for_a_command_line() -> None:
    for family in FAMILIES.values():
        assert [each.name for each in family.flags] == [declared.name for declared in fields(family.options)]
        assert all(each.text for each in family.flags)
    for name_of_family, (size, sizes, share) in FLAGS.items():
        flags = {each.flag: each for each in FAMILIES[name_of_family].flags}
        assert flags[sizes].parse("1,2,4,8") == (1, 2, 4, 8)
        assert flags[sizes].parse("") == ()
        assert flags[share].parse("0.5") == 0.5
        for flag, text in (("--seed", "x"), (size, "0"), (sizes, "1,,2"), (share, "nan")):
            with pytest.raises(UsageError, match=flag):
                flags[flag].parse(text)
    assert next(each for each in FAMILIES["planted"].flags if each.name == "like_volcano").switch
