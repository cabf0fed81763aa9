"""Writes ``placer/schemas/placement.schema.json`` anew after the document has changed; the Policy's is by hand."""

from __future__ import annotations

import json
from pathlib import Path

from placer.document import PlacementDocument


def main() -> None:
    made = PlacementDocument.model_json_schema(by_alias=True, mode="serialization")
    schema = {"$schema": "https://json-schema.org/draft/2020-12/schema", **made}
    target = Path(__file__).parent.parent / "placer" / "schemas" / "placement.schema.json"
    target.write_text(json.dumps(schema, indent=2) + "\n")


if __name__ == "__main__":
    main()
