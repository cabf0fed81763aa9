"""The ledger: what room every node has, from the snapshot to the last binding.

It begins with the snapshot's instance, hears every event of pods and nodes since, and takes room for a pod from the
moment its binding goes out. Before a gang is bound it is asked whether the gang may still go (:meth:`Ledger.refusal`).

Another scheduler can bind between our last look and our binding, and nobody can exclude that. But events of pods come
in the order in which they were written: once our own binding is among them, every earlier one is known, so what is too
much on a node is found afterwards (:meth:`Ledger.overfull`), and only then reported.

Looked at anew are capacity and host ports (C2), the node itself (C3), pods that are not as they were, bound members of
the gang that are gone (C5), and by :mod:`placer.cluster.rules` the rules that are no sums on a node.
"""

from __future__ import annotations

import threading
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
from pydantic import ValidationError

from placer.cluster.cooling import TAINT
from placer.cluster.daemons import is_stand_in, stand_in_for
from placer.cluster.glance import Glance, Said
from placer.cluster.kept import pages_of, readable
from placer.cluster.plan import Bind
from placer.cluster.rules import Rules
from placer.cluster.snapshot import Snapshot
from placer.instance import GroupKey, HostPort, Instance, Key, Node, PodState
from placer.instance.build import read_nodes
from placer.instance.eligibility import host_ports
from placer.instance.pod_states import Ownership
from placer.instance.requests import pod_requests
from placer.kube import BY_ATTRIBUTE
from placer.quantity import Resources, format_amount

__all__ = ["Ledger", "Overfull"]

_ON_NODE = (PodState.BOUND, PodState.TERMINATING)


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
class _Held:
    """A pod that holds room on a node; ``ours`` where that is by a binding of this pass."""

    uid: str
    node: str
    state: PodState
    requests: Resources
    ports: tuple[HostPort, ...]
    ours: bool = False
    seen: bool = True  #: whether an event showed it there
    said: Said = Said.NOTHING

    def is_as(self, other: _Held) -> bool:
        """Whether another one is the same pod and holds the same, in the same way."""
        one, two = ((each.uid, each.node, each.requests, each.state in _ON_NODE) for each in (self, other))
        return one == two


@dataclass(slots=True)
class _Waiting:
    """A pending pod that is ours: as the snapshot has it, and whether that is still so."""

    uid: str
    text: bytes
    changed: bool = False


