"""``--enforce gates``: placer releases pods for their nodes, and a real kube-scheduler binds them there."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from placer.passes.cluster.reading.client import Client, Response
from tests.cluster.api import Api
from tests.cluster.controllers import priority_class
from tests.cluster.faults import PODS, steal
from tests.cluster.held import GATES, all_bound, gated, held, held_gang, only_nodes, read, scheduled
from tests.cluster.passes import Passes, bound, gang, overfull
from tests.cluster.test_upstream_gangs_live import conditions, members
from tests.cluster.things import live_pod
from tests.problem.test_upstream_gangs import gang as upstream_gang
from tests.problem.test_upstream_gangs import upstream
from tests.support import Document, node
from tests.waiting import wait_until

pytestmark = pytest.mark.usefixtures("lasting_lease")


def reasons(cluster: Api) -> list[str]:
    return [each["reason"] for each in cluster.items("/apis/events.k8s.io/v1/events")]


# ---------------------------------------------------------------------------------------- who is released, and whereto


@pytest.mark.usefixtures("kube_scheduler")
def test_a_gang_is_bound_where_it_was_planned(cluster: Api, passes: Passes) -> None:
    cluster.create(*(node(f"n{number}", cpu=2) for number in range(4)), *held_gang("train", 4, cpu=2))
    told = passes(*GATES)
    assert (told["planned"], told["bound"], told["released"]) == (4, 4, 4)
    planned = only_nodes(cluster)
    assert len(set(planned.values())) == 4
    assert all_bound(cluster, *planned) == planned
    assert overfull(cluster) == []
    assert reasons(cluster).count("Released") == 1
    told = passes(*GATES)
    assert (told["pending"], told["planned"], told["unbound"], told["incomplete"]) == (0, 0, {}, [])


@pytest.mark.usefixtures("kube_scheduler")
def test_a_gang_that_does_not_fit_stays_gated_whole(cluster: Api, passes: Passes) -> None:
    cluster.create(node("n1", cpu=2), node("n2", cpu=2), *held_gang("train", 3, cpu=2))
    told = passes(*GATES)
    assert (told["pending"], told["released"]) == (3, 0)
    assert gated(cluster) == {"train-0", "train-1", "train-2"}
    found = scheduled(cluster, "train-0")
    assert (found["reason"], found["message"].partition(":")[0]) == ("SchedulingGated", "InsufficientResources")
    assert all("affinity" not in each["spec"] for each in cluster.items(PODS))
    before = read(cluster, "train-0")["metadata"]["resourceVersion"]
    passes(*GATES)  # what is so already is not written
    assert read(cluster, "train-0")["metadata"]["resourceVersion"] == before


@pytest.mark.usefixtures("kube_scheduler")
def test_pods_of_both_kinds_share_the_room_of_one_pass(cluster: Api, passes: Passes) -> None:
    """Twelve pods of 1 cpu for 8: what is bound and what is released count together, and each goes its own way."""
    cluster.create(node("n1", cpu=4), node("n2", cpu=4))
    for number in range(3):
        cluster.create(*held_gang(f"theirs-{number}", 2, cpu=1), *gang(f"ours-{number}", 2, cpu=1))
    told = passes(*GATES)
    assert told["bound"] == 8
    ours = {name for name in bound(cluster) if name.startswith("ours")}
    assert len(ours) == told["bound"] - told["released"] > 0
    assert len(all_bound(cluster, *only_nodes(cluster))) == told["released"] > 0
    assert overfull(cluster) == []
    assert len(gated(cluster)) == 6 - told["released"]
    assert "SchedulerError" not in {scheduled(cluster, name).get("reason") for name in gated(cluster)}


def test_a_pod_with_the_gate_is_never_bound_while_it_has_it(cluster: Api, passes: Passes) -> None:
    """One that names placer itself is released in one pass and bound in the next, before what is more urgent."""
    cluster.create(
        priority_class("high", 1000),
        node("n1", cpu=2),
        *[held(each, scheduler="placer") for each in gang("train", 2, cpu=1)],
    )
    told = passes(*GATES)
    assert (told["released"], bound(cluster), gated(cluster)) == (2, {}, set())
    assert told["gangs"]["released"] == 1
    urgent = live_pod("urgent", cpu=2)
    cluster.create({**urgent, "spec": {**urgent["spec"], "priorityClassName": "high"}})
    told = passes(*GATES)
    assert (told["bound"], told["released"], set(bound(cluster))) == (2, 0, {"train-0", "train-1"})
    assert passes(*GATES)["gangs"]["halfBound"] == 0


def test_a_dry_run_at_the_server_keeps_nothing(cluster: Api, passes: Passes) -> None:
    cluster.create(node("n1"), held(live_pod("p", cpu=1)))
    told = passes(*GATES, "--dry-run=server")
    assert (told["planned"], told["released"], gated(cluster)) == (1, 1, {"p"})
    assert "nominatedNodeName" not in read(cluster, "p")["status"]


@pytest.mark.usefixtures("kube_scheduler")
def test_a_gang_of_kubernetes_itself_is_released_whole(cluster: Api, passes: Passes) -> None:
    """Its PodGroup is kube-scheduler's, which binds all or none and tells of it; placer chooses the nodes."""
    cluster.create(*(node(f"n{number}", cpu=3) for number in range(3)))
    for name, count in (("two", 2), ("three", 3)):
        cluster.create(upstream(name=name, **upstream_gang(count)), *map(held, members(name, count)))
    told = passes(*GATES)
    assert (told["released"], told["gangs"]["waiting"]) == (3, 1)
    planned = only_nodes(cluster)
    assert all_bound(cluster, *planned) == planned
    whole = next(iter(planned)).rpartition("-")[0]
    (said,) = conditions(cluster, whole)
    assert (said["type"], said["status"]) == ("PodGroupInitiallyScheduled", "True")
    assert len(gated(cluster)) == 5 - len(planned)


