"""A pod as a demand, and where it stands."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

from placer.instance.constraints import Constraints
from placer.instance.numa import NumaDemand
from placer.quantity import Resources

if TYPE_CHECKING:
    from placer.instance.group import GroupKey

__all__ = ["HostPort", "Key", "Pod", "PodState"]


class Key(NamedTuple):
    """Namespace and name of an object of one kind."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


class PodState(Enum):
    """What a pod is to us."""

    PENDING = "pending"  #: ours to place
    BOUND = "bound"  #: has a node and runs or will; keeps it (C1)
    TERMINATING = "terminating"  #: bound and being deleted: holds its room (C2, C9, C11), counts for nothing else
    NOMINATED = "nominated"  #: another scheduler's pending pod that holds its room on its nominated node (C2 only)


class HostPort(NamedTuple):
    """A port taken on the node itself; ``ip`` 0.0.0.0 is every address."""

    protocol: str
    ip: str
    port: int

    def clashes(self, other: HostPort) -> bool:
        """Whether both cannot be open on one node."""
        same_port = self.protocol == other.protocol and self.port == other.port
        return same_port and (self.ip == other.ip or "0.0.0.0" in (self.ip, other.ip))


@dataclass(frozen=True, slots=True)
class Pod:
    """A pod that is pending for us, or that holds room.

    Parameters
    ----------
    namespace, name
        Its key.
    state
        See :class:`PodState`.
    requests
        By the Kubernetes formula, ``pods: 1`` included.
    constraints
        What it asks of nodes (C3); shared between equal pods.
    host_ports
        Ports it takes on the node (C2).
    node
        The node it is bound to (or nominated to); None while pending. May name a node that is not in the instance.
    priority
        Its own priority (spec.priority, else its class, else the global default class, else 0).
    group
        The PodGroup it names, or for a pending pod without one the group of its own name; None otherwise.
    sub_group
        Index into the group's ``sub_groups``; None where no policy takes it.
    role
        ``volcano.sh/task-spec``; empty where absent.
    queue
        Name of the Volcano queue whose capability it counts against (C11); None: in no queue.
    created
        Seconds since the epoch; 0.0 where the object does not say.
    daemon
        DaemonSet or static pod: does not make its node count as used (O4).
    app_group
        Namespace and name of the AppGroup it is of (C8, C9, O3); None: of none.
    workload
        Its workload there; None where it is of none that the AppGroup knows, so that it has no dependencies.
    numa
        What it asks of the NUMA zones of its node (C10); None where no kubelet would align anything of it, and in an
        instance without zones.
    unsupported
        Fields that ask for what is not modelled (C4), as ``field: what``; such a pod is never bound.
    """

    namespace: str
    name: str
    state: PodState
    requests: Resources
    constraints: Constraints
    host_ports: tuple[HostPort, ...] = ()
    node: str | None = None
    priority: int = 0
    group: GroupKey | None = None
    sub_group: int | None = None
    role: str = ""
    queue: str | None = None
    created: float = 0.0
    daemon: bool = False
    app_group: Key | None = None
    workload: str | None = None
    numa: NumaDemand | None = None
    unsupported: tuple[str, ...] = ()

    @property
    def key(self) -> Key:
        """Namespace and name."""
        return Key(self.namespace, self.name)

    @property
    def holds_queue(self) -> bool:
        """Whether it takes of its queue's capability already (C11): it runs, or is being deleted."""
        return self.state in (PodState.BOUND, PodState.TERMINATING)
