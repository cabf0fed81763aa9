"""``placer check`` on a real API server: what each overlay grants is what it asks for, and one right less is told."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml

from placer.cli import main
from placer.cli.pass_flags import configured, pass_options
from placer.cli.program import parser
from placer.passes.cluster import Client
from placer.passes.cluster.reading.access import Right, allows
from placer.passes.preflight.rights import needed_rights
from tests.cluster.deployed import Deployed, refused
from tests.cluster.passes import gang
from tests.cluster.things import live_pod
from tests.examples import every
from tests.support import node
from tests.test_deploy import DEPLOY, composed
from tests.waiting import wait_until

OVERLAYS = (
    "base",
    "overlays/dry-run",
    "overlays/rollback",
    "overlays/inqueue",
    "overlays/beside-volcano",
    "overlays/controllers",
    "overlays/gates",
    "overlays/deployment",
    "overlays/disruption",
)
LOOP = "overlays/deployment"
#: Definitions of Volcano that another test may have left, and none of ``deploy/crds``.
JOBS = ("jobs.batch.volcano.sh", "cronjobs.batch.volcano.sh")
Told = tuple[int, dict[str, Any]]


def rendered(deployed: Deployed, folder: str) -> list[dict[str, Any]]:
    """What kustomize makes of a folder."""
    return [each for each in yaml.safe_load_all(deployed.kubectl("kustomize", str(DEPLOY / folder))) if each]


def flags(documents: list[dict[str, Any]], folder: Path) -> list[str]:
    """The arguments of the CronJob or Deployment behind ``run``; the file that its ConfigMap mounts is in a folder."""
    (workload,) = (each["spec"] for each in documents if each["kind"] in ("CronJob", "Deployment"))
    (config,) = (each for each in documents if each["kind"] == "ConfigMap")
    (container,) = workload.get("jobTemplate", {"spec": workload})["spec"]["template"]["spec"]["containers"]
    for name, text in config["data"].items():
        (folder / name).write_text(text)
    return [each.replace("/etc/placer", str(folder)) for each in container["args"]][1:]


def roles_of(documents: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The roles of placer's account: those of tenants are aggregated to roles that a cluster has."""
    roles = [each for each in documents if each["kind"] in ("Role", "ClusterRole")]
    return [each for each in roles if not any("/aggregate-to-" in key for key in each["metadata"].get("labels", ()))]


