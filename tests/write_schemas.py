"""Writes the schemas in ``placer/schemas/`` that follow from ``placer/document.py`` anew; the Policy's is by hand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec

from placer.document import CostListDocument, PlacementDocument, QueueListDocument

#: Schema to the document that it describes.
DOCUMENTS: dict[str, type[msgspec.Struct]] = {
    "placement": PlacementDocument,
    "queuelist": QueueListDocument,
    "namespacecostlist": CostListDocument,
}


def schema_of(document: type[msgspec.Struct]) -> dict[str, Any]:
    """The JSON Schema of a document, its parts under ``$defs``."""
    _, parts = msgspec.json.schema_components([document], ref_template="#/$defs/{name}")
    whole = parts.pop(document.__name__)
    schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$defs": dict(sorted(parts.items())),
        **whole,
    }
    return dict(json.loads(json.dumps(schema)))  # defaults that are tuples are lists there


def main() -> None:
    for name, document in DOCUMENTS.items():
        target = Path(__file__).parent.parent / "placer" / "schemas" / f"{name}.schema.json"
        target.write_text(json.dumps(schema_of(document), indent=2) + "\n")


if __name__ == "__main__":
    main()