# ----------------------------------------------------------------------------------------------- one ledger of the room


def test_what_is_released_keeps_its_room_until_it_is_bound(
    cluster: Api, passes: Passes, start_kube_scheduler: Callable[[], None]
) -> None:
    """kube-scheduler is late. Pass after pass nobody else gets the room, whatever its priority, and nothing is told
    twice; what is bound then is what was planned.
    """
    cluster.create(node("n1", cpu=4), *held_gang("train", 2, cpu=2))
    told = passes(*GATES)
    planned = only_nodes(cluster)
    assert (told["released"], told["unbound"].keys()) == (2, {"default/train-0", "default/train-1"})
    assert told["gangs"]["released"] == 1
    cluster.create(live_pod("ours", cpu=2), held(live_pod("theirs", cpu=2)))
    for _ in range(2):
        told = passes(*GATES)
        assert (told["bound"], told["pending"], told["gangs"]["released"]) == (0, 2, 1)
        assert len(told["unbound"]) == 2
    told = passes()  # without the option the nominations say the same
    assert (told["bound"], bound(cluster), gated(cluster)) == (0, {}, {"theirs"})
    start_kube_scheduler()
    assert all_bound(cluster, *planned) == planned
    assert overfull(cluster) == []


# ------------------------------------------------------------------------------------------------- when it goes wrong


def test_a_gang_whose_room_another_took_is_taken_back_and_made_anew(
    cluster: Api, passes: Passes, start_kube_scheduler: Callable[[], None]
) -> None:
    """Released for two nodes, of which a third party fills one before kube-scheduler comes to it: half-bound, told,
    rolled back when patience is over, and placed anew with gates as its controller makes it.
    """
    cluster.create(node("n1", cpu=4), node("n2", cpu=4), *held_gang("train", 2, cpu=4))
    passes(*GATES)
    (lost,) = [name for name, where in only_nodes(cluster).items() if where == "n2"]
    (other,) = set(only_nodes(cluster)) - {lost}
    steal(cluster, "thief", "n2", cpu=1)
    start_kube_scheduler()
    assert all_bound(cluster, other) == {other: "n1"}
    wait_until(lambda: scheduled(cluster, lost)["reason"] == "Unschedulable", "kube-scheduler's refusal")
    told = passes(*GATES)  # there is time still
    assert (told["gangs"]["released"], told["unbound"]) == (1, {f"default/{lost}": "n2"})
    assert lost in told["incomplete"][0]["reason"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("placer.passes.cluster.reading.earlier_passes._BINDS_WITHIN", timedelta(seconds=-5))
        told = passes(*GATES, code=6)  # and now there was
    (incomplete,) = told["incomplete"]
    assert (incomplete["state"], incomplete["bound"]) == ("halfBound", 2)
    told = _after_patience(passes)
    assert told["gangs"]["rolledBack"] == 1
    going = {each["metadata"]["name"] for each in cluster.items(PODS) if each["metadata"].get("deletionTimestamp")}
    assert going == {other}  # it was bound, and its kubelet ends it; the other is gone at once
    assert lost not in {each["metadata"]["name"] for each in cluster.items(PODS)}
    assert reasons(cluster).count("RolledBack") == 1
    cluster.delete(f"{PODS}/{other}")
    cluster.create(node("n3", cpu=4), *held_gang("train", 2, cpu=4)[1:])
    told = passes(*GATES)
    assert list(told["backingOff"]) == ["PodGroup default/train"]
    assert gated(cluster) == {"train-0", "train-1"}


def _after_patience(passes: Passes, code: int = 0) -> dict[str, Any]:
    time.sleep(2)  # the server tells its time in whole seconds
    return passes(*GATES, "--half-bound-patience", "0.1", "--gang-grace", "0.1", code=code)


def test_a_workload_that_no_scheduler_binds_backs_off(cluster: Api, passes: Passes) -> None:
    """Its controller makes its pods anew under other names: they must not hold one room after the other for ever."""
    cluster.create(*(node(f"n{number}", cpu=4) for number in range(3)))
    for number in range(2):
        cluster.create(held(_of_a_set(f"p-{number}")))
        assert passes(*GATES)["released"] == 1
        assert _after_patience(passes)["gangs"]["rolledBack"] == 1
        assert cluster.items(PODS) == []
    cluster.create(held(_of_a_set("p-2")))
    told = passes(*GATES)
    assert (told["released"], list(told["backingOff"]), gated(cluster)) == (0, ["Pod default/p-2"], {"p-2"})


def _of_a_set(name: str) -> Document:
    """A pod that a ReplicaSet made."""
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "odd", "uid": "1", "controller": True}
    found = live_pod(name, cpu=4)
    return {**found, "metadata": {**found["metadata"], "ownerReferences": [owner]}}


def test_what_is_bound_in_time_is_not_taken_back(cluster: Api, passes: Passes, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its scheduler binds it between the pass's last look and the deletion."""
    cluster.create(node("n1", cpu=4), held(live_pod("p", cpu=4)))
    passes(*GATES)
    really = Client.send

    def send(self: Client, method: str, path: str, *rest: Any, **options: Any) -> Response:
        if method == "DELETE" and "p" not in bound(cluster):
            cluster.bind("default", "p", "n1")
        return really(self, method, path, *rest, **options)

    monkeypatch.setattr(Client, "send", send)
    told = _after_patience(passes)
    assert (told["gangs"]["rolledBack"], bound(cluster)) == (0, {"p": "n1"})


# ---------------------------------------------------------------------------------------------------- tenants' attempts
