"""Configurations as clusters have them: what they say is honoured, or named as not mimicked; nothing is dropped."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from placer.base.errors import BadInstance
from placer.lab.policies.faults import ConfigReader
from placer.lab.policies.kube import _HONOURED, read_profile
from placer.lab.policies.mimicry import Mimicry, mimic, read_config
from placer.lab.policies.volcano.settings import VolcanoSettings, read_settings
from placer.problem import Instance
from tests.netdocs import app_group, call, costs, member, network_topology, place, weights
from tests.problem.test_workload_sorts import BOUTIQUE, KEP_ROOTS, TABLE, WORKLOADS
from tests.support import Document, instance_of, node, pod, pod_group

#: KEP-260, "Scheduler Configuration", word for word.
KEP = """
apiVersion: kubescheduler.config.k8s.io/v1beta2
kind: KubeSchedulerConfiguration
leaderElection:
  leaderElect: false
clientConnection:
  kubeconfig: "REPLACE_ME_WITH_KUBE_CONFIG_PATH"
profiles:
- schedulerName: network-aware-scheduler
  plugins:
    queueSort:
      enabled:
      - name: TopologicalSort
      disabled:
      - name: "*"
    filter:
      enabled:
      - name: NetworkOverhead
    score:
      disabled: # Preferably avoid the combination of NodeResourcesFit with NetworkOverhead
      - name: NodeResourcesFit
      enabled: # A higher weight is given to NetworkOverhead to favor allocation schemes with lower latency.
      - name: NetworkOverhead
        weight: 5
      - name: BalancedAllocation
        weight: 1
  pluginConfig:
  - name: TopologicalSort
    args:
      namespaces:
      - "default"
  - name: NetworkOverhead
    args:
      namespaces:
      - "default"
      weightsName: "UserDefined" # weights applied by the plugin
      networkTopologyName: "net-topology-test" # networkTopology CR used by the plugin
"""

#: The label plug-in's design, "Usage", word for word.
LABELS = """
- plugins:
   - name: network-topology
     arguments:
       network-topology.type: static # static means it will use the node's labels to aware network topology
       network-topology.keys: rack,switch,idc # required when type is static
       network-topology.weight: 10
