"""What must go for groups that wait, pods of lost nodes or wanted room: the least, with a proof; carried out elsewhere.

What takes long is imported when used, as in :mod:`placer.answers.solving`.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, TypedDict, Unpack

from placer.answers.checks import checked, of_all_pods
from placer.base.cores import usable_cores
from placer.base.deadline import Deadline, OutOfTime, wall
from placer.base.errors import UsageError
from placer.base.quantity import Resources
from placer.base.text import found_like
from placer.base.words import and_list, some
from placer.problem import Finding, GroupKey, Instance, Key, Node, Pod, PodState
from placer.problem.disruption import Disruption, in_the_way, not_ready, outcome_of, protections
from placer.problem.group_names import HOME, CalledGroup, waiting_like
from placer.problem.placement import FREED, MAXIMISED, Placement, Score, Value, better, loses_more_above
from placer.problem.result import WEIGHT, Bound, Judged, Reason, Result, Termination, TracePoint, Verdict, judge
from placer.problem.wanted import count_at_tier, groups_wanted, is_shape, new_groups, wanted_objects
from placer.problem.what_if import losing, only_waiting, unmarked, without
from placer.rules.disruption import protection
from placer.rules.scoring import placed_weight, score
from placer.search.search_limits import limit_faults

if TYPE_CHECKING:
    from placer.search.preempt.first_plan import Carried, Known

#: Part of the time that is left for the search; the rest is for verifying and explaining.
SEARCHING = 0.9

#: Part of that for choosing the first plan.
FIRST = 0.5

#: Most seconds of the search for what would go without protections, and the least for one.
COSTS, LEAST = 30.0, 0.5

#: Groups that a message names.
NAMED = 8


class RoomSearch(TypedDict, total=False):
    """How a search runs.

    ``time_limit``: seconds for the whole call, default 60; None: until everything is proved. ``workers``: solver
    threads; default: the cores this process may use. ``seed``: 0 .. 2^31 - 1. ``began``: ``time.monotonic()`` from
    which the limit counts, default now. ``watch``: called whenever the answer gets better.
    """

    time_limit: float | None
    workers: int | None
    seed: int
    began: float | None
    watch: Callable[[TracePoint], None] | None


def groups_named(instance: Instance, name: str, namespace: str | None = None, home: str = HOME) -> set[GroupKey]:
    """The group that waits and that a user calls so, the one of a pod of that name, or all of a workload.

    ``namespace``, ``home``: as :func:`placer.answers.explain.explanation.find_groups` takes them. None, or several of
    that name: :class:`UsageError`.
    """
    called = CalledGroup.of(name, namespace)
    found = {key for key in called.groups(instance, home) if instance.groups[key].pending}
    called.refuse_several(found, f"--for {name}")
    if not found:
        runs = any(pod.node is not None and called.made(pod) for pod in instance.pods.values())
        why = "it runs" if runs else waiting_like(instance, called)
        raise UsageError(f"--for {name}: found no such group that waits; {why}")
    return found


def preempt(
    instance: Instance, group: GroupKey | None = None, *, costs: bool = True, **search: Unpack[RoomSearch]
) -> Result:
    """Find out which running pods must go, be evicted or moved, for groups that wait.

    Parameters
    ----------
    instance
        What :func:`placer.read` returned.
    group
        One group: nothing else that waits takes part. None: all that wait.
    costs
        Whether to find out, in a part of the time that is left, for which protections more goes (``ProtectionCosts``).
    search
        How the search runs.

    Returns
    -------
    Result
        Verified; its placement names evictions, moves and steps. In its instance only what takes part waits.

    Raises
    ------
    UsageError, VerificationFailed
        An argument is out of its range; an answer broke a rule: a bug.
    """
    if group is not None:
        instance = only_waiting(instance, {group})
    return _decided(instance, Placement(), costs=costs, **search)


def lost_named(instance: Instance, names: str | None) -> list[str]:
    """Nodes that are lost: those of ``NODE,...``, or those that are not Ready; an unknown one: :class:`UsageError`."""
    if names is None:
        return not_ready(instance)
    known = {*instance.nodes, *(pod.node for pod in instance.pods.values() if pod.state is PodState.BOUND)}
    lost = [name.strip() for name in names.split(",")]
    unknown = [name for name in lost if name not in known]
    if unknown:
        hint = found_like(unknown[0], instance.nodes) or f", such as {next(iter(instance.nodes), 'n1')}"
        raise UsageError(f"--lost: found {unknown[0] or 'an empty name'}, expected names of nodes{hint}")
    return sorted(set(lost))


def repair(instance: Instance, lost: Collection[str], **search: Unpack[RoomSearch]) -> Result:
    """Place pods of lost nodes again, and find out what must be moved for them: nothing is evicted.

    Pods on the nodes ``lost``, those of DaemonSets and static ones apart, wait as members of their groups. Of all else
    that waits only what is of these groups takes part. Result and errors are as of :func:`preempt`; the bindings of its
    placement are those of the lost pods, and of pods of these groups that waited.
    """
    asked = Placement(lost=tuple(sorted(lost)))
    return _decided(losing(instance, lost), asked, **search)


def defrag(
    instance: Instance,
    groups: Collection[GroupKey],
    *,
    wanted: Sequence[str] = (),
    most_moves: int | None = None,
    **search: Unpack[RoomSearch],
) -> Result:
    """Find out what must be moved to make room for groups that are wanted: nothing is evicted.

    Parameters
    ----------
    instance
        One in which they wait; units of any priority may be moved for them.
    groups
        They: nothing else that waits takes part.
    wanted
        Their objects, each as JSON (:func:`placer.problem.wanted.wanted_objects`), which the placement keeps.
    most_moves
        No more pods are moved, at least 0. None: any number.
    search
        How the search runs.

    Returns
    -------
    Result
        As of :func:`preempt`, with its errors; the bindings of its placement are those of wanted pods.
    """
    alone = _moving(instance, groups, most_moves)
    return _decided(alone, Placement(wanted=tuple(wanted)), **search)


def free_domains(
    instance: Instance,
    tier: int,
    count: int,
    *,
    most_moves: int | None = None,
    **search: Unpack[RoomSearch],
) -> Result:
    """Find out what must be moved so that ``count`` HyperNodes of a tier are empty: nothing is evicted.

    Nothing that waits takes part. Domains that are empty already count; DaemonSet and static pods keep their nodes. The
    result is as of :func:`defrag`; its placement says which are ``freed``. The verdict is INFEASIBLE where it is proved
    that no more can be.
    """
    alone = _moving(instance, (), most_moves)
    return _decided(alone, Placement(), (tier, count), **search)


def room_asked(
    want: str | None,
    domains: str | None,
    most_moves: int | None,
    before: Instance,
    adding: Callable[[Sequence[str]], Instance],
) -> tuple[int, Callable[..., Result]]:
    """How many gangs or domains are asked for, and what decides for the first so many of them.

    Parameters
    ----------
    want, domains
        Words of ``--want`` or of ``--free-domains``; one of the two.
    most_moves
        No more pods are moved. None: any number.
    before
        The instance; for a shape it need have no pods.
    adding
        Reads the same with objects added, each given as JSON.

    Raises
    ------
    UsageError, BadInstance
        As :func:`placer.problem.wanted.wanted_objects`; what is wanted makes no pod that would wait.
    """
    if want is None:
        count, tier = count_at_tier("--free-domains", domains or "", before)
        return count, partial(free_domains, before, tier, most_moves=most_moves)
    objects = wanted_objects(want, before)
    instance = adding(objects)
    if is_shape(want):
        taken = set[str]()
        while (found := groups_wanted(instance, objects, taken)) is None:
            objects = wanted_objects(want, before, taken)
            instance = adding(objects)
        groups = found
    else:
        groups = new_groups(instance, before)
    if not groups:
        expected = "expected Pods that are not there yet and have no node, or a workload that makes them"
        raise UsageError(f"--want {want}: found no new pod that would wait, {expected}")
    return len(groups), lambda number, **limits: defrag(
        instance, groups[:number], wanted=objects, most_moves=most_moves, **limits
    )


def _moving(instance: Instance, groups: Collection[GroupKey], most_moves: int | None) -> Instance:
    if most_moves is not None and most_moves < 0:
        raise UsageError(f"max moves: found {most_moves}, expected at least 0")
    alone = only_waiting(instance, groups)
    return replace(alone, moves_only=True, most_moves=most_moves)


def _decided(
    instance: Instance,
    asked: Placement,
    domains: tuple[int, int] | None = None,
    *,
    costs: bool = True,
    time_limit: float | None = 60.0,
    workers: int | None = None,
    seed: int = 0,
    began: float | None = None,
    watch: Callable[[TracePoint], None] | None = None,
) -> Result:
    """Search in an instance in which only what takes part waits; ``domains``: tier and number of those to be empty."""
    start = time.monotonic()
    faults = limit_faults(time_limit, workers, [seed])
    if faults:
        raise UsageError("; ".join(faults))
    begin = start if began is None else began
    job = _Preemption(instance, time_limit, workers or usable_cores(), seed, begin, watch, asked, domains)
    job.seconds["read"] = start - job.began
    result = job.result(job.search())
    if not costs or result.termination is Termination.INTERRUPTED:
        return result
    told = (*result.findings, *_in_the_way(job), *_protection_costs(job))
    return replace(result, findings=tuple(sorted(told)))


def _in_the_way(job: _Preemption) -> Iterator[Finding]:
    """Say which pods that no mark protects keep room that is lacking, and why they may not go (D2)."""
    kept: dict[str, list[str]] = defaultdict(list)
    for key in sorted(_keeping_room(job) if _lacks(job) else ()):
        pod = job.instance.pods[key]
        if pod.protected and not pod.daemon and not pod.protecting_mark:
            kept[pod.protected].append(str(key))
    for why, pods in kept.items():
        keep = "keeps its node" if len(pods) == 1 else "keep their nodes, each"
        yield Finding("ProtectionCosts", "Placement", f"{and_list(some(pods, NAMED))} {keep} since {why}")


def _keeping_room(job: _Preemption) -> set[Key]:
    """Bound pods in domains that are to be empty, or on nodes that have room for a wanted pod only without these."""
    instance = job.instance
    if job.domains is not None:
        tree, (tier, _) = instance.topology, job.domains
        names = {name for name in tree.hyper_nodes if tree.tier(name) == tier} - {*job.placement.freed}
        return set().union(*in_the_way(instance, names).values())
    groups = (instance.groups[key] for key in _lacking(job))
    asked = [instance.pods[key] for group in groups for key in group.pending[:1]]
    there = _protected_by_node(instance).items()
    return {pod.key for name, pods in there if _take_room(instance.nodes[name], pods, asked) for pod in pods}


def _protected_by_node(instance: Instance) -> dict[str, list[Pod]]:
    there: dict[str, list[Pod]] = defaultdict(list)
    for pod in instance.pods.values():
        if pod.protected and pod.node is not None and pod.node in instance.nodes:
            there[pod.node].append(pod)
    return there


def _take_room(node: Node, pods: Iterable[Pod], asked: Sequence[Pod]) -> bool:
    room = node.allocatable - sum((pod.requests for pod in pods), Resources())
    wanted = [pod.requests for pod in asked if pod.constraints.admits(node)]
    return any(each.fits(node.allocatable) and not each.fits(room) for each in wanted)


def _protection_costs(job: _Preemption) -> Iterator[Finding]:
    """Say for which marks and queues more goes, or less is had: what is found without them is better.

    Without time for that it is said that they are there, and that what they cost is not known.
    """
    kept = protections(job.instance, (pod.key for pod in job.instance.pods.values() if pod.state is PodState.BOUND))
    if not kept or not (job.placement.disturbs or _lacks(job)):
        return
    seconds = COSTS if job.time_limit is None else min(COSTS, (job.began + job.time_limit - time.monotonic()) / 2)
    free = unmarked(job.instance)
    other = _Preemption(free, seconds, job.workers, job.seed, time.monotonic(), None, job.asked, job.domains)
    ended = other.search() if seconds >= LEAST else Termination.TIME
    what = "There was no time to find out whether less would go if nothing were protected: "
    if _better(other, job):
        what, kept = f"{_more(job, other)} since ", protections(job.instance, _forbidden(job, other.placement))
    elif ended is not Termination.TIME:
        return
    yield Finding("ProtectionCosts", "Placement", what + and_list(some(kept, NAMED)))


def _lacks(job: _Preemption) -> bool:
    wanted = job.domains[1] if job.domains is not None else 0
    return len(job.placement.freed) < wanted or bool(_lacking(job))


def _forbidden(job: _Preemption, placement: Placement) -> list[Key]:
    disruption = Disruption(job.instance, placement)
    subjects = {subject for each in protection(disruption) for subject in each.subjects}
    pods = job.instance.pods
    return [key for key in disruption.gone if pods[key].protected or f"Queue {pods[key].queue}" in subjects]


def _lacking(job: _Preemption) -> list[GroupKey]:
    outcome, needs = outcome_of(job.instance, job.placement), job.instance.need_weights
    return [key for key, group in outcome.instance.groups.items() if needs.get(key) and not outcome.ready(group)]


def _better(one: _Preemption, other: _Preemption) -> bool:
    freed = len(one.placement.freed) - len(other.placement.freed)
    values = (score(other.instance, each.placement, disturbing=True) for each in (one, other))
    ours, theirs = (each[: 1 + [value.name for value in each].index("movedUnits")] for each in values)
    return freed > 0 or (freed == 0 and better(ours, theirs))


def _more(job: _Preemption, other: _Preemption) -> str:
    lacking = sorted(set(_lacking(job)) - set(_lacking(other)))
    if lacking:
        named = and_list(some([f"{key.namespace}/{key.name}" for key in lacking], NAMED))
        return f"{named} {'is' if len(lacking) == 1 else 'are'} not admitted"
    fewer = len(other.placement.freed) - len(job.placement.freed)
    if fewer > 0:
        return f"{fewer:,} more {'HyperNode is' if fewer == 1 else 'HyperNodes are'} not empty"
    units = len(Disruption(job.instance, job.placement).units) - len(Disruption(job.instance, other.placement).units)
    if units > 0:
        return f"{units:,} more {'unit goes' if units == 1 else 'units go'}"
    return "more work goes"


@dataclass
class _Preemption:
    """One call of :func:`preempt`: what was asked, the best answer so far, and what is known of all."""

    instance: Instance
    time_limit: float | None
    workers: int
    seed: int
    began: float
    watch: Callable[[TracePoint], None] | None
    asked: Placement = field(default_factory=Placement)
    domains: tuple[int, int] | None = None
    seconds: dict[str, float] = field(default_factory=lambda: dict.fromkeys(("read", "build", "solve", "verify"), 0.0))
    findings: list[Finding] = field(default_factory=list)
    known: list[Known] = field(default_factory=list)
    trace: list[TracePoint] = field(default_factory=list)
    placement: Placement = field(default_factory=Placement)
    method: str = "greedy"

    def search(self) -> Termination:
        """Find a first plan, then run the search in a process of its own; an interrupt ends both."""
        from placer.search.events import SearchOptions
        from placer.search.process import run_apart

        start = time.monotonic()
        left = None if self.time_limit is None else SEARCHING * (self.began + self.time_limit - start)
        deadline = Deadline.within(left)
        try:
            ended = self._first_plan(deadline)
            if ended is None:
                whole, emptying = "placer.search.preempt.method:search", "placer.search.preempt.emptying:empty"
                asked = self.placement if self.trace else None, *(self.domains or ())
                options = SearchOptions(deadline, workers=self.workers, seed=self.seed)
                target = emptying if self.domains else whole
                process = run_apart(target, (self.instance, *asked, options), self._hear, deadline)
                self.findings += process.findings("preempt")
                ended = process.termination
        finally:
            self.seconds["solve"] = time.monotonic() - start
        return ended

    def _first_plan(self, deadline: Deadline) -> Termination | None:
        """Hear of the first plans; how the search ends where nothing is left to do."""
        from placer.search.preempt.emptying import first_emptied
        from placer.search.preempt.fewest_evictions import never_admitted
        from placer.search.preempt.first_plan import first_plans, missing, placeable
        from placer.search.preempt.lifting import waiting

        until = deadline.part(FIRST)
        try:
            with wall(deadline):
                if self.domains is not None:
                    for found in first_emptied(self.instance, *self.domains, until):
                        self._hear(found)
                    return None
                for carried in first_plans(self.instance, until):
                    self._hear(carried)
                left = {group.key for group in missing(self.instance, self.placement)}
                if not self.placement.disturbs and left <= never_admitted(self.instance, waiting(self.instance)):
                    self.known += placeable(self.instance)  # a search would only prove the same, later
                    return Termination.FINISHED
        except OutOfTime:
            return Termination.TIME
        except KeyboardInterrupt:
            return Termination.INTERRUPTED
        return None

    def _hear(self, event: Carried | Known) -> None:
        from placer.search.preempt.first_plan import Known

        if isinstance(event, Known):
            self.known.append(event)
            return
        self.placement, self.method = event.placement, event.by
        values = tuple(value.value for value in score(self.instance, event.placement, disturbing=True))
        point = TracePoint(round(time.monotonic() - self.began, 3), event.by, values, (None,) * len(values))
        self.trace.append(point)
        if self.watch is not None:
            self.watch(point)

    def result(self, ended: Termination) -> Result:
        """Verify and score by name, put the bounds beside the values, say why what is pending stays so."""
        start = time.monotonic()
        self.placement = replace(self.placement, lost=self.asked.lost, wanted=self.asked.wanted)
        checked(self.instance, self.placement, self.method)
        values = score(self.instance, self.placement, disturbing=True)
        objective, contradicted = judge(values, _bounds(self.instance, values, self.known))
        self.findings += contradicted
        verdict = self._verdict(objective)
        proved = all(judged.met for judged in objective) and (self.domains is None or verdict is not Verdict.FEASIBLE)
        reasons = self._reasons()
        self.seconds["verify"] = time.monotonic() - start
        self.seconds["total"] = time.monotonic() - self.began
        return Result(
            instance=self.instance,
            placement=self.placement,
            method=self.method,
            termination=Termination.PROVED if proved else ended,
            verdict=verdict,
            objective=objective,
            weight=self._weight(),
            reasons=reasons,
            findings=tuple(sorted((*self.instance.findings, *self.findings))),
            trace=tuple(self.trace),
            seconds={name: round(self.seconds[name], 3) for name in ("read", "build", "solve", "verify", "total")},
            seed=self.seed,
            time_limit=self.time_limit,
        )

    def _verdict(self, objective: tuple[Judged, ...]) -> Verdict:
        if self.domains is None or len(self.placement.freed) == self.domains[1]:
            return _verdict(self.instance, objective)
        told = [each.values[0].value for each in self.known if each.values[0].name == FREED]
        return Verdict.INFEASIBLE if min(told, default=self.domains[1]) < self.domains[1] else Verdict.FEASIBLE

    def _weight(self) -> Judged:
        total = sum(self.instance.weights.values())
        # What is evicted and moved is no part of it.
        placed = placed_weight(self.instance, Placement(self.placement.bindings))
        return Judged(Value(WEIGHT, placed), Bound(total, "volume") if placed == total else None)

    def _reasons(self) -> dict[GroupKey, Reason]:
        from placer.answers.reasons import reasons_beside

        after = without(outcome_of(self.instance, self.placement).carried_out(), set(self.placement.evictions))
        until = Deadline() if self.time_limit is None else Deadline(self.began + self.time_limit)
        return reasons_beside(after, Placement(), until)


def _bounds(instance: Instance, values: Score, known: Iterable[Known]) -> list[Bound | None]:
    return [_best(value, [*_by_itself(instance, value), *_told(value, values, known)]) for value in values]


def _best(value: Value, bounds: list[Bound]) -> Bound | None:
    sign = 1 if value.name in MAXIMISED else -1
    return min(bounds, key=lambda bound: sign * bound.value, default=None)


def _by_itself(instance: Instance, value: Value) -> list[Bound]:
    if value.name not in MAXIMISED:
        return [Bound(0, "counting")] if value.value == 0 else []
    most = of_all_pods(instance, value)
    return [Bound(most, "volume")] if value.value == most else []


def _told(value: Value, values: Score, known: Iterable[Known]) -> list[Bound]:
    answer = {(each.name, each.priority): each.value for each in values}
    found = []
    for each in known:
        for told in each.values:
            if loses_more_above(told, each.values, values):
                break
            if (told.name, told.priority) == (value.name, value.priority):
                found.append(Bound(told.value, each.by))
            elif answer.get((told.name, told.priority), 0) == told.value:
                continue
            break
    return found


def _verdict(instance: Instance, objective: tuple[Judged, ...]) -> Verdict:
    for judged in objective:
        if judged.value.name != "admitted" or not judged.bound:
            continue
        if judged.bound.value < of_all_pods(instance, judged.value):
            return Verdict.INFEASIBLE
    return Verdict.OPTIMAL if all(judged.met for judged in objective) else Verdict.FEASIBLE
