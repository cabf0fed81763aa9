"""The scheduler cache: current pods and nodes, from the snapshot to the last binding.

As in kube-scheduler it hears every event, and *assumes* a pod once its binding is sent. Another scheduler can bind
between our last check and our binding. Events of pods come in the order of their writes: once our own binding is among
them, every earlier one is known, so an overfull node is found and reported (:meth:`SchedulerCache.overfull`).
"""

from __future__ import annotations

import threading
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import msgspec

from placer.base.quantity import Resources, format_amount
from placer.kube.kinds import BY_ATTRIBUTE
from placer.kube.manifests import held_pod
from placer.kube.pod import TERMINAL_PHASES, PodManifest
from placer.kube.reader import Misfit
from placer.passes.cluster.planning.binding_plan import PlannedBinding
from placer.passes.cluster.planning.rule_checks import RuleChecks
from placer.passes.cluster.reading.daemon_sets import is_placeholder, placeholder_for
from placer.passes.cluster.reading.field_filter import essence, list_reader, readable
from placer.passes.cluster.reading.snapshot import TAINT
from placer.passes.cluster.reading.views import KubeletAnswer, ObjectView, PodView, Rejection, read_view
from placer.problem import GroupKey, HostPort, Instance, Key, Node, Pod, PodState
from placer.problem.eligibility import host_ports
from placer.problem.instance import TakenPorts
from placer.problem.instance_builder import read_nodes
from placer.problem.pod_states import Ownership
from placer.problem.requests import pod_requests

if TYPE_CHECKING:
    from placer.passes.cluster.reading.snapshot import Snapshot

__all__ = ["Holding", "NodeRoom", "Overfull", "SchedulerCache"]


@dataclass(frozen=True, slots=True)
class Overfull:
    """A node whose pods request more than it has: ``amount`` of ``room``, in the units of ``Resources``."""

    node: str
    resource: str
    amount: int
    room: int

    def __str__(self) -> str:
        amounts = " of ".join(format_amount(self.resource, each) for each in (self.amount, self.room))
        return f"Node {self.node}: {self.resource} {amounts}"


