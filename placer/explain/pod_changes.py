"""Changes of what the group's pods ask of a node by themselves: smaller requests, other labels of nodes.

For pods that no node, or no NUMA zone, is large enough for, and for those whose selector or affinity no node meets.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeAlias

from placer.dense.amounts import NodeAmounts
from placer.errors import PlacerError
from placer.explain.cases import Change
from placer.explain.group_changes import CALLS, MADE_AGAIN
from placer.instance import Node, Pod
from placer.instance.problem import Requirement
from placer.quantity import CPU, PODS, Resources, format_amount, is_bytes, parse
from placer.words import and_list

if TYPE_CHECKING:
    from placer.explain.question import Question

__all__ = ["other_labels", "smaller_pods"]

#: Cuts of requests, and sets of fields, that are tried; the least first.
TRIED = 12

#: What a pod could ask for of each resource.
Amounts: TypeAlias = "tuple[tuple[str, int], ...]"

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def _first_that_helps(question: Question, changes: Iterable[Change]) -> Iterator[Change]:
    """The first of some changes with which the group is found to fit; each is read again to be screened."""
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
    """Requests for which no node, or no NUMA zone, is large enough, cut to the most that lets the group in."""
    if question.codes.isdisjoint(("InsufficientResources", "NumaAlignment")):
        return
    for pod in question.kinds:
        nodes = [node for node in question.instance.nodes.values() if pod.constraints.admits(node)]
        if nodes and not any(_is_large_enough(node, pod) for node in nodes):
            yield from _first_that_helps(question, _cuts(question, pod, nodes))


def _is_large_enough(node: Node, pod: Pod) -> bool:
    """Whether a node has room for a pod, and a zone of it where it aligns pods, while nothing runs there."""
    if not pod.requests.fits(node.allocatable):
        return False
    if node.numa is None or not node.numa.strict or pod.numa is None:
        return True
    return any(
        all(amount <= zone.allocatable[name] for name, amount in pod.requests.items() if name in zone.lists)
        for zone in node.numa.zones
    )


def _cuts(question: Question, pod: Pod, nodes: Sequence[Node]) -> Iterator[Change]:
    """The requests of pods like one cut to what nodes and zones have free, the least cut first."""
    alike = [each for each in question.pods if each.requests == pod.requests]
    left, found = NodeAmounts(question.instance).left, set[Amounts]()
    for node in nodes:
        free = dict(left(node.name))
        zones = node.numa.zones if node.numa is not None and pod.numa is not None else ()
        for room in (free, *(free | {name: zone.available[name] for name in zone.lists} for zone in zones)):
            found |= {_cut(pod, room, share) for share in _shares(len(alike))}
    asked = pod.requests

    def lack(cut: Amounts) -> tuple[float, int, Amounts]:
        return max((1 - amount / asked[name] for name, amount in cut), default=0.0), len(cut), cut

    for cut in sorted(found, key=lack):
        edits = dict.fromkeys(edit for each in alike for edit in _requests(question, each, dict(cut)))
        if cut and edits and all(amount > 0 for _, amount in cut):
            amounts = and_list(f"{name} {format_amount(name, amount)}" for name, amount in cut)
            whole = and_list(format_amount(name, asked[name]) for name, _ in cut)
            message = f"let its pods request {amounts} in place of {whole}{MADE_AGAIN}"
            yield Change(message, (CALLS, round(100 * lack(cut)[0])), set_=tuple(edits))


def _shares(count: int) -> list[int]:
    """Among how many pods a node is shared: 1, 2, 4, ... and all of them."""
    return sorted({*(1 << power for power in range(count.bit_length())), count})


def _cut(pod: Pod, room: Mapping[str, int], share: int) -> Amounts:
    """What is left of those requests for which so many pods like one find no room."""
    found = []
    for name, amount in sorted(pod.requests.items()):
        most = max(0, room.get(name, 0)) // share
        if amount > most and name != PODS:
            # Whole cores stay whole, since only these are pinned; bytes are written in the unit that they have.
            step = 1000 if name == CPU else 1 << 20 if is_bytes(name) else 1
            found.append((name, most - (most % step if amount % step == 0 else 0)))
    return tuple(found)


def _requests(question: Question, pod: Pod, cut: Mapping[str, int]) -> Iterator[str]:
    """Words of ``--set`` by which a pod requests so much less; none where that is not one container's."""
    written = question.case.pod_spec(pod.key)
    if written is None:
        return
    words, spec = written
    stated = [each.get("resources") or {} for each in spec.get("containers") or ()]
    for name, amount in cut.items():
        own = [_amount(each, name) for each in stated]
        at = own.index(max(own))  # of the container that requests most
        left = own[at] - (pod.requests[name] - amount)
        for field in ("requests", "limits") if left > 0 else ():
            if name in (stated[at].get(field) or {}):
                yield f"{words}.containers[{at}].resources.{field}[{name}]={format_amount(name, left)}"


