"""``check``: whether a cluster and our rights in it let passes do their work."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence
from itertools import groupby
from textwrap import fill

from placer.base.errors import ClusterError, StrictFindings
from placer.base.table import Column, print_tables
from placer.base.text import legible
from placer.cli import flags, printing
from placer.cli.pass_flags import configured, pass_options
from placer.passes.cluster import Client
from placer.passes.preflight import CheckResult, CheckState, check_cluster

#: Columns that the table takes at most: as many as every terminal has.
WIDTH = 80


def run(options: argparse.Namespace) -> int:
    """Carry out ``check``."""
    options = configured(options)
    asked = pass_options(options)
    client = Client.connect(options.kubeconfig, options.context)
    with printing.progress_of(options) as progress:
        progress.phase(f"asking {client.url}")
        found = check_cluster(client, asked)
    worst = _worst(found)
    if options.json:
        printing.tell(
            printing.headed("Check", {"state": worst.value, "checks": [each.as_dict() for each in found]}), options
        )
    else:
        _print(found)
    if worst is CheckState.FAILED:
        return ClusterError.exit_code
    return StrictFindings.exit_code if options.strict and worst is CheckState.WARNING else flags.OK


def _worst(results: Iterable[CheckResult]) -> CheckState:
    order = list(CheckState)
    return max((each.state for each in results), key=order.index)


def _print(results: Sequence[CheckResult]) -> None:
    terminal = printing.console()
    width = min(WIDTH, terminal.width)
    rows = [(check, list(those)) for check, those in groupby(results, key=lambda each: each.check)]
    names = Column("check", [check for check, _ in rows])
    states = Column("state", [_worst(those).value for _, those in rows], text=True)
    room = width - names.width - states.width - 4
    said = Column("found", [_in_short(those) for _, those in rows], text=True, most=room)
    print_tables(terminal, names, [states, said], width=width)
    for each in results:
        if each.state in (CheckState.WARNING, CheckState.FAILED):
            terminal.print(f"\n{each.check}: {each.state.value}: {each.object}", markup=False, width=width)
            for word, text in (("found", each.found), ("expected", each.expected), ("do", each.action)):
                terminal.print(_indented(f"{word:<10}{text}", width), markup=False, width=width)


def _in_short(results: Sequence[CheckResult]) -> str:
    if len(results) == 1:
        return f"{results[0].object}: {results[0].found}"
    good = sum(each.state is CheckState.OK for each in results)
    return f"{good} of {len(results)} as they should be"


def _indented(text: str, width: int) -> str:
    return fill(legible(text), width, initial_indent="  ", subsequent_indent=" " * 12, break_on_hyphens=False)
