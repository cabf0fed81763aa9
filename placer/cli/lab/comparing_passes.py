"""``compare --passes``: two series of saved passes, counts first, then the groups that differ."""

from __future__ import annotations

import argparse
from typing import Any

from rich.console import Console

from placer.base.errors import UsageError
from placer.base.table import Column, print_tables
from placer.base.words import counted
from placer.cli import flags, printing
from placer.lab.pass_comparison import compare_series, read_series

#: Groups that are shown; ``--json`` has all.
_SHOWN = 30
#: What a difference says of the second series.
SAYS = {
    "lost": "left waiting, and the first admits it",
    "fewer": "fewer of its pods",
    "later": "admitted in a later pass",
    "wider": "a wider domain",
    "won": "admitted, and the first leaves it waiting",
    "more": "more of its pods",
    "sooner": "admitted in an earlier pass",
    "narrower": "a narrower domain",
    "elsewhere": "another node or domain, as narrow",
    "otherReason": "waits for another reason",
    "same": "admitted alike",
    "waits": "waits for the same reason",
    "unseen": "not seen waiting by both",
}
#: Flags of ``compare`` that decide something which has been decided here.
_DECIDED = (
    *("instance", "policies", "scheduler_config", "scheduler_name", "strict", "lenient", "time_limit", "work_limit"),
    *("workers", "seed", "with_", "without", "set"),
)


def compare_passes(options: argparse.Namespace) -> int:
    """Compare two series of passes.

    Raises
    ------
    UsageError
        There is no such series, or a flag is given that decides nothing here.
    """
    ignored = [name for name in _DECIDED if getattr(options, name, None)]
    if ignored:
        names = ", ".join(
            "INSTANCE" if each == "instance" else f"--{each.strip('_').replace('_', '-')}" for each in ignored
        )
        raise UsageError(f"--passes: found {names}, expected none: the decisions of passes are compared as they are")
    document = compare_series(*map(read_series, options.passes))
    if printing.put_or_tell(document, options):
        _print(document, printing.console())
    return flags.OK


def _print(found: dict[str, Any], terminal: Console) -> None:
    for name in ("old", "new"):
        series = found[name]
        parts = [
            f"{series['passes']:,} pass{'' if series['passes'] == 1 else 'es'}",
            f"{counted(series['boundPods'], 'pod')} bound",
            f"{series['evictedPods']:,} evicted",
            f"{series['movedPods']:,} moved",
        ]
        versions = ", ".join(series["versions"])
        terminal.print(f"{name}: {series['source']} (placer {versions}): {', '.join(parts)}", markup=False)
    same, other = found["pods"].values()
    terminal.print(f"{counted(same, 'pod')} on the same node in both, {other:,} on another", style="bold")
    shown = {name: count for name, count in found["groups"].items() if count}
    names = Column("new", list(shown))
    columns = [
        Column("groups", [f"{count:,}" for count in shown.values()]),
        Column("that is", [SAYS[name] for name in shown], text=True, most=60),
    ]
    terminal.print()
    print_tables(terminal, names, columns)
    _print_groups(found["items"], terminal)


def _print_groups(differing: list[dict[str, Any]], terminal: Console) -> None:
    if not differing:
        return
    rest = f", the first {_SHOWN} of {len(differing):,}; --json has all" if len(differing) > _SHOWN else ""
    terminal.print(f"\nGroups that differ, by priority{rest}")
    items = differing[:_SHOWN]
    groups = [f"{each['group']['namespace']}/{each['group']['name']}" for each in items]
    columns = [
        Column("priority", ["-" if each["priority"] is None else f"{each['priority']:,}" for each in items]),
        Column("new", [each["difference"] for each in items], text=True),
        Column("old has", [_words(each["old"]) for each in items], text=True, most=40),
        Column("new has", [_words(each["new"]) for each in items], text=True, most=40),
    ]
    print_tables(terminal, Column("group", groups, text=True, most=36), columns)


def _words(said: dict[str, Any]) -> str:
    if not said["admitted"]:
        return f"waits: {said['reason'] or '-'}"
    where = said["node"] or said["hyperNode"] or ("-" if said["tier"] is None else "the whole tree")
    tier = "" if said["tier"] is None else f", tier {said['tier']}"
    when = "" if said["time"] is None else f" at {said['time'][11:19]}"
    return f"{counted(said['placed'], 'pod')}: {where}{tier}{when}"
