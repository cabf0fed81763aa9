"""Groups that wait or were just placed, a line each; equal reasons share one."""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from types import MappingProxyType

from rich.console import Console
from rich.table import Table
from rich.text import Text

from placer.answers.document import QueueItem, ReasonPart
from placer.answers.reasons.prerequisites import BY_ROOM, too_wide
from placer.base.text import legible, short_name
from placer.base.words import NameList, Sentence, and_list, counted, some
from placer.problem import Group, GroupKey, Instance, Key
from placer.problem.gpus import gpus_in
from placer.problem.group_names import EVERY, Selection
from placer.problem.neighbour_demand import JOB_NAMES
from placer.problem.outcome import Outcome
from placer.problem.result import Reason

#: Groups of one priority and one reason that have a line each; of more there is one line for all.
EQUAL = 3

#: Lines of the table.
SHOWN = 40

#: Messages that are printed below the table, each once.
TOLD = 6

#: Groups that a message names which wait for one reason.
NAMED = 3

_LATE = Reason("NotDecided", "no reason was found in time")

HEADS = ("NAMESPACE", "NAME", "PRIORITY", "QUEUE", "PODS", "GPUS", "AGE", "REASON")
_NUMBERS = ("PRIORITY", "PODS", "GPUS")

#: Words of groups for which nothing that goes makes room.
NEVER = (NO_RESOURCE, TOO_LARGE, TOO_WIDE) = (
    "no node offers its resource",
    "larger than any node",
    "never fits its tier",
)

#: Each reason in about four words.
_WORDS: Mapping[str, str] = {
    "InvalidGroup": "its objects are invalid",
    "GangIncomplete": "pods of it are missing",
    "Unsupported": "asks for something unsupported",
    "NamespaceBudget": "its namespace costs too much",
    "NoEligibleNode": "no node is eligible",
    "QueueClosed": "its queue is closed",
    "QueueCapability": "its queue is full",
    "InsufficientResources": "too little room is free",
    "TopologyTooNarrow": "no domain has room",
    "PodAffinity": "pod affinity finds no place",
    "PodAntiAffinity": "pod anti-affinity finds no place",
    "TopologySpread": "spread constraints find no place",
    "Exclusive": "others hold its domains",
    "NumaAlignment": "NUMA zones have no room",
    "NetworkCost": "its calls cost too much",
    "Bandwidth": "too little bandwidth is free",
    "Outcompeted": "the room went to others",
    "NotDecided": "not decided in time",
}


def queue_items(outcome: Outcome, reasons: Mapping[GroupKey, Reason], now: float) -> dict[GroupKey, QueueItem]:
    """Make a row of each group that had a pending pod, the most urgent and then the oldest first.

    ``now``: seconds since the epoch, for ages.
    """
    groups = [group for group in outcome.before.groups.values() if group.pending]
    ordered = sorted(groups, key=lambda group: (-group.priority, group.created or math.inf, group.key))
    return {group.key: _item(outcome, group, reasons.get(group.key, _LATE), now) for group in ordered}


def _item(outcome: Outcome, group: Group, reason: Reason, now: float) -> QueueItem:
    new, since = outcome.added(group.pending), group.created
    left = [key for key in group.pending if key not in outcome.new]
    if left:
        why = ReasonPart(code=reason.code, message=reason.message)
        words = _waiting_words(outcome.before, group, reason, len(new))
    else:
        why, words = None, _placed_words({outcome.new[key] for key in new})
    return QueueItem(
        namespace=group.key.namespace,
        name=group.key.name,
        kind="PodGroup" if group.key.api_group else "Pod",
        priority=group.priority,
        queue=outcome.before.waiting_queue(group) or group.queue,
        pods=len(left or new),
        gpus=_gpus(outcome, left or new),
        creation_timestamp=_time(since),
        age=duration(now - since) if since else None,
        admitted=outcome.admitted(outcome.instance.groups[group.key]),
        reason=why,
        words=words,
    )


def _gpus(outcome: Outcome, keys: Sequence[Key]) -> int:
    return sum(gpus_in(outcome.before.pods[key].requests) for key in keys)


def _time(since: float) -> str | None:
    return f"{datetime.fromtimestamp(since, UTC):%Y-%m-%dT%H:%M:%SZ}" if since else None


def _placed_words(nodes: set[str]) -> str:
    return f"fits on {next(iter(nodes)) if len(nodes) == 1 else counted(len(nodes), 'node')}"


def _waiting_words(instance: Instance, group: Group, reason: Reason, placed: int) -> str:
    words = reason_words(instance, group, reason)
    if not placed and group.bound and not group.need:
        return f"runs with {counted(len(group.bound), 'pod')}; the rest: {words}"
    return f"{placed:,} of {len(group.pending):,} pods placed; the rest: {words}" if placed else words


