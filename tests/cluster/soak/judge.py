"""What must hold of a soak, judged by what was seen and counted, and by no code of placer's."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from statistics import linear_regression, median

from tests.cluster.soak.ledger import OverfullBinding

__all__ = ["CHECKS", "Limits", "Records", "Sample", "figures", "judge"]


@dataclass(frozen=True, slots=True)
class Sample:
    """How things stood when a pass had ended.

    Parameters
    ----------
    number
        Of the pass, from 1.
    at
        When it had ended, in seconds.
    fault
        What went wrong in it; empty: nothing did, nor in the pass before it.
    leader
        Who made it.
    half_bound, fits
        Gangs of which some pods are bound and too few; gangs that wait and would fit alone.
    memory
        KiB that are resident, by process.
    """

    number: int
    at: float
    fault: str
    leader: str
    half_bound: frozenset[str]
    fits: frozenset[str]
    memory: Mapping[str, int]


@dataclass
class Records:
    """All that is judged.

    Parameters
    ----------
    samples
        One for each pass.
    bound
        Uid of a pod to how often the server said that it is bound.
    rebound, overfull
        Pods whose node became another one; bindings to nodes that had no room.
    writes
        Method and resource to how many such requests of placer's reached the server, whatever it answered.
    changes
        Changes of state, by kind.
    holders
        Who held the Lease, one after another.
    exits
        How processes ended that were told to.
    seconds
        For how long.
    """

    samples: Sequence[Sample] = ()
    bound: Mapping[str, int] = field(default_factory=dict)
    rebound: Sequence[str] = ()
    overfull: Sequence[OverfullBinding] = ()
    writes: Mapping[tuple[str, str], int] = field(default_factory=dict)
    changes: Mapping[str, int] = field(default_factory=dict)
    holders: Sequence[str] = ()
    exits: Sequence[int] = ()
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Limits:
    """How much is too much.

    Parameters
    ----------
    passes
        At least so many must have ended.
    growth
        Of the memory of a process, from the fifth of its passes after the first tenth to the last fifth.
    led
        Passes that a process must have made for its memory to say anything.
    writes
        Over changes of state.
    renewals
        Writes of the Lease for each two seconds, the period between two renewals.
    handovers
        At least so many.
    half_bound
        Passes in a row without a fault at whose end a gang may be half-bound.
    starved, silence
        Passes in a row at whose end a gang that waits may fit alone, and seconds for which it may: arrivals and ends
        come beside a pass, so that some of it is what the pass could not know, and a watch may be silent for twenty
        seconds before its list is taken anew. More than one of the two is let be.
    race
        Seconds within which what another scheduler did may be unknown.
    """

    passes: int = 1
    growth: float = 1.1
    led: int = 30
    writes: float = 1.1
    renewals: float = 1.1
    handovers: int = 2
    half_bound: int = 1
    starved: int = 8
    silence: float = 40.0
    race: float = 1.0


Check = Callable[[Records, Limits], Iterable[str]]
_LEASES = "leases"
#: With which a loop that is told to end may end: all is well, or a gang is half-bound, which it has told.
_ENDED = (0, 6)


def judge(records: Records, limits: Limits) -> dict[str, list[str]]:
    """Check to what is wrong; nothing where nothing is."""
    found = {name: list(check(records, limits)) for name, check in CHECKS.items()}
    return {name: faults for name, faults in found.items() if faults}


def _long_enough(records: Records, limits: Limits) -> Iterator[str]:
    if len(records.samples) < limits.passes:
        yield f"{len(records.samples)} passes have ended, not {limits.passes}"
    if not records.changes.get("binding"):
        yield "nothing was bound"


def _memory(records: Records, limits: Limits) -> Iterator[str]:
    series = _led(records, limits)
    if not series:
        yield f"no process has made {limits.led} passes"
    for process, found in series.items():
        early, late = _ends(found)
        if late > limits.growth * early:
            yield f"{process}: {late:.0f} KiB after {early:.0f} KiB, {_slope(found):+.1f} KiB a pass"


def _led(records: Records, limits: Limits) -> dict[str, list[int]]:
    """Process to its memory after each pass that it made, of those that made enough."""
    found: dict[str, list[int]] = defaultdict(list)
    for each in records.samples:
        if each.leader in each.memory:
            found[each.leader].append(each.memory[each.leader])
    return {process: series for process, series in found.items() if len(series) >= limits.led}


def _ends(series: Sequence[int]) -> tuple[float, float]:
    """Memory in the fifth that comes after the first tenth, and in the last fifth."""
    tenth = max(1, len(series) // 10)
    return median(series[tenth : 3 * tenth]), median(series[-2 * tenth :])


def _slope(series: Sequence[int]) -> float:
    """KiB a pass, after the first tenth."""
    rest = series[len(series) // 10 :]
    return linear_regression(range(len(rest)), rest).slope


def _writes(records: Records, limits: Limits) -> Iterator[str]:
    written, changed = _written(records), sum(records.changes.values())
    if written > limits.writes * changed:
        yield f"{written} writes for {changed} changes of state"
    renewed = sum(times for (_, resource), times in records.writes.items() if resource == _LEASES)
    most = limits.renewals * records.seconds / 2 + 4 * len(records.holders)
    if renewed > most:
        yield f"{renewed} writes of the Lease in {records.seconds:.0f} s"


def _written(records: Records) -> int:
    """Writes of everything but the Lease, which has a period of its own."""
    return sum(times for (_, resource), times in records.writes.items() if resource != _LEASES)


def _once(records: Records, _limits: Limits) -> Iterator[str]:
    yield from (f"pod {uid} was bound {times} times" for uid, times in records.bound.items() if times > 1)
    yield from (f"pod {name} has another node than before" for name in records.rebound)


def _room(records: Records, limits: Limits) -> Iterator[str]:
    for each in records.overfull:
        if each.beside > limits.race:
            yield f"{each.pod} was bound to {each.node}, which had no room for it"


def _whole(records: Records, limits: Limits) -> Iterator[str]:
    quiet = [each.half_bound if not each.fault else frozenset[str]() for each in records.samples]
    for name, times in _longest(quiet).items():
        if times > limits.half_bound:
            yield f"{name} was half-bound at the end of {times} passes in a row without a fault"
    if records.samples and records.samples[-1].half_bound:
        yield f"{', '.join(sorted(records.samples[-1].half_bound))}: half-bound at the end"


def _handed_over(records: Records, limits: Limits) -> Iterator[str]:
    times = sum(one != other for one, other in pairwise(records.holders))
    if times < limits.handovers:
        yield f"the Lease was handed over {times} times"
    yield from (f"a process that was told to end ended with {code}" for code in records.exits if code not in _ENDED)


def _served(records: Records, limits: Limits) -> Iterator[str]:
    since: dict[str, tuple[int, float]] = {}
    told = set[str]()
    for place, each in enumerate(records.samples):
        since = {name: since.get(name, (place, each.at)) for name in each.fits}
        for name, (first, began) in since.items():
            times, seconds = place - first + 1, each.at - began
            if times > limits.starved and seconds > limits.silence and name not in told:
                told.add(name)
                yield f"{name} would have fitted at the end of {times} passes in a row, for {seconds:.0f} s"
    if records.samples and records.samples[-1].fits:
        yield f"{', '.join(sorted(records.samples[-1].fits))}: not bound at the end, and there is room"


def _longest(sets: Iterable[frozenset[str]]) -> dict[str, int]:
    """Name to the longest run of sets in a row that hold it."""
    now: Counter[str] = Counter()
    found: Counter[str] = Counter()
    for each in sets:
        now = Counter({name: now[name] + 1 for name in each})
        found |= now
    return dict(found)


CHECKS: Mapping[str, Check] = {
    "long enough": _long_enough,
    "memory is flat": _memory,
    "nothing is written needlessly": _writes,
    "bound once": _once,
    "no node over-full": _room,
    "no gang half-bound": _whole,
    "handed over": _handed_over,
    "no gang starved": _served,
}


def figures(records: Records, limits: Limits) -> dict[str, object]:
    """What a soak came to, as numbers."""
    written, changed = _written(records), sum(records.changes.values())
    led = _led(records, limits)
    return {
        "passes": len(records.samples),
        "seconds": round(records.seconds),
        "faults": dict(Counter(each.fault for each in records.samples if each.fault)),
        "memoryMiB": {process: [round(each / 1024, 1) for each in _ends(found)] for process, found in led.items()},
        "memoryKiBPerPass": {process: round(_slope(found), 2) for process, found in led.items()},
        "writes": {f"{method} {resource}": times for (method, resource), times in sorted(records.writes.items())},
        "changes": dict(records.changes),
        "writesPerChange": round(written / changed, 4) if changed else None,
        "handedOver": sum(one != other for one, other in pairwise(records.holders)),
        "overfull": len(records.overfull),
        "halfBoundPasses": max(_longest([each.half_bound for each in records.samples]).values(), default=0),
        "fittingPasses": max(_longest([each.fits for each in records.samples]).values(), default=0),
    }
