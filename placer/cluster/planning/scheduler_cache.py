"""The scheduler cache: pods and nodes as they are, from the snapshot to the last binding.

As in kube-scheduler it hears every event of pods and nodes, and *assumes* a pod from the moment its binding goes out.
It keeps apart

* who holds what room (:class:`NodeRoom`),
* what rules look at that are no sums on a node (:mod:`placer.cluster.planning.rule_checks`),
* pending pods as they were decided upon (:class:`_PendingPods`),
* bindings of this pass that have not come back yet, as events and as answers of kubelets (:class:`_Unconfirmed`).

Before a gang is bound the cache is asked whether it may still go (:meth:`SchedulerCache.refusal`). Looked at anew are
capacity and host ports (C2), the node itself (C3), pods that are not as they were, bound members of the gang that are
gone (C5), and the rules that are no sums.

Another scheduler can bind between our last look and our binding, and nothing can exclude that. But events of pods come
in the order in which they were written: once our own binding is among them, every earlier one is known, so what is too
much on a node is found afterwards (:meth:`SchedulerCache.overfull`), and only then reported.
"""

from __future__ import annotations

import threading
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import msgspec

from placer.cluster.planning.binding_plan import PlannedBinding
from placer.cluster.planning.rule_checks import RuleChecks
from placer.cluster.reading.daemon_sets import is_placeholder, placeholder_for
from placer.cluster.reading.field_filter import essence, list_reader, readable
from placer.cluster.reading.snapshot import TAINT
from placer.cluster.reading.views import KubeletAnswer, ObjectView, PodView, Rejection, read_view
from placer.instance import GroupKey, HostPort, Instance, Key, Node, Pod, PodState
from placer.instance.eligibility import host_ports
from placer.instance.instance_builder import read_nodes
from placer.instance.pod_states import Ownership
from placer.instance.problem import TakenPorts
from placer.instance.requests import pod_requests
from placer.kube.kinds import BY_ATTRIBUTE
from placer.kube.pod import TERMINAL_PHASES, PodManifest
from placer.kube.reader import Misfit
from placer.manifests import held_pod
from placer.quantity import Resources, format_amount

if TYPE_CHECKING:
    from placer.cluster.reading.snapshot import Snapshot

__all__ = ["Holding", "NodeRoom", "Overfull", "SchedulerCache"]


@dataclass(frozen=True, slots=True)
class Overfull:
    """A node on which pods request more than there is: ``amount`` of ``room``, in the units of ``Resources``."""

    node: str
    resource: str
    amount: int
    room: int

    def __str__(self) -> str:
        amounts = " of ".join(format_amount(self.resource, each) for each in (self.amount, self.room))
        return f"Node {self.node}: {self.resource} {amounts}"


@dataclass(slots=True)
class Holding:
    """What a pod holds on its node; ``ours`` where that is by a binding of this pass, ``released`` as long as its own
    scheduler is still to bind it.
    """

    uid: str
    node: str
    state: PodState
    requests: Resources
    ports: tuple[HostPort, ...]
    labels: Mapping[str, str]
    ours: bool = False
    released: bool = False
    seen: bool = True  #: whether an event showed it there
    answer: KubeletAnswer = KubeletAnswer.NOTHING

    def is_given(self, view: PodView) -> bool:
        """Whether it is that pod's, and the pod has its node from us."""
        return (self.ours or self.released) and self.uid == view.metadata.uid

    def is_before(self, view: PodView) -> bool:
        """Whether the pod, which has its node from us, is shown as it was before it was bound."""
        return view.waits if self.released else view.spec.node_name is None

    def is_released_in(self, view: PodView) -> bool:
        """Whether the pod is shown released, so that the rest is its scheduler's."""
        return self.released and not view.spec.scheduling_gates

    def is_as(self, other: Holding) -> bool:
        """Whether another one is of the same pod and holds the same, in the same way."""
        one, two = ((each.uid, each.node, each.requests, each.state.on_node) for each in (self, other))
        return one == two


_PODS = BY_ATTRIBUTE["pods"]


