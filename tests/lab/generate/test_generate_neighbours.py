"""Generated queues of neighbours: what is planted keeps affinity, anti-affinity and spread."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from placer.lab.generate import Generated, NeighbourOptions, generate, neighbours
from placer.problem.placement import Placement
from placer.rules import verify
from tests.examples import examples
from tests.lab.generate.judged import judged, name, of_kind, used

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
JOB = "volcano.sh/job-name"
Document = dict[str, Any]


def check(options: NeighbourOptions) -> Generated:
    made = neighbours(options)
    instance, placement = judged(made)
    assert len(placement.bindings) == len(instance.pending)
    assert Counter(used(instance, placement).values()) == {options.gpus: options.nodes}
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


@examples(40)
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
    instance, _ = judged(made)
    gangs = {key.name: group for key, group in instance.groups.items() if key.api_group}
    assert {each: gangs[each].min_member for each in groups} == {
        each: group["spec"]["schedulingPolicy"]["gang"]["minCount"] for each, group in groups.items()
    }
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
