"""``deploy/chart``: Helm renders what kustomize renders of the folders that it links to, and checks its values."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

import placer
from placer.passes.configuration import OPTIONS
from tests.cluster.binaries import helm, program, programs
from tests.cluster.conftest import _found
from tests.test_deploy import DEPLOY, composed

CHART = DEPLOY / "chart"
SCHEMA = json.loads((CHART / "values.schema.json").read_text())["properties"]
OVERLAYS = SCHEMA["overlays"]["items"]["enum"]
MODES = {"cronjob": "base", "deployment": "overlays/deployment"}
COMPONENTS = SCHEMA["components"]["items"]["enum"]

Objects = dict[tuple[str, str, str], dict[str, Any]]


@pytest.fixture(scope="session")
def helm_program() -> Path:
    return _found(helm)


def by_name(text: str) -> Objects:
    found = [each for each in yaml.safe_load_all(text) if each]
    keyed = {(each["kind"], each["metadata"].get("namespace", ""), each["metadata"]["name"]): each for each in found}
    assert len(keyed) == len(found)
    return keyed


def rendered(program: Path, values: dict[str, Any], namespace: str = "placer", release: str = "placer") -> Objects:
    """What the chart makes of values."""
    return by_name(templated(program, values, namespace, release).stdout)


def templated(
    program: Path, values: dict[str, Any], namespace: str = "placer", release: str = "placer", *, check: bool = True
) -> subprocess.CompletedProcess[str]:
    command = [str(program), "template", release, str(CHART), "--namespace", namespace, "--values", "-"]
    return subprocess.run(command, input=json.dumps(values), capture_output=True, text=True, check=check)


def kustomized(*folders: str) -> Objects:
    """What kustomize makes of folders, one after another."""
    kubectl = program(_found(programs), "kubectl")
    found: Objects = {}
    for folder in folders:
        command = [str(kubectl), "kustomize", str(DEPLOY / folder)]
        found |= by_name(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    return found


def test_every_folder_can_be_had() -> None:
    """But for definitions of others, and the Policy, which has a value of its own, as namespaces have."""
    assert {*OVERLAYS, "namespaces"} == {path.name for path in (DEPLOY / "components").iterdir()}
    assert {*OVERLAYS, "deployment"} == {path.name for path in (DEPLOY / "overlays").iterdir()}
    folders = {path.parent.name for path in DEPLOY.glob("*/kustomization.yaml")}
    assert set(COMPONENTS) == folders - {"base", "crds", "policy", "namespace-rights"}
    linked = {"base", "overlays", "components", "namespace-rights", *COMPONENTS}
    assert {path.name for path in (CHART / "manifests").iterdir()} == linked


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("overlay", [None, *OVERLAYS])
def test_helm_renders_what_kustomize_renders(
    mode: str, overlay: str | None, helm_program: Path, tmp_path: Path
) -> None:
    """Each component with each way of running, and the folders of overlays are the same."""
    values = {"createNamespace": True, "mode": mode, "overlays": [] if overlay is None else [overlay]}
    found = rendered(helm_program, values)
    if overlay is None:
        assert found == kustomized(MODES[mode])
        return
    assert found == kustomized(str(composed(tmp_path, MODES[mode], components=[overlay])))
    if mode == "cronjob":
        assert found == kustomized(f"overlays/{overlay}")


def test_namespaces_have_rights_of_their_own(helm_program: Path, tmp_path: Path) -> None:
    """And nothing may be written, deleted or evicted elsewhere; kustomize gives the same for one."""
    wanted = {"createNamespace": True, "mode": "deployment", "overlays": ["gates"]}
    found = rendered(helm_program, {**wanted, "options": {"namespaces": ["default"]}})
    own = composed(tmp_path, MODES["deployment"], "namespace-rights", components=["gates", "namespaces"])
    made = kustomized(str(own))
    config = ("ConfigMap", "placer", "placer")
    assert yaml.safe_load(found.pop(config)["data"]["placer.yaml"])["namespaces"] == ["default"]
    assert found == {key: each for key, each in made.items() if key != config}
    several = rendered(helm_program, {**wanted, "args": ["--namespaces=ml,web"]})
    given = {
        (key[1], each["roleRef"]["name"])
        for key, each in several.items()
        if key[0] == "RoleBinding" and each["roleRef"]["kind"] == "ClusterRole"
    }
    roles = ("placer-write", "placer-rollback", "placer-gates", "placer-disruption")
    assert given == {(namespace, role) for namespace in ("ml", "web") for role in roles}
    everywhere = {each["roleRef"]["name"] for key, each in several.items() if key[0] == "ClusterRoleBinding"}
    assert everywhere == {"placer-read", "placer-watch"}


def test_components_are_beside_the_base(helm_program: Path) -> None:
    values = {"createNamespace": True, "components": COMPONENTS}
    assert rendered(helm_program, values) == kustomized("base", *COMPONENTS)


def test_arguments_of_several_overlays_are_behind_those_of_the_loop(helm_program: Path) -> None:
    """As ``deploy/README.md`` has one put them into an overlay of one's own."""
    found = rendered(helm_program, {"mode": "deployment", "overlays": ["rollback", "inqueue"], "args": ["--strict"]})
    assert not any(kind == "CronJob" for kind, *_ in found)
    (container,) = found["Deployment", "placer", "placer"]["spec"]["template"]["spec"]["containers"]
    assert [each for each in container["args"] if each.startswith("--")][-3:] == [
        "--roll-back",
        "--inqueue",
        "--strict",
    ]
    assert "--every=10s" in container["args"][:-3]
    assert ("ClusterRole", "", "placer-inqueue") in found


