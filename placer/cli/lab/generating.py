"""``generate``: an instance from a seed."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from placer.cli import flags, printing

if TYPE_CHECKING:
    from placer.lab.generate import Option


def add_generate(commands: Any, families: bool = True) -> None:
    """Add ``generate`` and, if ``families``, a command below it for each family, whose options are its flags."""
    parser = flags.add_command(commands, "generate", "make an instance from a seed", _generate)
    if families:
        _add_families(parser)


def _add_families(parser: argparse.ArgumentParser) -> None:
    from placer.lab.generate import FAMILIES

    commands = parser.add_subparsers(dest="family", metavar="FAMILY", required=True, help="one of")
    for name, family in FAMILIES.items():
        one = commands.add_parser(name, help=family.text, description=family.text)
        flags.add_output(one, "where to write; default standard output", "-")
        for option in family.flags:
            if option.switch:
                one.add_argument(option.flag, dest=f"option_{option.name}", action="store_true", help=option.text)
            else:
                text = f"{option.text} ({option.expected}; default {_shown(option.default)})"
                one.add_argument(option.flag, dest=f"option_{option.name}", metavar="N", help=text.replace("%", "%%"))


def _shown(default: object) -> str:
    return ",".join(map(str, default)) if isinstance(default, tuple) else str(default)


def _generate(options: argparse.Namespace) -> int:
    from placer.lab.generate import FAMILIES, bindings, generate
    from placer.lab.sweep.runs import planted_beside

    values = _values(options, FAMILIES[options.family].flags)
    printing.writable([Path(options.output)] if options.output != "-" else [])
    made = generate(options.family, **values)
    printing.put({"apiVersion": "v1", "kind": "List", "items": made.documents}, options, as_json=True)
    if options.output == "-":
        return flags.OK
    planted = planted_beside(options.output) if made.planted is not None else None
    if planted is not None:
        printing.write(bindings(made), planted)
    if options.json:
        document = {"file": options.output, "planted": planted, **made.summary}
        printing.tell(printing.headed("GeneratedInstance", document), options, [options.output])
    else:
        print(", ".join(f"{name} {number:,}" for name, number in made.summary.items()))
    return flags.OK


def _values(options: argparse.Namespace, flags: Iterable[Option]) -> dict[str, Any]:
    given = ((flag, getattr(options, f"option_{flag.name}")) for flag in flags)
    return {
        flag.name: value if flag.switch else flag.parse(value) for flag, value in given if value not in (None, False)
    }
