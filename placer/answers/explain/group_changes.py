"""Changes of the group's own demands: its tier limit, its minimum, its calls, its priority, its faults."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from placer.answers.explain.cases import Change
from placer.answers.reasons.cause import plural
from placer.base.words import and_list
from placer.problem import Dependency, Group, Instance, Key, NetworkTopology, Pod
from placer.problem.communication import SAME_ZONE_COST, UNKNOWN_COST
from placer.problem.gangs import COSCHEDULING, KAI, UPSTREAM, VOLCANO
from placer.problem.instance import SubGroupPolicy
from placer.problem.neighbour_demand import DOMAIN_ANNOTATIONS
from placer.problem.neighbours import DomainUnit, Neighbours

if TYPE_CHECKING:
    from placer.answers.explain.question import Question


#: How much these changes disturb, the least first.
CORRECT, TIER, MEMBERS, CALLS, PRIORITY = 3, 4, 5, 5, 7

#: Costs of calls that are tried from the first one on which is found to let the group in.
MORE_COSTS = 3

#: No API server lets anybody make these changes to a pod that is there.
MADE_AGAIN = " (its pods must be made again)"

_PRIORITY_CLASS = "placer-what-if"
_WHOLE = "spec.networkTopology"

_LIMIT_FIELDS = ("highestTierName", "highestTierAllowed")
_GANGS = (VOLCANO, COSCHEDULING)
_VOLCANO_JOBS = "batch.volcano.sh"

#: API group of a PodGroup to where its minimum is written, where that is not ``spec.minMember``.
_MINIMUM = {UPSTREAM: "spec.schedulingPolicy.gang.minCount"}


class GroupObject:
    """The object that states a group: its PodGroup, or Volcano's Job where the PodGroup is made from that."""

    def __init__(self, question: Question) -> None:
        case, key = question.case, question.key
        self.document = case.document("PodGroup", key.namespace, key.name, key.api_group)
        self.words = case.words("PodGroup", key.namespace, key.name, key.api_group)
        self.minimum = _MINIMUM.get(key.api_group, "spec.minMember")
        if self.document is None:
            self.document = case.document("Job", key.namespace, key.name, _VOLCANO_JOBS)
            self.words = case.words("Job", key.namespace, key.name, _VOLCANO_JOBS)
            self.minimum = "spec.minAvailable"

    @property
    def owner_field(self) -> str:
        """Which field of the Volcano Job to change where that owns the PodGroup, and would write its minimum again."""
        owners = (self.document or {}).get("metadata", {}).get("ownerReferences") or ()
        jobs = [each["name"] for each in owners if each.get("apiVersion", "").startswith(f"{_VOLCANO_JOBS}/")]
        return f": spec.minAvailable of Volcano Job {jobs[0]}, which owns the PodGroup" if jobs else ""

    def set(self, path: str, value: object) -> str:
        """Words of ``--set``; None as the value leaves the field out."""
        return f"{self.words}:{path}={'' if value is None else value}"


def wider_tier(question: Question) -> Iterator[Change]:
    """The lowest tier above the limit that lets the group, or one kind of its subgroups, in."""
    written = GroupObject(question)
    for path, topology in _limits(question.group, written.document):
        tier = next((each for each in _tiers_above(question, topology) if _fits_under(question, path, each)), None)
        if tier is not None:
            edits = [written.set(f"{path}.highestTierName", None)] if topology.tier_name else []
            edits.append(written.set(f"{path}.highestTierAllowed", tier))
            message = f"allow tier {tier} in place of {topology.asked.removeprefix('highest ')}"
            message += "" if path == _WHOLE else f" for each of subgroups {_policy(question.group, path).name}"
            if tier == question.instance.topology.root_tier:
                message += f" (tier {tier} is the whole cluster)"
            yield Change(message, (TIER, tier), set_=tuple(edits))


def _limits(group: Group, document: Mapping[str, Any] | None) -> list[tuple[str, NetworkTopology]]:
    if document is None:
        return []
    parts = group.policies if "subGroupPolicy" in (document.get("spec") or {}) else ()
    scopes = [(f"spec.subGroupPolicy[{at}].networkTopology", policy.topology) for at, policy in enumerate(parts)]
    every = [(_WHOLE, group.topology), *scopes]
    return [(path, found) for path, found in every if found is not None and found.limit is not None]


def _tiers_above(question: Question, topology: NetworkTopology) -> list[int]:
    tree = question.instance.topology
    tiers = {each.tier for each in tree.hyper_nodes.values()} | {tree.root_tier}
    return sorted(tier for tier in tiers if tier > (topology.highest_tier or 0))