def test_values_change_what_they_name_and_nothing_else(helm_program: Path) -> None:
    image = f"registry.example.com/placer@sha256:{'0' * 64}"
    resources = {"limits": {"cpu": "4"}}
    values = {
        "image": image,
        "resources": resources,
        "pod": {"nodeSelector": {"pool": "system"}},
        "options": {"timeLimit": 5, "workers": 4},
        "policy": {"locality": "all"},
    }
    found, base = rendered(helm_program, values), rendered(helm_program, {})
    assert found.pop(("Policy", "", "default"))["spec"] == {"locality": "all"}
    assert {key for key in base if found[key] != base[key]} == {
        ("ConfigMap", "placer", "placer"),
        ("CronJob", "placer", "placer"),
    }
    assert found.keys() == base.keys()
    pod = found["CronJob", "placer", "placer"]["spec"]["jobTemplate"]["spec"]["template"]["spec"]
    assert (pod["containers"][0]["image"], pod["containers"][0]["resources"]) == (image, resources)
    assert pod["nodeSelector"] == {"pool": "system"}
    options, before = (
        yaml.safe_load(each["ConfigMap", "placer", "placer"]["data"]["placer.yaml"]) for each in (found, base)
    )
    assert options == {**before, "timeLimit": 5, "workers": 4}


def test_everything_is_in_the_namespace_of_the_release(helm_program: Path) -> None:
    """Alerts ask for the series of that namespace."""
    values = {"createNamespace": True, "components": COMPONENTS, "measurements": ["ml", "web"]}
    found = rendered(helm_program, values, "batch")
    assert {namespace for _, namespace, _ in found} == {"", "batch", "placer-bandwidth", "ml", "web"}
    assert ("Namespace", "", "batch") in found
    assert {key[1] for key in found if key[2] == "placer-measurements"} == {"ml", "web"}
    subjects = [subject for each in found.values() for subject in each.get("subjects", ())]
    assert {each["namespace"] for each in subjects} == {"batch", "placer-bandwidth"}
    alerts = json.dumps(found["PrometheusRule", "batch", "placer"])
    assert 'namespace=\\"batch\\"' in alerts
    assert 'namespace=\\"placer\\"' not in alerts


EVERYTHING = {
    "components": ["monitoring", "discover", "admission", "measurements"],
    "overlays": ["gates", "controllers"],
}


@pytest.mark.parametrize("mode", MODES)
def test_two_releases_share_nothing(mode: str, helm_program: Path) -> None:
    """Not even in one namespace; but the namespace itself, and what a release named `placer` has the other does not."""
    values = {**EVERYTHING, "mode": mode}
    first = rendered(helm_program, values)
    options = {"schedulerName": "placer-b", "nodeSelector": "pool=b"}
    second = rendered(helm_program, {**values, "options": options}, release="pool-b")
    assert len(first) == len(second)
    assert first.keys().isdisjoint(second)
    assert {key[2].partition("-placer")[0] for key in second} == {"pool-b"}
    kinds = {key[0] for key in first}
    assert {"ServiceAccount", "PriorityClass", "ValidatingAdmissionPolicy", "FlowSchema", "ClusterRole"} <= kinds
    alerts = json.dumps(second.pop(("PrometheusRule", "placer", "pool-b-placer")))
    assert 'deployment=\\"pool-b-placer' in alerts
    assert not re.search(r'(deployment|cronjob)=\\"placer|job_name=~\\"placer', alerts)
    left = {said for key, each in second.items() if key[0] != "ConfigMap" for said in strings(each)}
    same = {"namespace", "namespaces", "app.kubernetes.io/name", "app.kubernetes.io/part-of"}
    assert {key for key, value in left if re.fullmatch("placer(-[a-z-]+)?", value)} <= {*same, "containers/name"}
    expressions = {value for key, value in left if key.endswith("expression") and "'placer'" in value}
    assert expressions == {"'placer'"}  # the namespace, where the class is theirs


