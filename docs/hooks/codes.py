"""Every code that placer says: meaning, a message as an example, and what to do.

Reasons and findings are in ``placer.base.codes``; of what a pass writes into a cluster only this page says more.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from placer.base.codes import FINDINGS, REASONS, Code, ConditionReason, EventReason

__all__ = ["CONDITIONS", "EVENTS", "PARTS"]

#: Reasons of the condition ``PodScheduled=False`` of a pod.
CONDITIONS: Mapping[ConditionReason, Code] = {
    "Unschedulable": Code(
        "The pod remains pending; the message begins with one of the reasons above. Autoscalers look for this one. "
        "Objects of other Namespaces appear as a number and a priority; `placer explain` names them.",
        "InsufficientResources: 0/2 nodes have room for a pod of nvidia.com/gpu 8: 2 insufficient nvidia.com/gpu",
        "As for the reason at the beginning of the message.",
    ),
    "SchedulerError": Code(
        "The pod had a place in the plan, but its binding failed; the next pass tries again.",
        "half-bound: 5 of 6 run since 12:00:00 UTC, rolled back at 12:05:00 UTC unless it is complete; Pod ml/train-0: "
        "the kubelet of Node n1 rejected it (TopologyAffinityError)",
        "Nothing, if it is gone at the next pass. If it comes again, check the node in the message, or who else "
        "changes these pods.",
    ),
    "SchedulingGated": Code(
        "The pod has the gate `placer.dev/hold` and keeps it (`--enforce gates`); the message gives the reason, as in "
        "the two above. The API server gives the same reason to every pod that is made with a gate.",
        "InsufficientResources: 0/2 nodes have room for a pod of nvidia.com/gpu 8: 2 insufficient nvidia.com/gpu",
        "As for the reason at the beginning of the message.",
    ),
}

#: Reasons of Events: of a PodGroup, of a pod that is in none, of a node.
EVENTS: Mapping[EventReason, Code] = {
    "Scheduled": Code("A gang was bound.", "Successfully assigned 4 pods to 2 nodes", "Nothing."),
    "Released": Code(
        "Pods with the gate `placer.dev/hold` were released for their nodes (`--enforce gates`).",
        "Released 4 pods for 2 nodes, where their scheduler binds them",
        "Nothing, if their scheduler binds them. If not, its own Events say why; pods still unbound after "
        "`--half-bound-patience` are deleted, and their controller makes them again.",
    ),
    "FailedScheduling": Code(
        "A gang waits for another reason than before; one Event for the whole gang.",
        "TopologyTooNarrow: needs 4 pods (nvidia.com/gpu 8 each) in one HyperNode of tier <= 1; the roomiest "
        "(leaf-1, tier 1) has room for 2, 2 too few",
        "As for the reason at the beginning of the message.",
    ),
    "HalfBound": Code(
        "Some pods of a gang were bound and others could not be; `placer run` exits with 6.",
        "3 of 4 planned pods are bound; the next pass completes it first",
        "Nothing, if the next pass completes it; else free the resources that the summary of the pass names. After "
        "`--half-bound-patience` it is rolled back.",
    ),
    "RolledBack": Code(
        "A gang was half-bound for longer than `--half-bound-patience`, or at all with `--roll-back`. The pods that "
        "placer bound were deleted, and it is not tried again for a while.",
        "it could not be completed; its pods are deleted: rolled back 1 times, tried again at 12:01:00 UTC",
        "Find the reason that kept it incomplete; the pods' controller makes them again. Bare pods are gone.",
    ),
    "NodeOverfull": Code(
        "Pods bound to a node request more than it has, because another client bound pods there meanwhile.",
        "pods request too much: Node n1: cpu 9 of 8",
        "Give placer nodes of its own, or delete one of the pods that were bound there last.",
    ),
    "Preempted": Code(
        "The pod was evicted so that a waiting group is admitted, by `placer preempt --apply` or the Policy. Its "
        "replacement waits, or goes to the node in the Event. A group of another Namespace appears as priority, "
        "number of pods and the uid of one.",
        "evicted from Node n1 so that PodGroup ml/train is admitted",
        "Nothing; where it must not go, protect it (`placer.dev/disrupt: never`, or a PodDisruptionBudget).",
    ),
    "Defragmented": Code(
        "The pod was evicted by `placer defrag --apply`, so that there is room or a domain is empty, or by `placer "
        "repair --apply`, so that there is room for pods of lost nodes. Its replacement goes to the node in the Event.",
        "evicted from Node n1 to be placed on Node n5 so that HyperNode rack-3 is empty",
        "Nothing; where it must not go, protect it (`placer.dev/disrupt: never`, or a PodDisruptionBudget).",
    ),
    "NodeLost": Code(
        "The pod ran on a lost node, and was evicted by `placer repair --apply` so that its controller makes another "
        "one.",
        "evicted from Node n1, which is lost, to be placed on Node n5",
        "Nothing; where no other pod comes, look at its controller: some wait until the lost one is gone for good.",
    ),
}


def _as_markdown(codes: Mapping[str, Code]) -> str:
    """An index of the codes, and a section for each."""
    index = ", ".join(f"[{name}](#{name.lower()})" for name in codes)
    sections = [
        f"### {name}\n\n{code.meaning}\n\n```\n{code.example}\n```\n\n**What to do:** {code.remedy}"
        for name, code in codes.items()
    ]
    return "\n\n".join([index, *sections])


#: A part of the page of codes for each catalogue.
PARTS: Mapping[str, Callable[[], str]] = {
    "reasons": partial(_as_markdown, REASONS),
    "findings": partial(_as_markdown, FINDINGS),
    "conditions": partial(_as_markdown, CONDITIONS),
    "events": partial(_as_markdown, EVENTS),
}
