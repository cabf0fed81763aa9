"""Whether one group fits with some rules lifted, decided twice by different means (models/explain.md), and why not.

With all causes of a smallest set lifted the group fits, with any one of them kept it does not.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations

from placer.answers.explain.lifts import LIFTED, RULES_OF, lift_causes, lift_causes_in_arrays, rules_of
from placer.answers.reasons.cause import Cause, not_offered, plural, shape_text
from placer.answers.reasons.explanation import Causes
from placer.answers.reasons.near_misses import NeighbourWords
from placer.answers.reasons.relaxations import LOOKS, TRIED, undecided
from placer.arrays import Dense, Solution
from placer.arrays.amounts import NodeAmounts
from placer.arrays.dense_builder import make_dense
from placer.base.codes import ReasonCode
from placer.base.deadline import Deadline
from placer.base.quantity import PODS, Resources, format_amount
from placer.base.words import and_list, some
from placer.problem import Group, GroupKey, Instance, Key, Pod
from placer.problem.instance import NO_TIER
from placer.problem.outcome import Outcome
from placer.problem.placement import Placement
from placer.problem.what_if import alone
from placer.rules import verify
from placer.search.events import BoundFound, Event, Improved, SearchOptions
from placer.search.greedy.backtrack import Effort
from placer.search.greedy.multi_start import squeeze_in
from placer.search.greedy.state import GreedyLayout, GreedyState
from placer.search.numa.binding_order import aligned

#: Nodes that a quick search looks at besides the greedy's ways.
QUICK = 400

SECONDS = 10.0


@dataclass(frozen=True)
class Decision:
    """Whether a group fits (None: unconfirmed), who decided, where, and the cause where not."""

    fits: bool | None
    by: tuple[str, ...] = ()
    placement: Placement | None = None
    cause: Cause | None = None


def _pods_ask(asks: Callable[[Instance, Pod], bool]) -> Callable[[Instance, Group], bool]:
    return lambda instance, group: any(asks(instance, instance.pods[key]) for key in group.pending)


_CALLS = _pods_ask(lambda instance, pod: instance.network is not None and pod.workload is not None)

#: Cause to whether a group asks for anything of its rules; one that is not here concerns every group.
_ASKED: Mapping[str, Callable[[Instance, Group], bool]] = {
    "InvalidGroup": lambda _, group: group.invalid is not None,
    "Unsupported": _pods_ask(lambda _, pod: bool(pod.unsupported)),
    "QueueClosed": _pods_ask(lambda instance, pod: instance.closed_queue(pod.queue, pod.namespace) is not None),
    "QueueCapability": _pods_ask(
        lambda instance, pod: any(instance.queues[name].capability for name in instance.queue_path(pod.queue))
    ),
    "TopologyTooNarrow": lambda instance, group: (
        group.limited or any(instance.pods[key].neighbours.units for key in group.pending)
    ),
    "Exclusive": _pods_ask(
        lambda _, pod: bool(pod.neighbours.jobs) or any(unit.exclusive for unit in pod.neighbours.units)
    ),
    "NumaAlignment": _pods_ask(lambda instance, pod: bool(instance.aligning_nodes) and pod.numa is not None),
    "NetworkCost": _CALLS,
    "Bandwidth": _CALLS,
}


#: Causes for which the arrays leave pods of a group out: lifted, they tell which other rules concern it.
_LEFT_OUT = frozenset({"InvalidGroup", "GangIncomplete", "Unsupported", "QueueClosed", "InsufficientResources"})

#: Causes that are set aside in the group and its queues, not by a rule that is off: of C11, one part holds.
_BY_NAME = frozenset({"InvalidGroup", "GangIncomplete", "Unsupported", "QueueClosed", "QueueCapability"})


class LoneGroup:
    """One group alone with running pods, and whether it fits with rules lifted."""

    def __init__(self, instance: Instance, key: GroupKey, deadline: Deadline) -> None:
        self.instance, self.key, self.deadline = alone(instance, key), key, deadline
        self._known: dict[frozenset[str], Decision] = {}
        self._confirmed: dict[frozenset[str], Decision] = {}

    @cached_property
    def codes(self) -> tuple[str, ...]:
        """Causes that the group asks for and that can be lifted, in the order of the catalogue."""
        group, plain = self.instance.groups[self.key], _World(self.instance, self.key, _LEFT_OUT)
        asks = [code for code in RULES_OF if code not in LIFTED or self._asks(code)]
        return (
            tuple(
                code
                for code in asks
                if code in LIFTED or lift_causes_in_arrays(plain.arrays, frozenset({code})) is not plain.arrays
            )
            if group.pending
            else ()
        )

    def _asks(self, code: str) -> bool:
        off = set(RULES_OF[code]) <= self.instance.policy.rules_off
        asked = _ASKED.get(code)
        return not off and (asked is None or asked(self.instance, self.instance.groups[self.key]))

    def fits(self, codes: frozenset[str] = frozenset()) -> Decision:
        """The first decision; a *yes* is verified."""
        if codes not in self._known:
            self._known[codes] = _World(self.instance, self.key, codes).decide(self.deadline)
        return self._known[codes]

    def found(self, codes: frozenset[str] = frozenset()) -> Decision:
        """A quick look for a place; never a proof that there is none."""
        return _World(self.instance, self.key, codes).searched(QUICK) or Decision(None)

    def confirmed(self, codes: frozenset[str] = frozenset()) -> Decision:
        """The same decided twice, or None."""
        if codes not in self._confirmed:
            first = self.fits(codes)
            if first.fits is False:
                first = _World(self.instance, self.key, codes).confirm(first, self.deadline)
            self._confirmed[codes] = first
        return self._confirmed[codes]


class _World:
    def __init__(self, instance: Instance, key: GroupKey, codes: frozenset[str]) -> None:
        self.original, self.key, self.codes = instance, key, codes
        self.instance = lift_causes(instance, key, codes)

    @cached_property
    def arrays(self) -> Dense:
        return lift_causes_in_arrays(make_dense(self.instance), self.codes)

    @cached_property
    def group(self) -> int | None:
        return next((index for index, each in enumerate(self.arrays.groups) if each.key == self.key), None)

    def decide(self, deadline: Deadline) -> Decision:
        if deadline.over:
            return Decision(None)
        if self._only_lacks_what_is_lifted():
            return self._judged(Solution(), "objects") or Decision(None)
        cause = Causes(self.instance, self.arrays, Solution()).of(self.key)
        if cause is not None and cause.code != "NotDecided":
            return Decision(False, ("objects" if self.group is None else "counting and search",), cause=cause)
        return self.searched(LOOKS) or self._asked_cp_first(deadline)

    def _only_lacks_what_is_lifted(self) -> bool:
        """Such a group needs no pod once these causes are lifted."""
        worlds = (self.original, self.instance) if self.codes else ()
        return [Outcome(each, Placement()).ready(each.groups[self.key]) for each in worlds] == [False, True]

    def _asked_cp_first(self, deadline: Deadline) -> Decision:
        fits, solution = self._asked_cp(deadline) if self.group is not None else (None, None)
        if solution is not None:
            return self._judged(solution, "cp-sat") or Decision(None)
        return Decision(False, ("cp-sat",), cause=undecided()) if fits is False else Decision(None, cause=undecided())

    def searched(self, looks: int) -> Decision | None:
        if self.group is None:
            return None
        state = GreedyState(GreedyLayout(self.arrays))
        return self._judged(state.solution(), "search") if squeeze_in(state, self.group, Effort(most=looks)) else None

    def _asked_cp(self, deadline: Deadline) -> tuple[bool | None, Solution | None]:
        from placer.search.exact.readiness import ready_solution

        return ready_solution(self.arrays, deadline.at_most(SECONDS))

    def _judged(self, solution: Solution, by: str) -> Decision | None:
        placement = aligned(self.instance, self.arrays.placement(solution))
        return Decision(True, (by, "rules"), placement) if self.allows(placement) else None

    def allows(self, placement: Placement) -> bool:
        """Rules are those of the original instance, except for the demands of the group and its queues."""
        asks = self.codes & _BY_NAME
        off = {rule for code in self.codes - asks for rule in RULES_OF[code]}
        judged = lift_causes(self.original, self.key, frozenset(asks))
        judged = replace(judged, policy=replace(judged.policy, rules_off=judged.policy.rules_off | off))
        ready = Outcome(judged, placement).ready(judged.groups[self.key])
        return ready and not verify(judged, placement)

    def confirm(self, first: Decision, deadline: Deadline) -> Decision:
        """A *no* has to be confirmed by another way than the first."""
        if self.group is None:
            return replace(first, fits=False, by=(*first.by, "rules")) if self._never_ready() else Decision(None)
        if "cp-sat" in first.by:
            fits, by = self._asked_milp(deadline), "milp"
        else:
            (fits, solution), by = self._asked_cp(deadline), "cp-sat"
            if fits and solution is not None:
                return self._judged(solution, by) or Decision(None)
        return replace(first, by=(*first.by, by)) if fits is False else Decision(None, cause=first.cause)

    def _never_ready(self) -> bool:
        """Even with every pod placed that may be placed at all (C2, C4, queues)."""
        node = next(iter(self.instance.nodes), "")
        placed = [key for key in self.instance.groups[self.key].pending if self._may(key)]
        group = self.instance.groups[self.key]
        placed = self._in_whole_sub_groups(placed)
        return not placed or not Outcome(self.instance, Placement.of(dict.fromkeys(placed, node))).ready(group)

    def _in_whole_sub_groups(self, keys: list[Key]) -> list[Key]:
        group, pods = self.instance.groups[self.key], self.instance.pods
        whole = {
            at
            for at, part in enumerate(group.sub_groups)
            if part.placed_before + sum(pods[key].sub_group == at for key in keys) >= group.policies[part.policy].size
        }
        return [key for key in keys if pods[key].sub_group is None or pods[key].sub_group in whole]

    def _may(self, key: Key) -> bool:
        pod = self.instance.pods[key]
        takes = "C11" in self.instance.policy.rules_off or not self.instance.closed_queue(pod.queue, pod.namespace)
        return takes and not pod.unsupported and not self.instance.unoffered(pod)

    def _asked_milp(self, deadline: Deadline) -> bool | None:
        from placer.search.milp.method import search

        told: list[Event] = []
        until = deadline.at_most(SECONDS)
        if until.over:
            return None
        search(self.arrays, SearchOptions(until), told.append)
        need = sum(group.need_weight for group in self.arrays.groups)
        if any(isinstance(each, BoundFound) and each.criterion == 0 and each.bound < need for each in told):
            return False
        return True if any(isinstance(each, Improved) and each.solution for each in told) else None


OTHERS = 2

#: The condition under which a group fits, for causes of which no single rule of counting says more.
_CONDITION = {
    "InvalidGroup": "without the contradiction in the group",
    "GangIncomplete": "with the existing pods as its minimum",
    "Unsupported": "without its unsupported fields",
    "NoEligibleNode": "if taints, selectors, affinity, cordons and readiness of nodes are ignored",
    "QueueClosed": "with its Queue open to it",
    "QueueCapability": "without the limits of its Queue",
    "InsufficientResources": "where nodes have more room",
    "TopologyTooNarrow": "without its limits of tiers and of node labels",
    "Exclusive": "where several may share a domain",
    "NumaAlignment": "without alignment to NUMA zones",
    "NetworkCost": "without the costs of calls",
    "Bandwidth": "without the bandwidths of links",
}


@dataclass(frozen=True)
class GroupCause:
    """One cause; ``rules`` are lifted with it, and ``message`` is one sentence."""

    code: ReasonCode
    rules: tuple[str, ...]
    message: str


#: Causes of one set, in the order of the catalogue.
Correction = tuple[GroupCause, ...]


def corrections(group: LoneGroup) -> list[Correction] | None:
    """Find smallest correction sets of a group that does not fit alone; None: it fits, or there was no time.

    The smallest comes first, then up to two others, none of which contains another.
    """
    if group.confirmed().fits is not False:
        return None
    found: list[frozenset[str]] = []
    for codes in _by_size(group.codes):
        if group.deadline.over or _enough(found, codes):
            break
        if not any(one <= codes for one in found) and _is_smallest(group, codes):
            found.append(codes)
    found.sort(key=lambda codes: (len(codes), -_named(group, codes)))
    return [_correction(group, codes) for codes in found] or None


def _by_size(codes: tuple[str, ...]) -> Iterator[frozenset[str]]:
    for size in range(1, len(codes) + 1):
        yield from map(frozenset, combinations(codes, size))


def _is_smallest(group: LoneGroup, codes: frozenset[str]) -> bool:
    return group.fits(codes).fits is True and all(group.confirmed(codes - {code}).fits is False for code in codes)


def _enough(found: list[frozenset[str]], codes: frozenset[str]) -> bool:
    return bool(found) and (len(codes) > len(found[0]) + 1 or len(found) > OTHERS)


def _named(group: LoneGroup, codes: frozenset[str]) -> int:
    kept = ((code, group.confirmed(codes - {code}).cause) for code in codes)
    return sum(cause is not None and cause.code == code for code, cause in kept)


def _correction(group: LoneGroup, codes: frozenset[str]) -> Correction:
    of, found, words = group.instance.groups[group.key], [], NeighbourWords(group.instance)
    for code in group.codes:
        if code in codes:
            message = _message(group, code, codes)
            asked = str(words.asked((group.instance.pods[key] for key in of.pending), code))
            texts = [asked if asked.split(": ")[0] not in message else "", message]
            texts += [outside_words(group.instance, of)] if code == "TopologyTooNarrow" else []
            existing = (
                f"for its {plural(len(of.pending), 'pending pod')}: " if "GangIncomplete" in codes - {code} else ""
            )
            message = existing + "; ".join(filter(None, texts))
            found.append(GroupCause(code, rules_of(code, of), message))  # type: ignore[arg-type]  # keys of RULES_OF
    return tuple(found)


def _message(group: LoneGroup, code: str, codes: frozenset[str]) -> str:
    cause, placement = group.confirmed(codes - {code}).cause, group.fits(codes).placement or Placement()
    if cause is not None and cause.code == code:
        return cause.reason.message.replace(f" ({TRIED})", "")  # every claim here is decided twice
    said = _missing(group, codes, placement) if code == "InsufficientResources" else ""
    if code == "NoEligibleNode":
        said = refused_words(group.instance, placement)
    return said or f"fits {_CONDITION.get(code, 'without this rule')}"


def _missing(group: LoneGroup, codes: frozenset[str], placement: Placement) -> str:
    rest = codes - {"InsufficientResources"}
    kept, cause = lift_causes(group.instance, group.key, rest), group.confirmed(rest).cause
    narrow = cause is not None and cause.code == "TopologyTooNarrow" and _asks_for_tiers_alone(kept, group.key)
    return shortage_words(kept, placement, cause.nodes if cause is not None and narrow else None)


def _asks_for_tiers_alone(instance: Instance, key: GroupKey) -> bool:
    group = instance.groups[key]
    pods = (instance.pods[each] for each in group.pending)
    return not group.policies and not any(pod.neighbours or pod.workload is not None for pod in pods)


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