def strings(value: Any, key: str = "") -> Iterator[tuple[str, str]]:
    """What is said anywhere in an object, and under which key."""
    if isinstance(value, dict):
        for name, each in value.items():
            yield from strings(each, f"{key}/{name}" if key == "containers" else name)
    elif isinstance(value, list):
        for each in value:
            yield from strings(each, key)
    elif isinstance(value, str):
        yield key, value


def test_rights_and_policies_are_those_of_the_options(helm_program: Path) -> None:
    options = {
        "schedulerName": "gpu",
        "leaderElectResourceName": "gpu-lease",
        "leaderElectResourceNamespace": "leases",
    }
    found = rendered(helm_program, {"options": options, "overlays": ["gates"]}, "batch", "gpu-placer")
    names = [
        (key[2], key[1], rule["resourceNames"])
        for key, each in found.items()
        if key[0] == "Role"
        for rule in each["rules"]
        if "resourceNames" in rule
    ]
    assert sorted(names) == [
        ("gpu-placer-lease", "leases", ["gpu-lease"]),
        ("gpu-placer-lease", "leases", ["gpu-lease-gangs"]),
        ("gpu-placer-record", "leases", ["gpu-lease-gangs"]),
    ]
    account = "request.userInfo.username == 'system:serviceaccount:batch:gpu-placer'"
    policies = [each["spec"] for key, each in found.items() if key[0] == "ValidatingAdmissionPolicy"]
    ours = [one["expression"] for each in policies for one in each.get("matchConditions", ()) if one["name"] == "ours"]
    assert set(ours) == {account}
    assert len(ours) == len(policies) - 1  # that of the class is for everybody
    said = {(one["name"], one["expression"]) for each in policies for one in each.get("variables", ())}
    named = {name: value for name, value in said if name in ("scheduler", "class", "home")}
    assert named == {"scheduler": "'gpu'", "class": "'gpu-placer'", "home": "'batch'"}
    (election,) = (each for key, each in found.items() if key[2] == "gpu-placer-leader-election")
    assert election["spec"]["rules"][0]["resourceRules"][0]["namespaces"] == ["leases"]
    pod = found["CronJob", "batch", "gpu-placer"]["spec"]["jobTemplate"]["spec"]["template"]["spec"]
    assert (pod["serviceAccountName"], pod["priorityClassName"]) == ("gpu-placer", "gpu-placer")


def test_a_release_of_another_name_has_a_lease_of_its_own(helm_program: Path) -> None:
    found = rendered(helm_program, {}, release="second")
    written = yaml.safe_load(found["ConfigMap", "placer", "second-placer"]["data"]["placer.yaml"])
    assert written["leaderElectResourceName"] == "second-placer"


@pytest.mark.parametrize(
    "values", [{"options": {"metricsBindAddress": "[::]:9090"}}, {"args": ["--metrics-bind-address=[::]:9090"]}]
)
def test_probes_and_network_policy_are_where_the_metrics_are(values: dict[str, Any], helm_program: Path) -> None:
    found = rendered(helm_program, {"mode": "deployment", "options": {"every": "30s"}, **values})
    (container,) = found["Deployment", "placer", "placer"]["spec"]["template"]["spec"]["containers"]
    (port,) = container["ports"]
    assert port == {"name": "metrics", "containerPort": 9090}
    for probe in ("readinessProbe", "livenessProbe"):
        assert container[probe]["httpGet"]["port"] == "metrics"
    (rule,) = found["NetworkPolicy", "placer", "placer-metrics"]["spec"]["ingress"]
    assert rule["ports"] == [{"protocol": "TCP", "port": 9090}]
    flags = [each for each in container["args"] if "metrics" in each]
    assert flags[-1:] in ([], ["--metrics-bind-address=[::]:9090"])


def test_an_option_goes_before_an_argument_of_the_manifests(helm_program: Path) -> None:
    """Which would go before the file otherwise."""
    found = rendered(helm_program, {"mode": "deployment", "options": {"every": "1m"}})
    (container,) = found["Deployment", "placer", "placer"]["spec"]["template"]["spec"]["containers"]
    assert not any(each.startswith("--every") for each in container["args"])
    assert yaml.safe_load(found["ConfigMap", "placer", "placer"]["data"]["placer.yaml"])["every"] == "1m"


