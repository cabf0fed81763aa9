"""What ``placer run`` writes into a cluster: reasons of conditions and of Events."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from placer.codes.code import Code

__all__ = ["CONDITIONS", "EVENTS", "ConditionReason", "EventReason"]

ConditionReason = Literal["Unschedulable", "SchedulerError"]
EventReason = Literal["Scheduled", "FailedScheduling", "HalfBound", "RolledBack", "NodeOverfull"]

#: Reasons of the condition ``PodScheduled=False`` of a pod.
CONDITIONS: Mapping[ConditionReason, Code] = {
    "Unschedulable": Code(
        "The pod stays pending; the message begins with one of the reasons above. Autoscalers look for this one.",
        "InsufficientResources: 0/2 nodes have room for a pod of nvidia.com/gpu 8: 2 insufficient nvidia.com/gpu",
        "What the reason at the beginning of the message says.",
    ),
    "SchedulerError": Code(
        "The pod had a place in the plan, and something went wrong before it was bound; the next pass tries again.",
        "left for the next pass: Pod ml/train-0: the kubelet of Node n1 rejected it (TopologyAffinityError)",
        "Nothing, where it is gone at the next pass. Where it comes again, look at what the message names: the node, "
        "or who else changes these pods.",
    ),
}

#: Reasons of Events: of a PodGroup, of a pod that is in none, of a node.
EVENTS: Mapping[EventReason, Code] = {
    "Scheduled": Code("A gang was bound.", "Successfully assigned 4 pods to 2 nodes", "Nothing."),
    "FailedScheduling": Code(
        "A gang waits for another reason than before; one Event for the whole gang.",
        "TopologyTooNarrow: needs 4 pods (of 4 x nvidia.com/gpu 8) in one HyperNode of tier <= 1; the roomiest "
        "(leaf-1, tier 1) has room for 2, 2 too few",
        "What the reason at the beginning of the message says.",
    ),
    "HalfBound": Code(
        "Some pods of a gang were bound and others could not be; `placer run` exits with 6.",
        "3 of 4 planned pods are bound; the next pass completes it first",
        "Nothing, where the next pass completes it; else free what the summary of the pass names, or use "
        "`--roll-back`.",
    ),
    "RolledBack": Code(
        "A gang could not be completed, and its new pods were deleted (`--roll-back`), so that their controller makes "
        "new ones.",
        "it could not be completed; its new pods are deleted",
        "Look at the summary of the pass for why pods of it could not be bound.",
    ),
    "NodeOverfull": Code(
        "Pods bound to a node request more than it has, because somebody else bound pods there meanwhile.",
        "pods request too much: Node n1: cpu 9 of 8",
        "Give placer nodes of its own, or delete one of the pods that were bound there last.",
    ),
}