class NodeRoom:
    """Which pods hold room on which nodes, with the sums of what they request (C2)."""

    def __init__(self) -> None:
        self.holdings: dict[Key, Holding] = {}
        self._on: dict[str, set[Key]] = defaultdict(set)
        self._used: dict[str, Counter[str]] = defaultdict(Counter)
        self._ports = TakenPorts()

    def hold(self, key: Key, holding: Holding) -> None:
        """Take room for a pod that holds none."""
        self.holdings[key] = holding
        self._on[holding.node].add(key)
        self._used[holding.node].update(dict(holding.requests))
        self._ports.take(holding.node, holding.ports)

    def release(self, key: Key) -> bool:
        """Give back what a pod holds; whether it held something."""
        holding = self.holdings.pop(key, None)
        if holding is None:
            return False
        self._on[holding.node].discard(key)
        self._used[holding.node].subtract(dict(holding.requests))
        self._ports.give_back(holding.node, holding.ports)
        return True

    def refusal(
        self, binds: Iterable[PlannedBinding], pods: Mapping[Key, Pod], nodes: Mapping[str, Node]
    ) -> str | None:
        """Why there is no room for pods that are bound together, in one sentence; None where there is."""
        by_node: dict[str, list[Pod]] = defaultdict(list)
        for each in binds:
            by_node[each.node].append(pods[each.pod])
        refusals = (
            self._amount_refusal(nodes[name], new) or self._port_refusal(name, new) for name, new in by_node.items()
        )
        return next(filter(None, refusals), None)

    def _amount_refusal(self, node: Node, new: Sequence[Pod]) -> str | None:
        wanted: Counter[str] = Counter()
        for pod in new:
            wanted.update(dict(pod.requests))
        for resource, amount in sorted(wanted.items()):
            room = node.allocatable[resource] - self._used[node.name][resource]
            if amount > room:
                amounts = " of ".join(format_amount(resource, each) for each in (amount, max(0, room)))
                return f"the room is gone on Node {node.name}: {resource} {amounts} left"
        return None

    def _port_refusal(self, node: str, new: Sequence[Pod]) -> str | None:
        clash = self._ports.clash(node, (port for pod in new for port in pod.host_ports))
        return None if clash is None else f"the room is gone on Node {node}: {clash.protocol} host port {clash.port}"

    def late_refusal(self, bind: PlannedBinding, pods: Mapping[Key, Pod], nodes: Mapping[str, Node]) -> str | None:
        """Why there is no room any more for a pod that holds some; None where there is, or where it holds none."""
        held = self.holdings.get(bind.pod)
        if held is None:
            return None
        self.release(bind.pod)
        try:
            return self.refusal([bind], pods, nodes)
        finally:
            self.hold(bind.pod, held)

    def overfull(self, nodes: Mapping[str, Node]) -> list[Overfull]:
        """What is too much on nodes on which pods of this pass request it too."""
        ours = {holding.node for holding in self.holdings.values() if holding.ours}
        return [each for name in sorted(ours) if name in nodes for each in self._overfull_on(nodes[name])]

    def _overfull_on(self, node: Node) -> Iterator[Overfull]:
        held = map(self.holdings.__getitem__, self._on[node.name])
        standing = [each for each in held if each.state.on_node and not each.released]
        for resource in sorted({name for each in standing if each.ours for name in each.requests}):
            amount = sum(each.requests[resource] for each in standing)
            if amount > node.allocatable[resource]:
                yield Overfull(node.name, resource, amount, node.allocatable[resource])


@dataclass(slots=True)
class _PendingPod:
    """A pending pod that is ours: as the snapshot has it, and whether it is no longer so."""

    uid: str
    text: bytes
    changed: bool = False