"""


def decided(instance: Instance, text: str, **options: Any) -> Mimicry:
    """What the one policy of a configuration binds, and what it says."""
    ((policy, arguments),) = read_config(text, "conf.yaml", **options).items()
    return mimic(instance, policy, arguments=arguments)


def kube(profile: Mapping[str, Any], **rest: Any) -> str:
    return json.dumps({"kind": "KubeSchedulerConfiguration", "profiles": [profile], **rest})


def configured(plugin: str, **arguments: Any) -> dict[str, Any]:
    """A profile with arguments for one plug-in, which is on."""
    plugins = {"multiPoint": {"enabled": [{"name": plugin}]}}
    if plugin in ("TopologicalSort", "Coscheduling"):
        plugins["multiPoint"]["disabled"] = [{"name": "PrioritySort"}]
    return {"plugins": plugins, "pluginConfig": [{"name": plugin, "args": arguments}]}


def nodes_of(found: Mimicry) -> dict[str, str]:
    return {binding.pod.name: binding.node for binding in found.placement.bindings}


TWO = instance_of(node("n1"), node("n2"), pod("a", cpu=1))


# --------------------------------------------------------------------------------------------------------------- KEP


def called(*topologies: Document, app: Document | None = None) -> Instance:
    """Pod db runs in region a; web calls it from any of three regions."""
    return instance_of(
        *(place(f"n-{region}", f"{region}/z{region}") for region in "abc"),
        app or app_group(workloads={"web": [call("db", cost=100)], "db": []}),
        *topologies,
        member("db", "db", node="n-a", cpu=31),
        member("web", "web", cpu=2),
    )


def regions(name: str, cheap: str, **rest: Any) -> Document:
    """A NetworkTopology in which one region is near to a."""
    dear = next(region for region in "bc" if region != cheap)
    return network_topology(weights(region=costs((cheap, "a", 1), (dear, "a", 50))), name=name, **rest)


def test_the_configuration_of_the_kep_is_taken_as_it_is() -> None:
    found = decided(called(regions("nt-default", "b"), regions("net-topology-test", "c")), KEP)
    assert nodes_of(found) == {"web": "n-c"}
    assert found.notes == (
        "plugins.score.enabled[1].name: BalancedAllocation is read as NodeResourcesBalancedAllocation",
    )


def test_the_network_topology_that_is_named_decides() -> None:
    instance = called(regions("nt-default", "b"), regions("other", "c"), regions("other", "b", namespace="net"))
    assert nodes_of(mimic(instance, "network-overhead")) == {"web": "n-b"}
    for arguments, chosen in (
        ({"networkTopologyName": "other"}, "n-c"),
        ({"networkTopologyName": "other", "namespaces": ["net", "default"]}, "n-b"),
        ({"networkTopologyName": "nt-default"}, "n-b"),
    ):
        found = decided(instance, kube(configured("NetworkOverhead", **arguments)))
        assert (nodes_of(found), found.notes) == ({"web": chosen}, ())


def test_the_list_that_is_named_decides() -> None:
    lists = [
        weights(name, region=costs((near, "a", 1), (far, "a", 50)))
        for name, near, far in (("UserDefined", "b", "c"), ("NetperfCosts", "c", "b"))
    ]
    instance = called(network_topology(*lists))
    for name, chosen in (("UserDefined", "n-b"), ("NetperfCosts", "n-c")):
        found = decided(instance, kube(configured("NetworkOverhead", weightsName=name)))
        assert (nodes_of(found), found.notes) == ({"web": chosen}, ())


def test_a_network_topology_or_list_that_is_not_there_is_told() -> None:
    instance = called(regions("nt-default", "b"))
    found = decided(instance, kube(configured("NetworkOverhead", networkTopologyName="gone", weightsName="Mine")))
    at = "pluginConfig[NetworkOverhead].args"
    assert found.notes == (
        f"{at}.networkTopologyName: none of this name (gone) in default: default/nt-default is used",
        f"{at}.weightsName: NetworkTopology default/nt-default has no list Mine: no cost between zones or regions is "
        "known",
    )


def test_an_app_group_outside_the_namespaces_is_not_found() -> None:
    app = app_group(workloads={"web": [call("db", cost=100)], "db": []}, namespace="shops")
    instance = called(regions("nt-default", "b"), app=app)
    at = "pluginConfig[NetworkOverhead].args.namespaces"
    near = decided(instance, kube(configured("NetworkOverhead", namespaces=["default", "shops"])))
    assert (nodes_of(near), near.notes) == ({"web": "n-b"}, ())
    alone = decided(instance, kube(configured("NetworkOverhead", namespaces=["default"])))
    assert alone.notes == (
        f"{at}: AppGroup shops/shop is not looked for (default): its pods count as pods without an AppGroup",
    )
    # Nobody tells it where to be near: it may be anywhere, as seeds have it.
    ((policy, arguments),) = read_config(kube(configured("NetworkOverhead", namespaces=["default"]))).items()
    spread = {nodes_of(mimic(instance, policy, arguments=arguments, seed=seed))["web"] for seed in range(20)}
    assert spread == {"n-b", "n-c"}


# -------------------------------------------------------------------------------------------------------------- sorts


def boutique() -> Instance:
    group = app_group(workloads={who: BOUTIQUE.get(who, ()) for who in WORKLOADS})
    return instance_of(place("n1"), group, *(member(who, who, cpu=0.1) for who in WORKLOADS))


@pytest.mark.parametrize("algorithm", TABLE)
def test_every_row_of_the_kep_comes_out_or_it_is_told_why_not(algorithm: str) -> None:
    instance = boutique()
    by_name = mimic(instance, f"network-overhead:{algorithm}")
    order = " ".join(nodes_of(by_name))
    if "Kahn" in algorithm:
        assert (order, by_name.notes) == (TABLE[algorithm], ())
    else:
        (note,) = by_name.notes
        assert note.startswith(
            f"AppGroup default/shop: {algorithm} takes the workloads in the random order of a Go map"
        )
        assert order in note
        assert order != TABLE[algorithm]
    roots = configured("TopologicalSort", topologySortingAlgorithm=algorithm, roots=KEP_ROOTS)
    found = decided(instance, kube(roots))
    assert (" ".join(nodes_of(found)), found.notes) == (TABLE[algorithm], ())


# ------------------------------------------------------------------------------------------------------ kube-scheduler


def test_ignored_resources_are_not_looked_at() -> None:
    instance = instance_of(node("n1", gpu=1), pod("a", gpu=2), pod("b", cpu=64))
    assert nodes_of(mimic(instance, "kube-default")) == {}
    gpu = "nvidia.com/gpu"
    for arguments in ({"ignoredResources": [gpu]}, {"ignoredResourceGroups": ["nvidia.com"]}):
        found = decided(instance, kube(configured("NodeResourcesFit", **arguments)))
        assert (nodes_of(found), found.notes) == ({"a": "n1"}, ())
    found = decided(instance, kube(configured("NodeResourcesFit", ignoredResources=["cpu"])))
    assert nodes_of(found) == {}
    assert found.notes == (
        "pluginConfig[NodeResourcesFit].args.ignoredResources: cpu is no extended resource, so it counts",
    )


def test_added_affinity_holds_for_every_pod() -> None:
    instance = instance_of(node("n1", {"pool": "x"}), node("n2", {"pool": "y"}), pod("a", cpu=1), pod("b", cpu=1))
    term = {"matchExpressions": [{"key": "pool", "operator": "In", "values": ["y"]}]}
    preferred = "preferredDuringSchedulingIgnoredDuringExecution"
    affinity = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}, preferred: []}
    found = decided(instance, kube(configured("NodeAffinity", addedAffinity=affinity)))
    assert nodes_of(found) == {"a": "n2", "b": "n2"}
    assert found.notes == (
        f"pluginConfig[NodeAffinity].args.addedAffinity.{preferred}: not mimicked: preferences score every node alike",
    )


@pytest.mark.parametrize("plugin", [*_HONOURED, "PodTopologySpread", "DefaultPreemption"])
def test_no_argument_is_dropped(plugin: str) -> None:
    found = decided(TWO, kube(configured(plugin, apiVersion="v1", kind="Args", mystery={"x": 1})))
    assert found.notes == (f"pluginConfig[{plugin}].args.mystery: not mimicked",)


@pytest.mark.parametrize(
    ("profile", "notes"),
    [
        (
            {
                "plugins": {"score": {"enabled": [{"name": "Mine", "weight": 3}], "disabled": [{"name": "Theirs"}]}},
                "pluginConfig": [{"name": "Mine", "args": {"x": 1}}],
            },
            [
                "plugins.score.enabled: the plug-in Mine is not mimicked",
                "pluginConfig[Mine]: the plug-in is not mimicked",
            ],
        ),
        (
            {"plugins": {"queueSort": {"enabled": [{"name": "QOSSort"}], "disabled": [{"name": "*"}]}}},
            [
                "plugins.queueSort.enabled: the plug-in QOSSort is not mimicked",
                "plugins.queueSort: PrioritySort orders the queue in place of QOSSort",
            ],
        ),
        (
            {"plugins": {"filter": {"disabled": [{"name": "TaintToleration"}, {"name": "VolumeZone"}]}}},
            [
                "plugins.filter: TaintToleration kept: taints, cordons and affinity are one filter here",
                "plugins.filter: VolumeZone off or on: pods that ask for it remain pending",
            ],
        ),
        (
            {"plugins": {"multiPoint": {"enabled": [{"name": "ImageLocality", "weight": 9}]}}},
            ["plugins.multiPoint: scores of ImageLocality not mimicked: preferences score every node alike"],
        ),
        (
            {"pluginConfig": [{"name": "NetworkOverhead", "args": {"weightsName": "Mine"}}]},
            ["pluginConfig[NetworkOverhead].args: decide nothing: the plug-in NetworkOverhead is not on"],
        ),
        (
            configured(
                "NodeResourceTopologyMatch",
                cacheResyncPeriodSeconds=5,
                discardReservedNodes=True,
                cache={"foreignPodsDetect": "None"},
                scoringStrategy={"type": "LeastAllocated", "resorces": []},
            ),
            [
                "cache: not mimicked: nothing is read again in one snapshot",
                "scoringStrategy.resorces: not mimicked; found like it: resources",
                "discardReservedNodes: nodes are closed only during a binding, which takes no time",
                "cacheResyncPeriodSeconds: decides nothing with discardReservedNodes",
            ],
        ),
        (
            configured("Coscheduling", permitWaitingTimeSeconds=10, podGroupRejectPercentage=20),
            ["permitWaitingTimeSeconds: not mimicked: no time passes in one snapshot"],
        ),
    ],
    ids=["of others", "queue sort", "filters", "preferences", "not on", "numa", "coscheduling"],
)
def test_what_is_not_mimicked_is_named(profile: dict[str, Any], notes: list[str]) -> None:
    found = decided(TWO, kube(profile)).notes
    assert len(found) == len(notes)
    for told, expected in zip(found, notes, strict=True):
        assert told.endswith(expected)


def test_of_several_profiles_for_one_policy_one_is_mimicked_and_the_others_are_named() -> None:
    packs = {"scoringStrategy": {"type": "MostAllocated"}}
    profiles = [
        {"schedulerName": "packing", "pluginConfig": [{"name": "NodeResourcesFit", "args": packs}]},
        {"schedulerName": "default-scheduler"},
    ]
    text = json.dumps({"profiles": profiles})
    assert decided(TWO, text).notes == ("profiles: packing not mimicked: one profile for each policy",)
    assert decided(TWO, text, scheduler_name="packing").notes == ()
    assert read_config(text, scheduler_name="packing")["kube-default"]["schedulerName"] == "packing"


def test_a_config_map_is_read_for_what_is_in_it() -> None:
    def held(**data: str) -> str:
        return json.dumps({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": data})

    assert list(read_config(held(**{"config.yaml": KEP}))) == ["network-overhead"]
    volcano = {"volcano-scheduler.conf": "tiers:\n- plugins:\n  - name: gang\n", "volcano-scheduler-2.conf": "x"}
    assert list(read_config(held(**volcano))) == ["volcano"]
    with pytest.raises(BadInstance, match=r"data: found a, b, expected one configuration, or volcano-scheduler\.conf"):
        read_config(held(a=KEP, b=KEP))
    with pytest.raises(BadInstance, match="data: found nothing"):
        read_config(held())


# -------------------------------------------------------------------------------------------------------------- Volcano


def read(text: str) -> tuple[VolcanoSettings, list[str]]:
    ((_, arguments),) = read_config(text).items()
    reader = ConfigReader("-", "test")
    settings = read_settings(arguments, reader)
    reader.raise_any()
    return settings, reader.remarks


def test_the_fragment_of_the_label_plugin_is_put_among_the_default_plugins() -> None:
    assert list(read_config(LABELS)) == ["volcano-labels"]
    settings, notes = read(LABELS)
    assert settings.keys == (10, ("rack", "switch", "idc"))
    assert settings.topology is None
    assert (settings.gang, settings.predicates, settings.job_order) == (True, True, ("priority", "gang", "drf"))
    assert notes == [
        "tiers: a part of a configuration, put among plug-ins of the default one: priority, gang, conformance, "
        "overcommit, drf, predicates, proportion, nodeorder, binpack"
    ]
    # Two pods of one gang go where one rack has room for both: the first one's rack draws the second.
    racks = [node(f"n{index}", {"rack": f"r{index // 2}"}, cpu=2) for index in range(4)]
    pods = [pod(f"g{index}", group="g", cpu=2) for index in range(2)]
    bound = nodes_of(decided(instance_of(*racks, pod_group("g", minMember=2), *pods), LABELS))
    assert {int(name.removeprefix("n")) // 2 for name in bound.values()} in ({0}, {1})
    assert len(bound) == 2


def test_defaults_have_nothing_to_say() -> None:
    for policy in ("kube-default", "coscheduling", "volcano", "volcano-labels", "network-overhead", "numa-match"):
        assert mimic(TWO, policy).notes == ()
    reader = ConfigReader("-", "test")
    read_profile({}, reader)
    assert reader.remarks == []


@pytest.mark.parametrize(
    "plugin",
    [
        *("priority", "gang", "drf", "predicates", "proportion", "nodeorder", "binpack", "overcommit"),
        *("network-topology-aware", "network-topology"),
    ],
)
def test_no_argument_of_volcano_is_dropped(plugin: str) -> None:
    arguments = {"mystery": 1, **({"network-topology.keys": "rack"} if plugin == "network-topology" else {})}
    entry = {"name": plugin, "arguments": arguments, "enableMystery": False, "riddle": "x"}
    notes = decided(TWO, json.dumps({"tiers": [{"plugins": [entry]}], "metrics": {"type": "none"}})).notes
    at = f"tiers[0].plugins[0] ({plugin})"
    assert notes == (
        "metrics: not mimicked",
        f"{at}.enableMystery: not mimicked",
        f"{at}.riddle: not mimicked",
        f"{at}.arguments.mystery: not mimicked",
    )
