"""``deploy/`` on a real API server: Policies and HyperNodes are taken and refused at the door as they are when read."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import yaml

from placer.passes.cluster import Client, take
from tests.cluster.api import Api, Refused
from tests.cluster.deployed import Deployed, refused
from tests.support import Document, hyper_node
from tests.test_deploy import DEPLOY, one
from tests.test_schemas import BAD, GOOD, POLICY
from tests.waiting import wait_until

HYPER_NODES = "/apis/topology.volcano.sh/v1alpha1/hypernodes"
SHIPPED = DEPLOY / "crds" / "volcano" / "hypernodes.yaml"
POLICIES = "/apis/placer.dev/v1alpha1/policies"


# --------------------------------------------------------------------------------------------------------------- Policy


@pytest.fixture
def policies(deployed: Deployed) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """Have a Policy checked as kubectl has it checked, without keeping it."""
    deployed.apply("crds/placer")
    where = f"{POLICIES}?dryRun=All&fieldValidation=Strict"
    return lambda spec: deployed.api.call("POST", where, {**POLICY, "spec": spec})


def test_policies_are_taken_and_refused_as_the_reader_does(
    policies: Callable[[dict[str, Any]], dict[str, Any]],
) -> None:
    good: list[Any] = GOOD
    bad: list[Any] = BAD
    for spec in good:
        kept = {key: each for key, each in spec.items() if each is not None}
        assert {key: each for key, each in policies(spec)["spec"].items() if each is not None} == kept, spec
    for spec in bad:
        assert refused(policies, spec) in (400, 422), spec


def test_kubectl_applies_the_shipped_policy_and_a_rule_that_is_off(deployed: Deployed) -> None:
    """Its YAML is 1.1, where ``off`` is false; both mean off."""
    deployed.apply("crds/placer")
    deployed.apply("policy")
    text = (DEPLOY / "policy" / "policy.yaml").read_text()
    deployed.kubectl("apply", "-f", "-", text=text.replace("rules: {}", "rules: {C10: off}"))
    assert deployed.api.get(f"{POLICIES}/default")["spec"]["rules"] == {"C10": False}
    snapshot = take(Client.connect(deployed.kubeconfig()))
    (policy,) = snapshot.objects().policies
    assert policy.spec is not None
    assert policy.spec.rules is not None
    assert policy.spec.rules.c10 == "off"


# ----------------------------------------------------------------------------------------------------------- HyperNodes


def member(kind: str = "Node", **selector: Any) -> dict[str, Any]:
    return {"type": kind, "selector": selector}


def with_members(*members: Document) -> Document:
    return {**hyper_node("h", 1), "spec": {"tier": 1, "members": list(members)}}


EXACT: dict[str, Any] = {"exactMatch": {"name": "n1"}}
REGEX: dict[str, Any] = {"regexMatch": {"pattern": "^n[0-9]+$"}}
LABEL: dict[str, Any] = {"labelMatch": {"matchLabels": {"rack": "r1"}}}

TAKEN = {
    "a spine": hyper_node("spine", 2, children=("leaf-1", "leaf-2"), tier_name="spine"),
    "by name": with_members(member(**EXACT)),
    "a HyperNode": with_members(member("HyperNode", **EXACT)),
    "by pattern": with_members(member(**REGEX)),
    "by labels": with_members(member(**LABEL)),
    "each in its way": with_members(member(**EXACT), member(**REGEX), member(**LABEL)),
    "a name with dots": with_members(member(exactMatch={"name": "n1.rack-2.example.com"})),
    "a class that Go knows": with_members(member(regexMatch={"pattern": r"(?i)^\pL[[:alnum:]]{3}$"})),
    "thousands": with_members(*(member(exactMatch={"name": f"node-{number}"}) for number in range(3000))),
}
REFUSED = {
    "none": (with_members(), "expected at least one"),
    "no list": ({**hyper_node("h", 1), "spec": {"tier": 1}}, "expected at least one"),
    "no selector": (with_members({"type": "Node"}), "exactly one"),
    "an empty selector": (with_members(member()), "exactly one"),
    "two": (with_members(member(**EXACT, **REGEX)), "exactly one"),
    "two others": (with_members(member(**EXACT), member(**EXACT, **LABEL)), "exactly one"),
    "no name": (with_members(member(exactMatch={"name": ""})), "exactMatch.name"),
    "no such name": (with_members(member(exactMatch={"name": "Node 1"})), "exactMatch.name"),
    "no pattern": (with_members(member(regexMatch={"pattern": ""})), "must not be empty"),
    "half a pattern": (with_members(member(**REGEX), member(regexMatch={"pattern": "n[0-9"})), "missing closing ]"),
    "not closed": (with_members(member(regexMatch={"pattern": "(n1|n2"})), "missing closing )"),
    "Go has no look-ahead": (with_members(member(regexMatch={"pattern": "n(?=1)"})), "invalid or unsupported Perl"),
    "HyperNodes by pattern": (with_members(member("HyperNode", **REGEX)), "needs selector.exactMatch"),
    "HyperNodes by labels": (with_members(member("HyperNode", **LABEL)), "needs selector.exactMatch"),
}


def lenient() -> Document:
    """Volcano's definition without a word on what is in a HyperNode, so that nothing but the policy can refuse."""
    found = one(SHIPPED, "CustomResourceDefinition")
    for version in found["spec"]["versions"]:
        anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
        version["schema"] = {"openAPIV3Schema": anything}
    return found


