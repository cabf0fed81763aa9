"""``deploy/``, offline: what is shipped to run in a cluster says what it must. ``tests/cluster`` applies it."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from placer.base.errors import PlacerError
from placer.cli.pass_flags import configured
from placer.cli.program import parser
from placer.kube.kinds import BY_ATTRIBUTE, KindInfo
from placer.kube.unread_kinds import LIMITS
from placer.passes.cluster import take
from placer.passes.preflight.checks import _OLDEST
from tests.cluster.binaries import CRDS
from tests.cluster.snapshots import ListServer
from tests.support import Document

DEPLOY = Path(__file__).parent.parent / "deploy"
#: What kustomize and kubectl are given; the chart is for Helm.
MANIFESTS = sorted(set(DEPLOY.rglob("*.yaml")) - set((DEPLOY / "chart").rglob("*.yaml")))
TENANTS = DEPLOY / "base" / "rbac-tenants.yaml"
KUSTOMIZATIONS = [path for path in MANIFESTS if path.name == "kustomization.yaml"]

#: (API group, resource, verb).
Right = tuple[str, str, str]


def name_of(path: Path) -> str:
    return str(path.relative_to(DEPLOY))


def documents(path: Path) -> list[dict[str, Any]]:
    """The documents of a file."""
    return [each for each in yaml.safe_load_all(path.read_text()) if each]


def composed(folder: Path, *resources: str, components: Iterable[str] = ()) -> Path:
    """A folder in which an overlay of one's own takes folders of ``deploy/``, and components."""
    said = {
        "resources": [os.path.relpath(DEPLOY / each, folder.resolve()) for each in resources],
        "components": [os.path.relpath(DEPLOY / "components" / each, folder.resolve()) for each in components],
    }
    (folder / "kustomization.yaml").write_text(json.dumps(said))
    return folder


def kustomization(path: Path) -> dict[str, Any]:
    """What a folder says to kustomize, as a kustomization or a component."""
    (found,) = documents(path)
    assert found["kind"] == ("Component" if path.parent.parent.name == "components" else "Kustomization")
    return found


def one(path: Path, kind: str) -> dict[str, Any]:
    (found,) = (each for each in documents(path) if each["kind"] == kind)
    return found


