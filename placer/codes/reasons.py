"""Why a group stays pending: ``reason`` of a Placement's ``groups``, in the order in which they are looked at."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from placer.codes.code import Code

__all__ = ["REASONS", "ReasonCode"]

ReasonCode = Literal[
    "InvalidGroup",
    "GangIncomplete",
    "Unsupported",
    "NoEligibleNode",
    "QueueCapability",
    "InsufficientResources",
    "TopologyTooNarrow",
    "NumaAlignment",
    "NetworkCost",
    "Bandwidth",
    "Outcompeted",
    "NotDecided",
]

#: The first in this order that keeps the group out when it is alone with what runs; the last two are not of that order.
REASONS: Mapping[ReasonCode, Code] = {
    "InvalidGroup": Code(
        "The PodGroup contradicts itself, or pods name one that is not there.",
        "spec.networkTopology sets both highestTierAllowed and highestTierName",
        "Correct the field that the message names, or create the PodGroup that the pods name.",
    ),
    "GangIncomplete": Code(
        "Fewer pods exist than the gang's minimum (`minMember`, `minTaskMember`, `minSubGroups`, `subGroupSize`), so "
        "that no cluster could start it.",
        "minMember is 3, but there are 2 pending pods",
        "Wait until the controller has made the pods, raise its replicas, or lower the minimum.",
    ),
    "Unsupported": Code(
        "Too few pods are left when those are set aside that need what placer does not model.",
        "1 of 1 pod needs what is not modelled: spec.resourceClaims[gpu]: devices allocated by claim",
        "Have another scheduler place these pods, or do without the field that the message names.",
    ),
    "NoEligibleNode": Code(
        "No node may take a pod of the group, however empty it is: taints, node selector, node affinity, nodes that "
        "are not ready.",
        "0/3 nodes are eligible for 2 pods of cpu 1: 2 untolerated taint gpu=yes:NoSchedule, 1 node is not Ready",
        "Add the toleration, correct the selector, or bring nodes of the kind that is asked for.",
    ),
    "QueueCapability": Code(
        "The group's Queue, or one above it, is closed, or its `capability` has no room for what the group needs.",
        "needs nvidia.com/gpu 8 in Queue research: capability 16, 12 of it taken",
        "Raise `spec.capability` of the Queue, wait until pods in it end, open it, or use another queue.",
    ),
    "InsufficientResources": Code(
        "Beside what runs now there is not room for the group on all eligible nodes together.",
        "0/2 nodes have room for a pod of nvidia.com/gpu 8: 2 insufficient nvidia.com/gpu",
        "Add nodes, ask for less, or wait until running pods end.",
    ),
    "TopologyTooNarrow": Code(
        "There would be room for the group, but not within one HyperNode of the tier that it allows.",
        "needs 4 pods (of 4 x nvidia.com/gpu 8) in one HyperNode of tier <= 1; the roomiest (leaf-1, tier 1) has room "
        "for 2, 2 too few",
        "Raise `highestTierAllowed`, use `mode: soft`, or wait until one domain is free.",
    ),
    "NumaAlignment": Code(
        "There would be room on nodes, but their kubelets would refuse the pods: no NUMA zone has room for one.",
        "fits only where kubelets refuse pods that no NUMA zone has room for (tried every way to place its pods; pod "
        "by pod there is room): 0/2 nodes with room for Pod default/a admit it; Node n1 comes nearest: container main "
        "asks for cpu 6 in one zone: node-0 has cpu 4; node-1 has cpu 4",
        "Ask for less per container, use nodes with larger zones, or a topology manager policy that is less strict.",
    ),
    "NetworkCost": Code(
        "No place is near enough to the workloads of the AppGroup that the group calls or is called by.",
        "fits only where calls cost more than they may (tried every way to place its pods; pod by pod there is room): "
        "web calls db at a cost of 5 at most, 0/3 nodes are near enough to 2 bound pods of db; of the nodes with "
        "room Node n2 comes nearest: AppGroup shop/boutique: web -> db allows cost 5, and 1 new pair from zone b of "
        "region r to zone a of region r has 10",
        "Raise `maxNetworkCost` of the dependency, free room near the other workload, or set the rule off in the "
        "Policy (`rules: {C8: off}`).",
    ),
    "Bandwidth": Code(
        "Wherever the group went, a link between zones or regions would carry more than its `bandwidthCapacity`.",
        "fits only where links carry more than they have room for (tried every way to place its pods; pod by pod there "
        "is room): web calls db with 1000000000 bit/s a pair of pods",
        "Lower `minBandwidth` of the dependency, correct the capacity in the NetworkTopology, or free room in one "
        "zone.",
    ),
    "Outcompeted": Code(
        "The group fits beside what runs now, but not beside what this placement binds: what the message says of room, "
        "costs and queues is so once the placement is carried out.",
        "fits alone; beside this placement: 0/2 nodes have room for a pod of nvidia.com/gpu 3: 2 insufficient "
        "nvidia.com/gpu; Node n1 comes nearest: nvidia.com/gpu 1 free, 2 too few; the room went to PodGroup ml/train "
        "(1 pod)",
        "Wait, or raise the group's priority above that of the groups which the message names.",
    ),
    "NotDecided": Code(
        "There was no time to tell whether the group fits.",
        "counting does not exclude it, and no place was found for it alone: no time to tell",
        "Raise `--time-limit`.",
    ),
}
