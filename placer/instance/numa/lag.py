"""What a NodeResourceTopology cannot know yet: pods that were bound after it was written (C10).

Exporters write the object some time after a pod has got its zones, seconds or a minute. Where it carries a fingerprint
of the pods that it counts, the pods beyond it are those without which the fingerprint is right, the last ones bound;
where it says when it was written, those bound later. Such pods are let in here as the kubelet did, in the order in
which they were bound. An object that carries neither is believed.

A fingerprint is a hash, so only likely sets can be tried: all pods on the node, and all but the last one, two, ... up
to :data:`MOST_BEYOND`. It may count every pod or only those that hold zones, and may count pods that have ended.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from placer.instance.findings import Findings
from placer.instance.numa.demand import DemandPool
from placer.instance.numa.fingerprint import PREFIX, pod_hash, sign
from placer.instance.numa.kubelet import Kubelet, kubelets_of
from placer.instance.numa.model import UNKNOWN, NumaDemand, NumaNode, Qos, Stage, is_device
from placer.instance.numa.read import CODE
from placer.kube.numa import NodeResourceTopologyManifest
from placer.kube.pod import PodManifest

__all__ = ["UPDATED", "caught_up"]

#: A snapshot drops managedFields and keeps the time of the last write in this annotation.
UPDATED = "placer.dev/updated"

_ATTRIBUTE = "nodeTopologyPodsFingerprint"
_METHOD = "nodeTopologyPodsFingerprintMethod"
_ANNOTATION = "topology.node.k8s.io/fingerprint"
_ALL, _EXCLUSIVE = "all", "with-exclusive-resources"
_ENDED = ("Succeeded", "Failed")
#: Of so many pods at most, the last ones bound, it is tried whether a fingerprint is without them.
MOST_BEYOND = 40


@dataclass(frozen=True, slots=True)
class _Bound:
    """A pod with a node; ``at`` is when it was bound, in seconds, None where it does not say."""

    namespace: str
    name: str
    at: float | None
    created: float
    demand: NumaDemand | None

    @property
    def age(self) -> tuple[float, float, str, str]:
        """Sorts pods by when they were bound."""
        return (self.at or 0.0, self.created, self.namespace, self.name)

    def holds_zones(self, lists: frozenset[str]) -> bool:
        """Whether exporters see it hold something of a zone once it runs."""
        if self.demand is None:
            return False
        staying = [each for each in self.demand.containers if each.stage is not Stage.INIT]
        devices = any(is_device(name) and name in lists for each in staying for name in each.requests)
        return devices or self.demand.qos is Qos.GUARANTEED


def caught_up(
    numa: Mapping[str, NumaNode],
    written: Iterable[NodeResourceTopologyManifest],
    pods: Iterable[PodManifest],
    demands: DemandPool,
    findings: Findings,
) -> dict[str, NumaNode]:
    """Bring ``available`` of every node up to date.

    Parameters
    ----------
    numa
        The nodes as the objects state them.
    written
        The objects.
    pods
        All pods; those with a node are looked at.
    demands
        Reads what a pod asks of zones.
    findings
        Takes fingerprints that match nothing, and bound pods that the kubelet would refuse.

    Returns
    -------
    dict[str, NumaNode]
        By name of the node.
    """
    aligning = {name: node for name, node in numa.items() if node.policy not in ("none", UNKNOWN) and node.zones}
    standing, ended = _by_node(pods, aligning, demands)
    kubelets = kubelets_of(aligning)
    items = {item.name: item for item in written}
    found = dict(numa)
    for name, node in aligning.items():
        if standing[name]:
            unknown = _unknown(items[name], node, standing[name], ended[name], findings)
            found[name] = _without(node, name, kubelets[name], unknown, findings)
    return found


def _by_node(
    pods: Iterable[PodManifest], nodes: Mapping[str, NumaNode], demands: DemandPool
) -> tuple[dict[str, list[_Bound]], dict[str, list[_Bound]]]:
    """Pods that hold room on each node, oldest first, and those that have ended there."""
    standing: dict[str, list[_Bound]] = defaultdict(list)
    ended: dict[str, list[_Bound]] = defaultdict(list)
    for pod in pods:
        node = pod.spec.node_name
        if node in nodes and node is not None:
            over = pod.status is not None and pod.status.phase in _ENDED
            (ended if over else standing)[node].append(_bound(pod, demands))
    for members in standing.values():
        members.sort(key=lambda each: each.age)
    return standing, ended


def _bound(pod: PodManifest, demands: DemandPool) -> _Bound:
    times = []
    if pod.status is not None:
        scheduled = [
            each for each in pod.status.conditions or () if each.type == "PodScheduled" and each.status == "True"
        ]
        times = [each.last_transition_time for each in scheduled] + [pod.status.start_time]
    moments = [time.timestamp() for time in (*times, pod.metadata.creation_timestamp) if time is not None]
    created = pod.metadata.creation_timestamp
    return _Bound(
        pod.namespace,
        pod.name,
        moments[0] if moments else None,
        created.timestamp() if created is not None else 0.0,
        demands.of(pod.spec),
    )


def _unknown(
    item: NodeResourceTopologyManifest,
    node: NumaNode,
    standing: Sequence[_Bound],
    ended: Sequence[_Bound],
    findings: Findings,
) -> list[_Bound]:
    """Pods that the object does not count, oldest first."""
    attributes = {each.name: each.value for each in item.attributes or ()}
    fingerprint = attributes.get(_ATTRIBUTE) or (item.metadata.annotations or {}).get(_ANNOTATION)
    if fingerprint:
        beyond = _beyond(fingerprint, attributes.get(_METHOD), node, standing, ended)
        if beyond is not None:
            return beyond
        message = f"its pod fingerprint {fingerprint} is not that of the pods on the node, nor of those bound earlier"
        subject = f"NodeResourceTopology {item.name}"
        findings.add(CODE, subject, f"{subject}: {message}")
    times = [each.time.timestamp() for each in item.metadata.managed_fields or () if each.time is not None]
    times += _updated(item, findings)
    return [pod for pod in standing if times and pod.at is not None and pod.at > max(times)]


def _updated(item: NodeResourceTopologyManifest, findings: Findings) -> list[float]:
    """When the object was last written, as a snapshot says it."""
    written = (item.metadata.annotations or {}).get(UPDATED)
    if written is None:
        return []
    try:
        moment = datetime.fromisoformat(written)
        if moment.tzinfo is None:
            raise ValueError(written)
        return [moment.timestamp()]
    except ValueError:
        subject = f"NodeResourceTopology {item.name}"
        expected = "a time such as 2026-01-31T12:00:00Z"
        findings.add(CODE, subject, f"{subject}: annotation {UPDATED}: found {written}, expected {expected}")
        return []


def _beyond(
    fingerprint: str, method: str | None, node: NumaNode, standing: Sequence[_Bound], ended: Sequence[_Bound]
) -> list[_Bound] | None:
    """The last bound pods, those without which the fingerprint is right; None where it never is."""
    if not fingerprint.startswith(PREFIX):
        return None
    methods = (method,) if method in (_ALL, _EXCLUSIVE) else (_ALL, _EXCLUSIVE)
    tried: list[tuple[list[_Bound], list[_Bound]]] = []
    for counts in methods:
        for over in (ended[:0], ended):
            rest, counted = (
                [pod for pod in pods if counts == _ALL or pod.holds_zones(node.lists)] for pods in (over, standing)
            )
            if (rest, counted) in tried:
                continue
            tried.append((rest, counted))
            hashes = [pod_hash(pod.namespace, pod.name) for pod in (*rest, *counted)]
            for beyond in range(min(len(counted), MOST_BEYOND) + 1):
                if sign(hashes[: len(hashes) - beyond]) == fingerprint:
                    return counted[len(counted) - beyond :]
    return None


def _without(node: NumaNode, name: str, kubelet: Kubelet, pods: Iterable[_Bound], findings: Findings) -> NumaNode:
    """The node after pods that it does not know yet have come."""
    state = start = kubelet.start(node)
    for pod in pods:
        units = kubelet.units(pod.demand)
        answer = kubelet.admit(state, units)
        if answer is not None:
            state = answer[0]
        elif pod.demand is not None:
            reason = kubelet.refusal(state, pod.demand)
            message = f"C10: Node {name} would refuse Pod {pod.namespace}/{pod.name}, which is bound to it: {reason}"
            findings.add("BoundPodsViolate", f"Node {name}", message)
            state = kubelet.force(state, units)
    return node if state == start else kubelet.after(node, state)
