"""Whether a group that counting does not exclude has a place alone, and which relaxed rule gives one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cached_property
from typing import Any, Final, NamedTuple

from placer.answers.reasons.cause import Cause
from placer.arrays import Dense
from placer.base.codes import ReasonCode
from placer.search.greedy.backtrack import Effort
from placer.search.greedy.multi_start import squeeze_in
from placer.search.greedy.state import GreedyLayout, GreedyState

#: Nodes looked at per group while trying everything.
LOOKS = 40_000

TRIED = "tried every way; pod by pod there is room"
NARROW: Final = "TopologyTooNarrow"


class LoneTrial:
    """The cluster without any new pod, in which groups are tried one at a time."""

    def __init__(self, layout: GreedyLayout) -> None:
        self.layout = layout
        self.state = GreedyState(layout)

    def fits(self, group: int) -> bool | None:
        """Whether needed pods have a place; False only where everything was tried, None: none was found."""
        state, effort = self.state, Effort(most=LOOKS)
        mark = state.mark()
        found = squeeze_in(state, group, effort)
        state.undo(mark)
        return found or (False if effort.exhaustive else None)

    @cached_property
    def _weaker(self) -> tuple[_Relaxation, LoneTrial] | None:
        """The last rule of the catalogue's order that concerns a pod here, and the cluster without it."""
        for rule in LADDER:
            dense = rule[2](self.layout.dense)
            if dense is not None:
                return rule, LoneTrial(GreedyLayout(dense))
        return None

    def blame(self, group: int) -> Cause:
        """The rule that keeps out a group without any place, by proof."""
        world = self
        while world._weaker is not None:
            (code, broken, _), world = world._weaker
            fits = world.fits(group)
            if fits:
                return Cause(code, f"wherever its pods fit otherwise, {broken} ({TRIED})")
            if fits is None:
                return undecided()
        return Cause("InsufficientResources", f"its pods do not fit on the nodes together ({TRIED})")

    def first(self, group: int, counted: Cause) -> Cause:
        """The cause that is proved to come before that of domains; else the counted one."""
        world = self
        while counted.code in (NARROW, "Exclusive") and world._weaker is not None:
            (code, _, _), world = world._weaker
            if code == counted.code:
                return world.blame(group) if world.fits(group) is False else counted
        return counted


class _Relaxation(NamedTuple):
    """``without`` gives None where the rule concerns no pod."""

    code: ReasonCode
    broken: str
    without: Callable[[Dense], Dense | None]


def _without_bandwidth(dense: Dense) -> Dense | None:
    network = dense.network
    if network is None or not network.room or not any(call.bandwidth for call in network.calls):
        return None
    calls = tuple(replace(call, bandwidth=0) for call in network.calls)
    return replace(dense, network=replace(network, calls=calls))


def _without_part(part: str, nothing: Any = None) -> Callable[[Dense], Dense | None]:
    return lambda dense: None if getattr(dense, part) == nothing else replace(dense, **{part: nothing})


def _without_rule(rule: str) -> Callable[[Dense], Dense | None]:
    def without(dense: Dense) -> Dense | None:
        rest = None if dense.neighbours is None else dense.neighbours.without(rule)
        return None if rest is None else replace(dense, neighbours=rest)

    return without


def _without_limits(dense: Dense) -> Dense | None:
    by_label = None if dense.neighbours is None else dense.neighbours.without("C7")
    if by_label is None and all(scope.limit is None for scope in dense.scopes):
        return None
    scopes = tuple(replace(scope, limit=None) for scope in dense.scopes)
    return replace(dense, scopes=scopes, neighbours=by_label or dense.neighbours)


#: Rules that counting cannot decide for sure, the last of the catalogue's order first.
LADDER: tuple[_Relaxation, ...] = (
    _Relaxation("Bandwidth", "links would carry more than they have room for", _without_bandwidth),
    _Relaxation("NetworkCost", "calls would cost more than they may", _without_part("network")),
    _Relaxation("NumaAlignment", "kubelets would refuse pods: NUMA zones have too little left", _without_part("numa")),
    _Relaxation("Exclusive", "units would share a domain that each asks for alone", _without_rule("C15")),
    _Relaxation("TopologySpread", "they would be spread less evenly than maxSkew allows", _without_rule("C14")),
    _Relaxation("PodAntiAffinity", "pods would share a domain that one keeps the other off", _without_rule("C13")),
    _Relaxation("PodAffinity", "some would not be near the pods that they must be near", _without_rule("C12")),
    _Relaxation(NARROW, "they would break its limits of tiers or node labels", _without_limits),
    _Relaxation("QueueCapability", "the capability of its queue would be exceeded", _without_part("queue_rows", ())),
)


def undecided() -> Cause:
    """The cause of a group that counting does not exclude and that found no place."""
    return Cause("NotDecided", "counting does not exclude it, and no place was found for it alone: not decided in time")
