"""``deploy/`` on a real API server: it applies, and the rights are enough and no more."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from placer.cli import main
from placer.passes.cluster import Client, take
from tests.cluster.api import Api
from tests.cluster.binaries import CRDS, resource_definitions
from tests.cluster.conftest import _found
from tests.cluster.deployed import Deployed, refused
from tests.cluster.held import held
from tests.cluster.things import live_pod, numa_topology
from tests.examples import every
from tests.netdocs import app_group, network_topology, weights
from tests.support import hyper_node, node, pod_group, queue
from tests.test_deploy import DEPLOY, arguments, copies, one, rights
from tests.test_schemas import POLICY

PODS = "/api/v1/namespaces/default/pods"
HYPER_NODES = "/apis/topology.volcano.sh/v1alpha1/hypernodes"
POLICIES = "/apis/placer.dev/v1alpha1/policies"


# ----------------------------------------------------------------------------------------------------------- it applies


def test_everything_applies_and_a_second_time_changes_nothing(deployed: Deployed) -> None:
    """But for a definition whose file carries a status, which is the server's to write."""
    deployed.apply("crds", "admission", "base")
    changed = []
    for folder in ("crds", "admission", "base"):
        told = deployed.apply(folder)
        assert told
        changed += [each for each in told if not each.endswith(" unchanged")]
    assert len(changed) == 1, changed
    (one_of_them,) = changed
    assert one_of_them.endswith("/noderesourcetopologies.topology.node.k8s.io configured")


@pytest.mark.usefixtures("undefined")
def test_a_folder_of_definitions_is_enough_by_itself(deployed: Deployed) -> None:
    deployed.apply("crds/placer", "base")
    groups = {each["name"] for each in deployed.api.get("/apis")["groups"]}
    assert "placer.dev" in groups
    assert not {"topology.volcano.sh", "scheduling.x-k8s.io", "topology.node.k8s.io"} & groups
    assert take(Client.connect(deployed.kubeconfig()), "placer").counts["policies.placer.dev"] == 0


@pytest.mark.parametrize("whose", CRDS)
def test_the_copies_are_their_owners_files(whose: str) -> None:
    theirs = {path.read_bytes() for path in _found(lambda: resource_definitions(whose))}
    ours = [DEPLOY / "crds" / file for file, module, *_ in copies() if module == CRDS[whose].module]
    assert ours
    assert {path.read_bytes() for path in ours} <= theirs


def test_the_pod_is_what_its_namespace_takes(deployed: Deployed) -> None:
    """As shipped it is taken; with one of its restrictions less it is not."""
    deployed.apply("base")
    spec = one(DEPLOY / "base" / "cron-job.yaml", "CronJob")["spec"]["jobTemplate"]["spec"]["template"]["spec"]
    where = "/api/v1/namespaces/placer/pods?dryRun=All"
    deployed.api.call("POST", where, {"metadata": {"name": "shipped"}, "spec": spec})
    for removed in spec["securityContext"].keys() - {"runAsUser", "runAsGroup"}:
        context = {key: each for key, each in spec["securityContext"].items() if key != removed}
        less = {**spec, "securityContext": context}
        assert refused(deployed.api.call, "POST", where, {"metadata": {"name": "less"}, "spec": less}) == 403
    for removed in ("allowPrivilegeEscalation", "capabilities"):
        (main,) = spec["containers"]
        context = {key: each for key, each in main["securityContext"].items() if key != removed}
        less = {**spec, "containers": [{**main, "securityContext": context}]}
        assert refused(deployed.api.call, "POST", where, {"metadata": {"name": "less"}, "spec": less}) == 403


# --------------------------------------------------------------------------------------------------------------- rights


def reviewed(api: Api) -> set[tuple[str, str, str]]:
    """What the server says that a user may do in a namespace."""
    body = {"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectRulesReview", "spec": {"namespace": "default"}}
    status = api.call("POST", "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews", body)["status"]
    assert not any(rule.get("resourceNames") for rule in status["resourceRules"])
    return rights({"rules": status["resourceRules"]})


def make_nobody(deployed: Deployed) -> None:
    """Make an account without rights of its own."""
    nobody = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "nobody", "namespace": "placer"}}
    deployed.kubectl("apply", "-f", "-", text=json.dumps(nobody))


READ, WRITE, ROLLBACK = "base/rbac-read.yaml", "base/rbac-write.yaml", "base/rbac-rollback.yaml"
ROLES = {
    "base": {READ, WRITE, ROLLBACK},
    "overlays/dry-run": {READ},
    "overlays/rollback": {READ, WRITE, ROLLBACK},
    "overlays/inqueue": {READ, WRITE, ROLLBACK, "components/inqueue/rbac-inqueue.yaml"},
    "overlays/beside-volcano": {READ, WRITE, ROLLBACK},
    "overlays/disruption": {READ, WRITE, ROLLBACK, "components/disruption/rbac-disruption.yaml"},
    "overlays/controllers": {READ, WRITE, ROLLBACK, "components/controllers/rbac-controllers.yaml"},
    "overlays/gates": {READ, WRITE, ROLLBACK, "components/gates/rbac-gates.yaml"},
    "overlays/deployment": {READ, WRITE, ROLLBACK, "overlays/deployment/rbac-watch.yaml"},
}