def reason_words(
    instance: Instance, group: Group, reason: Reason, priorities: Mapping[str, int] = MappingProxyType({})
) -> str:
    """The reason in about four words.

    ``priorities``: of groups by name with kind, for a reason that comes from a file as plain text.
    """
    rivals = _rivals(reason, priorities) if reason.code == "Outcompeted" else []
    if rivals and min(rivals) > group.priority:
        return "the room went to higher priorities"
    if rivals and min(rivals) == group.priority == max(rivals):
        return "the room went to equal priorities"
    return _too_large(instance, group, reason.code) or _WORDS.get(reason.code, reason.code)


def _too_large(instance: Instance, group: Group, code: str) -> str:
    words = _larger_than_nodes(instance, group) if code == "InsufficientResources" else ""
    return words or (TOO_WIDE if code in BY_ROOM and too_wide(instance, group) else "")


def _larger_than_nodes(instance: Instance, group: Group) -> str:
    asked = {instance.pods[key].requests: instance.pods[key] for key in group.pending if instance.nodes}
    if any(map(instance.unoffered, asked.values())):
        return NO_RESOURCE
    fit = all(any(each.fits(node.allocatable) for node in instance.nodes.values()) for each in asked)
    return "" if fit else TOO_LARGE


def _rivals(reason: Reason, priorities: Mapping[str, int]) -> list[int]:
    if not isinstance(reason.text, Sentence):
        _, *holders = re.split(r"; the room (?:in Queue \S+ )?went to ", reason.text)
        named = re.findall(r"(\w+ \S+/\S+) \(", " ".join(holders))
        return [priorities[name] for name in named if name in priorities]
    lists = [part for part in reason.text.parts if isinstance(part, NameList) and part.noun == "group"]
    return [each.priority for part in lists for each in part.found]


def duration(seconds: float) -> str:
    """Write a duration as Kubernetes does.

    Examples
    --------
    >>> duration(93784), duration(59.9), duration(-1)
    ('26h3m4s', '59s', '0s')
    """
    whole = max(0, int(seconds))
    hours, minutes = divmod(whole // 60, 60)
    if hours:
        return f"{hours}h{minutes}m{whole % 60}s"
    return f"{minutes}m{whole % 60}s" if minutes else f"{whole}s"


def age_words(seconds: float) -> str:
    """Write an age as kubectl does.

    Examples
    --------
    >>> [age_words(each) for each in (5, 125, 640, 11000, 93784, 700000)]
    ['5s', '2m5s', '10m', '3h3m', '26h', '8d']
    """
    whole = max(0, int(seconds))
    units = (("d", 86_400, 2, 8), ("h", 3_600, 3, 8), ("m", 60, 2, 10))
    smaller = {"d": ("h", 3_600), "h": ("m", 60), "m": ("s", 1)}
    for unit, size, least, small in units:
        if whole >= least * size:
            part = whole % size // smaller[unit][1] if whole < small * size else 0
            return f"{whole // size}{unit}" + (f"{part}{smaller[unit][0]}" if part else "")
    return f"{whole}s"


#: A line of the table: one group, or several that share priority and reason, the oldest first.
QueueLine = Sequence[QueueItem]


def _cells(line: QueueLine, now: float, *, whole: bool) -> tuple[str, ...]:
    """Its columns; ``whole``: UUIDs are not shortened."""
    first, several = line[0], len(line) > 1
    name = first.name if whole else short_name(first.name)
    said = f"{counted(len(line), _noun(line))} of priority {first.priority}: {_kind(first)}"
    return (
        _common([item.namespace for item in line]),
        f"{name} +{len(line) - 1:,}" if several else name,
        str(first.priority),
        _common([item.queue or "-" for item in line]),
        f"{sum(item.pods for item in line):,}",
        f"{sum(item.gpus for item in line):,}",
        _age(first, now),
        said if several else first.words,
    )


def _noun(line: QueueLine) -> str:
    return "single pod" if {item.kind for item in line} == {"Pod"} else "group"


def _common(words: Sequence[str]) -> str:
    return words[0] if len({*words}) == 1 else "*"


def _kind(item: QueueItem) -> str:
    return item.words if item.reason is not None else "they fit now"


def _age(item: QueueItem, now: float) -> str:
    if item.creation_timestamp is None:
        return "-"
    return age_words(now - datetime.fromisoformat(item.creation_timestamp).timestamp())


def queue_lines(items: Sequence[QueueItem], *, each: bool = False) -> Sequence[QueueLine]:
    """Put ordered groups into lines, equal ones into one where the first stands; ``each``: a line for each.

    Few equal groups have a line each, but not single pods whose names differ in the end alone.
    """
    counts = Counter((item.priority, _kind(item)) for item in items)
    lines: dict[object, list[QueueItem]] = defaultdict(list)
    for at, item in enumerate(items):
        many = counts[item.priority, _kind(item)] > EQUAL
        stem = item.name.rpartition("-")[0] if item.kind == "Pod" else ""
        alike = (item.priority, item.namespace, stem, item.words) if stem else at
        lines[at if each else (item.priority, _kind(item)) if many else alike].append(item)
    return list(lines.values())


def print_queue(items: Sequence[QueueItem], console: Console, now: float, *, wide: bool = False) -> None:
    """Print a table of ordered groups; ``wide``: a line for each; ``now``: seconds since the epoch."""
    lines = queue_lines(items, each=wide)
    shown = lines if wide else lines[:SHOWN]
    console.print(_table([_cells(line, now, whole=wide) for line in shown]))
    if any(len(line) > 1 for line in shown):
        console.print("+N: so many more groups like it (-o wide lists each)")
    more = sum(map(len, lines[len(shown) :]))
    if more:
        console.print(f"... and {more:,} more (-o wide lists all of them)")


def _table(rows: Sequence[Sequence[str]]) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False)
    columns = dict(zip(HEADS, zip(*rows, strict=True), strict=True))
    if {*columns["GPUS"]} == {"0"}:
        del columns["GPUS"]
    for head, cells in columns.items():
        _add_column(table, head, max(map(len, (head, *cells))))
    for row in zip(*columns.values(), strict=True):
        table.add_row(*(Text(legible(cell)) for cell in row))
    return table


