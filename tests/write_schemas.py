"""Writes ``placer/schemas/placement.schema.json`` anew after the document has changed; the Policy's is by hand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec

from placer.document import PlacementDocument


def placement_schema() -> dict[str, Any]:
    """The JSON Schema of a Placement, its parts under ``$defs``."""
    _, parts = msgspec.json.schema_components([PlacementDocument], ref_template="#/$defs/{name}")
    document = parts.pop(PlacementDocument.__name__)
    schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$defs": dict(sorted(parts.items())),
        **document,
    }
    return dict(json.loads(json.dumps(schema)))  # defaults that are tuples are lists there


def main() -> None:
    target = Path(__file__).parent.parent / "placer" / "schemas" / "placement.schema.json"
    target.write_text(json.dumps(placement_schema(), indent=2) + "\n")


if __name__ == "__main__":
    main()