def test_runbooks_are_where_the_documentation_is_shown(helm_program: Path) -> None:
    values = {"components": ["monitoring"], "runbooks": "https://docs.example.com/alerts.html"}
    found = rendered(helm_program, values)["PrometheusRule", "placer", "placer"]
    urls = {rule["annotations"]["runbook_url"] for group in found["spec"]["groups"] for rule in group["rules"]}
    assert "https://docs.example.com/alerts.html#placerdown" in urls
    assert {each.partition("#")[0] for each in urls} == {"https://docs.example.com/alerts.html"}


@pytest.mark.parametrize("address", ["127.0.0.1:8080", "localhost:8080", "[::1]:8080", ":0"])
def test_metrics_that_no_kubelet_reaches_are_refused(address: str, helm_program: Path) -> None:
    values = {"mode": "deployment", "options": {"metricsBindAddress": address}}
    done = templated(helm_program, values, check=False)
    assert done.returncode != 0
    assert f'options.metricsBindAddress: found "{address}", expected an address that the kubelet reaches' in done.stderr


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"overlays": ["dryrun"]}, "/overlays/0"),
        ({"mode": "Deployment"}, "/mode"),
        ({"overlays": ["inqueue", "beside-volcano"]}, "/overlays"),
        ({"overlays": ["gates", "disruption"]}, "/overlays"),
        ({"components": ["policy"]}, "/components/0"),
        ({"options": {"time_limit": 5}}, "time_limit"),
        ({"image": "placer"}, "/image"),
        ({"args": ["timeLimit"]}, "/args/0"),
        ({"pod": {"containers": []}}, "/pod/containers"),
        ({"replicas": 3}, "replicas"),
    ],
)
def test_a_value_that_cannot_be_is_refused_by_name(values: dict[str, Any], said: str, helm_program: Path) -> None:
    done = templated(helm_program, values, check=False)
    assert done.returncode != 0
    assert "values don't meet the specifications of the schema" in done.stderr
    assert said in done.stderr


def test_options_are_the_keys_of_the_configuration() -> None:
    assert SCHEMA["options"]["properties"].keys() == {each.key for each in OPTIONS.values()}


def test_its_page_has_every_value() -> None:
    rows = re.findall(r"^\| (`.*?`) \|", (CHART / "README.md").read_text(), re.MULTILINE)
    assert {name for row in rows for name in re.findall(r"`(\w+)`", row)} == SCHEMA.keys() - {"global"}


@pytest.mark.parametrize("mode", MODES)
def test_the_notes_name_what_there_is(mode: str, helm_program: Path) -> None:
    """Of what is rendered: workload, account, Lease, policy."""
    options = {"schedulerName": "placer-b", "namespaces": ["ml"]}
    values = json.dumps({"mode": mode, "overlays": ["gates", "dry-run"], "options": options})
    command = [str(helm_program), "install", "pool-b", str(CHART), "-n", "batch", "--dry-run=client", "-f", "-"]
    told = subprocess.run(command, input=values, capture_output=True, text=True, check=True).stdout
    notes = told.partition("\nNOTES:\n")[2]
    for each in (
        "pool-b-placer",
        "schedulerName: placer-b",
        "-n batch create token pool-b-placer",
        "alone: ml",
        "dry-run",
    ):
        assert each in notes
    assert "annotate lease pool-b-placer placer.dev/paused" in notes
    assert (f"{'CronJob' if mode == 'cronjob' else 'Deployment'} pool-b-placer") in notes


def test_it_is_of_this_version_and_says_every_value(helm_program: Path) -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert chart["version"] == chart["appVersion"] == placer.__version__
    assert yaml.safe_load((CHART / "values.yaml").read_text()).keys() == SCHEMA.keys() - {"global"}
    done = subprocess.run(
        [str(helm_program), "lint", "--strict", str(CHART)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout


def test_a_package_has_what_it_links_to(helm_program: Path, tmp_path: Path) -> None:
    subprocess.run([str(helm_program), "package", str(CHART), "-d", str(tmp_path)], capture_output=True, check=True)
    (package,) = tmp_path.iterdir()
    packed = [str(helm_program), "template", "placer", str(package), "--namespace", "placer"]
    told = subprocess.run(packed, capture_output=True, text=True, check=True).stdout
    assert by_name(told) == rendered(helm_program, {})
    defined = subprocess.run(
        [str(helm_program), "show", "crds", str(package)], capture_output=True, text=True, check=True
    )
    assert [each["metadata"]["name"] for each in yaml.safe_load_all(defined.stdout) if each] == ["policies.placer.dev"]