def _fits_under(question: Question, path: str, tier: int) -> bool:
    wide, group = NetworkTopology(hard=True, highest_tier=tier), question.group
    if path == _WHOLE:
        return question.fits(question.with_group(replace(group, topology=wide)))
    limited = _policy(group, path)
    policies = tuple(replace(each, topology=wide) if each is limited else each for each in group.policies)
    return question.fits(question.with_group(replace(group, policies=policies)))


def _policy(group: Group, path: str) -> SubGroupPolicy:
    return group.policies[int(re.findall(r"\[(\d+)\]", path)[0])]


def fewer_members(question: Question) -> Iterator[Change]:
    """The largest minimum below the stated one that can be met."""
    group, written = question.group, GroupObject(question)
    if written.document is None or group.policies or not group.key.api_group:
        return
    fewer = range(group.min_member - 1, group.placed_before, -1)
    at = bisect_left(fewer, True, key=lambda low: question.fits(question.with_group(_with_minimum(group, low))))
    if at == len(fewer):
        return
    low = fewer[at]
    message = f"start with {plural(low, 'member')} in place of {group.min_member}{written.owner_field}"
    yield Change(message, (MEMBERS, group.min_member - low), set_=(written.set(written.minimum, low),))


def _with_minimum(group: Group, least: int) -> Group:
    """Minimums of roles are not checked any more where minMember is below their sum."""
    roles = group.min_task_member if least >= sum(group.min_task_member.values()) else {}
    return replace(group, min_member=least, min_task_member=roles)


def corrected(question: Question) -> Iterator[Change]:
    """Contradictions, absent objects and demands that are not modelled, set right."""
    if question.group.invalid is not None:
        yield from _valid(question, GroupObject(question))
    asking = [pod for pod in question.pods if pod.unsupported]
    fields = sorted({_field(text) for pod in asking for text in pod.unsupported})
    if asking and all(fields):
        edits = tuple(edit for pod in asking for edit in _without_fields(pod))
        yield Change(f"do without {', '.join(fields)}{MADE_AGAIN}", (MEMBERS, len(edits)), set_=edits)


def _without_fields(pod: Pod) -> list[str]:
    return [f"pod/{pod.namespace}/{pod.name}:{field}=" for field in sorted({_field(text) for text in pod.unsupported})]


def _valid(question: Question, written: GroupObject) -> Iterator[Change]:
    key, group = question.key, question.group
    if written.document is not None:
        yield from _one_limit(written)
    elif key.api_group in _GANGS:
        made = {
            "apiVersion": f"{key.api_group}/{'v1beta1' if key.api_group == VOLCANO else 'v1alpha1'}",
            "kind": "PodGroup",
            "metadata": {"name": key.name, "namespace": key.namespace},
            "spec": {"minMember": len(group.pending) + group.placed_before},
        }
        yield Change(f"create PodGroup {key.namespace}/{key.name}", (CORRECT, 0), with_=(made,))


def _one_limit(written: GroupObject) -> Iterator[Change]:
    both = [(path, each) for path, each in _written_limits(written) if all(name in each for name in _LIMIT_FIELDS)]
    for gone, kept in (_LIMIT_FIELDS, _LIMIT_FIELDS[::-1]) if both else ():
        said = [f"{name} ({', '.join(sorted({str(each[name]) for _, each in both}))})" for name in (gone, kept)]
        edits = tuple(written.set(f"{path}.{gone}", None) for path, _ in both)
        yield Change(f"leave out {said[0]} next to {said[1]}", (CORRECT, len(edits)), set_=edits)


def _written_limits(written: GroupObject) -> list[tuple[str, Mapping[str, Any]]]:
    spec: Mapping[str, Any] = (written.document or {}).get("spec") or {}
    parts = [(f"spec.subGroupPolicy[{at}]", each) for at, each in enumerate(spec.get("subGroupPolicy") or ())]
    return [(f"{path}.networkTopology", each.get("networkTopology") or {}) for path, each in (("spec", spec), *parts)]


def _field(text: str) -> str:
    found = re.match(r"spec(?:\.\w+)+", text)
    return found[0] if found else ""


def calls(question: Question) -> Iterator[Change]:
    """The lowest cost, or the highest bandwidth, of the group's calls that lets it in."""
    if question.instance.network is None:
        return
    for app in sorted({pod.app_group for pod in question.pods if pod.app_group is not None}):
        document = question.case.document("AppGroup", app.namespace, app.name)
        words = question.case.words("AppGroup", app.namespace, app.name)
        mine = {pod.workload for pod in question.pods if pod.app_group == app}
        for path, entry, ends in _dependencies(document or {}):
            if not mine.isdisjoint(ends):
                yield from _easier(question, app, f"{words}:{path}", entry, ends)


