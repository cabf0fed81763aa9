"""Writes ``policies.yaml``: the Policy's JSON Schema, in the words that a custom resource definition may use.

``python deploy/crds/placer/write.py``, after ``placer/schemas/policy.schema.json`` has changed.

Two things cannot be said there. Unknown keys: the server drops them with a warning, or refuses the object when it is
asked to be strict, as kubectl does. And that there is one Policy at most: two are a bad instance to whoever reads them.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import yaml

__all__ = ["definition"]

HERE = Path(__file__).parent
SCHEMA = HERE.parents[2] / "placer" / "schemas" / "policy.schema.json"

#: Columns of `kubectl get`, beside the age: what is empty there has its default.
_COLUMNS = {
    "Levels": ".spec.levels",
    "Locality": ".spec.locality",
    "Gangs": ".spec.gangs",
    "Evict": ".spec.disruption.evict",
    "Move": ".spec.disruption.move",
}
_SAME = ("type", "description", "pattern", "minLength", "minimum", "maximum", "required")


def definition() -> dict[str, Any]:
    """The custom resource definition, from the schema that ships with the package."""
    schema = json.loads(SCHEMA.read_text())
    properties = {
        "apiVersion": {"type": "string"},
        "kind": {"type": "string"},
        "metadata": {"type": "object"},
        "spec": structural(schema["properties"]["spec"]),
    }
    top = {"type": "object", "description": schema["description"], "properties": properties}
    columns = [{"name": name, "type": "string", "jsonPath": path} for name, path in _COLUMNS.items()]
    version = {
        "name": "v1alpha1",
        "served": True,
        "storage": True,
        "additionalPrinterColumns": [
            *columns,
            {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
        ],
        "schema": {"openAPIV3Schema": top},
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "policies.placer.dev"},
        "spec": {
            "group": "placer.dev",
            "names": {"kind": "Policy", "listKind": "PolicyList", "plural": "policies", "singular": "policy"},
            "scope": "Cluster",
            "versions": [version],
        },
    }


def structural(schema: dict[str, Any]) -> dict[str, Any]:
    """A schema in the words of Kubernetes.

    Raises
    ------
    ValueError
        The schema says something that has no such words here.
    """
    known = {*_SAME, "enum", "default", "items", "properties", "additionalProperties", "propertyNames", "uniqueItems"}
    unknown = schema.keys() - known - {"exclusiveMinimum"}
    if unknown:
        raise ValueError(f"no words for {sorted(unknown)}")
    made = {key: schema[key] for key in _SAME if key in schema}
    if "default" in schema:  # told and not set: what nobody wrote shall not look as if somebody had
        made["description"] = f"{made.get('description', '')} Default: {json.dumps(schema['default'])}.".strip()
    _type(schema, made)
    if schema.get("uniqueItems"):
        made["x-kubernetes-list-type"] = "set"
    if "items" in schema:
        made["items"] = structural(schema["items"])
    if "properties" in schema:
        made["properties"] = {key: structural(each) for key, each in schema["properties"].items()}
    elif "additionalProperties" in schema:
        made["additionalProperties"] = structural(schema["additionalProperties"])
    if "exclusiveMinimum" in schema:
        made |= {"minimum": schema["exclusiveMinimum"], "exclusiveMinimum": True}
    if "propertyNames" in schema:
        if schema["propertyNames"] != {"minLength": 1}:
            raise ValueError(f"no words for keys like {schema['propertyNames']}")
        made["x-kubernetes-validations"] = [{"rule": "!('' in self)", "message": "keys must not be empty"}]
    return made


def _type(schema: dict[str, Any], made: dict[str, Any]) -> None:
    """One type and ``nullable`` for what was a list of types or of values."""
    if "enum" in schema:
        values = [each for each in schema["enum"] if each is not None]
        if all(isinstance(each, str) for each in values):
            made["type"] = "string"
        else:  # values of several types have no type that could be named
            made["x-kubernetes-preserve-unknown-fields"] = True
        if None in schema["enum"]:  # a plain enum is asked about null too, and never has it
            made |= {"nullable": True, "anyOf": [{"enum": values}]}
        else:
            made["enum"] = values
    elif isinstance(schema["type"], list):
        (made["type"],) = (each for each in schema["type"] if each != "null")
        made["nullable"] = True


def main() -> None:
    head = "# Made by write.py from placer/schemas/policy.schema.json.\n"
    (HERE / "policies.yaml").write_text(head + yaml.safe_dump(definition(), sort_keys=False, width=120))


if __name__ == "__main__":
    main()
