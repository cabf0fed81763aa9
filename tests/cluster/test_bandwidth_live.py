"""``deploy/bandwidth``: which link, how fast, and that a real API server takes this from the node's own pod alone."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType
from typing import Any
from urllib.error import HTTPError

import pytest

from tests.cluster.api import Api, Refused
from tests.cluster.deployed import Deployed, refused
from tests.cluster.server import ControlPlane
from tests.support import node
from tests.test_deploy import DEPLOY
from tests.waiting import wait_until

NAMESPACE = "placer-bandwidth"
RESOURCE = "network.aware.com/bandwidth"
HEAD = "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT\n"
ANY6 = "0" * 32


@pytest.fixture(scope="module")
def published() -> ModuleType:
    """The program, as a module."""
    spec = importlib.util.spec_from_file_location("publish", DEPLOY / "bandwidth" / "publish.py")
    assert spec is not None
    assert spec.loader is not None
    found = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    return found


def route(
    interface: str, destination: str = "00000000", mask: str = "00000000", metric: int = 0, flags: str = "0003"
) -> str:
    return f"{interface}\t{destination}\t0102A8C0\t{flags}\t0\t0\t{metric}\t{mask}\t0\t0\t0\n"


def route6(interface: str, length: str = "00", metric: str = "00000400", flags: str = "00000003") -> str:
    return f"{ANY6} {length} {ANY6} 00 {ANY6} {metric} 00000001 00000000 {flags} {interface:>8}\n"


@pytest.mark.parametrize(
    ("four", "six", "found"),
    [
        (route("eth0"), "", "eth0"),
        (route("eth1", "0000A8C0", "00FFFFFF") + route("eth0", metric=100) + route("bond0", metric=50), "", "bond0"),
        (route("eth0", flags="0000") + route("eth1", metric=9), "", "eth1"),
        (route("eth0"), route6("eth1", metric="00000000"), "eth0"),
        ("", route6("lo", flags="00200200") + route6("eth2", length="40") + route6("eth1"), "eth1"),
    ],
    ids=["one", "the lowest metric", "one that is up", "IPv4 first", "IPv6 alone"],
)
def test_the_main_link_has_the_default_route(
    four: str, six: str, found: str, published: ModuleType, tmp_path: Path
) -> None:
    (tmp_path / "net").mkdir()
    (tmp_path / "net" / "route").write_text(HEAD + four)
    (tmp_path / "net" / "ipv6_route").write_text(six)
    assert published.main_interface(tmp_path) == found


def test_without_a_default_route_it_says_so(published: ModuleType, tmp_path: Path) -> None:
    with pytest.raises(published.LinkUnknown, match="found no default route, expected one"):
        published.main_interface(tmp_path)


def linked(sys_: Path, text: str | None) -> Path:
    """A ``/sys`` in which ``eth0`` has a speed."""
    folder = sys_ / "class" / "net" / "eth0"
    folder.mkdir(parents=True)
    if text is not None:
        (folder / "speed").write_text(text)
    return sys_


def test_the_speed_is_told_in_bits(published: ModuleType, tmp_path: Path) -> None:
    assert published.bandwidth(linked(tmp_path, "25000\n"), "eth0") == 25_000_000_000


@pytest.mark.parametrize(
    ("text", "said"), [("-1\n", "found -1"), ("0\n", "found 0"), ("", "found nothing"), (None, "No such")]
)
def test_a_link_without_a_speed_is_named(text: str | None, said: str, published: ModuleType, tmp_path: Path) -> None:
    with pytest.raises(published.LinkUnknown, match=rf"/class/net/eth0/speed: .*{said}.*expected Mbit/s"):
        published.bandwidth(linked(tmp_path, text), "eth0")


# ----------------------------------------------------------------------------------------------------------- the server


@pytest.fixture
def account(deployed: Deployed, control_plane: ControlPlane, cluster: Api, tmp_path: Path) -> Path:
    """What the kubelet of ``n1`` gives the pod of the DaemonSet, which a controller would have made."""
    deployed.apply("bandwidth")
    cluster.create(node("n1", cpu=4), node("n2", cpu=4))
    for name in ("n1", "n2"):
        cluster.patch(f"/api/v1/nodes/{name}/status", {"status": {"capacity": {"cpu": "4", "memory": "8Gi"}}})
    template = cluster.get(f"/apis/apps/v1/namespaces/{NAMESPACE}/daemonsets/{NAMESPACE}")["spec"]["template"]
    pod = {"metadata": {"name": "on-n1", **template["metadata"]}, "spec": {**template["spec"], "nodeName": "n1"}}
    made = cluster.call("POST", f"/api/v1/namespaces/{NAMESPACE}/pods", pod)
    bound = {"kind": "Pod", "apiVersion": "v1", "name": "on-n1", "uid": made["metadata"]["uid"]}
    asked = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"boundObjectRef": bound}}
    token = cluster.call("POST", f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts/{NAMESPACE}/token", asked)
    (tmp_path / "token").write_text(token["status"]["token"])
    (tmp_path / "ca.crt").write_bytes(control_plane.certificate.read_bytes())
    its, anything = writer(control_plane, tmp_path), {"status": {"capacity": {"cpu": "1"}}}

    def is_in_force() -> bool:
        try:
            its.patch("/api/v1/nodes/n1/status?dryRun=All", anything)
        except Refused as refusal:
            return refusal.status == 422
        return False

    wait_until(is_in_force, "the policy in force")
    return tmp_path


def writer(control_plane: ControlPlane, account: Path) -> Api:
    """The server for the pod of the DaemonSet."""
    return Api(control_plane.url, control_plane.certificate, (account / "token").read_text())


def capacity(cluster: Api, name: str) -> Any:
    return cluster.get(f"/api/v1/nodes/{name}")["status"]["capacity"].get(RESOURCE)


def test_a_pod_writes_the_speed_of_its_own_node_and_nothing_else(
    deployed: Deployed, control_plane: ControlPlane, cluster: Api, account: Path, published: ModuleType
) -> None:
    def answer(name: str) -> int:
        try:
            published.publish(control_plane.url, name, 10**10, account)
        except HTTPError as error:
            return error.code
        return 200

    assert (answer("n1"), answer("n2")) == (200, 422)
    assert (capacity(cluster, "n1"), capacity(cluster, "n2")) == ("10G", None)
    version = cluster.get("/api/v1/nodes/n1")["metadata"]["resourceVersion"]
    assert answer("n1") == 200
    assert cluster.get("/api/v1/nodes/n1")["metadata"]["resourceVersion"] == version  # nothing has changed
    its = writer(control_plane, account)
    for change in (
        {"status": {"capacity": {"cpu": "400"}}},
        {"status": {"capacity": {"memory": None}}},
        {"status": {"allocatable": {RESOURCE: "10G"}}},
        {"status": {"conditions": []}},
        {"metadata": {"labels": {"pool": "mine"}}},
    ):
        assert refused(its.patch, "/api/v1/nodes/n1/status", change) == 422, change
    assert refused(its.patch, "/api/v1/nodes/n1", {"spec": {"unschedulable": True}}) == 403
    assert refused(its.get, "/api/v1/nodes/n1") == 403
    unbound = Api(control_plane.url, control_plane.certificate, _token_of_no_pod(cluster))
    assert refused(unbound.patch, "/api/v1/nodes/n1/status", {"status": {"capacity": {RESOURCE: "1"}}}) == 422


def _token_of_no_pod(cluster: Api) -> str:
    asked = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    made = cluster.call("POST", f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts/{NAMESPACE}/token", asked)
    return str(made["status"]["token"])
