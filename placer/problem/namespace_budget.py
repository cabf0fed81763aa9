"""Costs of each namespace to everybody, and a budget of them, which depends on no clock."""

from __future__ import annotations

import operator
from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any

from placer.problem.findings import Finding
from placer.problem.instance import Group, Instance, Pod
from placer.problem.keys import Key

NAMED = 5


@dataclass(frozen=True, slots=True)
class NamespaceBudget:
    """Most that the pods of one namespace may cost.

    ``terms``: distinct ones of affinity, spread, host ports and demands on nodes. ``bytes``: of labels and annotations,
    and of demands on nodes and pods beyond 2 KiB.
    """

    terms: int = 10_000
    resources: int = 200
    bytes: int = 32 * 2**20


@dataclass(slots=True)
class NamespaceCost:
    """Cost of one namespace, by the names of :class:`NamespaceBudget`.

    ``waiting``: ``pending`` pods beyond the budget. ``part``: share of the distinct kinds of pods.
    """

    namespace: str
    pending: int = 0
    waiting: int = 0
    daemons: int = 0
    terms: set[Hashable] = field(default_factory=set)
    resources: set[Hashable] = field(default_factory=set)
    bytes: int = 0
    part: float = 0.0
    _counted: set[tuple[Hashable, ...]] = field(default_factory=set)

    def add(self, pods: Iterable[Pod]) -> None:
        """Count pods in, looking once at values that equal pods share."""
        for pod in pods:
            self.bytes += pod.text_bytes
            self.daemons += pod.daemon
            shared = *map(id, (pod.requests, pod.neighbours, pod.constraints, pod.host_ports)), *_ranks(pod)
            if not pod.unsupported and shared not in self._counted:
                self._counted.add(shared)
                self.resources.update(pod.requests)
                self.terms.update(_terms(pod))

    def of(self, kind: str) -> int:
        """How much of one kind."""
        found = getattr(self, kind)
        return found if isinstance(found, int) else len(found)

    def share(self, budget: NamespaceBudget) -> float:
        """The largest part of a budget that it takes of any kind."""
        shares: list[float] = [self.of(kind) / max(1, most) for kind, most in asdict(budget).items()]
        return max(shares)

    def as_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {"namespace": self.namespace} | {each.name: self.of(each.name) for each in fields(self)[1:-2]}


def _terms(pod: Pod) -> Iterable[Hashable]:
    asked = pod.neighbours
    yield from (*asked.affinity, *asked.anti_affinity, *asked.spread, *pod.host_ports)
    yield pod.constraints, pod.requests, *_ranks(pod)


def _ranks(pod: Pod) -> tuple[Hashable, ...]:
    """What makes a row of its own of a pod that asks for the same as another one."""
    return pod.priority, pod.queue, pod.sub_group, pod.workload


def namespace_costs(instance: Instance) -> dict[str, NamespaceCost]:
    """Namespace to the cost of its pods, those beyond a budget included."""
    costs = {}
    for namespace, pods in sorted(_by_namespace(instance).items()):
        pending = [pod for pod in pods if not pod.node]
        waiting = sum(pod.key in instance.beyond_budget for pod in pending)
        costs[namespace] = NamespaceCost(namespace, len(pending), waiting)
        costs[namespace].add(pods)
    kinds = sum(len(cost._counted) for cost in costs.values())
    for cost in costs.values():
        cost.part = len(cost._counted) / max(1, kinds)
    return costs


def _by_namespace(instance: Instance) -> dict[str, list[Pod]]:
    found: dict[str, list[Pod]] = defaultdict(list)
    for pod in instance.pods.values():
        found[pod.namespace].append(pod)
    return found


def dearest(instance: Instance, budget: NamespaceBudget | None, most: int | None = NAMED) -> list[NamespaceCost]:
    """The namespaces that spend the largest part of ``budget``, at most ``most``."""
    costs = namespace_costs(instance).values()
    return sorted(costs, key=lambda cost: (-cost.share(budget or NamespaceBudget()), cost.namespace))[:most]