def rights(role: Mapping[str, Any]) -> set[Right]:
    """What a role, or the answer of a review of somebody's rights, allows."""
    return {
        (group, resource, verb)
        for rule in role["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }


# ------------------------------------------------------------------------------------------------- files that are there


@pytest.mark.parametrize("path", MANIFESTS, ids=name_of)
def test_every_document_is_an_object(path: Path) -> None:
    found = documents(path)
    assert found
    for each in found:
        assert each["apiVersion"]
        assert each["kind"]
        assert each["kind"] in ("Kustomization", "Component") or each["metadata"]["name"]


@pytest.mark.parametrize("path", KUSTOMIZATIONS, ids=name_of)
def test_every_file_is_listed_and_every_listed_file_is_there(path: Path) -> None:
    said = kustomization(path)
    listed = set(said.get("resources", ()))
    files = {each.name for each in path.parent.glob("*.yaml")} - {path.name}
    assert {each for each in listed if each.endswith(".yaml")} == files
    folders = {each for each in listed if not each.endswith(".yaml")} | set(said.get("components", ()))
    assert {each for each in folders if not (path.parent / each / "kustomization.yaml").exists()} == set()


def test_every_folder_of_manifests_is_a_kustomization() -> None:
    assert {path.parent for path in MANIFESTS} == {path.parent for path in KUSTOMIZATIONS}


def test_all_definitions_are_installed_together() -> None:
    folders = {each.parent.name for each in (DEPLOY / "crds").glob("*/kustomization.yaml")}
    assert set(one(DEPLOY / "crds" / "kustomization.yaml", "Kustomization")["resources"]) == folders


def test_every_kind_that_a_cluster_does_not_bring_has_a_definition() -> None:
    """Workloads apart, which are read offline only, and PodGroups of KAI, which only KAI itself makes."""
    workloads = {"batch.volcano.sh", "jobset.x-k8s.io", "leaderworkerset.x-k8s.io"}
    brought = {"", "apps", "batch", "policy", "scheduling.k8s.io", "scheduling.run.ai", *workloads}
    wanted = {
        (info.group, info.kind, info.plural, info.namespaced)
        for info in BY_ATTRIBUTE.values()
        if info.group not in brought
    }
    found = [one(path, "CustomResourceDefinition")["spec"] for path in definitions()]
    assert wanted == {
        (spec["group"], spec["names"]["kind"], spec["names"]["plural"], spec["scope"] == "Namespaced") for spec in found
    }


def definitions() -> list[Path]:
    return [path for path in sorted((DEPLOY / "crds").glob("*/*.yaml")) if path not in KUSTOMIZATIONS]


# ---------------------------------------------------------------------------------------------- copies of others' files


def copies() -> list[tuple[str, ...]]:
    """File, module, version, path there, SHA-256: the rows of the page beside them."""
    row = r"^\| `(\S+)` \| `(\S+)` (\S+) `(\S+)` \| Apache-2.0, .+ \| `([0-9a-f]{64})` \|$"
    return re.findall(row, (DEPLOY / "crds" / "README.md").read_text(), re.MULTILINE)


def test_every_copy_is_named_with_its_source_and_is_unchanged() -> None:
    own = {path for path in definitions() if path.parent.name == "placer"}
    assert {DEPLOY / "crds" / each[0] for each in copies()} == set(definitions()) - own
    for file, _, _, _, checked in copies():
        assert hashlib.sha256((DEPLOY / "crds" / file).read_bytes()).hexdigest() == checked, file


def test_copies_are_of_the_versions_that_the_tests_use() -> None:
    versions = {each.module: each.version for each in CRDS.values()}
    assert {(each[1], each[2]) for each in copies()} == set(versions.items())


# --------------------------------------------------------------------------------------------------------------- rights


def lists() -> Iterator[tuple[str, KindInfo]]:
    """Every list that a snapshot could ask for, at every group and version under which a kind is read."""
    for info in BY_ATTRIBUTE.values():
        for group in info.groups:
            for version in info.versions:
                yield f"/apis/{group}/{version}/{info.plural}" if group else f"/api/{version}/{info.plural}", info


def asked_by_a_snapshot() -> set[Right]:
    """What a snapshot asks a server that has everything."""
    app_group: Document = {"metadata": {"name": "shop"}, "spec": {}}
    topology: Document = {"metadata": {"name": "nt"}, "spec": {"configmapName": "measured"}}
    items = {"appgroups": [app_group], "networktopologies": [topology]}
    server = ListServer({path: items.get(info.plural, []) for path, info in lists()})
    server.lists = {
        **server.lists,
        **{
            f"/apis/{group}/v1alpha1/{each.plural}": [] for each in LIMITS for group in each.groups if each.of_namespace
        },
        "/api/v1/namespaces/default/configmaps/measured": [{"metadata": {"name": "measured"}}],
    }
    take(server)
    found: set[Right] = set()
    for path in server.asked:
        parts = path.split("/")
        if len(parts) < 4 or (parts[1] == "apis" and len(parts) == 4):
            continue  # API discovery and /readyz, which a server answers to everybody whom it knows
        group = parts[2] if parts[1] == "apis" else ""
        found.add((group, "configmaps", "get") if "configmaps" in parts else (group, parts[-1], "list"))
    return found


def test_what_may_be_read_is_what_a_snapshot_asks_and_what_is_watched() -> None:
    asked = asked_by_a_snapshot()
    assert ("", "pods", "list") in asked
    assert ("apps", "replicasets", "list") in asked
    assert ("", "configmaps", "get") in asked
    # After an answer that may or may not have been a yes, the pod is read again.
    more = {("", "pods", "watch"), ("", "nodes", "watch"), ("", "pods", "get")}
    measured = rights(one(DEPLOY / "measurements" / "rbac-measurements.yaml", "Role"))  # in namespaces that are named
    assert measured == {("", "configmaps", "get")}
    assert rights(one(DEPLOY / "base" / "rbac-read.yaml", "ClusterRole")) == (asked - measured) | more


@pytest.mark.parametrize(
    ("file", "wanted"),
    [
        (
            "base/rbac-write.yaml",
            {
                ("", "pods/binding", "create"),
                ("", "pods/status", "patch"),
                ("events.k8s.io", "events", "create"),
                ("scheduling.volcano.sh", "podgroups", "get"),
                ("scheduling.volcano.sh", "podgroups", "patch"),
                ("scheduling.k8s.io", "podgroups", "get"),
                ("scheduling.k8s.io", "podgroups/status", "patch"),
            },
        ),
        ("base/rbac-rollback.yaml", {("", "pods", "delete")}),
        ("components/inqueue/rbac-inqueue.yaml", {("batch.volcano.sh", "jobs", "list")}),
        (
            "components/controllers/rbac-controllers.yaml",
            {
                ("appgroup.diktyo.x-k8s.io", "appgroups", "patch"),
                ("networktopology.diktyo.x-k8s.io", "networktopologies", "patch"),
                ("topology.volcano.sh", "hypernodes/status", "patch"),
            },
        ),
        ("components/disruption/rbac-disruption.yaml", {("", "pods/eviction", "create")}),
        ("components/gates/rbac-gates.yaml", {("", "pods", "patch")}),
        ("bandwidth/rbac-bandwidth.yaml", {("", "nodes/status", "patch")}),
        (
            "discover/rbac-discover.yaml",
            {
                ("", "nodes", "list"),
                *(("topology.volcano.sh", "hypernodes", verb) for verb in ("list", "create", "patch", "delete")),
            },
        ),
    ],
)
def test_what_may_be_written_is_bindings_and_what_is_told_of_them(file: str, wanted: set[Right]) -> None:
    """And what the components of their names need."""
    assert rights(one(DEPLOY / file, "ClusterRole")) == wanted


def test_what_is_its_own_is_one_lease_and_one_record() -> None:
    made, held, *record = one(DEPLOY / "base/rbac-lease.yaml", "Role")["rules"]
    assert rights({"rules": record}) == {("", "configmaps", "create"), ("", "configmaps", "update")}
    assert [each.get("resourceNames") for each in record] == [None, ["placer-gangs"]]
    (read,) = one(DEPLOY / "base/rbac-record.yaml", "Role")["rules"]
    assert rights({"rules": [read]}) == {("", "configmaps", "get")}
    assert read["resourceNames"] == ["placer-gangs"]
    assert rights({"rules": [made]}) == {("coordination.k8s.io", "leases", "create")}
    assert rights({"rules": [held]}) == {("coordination.k8s.io", "leases", verb) for verb in ("get", "update")}
    assert held["resourceNames"] == ["placer"]


def test_the_status_of_volcanos_gangs_is_no_resource_of_its_own() -> None:
    """Else the right would have to be another one."""
    path = DEPLOY / "crds" / "volcano" / "podgroups.yaml"
    (version,) = one(path, "CustomResourceDefinition")["spec"]["versions"]
    assert version["subresources"] == {}


@pytest.mark.parametrize("path", [each for each in MANIFESTS if "rbac" in each.name], ids=name_of)
def test_every_rule_says_which_call_needs_it(path: Path) -> None:
    lines = path.read_text().splitlines()
    rules = [number for number, line in enumerate(lines) if line.startswith("  - apiGroups:")]
    assert len(rules) == sum(len(each.get("rules", ())) for each in documents(path))
    for number in rules:
        start = number
        while lines[start - 1].startswith("  #"):
            start -= 1
        comment = " ".join(lines[start:number])
        assert re.search(r"# (snapshot|apply|telling|inqueue|discover|bandwidth|lease|tenants): ", comment), (
            f"{path.name}:{number + 1}"
        )


def test_tenants_may_make_what_is_of_their_namespace_and_see_all_that_is_read() -> None:
    """By aggregation, so that nobody is named; nothing that counts for others may be written."""
    edit, view = documents(TENANTS)
    given = {each["metadata"]["name"]: each["metadata"]["labels"] for each in (edit, view)}
    prefix = "rbac.authorization.k8s.io/aggregate-to"
    assert given == {f"placer-{each}": {f"{prefix}-{each}": "true"} for each in ("edit", "view")}
    written = {(group, resource) for group, resource, _ in rights(edit)}
    seen = {(group, resource) for group, resource, _ in rights(view)}
    assert {resource for _, resource in written} == {"podgroups", "appgroups"}
    assert written <= seen
    assert {verb for *_, verb in rights(view)} == {"get", "list", "watch"}
    assert not {verb for *_, verb in rights(edit)} & {"get", "list", "watch", "*", "bind", "escalate"}
    read = rights(one(DEPLOY / "base" / "rbac-read.yaml", "ClusterRole"))
    assert seen <= {(group, resource) for group, resource, _ in read}
    assert not any(group in ("", "apps", "policy") for group, _ in seen), "what Kubernetes' own roles are about"


@pytest.mark.parametrize("path", [each for each in MANIFESTS if "rbac" in each.name and each != TENANTS], ids=name_of)
def test_each_role_is_given_to_placer_and_to_nobody_else(path: Path) -> None:
    (kind,) = {each["kind"] for each in documents(path)} & {"Role", "ClusterRole"}
    role, binding = one(path, kind), one(path, f"{kind}Binding")
    assert role["metadata"].get("namespace") == binding["metadata"].get("namespace")
    assert binding["roleRef"]["kind"] == kind
    own = path.with_name("service-account.yaml")
    account = one(own if own.exists() else DEPLOY / "base" / own.name, "ServiceAccount")["metadata"]
    assert binding["roleRef"]["name"] == role["metadata"]["name"]
    assert binding["subjects"] == [
        {"kind": "ServiceAccount", "name": account["name"], "namespace": account["namespace"]}
    ]


# ------------------------------------------------------------------------------------------------- what is run, and how


def job() -> dict[str, Any]:
    found: dict[str, Any] = one(DEPLOY / "base" / "cron-job.yaml", "CronJob")["spec"]
    return found


def template() -> dict[str, Any]:
    found: dict[str, Any] = job()["jobTemplate"]["spec"]["template"]["spec"]
    return found


def container() -> dict[str, Any]:
    (found,) = template()["containers"]
    return dict(found)


def arguments(folder: Path) -> list[str]:
    """As the container gets them: the file that is mounted is in this folder."""
    config = one(DEPLOY / "base" / "config-map.yaml", "ConfigMap")
    (volume,) = (each for each in template()["volumes"] if "configMap" in each)
    assert volume["configMap"]["name"] == config["metadata"]["name"]
    (mount,) = (each for each in container()["volumeMounts"] if each["name"] == volume["name"])
    for name, text in config["data"].items():
        (folder / name).write_text(text)
    return [each.replace(mount["mountPath"], str(folder)) for each in container()["args"]]


@pytest.fixture
def parsed(tmp_path: Path) -> Callable[..., Any]:
    """What ``placer`` makes of the arguments, the file read."""

    def options(*more: str) -> Any:
        return configured(parser().parse_args([*arguments(tmp_path), *more]))

    return options


def settings(options: Any) -> dict[str, Any]:
    """The values that hold."""
    return {name: getattr(options, name) for name in options.origins}


def test_the_file_says_the_defaults_of_run(parsed: Callable[..., Any]) -> None:
    """But for the number of threads, which cannot be seen from inside a container."""
    default = settings(configured(parser().parse_args(["run"])))
    assert {key: each for key, each in settings(parsed()).items() if each != default[key]} == {"workers": 2}


def test_passes_follow_one_another(parsed: Callable[..., Any]) -> None:
    """One that hangs is over within three minutes; a deadline below ten seconds would never be kept."""
    assert job()["concurrencyPolicy"] == "Forbid"
    assert job()["startingDeadlineSeconds"] >= 10
    once = job()["jobTemplate"]["spec"]
    assert once["backoffLimit"] == 0
    assert template()["restartPolicy"] == "Never"
    options = parsed()
    assert options.time_limit + options.gang_grace + options.settle < once["activeDeadlineSeconds"] / 2
    assert template()["terminationGracePeriodSeconds"] > 10


def test_the_container_can_do_nothing_but_its_work() -> None:
    assert container()["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    context = template()["securityContext"]
    assert context["runAsNonRoot"] is True
    assert context["runAsUser"] == context["runAsGroup"] > 0
    assert context["seccompProfile"] == {"type": "RuntimeDefault"}
    assert not {"hostNetwork", "hostPID", "hostIPC"} & template().keys()
    assert all({"configMap", "emptyDir"} & each.keys() for each in template()["volumes"])
    labels = one(DEPLOY / "base" / "namespace.yaml", "Namespace")["metadata"]["labels"]
    assert labels["pod-security.kubernetes.io/enforce"] == "restricted"


def test_the_pod_is_labelled_urgent_and_reached_by_nobody() -> None:
    """Its labels are the kustomization's; the policy is for every pod of its namespace, in both directions."""
    base = DEPLOY / "base"
    (common,) = one(base / "kustomization.yaml", "Kustomization")["labels"]
    assert (common["includeTemplates"], common["pairs"]["app.kubernetes.io/component"]) == (True, "pass")
    urgent = one(base / "priority-class.yaml", "PriorityClass")
    assert (template()["priorityClassName"], urgent["value"]) == (urgent["metadata"]["name"], 10**9)
    assert urgent["preemptionPolicy"] == "Never"  # a class cannot be changed, so a pass of each minute would evict
    spec = one(base / "network-policy.yaml", "NetworkPolicy")["spec"]
    assert (spec["podSelector"], spec["policyTypes"], "ingress" in spec) == ({}, ["Ingress", "Egress"], False)
    assert {port["port"] for each in spec["egress"] for port in each["ports"]} == {443, 6443, 53}


def test_the_token_is_for_this_pod_alone() -> None:
    account = one(DEPLOY / "base" / "service-account.yaml", "ServiceAccount")
    assert account["automountServiceAccountToken"] is False
    assert template()["automountServiceAccountToken"] is True
    assert template()["serviceAccountName"] == account["metadata"]["name"]


def test_it_has_as_many_workers_as_cores_and_asks_for_what_it_cannot_do_without(parsed: Callable[..., Any]) -> None:
    """It begins in small gaps of a full cluster, and has memory for what was measured on 10,000 nodes."""
    resources = container()["resources"]
    assert resources["limits"] == {"cpu": str(parsed().workers), "memory": "2Gi"}
    assert resources["requests"] == {"cpu": "200m", "memory": "1Gi"}


#: Where the arguments are, by the kind of what runs.
_ARGUMENTS = {
    "CronJob": "/spec/jobTemplate/spec/template/spec/containers/0/args/-",
    "Deployment": "/spec/template/spec/containers/0/args/-",
}


def added_arguments(folder: str) -> list[str]:
    """What a component adds to the arguments, the same of both ways of running."""
    patches = kustomization(DEPLOY / "components" / folder / "kustomization.yaml")["patches"]
    found = {}
    for kind, path in _ARGUMENTS.items():
        (patch,) = (yaml.safe_load(each["patch"]) for each in patches if each["target"]["kind"] == kind)
        assert [(each["op"], each["path"]) for each in patch] == [("add", path)]
        found[kind] = [each["value"] for each in patch]
    assert found["CronJob"] == found["Deployment"]
    return found["CronJob"]


@pytest.mark.parametrize(
    ("folder", "option", "value"),
    [
        ("dry-run", "dry_run", "client"),
        ("rollback", "roll_back", True),
        ("inqueue", "inqueue", True),
        ("beside-volcano", "no_group_status", True),
        ("disruption", "max_evictions_per_hour", 60),
        ("controllers", "controllers", ["AppGroup", "NetworkTopology", "HyperNode"]),
        ("gates", "enforce", "gates"),
    ],
)
def test_a_component_sets_one_option(folder: str, option: str, value: object, parsed: Callable[..., Any]) -> None:
    before, after = settings(parsed()), settings(parsed(*added_arguments(folder)))
    assert {key: each for key, each in after.items() if each != before[key]} == {option: value}


def test_every_component_is_tried_and_has_an_overlay() -> None:
    """Of the CronJob; a Deployment takes the component. That of namespaces needs their names, and is tried apart."""
    one_option = {"dry-run", "rollback", "inqueue", "beside-volcano", "disruption", "controllers", "gates"}
    of = {
        parent: {path.parent.name for path in KUSTOMIZATIONS if path.parent.parent.name == parent}
        for parent in ("components", "overlays")
    }
    assert of == {"components": one_option | {"namespaces"}, "overlays": one_option | {"deployment"}}
    for each in one_option:
        said = kustomization(DEPLOY / "overlays" / each / "kustomization.yaml")
        assert (said["resources"], said["components"]) == (["../../base"], [f"../../components/{each}"])
        assert "patches" not in said


def test_the_deployment_runs_what_the_cron_job_runs_pass_after_pass() -> None:
    found = one(DEPLOY / "overlays" / "deployment" / "deployment.yaml", "Deployment")["spec"]
    template_of_loop = found["template"]
    assert found["selector"]["matchLabels"] == template_of_loop["metadata"]["labels"]
    looped, once = template_of_loop["spec"], template()
    assert looped.pop("restartPolicy") == "Always"
    looped.pop("topologySpreadConstraints")
    (loop,), (single,) = looped["containers"], once["containers"]
    assert loop.pop("args") == [*single.pop("args"), "--every=10s", "--metrics-bind-address=:8080"]
    (port,) = loop.pop("ports")
    probes = [loop.pop(f"{each}Probe")["httpGet"] for each in ("readiness", "liveness")]
    assert probes == [{"path": path, "port": port["name"]} for path in ("/readyz", "/livez")]
    (rule,) = one(DEPLOY / "overlays" / "deployment" / "network-policy.yaml", "NetworkPolicy")["spec"]["ingress"]
    assert rule == {"ports": [{"protocol": "TCP", "port": port["containerPort"]}]}
    once.pop("restartPolicy")
    assert looped == once


def test_one_host_or_drain_does_not_take_both_processes() -> None:
    """A rollout needs no more room than there is, and leaves one, too."""
    folder = DEPLOY / "overlays" / "deployment"
    found = one(folder / "deployment.yaml", "Deployment")["spec"]
    labels = found["template"]["metadata"]["labels"]
    host, zone = found["template"]["spec"]["topologySpreadConstraints"]
    assert (host["topologyKey"], host["whenUnsatisfiable"]) == ("kubernetes.io/hostname", "DoNotSchedule")
    assert (zone["topologyKey"], zone["whenUnsatisfiable"]) == ("topology.kubernetes.io/zone", "ScheduleAnyway")
    assert host["labelSelector"] == zone["labelSelector"] == {"matchLabels": labels}
    budget = one(folder / "disruption-budget.yaml", "PodDisruptionBudget")["spec"]
    assert budget == {"minAvailable": 1, "selector": {"matchLabels": labels}}
    assert found["replicas"] == 2
    assert found["strategy"]["rollingUpdate"] == {"maxSurge": 0, "maxUnavailable": 1}


def test_a_loop_has_the_options_of_the_cron_job_but_decides_in_less_time() -> None:
    """A pass that searches for 20 s hears of new pods only in the next one."""
    patches = kustomization(DEPLOY / "overlays" / "deployment" / "kustomization.yaml")["patches"]
    (changed,) = (each for each in map(yaml.safe_load, (each["patch"] for each in patches)) if "data" in each)
    base = one(DEPLOY / "base" / "config-map.yaml", "ConfigMap")
    assert changed["metadata"] == base["metadata"]
    loop, once = (yaml.safe_load(each["data"]["placer.yaml"]) for each in (changed, base))
    assert loop == {**once, "timeLimit": 5}


# ------------------------------------------------------------------------------------------------- admission policies


def admission() -> dict[str, tuple[Path, dict[str, Any]]]:
    """File and policy by name, of placer's own rights and class."""
    found = {}
    for path in (each for each in MANIFESTS if each.name.startswith("admission-")):
        policies = [each for each in documents(path) if each["kind"] == "ValidatingAdmissionPolicy"]
        bindings = [each for each in documents(path) if each["kind"] == "ValidatingAdmissionPolicyBinding"]
        for policy, binding in zip(policies, bindings, strict=True):
            name = policy["metadata"]["name"]
            assert binding["metadata"] == policy["metadata"]
            assert binding["spec"] == {"policyName": name, "validationActions": ["Deny"]}
            found[name] = path, policy["spec"]
    return found


def test_each_right_to_change_what_is_there_has_a_policy() -> None:
    """But for evictions, of which CEL sees the name of the pod alone."""
    held = {
        (group, resource)
        for _, spec in admission().values()
        if spec.get("matchConditions")
        for rule in spec["matchConstraints"]["resourceRules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
    }
    more = (f"components/{each}/rbac-{each}.yaml" for each in ("gates", "controllers"))
    files = ("base/rbac-write.yaml", "base/rbac-rollback.yaml", *more)
    roles = [*(one(DEPLOY / file, "ClusterRole") for file in files), one(DEPLOY / "base" / "rbac-lease.yaml", "Role")]
    given = {(group, resource) for role in roles for group, resource, verb in rights(role) if verb != "get"}
    assert held == given


def test_policies_are_of_the_account_and_the_scheduler_that_are_installed() -> None:
    account = one(DEPLOY / "base" / "service-account.yaml", "ServiceAccount")["metadata"]
    user = f"system:serviceaccount:{account['namespace']}:{account['name']}"
    options = yaml.safe_load(one(DEPLOY / "base" / "config-map.yaml", "ConfigMap")["data"]["placer.yaml"])
    named = {
        "scheduler": options["schedulerName"],
        "class": one(DEPLOY / "base" / "priority-class.yaml", "PriorityClass")["metadata"]["name"],
        "home": account["namespace"],
        "lease": one(DEPLOY / "base" / "rbac-lease.yaml", "Role")["rules"][1]["resourceNames"][0],
    }
    for name, (_, spec) in admission().items():
        assert spec["failurePolicy"] == "Fail"
        conditions = [each["expression"] for each in spec.get("matchConditions", ())]
        assert conditions == ([] if name == "placer-class" else [f"request.userInfo.username == '{user}'"])
        for variable in spec.get("variables", ()):
            if variable["name"] in named:
                assert variable["expression"] == f"'{named[variable['name']]}'"


def test_requests_of_the_account_have_levels_of_their_own() -> None:
    election, others = documents(DEPLOY / "base" / "flow-schema.yaml")
    account = one(DEPLOY / "base" / "service-account.yaml", "ServiceAccount")["metadata"]
    subject = {
        "kind": "ServiceAccount",
        "serviceAccount": {"name": account["name"], "namespace": account["namespace"]},
    }
    for schema, level in ((election, "leader-election"), (others, "workload-high")):
        (rule,) = schema["spec"]["rules"]
        assert rule["subjects"] == [subject]
        assert schema["spec"]["priorityLevelConfiguration"]["name"] == level
    assert election["spec"]["matchingPrecedence"] < others["spec"]["matchingPrecedence"] < 9000  # service accounts'


def test_what_a_loop_watches_is_what_a_snapshot_lists() -> None:
    """Pods and nodes every pass watches; what is not read is listed in each pass."""
    listed = {each[:2] for each in asked_by_a_snapshot() if each[2] == "list"}
    listed -= {(group, each.plural) for each in LIMITS for group in each.groups}
    followed = {(*each, "watch") for each in listed - {("", "pods"), ("", "nodes")}}
    assert rights(one(DEPLOY / "overlays" / "deployment" / "rbac-watch.yaml", "ClusterRole")) == followed


# ------------------------------------------------------------------------------------------------------------- the page


def test_the_page_names_what_is_there() -> None:
    """Every path that is typed, and a row for every folder but that of others' definitions."""
    page = (DEPLOY / "README.md").read_text()
    typed = re.findall(r"(?<=[ `(])deploy/[-\w./]+", page)
    assert typed
    assert [each for each in typed if not (DEPLOY.parent / each).exists()] == []
    rows = set(re.findall(r"^\| `([-\w/]+)/` \|", page, re.MULTILINE))
    folders = {str(path.parent.relative_to(DEPLOY)) for path in KUSTOMIZATIONS if path.parent.parent.name != "crds"}
    composed_of = {f"overlays/{each.partition('/')[2]}" for each in folders if each.startswith("components/")}
    assert rows == {*(folders - composed_of), "overlays", "chart"}


def subclasses(kind: type[PlacerError]) -> Iterator[type[PlacerError]]:
    yield kind
    for each in kind.__subclasses__():
        yield from subclasses(each)


def test_the_page_says_of_every_exit_code_what_it_means_and_what_to_do() -> None:
    page = (DEPLOY / "README.md").read_text()
    wanted = {0, *(each.exit_code for each in subclasses(PlacerError))}
    table = page.partition("| exit code | the pass | do |")[2].partition("\n\n")[0]
    rows = re.findall(r"^\| (\d) \| (.+) \| (.+) \|$", table, re.MULTILINE)
    assert {int(code) for code, _, _ in rows} == wanted


def test_the_page_names_the_version_of_kubernetes_that_it_is_tried_with() -> None:
    """The tests' own server, which ``tests/cluster/controlplane`` is built from; and from which version on it works."""
    page = (DEPLOY / "README.md").read_text()
    modules = (DEPLOY.parent / "tests" / "cluster" / "controlplane" / "go.mod").read_text()
    (minor,) = re.findall(r"^\tk8s\.io/kubernetes v1\.(\d+)\.", modules, re.MULTILINE)
    (tried,) = re.findall(r"Tried with Kubernetes 1\.(\d+),", page)
    assert tried == minor
    security = (DEPLOY.parent / "docs" / "security.md").read_text()
    oldest = f"{_OLDEST[0]}.{_OLDEST[1]}"
    assert f"needs Kubernetes {oldest} or newer" in page
    assert f"| Kubernetes | {oldest} to 1.{minor}" in security
    chart = yaml.safe_load((DEPLOY / "chart" / "Chart.yaml").read_text())
    assert chart["kubeVersion"] == f">={oldest}.0-0"


def test_the_page_has_memory_by_nodes_and_pods() -> None:
    """More of it for more, and less than the container has."""
    page = (DEPLOY / "README.md").read_text()
    row = r"^\| ([\d,]+) \| ([\d,]+), [\d,]+ \| (\d+) MiB \|"
    rows = [[int(each.replace(",", "")) for each in found] for found in re.findall(row, page, re.MULTILINE)]
    assert len(rows) >= 3
    assert all(column == sorted(column) for column in map(list, zip(*rows, strict=True)))
    assert rows[-1][0] >= 5_000
    assert rows[-1][2] < 2 * 1024


def test_how_to_hand_pods_back_comes_before_what_takes_placer_away() -> None:
    operating = (DEPLOY.parent / "docs" / "operating.md").read_text()
    uninstall = operating.partition("\n## Uninstall")[2]
    assert "Hand the pods back first." in uninstall.partition("kubectl delete")[0]
    assert "`spec.schedulerName`" in uninstall
