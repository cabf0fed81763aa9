"""Room for pods of DaemonSets that are still to come, held by *placeholder pods* (docs/passes.md, Room for DaemonSets).

A placeholder is in the snapshot alone, has no owner and is nominated to the node; it goes when the DaemonSet's pod
comes. Bounds for each namespace, except trusted ones, keep tenants from holding room for pods that never come.

Source: Kubernetes ``pkg/controller/daemon`` (nodes of a DaemonSet, and tolerations that its pods get).
"""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from functools import cached_property
from typing import TYPE_CHECKING

import msgspec

from placer.base.quantity import Resources
from placer.kube.base import LONGEST_NAME, Metadata, controller
from placer.kube.core import NodeManifest
from placer.kube.kinds import BY_ATTRIBUTE, KindInfo
from placer.kube.manifests import UNREADABLE
from placer.kube.pod import TERMINAL_PHASES, PodSpec, TolerationEntry
from placer.kube.reader import Misfit
from placer.passes.cluster.reading.field_filter import is_of_kind, list_reader, unreadable
from placer.passes.cluster.reading.views import DaemonSetView, ObjectView, PodView, read_view
from placer.problem import Constraints, Key, Node
from placer.problem.eligibility import ConstraintsPool, too_long
from placer.problem.requests import pod_requests

if TYPE_CHECKING:
    from placer.arrays.eligibility import Eligibility

__all__ = [
    "DAEMON_SETS",
    "DAEMON_SETS_PATH",
    "daemon_room",
    "is_placeholder",
    "new_nodes",
    "placeholder_for",
    "room_troubles",
    "trusted_namespaces",
]

#: How DaemonSets are listed. They are no part of a snapshot, so no kind of ``placer.kube.kinds``.
DAEMON_SETS = KindInfo("daemon_sets", "DaemonSet", ("apps",), ("v1",), "apps", ("ds",))
DAEMON_SETS_PATH = "/apis/apps/v1/daemonsets"

#: Label of namespaces whose DaemonSets an administrator vouches for, and the namespace that needs none.
_AGENTS, _SYSTEM = "placer.dev/agents", "kube-system"
#: What the placeholders of another namespace hold: one of so many parts of a node, on one of so many nodes.
_SHARE = 10
#: Most namespaces that are named where no room is held.
_TOLD = 3
#: Its pods would be ours to place otherwise, should they name our scheduler.
_OTHER_SCHEDULER = "daemonset-controller"
_KIND = "DaemonSet"
#: What takes room, and what ports, of a pod's spec.
_ROOM = ("containers", "initContainers", "resources", "overhead", "hostNetwork")
#: Taints that the controller lets its pods tolerate; a node that is not Ready gets nothing from us anyhow.
_TOLERATED = ("disk-pressure", "memory-pressure", "pid-pressure", "unschedulable")
_TOLERATED_ON_HOST = "network-unavailable"
#: For how long a node is new.
_NEW = timedelta(minutes=10)


def daemon_room(
    daemon_sets: Iterable[bytes],
    nodes: Mapping[str, Node],
    new: Collection[str],
    pods: Iterable[bytes],
    trusted: Collection[str],
) -> tuple[list[bytes], Counter[str]]:
    """Hold room for the pods of DaemonSets that are not there yet.

    Returns placeholder pods and unreadable DaemonSets; and namespace to the number of coming pods beyond its bounds.
    """
    views = sorted(((read_view(item, DaemonSetView), item) for item in daemon_sets), key=lambda each: each[0].key)
    holder = _Holder(nodes, new, trusted, pods)
    items: list[bytes] = []
    for view, item in views:
        if view.metadata.deletion_timestamp is not None:
            continue
        if UNREADABLE in (view.metadata.annotations or ()):
            items.append(item)
            continue
        is_trusted = view.metadata.namespace in trusted
        runs = _runs(view, is_trusted)
        if runs or (new and (is_trusted or view.may_want_pods)):
            items += holder.held(view.key, item, runs=runs)
    return items, holder.refused


def new_nodes(nodes: Iterable[NodeManifest], now: datetime) -> frozenset[str]:
    """Names of nodes made less than ten minutes before ``now`` (the server's clock), or at an unknown time."""
    times = ((each.name, each.metadata.creation_timestamp) for each in nodes)
    return frozenset(name for name, since in times if since is None or now - since < _NEW)


def trusted_namespaces(items: Iterable[bytes]) -> frozenset[str]:
    """Namespaces whose DaemonSets hold room without bounds, from the items of a snapshot."""
    views = (
        read_view(item, ObjectView) for item in items if _AGENTS.encode() in item and is_of_kind(item, "Namespace")
    )
    labelled = (each.metadata.name for each in views if (each.metadata.labels or {}).get(_AGENTS) == "true")
    return frozenset((_SYSTEM, *labelled))


