"""A scheduler's own configuration: whose it is, what it changes, and what is wrong with it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from placer.base.errors import BadInstance
from placer.lab.policies.faults import ConfigReader
from placer.lab.policies.kube import DEFAULT_WEIGHTS, Profile, read_profile
from placer.lab.policies.mimicry import POLICIES, PROFILES, read_config, run
from placer.lab.policies.volcano.settings import DEFAULT, read_settings
from placer.lab.policies.volcano.topology import TopologyWeights
from tests.support import instance_of, node, pod

KUBE = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection: {leaderElect: false}
percentageOfNodesToScore: 40
profiles:
- schedulerName: default-scheduler
  pluginConfig:
  - name: NodeResourcesFit
    args:
      scoringStrategy:
        type: MostAllocated
        resources: [{name: cpu, weight: 3}, {name: nvidia.com/gpu, weight: 5}]
- schedulerName: network-aware-scheduler
  percentageOfNodesToScore: 100
  plugins:
    multiPoint:
      enabled: [{name: TopologicalSort}, {name: NetworkOverhead, weight: 5}]
      disabled: [{name: PrioritySort}, {name: NodeResourcesFit}]
"""

VOLCANO = """
actions: "enqueue, allocate, backfill"
tiers:
- plugins:
  - name: priority
  - name: gang
    enablePreemptable: false
- plugins:
  - name: drf
    enableJobOrder: false
  - name: predicates
    arguments: {predicate.NodeAffinityEnable: true}
  - name: nodeorder
    arguments: {leastrequested.weight: 0, mostrequested.weight: 2, tainttoleration.weight: 3}
  - name: binpack
    arguments:
      binpack.weight: 10
      binpack.cpu: 5
      binpack.resources: nvidia.com/gpu, example.com/foo
      binpack.resources.nvidia.com/gpu: 2
  - name: network-topology-aware
    arguments:
      weight: 7
      hypernode.binpack.cpu: -1
      hypernode.binpack.memory: 4
      hypernode.binpack.resources: nvidia.com/gpu
      hypernode.binpack.resources.nvidia.com/gpu: 9
      hypernode.binpack.normal-pod.enable: false
      hypernode.binpack.normal-pod.fading: 0.5
"""


def profile_of(written: Any) -> Profile:
    reader = ConfigReader("-", "test")
    found = read_profile(written, reader)
    reader.raise_any()
    return found


def faults_of(text: str, **options: Any) -> list[str]:
    with pytest.raises(BadInstance) as raised:
        read_config(text, "conf.yaml", **options)
    return [str(fault) for fault in raised.value.faults]


# ------------------------------------------------------------------------------------------------------ kube-scheduler


def test_each_profile_belongs_to_the_policy_that_its_plugins_are_about() -> None:
    found = read_config(KUBE)
    assert list(found) == ["kube-default", "network-overhead"]
    assert [profile_of(each).percentage for each in found.values()] == [40, 100]


def test_multi_point_takes_a_plugin_away_everywhere() -> None:
    """The sample of NetworkOverhead takes the filter of NodeResourcesFit away with its score."""
    found = profile_of(read_config(KUBE)["network-overhead"])
    assert "NodeResourcesFit" not in found.filters | found.scores.keys()
    assert found.queue_sort == "TopologicalSort"
    assert found.scores == {"NodeResourcesBalancedAllocation": 1, "NetworkOverhead": 5}


def test_a_name_chooses_among_profiles() -> None:
    assert list(read_config(KUBE, scheduler_name="network-aware-scheduler")) == ["network-overhead"]
    assert faults_of(KUBE, scheduler_name="mine") == [
        "conf.yaml: KubeSchedulerConfiguration: profiles: found default-scheduler, network-aware-scheduler, "
        "expected a profile with schedulerName mine"
    ]


def test_no_profile_is_the_default_one() -> None:
    found = read_config("{kind: KubeSchedulerConfiguration}")
    assert list(found) == ["kube-default"]
    assert profile_of(found["kube-default"]) == profile_of({})


