"""The JSON Schemas that ship with the package say what is written and what is read."""

from __future__ import annotations

import importlib.resources
import json
import re
from pathlib import Path
from typing import Any

import jsonschema
import pytest

import placer
from placer.kube.policy import PolicyManifest
from placer.kube.reader import Misfit, SchemaReader
from tests.write_schemas import DOCUMENTS, REPORTS, report_schema, schema_of

POLICY = {"apiVersion": "placer.dev/v1alpha1", "kind": "Policy", "metadata": {"name": "default"}}

GOOD = [
    {},
    {"levels": ["locality", "placed"]},
    {"levels": []},
    {"networkCost": "majority", "network": {"topology": "default/nt", "weights": "UserDefined"}},
    {"topologyKeys": ["switch", "rack"], "locality": "all"},
    {"resourceWeights": {"nvidia.com/gpu": 2.5, "cpu": 1}},
    {"rules": {"C8": "off", "C9": False, "C10": "off", "C11": None}},
    {"levels": None, "network": None, "rules": None},
    {"gangs": "owners"},
    {"gangs": "declared", "disruption": {"evict": "none", "move": "fewest", "protect": [], "maxPods": 3}},
    {"disruption": {"protect": [{"selector": {"matchLabels": {"a": "b"}}, "namespaces": ["ml"]}]}},
    {
        "disruption": {
            "evict": "lower-priority",
            "protect": [{"selector": {"matchExpressions": [{"key": "a", "operator": "Exists"}]}}],
        }
    },
]
BAD = [
    {"levels": ["placed", "placed"]},
    {"levels": ["speed"]},
    {"levels": "placed"},
    {"networkCost": "most"},
    {"network": {"topology": "no-namespace"}},
    {"topologyKeys": ["rack", "rack"]},
    {"topologyKeys": [""]},
    {"locality": "some"},
    {"resourceWeights": {"cpu": 0}},
    {"resourceWeights": {"cpu": -1}},
    {"resourceWeights": {"cpu": "2"}},
    {"resourceWeights": {"cpu": True}},
    {"rules": {"C7": "off"}},
    {"rules": {"C8": True}},
    {"rules": {"C8": "on"}},
    {"level": ["placed"]},
    {"gangs": "all"},
    {"disruption": {"evict": "all"}},
    {"disruption": {"move": "most"}},
    {"disruption": {"maxPods": -1}},
    {"disruption": {"protect": [{"labels": {"a": "b"}}]}},
    {"disruption": {"protect": [{"selector": {"matchLabel": {"a": "b"}}}]}},
    {"disruption": {"evicts": "none"}},
]


def shipped(name: str) -> Any:
    text = (importlib.resources.files("placer") / "schemas" / f"{name}.schema.json").read_text()
    schema = json.loads(text)
    jsonschema.Draft202012Validator.check_schema(schema)
    return schema


@pytest.mark.parametrize("name", DOCUMENTS)
def test_a_schema_is_that_of_its_document(name: str) -> None:
    assert shipped(name) == schema_of(DOCUMENTS[name])


@pytest.mark.parametrize("kind", REPORTS)
def test_schemas_of_reports_are_those_of_the_table(kind: str) -> None:
    assert shipped(kind.lower()) == report_schema(kind)


def test_every_kind_that_is_printed_has_a_schema() -> None:
    sources = [path.read_text() for path in (Path(placer.__file__).parent).rglob("*.py")]
    kinds = {kind for text in sources for kind in re.findall(r'(?:headed|listed)\(\s*"(\w+)"', text)}
    assert len(kinds) > 12
    for kind in kinds:
        assert shipped(kind.lower())["title"] == kind


@pytest.mark.parametrize("spec", GOOD, ids=json.dumps)
def test_policy_schema_and_reader_accept(spec: dict[str, Any]) -> None:
    document = {**POLICY, "spec": spec}
    jsonschema.validate(document, shipped("policy"))
    SchemaReader(PolicyManifest).read(json.dumps(document).encode())


@pytest.mark.parametrize("spec", BAD, ids=json.dumps)
def test_policy_schema_and_reader_refuse(spec: dict[str, Any]) -> None:
    document = {**POLICY, "spec": spec}
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(document, shipped("policy"))
    with pytest.raises(Misfit):
        SchemaReader(PolicyManifest).read(json.dumps(document).encode())