def _runs(view: DaemonSetView, trusted: bool) -> bool:
    """Whether its pods come, by its controller's status, which no tenant may write."""
    status = view.status
    missing = status.desired_number_scheduled - status.number_ready
    several = trusted or status.desired_number_scheduled > 1
    return several and status.number_ready > 0 and missing <= max(1, status.desired_number_scheduled // 10)


def room_troubles(refused: Mapping[str, int]) -> list[str]:
    """A sentence with the namespaces for whose pods no room is held, and an administrator's remedy; else empty."""
    if not refused:
        return []
    most = sorted(refused, key=lambda name: (-refused[name], name))[:_TOLD]
    pods = ", ".join(f"{refused[name]:,} of namespace {name}" for name in most)
    more = f" and of {len(refused) - len(most):,} namespaces more" if len(most) < len(refused) else ""
    return [
        f"no room is held for coming pods of DaemonSets: {pods}{more}; found more than a tenth of a node, or "
        f"of the nodes, expected the label {_AGENTS}=true on a namespace with agents of nodes"
    ]


#: Constraints, requests and spec of the pods of a DaemonSet.
_Foreseen = tuple[Constraints, Resources, Mapping[str, object]]


class _Holder:
    def __init__(
        self, nodes: Mapping[str, Node], new: Collection[str], trusted: Collection[str], pods: Iterable[bytes]
    ) -> None:
        self._trusted, self._pods = trusted, pods
        # New ones first: where a namespace holds no more, it has held room there.
        self._nodes = sorted(nodes.values(), key=lambda each: each.name not in new)
        self._new, self._most = len(new), max(1, len(nodes) // _SHARE)
        self._open: dict[tuple[Constraints, Resources], list[int]] = {}
        self._held: dict[str, dict[str, Resources]] = defaultdict(dict)
        self._pool = ConstraintsPool()
        self.refused = Counter[str]()

    @cached_property
    def _there(self) -> frozenset[tuple[Key, str]]:
        return frozenset(_there(self._pods))

    @cached_property
    def _eligible(self) -> Eligibility:
        from placer.arrays.eligibility import Eligibility  # with numpy, which most clusters need later or never

        return Eligibility(self._nodes)

    def held(self, key: Key, item: bytes, *, runs: bool) -> Iterator[bytes]:
        found = self._foreseen(item)
        if found is None:
            wrong = "spec.template.spec: found an unreadable or too long spec, expected the spec of a pod"
            yield unreadable("apps/v1", _KIND, key.namespace, key.name, wrong)
            return
        pod: dict[str, object] | None = None
        for at in self._open_to(*found[:2]):
            name = self._nodes[at].name
            if (at >= self._new and not runs) or (key, name) in self._there or not self._may_hold(key, at, found[1]):
                continue
            pod = pod or _pod(key, found[2])
            metadata = {"name": _name(key.name, name), "namespace": key.namespace}
            yield msgspec.json.encode(pod | {"metadata": metadata, "status": {"nominatedNodeName": name}})

    def _foreseen(self, item: bytes) -> _Foreseen | None:
        try:
            spec = DAEMON_SETS.read(item).spec.template.spec
        except Misfit:
            return None
        if any(too_long(spec)):
            return None
        room = msgspec.json.decode(item)["spec"]["template"]["spec"]
        tolerant = msgspec.structs.replace(spec, tolerations=(*(spec.tolerations or ()), *_tolerated(spec)))
        return self._pool.of(tolerant), pod_requests(spec), room

    def _open_to(self, constraints: Constraints, requests: Resources) -> list[int]:
        asked = constraints, requests
        if asked not in self._open:
            row = self._eligible.row(constraints).nonzero()[0].tolist()
            self._open[asked] = [at for at in row if requests.fits(self._nodes[at].allocatable)]
        return self._open[asked]

    def _may_hold(self, key: Key, at: int, requests: Resources) -> bool:
        """Whether a namespace may hold that much there; if so, it is counted."""
        if key.namespace in self._trusted:
            return True
        node, held = self._nodes[at], self._held[key.namespace]
        asked = held.get(node.name, Resources()) + requests
        full = len(held) >= self._most and node.name not in held
        if full or any(_SHARE * amount > node.allocatable[name] for name, amount in asked.items()):
            self.refused[key.namespace] += 1
            return False
        held[node.name] = asked
        return True


def _tolerated(spec: PodSpec) -> Iterator[TolerationEntry]:
    for taint in (*_TOLERATED, _TOLERATED_ON_HOST) if spec.host_network else _TOLERATED:
        yield TolerationEntry(key=f"node.kubernetes.io/{taint}", operator="Exists", effect="NoSchedule")


def _pod(key: Key, spec: Mapping[str, object]) -> dict[str, object]:
    held = {name: text for name, text in spec.items() if name in _ROOM}
    metadata = {"name": key.name, "namespace": key.namespace}
    pod = msgspec.json.encode({"metadata": metadata, "spec": held | {"schedulerName": _OTHER_SCHEDULER}})
    made: dict[str, object] = msgspec.json.decode(list_reader(BY_ATTRIBUTE["pods"], "v1").object(pod))
    return made


def _there(pods: Iterable[bytes]) -> Iterator[tuple[Key, str]]:
    for item in pods:
        if b'"DaemonSet"' in item:
            pod = read_view(item, PodView)
            for owner in pod.metadata.owner_references or ():
                if owner.kind == _KIND and pod.spec.node_name and pod.status.phase not in TERMINAL_PHASES:
                    yield Key(pod.metadata.namespace, owner.name), pod.spec.node_name


def placeholder_for(metadata: Metadata, namespace: str, node: str) -> Key | None:
    """The placeholder that a pod on a node replaces; None for a pod of no DaemonSet."""
    owner = controller(metadata)
    return Key(namespace, _name(owner.name, node)) if owner is not None and owner.kind == _KIND else None


def is_placeholder(key: Key) -> bool:
    """Whether a pod is a placeholder; no name of a real one has a colon."""
    return ":" in key.name


def _name(daemon_set: str, node: str) -> str:
    name = f"{daemon_set}:{node}"
    return name if len(name) <= LONGEST_NAME else f":{hashlib.sha256(name.encode()).hexdigest()}"
