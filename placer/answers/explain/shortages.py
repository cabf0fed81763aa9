"""Missing room where all other rules would let a group go, in words: facts of one placement and its nodes."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

from placer.answers.reasons.cause import not_offered, plural, shape_text
from placer.arrays.amounts import NodeAmounts
from placer.base.quantity import PODS, Resources, format_amount
from placer.base.words import and_list, some
from placer.problem import Group, Instance, Pod
from placer.problem.instance import NO_TIER
from placer.problem.placement import Placement

NAMED = 3


def shortage_words(instance: Instance, placement: Placement, nodes: Collection[str] | None = None) -> str:
    """Lacks of a group where every rule but C2 lets it go; empty where amounts do not tell.

    ``nodes``: where its pods could go; None: those equal to the used ones.
    """
    pods = {key: instance.pods[key] for key in placement.node_of}
    if any(pod.host_ports or pod.numa is not None for pod in pods.values()):
        return ""
    there = sorted(nodes if nodes is not None else _alike(instance, placement))
    shapes = {pod.requests for pod in pods.values()}
    if len(shapes) == 1:
        said = _too_few_there(instance, next(iter(pods.values())), len(pods), there)
        if said:
            return said
    return _too_full(instance, placement)


def _too_few_there(instance: Instance, pod: Pod, count: int, nodes: Sequence[str]) -> str:
    amounts = NodeAmounts(instance)
    left = {name: amounts.left(name) for name in nodes if pod.constraints.admits(instance.nodes[name])}
    room = sum(pod.requests.copies_in(free) for free in left.values())
    if room >= count or not left:
        return ""
    them, has = "it" if count == 1 else "them", "has" if len(left) == 1 else "have"
    said = f"room for {room}, {count - room} too few" if room else f"no room for {'it' if count == 1 else 'any'}"
    free = _free(instance, left, pod.requests, count)
    asked = f"needs room for {plural(count, 'pod')} of {shape_text(pod.requests)} where the other rules allow {them}"
    return f"{asked}, such as on {named_nodes(list(left))}, which {has} {said}{free}"


def _free(instance: Instance, left: Mapping[str, Resources], asked: Resources, count: int) -> str:
    texts = []
    for name, amount in asked.items():
        have = sum(max(0, free[name]) for free in left.values())
        if have < count * amount:
            whole = sum(instance.nodes[node].allocatable[name] for node in left)
            free = f"{name} {format_amount(name, have)} free of {format_amount(name, whole)}"
            texts.append(free if name in instance.offered else not_offered(instance, name))
    return f": {and_list(texts)}" if texts else ""


def _too_full(instance: Instance, placement: Placement) -> str:
    amounts, asked = NodeAmounts(instance), dict[str, Resources]()
    for key, node in placement.node_of.items():
        asked[node] = asked.get(node, Resources()) + instance.pods[key].requests
    texts = []
    for node, takes in sorted(asked.items()):
        free, whole = amounts.left(node), instance.nodes[node].allocatable
        short = [name for name, amount in takes.items() if amount > free[name]]
        said = (
            f"{'room for pods' if name == PODS else name} {format_amount(name, max(0, free[name]))} free of "
            f"{format_amount(name, whole[name])}, {format_amount(name, takes[name])} asked for"
            for name in short
        )
        texts += [f"Node {node} has {and_list(said)}"] if short else []
    more = f" and {plural(len(texts) - NAMED, 'node')} more" if len(texts) > NAMED else ""
    shown = "; ".join(texts[:NAMED]) + more
    return f"needs room where the other rules allow its pods, such as where {shown}" if shown else ""


def _alike(instance: Instance, placement: Placement) -> list[str]:
    pods, used = [instance.pods[key] for key in placement.node_of], set(placement.node_of.values())
    if any(instance.groups[pod.group].limited for pod in pods if pod.group is not None):
        return sorted(used)
    domain = _domains(instance, pods)
    domains = {domain(node) for node in used}
    return [node for node in instance.nodes if domain(node) in domains]


def _domains(instance: Instance, pods: Sequence[Pod]) -> Callable[[str], object]:
    keys = sorted({key for pod in pods for key in _keys(pod)})
    network = instance.network if any(pod.workload is not None for pod in pods) else None

    def domain(node: str) -> object:
        labels = instance.nodes[node].labels
        return tuple(labels.get(key) for key in keys), network and network.area(node)

    return domain


def _keys(pod: Pod) -> set[str]:
    asked = pod.neighbours
    keys = {term.topology_key for term in (*asked.affinity, *asked.anti_affinity)}
    return keys | {key for limit in asked.spread for key in limit.keys} | {unit.topology_key for unit in asked.units}


def refused_words(instance: Instance, placement: Placement) -> str:
    """Nodes of a placement that refuse its pods as they are (C3), and why; empty: none."""
    refusing: dict[str, dict[str, None]] = {}
    for key, node in placement.node_of.items():
        texts = instance.pods[key].constraints.refusals(instance.nodes[node])
        if texts:
            refusing.setdefault(" and ".join(texts), {})[node] = None
    said = (f"{named_nodes(sorted(nodes))} ({text})" for text, nodes in sorted(refusing.items()))
    return f"fits with pods on nodes that refuse them: {and_list(said)}" if refusing else ""


def outside_words(instance: Instance, group: Group) -> str:
    """Nodes with room for a pod of a group that are in no HyperNode within its limit of tiers; empty: none."""
    limits = {each.limit for each in group.topologies} - {None, NO_TIER}
    return (
        "" if group.policies else "; ".join(_outside(instance, group, limit) for limit in limits if limit is not None)
    )


def _outside(instance: Instance, group: Group, limit: int) -> str:
    tree = instance.topology
    lowest = {name: tree.tier(leaf) for name, leaf in tree.leaf.items()}
    outside = [name for name in instance.nodes if lowest.get(name, tree.root_tier) > limit]
    roomy = _with_room(instance, [instance.pods[key] for key in group.pending], outside)
    verb = "has room and is" if len(roomy) == 1 else "have room and are"
    return f"{named_nodes(roomy)} {verb} in no HyperNode of tier <= {limit}" if roomy else ""


def _with_room(instance: Instance, pods: Sequence[Pod], names: Sequence[str]) -> list[str]:
    kinds, left = {(pod.requests, pod.constraints) for pod in pods}, NodeAmounts(instance).left
    nodes = [(name, instance.nodes[name], left(name)) for name in names]
    return [name for name, node, free in nodes if any(asks.admits(node) and it.fits(free) for it, asks in kinds)]


def named_nodes(names: Sequence[str]) -> str:
    """Some nodes by name."""
    return ("Node " if len(names) == 1 else "Nodes ") + and_list(some(names, NAMED))
