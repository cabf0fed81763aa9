"""Names by which users call a group, and the groups that namespace and labels select."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TypeVar

from placer.base.errors import UsageError
from placer.base.text import alike, found_like
from placer.kube.manifests.label_selectors import matches, parse_label_selector
from placer.kube.marks import KUEUE_GROUP
from placer.problem.instance import Instance, Pod
from placer.problem.keys import GroupKey, Key
from placer.problem.neighbour_demand import JOB_NAMES
from placer.problem.pod_states import JOB_SET, LEADER_WORKER_SET

NAMED = 8  #: groups that wait, of those that a message names

HOME = "default"  #: the namespace of a user who states none

Named = TypeVar("Named", Key, GroupKey)

_PODS = ("pod", "pods", "po")
_WORKLOADS = (
    *("job", "jobs", "vcjob", "vcjobs", "jobset", "jobsets", "appgroup", "appgroups"),
    *("deployment", "deployments", "deploy", "statefulset", "statefulsets", "sts", "replicaset", "replicasets", "rs"),
)
_KINDS = ("podgroup", "podgroups", "pg", *_PODS, *_WORKLOADS)
#: Labels by which pods name their workload.
_OF_WORKLOAD = (*JOB_NAMES, "volcano.sh/job-name", JOB_SET, LEADER_WORKER_SET, KUEUE_GROUP)
#: The end that Volcano gives the PodGroup of a job.
_UID = re.compile(r"-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\Z")


def full_name(key: GroupKey) -> str:
    """Give the name that only one group has."""
    kind = ".".join(filter(None, (key.kind.lower(), key.api_group)))
    return f"{kind}/{key.namespace}/{key.name}"


def called(instance: Instance, key: GroupKey) -> str:
    """Name a group with its namespace; a PodGroup of a Volcano Job by that, where nothing else is called so."""
    job, space = _UID.sub("", key.name), key.namespace
    if job == key.name or Key(space, job) in instance.pods:
        return f"{space}/{key.name}"
    near = (each.name for each in instance.groups if each.name.startswith(job) and each.namespace == space)
    alone = sum(_UID.sub("", name) == job for name in near) == 1
    return f"{space}/{job if alone else key.name}"


@dataclass(frozen=True, slots=True)
class CalledGroup:
    """A group as a user names it, by itself or by a pod; empty ``kind`` and ``api_group``: any."""

    name: str
    namespace: str | None = None
    kind: str = ""
    api_group: str = ""

    @classmethod
    def of(cls, words: str, namespace: str | None = None) -> CalledGroup:
        """Read ``[KIND[.GROUP]/][NAMESPACE/]NAME``, in ``namespace`` where the words state none.

        Examples
        --------
        >>> CalledGroup.of("podgroup.kueue.x-k8s.io/ml/train").api_group, CalledGroup.of("pod/train-0").kind
        ('kueue.x-k8s.io', 'pod')
        """
        head, _, rest = words.partition("/")
        kind, _, api_group = head.lower().partition(".")
        is_kind = kind in _KINDS and bool(rest)
        stated, _, name = (rest if is_kind else words).rpartition("/")
        place = stated or namespace
        return cls(name, place, kind, api_group) if is_kind else cls(name, place)

    def groups(self, instance: Instance, home: str = HOME) -> set[GroupKey]:
        """The groups that are meant, those in ``home`` and with pending pods first."""
        found = self._named(instance, home) or self._of_pods(instance, home) or self._of_workload(instance, home)
        if not found and self.namespace is None and self.kind and not self.api_group:  # a namespace may be called so
            return CalledGroup(self.name, self.kind).groups(instance)
        return found

    def _named(self, instance: Instance, home: str) -> set[GroupKey]:
        named = self._inside({key for key in instance.groups if key.name == self.name and self._means(key)}, home)
        return {key for key in named if instance.groups[key].pending} or named

    def refuse_several(self, found: Collection[GroupKey], option: str) -> None:
        """Refuse several groups of the name, unless one workload made them."""
        one_workload = len({key.namespace for key in found}) == 1 and self.name not in {key.name for key in found}
        if len(found) > 1 and not one_workload:
            names = ", ".join(sorted(map(full_name, found)))
            raise UsageError(f"{option}: found {len(found)} groups of that name, expected one of {names}")

    def means_pod(self, key: Key, labels: Mapping[str, str] = MappingProxyType({})) -> bool:
        """Whether a pod has this name, or a workload of this name made it as ``labels`` say."""
        return self.name in (key.name, *map(labels.get, _OF_WORKLOAD)) and self.namespace in (None, key.namespace)

    def _inside(self, keys: set[Named], home: str) -> set[Named]:
        inside = {key for key in keys if key.namespace == (home if self.namespace is None else self.namespace)}
        return inside if inside or self.namespace is not None else keys

    def _means(self, key: GroupKey) -> bool:
        if not self.kind:
            return True
        if self.kind in _WORKLOADS:
            return False
        return (self.kind in _PODS) is (key.kind == "Pod") and self.api_group in ("", key.api_group)

    def _of_workload(self, instance: Instance, home: str) -> set[GroupKey]:
        if self.kind not in ("", *_WORKLOADS):
            return set()
        found = {group_of(pod) for pod in instance.pending if self._is_of_workload(pod)}
        return self._inside(found & instance.groups.keys(), home)

    def made(self, pod: Pod) -> bool:
        """Whether a pod has this name, or a workload of this name made it."""
        return self.means_pod(pod.key) or (self.kind in ("", *_WORKLOADS) and self._is_of_workload(pod))

    def _is_of_workload(self, pod: Pod) -> bool:
        group = pod.group.name if pod.group is not None else ""
        by_uid = group.startswith(self.name) and _UID.fullmatch(group, len(self.name)) is not None
        names = (pod.app_group.name if pod.app_group is not None else None, *map(pod.labels.get, _OF_WORKLOAD))
        return (by_uid or self.name in names or self._makes(pod)) and self.namespace in (None, pod.namespace)

    def _makes(self, pod: Pod) -> bool:
        """Whether a Deployment or StatefulSet of this name calls its pods so."""
        rest = pod.name.removeprefix(self.name)
        by_hash = f"-{pod.labels.get('pod-template-hash', ' ')}"
        return rest != pod.name and (
            re.fullmatch(r"-\d+", rest) is not None or rest.startswith(f"{by_hash}-") or self.name.endswith(by_hash)
        )

    def _of_pods(self, instance: Instance, home: str) -> set[GroupKey]:
        if self.kind not in ("", *_PODS):
            return set()
        pods = self._inside({key for key in instance.pods if self.means_pod(key)}, home)
        found = {instance.pods[key].group for key in pods}
        return {key for key in found if key is not None and key in instance.groups}


@dataclass(frozen=True, slots=True)
class Selection:
    """Groups that are asked about, by namespace, by labels of a pod and by queue."""

    namespace: str | None = None
    selector: str | None = None
    queue: str | None = None

    @property
    def words(self) -> str:
        """Which these are, to be appended; empty for all."""
        parts = ((" of namespace ", self.namespace), (" with pods of ", self.selector), (" of Queue ", self.queue))
        return "".join(f"{before}{value}" for before, value in parts if value is not None)

    def groups(self, instance: Instance) -> list[GroupKey]:
        """Find them, in the order of the instance, or raise UsageError."""
        alone = (group_of(pod) for pod in instance.pods.values() if pod.group is None)
        found = [key for key in (*instance.groups, *alone) if self.namespace in (None, key.namespace)]
        if self.queue is not None:
            pods = instance.pods.values()
            queued = {group_of(pod) for pod in pods if self.queue in (pod.queue, *instance.queue_path(pod.queue))}
            found = [key for key in found if key in queued]
        if self.selector is None:
            return found
        labelled = _labelled(instance, self.selector)
        return [key for key in found if key in labelled]

    def absent_work(self, instance: Instance) -> tuple[str, ...]:
        """Give the sentences about work of the namespace that makes no pods yet; none where labels or queue select."""
        of = "" if self.namespace is None else f" ({self.namespace}/"
        return tuple(each for each in instance.absent_work if of in each and self.selector is self.queue is None)

    def none(self, instance: Instance, does: str) -> str:
        """Say that none of them does something, and which namespace may be meant."""
        like = found_like(self.namespace or "", {pod.namespace for pod in instance.pods})
        like += found_like(self.queue or "", instance.queues)
        return f"No group{self.words} {does}{like}."


EVERY = Selection()  #: all groups


def _labelled(instance: Instance, selector: str) -> set[GroupKey]:
    try:
        tests = parse_label_selector(selector)
    except ValueError:
        raise UsageError(f"-l: found {selector!r}, expected a selector such as app=train,!spare") from None
    return {group_of(pod) for pod in instance.pods.values() if matches(tests, pod.labels)}


def group_of(pod: Pod) -> GroupKey:
    """The group of a pod; one in none is a group of its own."""
    return GroupKey("", pod.namespace, pod.name) if pod.group is None else pod.group


def _absent(instance: Instance, called: CalledGroup) -> str | None:
    place = re.escape(called.namespace) if called.namespace else "[a-z0-9-]+"
    named = re.compile(rf"(?<![\w./-]){place}/{re.escape(called.name)}(?![\w.-])")
    return next(filter(named.search, instance.absent_work), None)


def waiting_like(instance: Instance, asked: CalledGroup) -> str:
    """Work of this name that makes no pods yet, a waiting group with a name like it, or the list of those that wait."""
    absent = _absent(instance, asked)
    if absent is not None:
        return absent
    waiting = sorted((key.namespace, key.name, key) for key, group in instance.groups.items() if group.pending)
    if not waiting:
        return "nothing waits"
    own = (each for each in waiting if each[0] == asked.namespace)
    by_name = {_UID.sub("", name): key for _, name, key in (*waiting, *own)}
    like = alike(asked.name, by_name)  # in its namespace, else in any, which may be the one that is meant
    if like is not None:
        return f"found like it: {called(instance, by_name[like])}"
    more = f" and {len(waiting) - NAMED:,} more" if len(waiting) > NAMED else ""
    return f"expected one of {', '.join(called(instance, key) for *_, key in waiting[:NAMED])}{more}"
