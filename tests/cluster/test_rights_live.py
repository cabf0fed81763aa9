"""A pass with one right less, on a real API server: it says which, and ends with 6 where it could not do its work.

``placer check`` asks for the same rights before a pass (``test_check_live.py``).
"""

from __future__ import annotations

import json
from functools import partial
from typing import Any

import pytest
import yaml

from placer.cli import main
from placer.passes.cluster import Client
from placer.passes.cluster.reading.access import Right, allows
from tests.cluster.api import Api
from tests.cluster.applied import Run, allowed, full
from tests.cluster.deployed import Deployed
from tests.cluster.proxy import Proxy, Spoil
from tests.cluster.test_check_live import granted, less, rendered
from tests.cluster.test_deploy import shop
from tests.cluster.things import live_pod
from tests.problem.test_upstream_gangs import gang, upstream
from tests.support import Document, node, pod_group
from tests.test_deploy import DEPLOY
from tests.waiting import wait_until

__all__ = ["shop"]

#: Who has what is needed where nothing goes wrong and nothing is disturbed.
BASE = [each for path in sorted((DEPLOY / "base").glob("rbac-*.yaml")) for each in yaml.safe_load_all(path.read_text())]
RIGHTS = sorted(granted(BASE))
PLACE = "namespaces/placer"
#: A pass goes on without these, and says what it could not tell.
TELLING = {"pods/status", "events", "podgroups", "podgroups/status"}
#: What a pass needs only where something went wrong before; tests of their own.
SELDOM = {Right("", "pods", "get"), Right("", "pods", "delete")}
#: What is made once, and where it is.
MADE = {
    Right("coordination.k8s.io", "leases", "create", "placer"): f"/apis/coordination.k8s.io/v1/{PLACE}/leases/placer",
    Right("", "configmaps", "create", "placer"): f"/api/v1/{PLACE}/configmaps/placer-gangs",
}
SOME = [
    Right("", "nodes", "list"),
    Right("", "nodes", "watch"),
    Right("", "pods/binding", "create"),
    Right("", "configmaps", "update", "placer", "placer-gangs"),
    Right("scheduling.k8s.io", "podgroups/status", "patch"),
]


class Lessened:
    """An account with one right less than an overlay gives."""

    def __init__(self, deployed: Deployed, folder: str, proxy: Proxy, capsys: pytest.CaptureFixture[str]) -> None:
        self._deployed, self._capsys = deployed, capsys
        self._roles = [each for each in rendered(deployed, folder) if each["kind"] in ("Role", "ClusterRole")]
        self._account = Client.connect(deployed.kubeconfig("placer"))
        self._config = deployed.kubeconfig("placer", proxy.url)  # in the same file

    def __call__(self, right: Right, *flags: str) -> tuple[int, dict[str, Any], str]:
        """A pass without a right: its exit code, its line, and all that was said."""
        (role,) = (each for each in self._roles if right in granted([each]))
        self._put(role, less(role, right))
        wait_until(lambda: not allows(self._account, right))
        self._capsys.readouterr()
        fixed = ["--method", "greedy", "--settle", "0", "--gang-grace", "2"]
        code = main(["run", "--kubeconfig", self._config, *fixed, *flags])
        told = self._capsys.readouterr()
        self._put(role, role["rules"])
        wait_until(partial(allows, self._account, right))
        return code, json.loads(told.out), told.out.replace("\\", "") + told.err

    def _put(self, role: Document, rules: list[dict[str, Any]]) -> None:
        path = self._deployed.api.path(role)
        self._deployed.api.call("PUT", path, self._deployed.api.get(path) | {"rules": rules})


def is_served(api: Api, right: Right) -> bool:
    """Whether there is a kind that a right is about."""
    groups = {each["name"]: each["versions"] for each in api.get("/apis")["groups"]}
    served = [api.get(f"/apis/{each['groupVersion']}")["resources"] for each in groups.get(right.group, ())]
    return not right.group or any(each["name"] == right.resource for several in served for each in several)


