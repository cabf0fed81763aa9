"""``config``: which options hold for a pass, and where each comes from."""

from __future__ import annotations

import argparse
import json
from typing import Any

from placer.cli.pass_flags import add_pass_flags, configured, pass_options
from placer.tables import Column, tables
from placer.terminal import OK, add_command, console

__all__ = ["add_config", "values_of_keys"]


def add_config(commands: Any) -> None:
    """Add ``config`` and its flags, which are those of ``run``."""
    parser = add_command(commands, "config", "print the options that hold for a pass, and where each is from", _config)
    add_pass_flags(parser)


def _config(options: argparse.Namespace) -> int:
    options = configured(options)
    pass_options(options)
    origins, values = options.origins, values_of_keys(options)
    if options.json:
        document = {
            key: {"value": value, "source": origin.source, "name": origin.name}
            for (key, value), origin in zip(values.items(), origins.values(), strict=True)
        }
        print(json.dumps(document, indent=2))
        return OK
    terminal = console()
    names = Column("key", list(values))
    columns = [
        Column("value", [_shown(value) for value in values.values()], text=True, most=40),
        Column("from", [_from(each.source, each.name) for each in origins.values()], text=True, most=60),
    ]
    for table in tables(names, columns, terminal.width):
        terminal.print(table)
    return OK


def values_of_keys(options: argparse.Namespace) -> dict[str, Any]:
    """The value of each key that counts, as :func:`~placer.cli.pass_flags.configured` gives the options."""
    from placer.configuration import key_of

    return {key_of(name): _holding(options, name) for name in options.origins}


def _holding(options: argparse.Namespace, name: str) -> Any:
    """The value that counts, where what is given leaves it to something else."""
    from placer.cli.snapshotting import lease_of
    from placer.cores import usable_cores

    value = getattr(options, name)
    if name == "leader_elect_resource_namespace":
        return lease_of(options).namespace
    if name == "leader_elect_resource_name":
        return lease_of(options).name
    if name == "kubeconfig" and options.origins[name].source == "environment":
        import os

        return os.environ["KUBECONFIG"]
    if name == "workers" and value is None:
        return usable_cores()
    if value == float("inf"):
        return "inf"
    return None if value == "" else value


def _shown(value: object) -> str:
    return "-" if value is None else value if isinstance(value, str) else json.dumps(value)


def _from(source: str, name: str) -> str:
    return source if source == "default" else f"{source} {name}"