def test_the_default_profile() -> None:
    found = profile_of({})
    assert found.queue_sort == "PrioritySort"
    assert found.scores == {"NodeResourcesFit": 1, "NodeResourcesBalancedAllocation": 1}
    assert found.permit == frozenset()
    assert DEFAULT_WEIGHTS["TaintToleration"] == 3


FIT, BALANCED = "NodeResourcesFit", "NodeResourcesBalancedAllocation"


@pytest.mark.parametrize(
    ("plugins", "scores"),
    [
        ({"score": {"disabled": [{"name": "*"}], "enabled": [{"name": FIT, "weight": 4}]}}, {FIT: 4}),
        ({"score": {"disabled": [{"name": FIT}]}}, {BALANCED: 1}),
        ({"multiPoint": {"enabled": [{"name": FIT, "weight": 3}]}}, {FIT: 3, BALANCED: 1}),
        ({"score": {"enabled": [{"name": FIT, "weight": 2}]}}, {FIT: 2, BALANCED: 1}),
    ],
)
def test_weights_and_what_is_off(plugins: Any, scores: dict[str, int]) -> None:
    found = profile_of({"plugins": plugins})
    assert found.scores == scores
    assert "NodeResourcesFit" in found.filters


def test_the_profiles_of_the_policies_are_sound_and_belong_to_them() -> None:
    for policy, written in PROFILES.items():
        profile_of(written)
        assert list(read_config(json.dumps({"profiles": [written]}))) == [policy]


def test_all_faults_of_a_kube_configuration() -> None:
    text = """
apiVersion: kubescheduler.config.k8s.io/v2
kind: KubeSchedulerConfiguration
profiles:
- plugins:
    score: {enabled: [{}, {name: NodeResourcesFit, weight: heavy}]}
    scoring: {}
- percentageOfNodesToScore: 101
  plugins: {queueSort: {disabled: [{name: PrioritySort}]}}
"""
    kube = "conf.yaml: KubeSchedulerConfiguration: "
    found = faults_of(text)
    assert found[0].startswith(f"{kube}apiVersion: found 'kubescheduler.config.k8s.io/v2', expected one of kube")
    assert f"{kube}profiles[0].plugins: found 'scoring', expected an extension point" in found
    assert f"{kube}profiles[0].plugins.score.enabled[0].name: found nothing, expected the name of a plug-in" in found
    assert (
        f"{kube}profiles[0].plugins.score.enabled[1].weight: found 'heavy', expected an integer of at least 0" in found
    )
    assert f"{kube}profiles[1].plugins.queueSort: found none, expected exactly one queue sort plug-in" in found
    assert (
        f"{kube}profiles[1].percentageOfNodesToScore: found 101, expected an integer of at least 0 and at most 100"
        in found
    )


def test_faults_of_arguments() -> None:
    text = """
kind: KubeSchedulerConfiguration
profiles:
- pluginConfig: [{name: NodeResourcesFit, args: {scoringStrategy: {type: Best, resources: [{weight: 0}]}}}]
- schedulerName: other
  pluginConfig:
  - name: NodeAffinity
    args: {addedAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: []}}}
  - {name: NodeResourcesFit, args: {ignoredResources: [3], ignoredResourceGroups: all}}
"""
    kube = "conf.yaml: KubeSchedulerConfiguration: "
    assert faults_of(text) == [
        f"{kube}profiles[0].pluginConfig[NodeResourcesFit].args.scoringStrategy.type: found 'Best', expected one of "
        "LeastAllocated, MostAllocated, RequestedToCapacityRatio",
        f"{kube}profiles[0].pluginConfig[NodeResourcesFit].args.scoringStrategy.resources[0].name: found nothing, "
        "expected the name of a resource",
        f"{kube}profiles[0].pluginConfig[NodeResourcesFit].args.scoringStrategy.resources[0].weight: found 0, expected "
        "an integer of at least 1 and at most 100",
        f"{kube}profiles[1].pluginConfig[NodeAffinity].args.addedAffinity."
        "requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms: found an empty list, expected at least 1 "
        "item",
        f"{kube}profiles[1].pluginConfig[NodeResourcesFit].args.ignoredResources[0]: found 3, expected text that is "
        "not empty",
        f"{kube}profiles[1].pluginConfig[NodeResourcesFit].args.ignoredResourceGroups: found 'all', expected a list",
    ]


