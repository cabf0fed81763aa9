"""Generated queues of neighbours: what is planted keeps affinity, anti-affinity and spread, read from documents."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from placer.kube.manifests import from_documents, validate
from placer.lab.generate import Generated, NeighbourOptions, generate, neighbours
from placer.problem.instance_builder import make_instance
from placer.problem.placement import Placement
from placer.rules import verify
from tests.examples import examples
from tests.lab.generate.test_generate import GPU, check_capacity, check_groups, name, of_kind, where

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
JOB = "volcano.sh/job-name"
Document = dict[str, Any]


def domains(made: Generated) -> dict[str, dict[str, str]]:
    """Node to its labels."""
    return {name(node): node["metadata"]["labels"] for node in of_kind(made, "Node")}


def meant(made: Generated, selector: Document) -> list[str]:
    wanted = selector["matchLabels"].items()
    return [name(pod) for pod in of_kind(made, "Pod") if wanted <= pod["metadata"].get("labels", {}).items()]


def check(options: NeighbourOptions) -> Generated:
    made = neighbours(options)
    placed, labels = where(made), domains(made)
    assert len(placed) == len(of_kind(made, "Pod"))
    used = check_capacity(made, placed)
    assert Counter(room[GPU] for room in used.values()) == {options.gpus: options.nodes}
    check_groups(made, placed)
    turn = {pod.name: number for number, pod in enumerate(made.planted or {})}
    for pod in of_kind(made, "Pod"):
        me, affinity = name(pod), pod["spec"].get("affinity", {})
        for term in affinity.get("podAntiAffinity", {}).get(REQUIRED, ()):
            others = set(meant(made, term["labelSelector"])) - {me}
            assert labels[placed[me]][term["topologyKey"]] not in {
                labels[placed[each]][term["topologyKey"]] for each in others
            }
        for term in affinity.get("podAffinity", {}).get(REQUIRED, ()):
            there = [
                each
                for each in meant(made, term["labelSelector"])
                if labels[placed[each]][term["topologyKey"]] == labels[placed[me]][term["topologyKey"]]
            ]
            assert any(turn.get(each, -1) < turn.get(me, len(turn)) for each in there)
        for spread in pod["spec"].get("topologySpreadConstraints", ()):
            key = spread["topologyKey"]
            counts = Counter(dict.fromkeys({each[key] for each in labels.values()}, 0))
            counts.update(labels[placed[each]][key] for each in meant(made, spread["labelSelector"]))
            assert max(counts.values()) - min(counts.values()) <= spread["maxSkew"]
    return made


def asking(made: Generated) -> tuple[int, Counter[str]]:
    """Pods that are spread; and jobs by what they ask of others."""
    spread, jobs = 0, defaultdict[str, set[str]](set)
    for pod in of_kind(made, "Pod"):
        spread += "topologySpreadConstraints" in pod["spec"]
        for kind in pod["spec"].get("affinity", ()):
            jobs[kind].add(pod["metadata"]["labels"][JOB])
    return spread, Counter({kind: len(names) for kind, names in jobs.items()})


@st.composite
def mixes(draw: st.DrawFn) -> NeighbourOptions:
    share = st.sampled_from([0.0, 0.3, 1.0])
    return NeighbourOptions(
        seed=draw(st.integers(0, 10**6)),
        nodes=draw(st.integers(1, 40)),
        leaf_size=draw(st.integers(1, 9)),
        leaves_per_spine=draw(st.integers(1, 4)),
        spines_per_pod=draw(st.integers(0, 2)),
        pod_sizes=draw(st.sampled_from([(8,), (1,), (1, 2, 4, 8), (3, 5, 1)])),
        subgroups=draw(share),
        tight=draw(share),
        elastic=draw(share),
        roles=draw(share),
        node_types=draw(st.integers(1, 3)),
        uneven=draw(st.sampled_from([0.0, 0.5])),
        spread=draw(share),
        app_pods=draw(st.sampled_from([(1, 1), (3, 40)])),
        over_hosts=draw(share),
        skew=draw(st.integers(1, 3)),
        one_per_host=draw(share),
        near=draw(share),
        running=draw(st.sampled_from([0.0, 0.5, 1.0])),
    )


@examples(80)
@given(mixes())
def test_every_gpu_is_planted_and_every_pod_has_the_neighbours_that_it_asks_for(options: NeighbourOptions) -> None:
    check(options)


def test_shares_are_met() -> None:
    options = NeighbourOptions(nodes=300, seed=1)
    made = check(options)
    jobs, (spread, asked) = len(of_kind(made, "PodGroup")), asking(made)
    assert spread / len(made.planted or {}) == pytest.approx(0.3, abs=0.005)
    assert asked["podAntiAffinity"] / jobs == pytest.approx(0.2, abs=0.02)
    assert asked["podAffinity"] / jobs == pytest.approx(0.1, abs=0.02)
    found = made.summary
    assert (found["jobs"], found["podsSpread"]) == (jobs, spread)
    assert (found["jobsOnePerHost"], found["jobsNear"]) == (asked["podAntiAffinity"], asked["podAffinity"])
    assert found["gpusPlanted"] == found["gpus"] == 300 * 8
    keys = {
        each["topologyKey"] for pod in of_kind(made, "Pod") for each in pod["spec"].get("topologySpreadConstraints", ())
    }
    assert keys == {"placer.dev/spine", "kubernetes.io/hostname"}


def test_by_label_racks_are_labels_and_gangs_ask_for_one_domain_of_them() -> None:
    made = generate("neighbours", nodes=64, seed=5, by_label=True)
    assert of_kind(made, "HyperNode") == []
    groups = {name(each): each for each in of_kind(made, "PodGroup")}
    assert {each["apiVersion"] for each in groups.values()} == {"scheduling.k8s.io/v1beta1"}
    keys = Counter(
        each["key"]
        for group in groups.values()
        for each in group["spec"].get("schedulingConstraints", {}).get("topology", ())
    )
    assert set(keys) == {"placer.dev/leaf", "placer.dev/spine"}
    assert keys.total() < len(groups)
    instance = make_instance(validate(from_documents(made.documents)))
    assert instance.findings == ()
    gangs = {key.name: group for key, group in instance.groups.items() if key.api_group}
    assert {each: gangs[each].min_member for each in groups} == {
        each: group["spec"]["schedulingPolicy"]["gang"]["minCount"] for each, group in groups.items()
    }
    assert verify(instance, Placement.of(made.planted or {})) == []
    limited = (key for key in sorted(groups) if "schedulingConstraints" in groups[key]["spec"])
    confined = next(key for key in limited if gangs[key].min_member > 1)
    label = groups[confined]["spec"]["schedulingConstraints"]["topology"][0]["key"]
    mine = [pod.key for pod in instance.pods.values() if pod.group is not None and pod.group.name == confined]
    here = instance.nodes[(made.planted or {})[mine[0]]].labels[label]
    other = next(key for key, each in instance.nodes.items() if each.labels[label] != here)
    moved = verify(instance, Placement.of({**(made.planted or {}), mine[0]: other}))
    assert "C7" in {violation.rule for violation in moved}


def test_without_shares_nobody_asks_anything() -> None:
    assert asking(check(NeighbourOptions(nodes=40, spread=0, one_per_host=0, near=0))) == (0, Counter())