def _amount(resources: Mapping[str, Any], name: str) -> int:
    """What a container requests of a resource; one that states its limit alone requests as much."""
    stated = {**(resources.get("limits") or {}), **(resources.get("requests") or {})}.get(name)
    return 0 if stated is None else Resources.from_nano({name: parse(str(stated))})[name]


# --------------------------------------------------------------------------------------------------------------- labels


def other_labels(question: Question) -> Iterator[Change]:
    """What the pods ask of the labels of nodes left out, or widened, as little as lets the group in."""
    if "NoEligibleNode" in question.codes:
        for pod in question.kinds:
            if not any(pod.constraints.mismatch(node) is None for node in question.instance.nodes.values()):
                yield from _first_that_helps(question, _wider(question, pod))


def _wider(question: Question, pod: Pod) -> Iterator[Change]:
    """Fields of pods like one changed so that more nodes do, those first by which fewest fields change."""
    found: Counter[tuple[tuple[str, str, str], ...]] = Counter()
    _, spec = question.case.pod_spec(pod.key) or ("", {})
    bare = replace(pod.constraints, selector=(), required=())
    for node in question.instance.nodes.values():
        fields = tuple(_mismatched(spec, node))
        if fields and bare.admits(node):
            found[fields] += 1
    alike = [each for each in question.pods if each.constraints == pod.constraints]
    for fields, _ in sorted(found.items(), key=lambda each: (len(each[0]), -each[1], each[0])):
        specs = filter(None, (question.case.pod_spec(each.key) for each in alike))
        edits = dict.fromkeys(f"{words}{path}={value}" for words, _ in specs for _, path, value in fields)
        said = and_list(dict.fromkeys(text for text, _, _ in fields))
        yield Change(f"let its pods {said}{MADE_AGAIN}", (CALLS, len(fields)), set_=tuple(edits))


def _mismatched(spec: Mapping[str, Any], node: Node) -> Iterator[tuple[str, str, str]]:
    """What a pod asks of labels that a node has not: in words, and the path and new value of the field."""
    for key, value in sorted((spec.get("nodeSelector") or {}).items()):
        if node.labels.get(key) != value:
            yield f"not select nodes by {key}={value}", f".nodeSelector[{key}]", ""
    affinity = ((spec.get("affinity") or {}).get("nodeAffinity") or {}).get(_REQUIRED) or {}
    path = f".affinity.nodeAffinity.{_REQUIRED}"
    options = [
        list(_wrong(term, node, f"{path}.nodeSelectorTerms[{at}]"))
        for at, term in enumerate(affinity.get("nodeSelectorTerms") or ())
    ]
    if options and all(options):
        least = min(options, key=len)
        whole = [("not require a node affinity", path, "")]
        yield from whole if any(not path for _, path, _ in least) else least


def _wrong(term: Mapping[str, Any], node: Node, path: str) -> Iterator[tuple[str, str, str]]:
    """The same of one term of node affinity; without a path where the whole of it has to go."""
    asked = term.get("matchExpressions") or ()
    for at, each in reversed(list(enumerate(asked))):
        values = tuple(each.get("values") or ())
        there = node.labels.get(each["key"])
        if Requirement(each["key"], each["operator"], values).holds(there):
            continue
        if each["operator"] == "In" and there is not None:
            more = json.dumps([*values, there])
            yield f"be on nodes with {each['key']}={there}, too", f"{path}.matchExpressions[{at}].values", more
        else:
            said = " ".join(filter(None, (each["key"], each["operator"], ",".join(values))))
            gone = "" if len(asked) == 1 else f"{path}.matchExpressions[{at}]"
            yield f"not require {said} of nodes", gone, ""
    for each in term.get("matchFields") or ():
        if not Requirement(each["key"], each["operator"], tuple(each.get("values") or ())).holds(node.name):
            yield "not require a node by its name", "", ""
    if not asked and not term.get("matchFields"):
        yield "not require a node affinity", "", ""