class _PendingPods:
    """Our pending pods as they were decided upon."""

    def __init__(self, snapshot: Snapshot, instance: Instance) -> None:
        texts, identities = snapshot.pod_texts(pod.key for pod in instance.pending), snapshot.identities
        self._pods = {key: _PendingPod(identities[key].uid, text) for key, text in texts.items()}

    def __iter__(self) -> Iterator[Key]:
        return iter(self._pods)

    def changed(self) -> set[Key]:
        return {key for key, pod in self._pods.items() if pod.changed}

    def is_as_decided(self, bind: PlannedBinding) -> bool:
        pod = self._pods.get(bind.pod)
        return pod is not None and not pod.changed and pod.uid == bind.uid

    def gone(self, key: Key) -> None:
        """Note that a pod is deleted."""
        if key in self._pods:
            self._pods[key].changed = True

    def compare(self, view: PodView, item: bytes) -> None:
        """Notice that a pending pod is no longer what was decided upon."""
        pod = self._pods.get(view.key)
        if pod is None or pod.changed:
            return
        gone = view.metadata.uid != pod.uid or view.metadata.deletion_timestamp or view.spec.node_name
        pod.changed = (
            bool(gone)
            or view.kubelet_answer is not KubeletAnswer.NOTHING
            or essence(_PODS, list_reader(_PODS, "v1").object(item)) != essence(_PODS, pod.text)
        )


class _Unconfirmed:
    """Bindings of this pass that no event has shown yet, and those to which no kubelet has answered."""

    def __init__(self) -> None:
        self.unseen: set[Key] = set()
        self.unanswered: set[Key] = set()

    def add(self, key: Key) -> None:
        self.unseen.add(key)
        self.unanswered.add(key)

    def discard(self, key: Key) -> None:
        self.unseen.discard(key)
        self.unanswered.discard(key)


@dataclass(slots=True)
class _AssumedBatch:
    """Bindings that went out together, and the version of what is around up to which rules say nothing against them."""

    binds: Sequence[PlannedBinding]
    version: int