def ask(api: Api, document: Document) -> None:
    api.call("POST", f"{HYPER_NODES}?dryRun=All", document)


def answer(api: Api, document: Document) -> str:
    """What the server says against an object; nothing, where it would take it."""
    try:
        ask(api, document)
    except Refused as refusal:
        return str(refusal)
    return ""


@pytest.fixture(params=["lenient", "shipped"])
def guarded(request: pytest.FixtureRequest, deployed: Deployed) -> Iterator[Deployed]:
    """The policy, in force; beside a definition that checks nothing, or the one that is shipped."""
    api = deployed.api
    deployed.apply("crds/volcano")
    untyped = {**hyper_node("h", 1), "spec": {"tier": "one"}}  # refused by the definition that is shipped
    if request.param == "lenient":
        deployed.kubectl("replace", "-f", "-", text=yaml.safe_dump(lenient()))
        wait_until(lambda: not answer(api, untyped), "a definition that checks nothing")
        for bad, _ in REFUSED.values():
            ask(api, bad)
    deployed.apply("admission")
    bad, message = REFUSED["HyperNodes by pattern"]  # one that no definition refuses
    wait_until(lambda: message in answer(api, bad), "the policy in force")
    yield deployed
    if request.param == "lenient":
        deployed.remove()
        deployed.kubectl("replace", "-f", str(SHIPPED))
        wait_until(lambda: bool(answer(api, untyped)), "the definition that is shipped")


def test_good_hyper_nodes_are_taken_and_bad_ones_refused(guarded: Deployed, request: pytest.FixtureRequest) -> None:
    for document in TAKEN.values():
        ask(guarded.api, document)
    for name, (document, message) in REFUSED.items():
        with pytest.raises(Refused) as refusal:
            ask(guarded.api, document)
        assert refusal.value.status == 422, name
        if "lenient" in request.node.name:
            assert message in str(refusal.value), name


def test_a_hyper_node_cannot_become_a_bad_one(guarded: Deployed) -> None:
    guarded.api.create(TAKEN["by pattern"])
    broken = {"spec": {"members": [member(regexMatch={"pattern": "n["})]}}
    with pytest.raises(Refused, match="missing closing"):
        guarded.api.patch(f"{HYPER_NODES}/h", broken)
    guarded.api.patch(f"{HYPER_NODES}/h", {"spec": {"tier": 2}})
