"""What each way to find the least that goes has against the claim that a score is the best; nothing if it agrees.

Used by the tests of ``preempt``, ``repair`` and ``defrag``, and by ``python -m tests.agreement``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from placer.base.deadline import NEVER
from placer.problem import Instance
from placer.problem.placement import MAXIMISED, Placement, Score, Value, better, loses_more_above
from placer.rules import verify
from placer.rules.scoring import score
from placer.search.events import BoundFound, Event, Improved, SearchOptions
from placer.search.exact import disturbing
from placer.search.preempt.domains import DomainSearch
from placer.search.preempt.first_plan import Carried, Known
from placer.search.preempt.lifting import lift, may_be_disturbed, waiting
from placer.search.preempt.method import search
from placer.search.preempt.plans import plan_of

__all__ = ["DISTURBING", "UNPROVED", "beaten", "whole"]

#: How a complaint begins that is about less than the best, of which no more was claimed.
UNPROVED = "not the least, and not proved to be"


def whole(instance: Instance) -> tuple[Placement, list[BoundFound], str]:
    """What the whole model finds, its bounds, and how it ended."""
    highest = max(group.priority for group in waiting(instance))
    lifted = lift(instance, may_be_disturbed(instance, highest))
    events: list[Event] = []
    ended = disturbing.search(lifted, SearchOptions(workers=1), events.append)
    found = next(each for each in events if isinstance(each, Improved))
    return plan_of(lifted, found.solution), [each for each in events if isinstance(each, BoundFound)], ended


def beaten(values: Score, best: Score) -> Value | None:
    """The first of some values that is said to be the best there is and is not."""
    there = {(each.name, each.priority): each.value for each in best}
    for each in values:
        if loses_more_above(each, values, best):
            return None
        value = there.get((each.name, each.priority), 0)
        if value != each.value:
            return each if (value > each.value) == (each.name in MAXIMISED) else None
    return None


def too_good_or_broken(instance: Instance, placement: Placement, best: Score) -> str:
    """What is wrong with a placement that need not be the best."""
    violations = verify(instance, placement)
    if violations:
        return f"{placement} breaks {violations}"
    found = score(instance, placement, disturbing=True)
    return f"{found} beats {best}" if better(found, best) else ""


def exact(instance: Instance, best: Score) -> str:
    """The whole model: it is the best where nothing had to be left out, which is when it gives bounds."""
    if not waiting(instance):
        return ""
    placement, bounds, ended = whole(instance)
    found = score(instance, placement, disturbing=True)
    if ended != "proved":
        return f"it ended by {ended}"
    wrong = too_good_or_broken(instance, placement, best)
    return wrong or (f"{best} beats {found}, which it proved" if bounds and better(best, found) else "")


def decomposed(instance: Instance, best: Score) -> str:
    """One group after another, domain by domain: what is found keeps the rules, and no bound for a group is beaten."""
    groups = waiting(instance)
    if len(groups) != 1 or {pod.group for pod in instance.pending} != {groups[0].key}:
        return ""  # it is asked about one group alone
    domains = DomainSearch(instance, groups[0], NEVER)
    for placement in domains.run():
        wrong = too_good_or_broken(instance, placement, best)
        if wrong:
            return wrong
    wrong_bound = None if domains.bound is None else beaten(domains.bound, best)
    return f"{wrong_bound} is no bound of {best}" if wrong_bound else ""


def together(instance: Instance, best: Score) -> str:
    """All of it as ``preempt`` runs it: nothing that is known is beaten, and what it finds is the best or not proved,
    which the complaint says in its first words.
    """
    events: list[Carried | Known] = []
    search(instance, None, SearchOptions(workers=1), events.append)
    known = [each for each in events if isinstance(each, Known)]
    wrong = next((each for each in known if beaten(each.values, best)), None)
    if wrong is not None:
        return f"{wrong} is no bound of {best}"
    placement = [each.placement for each in events if isinstance(each, Carried)][-1]
    found = score(instance, placement, disturbing=True)
    broken = too_good_or_broken(instance, placement, best)
    return broken or (f"{UNPROVED}: {best} beats {found}" if better(best, found) else "")


#: Every way by name.
DISTURBING: Mapping[str, Callable[[Instance, Score], str]] = {
    "exact": exact,
    "decomposed": decomposed,
    "preempt": together,
}
