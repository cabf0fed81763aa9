"""Changes of nodes: uncordoned, without a taint or with that tolerated, with a label, or more of them."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from placer.answers.explain.cases import Change, needed
from placer.answers.explain.shortages import named_nodes
from placer.answers.reasons.cause import plural
from placer.base.quantity import Resources
from placer.base.words import and_list
from placer.kube.marks import NODE_GROUP
from placer.problem import Instance, Node, Pod, Taint
from placer.problem.keys import label_word
from placer.problem.nodes import Term
from placer.problem.what_if import with_free_zones

if TYPE_CHECKING:
    from placer.answers.explain.question import Question

#: How much these changes disturb, the least first.
UNCORDON, UNTAINT, LABEL, ADD = 0, 1, 2, 8

#: Changes that come last: those that may be impossible, or work against the group's own demands.
LAST = 9

#: These labels state a node's place, and the taints its state: no wish can change them.
_PLACES, _STATES = "topology.kubernetes.io/", "node.kubernetes.io/"

#: Facts about a node, which nobody can change.
_FACTS = ("kubernetes.io/hostname", "kubernetes.io/os", "kubernetes.io/arch")

#: Nodes of which copies are tried, each of another domain.
TEMPLATES = 8

MOST_ADDED = 4096


def freed_nodes(question: Question) -> Iterator[Change]:
    """Nodes closed to the group: cordoned, tainted, or without a label."""
    found = False
    for rank, way in _WAYS.items():
        opened = _opened(question, way)
        chosen = few_nodes(question, opened)
        found |= bool(chosen)
        if chosen:
            yield _WORDS[rank](question, chosen, opened)
        if chosen and way is _untainted:
            yield from _tolerated(question, chosen)
    if not found:
        yield from _freed_in_several_ways(question)


def _freed_in_several_ways(question: Question) -> Iterator[Change]:
    opened = _opened(question, _in_all_ways)
    chosen = few_nodes(question, opened)
    there = question.instance.nodes
    made = []
    for rank, field in _FIELDS.items():
        names = [name for name in chosen if field(there[name]) != field(opened[name])]
        made += [_WORDS[rank](question, names, opened)] if names else []
    if made:
        yield reduce(Change.then, made)


#: Changes a node so that it takes a pod; None where that does not help.
_Way = Callable[[Node, Pod], Node | None]


def _uncordoned(node: Node, _: Pod) -> Node | None:
    return replace(node, unschedulable=False) if node.unschedulable else None


def _untainted(node: Node, pod: Pod) -> Node | None:
    left = tuple(taint for taint in node.taints if _tolerates(pod, taint))
    return replace(node, taints=left) if len(left) < len(node.taints) else None


def _tolerates(pod: Pod, taint: Taint) -> bool:
    return any(each.tolerates(taint) for each in pod.constraints.tolerations)


def _labelled(node: Node, pod: Pod) -> Node | None:
    labels = _meeting_all(pod.constraints.required, node.name, {**node.labels, **dict(pod.constraints.selector)})
    if labels is None:
        return None
    if node.labels.get(NODE_GROUP) is None:
        labels |= {key: value for mark in pod.constraints.marks for key, value in _node_group(mark.term)}
    fixed = all(labels.get(key) == node.labels.get(key) for key in _FACTS)
    return replace(node, labels=labels) if fixed and labels != node.labels else None


def _meeting_all(required: Sequence[Sequence[Term]], name: str, labels: dict[str, str]) -> dict[str, str] | None:
    found = labels
    for terms in required:
        ways = (_meeting(term, name, found) for term in terms)
        possible = [way for way in ways if way is not None]
        least = min(possible, key=lambda way: len(way.items() ^ labels.items()), default=None)
        if least is None:
            return None
        found = least
    return found


def _node_group(term: Term) -> Iterator[tuple[str, str]]:
    for asked in term.expressions:
        if (asked.key, asked.operator) == (NODE_GROUP, "In"):
            yield asked.key, asked.values[0]


def _meeting(term: Term, name: str, labels: Mapping[str, str]) -> dict[str, str] | None:
    found = dict(labels)
    for asked in term.expressions:
        if asked.holds(found.get(asked.key)):
            continue
        found.pop(asked.key, None)
        match asked.operator:
            case "In":
                found[asked.key] = asked.values[0]
            case "Exists":
                found[asked.key] = "true"
            case "Gt" | "Lt" if asked.values[0].lstrip("-").isdecimal():
                found[asked.key] = str(int(asked.values[0]) + (1 if asked.operator == "Gt" else -1))
    return found if term.matches(Node(name, Resources(), found)) else None


_FIELDS = {UNCORDON: attrgetter("unschedulable"), UNTAINT: attrgetter("taints"), LABEL: attrgetter("labels")}

_WAYS: Mapping[int, _Way] = {UNCORDON: _uncordoned, UNTAINT: _untainted, LABEL: _labelled}


def _in_all_ways(node: Node, pod: Pod) -> Node | None:
    return reduce(lambda better, way: way(better, pod) or better, _WAYS.values(), node)


def _opened(question: Question, way: _Way) -> dict[str, Node]:
    found: dict[str, Node] = {}
    for name, node in question.instance.nodes.items():
        for pod in question.kinds:
            if pod.constraints.admits(node):
                continue
            better = way(node, pod)
            if better is not None and pod.constraints.admits(better):
                found.setdefault(name, better)
    return found


def few_nodes(question: Question, opened: Mapping[str, Node]) -> tuple[str, ...]:
    """Few of the nodes that let the group in: used ones that it needs."""
    decision = question.decide(_with_nodes(question.instance, opened)) if opened else None
    if decision is None or decision.placement is None:
        return ()
    there = set(decision.placement.node_of.values())
    used = [name for name in opened if name in there]
    return tuple(
        needed(
            used, lambda names: question.fits(_with_nodes(question.instance, {each: opened[each] for each in names}))
        )
    )


def _with_nodes(instance: Instance, nodes: Mapping[str, Node]) -> Instance:
    return instance.keeping_held(nodes=dict(sorted({**instance.nodes, **nodes}.items())))


def _uncordon(_: Question, names: Sequence[str], __: Mapping[str, Node]) -> Change:
    edits = tuple(f"node/{name}:spec.unschedulable=false" for name in names)
    return Change(f"uncordon {named_nodes(names)}", (UNCORDON, len(names)), set_=edits)


def _untaint(question: Question, names: Sequence[str], opened: Mapping[str, Node]) -> Change:
    edits, said = [], set()
    for name in names:
        gone = set(question.instance.nodes[name].taints) - set(opened[name].taints)
        said |= {f"{taint.key}:{taint.effect}" for taint in gone}
        document = question.case.document("Node", "", name) or {}
        written = document.get("spec", {}).get("taints") or []
        places = [
            at
            for at, each in enumerate(written)
            if (each.get("key"), each.get("effect")) in {(t.key, t.effect) for t in gone}
        ]
        edits += [f"node/{name}:spec.taints[{at}]=" for at in reversed(places)]
    message = f"take the taint {and_list(sorted(said))} from {named_nodes(names)}"
    return Change(message, (UNTAINT, len(names)), set_=tuple(edits))


def _tolerated(question: Question, names: Sequence[str]) -> Iterator[Change]:
    taints = sorted(set().union(*(question.instance.nodes[name].taints for name in names)))
    new = [(pod, [taint for taint in taints if not _tolerates(pod, taint)]) for pod in question.pods]
    said = and_list(sorted({f"{taint.key}:{taint.effect}" for _, more in new for taint in more}))
    if _STATES not in said:
        edits = dict.fromkeys(filter(None, (_with_tolerations(question, pod, more) for pod, more in new)))
        yield Change(f"tolerate the taint {said} in its pods", (UNTAINT, 0), set_=tuple(edits))


def _with_tolerations(question: Question, pod: Pod, taints: Sequence[Taint]) -> str:
    words, spec = question.case.pod_spec(pod.key) or ("", {})
    if not taints or not words:
        return ""
    wanted = ({"key": taint.key, "operator": "Equal", "value": taint.value, "effect": taint.effect} for taint in taints)
    more = [{field: value for field, value in each.items() if value} for each in wanted]
    return f"{words}.tolerations={json.dumps([*(spec.get('tolerations') or ()), *more])}"


def label_change(question: Question, names: Sequence[str], opened: Mapping[str, Node]) -> Change:
    """Labels that some nodes get, by name and as they would be."""
    edits, said = [], set()
    for name in names:
        old = question.instance.nodes[name].labels
        for key, value in opened[name].labels.items():
            if old.get(key) != value:
                said.add(f"{key}={label_word(value)}")
                edits.append(f"node/{name}:metadata.labels[{key}]={json.dumps(value)}")
        gone = sorted(old.keys() - opened[name].labels.keys())
        said |= {f"without {key}" for key in gone}
        edits += [f"node/{name}:metadata.labels[{key}]=" for key in gone]
    place = any(each.startswith(_PLACES) for each in said)
    message = f"label {named_nodes(names)} {and_list(sorted(said))}" + (", if that is where it is" if place else "")
    return Change(message, (LAST if place else LABEL, len(names)), set_=tuple(edits))


_WORDS = {UNCORDON: _uncordon, UNTAINT: _untaint, LABEL: label_change}


# ---------------------------------------------------------------------------------------------------------- more nodes


def added_nodes(question: Question) -> Iterator[Change]:
    """The fewest new nodes of a class, in one domain of the lowest tier."""
    for template in _templates(question):
        count = _fewest(question, template)
        if count:
            where = question.instance.topology.leaf.get(template)
            place = f" in {where}" if where else ""
            node = question.instance.nodes[template]
            sound = "" if _fresh(node) == node else ", ready and open to pods"
            documents = _documents(question, template, count)
            if documents:
                message = f"add {plural(count, 'node')} like {template}{place}{sound}"
                yield Change(message, (ADD, count), with_=documents)
                return


def _templates(question: Question) -> list[str]:
    """Sound nodes first, the least used of them; where domains or calls count, one of each of the first domains."""
    instance, best = question.instance, []
    for name, node in instance.nodes.items():
        new = _fresh(node)
        fits = [pod for pod in question.kinds if pod.constraints.admits(new) and pod.requests.fits(new.allocatable)]
        if fits:
            held = sum(instance.held.get(name, Resources()).values())
            best.append((-len(fits), new != node, held > 0, held, name))
    keys, chosen = question.topology_keys(), dict[object, str]()
    network = None if question.codes.isdisjoint(("NetworkCost", "Bandwidth")) else instance.network
    for *_, name in sorted(best):
        area = None if network is None else network.area(name)
        chosen.setdefault((area, *(instance.nodes[name].labels.get(key) for key in keys)), name)
    return list(chosen.values())[:TEMPLATES]


def _fresh(node: Node) -> Node:
    """A new node is ready, not cordoned, and without taints of its state."""
    taints = tuple(taint for taint in node.taints if not taint.key.startswith(_STATES))
    return replace(node, ready=True, unschedulable=False, taints=taints)


def _fewest(question: Question, template: str) -> int:
    """0 where many do not help."""
    most = min(MOST_ADDED, max(1, len(question.pods)))
    if not question.fits(_with_copies(question.instance, template, most)):
        return 0
    low, high = 0, most  # few are likelier than many: the first steps go up by two's
    step = 1
    while low + step < high:
        if question.fits(_with_copies(question.instance, template, low + step)):
            high = low + step
            break
        low, step = low + step, 2 * step
    while high - low > 1:
        middle = (low + high) // 2
        if question.fits(_with_copies(question.instance, template, middle)):
            high = middle
        else:
            low = middle
    return high


def _names(instance: Instance, template: str, count: int) -> list[str]:
    stem = f"{template[:240]}-new"
    return [f"{stem}-{number}" for number in range(1, count + 1) if f"{stem}-{number}" not in instance.nodes]


def _with_copies(instance: Instance, template: str, count: int) -> Instance:
    node, tree = with_free_zones(_fresh(instance.nodes[template])), instance.topology
    names = _names(instance, template, count)
    copies = {name: replace(node, name=name, labels=_labels(node.labels, name)) for name in names}
    leaf = tree.leaf.get(template)
    if leaf is not None:
        domain = tree.hyper_nodes[leaf]
        grown = replace(domain, nodes=tuple(sorted((*domain.nodes, *names))))
        tree = replace(tree, hyper_nodes={**tree.hyper_nodes, leaf: grown})
    network = instance.network
    if network is not None:
        network = replace(network, areas={**network.areas, **dict.fromkeys(names, network.area(template))})
    return _with_nodes(instance, copies).keeping_held(topology=tree, network=network)


def _labels(labels: Mapping[str, str], name: str) -> dict[str, str]:
    return {key: name if key == "kubernetes.io/hostname" else value for key, value in labels.items()}


def _documents(question: Question, template: str, count: int) -> tuple[dict[str, Any], ...]:
    case, instance = question.case, question.instance
    node = case.document("Node", "", template)
    if node is None:
        return ()
    names, found = _names(instance, template, count), []
    zones = case.document("NodeResourceTopology", "", template)
    for name in names:
        labels = _labels(node.get("metadata", {}).get("labels") or {}, name)
        copied = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}}
        found.append(copied | _sound(node))
        found += [_empty_zones(zones, name)] if zones is not None else []
    leaf = instance.topology.leaf.get(template)
    domain = case.document("HyperNode", "", leaf) if leaf is not None else None
    if domain is not None:
        members = domain["spec"].setdefault("members", [])
        members += [{"type": "Node", "selector": {"exactMatch": {"name": name}}} for name in names]
        found.append(domain)
    return tuple(found)


def _sound(node: Mapping[str, Any]) -> dict[str, Any]:
    spec, status = (copy.deepcopy(node.get(key) or {}) for key in ("spec", "status"))
    spec.pop("unschedulable", None)
    taints = [each for each in spec.pop("taints", None) or () if not each["key"].startswith(_STATES)]
    for condition in status.get("conditions") or ():
        condition |= {"status": "True"} if condition.get("type") == "Ready" else {}
    return {"spec": {**spec, "taints": taints}, "status": status}


def _empty_zones(zones: Mapping[str, Any], name: str) -> dict[str, Any]:
    copied = copy.deepcopy(dict(zones))
    copied["metadata"] = {"name": name}
    for zone in copied.get("zones") or ():
        for resource in zone.get("resources") or ():
            if "allocatable" in resource:
                resource["available"] = resource["allocatable"]
    return copied
