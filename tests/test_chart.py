"""``deploy/chart``: Helm renders what kustomize renders of the folders that it links to, and checks its values."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

import placer
from placer.configuration import Configuration
from tests.cluster.binaries import helm, program, programs
from tests.cluster.conftest import _found
from tests.test_deploy import DEPLOY

CHART = DEPLOY / "chart"
SCHEMA = json.loads((CHART / "values.schema.json").read_text())["properties"]
OVERLAYS = SCHEMA["overlays"]["items"]["enum"]
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


def rendered(program: Path, values: dict[str, Any], namespace: str = "placer") -> Objects:
    """What the chart makes of values."""
    return by_name(templated(program, values, namespace).stdout)


def templated(
    program: Path, values: dict[str, Any], namespace: str = "placer", *, check: bool = True
) -> subprocess.CompletedProcess[str]:
    command = [str(program), "template", "placer", str(CHART), "--namespace", namespace, "--values", "-"]
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
    """But for definitions of others, and the Policy, which has a value of its own."""
    assert set(OVERLAYS) == {path.name for path in (DEPLOY / "overlays").iterdir()}
    folders = {path.parent.name for path in DEPLOY.glob("*/kustomization.yaml")}
    assert set(COMPONENTS) == folders - {"base", "crds", "policy"}
    assert {path.name for path in (CHART / "manifests").iterdir()} == {"base", "overlays", *COMPONENTS}


@pytest.mark.parametrize("overlay", [None, *OVERLAYS])
def test_helm_renders_what_kustomize_renders(overlay: str | None, helm_program: Path) -> None:
    folder = "base" if overlay is None else f"overlays/{overlay}"
    values = {"createNamespace": True, "overlays": [] if overlay is None else [overlay]}
    assert rendered(helm_program, values) == kustomized(folder)


def test_components_are_beside_the_base(helm_program: Path) -> None:
    values = {"createNamespace": True, "components": COMPONENTS}
    assert rendered(helm_program, values) == kustomized("base", *COMPONENTS)


def test_arguments_of_several_overlays_are_behind_those_of_the_loop(helm_program: Path) -> None:
    """As ``deploy/README.md`` has one put them into an overlay of one's own."""
    found = rendered(helm_program, {"overlays": ["rollback", "deployment", "inqueue"], "args": ["--strict"]})
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


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"overlays": ["dryrun"]}, "/overlays/0"),
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
    keys = Configuration.model_json_schema(by_alias=True)["properties"].keys() - {"apiVersion", "kind"}
    assert SCHEMA["options"]["properties"].keys() == keys


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
