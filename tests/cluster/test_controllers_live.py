"""``run --controllers`` against a real API server, with the rights of ``deploy/overlays/controllers``."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from placer.cli import main
from placer.passes.cluster.reading.client import APPLY
from tests.cluster.api import Api, Refused
from tests.cluster.deployed import Deployed
from tests.cluster.things import live_pod
from tests.netdocs import app_group, call, network_topology
from tests.support import Document, hyper_node, node
from tests.waiting import wait_until

REGION, ZONE = "topology.kubernetes.io/region", "topology.kubernetes.io/zone"
APP_GROUP = "/apis/appgroup.diktyo.x-k8s.io/v1alpha1/namespaces/default/appgroups/shop"
NETWORK = "/apis/networktopology.diktyo.x-k8s.io/v1alpha1/namespaces/default/networktopologies/nt"
HYPER_NODE = "/apis/topology.volcano.sh/v1alpha1/hypernodes/leaf"
PATHS = (APP_GROUP, NETWORK, HYPER_NODE)
Pass = Callable[..., dict[str, Any]]

USER_LIST = {"name": "UserDefined", "topologyList": []}
NETWORK_TOPOLOGY = network_topology(USER_LIST, name="nt")


def measured(**data: str) -> Document:
    metadata = {"name": "netperf", "namespace": "default"}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


def key(origin: str, destination: str) -> str:
    return f"netperf.p90.latency.milliseconds.origin.{origin}.destination.{destination}"


@pytest.fixture
def shop(deployed: Deployed) -> Api:
    """Two zones, a shop of two workloads of which the web calls the db, and what describes the network."""
    deployed.apply("crds", "overlays/controllers", "measurements")
    deployed.api.create(
        *(node(f"n{each}", {REGION: "eu", ZONE: f"z{each}"}) for each in (1, 2)),
        measured(**{key("n1", "n2"): "7", key("n2", "n1"): "7"}),
        app_group("shop", {"db": [], "web": [call("db", cost=50, bandwidth="100M")]}, numMembers=2),
        NETWORK_TOPOLOGY,
        hyper_node("leaf", 1, nodes=("n1", "n2", "n3")),
    )
    for name, where in (("db", "n1"), ("web", "n2")):
        pod = live_pod(name, cpu=1)
        labels = {"appgroup.diktyo.x-k8s.io": "shop", "appgroup.diktyo.x-k8s.io.workload": name}
        pod["metadata"]["labels"] = labels
        deployed.api.create(pod)
        deployed.api.bind("default", name, where)
        deployed.api.call(
            "PATCH",
            f"/api/v1/namespaces/default/pods/{name}/status",
            {"status": {"phase": "Running"}},
            "application/merge-patch+json",
        )
    return deployed.api


@pytest.fixture
def run(deployed: Deployed, capsys: pytest.CaptureFixture[str]) -> Pass:
    """Make a pass with the account's rights; what its line says of controllers."""

    def work(kinds: str = "AppGroup,NetworkTopology,HyperNode") -> dict[str, Any]:
        capsys.readouterr()
        words = ["--settle=0", "--method=greedy", "--controllers", kinds]
        code = main(["run", "--kubeconfig", deployed.kubeconfig("placer"), *words])
        printed = capsys.readouterr()
        assert code == 0, printed.err
        told: dict[str, Any] = json.loads(printed.out)["controllers"]
        return told

    return work


def versions(api: Api) -> list[str]:
    return [api.get(path)["metadata"]["resourceVersion"] for path in PATHS]


def hand_over(api: Api) -> None:
    """As ``docs/passes.md`` has it: with a list that is new, since who applies what is so already shares it only."""
    weights = [USER_LIST, {"name": "NetperfCosts", "topologyList": []}]
    document = {**NETWORK_TOPOLOGY, "spec": {**NETWORK_TOPOLOGY["spec"], "weights": weights}}
    api.call("PATCH", f"{NETWORK}?fieldManager=placer-controllers&force=true", document, APPLY)


def test_a_pass_writes_what_controllers_would_and_the_next_one_nothing(shop: Api, run: Pass) -> None:
    told = run()
    assert (told["written"], told["troubles"]) == (3, [])
    status = shop.get(APP_GROUP)["status"]
    assert status["runningWorkloads"] == 2
    assert status["scheduleStartTime"]
    order = {each["workload"]["selector"]: each["index"] for each in status["topologyOrder"]}
    assert order == {"web": 1, "db": 2}
    assert shop.get(NETWORK)["status"] == {"nodeCount": 2}  # no time of costs that are not written
    status = shop.get(HYPER_NODE)["status"]
    assert status["nodeCount"] == 2  # of three names, two are there
    before = versions(shop)
    again = run()
    assert (again["written"], again["troubles"]) == (0, [])
    assert versions(shop) == before


