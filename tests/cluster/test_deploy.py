"""``deploy/`` on a real API server: it applies, and the rights are enough and no more."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from placer.cluster import Client, take
from tests.cluster.api import Api
from tests.cluster.binaries import CRDS, resource_definitions
from tests.cluster.conftest import _found
from tests.cluster.deployed import Deployed, refused
from tests.cluster.server import ControlPlane
from tests.cluster.things import live_pod, numa_topology
from tests.support import hyper_node, node, pod_group, queue
from tests.test_deploy import DEPLOY, copies, one, rights
from tests.test_schemas import POLICY

PODS = "/api/v1/namespaces/default/pods"
HYPER_NODES = "/apis/topology.volcano.sh/v1alpha1/hypernodes"
POLICIES = "/apis/placer.dev/v1alpha1/policies"


@pytest.fixture
def deployed(cluster: Api, control_plane: ControlPlane) -> Iterator[Deployed]:
    found = Deployed(cluster, control_plane)
    yield found
    found.remove()


# ----------------------------------------------------------------------------------------------------------- it applies


def test_everything_applies_and_a_second_time_changes_nothing(deployed: Deployed) -> None:
    """But for a definition whose file carries a status, which is the server's to write."""
    deployed.apply("crds", "admission", "base")
    changed = []
    for folder in ("crds", "admission", "base"):
        told = deployed.apply(folder)
        assert told
        changed += [each for each in told if not each.endswith(" unchanged")]
    (one_of_them,) = changed
    assert one_of_them.endswith("/noderesourcetopologies.topology.node.k8s.io configured")


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
    """What the server says that somebody may do in a namespace."""
    body = {"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectRulesReview", "spec": {"namespace": "default"}}
    status = api.call("POST", "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews", body)["status"]
    assert not any(rule.get("resourceNames") for rule in status["resourceRules"])
    return rights({"rules": status["resourceRules"]})


@pytest.mark.parametrize("folder", ["base", "overlays/dry-run", "overlays/rollback"])
def test_the_account_has_the_rights_that_are_written_down_and_no_others(folder: str, deployed: Deployed) -> None:
    deployed.apply(folder)
    nobody = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "nobody", "namespace": "placer"}}
    deployed.kubectl("apply", "-f", "-", text=json.dumps(nobody))
    given = reviewed(deployed.as_account("nobody"))
    written = {
        "base": ("base/rbac-read.yaml", "base/rbac-write.yaml"),
        "overlays/dry-run": ("base/rbac-read.yaml",),
        "overlays/rollback": ("base/rbac-read.yaml", "base/rbac-write.yaml", "overlays/rollback/rbac.yaml"),
    }[folder]
    wanted = set().union(*(rights(one(DEPLOY / file, "ClusterRole")) for file in written))
    assert reviewed(deployed.as_account("placer")) - given == wanted


@pytest.fixture
def shop(deployed: Deployed) -> Deployed:
    """Everything that placer reads, with an object of each kind."""
    deployed.apply("crds", "base")
    measured = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "measured"}, "data": {}}
    costs = {
        "apiVersion": "networktopology.diktyo.x-k8s.io/v1alpha1",
        "kind": "NetworkTopology",
        "metadata": {"name": "nt-default"},
        "spec": {"configmapName": "measured", "weights": [{"name": "UserDefined", "topologyList": []}]},
    }
    calls = {
        "apiVersion": "appgroup.diktyo.x-k8s.io/v1alpha1",
        "kind": "AppGroup",
        "metadata": {"name": "shop"},
        "spec": {
            "numMembers": 1,
            "topologySortingAlgorithm": "KahnSort",
            "workloads": [
                {
                    "workload": {
                        "kind": "Deployment",
                        "apiVersion": "apps/v1",
                        "namespace": "default",
                        "name": "p",
                        "selector": "p",
                    }
                }
            ],
        },
    }
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
        costs,
        calls,
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


def test_the_account_can_do_its_work(shop: Deployed) -> None:
    placer = shop.as_account("placer")
    waits = [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "no room"}]
    placer.patch(f"{PODS}/p/status", {"status": {"conditions": waits}})
    event = {
        "metadata": {"name": "p.1"},
        "eventTime": "2026-01-01T00:00:00.000000Z",
        "action": "Binding",
        "reason": "Scheduled",
        "type": "Normal",
        "reportingController": "placer",
        "reportingInstance": "placer-1",
        "regarding": {"apiVersion": "v1", "kind": "Pod", "namespace": "default", "name": "p"},
    }
    events = "/apis/events.k8s.io/v1/namespaces/default/events"
    placer.call("POST", events, event)
    series = {"count": 2, "lastObservedTime": "2026-01-01T00:01:00.000000Z"}
    placer.patch(f"{events}/p.1", {"series": series})
    group = "/apis/scheduling.volcano.sh/v1beta1/namespaces/default/podgroups/train"
    placer.patch(group, {"status": {"phase": "Inqueue"}})
    assert placer.get(group)["status"]["phase"] == "Inqueue"
    gang = "/apis/scheduling.x-k8s.io/v1alpha1/namespaces/default/podgroups/few"
    placer.patch(f"{gang}/status", {"status": {"phase": "Scheduling"}})
    assert placer.get(gang)["status"]["phase"] == "Scheduling"
    placer.bind("default", "p", "n1")
    assert placer.get(f"{PODS}/p")["spec"]["nodeName"] == "n1"


def test_the_account_can_do_nothing_else(shop: Deployed) -> None:
    placer = shop.as_account("placer")
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "p"}}
    labels = {"metadata": {"labels": {"a": "b"}}}
    for method, path, body in (
        ("DELETE", f"{PODS}/p", None),
        ("POST", PODS, live_pod("q", cpu=1)),
        ("POST", f"{PODS}/p/eviction", eviction),
        ("POST", "/api/v1/namespaces/default/bindings", {"metadata": {"name": "p"}, "target": {"name": "n1"}}),
        ("GET", "/api/v1/secrets", None),
        ("GET", "/api/v1/namespaces/default/secrets/s", None),
        ("GET", "/api/v1/configmaps", None),
        ("GET", "/apis/apps/v1/deployments", None),
        ("POST", "/api/v1/namespaces/default/configmaps", {"metadata": {"name": "c"}}),
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
        "/apis/scheduling.volcano.sh/v1beta1/queues/q",
    ):
        assert refused(placer.patch, path, labels) == 403, path
    assert shop.api.get(f"{PODS}/p")["metadata"].get("labels", {}) == {}


def test_rollback_may_delete_a_pod(deployed: Deployed) -> None:
    deployed.apply("overlays/rollback")
    deployed.api.create(live_pod("p", cpu=1))
    deployed.as_account("placer").delete(f"{PODS}/p", deployed.api.get(f"{PODS}/p")["metadata"]["uid"])
    assert deployed.api.items(PODS) == []


def test_a_dry_run_could_not_write(deployed: Deployed) -> None:
    deployed.apply("overlays/dry-run")
    deployed.api.create(node("n1"), live_pod("p", cpu=1))
    placer = deployed.as_account("placer")
    assert [each["metadata"]["name"] for each in placer.items(PODS)] == ["p"]
    assert refused(placer.bind, "default", "p", "n1") == 403
    spec = deployed.api.get("/apis/batch/v1/namespaces/placer/cronjobs/placer")["spec"]["jobTemplate"]["spec"][
        "template"
    ]
    assert spec["spec"]["containers"][0]["args"][-1] == "--dry-run"