@pytest.mark.parametrize("folder", every(3, ROLES))
def test_the_account_has_the_rights_that_are_written_down_and_no_others(folder: str, deployed: Deployed) -> None:
    deployed.apply(folder)
    make_nobody(deployed)
    given = reviewed(deployed.as_account("nobody"))
    wanted = set().union(*(rights(one(DEPLOY / file, "ClusterRole")) for file in ROLES[folder]))
    if folder == "overlays/beside-volcano":
        wanted -= {("scheduling.volcano.sh", "podgroups", "get"), ("scheduling.volcano.sh", "podgroups", "patch")}
    assert reviewed(deployed.as_account("placer")) - given == wanted


@pytest.fixture
def shop(deployed: Deployed) -> Deployed:
    """Everything that placer reads, with an object of each kind."""
    deployed.apply("crds", "base", "measurements")
    measured = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "netperf"}, "data": {}}
    gang = {
        "apiVersion": "scheduling.x-k8s.io/v1alpha1",
        "kind": "PodGroup",
        "metadata": {"name": "few"},
        "spec": {"minMember": 1},
    }
    deployed.api.create(
        node("n1"),
        live_pod("p", cpu=1),
        pod_group("train", minMember=1),
        queue("q"),
        hyper_node("leaf", 1, nodes=("n1",)),
        numa_topology("n1", {"cpu": "4"}),
        measured,
        network_topology(weights()),
        app_group("shop", {"p": []}, numMembers=1),
        gang,
        {**POLICY, "spec": {"locality": "all"}},
    )
    return deployed


def test_the_account_sees_what_an_administrator_sees(shop: Deployed) -> None:
    mine = take(Client.connect(shop.kubeconfig("placer")))
    theirs = take(Client.connect(shop.kubeconfig()))
    assert mine.items == theirs.items
    kinds = {"policies", "nodes", "noderesourcetopologies", "hypernodes", "queues", "podgroups", "appgroups", "pods"}
    seen = {resource.partition(".")[0] for resource, count in mine.counts.items() if count}
    assert kinds | {"networktopologies", "configmaps"} <= seen
    assert "replicasets.apps" in mine.counts


