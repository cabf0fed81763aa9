"""From one overlay to another, on a cluster without room, and away: what ``deploy/README.md`` says, tried."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest
import yaml

from placer.cli import main
from tests.cluster.api import Api
from tests.cluster.binaries import helm
from tests.cluster.conftest import _found
from tests.cluster.deployed import Deployed
from tests.cluster.server import ControlPlane
from tests.cluster.test_check_live import checked, flags, wrong
from tests.cluster.things import live_pod
from tests.support import Document, node
from tests.test_chart import templated
from tests.test_deploy import DEPLOY, template
from tests.waiting import wait_until

PODS = "/api/v1/namespaces/placer/pods"
RBAC = "/apis/rbac.authorization.k8s.io/v1"


def rights(cluster: Api) -> set[str]:
    """Roles of placer, cluster-wide and in its namespace."""
    found = cluster.items(f"{RBAC}/clusterroles") + cluster.items(f"{RBAC}/namespaces/placer/roles")
    return {each["metadata"]["name"] for each in found if each["metadata"]["name"].startswith("placer")}


def pruning() -> list[str]:
    """The arguments of ``kubectl apply`` that the page has for switching, but for the folder."""
    page = (DEPLOY.parent / "docs" / "operating.md").read_text()
    (command,) = set(re.findall(r"kubectl apply --prune (.*?) -k", page, re.DOTALL))  # in two places, the same
    return ["apply", "--prune", *command.replace("\\\n", " ").split()]


def test_switching_back_leaves_no_right_behind(deployed: Deployed, cluster: Api) -> None:
    deployed.apply("overlays/inqueue", "discover", "measurements")
    assert "placer-inqueue" in rights(cluster)
    deployed.kubectl(*pruning(), "-k", str(DEPLOY / "base"))
    assert rights(cluster) >= {"placer-read", "placer-write", "placer-rollback", "placer-lease", "placer-record"}
    assert "placer-inqueue" not in rights(cluster)
    assert "placer-discover" in rights(cluster)  # what belongs to no pass stays
    deployed.kubectl(*pruning(), "-k", str(DEPLOY / "overlays" / "dry-run"))
    assert not rights(cluster) & {"placer-write", "placer-lease", "placer-rollback"}
    bindings = {each["metadata"]["name"] for each in cluster.items(f"{RBAC}/clusterrolebindings")}
    assert {each for each in bindings if each.startswith("placer")} == {"placer-read", "placer-discover"}


def test_of_two_ways_of_running_one_stays(deployed: Deployed, cluster: Api) -> None:
    def running() -> list[str]:
        found = (cluster.items(f"/apis/{each}") for each in ("batch/v1/cronjobs", "apps/v1/deployments"))
        return [f"{each['metadata']['name']}: {'schedule' in each['spec']}" for items in found for each in items]

    deployed.apply("base")
    assert running() == ["placer: True"]
    deployed.kubectl(*pruning(), "-k", str(DEPLOY / "overlays" / "deployment"))
    assert running() == ["placer: False"]
    deployed.kubectl(*pruning(), "-k", str(DEPLOY / "base"))
    assert running() == ["placer: True"]


def test_a_release_of_the_chart_takes_away_what_its_values_no_longer_name(deployed: Deployed, cluster: Api) -> None:
    """The commands of the page: installed, upgraded without an overlay, removed."""
    deployed.kubectl("apply", "-f", str(DEPLOY / "base" / "namespace.yaml"))
    commands = re.findall(r"^helm (.*?)(?: *#.*)?$", (DEPLOY / "README.md").read_text(), re.MULTILINE)
    install, change, remove = (each.replace("REGISTRY", "registry.example.com").split() for each in commands)

    def told(*arguments: str) -> None:
        command = [str(_found(helm)), *arguments, "--kubeconfig", deployed.kubeconfig()]
        done = subprocess.run(command, cwd=DEPLOY.parent, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr

    # Other tests have applied some of it.
    told(*(each.replace("DIGEST", "0" * 64) for each in install), "--take-ownership", "--force-conflicts")
    assert rights(cluster) >= {"placer-read", "placer-write", "placer-inqueue"}
    args = cluster.get("/apis/batch/v1/namespaces/placer/cronjobs/placer")["spec"]["jobTemplate"]["spec"]["template"]
    assert args["spec"]["containers"][0]["args"][-1] == "--inqueue"
    told(*change)
    assert rights(cluster) == {"placer-read", "placer-record", "placer-edit", "placer-view"}
    told(*remove)
    assert not rights(cluster)
    assert cluster.get("/api/v1/namespaces/placer")["status"]["phase"] == "Active"


def _own_pod() -> Document:
    """The pod that the CronJob makes, as a server takes it that has no controllers."""
    spec = {**template()}
    spec.pop("serviceAccountName")
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "pass", "namespace": "placer"},
        "spec": {**spec, "automountServiceAccountToken": False},
    }


@pytest.mark.usefixtures("kube_scheduler")
def test_a_pass_on_a_full_cluster_has_nobody_evicted_and_begins_once_there_is_room(
    deployed: Deployed, cluster: Api
) -> None:
    """By a real kube-scheduler: what fills the node is less urgent. Each minute another pass would cost as much."""
    deployed.apply("base")
    others = "/api/v1/namespaces/default/pods"
    cluster.create(node("n1", cpu=8, memory="16Gi"))
    cluster.create(*(live_pod(f"full-{number}", node="n1", cpu=4, scheduler="other") for number in range(2)))
    made = cluster.call("POST", PODS, _own_pod())
    assert (made["spec"]["priority"], made["spec"]["preemptionPolicy"]) == (1_000_000_000, "Never")
    wait_until(lambda: is_unschedulable(cluster, f"{PODS}/pass"), "a look at the pass")
    assert not cluster.get(f"{PODS}/pass")["status"].get("nominatedNodeName")
    assert not [each for each in cluster.items(others) if "deletionTimestamp" in each["metadata"]]
    cluster.delete(f"{others}/full-0")
    wait_until(lambda: bool(cluster.get(f"{PODS}/pass")["spec"].get("nodeName")), "a place for the pass")
    assert [each["metadata"]["name"] for each in cluster.items(others)] == ["full-1"]


def is_unschedulable(cluster: Api, path: str) -> bool:
    """Whether kube-scheduler has looked at a pod and found no room."""
    conditions = cluster.get(path)["status"].get("conditions") or ()
    return any(each.get("reason") == "Unschedulable" for each in conditions)


@pytest.mark.usefixtures("kube_scheduler")
def test_a_pass_begins_in_a_small_gap(deployed: Deployed, cluster: Api) -> None:
    deployed.apply("base")
    cluster.create(node("n1", cpu=8, memory="16Gi"))
    cluster.create(live_pod("full", node="n1", cpu="7800m", memory="15Gi", scheduler="other"))
    cluster.call("POST", PODS, _own_pod())
    wait_until(lambda: bool(cluster.get(f"{PODS}/pass")["spec"].get("nodeName")), "a place for the pass")
    assert "deletionTimestamp" not in cluster.get("/api/v1/namespaces/default/pods/full")["metadata"]


def test_requests_of_placer_wait_with_none_of_tenants(deployed: Deployed, control_plane: ControlPlane) -> None:
    """At a server that lets requests wait: by a level for leaders the Lease, by one for schedulers the rest."""
    deployed.apply("base")
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "some-tenant", "namespace": "placer"}}
    deployed.api.create(account)  # another test's is not wiped with the rest, so this one has a name of its own
    placer, tenant = (deployed.as_account(each) for each in ("placer", "some-tenant"))
    lease = "/apis/coordination.k8s.io/v1/namespaces/placer/leases/placer"
    schemas = "/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas"
    uids = {each["metadata"]["name"]: each["metadata"]["uid"] for each in deployed.api.items(schemas)}
    control_plane.end("kube-apiserver")
    control_plane.start_api_server(flow_control=True)
    try:
        wait_until(lambda: placer.flow_schema("/api/v1/nodes") == uids["placer"], "the level of placer")
        wait_until(lambda: placer.flow_schema(lease) == uids["placer-leader-election"], "the level of its Lease")
        assert tenant.flow_schema("/api/v1/nodes") not in (uids["placer"], uids["placer-leader-election"], "")
    finally:
        control_plane.end("kube-apiserver")
        control_plane.start_api_server()


def test_two_releases_place_beside_each_other(
    deployed: Deployed, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """In one namespace, each with the rights that its options need: its account, Lease, record, class and policies."""
    deployed.apply("crds/placer", "crds/volcano")
    cluster = deployed.api
    cluster.create(node("a", {"pool": "a"}), node("b", {"pool": "b"}))
    cluster.create(live_pod("of-a", cpu=1), live_pod("of-b", scheduler="placer-b", cpu=1))
    second = {"schedulerName": "placer-b", "nodeSelector": "pool=b"}
    releases = {"placer": {"nodeSelector": "pool=a"}, "pool-b": second}
    for release, options in releases.items():
        made = templated(_found(helm), {"options": options, "createNamespace": True}, release=release).stdout
        deployed.kubectl("apply", "-f", "-", text=made)
        account = release if release == "placer" else f"{release}-placer"
        words = [
            *("--kubeconfig", deployed.kubeconfig(account)),
            *flags([each for each in yaml.safe_load_all(made) if each], tmp_path),
        ]
        code, told = checked(capsys, *words)
        assert (code, {check for check, _ in wrong(told)} - {"volcano"}) == (0, set())
        assert main(["run", *words, "--method=greedy", "--settle=0"]) == 0
        line = json.loads(capsys.readouterr().out)
        assert (line["bound"], line["told"]["troubles"]) == (1, [])
    where = {each["metadata"]["name"]: each["spec"]["nodeName"] for each in cluster.items("/api/v1/pods")}
    assert where == {"of-a": "a", "of-b": "b"}
    leases = "/apis/coordination.k8s.io/v1/namespaces/placer/leases"
    assert {each["metadata"]["name"] for each in cluster.items(leases)} == {"placer", "pool-b-placer"}