def check(right: Right, number: int, lessened: Lessened, api: Api) -> None:
    """A pass that has two gangs to bind and a pod that waits, and finds Lease and record if it may not make them."""
    if right in MADE:
        api.delete(MADE[right])
    names = {kind: f"{kind}-{number}" for kind in ("volcano", "upstream")}
    own = {"spec": {"schedulingGroup": {"podGroupName": names["upstream"]}}}
    api.create(pod_group(names["volcano"], minMember=2), upstream(name=names["upstream"], **gang(2)))
    api.create(*(live_pod(f"{names['volcano']}-{each}", group=names["volcano"], cpu="1m") for each in range(2)))
    api.create(*(live_pod(f"{names['upstream']}-{each}", cpu="1m", **own) for each in range(2)))
    api.create(live_pod(f"large-{number}", cpu=1000))
    code, line, said = lessened(right)
    if not is_served(api, right):
        assert (code, line["bound"] >= 4) == (0, True), said
        return
    assert f'cannot {right.verb} resource "{right.resource}"' in said or f"the right to {right}:" in said, said
    if right.resource in TELLING and right.verb != "list":
        assert (code, line["bound"] >= 4) == (0, True), said
    else:
        assert (code, line["bound"]) == (6, 0), said


@pytest.fixture
def lessened(shop: Deployed, proxy: Proxy, capsys: pytest.CaptureFixture[str]) -> Lessened:
    """Where a pass has been, which left a Lease and a record."""
    shop.api.create(node("n2", cpu=64, pods=1_000), pod_group("first", minMember=2))
    shop.api.create(*(live_pod(f"first-{number}", group="first", cpu="1m") for number in range(2)))
    assert main(["run", "--kubeconfig", shop.kubeconfig(), "--settle", "0", "--method", "greedy"]) == 0
    return Lessened(shop, "base", proxy, capsys)


def test_one_right_less_is_told_by_the_pass_that_needs_it(shop: Deployed, lessened: Lessened) -> None:
    for number, right in enumerate(SOME):
        assert right in RIGHTS
        check(right, number, lessened, shop.api)


@pytest.mark.exhaustive
def test_each_right_less_is_told_by_the_pass_that_needs_it(shop: Deployed, lessened: Lessened) -> None:
    for number, right in enumerate(sorted(set(RIGHTS) - SELDOM, key=MADE.__contains__)):  # what is made, last
        check(right, number, lessened, shop.api)


def test_without_the_right_to_delete_what_is_half_bound_stays_so_and_that_is_told(
    shop: Deployed, lessened: Lessened, proxy: Proxy
) -> None:
    shop.api.create(pod_group("half", minMember=2))
    shop.api.create(*(live_pod(f"half-{number}", group="half", cpu="1m") for number in range(2)))
    proxy.rule = lambda _method, path, _times: Spoil(422) if path.endswith("/half-1/binding") else None
    code, line, said = lessened(Right("", "pods", "delete"), "--half-bound-patience", "0")
    assert (code, line["gangs"]["halfBound"]) == (6, 1), said
    assert 'cannot delete resource "pods"' in said


def test_without_the_right_to_read_a_pod_a_binding_in_doubt_stays_so(
    shop: Deployed, lessened: Lessened, proxy: Proxy
) -> None:
    """The server gets the binding, and its answer is lost; the watch shows what became of it."""
    shop.api.create(live_pod("alone", cpu="1m"))
    proxy.rule = lambda _method, path, _times: Spoil(forwarded=True) if path.endswith("/alone/binding") else None
    code, line, said = lessened(Right("", "pods", "get"))
    assert (code, line["bound"]) == (0, 1), said


def test_without_the_right_to_evict_no_room_is_made_and_that_is_told(
    deployed: Deployed, proxy: Proxy, capsys: pytest.CaptureFixture[str]
) -> None:
    deployed.apply("crds", "overlays/disruption")
    full(deployed.api)
    allowed(deployed.api, evict="lower-priority")
    lessened = Lessened(deployed, "overlays/disruption", proxy, capsys)
    code, line, said = lessened(Right("", "pods/eviction", "create"), *Run.flags())
    assert (code, line["disruption"]["evicted"]) == (0, []), said
    assert 'cannot create resource "pods/eviction"' in line["disruption"]["trouble"]
