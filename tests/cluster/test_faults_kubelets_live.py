"""Kubelets that reject and solvers that die, at a real API server."""

from __future__ import annotations

from datetime import UTC, datetime

from tests.cluster.api import Api
from tests.cluster.faults import PODS, half_bound, recreate
from tests.cluster.kubelets import Admission, Impatient, Kubelets
from tests.cluster.passes import Passes, bound, gang
from tests.cluster.things import live_pod, of_a_job
from tests.support import node


def test_a_kubelet_that_rejects_cools_down_and_the_gang_is_repaired(cluster: Api, passes: Passes) -> None:
    """n1's kubelet knows of less than it told: of two pods of 4 cpu it takes one."""
    kubelets = Kubelets(cluster)
    kubelets.add(node("n1"))
    kubelets.admissions["n1"] = type(kubelets.admissions["n1"]).of(node("n1", cpu=5))
    group, first, second = gang("train", 2, cpu=4)
    cluster.create(group, first, second)
    with kubelets.running(every=0.01):
        told = passes("--settle", "20", code=6)
        (name,) = told["rejected"]
        assert told["rejected"][name] == "OutOfcpu on n1"
        (found,) = half_bound(told).values()
        assert found["missing"] == {name: "the kubelet of Node n1 rejected it (OutOfcpu)"}
    # The controller of the pods makes another one; n1 has room for it, and n2 comes too. No kubelet looks meanwhile: a
    # pod that has its node and no status yet is one to start.
    kubelets.add(node("n2"))
    recreate(cluster, next(each for each in (first, second) if each["metadata"]["name"] == name.split("/")[1]))
    lost = live_pod("failed-before", node="n1", scheduler="placer", cpu=1)
    cluster.create({**lost, "status": {"phase": "Failed", "reason": "OutOfcpu", "startTime": _now()}})
    with kubelets.running(every=0.01):
        told = passes("--settle", "20")
        assert told["coolingNodes"] == ["n1"]
        assert sorted(bound(cluster).values()) == ["n1", "n2"]
        assert (told["gangs"]["bound"], told["rejected"]) == (1, {})


def test_a_workload_that_no_kubelet_takes_backs_off_and_the_pool_stays(cluster: Api, passes: Passes) -> None:
    """Kubelets know of 5 cpu where nodes tell 8; of what failed nothing is left for the next pass but the record."""
    kubelets = Impatient(cluster)
    kubelets.add(*(node(name) for name in ("n1", "n2", "n3")))
    for name in kubelets.admissions:
        kubelets.admissions[name] = Admission.of(node(name, cpu=5))
    for number in range(2):
        cluster.create(of_a_job(f"poison-{number}", cpu=6))
        with kubelets.running(every=0.01):
            told = passes("--settle", "20", code=None)
        assert list(told["rejected"]) == [f"default/poison-{number}"]
        assert cluster.items(PODS) == []
        assert len(told["coolingNodes"]) == number  # that of the first one, and nobody is asked but the record
    cluster.create(of_a_job("poison-2", cpu=6), *gang("fine", 3, cpu=5))
    for _ in range(2):  # while it waits it goes on waiting
        with kubelets.running(every=0.01):
            told = passes("--settle", "20")
        assert told["coolingNodes"] == []
        assert bound(cluster).keys() == {"fine-0", "fine-1", "fine-2"}
        assert list(told["backingOff"]) == ["Pod default/poison-2"]
    (condition,) = cluster.get(f"{PODS}/poison-2")["status"]["conditions"]
    nodes, rest = condition["message"].removeprefix("kubelets of ").split(" rejected its pods (OutOfcpu)")
    assert len(nodes.split(", ")) == 2
    assert rest.startswith("; tried again at ")
    notes = [
        each["note"]
        for each in cluster.items("/apis/events.k8s.io/v1/events")
        if (each["regarding"]["name"], each["reason"]) == ("poison-2", "FailedScheduling")
    ]
    assert notes == [condition["message"]]


def rejected_between_passes(cluster: Api, passes: Passes) -> Impatient:
    """A pass binds a pod and hears of no kubelet; then one rejects it, and its controller makes another."""
    kubelets = Impatient(cluster)
    kubelets.add(node("n1"))
    kubelets.admissions["n1"] = Admission.of(node("n1", cpu=5))
    cluster.create(of_a_job("poison-0", cpu=6))
    assert passes()["bound"] == 1
    kubelets.step()
    assert cluster.items(PODS) == []
    cluster.create(of_a_job("poison-1", cpu=6))
    return kubelets


def test_a_pass_that_stands_alone_hears_what_was_rejected_since_the_one_before(cluster: Api, passes: Passes) -> None:
    kubelets = rejected_between_passes(cluster, passes)
    told = passes()
    assert (told["coolingNodes"], told["bound"], told["told"]["troubles"]) == (["n1"], 0, [])
    kubelets.add(node("n2"))
    kubelets.admissions["n2"] = Admission.of(node("n2", cpu=5))
    assert passes()["bound"] == 1
    kubelets.step()
    cluster.create(of_a_job("poison-2", cpu=6))
    told = passes()
    assert (told["coolingNodes"], list(told["backingOff"])) == ([], ["Pod default/poison-2"])


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
