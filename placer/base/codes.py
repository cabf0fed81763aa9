"""Every code that placer says, with its meaning: reasons, findings, and texts that are written into a cluster."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NamedTuple


class Code(NamedTuple):
    """One code: its meaning in one sentence, an example of a message, and a remedy."""

    meaning: str
    example: str
    remedy: str


#: Why a group stays pending: ``reason`` of a Placement's ``groups``.
ReasonCode = Literal[
    "InvalidGroup",
    "GangIncomplete",
    "Unsupported",
    "NamespaceBudget",
    "NoEligibleNode",
    "QueueClosed",
    "QueueCapability",
    "InsufficientResources",
    "TopologyTooNarrow",
    "PodAffinity",
    "PodAntiAffinity",
    "TopologySpread",
    "Exclusive",
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
        "spec.networkTopology sets both highestTierAllowed (1) and highestTierName (rack), expected one of them",
        "Correct the field that the message names, or create the PodGroup that the pods name.",
    ),
    "GangIncomplete": Code(
        "Fewer pods exist than the gang's minimum (`minMember`, `minTaskMember`, `minSubGroups`, `subGroupSize`), so "
        "no cluster could start it.",
        "minMember is 3, but there are 2 pending pods",
        "Wait until the controller has made the pods, raise its replicas, or lower the minimum.",
    ),
    "Unsupported": Code(
        "Too few pods of the group can be placed: the others use fields that placer does not support.",
        "1 of 1 pod needs unsupported fields: spec.resourceClaims[gpu]: devices allocated by claim",
        "Have another scheduler place these pods, or do without the field that the message names.",
    ),
    "NamespaceBudget": Code(
        "The pods of the namespace cost more than its budget allows (`--namespace-budget`): terms, resources, or bytes "
        "of text. Its newest pods that add to it wait.",
        "namespaceBudget.terms: found 20,000 distinct terms, host ports and node constraints of all pods of namespace "
        "evil, expected at most 10,000; its newest pods that add to them wait",
        "Use fewer distinct terms, resources, labels or values in the namespace, or have its budget raised.",
    ),
    "NoEligibleNode": Code(
        "No node may take a pod of the group, however empty it is: taints, node selector, node affinity, nodes that "
        "are not ready, or a resource that no node offers.",
        "0/9 nodes are eligible for 2 pods of cpu 1: 8 untolerated taint gpu=yes:NoSchedule, 1 node is not Ready (n3)",
        "Add the toleration, correct the selector, or bring nodes of the kind that is asked for.",
    ),
    "QueueClosed": Code(
        "The group's Queue, or one above it, is closed, or takes no pods of the group's namespace "
        "(annotation `placer.dev/namespaces`).",
        "Queue research is closed and takes no new pods",
        "Open the Queue, name the namespace in its annotation, or use another queue.",
    ),
    "QueueCapability": Code(
        "The `capability` of the group's Queue, or of one above it, has no room for the pods that the group needs.",
        "needs nvidia.com/gpu 8 in Queue research: capability 16, 12 of it taken",
        "Raise `spec.capability` of the Queue, wait until pods in it end, or use another queue.",
    ),
    "InsufficientResources": Code(
        "All eligible nodes together have too little room for the group next to the running pods.",
        "0/2 nodes have room for a pod of nvidia.com/gpu 8: 2 insufficient nvidia.com/gpu",
        "Add nodes, ask for less, or wait until running pods end.",
    ),
    "TopologyTooNarrow": Code(
        "The cluster has room for the group, but no single domain has. The domain is a HyperNode of an allowed tier, "
        "or a value of a node label.",
        "needs 4 pods (nvidia.com/gpu 8 each) in one HyperNode of tier <= 1; the roomiest (leaf-1, tier 1) has room "
        "for 2, 2 too few",
        "Raise `highestTierAllowed`, use `mode: soft`, name the label of a wider domain, or wait until one domain is "
        "free.",
    ),
    "PodAffinity": Code(
        "The cluster has room, but not near the pods that required pod affinity names, or not on nodes with its "
        "`topologyKey`.",
        "wherever its pods fit otherwise, some would not be near the pods that they must be near (tried every way; "
        "pod by pod there is room): its pods must be in one topology.kubernetes.io/zone with pods of app=cache: Pod "
        "ml/cache-0 is in a; there is room for one of them in b",
        "Start the pods that it must be near first, see that their labels are those of the term's `labelSelector` and "
        "its namespaces, label the nodes, or prefer instead of requiring.",
    ),
    "PodAntiAffinity": Code(
        "The cluster has room, but only in domains that required pod anti-affinity excludes: that of the pods, or of "
        "a running pod.",
        "wherever its pods fit otherwise, pods would share a domain that one keeps the other off (tried every way; "
        "pod by pod there is room): its pods must be in no kubernetes.io/hostname with pods of app=db, themselves "
        "among them: Pod ml/db-0 in n1 is in the way; 1 such domain (n1)",
        "Ask for fewer pods than there are domains of the `topologyKey`, use a smaller domain, or prefer instead of "
        "requiring.",
    ),
    "TopologySpread": Code(
        "The cluster has room, but not in the domains that a spread constraint with DoNotSchedule allows, or not on "
        "nodes with its `topologyKey`.",
        "wherever its pods fit otherwise, they would be spread less evenly than maxSkew allows (tried every way; pod "
        "by pod there is room): its pods must be spread over topology.kubernetes.io/zone with maxSkew 1: b has 0 of "
        "pods of app=web and a has 1 of pods of app=web (Pod ml/web-0); there is room for one of them in a; 2 such "
        "domains (a, b)",
        "Raise `maxSkew`, make room in the domain that has fewest, have nodes that cannot be used not count "
        "(`nodeAffinityPolicy`, `nodeTaintsPolicy`), or use ScheduleAnyway.",
    ),
    "Exclusive": Code(
        "The cluster has room, but every domain of the node label with room is held by another exclusive Job, replica "
        "or subgroup (`exclusive-topology`). An exclusive Job of a JobSet also keeps other Jobs of JobSets off.",
        "Job ml/train-w-2 needs 8 pods in a domain of rack of its own; the roomiest that no other holds (rack=r4) has "
        "room for 6, 2 too few",
        "Ask for smaller domains, for fewer Jobs or replicas, or wait until one that holds a domain ends.",
    ),
    "NumaAlignment": Code(
        "Nodes have room, but their kubelets would refuse the pods: no NUMA zone has room, or not the zone of a pod's "
        "init container.",
        "wherever its pods fit otherwise, kubelets would refuse pods: NUMA zones have too little left (tried "
        "every way; pod by pod there is room): 0/2 nodes with room for Pod default/a admit it; Node n1 comes nearest: "
        "container main asks for cpu 6 in one zone: node-0 has cpu 4; node-1 has cpu 4",
        "Request less per container, use nodes with larger zones, or a less strict topology manager policy.",
    ),
    "NetworkCost": Code(
        "No place is near enough to the workloads of the AppGroup that the group calls or is called by.",
        "wherever its pods fit otherwise, calls would cost more than they may (tried every way; pod by pod there is "
        "room): web calls db at a cost of 5 at most, 0/3 nodes are near enough to 2 bound pods of db; of the nodes "
        "with room Node n2 comes nearest: AppGroup shop/boutique: web -> db allows cost 5, and 1 new pair from zone b "
        "of region r to zone a of region r has 10",
        "Raise `maxNetworkCost` of the dependency, free room near the other workload, or switch the rule off in the "
        "Policy (`rules: {C8: off}`).",
    ),
    "Bandwidth": Code(
        "On every placement of the group, a link between zones or regions would exceed its `bandwidthCapacity`.",
        "wherever its pods fit otherwise, links would carry more than they have room for (tried every way; pod by pod "
        "there is room): web calls db with 1000000000 bit/s a pair of pods",
        "Lower `minBandwidth` of the dependency, correct the capacity in the NetworkTopology, or free room in one "
        "zone.",
    ),
    "Outcompeted": Code(
        "The group fits next to the running pods, but not with the pods that this placement binds. Room, costs and "
        "queues in the message are those after this placement.",
        "fits alone; with this placement: 0/2 nodes have room for a pod of nvidia.com/gpu 3: 2 insufficient "
        "nvidia.com/gpu; Node n1 comes nearest: nvidia.com/gpu 1 free, 2 too few; the room went to PodGroup ml/train "
        "(1 pod)",
        "Wait, or raise the group's priority above that of the groups which the message names.",
    ),
    "NotDecided": Code(
        "The time was too short to decide whether the group fits.",
        "counting does not exclude it, and no place was found for it alone: not decided in time",
        "Raise `--time-limit`.",
    ),
}

#: What in the input cannot be as meant: ``findings`` of a Placement; with ``--strict`` they are errors.
FindingCode = Literal[
    "AppGroupAmbiguous",
    "BandwidthNotLimited",
    "BoundContradicted",
    "BoundOneByOne",
    "BoundPodsViolate",
    "BudgetExceeded",
    "DependencyCycle",
    "DependsOn",
    "DependsOnItself",
    "DisruptionIgnored",
    "DomainNamesCollide",
    "FieldIgnored",
    "FileIgnored",
    "FractionalBytes",
    "GangNoLongerWhole",
    "GroupNameMisplaced",
    "HardWithoutLimit",
    "HostUnknown",
    "HostWithoutName",
    "HyperNodeCycle",
    "HyperNodeMember",
    "HyperNodeOverlap",
    "HyperNodeTierOrder",
    "HyperNodeTwoParents",
    "InvalidObject",
    "LabelInTwoDomains",
    "LinkOneWay",
    "LinkTwice",
    "MarksDisagree",
    "MaxNetworkCostAbsent",
    "NameTaken",
    "NetperfKey",
    "NetperfListDiffers",
    "NetperfNode",
    "NetperfPercentile",
    "NetperfValue",
    "NetworkTopologyAmbiguous",
    "NetworkTopologyEmpty",
    "NoHyperNodes",
    "NoMember",
    "NoNetworkTopology",
    "NodeNotInFabric",
    "NodeWithoutLabel",
    "NodeWithoutRegion",
    "NodeWithoutZone",
    "NumMembers",
    "NumaZones",
    "NumaZonesDiffer",
    "PartitionMismatch",
    "PlacementOfOtherInput",
    "PodWithoutWorkload",
    "PodsOfSeveralPriorities",
    "PolicyMatchesNothing",
    "PreferenceIgnored",
    "PriorityAboveItsPods",
    "ProtectionCosts",
    "QueueCycle",
    "QueueNamespaces",
    "QueueShareIgnored",
    "RegionAndZone",
    "SeveralApiGroups",
    "SolverDied",
    "SortingAlgorithmUnknown",
    "TierNameAmbiguous",
    "TierNameUnknown",
    "TopologyKeyUnknown",
    "TwoGroups",
    "UnknownField",
    "UnknownReference",
    "Unreadable",
    "UnsupportedKind",
    "WorkloadTwice",
    "ZoneInTwoRegions",
]

#: Findings that are no error under ``--strict``: what they speak of is decided, and safely.
NO_ERRORS: frozenset[FindingCode] = frozenset({"PodsOfSeveralPriorities", "PriorityAboveItsPods"})

FINDINGS: Mapping[FindingCode, Code] = {
    "AppGroupAmbiguous": Code(
        "Pods name an AppGroup by its name alone, and several namespaces have one of that name: the pods are of none.",
        "Pod c/web-0 may be of any of the AppGroups a/shop, b/shop, and so of none",
        "Give the AppGroups different names, or put the AppGroup into the namespace of its pods.",
    ),
    "BandwidthNotLimited": Code(
        "A pod reserves bandwidth of its node and does not ask the CNI bandwidth plug-in to hold it to that.",
        "Pod default/web-0: request of network.aware.com/bandwidth without the annotation "
        "kubernetes.io/ingress-bandwidth and kubernetes.io/egress-bandwidth, so nothing holds the pod to it",
        "Add the annotations to the pod template.",
    ),
    "BoundContradicted": Code(
        "A method claimed to have proved a bound, and a verified placement is better: none of the bounds is shown.",
        "exact claimed that admitted cannot be better than 100, but a verified placement has 120; no bound of this "
        "run is shown.",
        "The placement is verified and may be used. Report the instance (`placer snapshot --anonymize`): it is a bug.",
    ),
    "BoundOneByOne": Code(
        "A Placement would have pods reach a kubelet together that would then refuse one of them (`verify` says so).",
        "its kubelet refuses one of the pods if they reach it together; oneByOne does not name the node",
        "Name the node in `oneByOne`, and bind its pods one after another, each after the kubelet's answer.",
    ),
    "BoundPodsViolate": Code(
        "Pods that are bound already break a rule by themselves; the message begins with the rule. New pods do not "
        "add to it, so that less may fit there than there seems to be room for.",
        "C2: pods bound to Node n1 request more than is allocatable: cpu 9 of 8",
        "Nothing, if that is known; else delete or move one of the pods.",
    ),
    "BudgetExceeded": Code(
        "A namespace spends more than `--namespace-budget` allows; its newest pods that add to it wait.",
        "spends terms 20,000 of 10,000; pods that wait for it: 500",
        "Find the source of so many distinct terms, resources or labels, or raise the budget.",
    ),
    "DependencyCycle": Code(
        "Workloads of an AppGroup call each other in a circle; each dependency counts all the same.",
        "AppGroup default/shop: workloads call each other in a cycle: a -> b -> a",
        "Nothing, if that is meant.",
    ),
    "DependsOn": Code(
        "A task of a Volcano Job waits for another one, so that its pods do not exist yet and none is made of it.",
        "task worker waits for master: its pods do not exist yet, and none is made",
        "Nothing: Volcano makes the pods when the other task runs.",
    ),
    "DependsOnItself": Code(
        "A workload of an AppGroup depends on itself: pairs of its own pods are held to cost and bandwidth.",
        "AppGroup default/shop: workload web depends on itself: its pods call each other",
        "Nothing, if that is meant; else correct the dependency.",
    ),
    "DisruptionIgnored": Code(
        "The Policy lets pods be evicted or moved without being named; this command disturbs no pod.",
        "disruption.evict lower-priority of the Policy decides nothing here: nothing that runs is disturbed",
        "`placer run --max-evictions-per-hour N` obeys it in the cluster; `placer preempt` lists the pods that would "
        "be evicted. All commands keep `maxPods` and `protect` of the Policy.",
    ),
    "DomainNamesCollide": Code(
        "Discovery: several domain names lead to one HyperNode name; a hash distinguishes them.",
        "2 domains come to leaf-1: Leaf_1 is leaf-1-a2ce0e24, leaf-1 is leaf-1",
        "Nothing, if the names may be as they are; else rename a switch.",
    ),
    "FieldIgnored": Code(
        "A field limits pods that wait, or says that others make them, and decides nothing: no rule reads it.",
        "PodGroup default/bulk: spec.minResources asks for cpu 100, its 3 pods for 3, and decides nothing",
        "Say the same by a field that is read (the page of fields lists them), or leave the field out.",
    ),
    "FileIgnored": Code(
        "A file that was named gives the instance nothing: it holds no object, or only a Placement.",
        "gangs.yaml holds no object",
        "Check the content of the file. A Placement is judged by `placer verify INSTANCE... PLACEMENT`.",
    ),
    "FractionalBytes": Code(
        "An amount of bytes has the suffix `m`, a thousandth: it asks for next to nothing.",
        "container main of Pod ml/train-0 and 3 others asks for memory 64m: m is a thousandth of a byte, M a million "
        "bytes, Mi 2^20",
        "Write `M` or `Mi`.",
    ),
    "GangNoLongerWhole": Code(
        "A PodGroup says that its gang was scheduled once, and fewer of its pods than the minimum are bound now. "
        "Koordinator places the others one by one; placer places them only together.",
        "PodGroup ml/train was scheduled once (status.phase Running), and 1 of minMember 3 pods are bound: its pods "
        "are placed only if all of these are",
        "Make room for all that are missing, or lower `spec.minMember`.",
    ),
    "GroupNameMisplaced": Code(
        "The name of a PodGroup is a label where an annotation is read, or the reverse: its pods are in no gang.",
        "label scheduling.k8s.io/group-name of Pod ml/train-0 and 3 others is read as an annotation only, so each "
        "counts as a pod by itself",
        "Volcano reads the annotation `scheduling.k8s.io/group-name`, coscheduling the label "
        "`scheduling.x-k8s.io/pod-group`; move the name there.",
    ),
    "HardWithoutLimit": Code(
        "A `networkTopology` of mode hard names no highest tier, which limits nothing.",
        "spec.networkTopology of PodGroup ml/train is hard and sets no highest tier: that is no limit",
        "Set `highestTierAllowed` or `highestTierName`, or say `mode: soft`.",
    ),
    "HostUnknown": Code(
        "Discovery: hosts of a fabric are no nodes, by name, and are left out.",
        "host gpu-17 and 1 other of fabric.txt are no nodes, and left out",
        "Nothing, where they are not of this cluster; else name them as the nodes are named.",
    ),
    "HostWithoutName": Code(
        "Discovery: channel adapters in the output of `ibnetdiscover` do not say in which host they are.",
        "3 channel adapters without a host's name, such as h-0002c90300001dd0 (MT4123 ConnectX6): left out",
        "Set the node description on the hosts (`rdma-ndd` does), or give `ibnetdiscover` a node name map.",
    ),
    "HyperNodeCycle": Code(
        "HyperNodes contain each other; they and all HyperNodes above them are left out of the tree.",
        "HyperNodes s0, s1 contain each other in a cycle",
        "Take one of them out of the other's members.",
    ),
    "HyperNodeMember": Code(
        "A member of a HyperNode adds nothing: it does not exist, or its selector takes no node or cannot be used.",
        "HyperNode leaf-1: its member Node n7 is not in the instance",
        "Correct the member or its selector, or give the missing object too.",
    ),
    "HyperNodeOverlap": Code(
        "HyperNodes share a node and neither is above the other; they and all above them are left out of the tree.",
        "HyperNodes leaf-1, leaf-2 share Node n1, but do not lie one above the other",
        "Let each node be a member of one HyperNode only.",
    ),
    "HyperNodeTierOrder": Code(
        "A HyperNode's tier is not above that of its members; it and all above it are left out of the tree.",
        "HyperNode s0 has tier 1, which is not above that of its members leaf-1 (tier 1)",
        "Raise the tier of the parent, or lower that of its members.",
    ),
    "HyperNodeTwoParents": Code(
        "A HyperNode is a member of two others; it and all above it are left out of the tree.",
        "HyperNode leaf-1 is a member of 2 parents: HyperNodes s0, s1",
        "Take it out of one of them.",
    ),
    "InvalidObject": Code(
        "The API server, or a webhook of Volcano, refuses the object as it is written; offline it is placed.",
        "container main of Pod ml/train-0 and 3 others requests cpu 500m, above its limit 250m; the API server refuses "
        "such a pod",
        "Correct the field that the message names: in a cluster the object cannot be created.",
    ),
    "LabelInTwoDomains": Code(
        "Discovery: nodes with one value of a label differ in a wider label, so that the value names several domains.",
        "label rack=r1 names 2 domains, one for each of row=a: Node n1 and 15 others; row=b: Node n40",
        "Nothing, where racks of two rows may have one name; else correct the labels of the nodes that are elsewhere.",
    ),
    "LinkOneWay": Code(
        "A NetworkTopology gives the cost between two areas in one direction only; the other one is unknown, and "
        "costs 100.",
        "NetworkTopology default/nt: zone z1 -> z2: given in one direction only, so that the other one costs 100",
        "Add the entry for the other direction.",
    ),
    "LinkTwice": Code(
        "A NetworkTopology gives two costs for one link; the later one counts.",
        "NetworkTopology default/nt: the zone link z1 -> z2 has two costs, the later one counts",
        "Remove one of the entries.",
    ),
    "MarksDisagree": Code(
        "Pods of one gang state different minimums of it in their labels or annotations; the largest counts.",
        "pods of PodGroup ml/train state gang.scheduling.koordinator.sh/min-available 4 (Pod ml/train-0) and 3 (Pod "
        "ml/train-1), expected one number: the largest counts",
        "State the same number on all pods of the gang.",
    ),
    "MaxNetworkCostAbsent": Code(
        "A dependency says no `maxNetworkCost`, which counts as 0.",
        "AppGroup default/shop: maxNetworkCost of web -> db is left out and counts as 0: on one node or in one zone",
        "Set `maxNetworkCost`.",
    ),
    "NameTaken": Code(
        "A workload is expanded into pods, and the name of one belongs to a pod of another owner: that one is not "
        "made.",
        "1 of its pods cannot be made: the name db-0 belongs to a pod of another",
        "Rename the workload, or remove the pod.",
    ),
    "NetperfKey": Code(
        "A key of a netperf ConfigMap begins like that of a measurement, but is not one.",
        "ConfigMap default/netperf: netperf.p90.n1: no key of a measurement that is known, so not used",
        "Correct the key, or remove it.",
    ),
    "NetperfListDiffers": Code(
        "The Policy chooses measured costs, and the list of that name in the NetworkTopology says something else than "
        "the measurements in its ConfigMap: these count.",
        "NetworkTopology default/nt: its list NetperfCosts differs from its ConfigMap, which counts",
        "Write the list again, or remove it; or give it another name and choose that in the Policy.",
    ),
    "NetperfNode": Code(
        "A measurement in a netperf ConfigMap names a node that is not there.",
        "ConfigMap default/netperf: netperf.p90.latency.milliseconds.origin.n1.destination.gone: not two nodes that "
        "are there, so not used",
        "Measure again, or give the missing node too.",
    ),
    "NetperfPercentile": Code(
        "A netperf ConfigMap has measurements, but none of the percentile that is asked for.",
        "ConfigMap default/netperf has no measurement of p90, but of p50, p99",
        "Ask for a percentile that is there, or measure the one that is asked for.",
    ),
    "NetperfValue": Code(
        "A measurement in a netperf ConfigMap is no number of at least 0.",
        "ConfigMap default/netperf: netperf.p90.latency.milliseconds.origin.n1.destination.n2 = 'NaN': no number of at "
        "least 0, so not used",
        "Correct the value, or measure again.",
    ),
    "NetworkTopologyAmbiguous": Code(
        "There are several NetworkTopologies, and no Policy says which one counts: the first by name does.",
        "NetworkTopology a/nt counts, the first by name of a/nt, b/nt: no Policy says which",
        "Name one in the Policy (`network: {topology: NAMESPACE/NAME}`).",
    ),
    "NetworkTopologyEmpty": Code(
        "The NetworkTopology has no list of costs, so that every cost between areas is unknown.",
        "NetworkTopology default/nt has no lists (spec.weights): every link costs 100 and none has a capacity",
        "Add `spec.weights`, or have the topology controller measure them.",
    ),
    "NoHyperNodes": Code(
        "Groups have tier limits, and there is no HyperNode: all nodes are one domain.",
        "there is no HyperNode: for the tier limit of PodGroup ml/train all nodes are one domain of tier 1",
        "Give the cluster's HyperNodes too, or name the node labels of the tree in the Policy (`topologyKeys`).",
    ),
    "NoMember": Code(
        "A static pod or one of a DaemonSet names a gang. It is no member and ties the gang to no node: whoever has a "
        "node's credentials can make such a pod in any namespace.",
        "PodGroup ml/train is named by Pod ml/agent-n1 and 3 others: found static or DaemonSet pods, which are no "
        "members; expected pods that can run on other nodes",
        "Take the name of the gang off these pods; a static pod that nobody knows of is a sign of a stolen node.",
    ),
    "NoNetworkTopology": Code(
        "AppGroups have dependencies, and there is no NetworkTopology: costs and bandwidth decide nothing.",
        "there is no NetworkTopology, so C8, C9 and O3 do not apply to AppGroup default/shop",
        "Give the cluster's NetworkTopology too.",
    ),
    "NodeNotInFabric": Code(
        "Discovery: nodes of the cluster are no hosts of the fabric that is described, and are in no domain.",
        "Node cpu-1 and 3 others: no host of fabric.txt, so in no domain",
        "Nothing, where they are not on this network; else describe the fabric again.",
    ),
    "NodeWithoutLabel": Code(
        "Discovery: nodes lack a label that domains are made of; they are in the nearest domain whose label they have.",
        "Node n7 and 2 others, 3 of 200 nodes, with no label rack: that tier is skipped",
        "Label the nodes, or leave them where they are.",
    ),
    "NodeWithoutRegion": Code(
        "Nodes have no region label: each is a place of its own, far from all others.",
        "Node n1 and 2 others: without the label topology.kubernetes.io/region, each a place of its own that costs 100 "
        "from anywhere",
        "Label the nodes.",
    ),
    "NodeWithoutZone": Code(
        "Nodes of one region have no zone label: together they count as one zone.",
        "Node n1: without the label topology.kubernetes.io/zone, taken together as one zone of region eu",
        "Label the nodes.",
    ),
    "NumMembers": Code(
        "An AppGroup's `numMembers` is not the number of its pods; it decides nothing.",
        "AppGroup default/shop: numMembers is 10, there are 9 pods",
        "Correct the number, or wait for the pods that are missing.",
    ),
    "NumaZones": Code(
        "Something in a NodeResourceTopology cannot be used as it is written.",
        "NodeResourceTopology n1: zone node-0 lists no cpu",
        "Correct the field in the message; the exporter that writes these objects may need an update.",
    ),
    "NumaZonesDiffer": Code(
        "A Placement names NUMA zones that are not those which the kubelet will choose (`verify` says so).",
        "numaZones: found node-0, expected node-1, which the kubelet of Node n1 chooses",
        "Leave `numaZones` out, or state those that are expected: the kubelet chooses, whatever a Placement says.",
    ),
    "PartitionMismatch": Code(
        "The partitions of a task of a Volcano Job do not come out at its number of replicas, or the subgroups of a "
        "LeaderWorkerSet at its size.",
        "task worker has 7 replicas, but 2 partitions of 4 are 8; Volcano refuses such a job",
        "Correct `replicas` or `partitionPolicy`, `size` or `subGroupSize`.",
    ),
    "PlacementOfOtherInput": Code(
        "A Placement was made for other input than the files it is read with, so its bounds and reasons are of "
        "another instance.",
        "best.json: the Placement was made for other input than this; its bounds are dropped, its reasons recomputed",
        "Pass the files that it was made from, in the same order, or solve again.",
    ),
    "PodWithoutWorkload": Code(
        "A pod is in an AppGroup, and nothing says of which workload: no dependency concerns it.",
        "AppGroup default/shop: neither the label appgroup.diktyo.x-k8s.io.workload nor the owner of Pod "
        "default/web-0 says which workload it is of, so that it has no dependencies",
        "Add the label to the pod template, or list the workload in the AppGroup.",
    ),
    "PodsOfSeveralPriorities": Code(
        "Pods of one group state different priorities. While the group waits, the lowest counts; for its running pods "
        "the highest counts. No error under `--strict`.",
        "pods of PodGroup ml/train state priorities from 0 (Pod ml/train-3) to 100 (Pod ml/train-0); it waits with 0",
        "Give all pods of the group one PriorityClass.",
    ),
    "PolicyMatchesNothing": Code(
        "A `subGroupPolicy` has no `matchLabelKeys` and so takes no pod.",
        "spec.subGroupPolicy[0] (worker) of PodGroup ml/train has no matchLabelKeys and takes no pod",
        "Name the label that divides pods into subgroups.",
    ),
    "PreferenceIgnored": Code(
        "A preference (preferred affinity, `ScheduleAnyway`, a `PreferNoSchedule` taint) decides nothing.",
        "preferred affinity of Pod default/web-0 and 2 others decides nothing",
        "Nothing, if the preference may be missed; else make it a requirement.",
    ),
    "PriorityAboveItsPods": Code(
        "A PodGroup names a higher priority than its least urgent pod states, which decides: a quota on priority "
        "classes sees pods, and no PodGroup. No error under `--strict`.",
        "spec.priorityClassName high of PodGroup ml/train is 1000, and Pod ml/train-0 states 0, which counts: expected "
        "at most 0",
        "Name the class in the pod template, too; where controllers alone write PodGroups, set `groupPriority: class` "
        "in the Policy.",
    ),
    "ProtectionCosts": Code(
        "More pods are evicted, or fewer fit, than without the protection of running pods.",
        'default/b is not admitted since Pod default/a-0 is protected by volcano.sh/preemptable: "false"',
        "Nothing, or take the mark away (of a Queue: `reclaimable: false`) where the work may be disturbed after all.",
    ),
    "QueueCycle": Code(
        "Queues are each other's parents; the capability of each counts once.",
        "queues a, b are each other's parents; the capability of each binds once",
        "Correct `spec.parent` of one of them.",
    ),
    "QueueNamespaces": Code(
        "A Queue says by its annotation `placer.dev/namespaces` whose pods it takes, and a word of it is no name of a "
        "namespace; that word lets nobody in.",
        "annotation placer.dev/namespaces of Queue research: found 'ml;web', expected names of namespaces with commas; "
        "the queue takes no new pods by it",
        "Write the names of namespaces with commas between them: `ml,web`.",
    ),
    "QueueShareIgnored": Code(
        "Queues with pending pods have a `weight`, `guarantee`, `deserved` or `priority`, or others a `guarantee`: "
        "placer does not share by these yet.",
        "weight and deserved of Queue research and 2 others decide nothing yet: priority of pods and capability do",
        "Give the pods priorities, or the queues a `capability`, which limits their running pods.",
    ),
    "RegionAndZone": Code(
        "A region and a zone have one name; placer distinguishes them, the NetworkOverhead plug-in does not.",
        "NetworkTopology default/nt: eu is a region and a zone; the NetworkOverhead plugin mixes up their costs",
        "Rename one of them where that plug-in runs too.",
    ),
    "SeveralApiGroups": Code(
        "An AppGroup or NetworkTopology is there under several API groups; one of them counts.",
        "AppGroup default/shop is there under the API groups appgroup.diktyo.x-k8s.io, which counts, and "
        "scheduling.sigs.x-k8s.io, which is not read",
        "Remove the one that does not count.",
    ),
    "SolverDied": Code(
        "The process in which the solver ran ended before its time; the last answer it had is kept, and verified.",
        "The search ended with signal 9; its last answer is kept.",
        "Signal 9 mostly means that memory ran out: give it more, or use `--method greedy`.",
    ),
    "SortingAlgorithmUnknown": Code(
        "An AppGroup names an unknown `topologySortingAlgorithm`; the default is used.",
        "AppGroup default/shop: topologySortingAlgorithm: found 'Kahn', expected one of KahnSort, TarjanSort, "
        "ReverseKahn, ReverseTarjan, AlternateKahn, AlternateTarjan; KahnSort is used",
        "Name one of those in the message.",
    ),
    "TierNameAmbiguous": Code(
        "One `tierName` stands on HyperNodes of two tiers: a limit that names it admits nothing.",
        "tierName rack stands on 2 tiers: 1 (HyperNode leaf-1), 2 (HyperNode s0)",
        "Give each tier a name of its own, or limit by number.",
    ),
    "TierNameUnknown": Code(
        "A limit names a `tierName` that no HyperNode has, and so admits nothing.",
        "PodGroup ml/train names tierName rak, which no HyperNode has: it admits nothing",
        "Correct the name.",
    ),
    "TopologyKeyUnknown": Code(
        "A NetworkTopology gives costs for a label that is neither that of zones nor that of regions: they are unused.",
        "NetworkTopology default/nt: topologyKey rack is neither topology.kubernetes.io/zone nor "
        "topology.kubernetes.io/region, its costs are unused",
        "Correct the key.",
    ),
    "TwoGroups": Code(
        "A pod names PodGroups of several APIs, or gangs by marks of several systems. It counts for the one that its "
        "scheduler would read, an object before a mark, else for the first in the order of `docs/marks.md`.",
        "PodGroup train of scheduling.volcano.sh and train of scheduling.x-k8s.io are named by Pod ml/train-0 and 3 "
        "others, expected one; the first counts",
        "Remove all but one.",
    ),
    "UnknownField": Code(
        "An object has a field that no object of its kind has, or a kind that is like one that is read: it decides "
        "nothing. A field is reported once, with the first object that has it. The known fields are in "
        "`placer/kube/fields.json`; a newer Kubernetes may have others.",
        "spec.minMembr is no field of scheduling.volcano.sh/v1beta1 PodGroup and decides nothing, here and in 2 more; "
        "found like it: spec.minMember",
        "Write the field, or the kind, as its definition spells it.",
    ),
    "UnknownReference": Code(
        "An object names another one that is not in the instance; the reference has no effect.",
        "PriorityClass high, named by Pod ml/train-0 and 3 others, is not in the instance",
        "Correct the name, or give the missing object too.",
    ),
    "Unreadable": Code(
        "An object of a cluster, or read with `--lenient`, has an unreadable field or version, or its kind (`*`: all "
        "objects) is not served. Its dependents wait, all others are placed. A node is not used if its free room is "
        "unknown.",
        "PodGroup ml/train cannot be read, and its dependents wait: spec.minResources.cpu: found '1e30', expected "
        "a quantity below 2^63",
        "Correct the field that the message names; install the definition of the kind in the version that it names.",
    ),
    "UnsupportedKind": Code(
        "A kind or a mark is not read. Pods that an unread kind makes are placed one by one, though they may be a "
        "gang; missing ones take no room. If an unread object or mark declares the gang, or adds to it, its pods wait "
        "as Unsupported.",
        "PyTorchJob.kubeflow.org is not read, so Pod ml/train-0 and 3 others count as pods by themselves and not as a "
        "gang of it",
        "If they must start together, put them into a PodGroup. If the pods are missing in the input, add them as "
        "`kubectl get pods` prints them.",
    ),
    "WorkloadTwice": Code(
        "An AppGroup lists one workload twice; its dependencies are taken together.",
        "AppGroup default/shop lists workload web more than once; its dependencies are taken together",
        "Merge the two entries.",
    ),
    "ZoneInTwoRegions": Code(
        "A zone name is used in two regions, and links of it have a capacity: both regions share that.",
        "NetworkTopology default/nt: zone a is in regions eu and us, which share the capacity of its links",
        "Give zones names that are unique in the cluster.",
    ),
}

ConditionReason = Literal["Unschedulable", "SchedulerError", "SchedulingGated"]
EventReason = Literal[
    "Scheduled",
    "Released",
    "FailedScheduling",
    "HalfBound",
    "RolledBack",
    "NodeOverfull",
    "Preempted",
    "Defragmented",
    "NodeLost",
]