class Ledger:
    """Who holds what; may be used from several threads.

    Parameters
    ----------
    snapshot
        With which it begins.
    instance
        Made of it.
    """

    def __init__(self, snapshot: Snapshot, instance: Instance) -> None:
        self._instance = instance
        self._told = threading.Condition(threading.RLock())
        self._ownership = Ownership(snapshot.scheduler_name, cluster=True)
        self._nodes: dict[str, Node] = dict(instance.nodes)
        self._used: dict[str, Counter[str]] = defaultdict(Counter)
        self._on: dict[str, set[Key]] = defaultdict(set)
        self._held: dict[Key, _Held] = {}
        self._ended: dict[Key, _Held] = {}
        self._unseen: set[Key] = set()  # bindings of this pass that no event has shown yet
        self._silent: set[Key] = set()  # those to which no kubelet has answered
        self._rules = Rules(snapshot, instance)
        # Also for pods that tolerate every taint.
        cooling = (name for name, node in instance.nodes.items() if any(taint.key == TAINT for taint in node.taints))
        self._cooling: dict[str, str] = dict.fromkeys(cooling, "its kubelet rejected a pod of ours")
        self.rejected: dict[Key, tuple[str, str]] = {}  #: pods of this pass to node and reason of the kubelet
        self.lost: Callable[[], str | None] = lambda: None  #: why nothing is heard, or None; whoever feeds it says so
        identities = snapshot.identities
        for key, pod in instance.pods.items():
            if pod.node is not None:
                held = _Held(identities[key].uid, pod.node, pod.state, pod.requests, pod.host_ports)
                self._hold(key, held)
                self._rules.stands(key, pod.node)
        self._waiting = {
            key: _Waiting(identities[key].uid, text)
            for key, text in snapshot.pod_texts(pod.key for pod in instance.pending).items()
        }

    # ------------------------------------------------------------------------------------------------- what happens

    def pod_happened(self, kind: str, item: bytes) -> None:
        """Hear an event of a pod: ADDED, MODIFIED or DELETED, and the pod as it came."""
        glance = msgspec.json.decode(item, type=Glance)
        with self._told:
            if kind == "DELETED":
                self._gone(glance.key)
            else:
                self._there(glance, item)
            self._told.notify_all()

    def pods_replaced(self, items: Sequence[bytes]) -> None:
        """Hear all pods that there are."""
        glances = [(msgspec.json.decode(item, type=Glance), item) for item in items]
        with self._told:
            there = {glance.key for glance, _ in glances}
            for key in [key for key in (*self._held, *self._waiting) if key not in there and not is_stand_in(key)]:
                self._gone(key)
            for glance, item in glances:
                self._there(glance, item)
            self._told.notify_all()

    def node_happened(self, kind: str, item: bytes) -> None:
        """Hear an event of a node."""
        name = msgspec.json.decode(item, type=Glance).metadata.name
        found = {} if kind == "DELETED" else _readable([item])
        with self._told:
            self._nodes.pop(name, None)
            self._nodes |= found
            self._rules.nodes_changed(found)
            self._told.notify_all()

    def nodes_replaced(self, items: Sequence[bytes]) -> None:
        """Hear all nodes that there are."""
        found = _readable(items)
        with self._told:
            self._nodes = found
            self._rules.nodes_changed(found)
            self._told.notify_all()

    def _gone(self, key: Key) -> None:
        if key in self._waiting:
            self._waiting[key].changed = True
        self._release(key)

    def _there(self, glance: Glance, item: bytes) -> None:
        key, held = glance.key, self._held.get(glance.key)
        if held is not None and held.ours and held.uid == glance.metadata.uid:
            if glance.spec.node_name is None:
                return  # of before the binding
            if glance.spec.node_name == held.node and glance.metadata.deletion_timestamp is None:
                self._answered(key, held, glance)
                return
        if key in self._waiting:
            self._compare(self._waiting[key], glance, item)
        self._read(key, glance, item)

    def _answered(self, key: Key, held: _Held, glance: Glance) -> None:
        """Hear of a pod of this pass where we bound it."""
        held.seen, held.said = True, glance.said
        self._unseen.discard(key)
        if held.said is not Said.NOTHING:
            self._silent.discard(key)
        if held.said is Said.REJECTED:
            reason = glance.status.reason or "Failed"
            self.rejected[key] = (held.node, reason)
            self._cooling[held.node] = f"its kubelet rejected Pod {key} ({reason})"
            self._release(key)
        elif glance.status.phase in ("Succeeded", "Failed"):
            self._ended[key] = held
            self._release(key)

    def _compare(self, waiting: _Waiting, glance: Glance, item: bytes) -> None:
        """Notice that a pending pod is no longer what was decided upon."""
        gone = glance.metadata.uid != waiting.uid or glance.metadata.deletion_timestamp or glance.spec.node_name
        if gone or glance.said is not Said.NOTHING:
            waiting.changed = True
        elif not waiting.changed:
            (text,) = pages_of(BY_ATTRIBUTE["pods"], "v1").read(b'{"items":[' + item + b"]}").items
            waiting.changed = _essence(text) != _essence(waiting.text)

    def _read(self, key: Key, glance: Glance, item: bytes) -> None:
        """Note what a pod holds that is not of this pass."""
        try:
            pod = BY_ATTRIBUTE["pods"].read(item)
        except ValidationError:  # what cannot be read may hold anything
            if glance.spec.node_name:
                self._cooling[glance.spec.node_name] = f"Pod {key} on it cannot be read"
            return
        state = self._ownership.state(pod)
        status = pod.status
        node = pod.spec.node_name or (status.nominated_node_name if status is not None else None)
        if state is None or state is PodState.PENDING or not node:
            self._release(key)
            return
        replaced = stand_in_for(pod.metadata, key.namespace, node)
        if replaced is not None and state in _ON_NODE:
            self._release(replaced)
        requests = pod_requests(pod.spec, status if state in _ON_NODE else None)
        new = _Held(glance.metadata.uid, node, state, requests, host_ports(pod.spec))
        old = self._held.get(key)
        if old is not None and old.is_as(new):
            old.state = state
            return
        self._release(key)
        self._hold(key, new)
        self._rules.came(key, pod, node, state)

    def _hold(self, key: Key, held: _Held) -> None:
        self._held[key] = held
        self._on[held.node].add(key)
        self._used[held.node].update(dict(held.requests))

    def _release(self, key: Key) -> None:
        held = self._held.pop(key, None)
        self._unseen.discard(key)
        self._silent.discard(key)
        if held is not None:
            self._on[held.node].discard(key)
            self._used[held.node].subtract(dict(held.requests))
            self._rules.went(key)

    # ---------------------------------------------------------------------------------------------------- what we do

    @property
    def nodes(self) -> Mapping[str, Node]:
        """The nodes as they are now, by name."""
        return self._nodes

    def changed(self) -> set[Key]:
        """Pending pods that are no longer as the snapshot has them."""
        with self._told:
            return {key for key, waiting in self._waiting.items() if waiting.changed}

    def refusal(self, gangs: Collection[GroupKey], binds: Sequence[Bind]) -> str | None:
        """Why gangs may not be bound now, in one sentence; None where they may.

        Parameters
        ----------
        gangs
            That are bound together.
        binds
            All their bindings.
        """
        with self._told:
            return (
                self.lost()
                or next(filter(None, map(self._pod_refusal, binds)), None)
                or next(filter(None, map(self._members_refusal, gangs)), None)
                or self._room_refusal(binds)
                or self._rules.refusal(gangs, binds, self._nodes, self._texts(binds))
            )

    def _texts(self, binds: Iterable[Bind]) -> dict[Key, bytes]:
        return {each.pod: self._waiting[each.pod].text for each in binds}

    def assume(self, binds: Iterable[Bind]) -> None:
        """Take the room of bindings that go out."""
        with self._told:
            for each in binds:
                pod = self._instance.pods[each.pod]
                held = _Held(each.uid, each.node, PodState.BOUND, pod.requests, pod.host_ports, ours=True, seen=False)
                self._hold(each.pod, held)
                self._rules.stands(each.pod, each.node)
                self._unseen.add(each.pod)
                self._silent.add(each.pod)

    def forget(self, bind: Bind) -> None:
        """Give back the room of a binding that was not made; what somebody else holds stays."""
        with self._told:
            held = self._held.get(bind.pod)
            if held is not None and held.ours and not held.seen and held.uid == bind.uid:
                self._rules.forget(bind.pod)
                self._release(bind.pod)

    def said(self, bind: Bind) -> Said:
        """What the kubelet said of a pod that was bound."""
        with self._told:
            if bind.pod in self.rejected:
                return Said.REJECTED
            held = self._held.get(bind.pod) or self._ended.get(bind.pod)
            return held.said if held is not None and held.uid == bind.uid else Said.NOTHING

    def is_bound(self, bind: Bind) -> bool:
        """Whether an event showed a pod on the node that it was bound to, and no later one that it is gone."""
        with self._told:
            held = self._held.get(bind.pod)
            there = held is not None and (held.uid, held.node) == (bind.uid, bind.node)
            return there and held is not None and held.seen and held.state is PodState.BOUND

    def wait(self, seconds: float, until: Callable[[], bool]) -> bool:
        """Wait until something is so that only events change; whether it is."""
        with self._told:
            return self._told.wait_for(until, seconds)

    def all_seen(self, *, answered: bool = False) -> bool:
        """Whether the bindings of this pass came back as events, with ``answered`` those of their kubelets too."""
        return not (self._silent if answered else self._unseen)

    def overfull(self) -> list[Overfull]:
        """What is too much on nodes on which pods of this pass want it too."""
        with self._told:
            ours = {held.node for held in self._held.values() if held.ours}
            return [each for name in sorted(ours) if name in self._nodes for each in self._overfull(self._nodes[name])]

    def _overfull(self, node: Node) -> Iterator[Overfull]:
        standing = [held for held in map(self._held.__getitem__, self._on[node.name]) if held.state in _ON_NODE]
        for resource in sorted({name for held in standing if held.ours for name in held.requests}):
            amount = sum(held.requests[resource] for held in standing)
            if amount > node.allocatable[resource]:
                yield Overfull(node.name, resource, amount, node.allocatable[resource])

    # ------------------------------------------------------------------------------------------------ what may not be

    def _pod_refusal(self, bind: Bind) -> str | None:
        waiting = self._waiting.get(bind.pod)
        if waiting is None or waiting.changed or waiting.uid != bind.uid:
            return f"Pod {bind.pod} has changed since the snapshot"
        node = self._nodes.get(bind.node)
        if node is None:
            return f"Node {bind.node} is gone"
        if bind.node in self._cooling:
            return f"Node {bind.node} cools down: {self._cooling[bind.node]}"
        refused = self._instance.pods[bind.pod].constraints.refusal(node)
        return None if refused is None else f"Pod {bind.pod} may no longer run on Node {bind.node}: {refused}"

    def _members_refusal(self, gang: GroupKey) -> str | None:
        """Whether a bound member is gone without which the gang may not be ready."""
        for key in self._instance.groups[gang].bound:
            held = self._held.get(key)
            if held is None or held.state is not PodState.BOUND:
                return f"Pod {key} of {gang} is gone"
        return None

    def _room_refusal(self, binds: Iterable[Bind]) -> str | None:
        by_node: dict[str, list[Key]] = defaultdict(list)
        for each in binds:
            by_node[each.node].append(each.pod)
        for name, keys in by_node.items():
            wanted: Counter[str] = Counter()
            for key in keys:
                wanted.update(dict(self._instance.pods[key].requests))
            for resource, amount in sorted(wanted.items()):
                room = self._nodes[name].allocatable[resource] - self._used[name][resource]
                if amount > room:
                    amounts = " of ".join(format_amount(resource, each) for each in (amount, max(0, room)))
                    return f"the room is gone on Node {name}: {resource} {amounts} left"
            taken = [port for key in self._on[name] for port in self._held[key].ports]
            wants = [port for key in keys for port in self._instance.pods[key].host_ports]
            clash = next((port for port in wants if any(port.clashes(other) for other in taken)), None)
            if clash is not None:
                return f"the room is gone on Node {name}: {clash.protocol} host port {clash.port}"
        return None


def _readable(items: Iterable[bytes]) -> dict[str, Node]:
    """Nodes; one that cannot be read is none, so nothing is bound to it."""
    return read_nodes(readable(BY_ATTRIBUTE["nodes"], items))


def _essence(text: bytes) -> Any:
    """What a decision looks at in a pending pod: everything kept but its version and its status."""
    document = msgspec.json.decode(text)
    metadata = {key: value for key, value in document["metadata"].items() if key != "resourceVersion"}
    return metadata, document.get("spec")
