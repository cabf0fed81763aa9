"""Generated instances: what is planted fits, by a checker that reads nothing but the documents."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from collections import Counter, defaultdict
from dataclasses import fields, replace
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from placer.base.errors import UsageError
from placer.base.quantity import Resources
from placer.kube.manifests import from_documents, validate
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
from placer.problem.instance_builder import make_instance
from placer.problem.placement import Placement
from placer.rules import verify
from placer.search.numa.binding_order import aligned
from tests.examples import examples

GPU = "nvidia.com/gpu"


def of_kind(made: Generated, kind: str) -> list[dict[str, Any]]:
    return [document for document in made.documents if document["kind"] == kind]


def name(document: dict[str, Any]) -> str:
    return str(document["metadata"]["name"])


def where(made: Generated) -> dict[str, str]:
    """Pod to node: those that run and those that are planted."""
    found = {pod.name: node for pod, node in (made.planted or {}).items()}
    for pod in of_kind(made, "Pod"):
        if "nodeName" in pod["spec"]:
            assert name(pod) not in found
            found[name(pod)] = pod["spec"]["nodeName"]
    return found


def requests(pod: dict[str, Any]) -> Resources:
    return Resources.parse(pod["spec"]["containers"][0]["resources"]["requests"] | {"pods": "1"})


def ancestors(made: Generated) -> dict[str, list[tuple[str, int]]]:
    """Node to its HyperNodes with tiers, lowest first; every node and domain has exactly one parent but the core."""
    parent: dict[tuple[str, str], str] = {}
    tier = {}
    for domain in of_kind(made, "HyperNode"):
        tier[name(domain)] = domain["spec"]["tier"]
        for member in domain["spec"]["members"]:
            child = (member["type"], member["selector"]["exactMatch"]["name"])
            assert child not in parent
            parent[child] = name(domain)
    found = {}
    for node in of_kind(made, "Node"):
        path, at = [], parent[("Node", name(node))]
        while at:
            path.append((at, tier[at]))
            at = parent.get(("HyperNode", at), "")
        assert [level for _, level in path] == sorted({level for _, level in path})
        found[name(node)] = path
    return found


def common_tier(nodes: list[str], above: dict[str, list[tuple[str, int]]]) -> int:
    shared = set(above[nodes[0]]).intersection(*(above[node] for node in nodes))
    return min(level for _, level in shared)


def check_capacity(made: Generated, placed: dict[str, str]) -> dict[str, Resources]:
    nodes = {name(node): node for node in of_kind(made, "Node")}
    used: dict[str, Resources] = defaultdict(Resources)
    for pod in of_kind(made, "Pod"):
        if name(pod) in placed:
            node = placed[name(pod)]
            used[node] = used[node] + requests(pod)
            selector = pod["spec"].get("nodeSelector") or {}
            assert selector.items() <= nodes[node]["metadata"]["labels"].items()
    for node, room in used.items():
        assert room.fits(Resources.parse(nodes[node]["status"]["allocatable"])), node
    return used


def check_groups(made: Generated, placed: dict[str, str]) -> None:
    above = ancestors(made)
    members: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for pod in of_kind(made, "Pod"):
        group = pod["metadata"].get("annotations", {}).get("scheduling.k8s.io/group-name")
        if group and name(pod) in placed:
            members[group].append(pod)
    for group in of_kind(made, "PodGroup"):
        pods = members.get(name(group), [])
        if pods:
            check_group(group["spec"], pods, placed, above)


def check_group(
    spec: dict[str, Any], pods: list[dict[str, Any]], placed: dict[str, str], above: dict[str, list[tuple[str, int]]]
) -> None:
    assert len(pods) >= spec["minMember"] == sum(spec["minTaskMember"].values())
    roles = Counter(pod["metadata"]["labels"]["volcano.sh/task-spec"] for pod in pods)
    assert all(roles[role] >= least for role, least in spec["minTaskMember"].items())
    check_limit(spec, pods, placed, above)
    for policy in spec.get("subGroupPolicy", []):
        blocks: dict[str, list[dict[str, Any]]] = defaultdict(list)
        for pod in pods:
            labels = pod["metadata"]["labels"]
            if policy["labelSelector"]["matchLabels"].items() <= labels.items():
                blocks[labels[policy["matchLabelKeys"][0]]].append(pod)
        assert len(blocks) >= policy["minSubGroups"]
        for block in blocks.values():
            assert len(block) == policy["subGroupSize"]
            check_limit(policy, block, placed, above)


def check_limit(
    scope: dict[str, Any], pods: list[dict[str, Any]], placed: dict[str, str], above: dict[str, list[tuple[str, int]]]
) -> None:
    topology = scope.get("networkTopology", {"mode": "soft"})
    if topology["mode"] == "hard":
        assert common_tier([placed[name(pod)] for pod in pods], above) <= topology["highestTierAllowed"]


def check_planted(options: PlantedOptions) -> Generated:
    made = planted(options)
    assert made.planted is not None
    placed = where(made)
    used = check_capacity(made, placed)
    full = max(1, round(options.fill * options.nodes))
    if not options.held or options.fill == 1:
        assert Counter(room[GPU] for room in used.values() if room[GPU]) == {options.gpus: full}
    check_groups(made, placed)
    if not options.overfull:
        assert len(placed) == len(of_kind(made, "Pod"))
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


@examples(60)
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
    highest = {name for name, spec in limited.items() if spec["networkTopology"]["highestTierAllowed"] == 3}
    assert {name for name, spec in none.items() if "networkTopology" not in spec} == highest
    assert {name for name, spec in some.items() if "networkTopology" not in spec} < highest
    for name, spec in none.items():  # nothing else is drawn otherwise
        assert {"networkTopology": limited[name]["networkTopology"]} | spec == limited[name]


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
    placed = where(made)
    used = check_capacity(made, placed)
    check_groups(made, placed)
    assert made.summary["gpusRunning"] == sum(used[node][GPU] for node in used)
    assert made.summary["gpusRunning"] <= load * made.summary["gpus"]
    assert made.summary["podsPending"] == len(of_kind(made, "Pod")) - len(placed)


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


def test_hash_seed_changes_nothing() -> None:
    code = (
        "import hashlib, json; from placer.lab.generate import generate, bindings\n"
        "made = generate('planted', nodes=40, pod_sizes=(1, 2, 4, 8), node_types=3, queues=2, roles=0.5, uneven=0.5)\n"
        "print(hashlib.sha256(json.dumps([made.documents, bindings(made)]).encode()).hexdigest())"
    )
    digests = set()
    for hash_seed in ("0", "77"):
        done = subprocess.run(
            [sys.executable, "-c", code],
            env=os.environ | {"PYTHONHASHSEED": hash_seed},
            capture_output=True,
            text=True,
            check=True,
        )
        digests.add(done.stdout)
    assert len(digests) == 1


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
    above = ancestors(made)
    leaves = [above[node][0][0] for node in sorted(above)]
    assert sum(one == two for one, two in pairwise(leaves)) < 20
    assert [name(node) for node in of_kind(made, "Node")] == sorted(above)


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


@pytest.mark.parametrize(
    ("family", "values"),
    [
        ("planted", {"nodes": 50}),
        (
            "planted",
            {"nodes": 64, "pod_sizes": (1, 2, 4, 8), "subgroup_sizes": (3, 5, 7), "subgroups": 0.6, "priorities": 3},
        ),
        (
            "planted",
            {
                "nodes": 60,
                "pod_sizes": (1, 2, 4),
                "node_types": 3,
                "uneven": 0.5,
                "roles": 0.4,
                "elastic": 0.5,
                "queues": 2,
            },
        ),
        (
            "planted",
            {
                "nodes": 96,
                "leaf_size": 4,
                "spines_per_pod": 2,
                "running": 0.3,
                "anchored": 0.3,
                "overfull": 0.3,
                "queues": 3,
            },
        ),
        (
            "planted",
            {"nodes": 64, "held": 0.6, "services": 2, "uneven": 0.5, "node_types": 3, "pod_sizes": (1, 2, 4, 8)},
        ),
        ("planted", {"nodes": 64, "held": 0.4, "overfull": 0.5, "beyond_last": True, "pod_sizes": (1, 2, 4, 8)}),
        ("planted", {"nodes": 300, "like_volcano": True}),
        ("neighbours", {"nodes": 60}),
        ("neighbours", {"nodes": 60, "running": 0.4, "skew": 2}),
        ("neighbours", {"nodes": 60, "node_types": 3, "uneven": 0.5, "queues": 2}),
        ("numa", {"nodes": 8}),
        ("numa", {"nodes": 8, "restricted": 0.5}),
        ("numa", {"nodes": 8, "running": 0.5, "zones": (2, 4)}),
        ("numa", {"nodes": 8, "fill": 1.0}),
    ],
)
def test_verifier_agrees_that_what_is_planted_fits(family: str, values: dict[str, Any]) -> None:
    made = generate(family, seed=11, **values)
    instance = make_instance(validate(from_documents(made.documents)))
    assert instance.findings == ()
    placement = Placement.of(made.planted or {})
    assert list(verify(instance, placement)) == []
    assert len(placement.bindings) == made.summary["podsPlanted"]
    if not values.get("overfull"):
        assert len(placement.bindings) == len(instance.pending)
    ordered = aligned(instance, placement)
    assert verify(instance, ordered) == []
    assert ordered.node_of == placement.node_of


def test_running_jobs_of_clos_break_nothing() -> None:
    made = generate("clos", seed=2, load=0.8, services=2, pod_sizes=(2, 4, 8), queues=2, priorities=3)
    instance = make_instance(validate(from_documents(made.documents)))
    assert instance.findings == ()
    assert len(instance.pending) == made.summary["podsPending"]
