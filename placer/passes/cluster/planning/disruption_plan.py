"""A placement that disturbs, against the cluster as it is now: the steps left, its validity, and replacements of pods.

The replacement of a moved pod is a new pod of its controller with the same requests: of its name, else with its labels,
else any. Pods of other schedulers are protected, since those would refill their room at once.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain

from placer.kube.manifests import load
from placer.passes.cluster.reading.guards import Guards
from placer.passes.cluster.reading.snapshot import Identity, Snapshot
from placer.passes.cluster.reading.views import ObjectView, PodView, read_view
from placer.problem import GroupKey, Instance, Key, Pod
from placer.problem.instance_builder import make_instance
from placer.problem.placement import Binding, Placement, Step
from placer.problem.wanted import wanted_text
from placer.problem.what_if import protecting
from placer.rules import verify

__all__ = [
    "DisruptionReport",
    "made_again",
    "only_ours",
    "owners",
    "rest_of",
    "trouble_with",
    "with_wanted",
]


@dataclass
class DisruptionReport:
    """The progress of a placement that disturbs."""

    planned: int = 0  #: number of pods that were to leave
    evicted: list[Key] = field(default_factory=list)  #: pods in order, the moved ones among them
    standing: list[Key] = field(default_factory=list)  #: evicted pods that were not gone in time
    #: Pod that was moved, or ran on a lost node, to its bound replacement.
    moved: dict[Key, Key] = field(default_factory=dict)
    #: Evicted pods without a replacement in time, or without room for it.
    not_moved: list[Key] = field(default_factory=list)
    #: The reason for another placement of the gaining pods than planned; None where there was none.
    elsewhere: str | None = None
    trouble: str | None = None  #: the reason for which the plan was not completed; None where it was


def owners(snapshot: Snapshot, pods: Iterable[Key]) -> dict[Key, str]:
    """The uid of the controller of each pod that has one."""
    views = (read_view(text, PodView) for text in snapshot.pod_texts(pods).values())
    return {view.key: view.controller.uid for view in views if view.controller is not None}


def only_ours(snapshot: Snapshot, instance: Instance, guards: Guards) -> Instance:
    """The instance with pods protected that passes may not evict.

    Those are pods of other schedulers and namespaces, and pods of two disruption budgets, which the server never
    evicts.
    """
    budgets = Counter(key for budget in instance.budgets if not budget.of_policy for key in budget.pods)
    why = {key: "the server evicts no pod of two disruption budgets" for key, count in budgets.items() if count > 1}
    for text in snapshot.of_kind("Pod"):
        view = read_view(text, PodView)
        if view.spec.scheduler_name != snapshot.scheduler_name:
            why[view.key] = f"its scheduler is {view.spec.scheduler_name or 'another one'}"
        elif not guards.admits(view.metadata.namespace):
            why[view.key] = "its namespace is not among those that may be touched"
    return protecting(instance, why)


def with_wanted(snapshot: Snapshot, instance: Instance, objects: Sequence[str]) -> Instance:
    """The instance of a snapshot with wanted objects waiting, except those that are in the cluster."""
    there = {_named(item) for item in snapshot.items} if objects else set()
    new = [each for each in objects if _named(each.encode()) not in there]
    if not new:
        return instance
    added = load([snapshot.text()], with_=wanted_text(new), lenient=True)
    return make_instance(added, scheduler_name=snapshot.scheduler_name, cluster=True, gates=snapshot.gates)


def _named(item: bytes) -> tuple[str, Key]:
    found = read_view(item, ObjectView)
    return found.kind, found.key


def rest_of(placement: Placement, done: int, renamed: Mapping[Key, Key]) -> Placement:
    """A placement without its first ``done`` steps."""
    steps = placement.steps[done:]
    goes = frozenset(chain.from_iterable(step.go for step in steps))
    comes = frozenset(chain.from_iterable(step.bind for step in steps))
    made = comes & renamed.keys()
    again = (replace(each, pod=renamed[each.pod]) for each in _of((*placement.bindings, *placement.moves), made))
    return Placement(
        bindings=(*_of(placement.bindings, comes - made), *again),
        evictions=tuple(filter(goes.__contains__, placement.evictions)),
        moves=_of(placement.moves, goes),
        steps=tuple(Step(step.go, tuple(renamed.get(key, key) for key in step.bind)) for step in steps),
        freed=placement.freed,
    )


def _of(bindings: Iterable[Binding], pods: Collection[Key]) -> tuple[Binding, ...]:
    return tuple(each for each in bindings if each.pod in pods)


def trouble_with(
    instance: Instance,
    rest: Placement,
    now: Mapping[Key, Identity],
    decided: Mapping[Key, Identity],
    fits: Callable[[Instance], bool],
) -> str | None:
    """A sentence on why a plan no longer holds; None where it does.

    Parameters
    ----------
    now, decided
        Pods now, and at the time of the decision.
    fits
        Whether the gaining pods fit into an instance although nothing leaves.
    """
    named = (*(each.pod for each in (*rest.bindings, *rest.moves)), *rest.evictions)
    for key in filter(decided.__contains__, named):  # what is wanted need not be there
        if key not in now:
            return f"Pod {key} is gone"
        if now[key].uid != decided[key].uid:
            return f"Pod {key} was made again"
    broken = verify(instance, rest)
    if broken:
        return f"the cluster has changed: {broken[0].message}"
    return "there is room now without anything that goes" if rest.disturbs and fits(instance) else None


# --------------------------------------------------------------------------------------------------------- made again


def made_again(
    moved: Mapping[Key, str],
    before: Instance,
    now: Instance,
    made: Mapping[Key, str],
) -> dict[Key, Key]:
    """Each moved pod to its replacement, where there is one.

    Parameters
    ----------
    moved, made
        Moved pods, and newer pods, to the uids of their controllers.
    """
    free: dict[tuple[object, ...], list[Key]] = defaultdict(list)
    for key, uid in sorted(made.items()):
        if key in now.pods:
            free[_role(now, now.pods[key], uid)].append(key)
    found: dict[Key, Key] = {}
    same: tuple[Callable[[Pod, Pod], bool], ...] = (
        lambda one, other: one.key == other.key,
        lambda one, other: dict(one.labels) == dict(other.labels),
        lambda _one, _other: True,
    )
    for alike in same:
        for key in sorted(moved.keys() - found.keys()):
            pod = before.pods[key]
            there = free[_role(before, pod, moved[key])]
            match = next((each for each in there if alike(pod, now.pods[each])), None)
            if match is not None:
                there.remove(match)
                found[key] = match
    return found


def _role(instance: Instance, pod: Pod, owner: str) -> tuple[object, ...]:
    group = instance.groups.get(pod.group) if pod.group is not None and pod.group.api_group else None
    part = group.sub_groups[pod.sub_group].name if group is not None and pod.sub_group is not None else ""
    name: GroupKey | None = group.key if group is not None else None
    return owner, pod.namespace, name, part, pod.role, pod.requests, pod.constraints, pod.host_ports
