"""``deploy/``, offline: what says which Policies and HyperNodes a server takes. ``tests/cluster`` asks one."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import pytest

from deploy.crds.placer.write import definition, structural
from placer.kube.manifests import Text, split, validate
from tests.test_deploy import DEPLOY, one
from tests.test_schemas import BAD, GOOD, POLICY

# ----------------------------------------------------------------------------------------------------------- the Policy


def test_the_definition_of_a_policy_is_made_from_the_schema() -> None:
    assert one(DEPLOY / "crds" / "placer" / "policies.yaml", "CustomResourceDefinition") == definition()


def test_columns_show_keys_that_there_are() -> None:
    (version,) = definition()["spec"]["versions"]
    *columns, age = version["additionalPrinterColumns"]
    assert age["jsonPath"] == ".metadata.creationTimestamp"
    for column in columns:
        found = version["schema"]["openAPIV3Schema"]
        for key in column["jsonPath"].removeprefix(".").split("."):
            found = found["properties"][key]


def as_json_schema(schema: Any) -> Any:
    """A schema in the words of Kubernetes as JSON Schema; keys that it does not know are refused."""
    if isinstance(schema, list):
        return [as_json_schema(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    made = {key: value if key == "enum" else as_json_schema(value) for key, value in schema.items()}
    if made.pop("exclusiveMinimum", False) is True:
        made["exclusiveMinimum"] = made.pop("minimum")
    if made.pop("x-kubernetes-list-type", None) == "set":
        made["uniqueItems"] = True
    if "properties" in schema:
        made["additionalProperties"] = False
    return {"anyOf": [{"type": "null"}, made]} if made.pop("nullable", False) is True else made


def policy_schema() -> Any:
    (version,) = one(DEPLOY / "crds" / "placer" / "policies.yaml", "CustomResourceDefinition")["spec"]["versions"]
    found: Any = as_json_schema(version["schema"]["openAPIV3Schema"])
    found["properties"]["metadata"] = {"type": "object"}
    return found


@pytest.mark.parametrize("spec", GOOD, ids=json.dumps)
def test_the_definition_takes_good_policies(spec: dict[str, Any]) -> None:
    jsonschema.validate({**POLICY, "spec": spec}, policy_schema())


@pytest.mark.parametrize("spec", BAD, ids=json.dumps)
def test_the_definition_refuses_bad_policies(spec: dict[str, Any]) -> None:
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({**POLICY, "spec": spec}, policy_schema())


def test_what_has_no_words_there_is_not_left_out() -> None:
    with pytest.raises(ValueError, match=r"no words for \['oneOf'\]"):
        structural({"type": "object", "oneOf": []})
    with pytest.raises(ValueError, match="no words for keys"):
        structural({"type": "object", "propertyNames": {"pattern": "a"}})


def test_the_shipped_policy_is_read_and_is_the_default() -> None:
    """Each key as the schema has it."""
    path = DEPLOY / "policy" / "policy.yaml"
    (policy,) = validate(split([Text("policy.yaml", path.read_bytes())])).policies
    assert policy.name == "default"
    schema = json.loads((DEPLOY.parent / "placer" / "schemas" / "policy.schema.json").read_text())
    defaults = {
        key: each["default"] for key, each in schema["properties"]["spec"]["properties"].items() if "default" in each
    }
    document = one(path, "Policy")
    jsonschema.validate(document, policy_schema())
    assert document["spec"] == {**defaults, "rules": {}}


# ------------------------------------------------------------------------------------------------- checks of HyperNodes


def test_bad_hyper_nodes_are_refused_and_not_only_told() -> None:
    path = DEPLOY / "admission" / "hypernodes.yaml"
    policy, binding = one(path, "ValidatingAdmissionPolicy"), one(path, "ValidatingAdmissionPolicyBinding")
    assert policy["spec"]["failurePolicy"] == "Fail"
    (rule,) = policy["spec"]["matchConstraints"]["resourceRules"]
    assert (rule["apiGroups"], rule["resources"]) == (["topology.volcano.sh"], ["hypernodes"])
    assert set(rule["operations"]) == {"CREATE", "UPDATE"}
    assert binding["spec"] == {"policyName": policy["metadata"]["name"], "validationActions": ["Deny"]}
    for each in policy["spec"]["validations"]:
        assert each["message"].startswith("spec.members: ")
        assert each["expression"].count("(") == each["expression"].count(")")