@dataclass(slots=True)
class Holding:
    """Room held by a pod on its node.

    ``ours``: by a binding of this pass; ``released``: its own scheduler has not bound it yet; ``seen``: an event showed
    it.
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
        """Whether it belongs to that pod, whose node is from us."""
        return (self.ours or self.released) and self.uid == view.metadata.uid

    def is_before(self, view: PodView) -> bool:
        """Whether an event shows the pod as it was before it got its node from us."""
        return view.waits if self.released else view.spec.node_name is None

    def is_released_in(self, view: PodView) -> bool:
        """Whether an event shows the pod released, so that its scheduler is next."""
        return self.released and not view.spec.scheduling_gates

    def is_as(self, other: Holding) -> bool:
        """Whether another one is of the same pod and equal."""
        one, two = ((each.uid, each.node, each.requests, each.state.on_node) for each in (self, other))
        return one == two


_PODS = BY_ATTRIBUTE["pods"]


class NodeRoom:
    """Pods that hold room on nodes, with the sums of their requests (C2)."""

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
        """Give back the room of a pod; whether it held any."""
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
        """A sentence on missing room for pods that are bound together; None where there is room."""
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
        """:meth:`refusal` for a pod whose own room is not counted; None where it holds none."""
        held = self.holdings.get(bind.pod)
        if held is None:
            return None
        self.release(bind.pod)
        try:
            return self.refusal([bind], pods, nodes)
        finally:
            self.hold(bind.pod, held)

    def overfull(self, nodes: Mapping[str, Node]) -> list[Overfull]:
        """Nodes on which too much is requested, of resources that pods of this pass request there."""
        ours = {holding.node for holding in self.holdings.values() if holding.ours}
        return [each for name in sorted(ours) if name in nodes for each in self._overfull_on(nodes[name])]

    def _overfull_on(self, node: Node) -> Iterator[Overfull]:
        held = map(self.holdings.__getitem__, self._on[node.name])
        standing = [each for each in held if each.state.on_node and not each.released]
        for resource in sorted({name for each in standing if each.ours for name in each.requests}):
            amount = sum(each.requests[resource] for each in standing)
            if amount > node.allocatable[resource]:
                yield Overfull(node.name, resource, amount, node.allocatable[resource])


class _PendingPods:
    def __init__(self, snapshot: Snapshot, instance: Instance) -> None:
        texts, identities = snapshot.pod_texts(pod.key for pod in instance.pending), snapshot.identities
        self.decided = {key: (identities[key].uid, text) for key, text in texts.items()}
        self.changed: set[Key] = set()

    def is_as_decided(self, bind: PlannedBinding) -> bool:
        return bind.pod not in self.changed and bind.uid == self.decided.get(bind.pod, ("", b""))[0]

    def gone(self, key: Key) -> None:
        if key in self.decided:
            self.changed.add(key)

    def compare(self, view: PodView, item: bytes) -> None:
        if view.key not in self.decided or view.key in self.changed:
            return
        uid, text = self.decided[view.key]
        gone = view.metadata.uid != uid or view.metadata.deletion_timestamp or view.spec.node_name
        if (
            gone
            or view.kubelet_answer is not KubeletAnswer.NOTHING
            or essence(_PODS, list_reader(_PODS, "v1").object(item)) != essence(_PODS, text)
        ):
            self.changed.add(view.key)


@dataclass(slots=True)
class _AssumedBatch:
    binds: Sequence[PlannedBinding]
    version: int


class SchedulerCache:
    """Current pods and nodes, for any number of threads.

    Parameters
    ----------
    released
        Pods that earlier passes released, and that count as bound.
    """

    def __init__(self, snapshot: Snapshot, instance: Instance, released: Container[Key] = ()) -> None:
        self._instance = instance
        self._news = threading.Condition(threading.RLock())
        self._ownership = Ownership(snapshot.scheduler_name, cluster=True, gates=snapshot.gates)
        self._nodes: dict[str, Node] = dict(instance.nodes)
        self._room = NodeRoom()
        self._rules = RuleChecks(snapshot, instance)
        self._pending = _PendingPods(snapshot, instance)
        self._unseen: set[Key] = set()  # bindings of this pass that no event has shown yet
        self._unanswered: set[Key] = set()  # and those to which no kubelet has answered
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
        """Hear an event of a pod: ADDED, MODIFIED or DELETED, and the whole pod."""
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
        """Hear the list of all pods."""
        views = [(read_view(item, PodView), item) for item in items]
        with self._news:
            there = {view.key for view, _ in views}
            for key in [*self._room.holdings, *self._pending.decided]:
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
        """Hear the list of all nodes."""
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
                    self._unseen.discard(key)
                return
            if held.ours and view.spec.node_name == held.node and view.metadata.deletion_timestamp is None:
                self._confirm(key, held, view)
                self._compare_labels(key, held, view, item)
                return
        self._pending.compare(view, item)
        self._read(key, view, item)

    def _confirm(self, key: Key, held: Holding, view: PodView) -> None:
        held.seen, held.released, held.answer = True, False, view.kubelet_answer
        self._unseen.discard(key)
        if held.answer is not KubeletAnswer.NOTHING:
            self._unanswered.discard(key)
        rejection = view.rejection
        if rejection is not None:
            self.rejected[key] = rejection
            self._release(key)
        elif view.status.phase in TERMINAL_PHASES:
            self._ended[key] = held
            self._release(key)

    def _read(self, key: Key, view: PodView, item: bytes) -> None:
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
        pod = _pod(item) if (view.metadata.labels or {}) != held.labels and key in self._room.holdings else None
        if pod is not None:
            self._relabel(key, held, pod)

    def _relabel(self, key: Key, held: Holding, pod: PodManifest) -> None:
        labels = pod.metadata.labels or {}
        if labels != held.labels:
            held.labels = labels
            self._rules.relabelled(key, pod, held.state)

    def _holding(self, uid: str, pod: PodManifest) -> Holding | None:
        state = self._ownership.state(pod)
        node = pod.spec.node_name or (pod.status.nominated_node_name if pod.status is not None else None)
        if state is None or state is PodState.PENDING or not node:
            return None
        requests = pod_requests(pod.spec, pod.status if state.on_node else None)
        return Holding(uid, node, state, requests, host_ports(pod.spec), pod.metadata.labels or {})

    def _release(self, key: Key) -> None:
        self._unseen.discard(key)
        self._unanswered.discard(key)
        if self._room.release(key):
            self._rules.went(key)

    # ---------------------------------------------------------------------------------------------------- what we do

    @property
    def nodes(self) -> Mapping[str, Node]:
        """The current nodes by name."""
        return self._nodes

    def changed(self) -> set[Key]:
        """Pending pods that differ from the snapshot."""
        with self._news:
            return set(self._pending.changed)

    def assume(self, binds: Sequence[PlannedBinding]) -> None:
        """Take the room of bindings that are sent together."""
        with self._news:
            batch = _AssumedBatch(binds, self._rules.version)
            for each in binds:
                self._assumed[each.pod] = batch
                pod = self._instance.pods[each.pod]
                held = Holding(each.uid, each.node, PodState.BOUND, pod.requests, pod.host_ports, pod.labels)
                held.ours, held.released, held.seen = True, each.by_release, False
                self._room.hold(each.pod, held)
                self._rules.stands(each.pod, each.node)
                self._unseen.add(each.pod)
                self._unanswered.add(each.pod)

    def forget(self, bind: PlannedBinding) -> None:
        """Give back the room of a binding that was not made, unless another pod holds it by now."""
        with self._news:
            held = self._room.holdings.get(bind.pod)
            if held is not None and held.ours and not held.seen and held.uid == bind.uid:
                self._rules.forget(bind.pod)
                self._release(bind.pod)

    def kubelet_answer(self, bind: PlannedBinding) -> KubeletAnswer:
        """The answer of the kubelet to a bound pod."""
        with self._news:
            if bind.pod in self.rejected:
                return KubeletAnswer.REJECTED
            held = self._room.holdings.get(bind.pod) or self._ended.get(bind.pod)
            return held.answer if held is not None and held.uid == bind.uid else KubeletAnswer.NOTHING

    def is_bound(self, bind: PlannedBinding) -> bool:
        """Whether the last event shows a pod on the node of its binding."""
        with self._news:
            held = self._room.holdings.get(bind.pod)
            there = held is not None and (held.uid, held.node) == (bind.uid, bind.node)
            return there and held is not None and held.seen and held.state is PodState.BOUND

    def wait(self, seconds: float, until: Callable[[], bool]) -> bool:
        """Wait for a condition that only events change; whether it holds."""
        with self._news:
            return self._news.wait_for(until, seconds)

    def all_seen(self, *, answered: bool = False) -> bool:
        """Whether events showed all bindings of this pass, with ``answered`` the kubelets' answers too."""
        return not (self._unanswered if answered else self._unseen)

    def unseen(self) -> set[Key]:
        """Pods of this pass whose bindings no event showed."""
        with self._news:
            return set(self._unseen)

    def is_held(self, bind: PlannedBinding) -> bool:
        """Whether room is held for a binding of this pass, which was or may be made."""
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
            return [self._room.holdings[key].uid for key in self._unanswered]

    def overfull(self) -> list[Overfull]:
        """Overfull nodes, as in :meth:`NodeRoom.overfull`."""
        with self._news:
            return self._room.overfull(self._nodes)

    # ------------------------------------------------------------------------------------------------ what may not be

    def refusal(self, gangs: Collection[GroupKey], binds: Sequence[PlannedBinding]) -> str | None:
        """A sentence on why gangs may not be bound together now; None where they may, as far as is heard."""
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
        """A sentence on why a binding whose room is taken may no longer be made; None where it may.

        Meanwhile its pod or its node may have changed. Rules that are no sums are asked again after changes by others.
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
        """Asked once for the whole batch, and for each binding only where that is refused."""
        batch, version = self._assumed.get(bind.pod), self._rules.version
        if batch is None or batch.version == version:
            return None
        left = [each for each in batch.binds if each.pod in self._unseen and each.node in self._nodes]
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
        for key, each in self.rejected.items():
            others = (other.node for other in self.rejected.values() if other.workload == each.workload)
            if each.node == node and all(other == node for other in others):
                return f"its kubelet rejected Pod {key} ({each.reason})"
        return None

    def _members_refusal(self, gang: GroupKey) -> str | None:
        for key in self._instance.groups[gang].bound:
            held = self._room.holdings.get(key)
            if held is None or held.state is not PodState.BOUND:
                return f"Pod {key} of {gang} is gone"
        return None


def _pod(item: bytes) -> PodManifest | None:
    """The pod of an event; of an unreadable one its room on the node, or None."""
    info = _PODS
    try:
        read: PodManifest = info.read(item)
    except Misfit:
        return held_pod(info, item)
    return read


def _readable(items: Iterable[bytes]) -> dict[str, Node]:
    """Nodes without unreadable ones, so that nothing is bound to those."""
    return read_nodes(readable(BY_ATTRIBUTE["nodes"], items))
