"""Writes the JSON Schemas in ``placer/schemas/`` but for the Policy's and that of passes, which are by hand."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from placer.answers.document import CostListDocument, PlacementDocument, QueueListDocument

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


#: Types of what a key holds: a name of JSON Schema, one of these with ``?`` where null is allowed, or a nested table.
#: A list is one of its only entry's type, and a tuple, too, or null.
Table = Mapping[str, Any]

_NAME: Table = {"namespace": "string", "name": "string"}
_GROUP: Table = {"kind": "string", **_NAME}
_FINDING: Table = {"code": "string", "object": "string", "message": "string"}
_CAUSE: Table = {"code": "string", "rules": ["string"], "message": "string"}
_VALUE: Table = {"name": "string", "value": "integer"}

_RUN: Table = {
    "instance": "string",
    "seed": "integer",
    "policy": "string",
    "limit": "number",
    "workers": "integer",
    "version": "string",
    "config": "string",
    "error": "string?",
}
_APPLIED: Table = {
    "planned": "integer",
    "evicted": ["string"],
    "standing": ["string"],
    "moved": "object",
    "notMoved": ["string"],
    "elsewhere": "string?",
    "trouble": "string?",
}

#: Kind to what it holds beside ``apiVersion`` and ``kind``; a key with ``?`` behind it may be left out.
REPORTS: Mapping[str, Table] = {
    "ExplanationList": {
        "items": [
            {
                "group": _GROUP,
                "causes": [_CAUSE],
                "otherCauses": ["array"],
                "admitted": "boolean",
                "pods": "integer",
                "equal": [_NAME],
                "changes": [
                    {
                        "message": "string",
                        "with": ["object"],
                        "without": ["string"],
                        "admitted": "boolean",
                        "loses": [_NAME],
                    }
                ],
                "gated": [{**_NAME, "gates": ["string"]}],
                "answer?": "string?",
                "decidedBy?": ["string"],
                "scheduler?": "object",
            }
        ]
    },
    "CopiesList": {"items": [{"group": _GROUP, "copies": "integer", "bound": "integer", "provedBy": "string?"}]},
    "ComparisonList": {
        "items": [
            {
                "policy": "string",
                "placedPods": "integer?",
                "placedGroups": "integer?",
                "gpusPlaced": "integer?",
                "objective": [_VALUE],
                "violations": "object",
                "metrics": "object?",
                "groups": [{**_GROUP, "admitted": "boolean", "placed": "integer"}],
                "seconds": "number?",
                "peakMemoryMiB": "number?",
                "error?": "string",
                "notes?": ["string"],
                "victims?": "object",
                "today?": "object",
            }
        ]
    },
    "AuditList": {
        "items": [
            {
                "group": _GROUP,
                "rules": "string",
                "violations": ["string"],
                "tier": "integer?",
                "leaves": "integer?",
                "networkCost": "integer?",
                "best": "object?",
                "score": "number?",
                "subGroups?": ["object"],
            }
        ]
    },
    "TopologyReport": {
        "domains": [
            {
                "name": "string",
                "tier": "integer",
                "tierName": "string?",
                "parent": "string?",
                "nodes": "integer",
                "used": "object",
                "free": "object",
            }
        ],
        "findings": [_FINDING],
    },
    "Verification": {
        "valid": "boolean",
        "violations": [{"rule": "string", "subjects": ["string"], "amount": "integer", "message": "string"}],
        "objective": [_VALUE],
        "findings": [_FINDING],
        "notRead": {"unknown": ["string"], "notJudged": ["string"]},
    },
    "Check": {
        "state": "string",
        "checks": [
            {
                "check": "string",
                "state": "string",
                "object": "string",
                "found": "string",
                "expected": "string?",
                "action": "string?",
            }
        ],
    },
    "Error": {
        "error": "string",
        "message": "string",
        "faults": [
            {
                "file": "string",
                "document": "integer?",
                "object": "string",
                "field": "string",
                "found": "string",
                "expected": "string",
            }
        ],
    },
    "SweepRun": _RUN,
    "SweepRunList": {"items": [_RUN]},
    "FrontierList": {
        "items": [
            {"wanted": "integer", "room": "integer", "pods": "integer", "verdict": "string", "placement": "object"}
        ]
    },
    "AuditSums": {
        "stranded": ({"resource": "string", "amount": "integer", "reason": "string", "nodes": ["string"]},),
        "largestGangs": ({"requests": "object", "tier": "integer", "pods": "integer", "hyperNode": "string?"},),
    },
    "AppliedPlan": {"applied": {**_APPLIED, "bound": "object", "troubles": ["string"]}},
    "Pass": {
        "time": "string",
        "version": "string",
        "pass": "string?",
        "instance": "string?",
        "schedulerName": "string",
        "leader": "string?",
        "paused": "string?",
        "error": "string?",
        "termination": "string?",
        "verdict": "string?",
        "pending": "integer?",
        "placed": "integer?",
        "planned": "integer",
        "bound": "integer",
        "gangs": "object",
        "findings": "object",
        "disruption": "object?",
        "seconds": "object",
    },
    "ConfigurationReport": {},
    "HyperNodeChanges": {
        "created": ["string"],
        "changed": ["string"],
        "removed": ["string"],
        "unchanged": "integer",
        "left": ["string"],
        "dryRun": "boolean",
        "findings": [_FINDING],
    },
    "NetworkCostReport": {"networkTopology": _NAME, "weights": "string?", "links": ["object"]},
    "SnapshotSummary": {
        "file": "string",
        "schedulerName": "string?",
        "objects": "object",
        "resourceVersions": "object",
        "seconds": "number",
    },
    "GeneratedInstance": {"file": "string", "planted": "string?"},
    "Figure": {"file": "string?", "panels": ["object"]},
    "Report": {
        "placer": "string",
        "cluster": "string",
        "moment": "integer?",
        "live": "boolean",
        "headline": "string",
        "nodes": "object",
        "groups": "object",
        "pods": "object",
        "domains": "object",
        "findings": "array",
        "violations": "array",
        "comparison": "object?",
    },
    "Version": {"placer": "string"},
}


def report_schema(kind: str) -> dict[str, Any]:
    """The JSON Schema of a document that ``--json`` prints; keys may be added to it."""
    head = {"apiVersion": {"const": "placer.dev/v1alpha1"}, "kind": {"const": kind}}
    body = _typed(REPORTS[kind])
    body["properties"] = head | body["properties"]
    body["required"] = [*head, *body["required"]]
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": kind, **body}


def _typed(of: Any) -> dict[str, Any]:
    if isinstance(of, str):
        return {"type": [of[:-1], "null"] if of.endswith("?") else of}
    if isinstance(of, list | tuple):
        return {"type": "array" if isinstance(of, list) else ["array", "null"], "items": _typed(of[0])}
    parts = {key.removesuffix("?"): _typed(each) for key, each in of.items()}
    return {"type": "object", "properties": parts, "required": [key for key in of if not key.endswith("?")]}


def main() -> None:
    folder = Path(__file__).parent.parent / "placer" / "schemas"
    schemas = {name: schema_of(document) for name, document in DOCUMENTS.items()}
    schemas |= {kind.lower(): report_schema(kind) for kind in REPORTS}
    for name, schema in schemas.items():
        (folder / f"{name}.schema.json").write_text(json.dumps(schema, indent=2) + "\n")


if __name__ == "__main__":
    main()