def _easier(
    question: Question, app: Key, path: str, entry: Mapping[str, Any], ends: tuple[str, str]
) -> Iterator[Change]:
    found: list[tuple[str, int]] = []
    if "NetworkCost" in question.codes:
        asked = int(entry.get("maxNetworkCost") or 0)
        found += [("maxNetworkCost", cost) for cost in _costs(question, app, ends, asked)]
    if "Bandwidth" in question.codes:
        found += [("minBandwidth", most) for most in _bandwidth(question, app, ends)]
    for field, value in found:
        message = f"let {field} of {' -> '.join(ends)} be {value}"
        yield Change(message, (CALLS, value), set_=(f"{path}.{field}={value}",))


def _costs(question: Question, app: Key, ends: tuple[str, str], asked: int) -> list[int]:
    network = question.instance.network
    known = {SAME_ZONE_COST, UNKNOWN_COST, *(network.costs.values() if network is not None else ())}
    costs = sorted(cost for cost in known if cost > asked)
    at = bisect_left(costs, True, key=lambda cost: question.fits(_with_call(question, app, ends, cost=cost)))
    return costs[at : at + MORE_COSTS]


def _bandwidth(question: Question, app: Key, ends: tuple[str, str]) -> list[int]:
    every = question.instance.app_groups[app].dependencies
    asked = next((each.min_bandwidth for each in every if (each.origin, each.destination) == ends), None) or 0
    less = range(asked - 1, -1, -1)
    at = bisect_left(less, True, key=lambda most: question.fits(_with_call(question, app, ends, bandwidth=most)))
    return list(less[at : at + 1])


def _with_call(
    question: Question, app: Key, ends: tuple[str, str], cost: int | None = None, bandwidth: int | None = None
) -> Instance:
    def easier(each: Dependency) -> Dependency:
        if (each.origin, each.destination) != ends:
            return each
        least = each.min_bandwidth if bandwidth is None else bandwidth or None
        return replace(each, max_network_cost=each.max_network_cost if cost is None else cost, min_bandwidth=least)

    groups = question.instance.app_groups
    changed = replace(groups[app], dependencies=tuple(map(easier, groups[app].dependencies)))
    return question.instance.keeping_held(app_groups={**groups, app: changed})


def _dependencies(document: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any], tuple[str, str]]]:
    for at, each in enumerate((document.get("spec") or {}).get("workloads") or ()):
        origin = each["workload"].get("selector") or each["workload"]["name"]
        for place, entry in enumerate(each.get("dependencies") or ()):
            other = entry["workload"].get("selector") or entry["workload"]["name"]
            yield f"spec.workloads[{at}].dependencies[{place}]", entry, (origin, other)


def higher_priority(question: Question) -> Iterator[Change]:
    """Priorities just above those of groups that were admitted in its place."""
    if "Outcompeted" not in question.codes:
        return
    admitted = question.placed.admitted
    levels = {question.placed.instance.groups[key].priority for key in admitted}
    for level in sorted(each for each in levels if each >= question.group.priority):
        yield _with_priority(question, level + 1)


def _with_priority(question: Question, priority: int) -> Change:
    """The PodGroup's class changes where the Policy lets the class decide."""
    written = GroupObject(question)
    message, rank = f"raise the priority to {priority}", (PRIORITY, priority)
    decides = question.instance.policy.class_decides and question.key.api_group in (VOLCANO, UPSTREAM, KAI)
    if decides and written.document is not None:
        made = {
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "metadata": {"name": _PRIORITY_CLASS},
            "value": priority,
        }
        return Change(message, rank, with_=(made,), set_=(written.set("spec.priorityClassName", _PRIORITY_CLASS),))
    below = _less_urgent(question, priority)
    specs = dict.fromkeys(each[0] for key in below if (each := question.case.pod_spec(key)) is not None)
    again = MADE_AGAIN if any(question.case.document("Pod", *key) is not None for key in below) else ""
    return Change(message + again, rank, set_=tuple(f"{words}.priority={priority}" for words in specs))


def _less_urgent(question: Question, priority: int) -> list[Key]:
    """Running pods count, since the least urgent of all decides."""
    pods = (*question.group.pending, *question.group.bound)
    return [key for key in pods if question.instance.pods[key].unit_priority < priority]