def within_budget(instance: Instance, budget: NamespaceBudget | None) -> Instance:
    """The instance in which the newest groups wait that would have their namespace exceed its ``budget``.

    One that adds nothing is within the budget, however new.
    """
    if budget is None:
        return instance
    groups: dict[str, list[Group]] = defaultdict(list)
    for group in instance.groups.values():
        groups[group.key.namespace].append(group)
    pods = _by_namespace(instance)
    beyond: dict[Key, str] = {}
    findings = []
    cut = {pod.namespace for pod in instance.pending if _is_cut(pod)}
    for name, cost in namespace_costs(instance).items():
        if cost.share(budget) <= 1 and name not in cut:
            continue
        found = _beyond(instance, groups[name], pods[name], cost, budget)
        if found:
            findings.append(_finding(cost, budget, len(found)))
            beyond |= found
    if not beyond:
        return instance
    kept = tuple(sorted((*instance.findings, *findings)))
    return instance.keeping_held(beyond_budget=beyond, findings=kept)


def _beyond(
    instance: Instance, groups: list[Group], pods: list[Pod], cost: NamespaceCost, budget: NamespaceBudget
) -> dict[Key, str]:
    spent = NamespaceCost(cost.namespace)
    spent.add(pod for pod in pods if pod.node)
    found: dict[Key, str] = {}
    for group in sorted((group for group in groups if group.pending), key=operator.attrgetter("created", "key")):
        kind = _exceeded(spent, [instance.pods[key] for key in group.pending], budget)
        if kind is not None:
            found.update(dict.fromkeys(group.pending, _words(kind, cost, budget)))
    return found


def _exceeded(spent: NamespaceCost, pods: list[Pod], budget: NamespaceBudget) -> str | None:
    if any(map(_is_cut, pods)):
        return "bytes"
    more = NamespaceCost(spent.namespace)
    more.add(pods)
    after = {
        "terms": _together(spent.terms, more.terms),
        "resources": _together(spent.resources, more.resources),
        "bytes": spent.bytes + more.bytes if more.bytes else 0,
    }
    kind = next((kind for kind, most in asdict(budget).items() if after[kind] > most), None)
    if kind is None:
        spent.add(pods)
    return kind


def _is_cut(pod: Pod) -> bool:
    """Whether the snapshot has left out the text of a pod for the budget: it counts long objects of all kinds."""
    return any(text.startswith("namespaceBudget.") for text in pod.unsupported)


def _together(spent: set[Hashable], more: set[Hashable]) -> int:
    new = len(more - spent)
    return len(spent) + new if new else 0


_SAID: Mapping[str, str] = {
    "terms": "distinct terms, host ports and node constraints",
    "resources": "distinct resources",
    "bytes": "bytes of labels, annotations and long demands",
}


def _words(kind: str, cost: NamespaceCost, budget: NamespaceBudget) -> str:
    allowed: int = getattr(budget, kind)
    return (
        f"namespaceBudget.{kind}: found {cost.of(kind):,} {_SAID[kind]} of all pods of namespace {cost.namespace}, "
        f"expected at most {allowed:,}; its newest pods that add to them wait"
    )


def _finding(cost: NamespaceCost, budget: NamespaceBudget, waiting: int) -> Finding:
    spent = [f"{kind} {cost.of(kind):,} of {most:,}" for kind, most in asdict(budget).items() if cost.of(kind) > most]
    said = f"spends {', '.join(spent)}; pods that wait for it: {waiting:,}"
    return Finding("BudgetExceeded", f"Namespace {cost.namespace}", said)


def parse_budget(words: str) -> NamespaceBudget | None:
    """Read ``terms=N,resources=N,bytes=N``, ``default``, or ``off``: None; else ValueError."""
    if words in ("off", "default"):
        return None if words == "off" else NamespaceBudget()
    known, found = {each.name for each in fields(NamespaceBudget)}, {}
    for each in words.split(","):
        name, _, number = each.partition("=")
        if name not in known or not number.isdecimal():
            raise ValueError(f"found {words!r}, expected off, default, or {'=N,'.join(asdict(NamespaceBudget()))}=N")
        found[name] = int(number)
    return replace(NamespaceBudget(), **found)