def granted(documents: list[dict[str, Any]]) -> set[Right]:
    """Every right that the roles of an overlay give to placer's account."""
    return {
        Right(group, resource, verb, role["metadata"].get("namespace", ""), name)
        for role in roles_of(documents)
        for rule in role["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
        for name in rule.get("resourceNames", [""])
    }


def checked(capsys: pytest.CaptureFixture[str], *words: str) -> Told:
    """The exit code and what was told."""
    capsys.readouterr()
    code = main(["check", "--json", *words])
    told = capsys.readouterr()
    assert told.out, told.err
    found: dict[str, Any] = json.loads(told.out)
    return code, found


def wrong(told: dict[str, Any]) -> list[tuple[str, str]]:
    """What is not as it should be: check and object."""
    return [(each["check"], each["object"]) for each in told["checks"] if each["state"] in ("warning", "failed")]


def given(documents: list[dict[str, Any]]) -> set[Right]:
    """Every right that the account has, where its roles are bound."""
    roles = {(each["kind"], each["metadata"]["name"]): each for each in documents if each["kind"].endswith("Role")}
    found = set[Right]()
    for each in documents:
        if each["kind"] in ("RoleBinding", "ClusterRoleBinding"):
            role = roles.get((each["roleRef"]["kind"], each["roleRef"]["name"]))
            place = each["metadata"].get("namespace", "")
            found |= {replace(right, namespace=place) for right in granted([role] if role else [])}
    return found


@pytest.mark.parametrize("component", [each.partition("/")[2] for each in OVERLAYS[1:] if each != LOOP])
def test_a_component_grants_a_loop_what_it_asks_for_and_nothing_else(
    component: str, deployed: Deployed, tmp_path: Path
) -> None:
    documents = rendered(deployed, str(composed(tmp_path, LOOP, components=[component])))
    options = pass_options(configured(parser().parse_args(["run", *flags(documents, tmp_path)])))
    assert {each.right for each in needed_rights(options)} == granted(documents) == given(documents)


@pytest.mark.parametrize("way", ["base", LOOP])
def test_passes_for_some_namespaces_are_granted_nothing_in_others(way: str, deployed: Deployed, tmp_path: Path) -> None:
    folder = composed(tmp_path, way, "namespace-rights", components=["gates", "namespaces"])
    documents = rendered(deployed, str(folder))
    words = [*flags(documents, tmp_path), "--namespaces=default"]
    options = pass_options(configured(parser().parse_args(["run", *words])))
    assert {each.right for each in needed_rights(options)} == given(documents)
    everywhere = {each.verb for each in given(documents) if not each.namespace}
    assert everywhere <= {"get", "list", "watch"}


def test_passes_for_some_namespaces_work_with_the_rights_in_these(
    deployed: Deployed, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each pod of the namespace is bound or told why it waits; those of others cannot even be bound by the token."""
    folder = composed(tmp_path, "base", "namespace-rights", components=["namespaces"])
    deployed.apply("crds")
    deployed.kubectl("apply", "-k", str(folder))
    deployed.api.create(node("n1"), *gang("train", 2), live_pod("large", cpu=1000))
    deployed.api.create(live_pod("theirs", namespace="tenant", cpu=1))
    placer = deployed.as_account("placer")
    assert refused(placer.bind, "tenant", "theirs", "n1") == 403
    assert refused(placer.delete, "/api/v1/namespaces/tenant/pods/theirs") == 403
    words = ("--kubeconfig", deployed.kubeconfig("placer"), "--namespaces=default")
    code, told = checked(capsys, *words)
    assert (code, {check for check, _ in wrong(told)} - {"volcano"}) == (0, set())
    assert main(["run", *words, "--method=greedy", "--settle=0"]) == 0
    line = json.loads(capsys.readouterr().out)
    assert (line["bound"], line["told"]["conditions"], line["told"]["troubles"]) == (2, 1, [])
    assert deployed.api.get("/api/v1/namespaces/tenant/pods/theirs")["spec"].get("nodeName") is None


def test_every_overlay_is_among_them() -> None:
    assert set(OVERLAYS) == {"base", *(f"overlays/{each.name}" for each in (DEPLOY / "overlays").iterdir())}


@pytest.mark.parametrize("folder", OVERLAYS)
def test_what_an_overlay_grants_is_asked_for_and_nothing_else(folder: str, deployed: Deployed, tmp_path: Path) -> None:
    documents = rendered(deployed, folder)
    options = pass_options(configured(parser().parse_args(["run", *flags(documents, tmp_path)])))
    assert {each.right for each in needed_rights(options)} == granted(documents)


@pytest.mark.parametrize("folder", every(4, OVERLAYS))
def test_the_account_of_an_overlay_has_what_it_needs(
    folder: str, deployed: Deployed, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    deployed.api.uninstall(*JOBS)
    deployed.apply("crds", folder)
    words = flags(rendered(deployed, folder), tmp_path)
    code, told = checked(capsys, "--kubeconfig", deployed.kubeconfig("placer"), *words)
    apart = {("volcano", "vc-scheduler"), ("kinds", "Job.batch.volcano.sh")}  # neither is there
    assert set(wrong(told)) <= apart
    assert code == (6 if "--inqueue" in words else 0)
    (server,) = (each for each in told["checks"] if each["check"] == "server")
    assert server["found"].endswith("as system:serviceaccount:placer:placer")


def less(role: dict[str, Any], right: Right) -> list[dict[str, Any]]:
    """The rules of a role without one of its rights."""
    return [
        rule | {"apiGroups": [group], "resources": [resource], "verbs": [verb]}
        for rule in role["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
        if (group, resource, verb) != (right.group, right.resource, right.verb)
        or rule.get("resourceNames", [""]) != [right.name]
    ]


@pytest.mark.parametrize(
    ("folder", "step"), [("base", 8), *(pytest.param(each, 1, marks=pytest.mark.exhaustive) for each in OVERLAYS)]
)
def test_one_right_less_is_told_with_what_to_do(
    folder: str, step: int, deployed: Deployed, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Every one of them in turn, or some; of a kind that is not installed here it is a warning."""
    deployed.api.uninstall(*JOBS)
    deployed.apply("crds", folder)
    documents = rendered(deployed, folder)
    config = deployed.kubeconfig("placer")
    words = ("--kubeconfig", config, *flags(documents, tmp_path))
    account = Client.connect(config)
    code, before = checked(capsys, *words)
    tried = 0
    for role in roles_of(documents):
        path = deployed.api.path(role)
        for right in sorted(granted([role]))[::step]:
            _put(deployed, path, less(role, right))
            wait_until(partial(_refuses, account, right))
            found, told = checked(capsys, *words)
            _put(deployed, path, role["rules"])
            (missing,) = (each for each in told["checks"] if each["object"] == str(right))
            assert right.rule in missing["action"]
            assert {("rights", str(right))} <= set(wrong(told)) <= {("rights", str(right)), *wrong(before)}
            assert missing["state"] == ("warning" if "the kind is not served" in missing["found"] else "failed")
            assert found == (6 if missing["state"] == "failed" else code)
            wait_until(partial(allows, account, right))
            tried += 1
    assert tried * step >= len(granted(documents))


def _refuses(account: Client, right: Right) -> bool:
    return not allows(account, right)


def _put(deployed: Deployed, path: str, rules: list[dict[str, Any]]) -> None:
    deployed.api.call("PUT", path, deployed.api.get(path) | {"rules": rules})
