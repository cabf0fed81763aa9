"""Other schedulers, by the arguments of running pods, and by nominations of pods of a scheduler's name.

Profiles in files are not visible, so there may be more schedulers than are found.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum

import msgspec

from placer.kube.pod import TERMINAL_PHASES
from placer.passes.cluster.reading.client import Server, listed
from placer.passes.cluster.reading.views import PodSpecView, PodView
from placer.problem import Key

__all__ = ["ProcessRole", "SchedulerCensus", "SchedulerProcess", "count_pods"]

_FLAG = "--scheduler-name"
_CONFIG = "--config"
_LABELS = {"app.kubernetes.io/name": "placer", "app.kubernetes.io/component": "pass"}


class ProcessRole(Enum):
    """Role of a process with names of schedulers; its value is a part of the program's name."""

    VOLCANO_SCHEDULER = "vc-scheduler"
    VOLCANO_CONTROLLER = "vc-controller-manager"
    VOLCANO_WEBHOOK = "vc-webhook-manager"
    KUBE_SCHEDULER = "kube-scheduler"
    OTHER = ""


#: Names that these have where they are given none.
_DEFAULTS = {ProcessRole.KUBE_SCHEDULER: ("default-scheduler",)} | dict.fromkeys(
    (ProcessRole.VOLCANO_SCHEDULER, ProcessRole.VOLCANO_CONTROLLER, ProcessRole.VOLCANO_WEBHOOK), ("volcano",)
)


@dataclass(frozen=True, slots=True)
class SchedulerProcess:
    """A container with names of schedulers; without names where it reads them from a file."""

    pod: Key
    role: ProcessRole
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SchedulerCensus:
    """Schedulers in the pods of a cluster."""

    pods: int  #: their number
    processes: tuple[SchedulerProcess, ...]  #: of pods that have not ended
    nominated: tuple[Key, ...]  #: waiting pods of our scheduler's name that are nominated to a node
    placers: tuple[Key, ...]  #: pods of placer's own passes, ended ones included


class _ContainerView(msgspec.Struct):
    image: str = ""
    command: list[str] | None = None
    args: list[str] | None = None

    @property
    def words(self) -> list[str]:
        return [*(self.command or ()), *(self.args or ())]

    @property
    def role(self) -> ProcessRole:
        """By the name of its command, else of its image."""
        program = f"{self.image.rpartition('/')[2]} {self.command[0].rpartition('/')[2] if self.command else ''}"
        return next(each for each in ProcessRole if each.value in program)

    @property
    def scheduler_names(self) -> tuple[str, ...]:
        """As in its arguments; else the default of its program, unless a file may name others."""
        found, words = [], self.words
        for place, word in enumerate(words):
            flag, equals, value = word.partition("=")
            if flag == _FLAG:
                found.append(value if equals else "".join(words[place + 1 : place + 2]))
        if not found and any(word.partition("=")[0] == _CONFIG for word in words):
            return ()
        return tuple(found) or _DEFAULTS.get(self.role, ())


class _SpecView(PodSpecView):
    containers: list[_ContainerView] | None = None


class _ArgumentsView(PodView):
    spec: _SpecView = msgspec.field(default_factory=_SpecView)

    @property
    def processes(self) -> Iterator[SchedulerProcess]:
        for each in self.spec.containers or ():
            if each.role is not ProcessRole.OTHER or each.scheduler_names:
                yield SchedulerProcess(self.key, each.role, each.scheduler_names)


def count_pods(server: Server, scheduler_name: str) -> SchedulerCensus:
    """Look through all pods for schedulers other than ours.

    Raises
    ------
    ClusterError
        The server does not list pods.
    """
    pods = list(listed(server.get, "/api/v1/pods", _ArgumentsView))
    ours = [each for each in pods if _is_placer(each)]
    others = [each for each in pods if not _is_placer(each) and each.status.phase not in TERMINAL_PHASES]
    return SchedulerCensus(
        len(pods),
        tuple(process for each in others for process in each.processes),
        _keys([each for each in others if _is_nominated(each, scheduler_name)]),
        _keys(ours),
    )


def _is_placer(pod: _ArgumentsView) -> bool:
    return _LABELS.items() <= (pod.metadata.labels or {}).items()


def _is_nominated(pod: _ArgumentsView, scheduler_name: str) -> bool:
    waits = pod.spec.scheduler_name == scheduler_name and not pod.spec.node_name
    return waits and bool(pod.status.nominated_node_name)


def _keys(pods: Sequence[_ArgumentsView]) -> tuple[Key, ...]:
    return tuple(sorted(each.key for each in pods))