def test_a_pass_needs_no_other_rights(shop: Deployed, capsys: pytest.CaptureFixture[str]) -> None:
    """One pod is bound, another waits; condition, Events and the state of the gang are told, and nothing is refused."""
    shop.api.create(live_pod("train-0", group="train", cpu=1), live_pod("large", cpu=1000))
    assert main(["run", "--kubeconfig", shop.kubeconfig("placer"), "--method=greedy", "--settle=0"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["told"]["troubles"] == []
    assert (told["bound"], told["told"]["conditions"], told["told"]["groups"]) == (2, 1, 1)
    assert told["told"]["events"] > 0
    where = {each["metadata"]["name"]: each["spec"].get("nodeName") for each in shop.api.items(PODS)}
    assert where == {"p": "n1", "train-0": "n1", "large": None}


def in_a_pod(deployed: Deployed, monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    """Have nothing to go by but what a kubelet gives a pod of ours: address, token, certificate."""
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.delenv("KUBECONFIG", raising=False)
    for name, value in deployed.given_to_pod("placer", folder).items():
        if name.startswith("KUBERNETES_"):
            monkeypatch.setenv(name, value)
        else:
            monkeypatch.setattr(f"kubernetes.config.incluster_config.{name}", value)


def test_the_cron_jobs_pod_finds_its_server_and_makes_a_pass(
    deployed: Deployed, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """With the arguments that it has, and nothing to go by but what a kubelet gives it: address, token, certificate."""
    deployed.apply("crds", "base")
    deployed.api.create(node("n1"), pod_group("train", minMember=2))
    deployed.api.create(*(live_pod(f"train-{number}", group="train", cpu=1) for number in range(2)))
    in_a_pod(deployed, monkeypatch, tmp_path)
    assert main([*arguments(tmp_path), "--settle=0"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["bound"], told["told"]["troubles"]) == (2, [])
    assert {each["spec"].get("nodeName") for each in deployed.api.items(PODS)} == {"n1"}


def test_moving_gangs_to_inqueue_needs_the_rights_of_its_overlay(
    deployed: Deployed, install: Callable[..., None], capsys: pytest.CaptureFixture[str]
) -> None:
    install("volcano", jobs=True)
    deployed.apply("overlays/inqueue")
    job = {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": "train"},
        "spec": {
            "schedulerName": "placer",
            "minAvailable": 1,
            "tasks": [{"name": "worker", "replicas": 1, "template": {"spec": live_pod("p", cpu=1)["spec"]}}],
        },
    }
    (made,) = deployed.api.create(job)
    owner = {"apiVersion": job["apiVersion"], "kind": "Job", "name": "train", "uid": made["metadata"]["uid"]}
    group = pod_group("train-1", minMember=1)
    deployed.api.create(node("n1"), {**group, "metadata": {**group["metadata"], "ownerReferences": [owner]}})
    assert main(["run", "--kubeconfig", deployed.kubeconfig("placer"), "--settle=0", "--inqueue"]) == 0
    assert json.loads(capsys.readouterr().out)["inqueue"] == 1
    where = "/apis/scheduling.volcano.sh/v1beta1/namespaces/default/podgroups/train-1"
    assert deployed.api.get(where)["status"]["phase"] == "Inqueue"


def test_the_account_can_do_nothing_else(shop: Deployed) -> None:
    placer = shop.as_account("placer")
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "p"}}
    labels = {"metadata": {"labels": {"a": "b"}}}
    for method, path, body in (
        ("POST", PODS, live_pod("q", cpu=1)),
        ("POST", f"{PODS}/p/eviction", eviction),
        ("POST", "/api/v1/namespaces/default/bindings", {"metadata": {"name": "p"}, "target": {"name": "n1"}}),
        ("GET", "/api/v1/secrets", None),
        ("GET", "/api/v1/namespaces/default/secrets/s", None),
        ("GET", "/api/v1/configmaps", None),
        ("GET", "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication", None),
        ("GET", "/apis/apps/v1/deployments", None),
        ("GET", "/apis/batch.volcano.sh/v1alpha1/jobs", None),
        ("POST", "/api/v1/namespaces/default/configmaps", {"metadata": {"name": "c"}}),
        ("GET", "/api/v1/namespaces/placer/configmaps/placer", None),
        ("DELETE", "/api/v1/namespaces/placer/configmaps/placer-gangs", None),
        ("POST", "/api/v1/namespaces/placer/serviceaccounts/placer/token", {"spec": {}}),
        ("POST", POLICIES, {**POLICY, "metadata": {"name": "other"}}),
        ("DELETE", f"{HYPER_NODES}/leaf", None),
    ):
        assert refused(placer.call, method, path, body) == 403, f"{method} {path}"
    for path in (
        f"{PODS}/p",
        "/api/v1/nodes/n1",
        "/api/v1/nodes/n1/status",
        f"{HYPER_NODES}/leaf",
        "/apis/scheduling.x-k8s.io/v1alpha1/namespaces/default/podgroups/few",
        "/apis/scheduling.volcano.sh/v1beta1/queues/q/status",
        "/apis/scheduling.volcano.sh/v1beta1/queues/q",
    ):
        assert refused(placer.patch, path, labels) == 403, path
    assert shop.api.get(f"{PODS}/p")["metadata"].get("labels", {}) == {}


def test_a_dry_run_decides_and_could_not_write(deployed: Deployed, capsys: pytest.CaptureFixture[str]) -> None:
    deployed.apply("overlays/dry-run")
    deployed.api.create(node("n1"), live_pod("p", cpu=1))
    job = deployed.api.get("/apis/batch/v1/namespaces/placer/cronjobs/placer")["spec"]["jobTemplate"]["spec"]
    flag = job["template"]["spec"]["containers"][0]["args"][-1]
    assert main(["run", "--kubeconfig", deployed.kubeconfig("placer"), "--method=greedy", flag]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["planned"], told["bound"]) == (1, 0)
    assert refused(deployed.as_account("placer").bind, "default", "p", "n1") == 403
    assert "nodeName" not in deployed.api.get(f"{PODS}/p")["spec"]


def test_releasing_pods_needs_the_rights_of_its_overlay(deployed: Deployed, capsys: pytest.CaptureFixture[str]) -> None:
    """With those of the base alone nothing is released, nothing stays nominated, and the pass says which is missing."""
    deployed.apply("base")
    deployed.api.create(node("n1"), held(live_pod("p", cpu=1)))
    words = ["run", "--kubeconfig", deployed.kubeconfig("placer"), "--method=greedy", "--settle=0", "--enforce=gates"]
    assert main(words) == 6
    out, err = capsys.readouterr()
    told = json.loads(out)
    assert "kubectl apply -k deploy/overlays/gates" in err
    assert (told["released"], told["gangs"]["left"]) == (0, 1)
    assert 'cannot patch resource "pods"' in told["left"]["Pod default/p"]
    found = deployed.api.get(f"{PODS}/p")
    assert ("schedulingGates" in found["spec"], "nominatedNodeName" in found["status"]) == (True, False)
    deployed.apply("overlays/gates")
    assert main(words) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["released"], told["told"]["troubles"]) == (1, [])
    assert "schedulingGates" not in deployed.api.get(f"{PODS}/p")["spec"]
