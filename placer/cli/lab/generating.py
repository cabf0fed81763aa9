"""``generate``: an instance from a seed."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from typing import Any

from placer.cli import flags, printing
from placer.lab.generate import FAMILIES, Option, bindings, generate
from placer.lab.sweep.runs import planted_beside


def _shown(default: object) -> str:
    return ",".join(map(str, default)) if isinstance(default, tuple) else str(default)


def run(options: argparse.Namespace) -> int:
    """Carry out ``generate``."""
    values = _values(options, FAMILIES[options.family].flags)
    printing.check_output(options)
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