# -------------------------------------------------------------------------------------------------------------- Volcano


def test_volcano() -> None:
    found = read_config(VOLCANO)
    assert list(found) == ["volcano"]
    settings = read_settings(found["volcano"], ConfigReader("-", "test"))
    assert settings.job_order == ("priority", "gang")
    assert settings.gang
    assert settings.predicates
    assert not settings.proportion
    assert settings.node_order == {"leastrequested": 0, "mostrequested": 2, "balancedresource": 1}
    assert settings.binpack == (10, {"cpu": 5, "memory": 1, "nvidia.com/gpu": 2, "example.com/foo": 1})
    # A weight below 0 is the default.
    assert settings.topology == TopologyWeights(
        7, {"cpu": 1, "memory": 4, "nvidia.com/gpu": 9}, normal_pods=False, fading=0.5
    )
    assert settings.keys is None


def test_the_defaults_of_volcano() -> None:
    settings = read_settings(DEFAULT, ConfigReader("-", "test"))
    assert settings.job_order == ("priority", "gang", "drf")
    assert settings.node_order == {"leastrequested": 1, "mostrequested": 0, "balancedresource": 1}
    assert settings.binpack == (1, {"cpu": 1, "memory": 1})
    assert settings.topology == TopologyWeights()
    assert settings.proportion


def test_the_label_plugin_tells_its_policy() -> None:
    found = read_config(
        """
tiers:
- plugins:
  - name: gang
  - name: network-topology
    arguments: {network-topology.type: static, network-topology.keys: "rack,switch,idc", network-topology.weight: 10}
"""
    )
    settings = read_settings(found["volcano-labels"], ConfigReader("-", "test"))
    assert settings.keys == (10, ("rack", "switch", "idc"))


def test_all_faults_of_volcano() -> None:
    text = """
tiers:
- plugins:
  - {}
  - name: binpack
    enableNodeOrder: "no"
    arguments: {binpack.weight: heavy}
  - name: network-topology
    arguments: {network-topology.type: guessed}
"""
    conf = "conf.yaml: volcano-scheduler.conf: "
    found = faults_of(text)
    assert set(found) == {
        f"{conf}tiers[0].plugins[0].name: found nothing, expected the name of a plug-in",
        f"{conf}tiers[0].plugins[1].enableNodeOrder: found 'no', expected true or false",
        f"{conf}tiers[0].plugins[1].arguments[binpack.weight]: found 'heavy', expected an integer",
        f"{conf}tiers[0].plugins[2].arguments[network-topology.type]: found 'guessed', expected one of static, dynamic",
        f"{conf}tiers[0].plugins[2].arguments[network-topology.keys]: found nothing, expected labels of nodes, nearest "
        "first",
    }


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("", "found 0 documents, expected one"),
        ("a: 1\n---\nb: 2", "found 2 documents, expected one"),
        ("[1]", "found [1], expected a mapping"),
        ("apiVersion: v1\nkind: Pod", "found apiVersion, kind, expected a KubeSchedulerConfiguration, or a"),
        ("tiers: 3", "tiers: found 3, expected a list"),
        ("a: b: c", "line 1, column 5: found text that is not YAML"),
    ],
)
def test_what_is_no_configuration(text: str, fault: str) -> None:
    assert fault in faults_of(text)[0]


def test_what_is_read_is_what_runs() -> None:
    """Most allocated instead of least: the second pod goes where the first one is."""
    instance = instance_of(node("n1"), node("n2"), *(pod(name, cpu=1, memory="4Gi") for name in ("a", "b")))
    most = read_config(KUBE)["kube-default"]

    def nodes(arguments: Any) -> int:
        return len({binding.node for binding in run(instance, "kube-default", arguments=arguments).bindings})

    assert nodes(None) == 2
    assert nodes(most) == 1


def test_every_policy_takes_its_own_default_configuration() -> None:
    instance = instance_of(node("n1"), pod("a", cpu=1))
    for policy in POLICIES:
        assert len(run(instance, policy).bindings) == (policy != "as-is")
