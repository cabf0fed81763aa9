"""``config``: which options hold for a pass, and where each comes from."""

from __future__ import annotations

import argparse
import json

from placer.base.table import Column, print_tables
from placer.cli import flags, printing
from placer.cli.pass_flags import configured, pass_options, values_of_keys


def run(options: argparse.Namespace) -> int:
    """Carry out ``config``."""
    options = configured(options)
    pass_options(options)
    origins, values = options.origins, values_of_keys(options)
    if options.json:
        document = {
            key: {"value": value, "source": origin.source, "name": origin.name}
            for (key, value), origin in zip(values.items(), origins.values(), strict=True)
        }
        printing.tell(printing.headed("ConfigurationReport", document), options, document)
        return flags.OK
    terminal = printing.console()
    names = Column("key", list(values))
    columns = [
        Column("value", [_shown(value) for value in values.values()], text=True, most=40),
        Column("from", [str(each) for each in origins.values()], text=True, most=60),
    ]
    print_tables(terminal, names, columns)
    return flags.OK


def _shown(value: object) -> str:
    return "-" if value is None else value if isinstance(value, str) else json.dumps(value)