def _add_column(table: Table, head: str, longest: int) -> None:
    """Add a column; a number is never cut, and words go on in the next line."""
    number = head in _NUMBERS
    fixed = number or head in ("AGE", "NAME")  # a name that is folded cannot be copied
    least = longest if fixed else min(max(8, len(head)), longest)
    table.add_column(head, justify="right" if number else "left", overflow="fold", no_wrap=fixed, min_width=least)


def equal_reasons(items: Iterable[QueueItem]) -> list[list[QueueItem]]:
    """Put groups of one namespace, priority and reason together."""
    found: dict[object, list[QueueItem]] = defaultdict(list)
    for item in items:
        if item.reason is not None:
            found[item.namespace, item.priority, item.reason.code, item.reason.message].append(item)
    return [*found.values()]


def print_messages(items: Sequence[QueueItem], console: Console, *, wide: bool = False) -> None:
    """Print the whole reasons, equal ones once; ``wide``: all of them."""
    lines = queue_lines(items)
    alone = [row[0] for row in lines if len(row) == 1]
    rank = {id(item): at for at, item in enumerate(items)}
    rows = [*equal_reasons(alone), *(row for row in lines if len(row) > 1 and row[0].reason is not None)]
    rows.sort(key=lambda row: rank[id(row[0])])
    most = len(rows) if wide else TOLD
    for row in rows[:most]:
        console.print(_message(row))
    more = sum(map(len, rows[most:]))
    if more:
        console.print(f"  ... and {more:,} more (-o wide lists the reason of each)")


def _message(row: Sequence[QueueItem]) -> Text:
    reason = row[0].reason
    assert reason is not None, "a group that waits has a reason"
    same = all(each.reason == reason for each in row)
    names = and_list(some([each.name for each in row], NAMED)) if same else f"{row[0].name} (first of {len(row):,})"
    pods = sum(each.pods for each in (row if same else row[:1]))
    text = f"  {legible(f'{row[0].namespace}/{names}')}  {counted(pods, 'pod')}  "
    return Text.assemble(text, (reason.code, "bold"), f" {legible(reason.message)}")


def print_steps(items: Sequence[QueueItem], console: Console) -> None:
    """Print the next steps."""
    steps = [item.next for item in items if item.next is not None]
    if steps:
        console.print()
        piped = any("FILE" in step.command.split() for step in steps)
        console.print(f"Next{' (FILE: a file with the same input)' if piped else ''}", style="bold")
    for step in steps:
        line = Text(f"  `{legible(step.command)}` {step.message}")
        if line.cell_len <= console.width or Text(step.command).cell_len + 4 > console.width:
            console.print(line)
            continue
        console.print(Text(f"  `{legible(step.command)}`"))  # a command that is broken cannot be pasted
        console.print(Text(f"    {step.message}"))


def lone_jobs(instance: Instance, items: Iterable[QueueItem]) -> list[str]:
    """Say of which Jobs pods wait that start one by one, and how these become gangs."""
    if instance.policy.gangs_of_owners:
        return []
    jobs: dict[str, list[QueueItem]] = defaultdict(list)
    for item in items:
        if item.kind == "Pod":
            labels = instance.pods[Key(item.namespace, item.name)].labels
            for name in {*filter(None, map(labels.get, JOB_NAMES))}:
                jobs[f"{item.namespace}/{name}"].append(item)
    alone = [name for name, pods in jobs.items() if len(pods) > 1 and any(pod.reason for pod in pods)]
    named = f"Each pod of Job {and_list(some(alone, NAMED))} starts by itself"
    return [f"{named}. A PodGroup makes a gang of it; of an Indexed Job, Policy `gangs: owners`, too."] if alone else []


def nothing_waits(instance: Instance, asked: Selection = EVERY) -> list[str]:
    """Lines for no waiting group, with work that makes no pods yet."""
    if not (instance.nodes or instance.pods):
        return ["The input holds no node and no pod."]
    absent = asked.absent_work(instance)
    return [
        "Nothing waits that may be placed yet." if absent else asked.none(instance, "waits"),
        *(f"  {each}." for each in absent),
    ]