class SchedulerCache:
    """Pods and nodes as they are; may be used from several threads.

    Parameters
    ----------
    snapshot
        With which it begins, as it was taken: what comes later is compared with it, not with what is decided upon.
    instance
        What is decided upon, with what earlier passes left behind.
    released
        Pods that earlier passes released, and that count as bound already.
    """

    def __init__(self, snapshot: Snapshot, instance: Instance, released: Container[Key] = ()) -> None:
        self._instance = instance
        self._news = threading.Condition(threading.RLock())
        self._ownership = Ownership(snapshot.scheduler_name, cluster=True, gates=snapshot.gates)
        self._nodes: dict[str, Node] = dict(instance.nodes)
        self._room = NodeRoom()
        self._rules = RuleChecks(snapshot, instance)
        self._pending = _PendingPods(snapshot, instance)
        self._unconfirmed = _Unconfirmed()
        self._assumed: dict[Key, _AssumedBatch] = {}
        self._ended: dict[Key, Holding] = {}  # pods of this pass that ran and are over
        # Also for pods that tolerate every taint.
        cooling = (name for name, node in instance.nodes.items() if any(taint.key == TAINT for taint in node.taints))
        self._cooling: dict[str, str] = dict.fromkeys(cooling, "its kubelet rejected a pod of ours")
        self.rejected: dict[Key, Rejection] = {}  #: pods of this pass that their kubelets rejected
        self.unsteady: set[str] = set()  #: nodes that have changed, for which a binding was refused here
        self.stale: set[GroupKey] = set()  #: gangs with a binding that was refused here, since the cluster has changed
        #: Why something may have happened unheard, and why no events come, or None; set by what feeds the cache.
        self.lost: Callable[[], str | None] = lambda: None
        self.closed: Callable[[], str | None] = lambda: None
        for key, pod in instance.pods.items():
            if pod.node is not None:
                uid = snapshot.identities[key].uid
                room, late = (pod.requests, pod.host_ports, pod.labels), key in released
                held = Holding(uid, pod.node, pod.state, *room, released=late)
                self._room.hold(key, held)
                self._rules.stands(key, pod.node)

    # ------------------------------------------------------------------------------------------------- what happens

    def pod_happened(self, kind: str, item: bytes) -> None:
        """Hear an event of a pod: ADDED, MODIFIED or DELETED, and the pod as it came."""
        try:
            view = read_view(item, PodView)
        except msgspec.ValidationError:  # it keeps what it holds; while it is pending it is not as it was
            with self._news:
                self._pending.gone(read_view(item, ObjectView).key)
                self._news.notify_all()
            return
        with self._news:
            if kind == "DELETED":
                self._gone(view.key)
            else:
                self._there(view, item)
            self._news.notify_all()

    def pods_replaced(self, items: Sequence[bytes]) -> None:
        """Hear all pods that there are."""
        views = [(read_view(item, PodView), item) for item in items]
        with self._news:
            there = {view.key for view, _ in views}
            for key in [*self._room.holdings, *self._pending]:
                if key not in there and not is_placeholder(key):
                    self._gone(key)
            for view, item in views:
                self._there(view, item)
            self._news.notify_all()

    def node_happened(self, kind: str, item: bytes) -> None:
        """Hear an event of a node."""
        name = read_view(item, ObjectView).metadata.name
        found = {} if kind == "DELETED" else _readable([item])
        with self._news:
            self._nodes.pop(name, None)
            self._nodes |= found
            self._rules.nodes_changed(found)
            self._news.notify_all()

    def nodes_replaced(self, items: Sequence[bytes]) -> None:
        """Hear all nodes that there are."""
        found = _readable(items)
        with self._news:
            self._nodes = found
            self._rules.nodes_changed(found)
            self._news.notify_all()

    def _gone(self, key: Key) -> None:
        self._pending.gone(key)
        self._release(key)

    def _there(self, view: PodView, item: bytes) -> None:
        key, held = view.key, self._room.holdings.get(view.key)
        if held is not None and held.is_given(view):
            if held.is_before(view):
                self._pending.compare(view, item)
                if held.is_released_in(view):
                    self._unconfirmed.unseen.discard(key)
                return
            if held.ours and view.spec.node_name == held.node and view.metadata.deletion_timestamp is None:
                self._confirm(key, held, view)
                self._compare_labels(key, held, view, item)
                return
        self._pending.compare(view, item)
        self._read(key, view, item)

    def _confirm(self, key: Key, held: Holding, view: PodView) -> None:
        """Hear of a pod of this pass where we bound it."""
        held.seen, held.released, held.answer = True, False, view.kubelet_answer
        self._unconfirmed.unseen.discard(key)
        if held.answer is not KubeletAnswer.NOTHING:
            self._unconfirmed.unanswered.discard(key)
        rejection = view.rejection
        if rejection is not None:
            self.rejected[key] = rejection
            self._release(key)
        elif view.status.phase in TERMINAL_PHASES:
            self._ended[key] = held
            self._release(key)

    def _read(self, key: Key, view: PodView, item: bytes) -> None:
        """Note what a pod holds that is not of this pass."""
        pod = _pod(item)
        if pod is None:  # it may hold anything
            if view.spec.node_name:
                self._cooling[view.spec.node_name] = f"Pod {key} on it cannot be read"
            return
        new = self._holding(view.metadata.uid, pod)
        if new is None:
            self._release(key)
            return
        replaced = placeholder_for(pod.metadata, key.namespace, new.node)
        if replaced is not None and new.state.on_node:
            self._release(replaced)
        old = self._room.holdings.get(key)
        if old is not None and old.is_as(new):
            old.state, old.released = new.state, False
            self._relabel(key, old, pod)
            return
        self._release(key)
        self._room.hold(key, new)
        self._rules.came(key, pod, new.node, new.state)

    def _compare_labels(self, key: Key, held: Holding, view: PodView, item: bytes) -> None:
        """Hear of a pod of this pass that has other labels than it was bound with."""
        pod = _pod(item) if (view.metadata.labels or {}) != held.labels and key in self._room.holdings else None
        if pod is not None:
            self._relabel(key, held, pod)

    def _relabel(self, key: Key, held: Holding, pod: PodManifest) -> None:
        """Hear of a pod that holds what it held, and may mean something else to others."""
        labels = pod.metadata.labels or {}
        if labels != held.labels:
            held.labels = labels
            self._rules.relabelled(key, pod, held.state)

    def _holding(self, uid: str, pod: PodManifest) -> Holding | None:
        """What a pod holds on the node that it has, or is nominated to; None where it holds nothing."""
        state = self._ownership.state(pod)
        node = pod.spec.node_name or (pod.status.nominated_node_name if pod.status is not None else None)
        if state is None or state is PodState.PENDING or not node:
            return None
        requests = pod_requests(pod.spec, pod.status if state.on_node else None)
        return Holding(uid, node, state, requests, host_ports(pod.spec), pod.metadata.labels or {})

    def _release(self, key: Key) -> None:
        self._unconfirmed.discard(key)
        if self._room.release(key):
            self._rules.went(key)

    # ---------------------------------------------------------------------------------------------------- what we do

    @property
    def nodes(self) -> Mapping[str, Node]:
        """The nodes as they are now, by name."""
        return self._nodes

    def changed(self) -> set[Key]:
        """Pending pods that are no longer as the snapshot has them."""
        with self._news:
            return self._pending.changed()

    def assume(self, binds: Sequence[PlannedBinding]) -> None:
        """Take the room of bindings that go out together."""
        with self._news:
            batch = _AssumedBatch(binds, self._rules.version)
            for each in binds:
                self._assumed[each.pod] = batch
                pod = self._instance.pods[each.pod]
                held = Holding(each.uid, each.node, PodState.BOUND, pod.requests, pod.host_ports, pod.labels)
                held.ours, held.released, held.seen = True, each.by_release, False
                self._room.hold(each.pod, held)
                self._rules.stands(each.pod, each.node)
                self._unconfirmed.add(each.pod)

    def forget(self, bind: PlannedBinding) -> None:
        """Give back the room of a binding that was not made; what another pod holds stays."""
        with self._news:
            held = self._room.holdings.get(bind.pod)
            if held is not None and held.ours and not held.seen and held.uid == bind.uid:
                self._rules.forget(bind.pod)
                self._release(bind.pod)

    def kubelet_answer(self, bind: PlannedBinding) -> KubeletAnswer:
        """What the kubelet answered to a pod that was bound."""
        with self._news:
            if bind.pod in self.rejected:
                return KubeletAnswer.REJECTED
            held = self._room.holdings.get(bind.pod) or self._ended.get(bind.pod)
            return held.answer if held is not None and held.uid == bind.uid else KubeletAnswer.NOTHING

    def is_bound(self, bind: PlannedBinding) -> bool:
        """Whether an event showed a pod on the node that it was bound to, and no later one that it is gone."""
        with self._news:
            held = self._room.holdings.get(bind.pod)
            there = held is not None and (held.uid, held.node) == (bind.uid, bind.node)
            return there and held is not None and held.seen and held.state is PodState.BOUND

    def wait(self, seconds: float, until: Callable[[], bool]) -> bool:
        """Wait until something is so that only events change; whether it is."""
        with self._news:
            return self._news.wait_for(until, seconds)

    def all_seen(self, *, answered: bool = False) -> bool:
        """Whether the bindings of this pass came back as events, with ``answered`` those of their kubelets too."""
        return not (self._unconfirmed.unanswered if answered else self._unconfirmed.unseen)

    def unseen(self) -> set[Key]:
        """Pods of this pass that no event showed where they were bound."""
        with self._news:
            return set(self._unconfirmed.unseen)

    def is_held(self, bind: PlannedBinding) -> bool:
        """Whether room is held for a binding of this pass: it was made, or may be."""
        with self._news:
            held = self._room.holdings.get(bind.pod)
            return held is not None and (held.uid, held.node, held.ours) == (bind.uid, bind.node, True)

    def unbound(self) -> set[Key]:
        """Released pods that their own schedulers have not bound yet."""
        with self._news:
            return {key for key, held in self._room.holdings.items() if held.released}

    def unanswered(self) -> list[str]:
        """Uids of pods of this pass to which no kubelet has answered."""
        with self._news:
            return [self._room.holdings[key].uid for key in self._unconfirmed.unanswered]

    def overfull(self) -> list[Overfull]:
        """What is too much on nodes on which pods of this pass request it too."""
        with self._news:
            return self._room.overfull(self._nodes)

    # ------------------------------------------------------------------------------------------------ what may not be

    def refusal(self, gangs: Collection[GroupKey], binds: Sequence[PlannedBinding]) -> str | None:
        """Why gangs may not be bound now, in one sentence; None where they may, as far as is heard (:attr:`lost`).

        Parameters
        ----------
        gangs
            That are bound together.
        binds
            All their bindings.
        """
        with self._news:
            why = (
                next(filter(None, map(self._pod_refusal, binds)), None)
                or next(filter(None, map(self._members_refusal, gangs)), None)
                or self._room.refusal(binds, self._instance.pods, self._nodes)
                or self._rules.refusal(gangs, binds, self._nodes)
            )
            self._note(why, gangs, binds)
            return why

    def late_refusal(self, bind: PlannedBinding) -> str | None:
        """Why a binding whose room is taken may no longer be made, in one sentence; None where it may.

        Since then its pod may have changed, and its node may have been cordoned, have shrunk, gone, or filled up. Where
        pods have come, gone or been labelled anew, or nodes have changed, the rules that are no sums are asked again.
        """
        with self._news:
            why = (
                self._pod_refusal(bind)
                or self._room.late_refusal(bind, self._instance.pods, self._nodes)
                or self._late_rules_refusal(bind)
            )
            self._note(why, [self._instance.pods[bind.pod].group or GroupKey("", *bind.pod)], [bind])
            return why

    def _note(self, why: str | None, gangs: Iterable[GroupKey], binds: Iterable[PlannedBinding]) -> None:
        if why is not None:
            self.stale.update(gangs)
            self.unsteady.update(bind.node for bind in binds if self._has_changed(bind.node))

    def _has_changed(self, name: str) -> bool:
        """Whether a node takes other pods than it did when it was decided upon."""
        now, decided = self._nodes.get(name), self._instance.nodes.get(name)
        if now is None or decided is None:
            return decided is not None
        return (now.allocatable, now.ready, now.taints) != (decided.allocatable, decided.ready, decided.taints)

    def _late_rules_refusal(self, bind: PlannedBinding) -> str | None:
        """What rules that are no sums say against a binding by now; asked once for its whole batch where they say
        nothing.
        """
        batch, version = self._assumed.get(bind.pod), self._rules.version
        if batch is None or batch.version == version:
            return None
        left = [each for each in batch.binds if each.pod in self._unconfirmed.unseen and each.node in self._nodes]
        if self._rules.late_refusal(left, self._nodes) is None:
            batch.version = version
            return None
        return self._rules.late_refusal([bind], self._nodes)

    def _pod_refusal(self, bind: PlannedBinding) -> str | None:
        if not self._pending.is_as_decided(bind):
            return f"Pod {bind.pod} has changed since the snapshot"
        node = self._nodes.get(bind.node)
        if node is None:
            return f"Node {bind.node} is gone"
        why = self._cooling.get(bind.node) or self._rejected_on(bind.node)
        if why is not None:
            return f"Node {bind.node} cools down: {why}"
        decided = self._instance.nodes.get(bind.node)
        if decided is not None:  # a Node does not tell its kubelet's policy
            node = replace(node, topology_policy=decided.topology_policy)
        refused = self._instance.pods[bind.pod].constraints.refusal(node)
        return None if refused is None else f"Pod {bind.pod} may no longer run on Node {bind.node}: {refused}"

    def _rejected_on(self, node: str) -> str | None:
        """Whether its kubelet rejected a pod of this pass, of a workload that no other kubelet rejected."""
        for key, each in self.rejected.items():
            others = (other.node for other in self.rejected.values() if other.workload == each.workload)
            if each.node == node and all(other == node for other in others):
                return f"its kubelet rejected Pod {key} ({each.reason})"
        return None

    def _members_refusal(self, gang: GroupKey) -> str | None:
        """Whether a bound member is gone without which the gang may not be ready."""
        for key in self._instance.groups[gang].bound:
            held = self._room.holdings.get(key)
            if held is None or held.state is not PodState.BOUND:
                return f"Pod {key} of {gang} is gone"
        return None


def _pod(item: bytes) -> PodManifest | None:
    """The pod of an event; of one that cannot be read what it takes of its node, None where not even that can be."""
    info = _PODS
    try:
        read: PodManifest = info.read(item)
    except Misfit:
        return held_pod(info, item)
    return read


def _readable(items: Iterable[bytes]) -> dict[str, Node]:
    """Nodes; one that cannot be read is none, so nothing is bound to it."""
    return read_nodes(readable(BY_ATTRIBUTE["nodes"], items))