_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def looser_neighbours(question: Question) -> Iterator[Change]:
    """The group's demands on its neighbours left out, or asked for less strictly."""
    if "PodAffinity" in question.codes:
        yield from _left_out(question, "PodAffinity", "affinity", "podAffinity", "be near")
    if "PodAntiAffinity" in question.codes:
        yield from _left_out(question, "PodAntiAffinity", "anti_affinity", "podAntiAffinity", "be apart from")
    if "TopologySpread" in question.codes:
        yield from _wider_skew(question)
    yield from _not_in_one_domain(question)
    yield from _not_alone(question)


def _left_out(question: Question, code: str, field: str, written: str, asks: str) -> Iterator[Change]:
    pods = [pod for pod in question.pods if getattr(pod.neighbours, field)]

    def without(asked: Neighbours) -> Neighbours:
        return replace(asked, **{field: ()})

    if pods and question.fits(question.with_neighbours(without)):
        specs = filter(None, (question.case.pod_spec(pod.key) for pod in pods))
        edits = tuple(dict.fromkeys(f"{words}.affinity.{written}.{_REQUIRED}=" for words, _ in specs))
        said = f"do not require its pods to {asks} others by {and_list(question.topology_keys([code]))}{MADE_AGAIN}"
        yield Change(said, (CALLS, len(edits)), set_=edits)


def _not_in_one_domain(question: Question) -> Iterator[Change]:
    keys = {unit.topology_key for pod in question.pods for unit in pod.neighbours.units if _is_of_group(question, unit)}
    wide = _with_units(question, lambda unit: not _is_of_group(question, unit))
    if "TopologyTooNarrow" in question.codes and keys and question.fits(wide):
        edit = GroupObject(question).set("spec.schedulingConstraints", None)
        yield Change(f"do not ask for one domain of {and_list(sorted(keys))}", (CALLS, len(keys)), set_=(edit,))


def _is_of_group(question: Question, unit: DomainUnit) -> bool:
    return unit.name == str(question.key)


def _not_alone(question: Question) -> Iterator[Change]:
    if question.codes.isdisjoint(("TopologyTooNarrow", "Exclusive")):
        return
    edits = [edit for pod in question.pods for edit in _annotations(question, pod)]
    wide = _with_units(question, lambda unit: _is_of_group(question, unit))
    if edits and question.fits(wide):
        units = {unit for pod in question.pods for unit in pod.neighbours.units if not _is_of_group(question, unit)}
        said = f"do not ask for {and_list(sorted(set(map(_domain_words, units))))}{MADE_AGAIN}"
        yield Change(said, (CALLS, len(edits)), set_=tuple(edits))


def _domain_words(unit: DomainUnit) -> str:
    return f"a domain of {unit.topology_key} of its own" if unit.exclusive else f"one domain of {unit.topology_key}"


def _with_units(question: Question, keep: Callable[[DomainUnit], bool]) -> Instance:
    return question.with_neighbours(lambda asked: replace(asked, units=tuple(filter(keep, asked.units))))


def _annotations(question: Question, pod: Pod) -> Iterator[str]:
    document = question.case.document("Pod", pod.namespace, pod.name) or {}
    written = document.get("metadata", {}).get("annotations") or {}
    yield from (
        f"pod/{pod.namespace}/{pod.name}:metadata.annotations[{name}]="
        for name in DOMAIN_ANNOTATIONS
        if name in written
    )


def _wider_skew(question: Question) -> Iterator[Change]:
    """None is above the number of pods that may be counted."""
    most = len(question.instance.pods)

    def wide(skew: int) -> Instance:
        return question.with_neighbours(
            lambda asked: replace(
                asked, spread=tuple(replace(each, max_skew=max(skew, each.max_skew)) for each in asked.spread)
            )
        )

    skew = 2 + bisect_left(range(2, most + 1), True, key=lambda skew: question.fits(wide(skew)))
    if skew <= most:
        edits = dict.fromkeys(edit for pod in question.pods for edit in _skews(question, pod, skew))
        yield Change(f"let maxSkew be {skew}{MADE_AGAIN}", (CALLS, skew), set_=tuple(edits))


def _skews(question: Question, pod: Pod, skew: int) -> Iterator[str]:
    words, spec = question.case.pod_spec(pod.key) or ("", {})
    written: Sequence[dict[str, Any]] = spec.get("topologySpreadConstraints") or ()
    for at, each in enumerate(written):
        if each.get("whenUnsatisfiable") == "DoNotSchedule" and each.get("maxSkew", 0) < skew:
            yield f"{words}.topologySpreadConstraints[{at}].maxSkew={skew}"
