"""What a pass does not hear of or cannot read is not assumed: watches that are silent, kinds that are missing."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from placer.passes.cluster.planning.binding_plan import plan_bindings
from tests.cluster.api import Api, definitions
from tests.cluster.binaries import resource_definitions
from tests.cluster.faults import steal
from tests.cluster.passes import Passes, bound, gang, overfull
from tests.cluster.proxy import Proxy, Rule, Spoil
from tests.cluster.things import live_pod
from tests.examples import exhaustive
from tests.support import hyper_node, node

TREE = "/apis/topology.volcano.sh/v1alpha1/hypernodes"
DEFINITION = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/hypernodes.topology.volcano.sh"


def silent(path: str, times: int = 1_000) -> Rule:
    """Watches that are open and through which nothing comes."""

    def rule(_method: str, asked: str, count: int) -> Spoil | None:
        return Spoil(stalls_after=0) if asked == f"{path}?watch" and count <= times else None

    return rule


def before_plan(monkeypatch: pytest.MonkeyPatch, work: Callable[[], object]) -> None:
    """Do something between the decision and the moment at which it is asked what is current."""

    def work_first(*arguments: Any) -> Any:
        work()
        return plan_bindings(*arguments)

    monkeypatch.setattr("placer.passes.scheduling_pass.plan_bindings", work_first)


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Seconds of a test in place of those of a cluster."""
    monkeypatch.setattr("placer.passes.cluster.reading.watch._PATIENCE", 0.5)
    monkeypatch.setattr("placer.passes.cluster.reading.watch._LISTING", 1.0)


@pytest.mark.parametrize("few", [500, *exhaustive(0)])
@pytest.mark.parametrize("theirs", ["pods", "nodes"])
def test_what_a_silent_watch_kept_back_is_asked_for(
    few: int, theirs: str, cluster: Api, passes: Passes, proxy: Proxy, monkeypatch: pytest.MonkeyPatch, impatient: None
) -> None:
    """Whether the list is taken at once or the watch opened anew first, which helps as little here."""
    monkeypatch.setattr("placer.passes.cluster.reading.watch._FEW", few)
    cluster.create(node("n1"), *gang("train", 2, cpu=4))

    def work() -> None:
        if theirs == "pods":
            steal(cluster, "thief", "n1", cpu=1)
        else:
            cluster.patch("/api/v1/nodes/n1", {"spec": {"unschedulable": True}})

    proxy.rule = silent(f"/api/v1/{theirs}")
    before_plan(monkeypatch, work)
    told = passes()
    (why,) = told["left"].values()
    assert why.endswith(("the room is gone on Node n1: cpu 8 of 7 left", "node is unschedulable"))
    assert not any(name.startswith("train") for name in bound(cluster))
    assert overfull(cluster) == []


def test_bindings_that_nothing_shows_are_told(
    cluster: Api, passes: Passes, proxy: Proxy, impatient: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are made, and what else came to the node in the meantime is not known."""
    cluster.create(node("n1"), *gang("train", 2))
    monkeypatch.setattr("placer.passes.cluster.reading.client._FIRST_WAIT", 0.01)
    monkeypatch.setattr("placer.passes.cluster.writing.plan_execution._EVENTS", 1.0)

    def deaf(method: str, path: str, _times: int) -> Spoil | None:
        if path.endswith("/binding"):
            proxy.rule = unlisted
        return Spoil(stalls_after=0) if path == "/api/v1/pods?watch" else None

    def unlisted(method: str, path: str, _times: int) -> Spoil | None:
        spoilt = path in ("/api/v1/pods", "/api/v1/pods?watch", "/api/v1/namespaces/placer-nothing/pods")
        return Spoil(503) if method == "GET" and spoilt else None

    proxy.rule = deaf
    told = passes(code=6)
    assert (told["bound"], told["unseen"]) == (2, ["PodGroup default/train"])
    proxy.rule = lambda *_: None
    assert passes()["unseen"] == []


# ----------------------------------------------------------------------------------------------- kinds that are missing


@pytest.fixture
def without_hyper_nodes(api: Api) -> Iterator[dict[str, Any]]:
    """A cluster that does not serve HyperNodes; gives their definition."""
    (found,) = [
        each
        for file in resource_definitions("volcano")
        for each in definitions(file)
        if each["spec"]["names"]["kind"] == "HyperNode"
    ]
    api.delete(DEFINITION)
    api.wait_for(found, served=False)
    yield found
    api.delete(DEFINITION)
    api.wait_for(found, served=False)
    api.call("POST", DEFINITION.rpartition("/")[0], found)
    api.wait_for(found, served=True)


def test_a_tree_in_a_version_that_is_not_read_is_no_tree(
    passes: Passes, without_hyper_nodes: dict[str, Any], cluster: Api
) -> None:
    newer = json.loads(json.dumps(without_hyper_nodes).replace("v1alpha1", "v1beta7"))
    cluster.call("POST", DEFINITION.rpartition("/")[0], newer)
    cluster.wait_for(newer, served=True)
    try:
        tree = {**hyper_node("leaf", 1, nodes=("n1",)), "apiVersion": "topology.volcano.sh/v1beta7"}
        cluster.create(node("n1"), tree, *gang("hard", 2, tier=1, cpu=1), live_pod("lone", cpu=1))
        passes()
        assert bound(cluster).keys() == {"lone"}
        conditions = cluster.get("/api/v1/namespaces/default/pods/hard-0")["status"]["conditions"]
        assert [each["message"] for each in conditions] == ["InvalidGroup: HyperNode leaf cannot be read"]
    finally:
        cluster.delete("/apis/topology.volcano.sh/v1beta7/hypernodes/leaf")


@pytest.mark.parametrize(
    ("path", "spoil", "says"),
    [
        ("/readyz", Spoil(500, text='{"message": "[-]autoregister-completion failed"}'), "500 [-]autoregister"),
        ("/apis/topology.volcano.sh/v1alpha1", Spoil(404), "but /apis lists it: it is not complete yet"),
        ("/apis/topology.volcano.sh/v1alpha1", Spoil(503), "503 spoilt"),
        (TREE, Spoil(404), "but the server lists the kind"),
        ("/api/v1/nodes", Spoil(404), "but the server lists the kind"),
        ("/apis", Spoil(200, text='{"groups": []}'), "found no group apps"),
    ],
)
def test_a_server_that_has_just_begun_is_asked_again_by_the_next_pass(
    path: str, spoil: Spoil, says: str, cluster: Api, passes: Passes, proxy: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("placer.passes.cluster.reading.client._FIRST_WAIT", 0.01)
    cluster.create(node("n1"), node("n2"), hyper_node("leaf", 1, nodes=("n1",)), *gang("hard", 2, tier=1, cpu=1))
    proxy.rule = lambda _method, asked, _times: spoil if asked == path else None
    assert says in passes(code=6)["error"]
    assert bound(cluster) == {}
    proxy.rule = lambda *_: None
    passes()
    assert set(bound(cluster).values()) == {"n1"}
