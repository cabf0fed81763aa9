"""Findings about what nobody reads or nothing can bind to: unknown owners, preferences, limits without a tree."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from placer.instance.findings import Findings, counted
from placer.instance.group import Group
from placer.instance.model import Instance
from placer.instance.owners import controller
from placer.kube.core import NodeManifest
from placer.kube.pod import PodManifest
from placer.kube.policy import PolicyManifest
from placer.kube.volcano import QueueManifest, QueueSpec

if TYPE_CHECKING:
    from placer.manifests import Objects

__all__ = [
    "note_disruption",
    "note_limits_without_tree",
    "note_pods_not_made",
    "note_preferences",
    "note_queue_shares",
    "note_unread_owners",
]

#: (API group, kind) of owners whose pods are no gang, or whose gang placer reads.
_READ_OWNERS = frozenset(
    {
        ("", "Node"),
        ("", "ReplicationController"),
        ("apps", "DaemonSet"),
        ("apps", "Deployment"),
        ("apps", "ReplicaSet"),
        ("apps", "StatefulSet"),
        ("batch", "CronJob"),
        ("batch", "Job"),
        ("batch.volcano.sh", "Job"),
    }
)
#: (API group, kind) of workloads that are not read, and whose pods would have to be there.
_NOT_MADE = frozenset(
    {
        ("", "ReplicationController"),
        ("apps", "DaemonSet"),
        ("jobset.x-k8s.io", "JobSet"),
        ("leaderworkerset.x-k8s.io", "LeaderWorkerSet"),
    }
)
#: Fields of a Queue that say what it is given beside others.
_SHARES = ("weight", "guarantee", "deserved")
#: Labels that tell of an owner above the pod's own one.
_GANG_LABELS = {"jobset.sigs.k8s.io/jobset-name": "JobSet", "leaderworkerset.sigs.k8s.io/name": "LeaderWorkerSet"}


def note_unread_owners(pods: Iterable[PodManifest], findings: Findings) -> None:
    """Note, once per kind, owners and gangs of kinds that are not read: their pods are placed one by one.

    Parameters
    ----------
    pods
        Pending pods that are in no PodGroup, neither one that is read nor one of ``scheduling.k8s.io``.
    findings
        Takes the findings.
    """
    found: dict[str, set[str]] = {}
    for pod in pods:
        for kind in _unread(pod):
            found.setdefault(kind, set()).add(f"Pod {pod.namespace}/{pod.name}")
    for kind, subjects in found.items():
        message = f"{kind} is not read, so {counted(subjects)} count as pods by themselves and not as a gang of it"
        findings.add("UnsupportedKind", kind, message)


def note_pods_not_made(objects: Objects, findings: Findings, *, cluster: bool) -> None:
    """Note, once per kind, workloads that no pod is made of offline and of which none is there: they take no room.

    Parameters
    ----------
    objects
        All objects, those of kinds that are not read among them.
    findings
        Takes the findings.
    cluster
        The objects are those of a live cluster, where the pods that count are there: nothing is noted.
    """
    found: dict[str, set[str]] = {}
    for kind, workload in () if cluster else _not_made(objects):
        found.setdefault(kind, set()).add(workload)
    present = set(filter(None, map(_made_by, objects.pods))) if found else set()
    for kind, workloads in found.items():
        if workloads - present:
            what = f"no pod of {counted(workloads - present)} is in the instance"
            message = f"{kind} is not expanded, and {what}: its pods take no room and are not placed"
            findings.add("UnsupportedKind", kind, message)


def _not_made(objects: Objects) -> Iterator[tuple[str, str]]:
    """Kind and name of each workload of which no pods are made offline."""
    for group, kind, namespace, name in objects.skipped_names:
        if (group, kind) in _NOT_MADE:
            yield (f"{kind}.{group}" if group else kind), f"{kind} {namespace or 'default'}/{name}"
    for each in objects.replica_sets:
        if controller(each.metadata) is None:
            yield "ReplicaSet.apps", f"ReplicaSet {each.namespace}/{each.name}"


def _made_by(pod: PodManifest) -> str | None:
    """The workload that made a pod, as far as it is of a kind of which no pods are made offline."""
    for label, kind in _GANG_LABELS.items():
        name = (pod.metadata.labels or {}).get(label)
        if name is not None:
            return f"{kind} {pod.namespace}/{name}"
    owner = controller(pod.metadata)
    return None if owner is None else f"{owner.kind} {pod.namespace}/{owner.name}"


def note_preferences(pods: Sequence[PodManifest], nodes: Iterable[NodeManifest], findings: Findings) -> None:
    """Note, once per kind, preferences that decide nothing yet.

    Parameters
    ----------
    pods
        The pending pods.
    nodes
        The nodes; their PreferNoSchedule taints matter where a pod is pending.
    findings
        Takes the findings.
    """
    found: dict[str, set[str]] = {}
    for pod in pods:
        for kind in _preferences(pod):
            found.setdefault(kind, set()).add(f"Pod {pod.namespace}/{pod.name}")
    for node in nodes if pods else ():
        taints = (node.spec.taints if node.spec is not None else None) or ()
        if any(taint.effect == "PreferNoSchedule" for taint in taints):
            found.setdefault("PreferNoSchedule", set()).add(f"Node {node.name}")
    for kind, subjects in found.items():
        findings.add("PreferenceIgnored", min(subjects), f"{kind} of {counted(subjects)} decides nothing")


def note_queue_shares(instance: Instance, queues: Iterable[QueueManifest], findings: Findings) -> None:
    """Note, once, what queues with pending pods are given beside each other, where it differs: it decides nothing yet.

    Parameters
    ----------
    instance
        Its pending pods say which queues count.
    queues
        The Queue objects.
    findings
        Takes the finding.
    """
    asked = {pod.queue for pod in instance.pending}
    shares = {f"Queue {each.name}": _shares(each.spec or QueueSpec()) for each in queues if each.name in asked}
    differing = [field for field in _SHARES if len({share[field] for share in shares.values()}) > 1]
    if differing:
        which = f"{' and '.join(differing)} of {counted(set(shares))}"
        message = f"{which} differ and decide nothing yet: priority and capability do"
        findings.add("QueueShareIgnored", min(shares), message)


def _shares(spec: QueueSpec) -> dict[str, object]:
    """What a queue is given, in a form that compares: nothing written is nothing given."""
    guaranteed = (spec.guarantee.resource if spec.guarantee is not None else None) or {}
    amounts = {"guarantee": guaranteed, "deserved": spec.deserved or {}}
    given = {field: frozenset(pair for pair in each.items() if pair[1]) for field, each in amounts.items()}
    return {"weight": spec.weight or 1, **given}


def note_disruption(policies: Sequence[PolicyManifest], findings: Findings) -> None:
    """Note that a Policy allows what is not done yet; what it protects is left alone in any case.

    Parameters
    ----------
    policies
        The Policy, or none.
    findings
        Takes the finding.
    """
    for policy in policies:
        allowed = policy.spec.disruption if policy.spec is not None else None
        given = {"evict": allowed.evict, "move": allowed.move} if allowed is not None else {}
        said = [f"disruption.{field} {value}" for field, value in given.items() if value not in (None, "none")]
        if said:
            subject = f"Policy {policy.name}"
            message = f"{' and '.join(said)} of {subject} decides nothing yet: nothing that runs is disturbed"
            findings.add("DisruptionIgnored", subject, message)


def note_limits_without_tree(instance: Instance, findings: Findings) -> None:
    """Note that groups have tier limits although there is no domain but the whole cluster."""
    limited = {str(group.key) for group in instance.groups.values() if _has_limit(group)}
    if limited and not instance.topology.hyper_nodes:
        cluster = f"all nodes are one domain of tier {instance.topology.root_tier}"
        message = f"there is no HyperNode: for the tier limit of {counted(limited)} {cluster}"
        findings.add("NoHyperNodes", min(limited), message)


def _has_limit(group: Group) -> bool:
    topologies = (group.topology, *(policy.topology for policy in group.policies))
    return any(topology is not None and topology.limit is not None for topology in topologies)


def _unread(pod: PodManifest) -> Iterator[str]:
    labels = pod.metadata.labels or {}
    yield from (kind for label, kind in _GANG_LABELS.items() if label in labels)
    owner = controller(pod.metadata)
    if owner is not None:
        group = owner.api_version.rpartition("/")[0]
        if (group, owner.kind) not in _READ_OWNERS:
            yield f"{owner.kind}.{group}" if group else owner.kind


def _preferences(pod: PodManifest) -> Iterator[str]:
    affinity = pod.spec.affinity
    if affinity is not None:
        parts = (affinity.node_affinity, affinity.pod_affinity, affinity.pod_anti_affinity)
        if any(part is not None and part.preferred for part in parts):
            yield "preferred affinity"
    if any(each.when_unsatisfiable == "ScheduleAnyway" for each in pod.spec.topology_spread_constraints or ()):
        yield "ScheduleAnyway"
