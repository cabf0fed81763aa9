"""Smaller requests, and other labels of nodes, for pods that no node or NUMA zone takes."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeAlias

from placer.answers.explain.cases import Change
from placer.answers.explain.group_changes import CALLS, MADE_AGAIN
from placer.arrays.amounts import NodeAmounts
from placer.base.errors import PlacerError
from placer.base.quantity import CPU, PODS, Resources, format_amount, is_bytes, parse
from placer.base.words import and_list
from placer.problem import Node, Pod
from placer.problem.nodes import Requirement

if TYPE_CHECKING:
    from placer.answers.explain.question import Question

#: Cuts of requests, and sets of fields, that are tried; the least first.
TRIED = 12

Amounts: TypeAlias = "tuple[tuple[str, int], ...]"

#: A field that changes: in words, its path, and its new value; empty: it is left out.
Field: TypeAlias = "tuple[str, str, str]"

#: All of a node affinity has to go: a term that asks for nothing matches no node.
_WHOLE: Field = ("not require a node affinity", "", "")

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def _first_that_helps(question: Question, changes: Iterable[Change]) -> Iterator[Change]:
    for change in question.deadline.each(islice(changes, TRIED)):
        try:
            after = question.after(change)
        except PlacerError:
            continue
        if after.fits(after.instance):
            yield change
            return


# ------------------------------------------------------------------------------------------------------------ requests


def smaller_pods(question: Question) -> Iterator[Change]:
    """Requests that exceed every node, or every NUMA zone, cut to the most that lets the group in."""
    if question.codes.isdisjoint(("NoEligibleNode", "InsufficientResources", "NumaAlignment")):
        return
    for pod in question.kinds:
        nodes = [node for node in question.instance.nodes.values() if pod.constraints.admits(node)]
        if nodes and not any(_is_large_enough(node, pod) for node in nodes):
            yield from _first_that_helps(question, _cuts(question, pod, nodes))


def _is_large_enough(node: Node, pod: Pod) -> bool:
    if not pod.requests.fits(node.allocatable):
        return False
    if node.numa is None or not node.numa.strict or pod.numa is None:
        return True
    return any(
        all(amount <= zone.allocatable[name] for name, amount in pod.requests.items() if name in zone.lists)
        for zone in node.numa.zones
    )


def _cuts(question: Question, pod: Pod, nodes: Sequence[Node]) -> Iterator[Change]:
    alike = [each for each in question.pods if each.requests == pod.requests]
    shares = sorted({*(1 << power for power in range(len(alike).bit_length())), len(alike)})
    found = {_cut(pod, room, share) for room in _rooms(question, pod, nodes) for share in shares}
    for cut in sorted(found, key=lambda cut: (_lack(pod, cut), len(cut), cut)):
        edits = dict.fromkeys(edit for each in alike for edit in _requests(question, each, cut))
        if edits:
            message = f"let its pods request {_cut_words(pod, cut)}{MADE_AGAIN}"
            yield Change(message, (CALLS, round(100 * _lack(pod, cut))), set_=tuple(edits))


def _cut_words(pod: Pod, cut: Amounts) -> str:
    less = and_list(f"{name} {format_amount(name, amount)}" for name, amount in cut)
    return f"{less} in place of {and_list(format_amount(name, pod.requests[name]) for name, _ in cut)}"


def _lack(pod: Pod, cut: Amounts) -> float:
    return max((1 - amount / pod.requests[name] for name, amount in cut), default=0.0)


def _rooms(question: Question, pod: Pod, nodes: Sequence[Node]) -> Iterator[Mapping[str, int]]:
    left = NodeAmounts(question.instance).left
    for node in nodes:
        free = dict(left(node.name))
        yield free
        for zone in node.numa.zones if node.numa is not None and pod.numa is not None else ():
            yield free | {name: zone.available[name] for name in zone.lists}


def _cut(pod: Pod, room: Mapping[str, int], share: int) -> Amounts:
    found = []
    for name, amount in sorted(pod.requests.items()):
        most = max(0, room.get(name, 0)) // share
        if amount > most and name != PODS:
            found.append((name, most - most % _step(name, amount)))
    return tuple(found)


def _requests(question: Question, pod: Pod, cut: Amounts) -> list[str]:
    words, spec = question.case.pod_spec(pod.key) or ("", {})
    if not words or spec.get("resources"):  # what containers say must fit what the pod says by itself
        return []
    edits: list[str] = []
    for name, amount in cut:
        parts = _smaller_parts(spec, name, pod.requests[name], amount)
        for path, resources, left in parts:
            edits += [f"{words}.{path}.resources.{field}[{name}]={left}" for field in _stating(resources, name)]
        if not parts:
            return []
    return edits


def _smaller_parts(
    spec: Mapping[str, Any], name: str, total: int, amount: int
) -> list[tuple[str, Mapping[str, Any], str]]:
    """Containers that run at the same time share the cut; an init container that ends before may ask for as much as
    they.

    Empty where one would get nothing.
    """
    stays, goes = _containers(spec)
    together = [_amount(resources, name) for _, resources in stays]
    before = [_amount(resources, name) for _, resources in goes]
    room = amount - (total - max(sum(together), *before, 0))  # less what the pod itself costs
    left = [*_shared(together, room, name), *(min(had, room) for had in before)]
    parts = [each for each in zip((*stays, *goes), (*together, *before), left, strict=True) if each[1]]
    if any(less <= 0 for _, _, less in parts):
        return []
    return [(path, resources, format_amount(name, less)) for (path, resources), had, less in parts if less < had]


_Stated: TypeAlias = "tuple[str, Mapping[str, Any]]"


def _containers(spec: Mapping[str, Any]) -> tuple[list[_Stated], list[_Stated]]:
    both: tuple[list[_Stated], list[_Stated]] = [], []
    for field in ("containers", "initContainers"):
        for at, each in enumerate(spec.get(field) or ()):
            goes = field == "initContainers" and each.get("restartPolicy") != "Always"
            both[goes].append((f"{field}[{at}]", each.get("resources") or {}))
    return both


def _shared(amounts: Sequence[int], room: int, name: str) -> list[int]:
    """The largest alone where it remains the largest, else all in proportion."""
    total = sum(amounts)
    if total <= room:
        return list(amounts)
    most, second = sorted((*amounts, 0), reverse=True)[:2]
    at = amounts.index(most)
    if most - (total - room) >= max(1, second):
        return [each - (total - room if place == at else 0) for place, each in enumerate(amounts)]
    steps = [_step(name, each) for each in amounts]
    found = [each * room // total // step * step for each, step in zip(amounts, steps, strict=True)]
    for place in sorted(range(len(found)), key=lambda place: found[place] - amounts[place]):
        more = min(amounts[place] - found[place], room - sum(found)) // steps[place] * steps[place]
        found[place] += more
    return found


def _step(name: str, amount: int) -> int:
    """Whole cores, since only these are pinned, and bytes in their unit."""
    step = 1000 if name == CPU else 1 << 20 if is_bytes(name) else 1
    return step if amount % step == 0 else 1


def _stating(resources: Mapping[str, Any], name: str) -> list[str]:
    return [field for field in ("requests", "limits") if name in (resources.get(field) or {})]


def _amount(resources: Mapping[str, Any], name: str) -> int:
    """A container that states its limit alone requests as much."""
    stated = {**(resources.get("limits") or {}), **(resources.get("requests") or {})}.get(name)
    return 0 if stated is None else Resources.from_nano({name: parse(str(stated))})[name]


# --------------------------------------------------------------------------------------------------------------- labels


def other_labels(question: Question) -> Iterator[Change]:
    """Demands on labels of nodes left out, or widened, as little as lets the group in."""
    if "NoEligibleNode" in question.codes:
        for pod in question.kinds:
            if not any(pod.constraints.mismatch(node) is None for node in question.instance.nodes.values()):
                yield from _first_that_helps(question, _wider(question, pod))


def _wider(question: Question, pod: Pod) -> Iterator[Change]:
    _, spec = question.case.pod_spec(pod.key) or ("", {})
    bare = replace(pod.constraints, selector=(), required=())
    nodes = [node for node in question.instance.nodes.values() if bare.admits(node)]
    found = Counter((*_not_selected(spec, node), *_unmet(spec, node)) for node in nodes)
    for fields, _ in sorted(found.items(), key=lambda each: (len(each[0]), -each[1], each[0])):
        edits = dict.fromkeys(
            f"{words}{path}={value}" for words in _written(question, pod) for _, path, value in fields
        )
        said = and_list(dict.fromkeys(text for text, _, _ in fields))
        yield Change(f"let its pods {said}{MADE_AGAIN}", (CALLS, len(fields)), set_=tuple(edits))


def _written(question: Question, pod: Pod) -> list[str]:
    keys = (each.key for each in question.pods if each.constraints == pod.constraints)
    return [written[0] for key in keys if (written := question.case.pod_spec(key)) is not None]


def _not_selected(spec: Mapping[str, Any], node: Node) -> Iterator[Field]:
    for key, value in sorted((spec.get("nodeSelector") or {}).items()):
        if node.labels.get(key) != value:
            yield f"not select nodes by {key}={value}", f".nodeSelector[{key}]", ""


def _unmet(spec: Mapping[str, Any], node: Node) -> list[Field]:
    affinity = ((spec.get("affinity") or {}).get("nodeAffinity") or {}).get(_REQUIRED) or {}
    path = f".affinity.nodeAffinity.{_REQUIRED}"
    terms = list(enumerate(affinity.get("nodeSelectorTerms") or ()))
    least = min((_wrong(term, node, f"{path}.nodeSelectorTerms[{at}]") for at, term in terms), key=len, default=[])
    return [(_WHOLE[0], path, "")] if _WHOLE in least else least


def _wrong(term: Mapping[str, Any], node: Node, path: str) -> list[Field]:
    asked, names = _requirements(term, "matchExpressions"), _requirements(term, "matchFields")
    places = [at for at, each in enumerate(asked) if not each.holds(node.labels.get(each.key))]
    found = [_met(asked[at], node, f"{path}.matchExpressions[{at}]") for at in reversed(places)]
    kept = [field for field in found if field[2]]
    if len(names) + len(asked) - len(found) + len(kept) == 0 or not all(each.holds(node.name) for each in names):
        found.append(_WHOLE)
    return found


def _requirements(term: Mapping[str, Any], field: str) -> list[Requirement]:
    written = term.get(field) or ()
    return [Requirement(each["key"], each["operator"], tuple(each.get("values") or ())) for each in written]


def _met(asked: Requirement, node: Node, path: str) -> Field:
    there = node.labels.get(asked.key)
    if asked.operator == "In" and there is not None:
        return f"be on nodes with {asked.key}={there}, too", f"{path}.values", json.dumps([*asked.values, there])
    said = " ".join(filter(None, (asked.key, asked.operator, ",".join(asked.values))))
    return f"not require {said} of nodes", path, ""