def test_costs_are_written_once_the_field_was_handed_over(shop: Api, run: Pass) -> None:
    left = run("NetworkTopology")["left"]
    assert len(left) == 1
    assert left[0].startswith("NetworkTopology default/nt: spec.weights (")
    assert shop.get(NETWORK)["spec"]["weights"] == [USER_LIST]
    hand_over(shop)
    told = run("NetworkTopology")
    assert (told["written"], told["left"], told["troubles"]) == (1, [], [])
    spec = shop.get(NETWORK)["spec"]
    assert spec["configmapName"] == "netperf"
    user, costs = spec["weights"]
    assert user == USER_LIST
    assert costs["name"] == "NetperfCosts"
    (zones,) = costs["topologyList"]
    found = {each["origin"]: each["costList"] for each in zones["originList"]}
    assert found["z2"] == [{"destination": "z1", "networkCost": 7, "bandwidthAllocated": "100000000"}]
    assert found["z1"] == [{"destination": "z2", "networkCost": 7, "bandwidthAllocated": "0"}]
    before = shop.get(NETWORK)["metadata"]["resourceVersion"]
    assert run("NetworkTopology")["written"] == 0
    assert shop.get(NETWORK)["metadata"]["resourceVersion"] == before


def test_a_field_of_another_manager_is_left_and_that_is_said(shop: Api, run: Pass) -> None:
    theirs = {"apiVersion": "topology.volcano.sh/v1alpha1", "kind": "HyperNode", "metadata": {"name": "leaf"}}
    document = {**theirs, "status": {"nodeCount": 3}}
    shop.call("PATCH", f"{HYPER_NODE}/status?fieldManager=vc-controller-manager", document, APPLY)
    told = run("HyperNode")
    assert told["left"] == ["HyperNode leaf: status.nodeCount (vc-controller-manager)"]
    assert (told["written"], told["troubles"]) == (1, [])
    status = shop.get(HYPER_NODE)["status"]
    assert status["nodeCount"] == 3
    assert [each["type"] for each in status["conditions"]] == ["placer.dev/Consistent"]
    assert run("HyperNode")["written"] == 0


@pytest.mark.parametrize(
    ("resource", "subject"),
    [
        ("appgroups", "AppGroup default/shop"),
        ("networktopologies", "NetworkTopology default/nt"),
        ("hypernodes/status", "HyperNode leaf"),
    ],
)
def test_one_right_less_is_told_and_the_others_are_used(
    resource: str, subject: str, shop: Api, run: Pass, deployed: Deployed, capsys: pytest.CaptureFixture[str]
) -> None:
    where = "/apis/rbac.authorization.k8s.io/v1/clusterroles/placer-controllers"
    rules = [each for each in shop.get(where)["rules"] if each["resources"] != [resource]]
    assert len(rules) == 2
    shop.call("PATCH", where, {"rules": rules}, "application/merge-patch+json")
    told = run()
    assert told["written"] == 2
    (trouble,) = told["troubles"]
    assert trouble.startswith(f"{subject}: 403 ")
    assert trouble.endswith("; deploy/overlays/controllers gives the right")
    arguments = ["check", "--json", "--kubeconfig", deployed.kubeconfig("placer")]
    assert main([*arguments, "--controllers", "AppGroup,NetworkTopology,HyperNode"]) == 6
    failed = [each for each in json.loads(capsys.readouterr().out)["checks"] if each["state"] == "failed"]
    assert [each["object"].split(".")[0] for each in failed] == [f"patch {resource}"]
    assert main(arguments) == 0  # a pass without controllers needs none of it


FORGED = {
    "type": "Ready",
    "status": "True",
    "reason": "x",
    "message": "",
    "lastTransitionTime": "2026-11-27T12:00:00Z",
}
#: What the token may change by RBAC, and must not.
TAKEN = (
    (APP_GROUP, {"spec": {"numMembers": 7}}),
    (APP_GROUP, {"metadata": {"labels": {"a": "b"}}}),
    (NETWORK, {"spec": {"configmapName": "others"}}),
    (NETWORK, {"spec": {"weights": []}}),
    (NETWORK, {"spec": {"weights": [USER_LIST, {"name": "Forged", "topologyList": []}]}}),
    (f"{HYPER_NODE}/status", {"status": {"conditions": [FORGED]}}),
)


def test_the_token_writes_of_them_what_passes_write_and_no_more(shop: Api, deployed: Deployed, run: Pass) -> None:
    placer = deployed.as_account("placer")

    def is_refused(path: str, body: Document) -> bool:
        """By a policy: RBAC says 403."""
        try:
            placer.patch(f"{path}?dryRun=All", body)
        except Refused as refusal:
            return refusal.status == 422 and "placer writes" in str(refusal)
        return False

    for path, body in TAKEN:
        wait_until(partial(is_refused, path, body), f"a policy against {body}")
    told = run()
    assert (told["written"], told["troubles"]) == (3, [])
    hand_over(shop)
    assert (run()["written"], run()["troubles"]) == (1, [])
