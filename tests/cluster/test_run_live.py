"""``placer run`` against a real API server, where nothing goes wrong."""

from __future__ import annotations

import errno
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

import placer
from placer.cli import main
from placer.passes.cluster.reading.snapshot import Snapshot
from tests.cluster.api import Api, Refused
from tests.cluster.controllers import PODS, priority_class
from tests.cluster.deployed import Deployed
from tests.cluster.kubelets import Kubelets
from tests.cluster.passes import Passes, bound, gang, leaves, overfull
from tests.cluster.proxy import Proxy, Spoil
from tests.cluster.server import ControlPlane
from tests.cluster.things import live_pod, numa_topology
from tests.support import Document, node, pod_group


@pytest.fixture
def passes(cluster: Api, control_plane: ControlPlane, capsys: pytest.CaptureFixture[str]) -> Passes:
    return Passes(control_plane, capsys)


def events(cluster: Api, reason: str) -> list[str]:
    """Notes of Events of a reason, sorted."""
    found = cluster.items("/apis/events.k8s.io/v1/events")
    return sorted(each["note"] for each in found if each["reason"] == reason)


def versions(cluster: Api) -> dict[str, str]:
    """Pod to its resourceVersion: who writes to it changes that."""
    return {each["metadata"]["name"]: each["metadata"]["resourceVersion"] for each in cluster.items("/api/v1/pods")}


def condition(cluster: Api, pod: str) -> dict[str, str]:
    status = cluster.get(f"/api/v1/namespaces/default/pods/{pod}")["status"]
    (found,) = [each for each in status.get("conditions") or () if each["type"] == "PodScheduled"]
    return dict(found)


def test_an_empty_server_200_nodes_and_20_gangs(
    cluster: Api, deployed: Deployed, passes: Passes, control_plane: ControlPlane, tmp_path: Path
) -> None:
    """With the rights that are shipped all is bound as ``solve`` says; a second pass finds nothing to do."""
    deployed.apply("crds", "base")
    passes.config = deployed.kubeconfig("placer")
    cluster.create(*leaves(10, 20, gpu=8))
    cluster.create(*(each for number in range(20) for each in gang(f"g{number:02d}", 10, tier=1, gpu=8)))
    file = tmp_path / "before.json.gz"
    assert main(["snapshot", "--kubeconfig", str(control_plane.kubeconfig()), "-o", str(file)]) == 0
    decided = placer.solve(placer.read(file), method="greedy").placement
    assert decided is not None
    assert len(decided.bindings) == 200  # 200 nodes of 8, 200 pods of 8, ten to a gang, twenty nodes to a leaf

    told = passes()
    assert (told["planned"], told["bound"], told["gangs"]["bound"]) == (200, 200, 20)
    assert told["told"] == {"conditions": 0, "events": 20, "groups": 20, "troubles": []}
    assert bound(cluster) == {each.pod.name: each.node for each in decided.bindings}
    assert overfull(cluster) == []
    for number in range(20):
        homes = {where[:4] for pod, where in bound(cluster).items() if pod.startswith(f"g{number:02d}-")}
        assert len(homes) == 1, homes
    before = versions(cluster)

    again = passes()
    assert (again["pending"], again["planned"], again["bound"]) == (0, 0, 0)
    assert again["told"] == {"conditions": 0, "events": 0, "groups": 0, "troubles": []}
    assert versions(cluster) == before


@pytest.fixture
def small(cluster: Api, install: Callable[[str], None]) -> Api:
    """Two nodes of 8 cpu; a gang that fits, one that does not, a lone pod, and one of another scheduler."""
    install("volcano")
    cluster.create(node("n1"), node("n2"))
    cluster.create(*gang("fits", 2, cpu=4), *gang("large", 3, cpu=8), live_pod("lone", cpu=2))
    cluster.create(live_pod("other", scheduler="default-scheduler", cpu=1))
    return cluster


def test_what_waits_says_why_and_once(small: Api, passes: Passes) -> None:
    told = passes()
    assert (told["bound"], told["gangs"]["waiting"]) == (3, 1)
    assert set(bound(small)) == {"fits-0", "fits-1", "lone"}
    found = condition(small, "large-0")
    assert (found["status"], found["reason"]) == ("False", "Unschedulable")
    assert found["message"].startswith("InsufficientResources: ")
    assert told["told"]["conditions"] == 3
    assert condition(small, "lone")["status"] == "True"
    assert events(small, "FailedScheduling") == [found["message"]]
    assert "conditions" not in small.get("/api/v1/namespaces/default/pods/other")["status"]

    before = versions(small)
    passes()  # what is bound by now changes the numbers of the message, once
    third = passes()
    assert third["told"] == {"conditions": 0, "events": 0, "groups": 0, "troubles": []}
    assert condition(small, "large-0")["lastTransitionTime"] == found["lastTransitionTime"]
    assert versions(small)["lone"] == before["lone"]


def test_pods_and_groups_are_told_what_became_of_them(small: Api, passes: Passes) -> None:
    passes()
    where = bound(small)
    assert events(small, "Scheduled") == [
        f"Successfully assigned 2 pods to {len({where['fits-0'], where['fits-1']})} "
        + ("nodes" if where["fits-0"] != where["fits-1"] else "node"),
        f"Successfully assigned default/lone to {where['lone']}",
    ]
    path = "/apis/scheduling.volcano.sh/v1beta1/namespaces/default/podgroups"
    status = small.get(f"{path}/fits")["status"]
    assert status["phase"] == "Running"
    assert [(each["type"], each["status"]) for each in status["conditions"]] == [("Scheduled", "True")]
    status = small.get(f"{path}/large")["status"]
    assert status["phase"] == "Pending"
    assert [(each["type"], each["reason"]) for each in status["conditions"]] == [
        ("Unschedulable", "NotEnoughResources")
    ]


def test_nothing_is_told_where_nothing_may_be(small: Api, passes: Passes) -> None:
    told = passes("--no-events", "--no-conditions", "--no-group-status")
    assert told["bound"] == 3
    assert events(small, "Scheduled") == []
    assert "conditions" not in small.get("/api/v1/namespaces/default/pods/large-0")["status"]
    path = "/apis/scheduling.volcano.sh/v1beta1/namespaces/default/podgroups/fits"
    assert not small.get(path).get("status", {}).get("conditions")


@pytest.mark.parametrize("kind", ["client", "server"])
def test_a_dry_run_decides_and_changes_nothing(small: Api, passes: Passes, kind: str) -> None:
    before = versions(small)
    told = passes(f"--dry-run={kind}")
    assert (told["planned"], told["bound"]) == (3, 0 if kind == "client" else 3)
    assert set(told["bindings"]) == {"default/fits-0", "default/fits-1", "default/lone"}
    assert bound(small) == {}
    assert versions(small) == before
    assert events(small, "Scheduled") == []


def decided(snapshot: Path | str) -> dict[str, str]:
    """What ``solve`` says of a file: pod to node."""
    placement = placer.solve(placer.read(snapshot), method="greedy").placement
    assert placement is not None
    return {str(each.pod): each.node for each in placement.bindings}


def rejected() -> Document:
    """What the kubelet of a node says of a pod that it does not take, just now."""
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return {"status": {"phase": "Failed", "reason": "OutOfcpu", "startTime": now}}


def test_what_earlier_passes_left_behind_is_in_every_snapshot(
    cluster: Api,
    install: Callable[[str], None],
    passes: Passes,
    proxy: Proxy,
    control_plane: ControlPlane,
    tmp_path: Path,
) -> None:
    """One node cools down, and a gang of two lacks its second pod, which comes before a lone pod of higher priority: a
    dry run, its saved snapshot and ``placer snapshot`` with ``solve`` say so, and say otherwise if nothing cools down.
    """
    install("volcano")
    cluster.create(node("n1"), node("n2"), node("n3"), *gang("half", 2, cpu=8), live_pod("lost", cpu=1))
    proxy.rule = lambda _method, path, _times: Spoil(403) if path.endswith("/half-1/binding") else None
    passes(code=6)
    proxy.rule = lambda *_: None
    there = bound(cluster)
    cooling, (free,) = there["lost"], {"n1", "n2", "n3"} - {there["half-0"], there["lost"]}
    cluster.patch(f"{PODS}/lost/status", rejected())
    cluster.create(priority_class("high", 9))
    cluster.create(live_pod("urgent", cpu=8, spec={"priority": 9, "priorityClassName": "high"}))

    told = passes("--dry-run", "--save", str(tmp_path))
    assert (told["coolingNodes"], told["unfinished"]) == ([cooling], ["PodGroup default/half"])
    assert told["bindings"] == {"default/half-1": free}
    assert decided(told["saved"][0]) == told["bindings"]

    def snapshot(*flags: str) -> dict[str, str]:
        file = tmp_path / "snapshot.json.gz"
        ours = ["--scheduler-name", "placer", *flags]  # as the pass has it; the default is any scheduler's
        assert main(["snapshot", "--kubeconfig", str(control_plane.kubeconfig()), "-o", str(file), *ours]) == 0
        return decided(file)

    assert snapshot() == told["bindings"]
    told = passes("--dry-run", "--cool-down", "0")
    assert set(told["bindings"].values()) == {cooling, free}
    assert snapshot("--cool-down", "0") == told["bindings"]


def test_findings_are_told_and_with_strict_nothing_is_bound(small: Api, passes: Passes) -> None:
    small.create(pod_group("lost", minMember=1, queue="nowhere"))
    told = passes("--strict", code=3)
    assert "UnknownReference Queue nowhere, named by PodGroup default/lost" in told["error"]
    assert bound(small) == {}
    told = passes()
    assert (told["findings"], told["bound"]) == ({"UnknownReference": 1}, 3)


def test_pods_of_another_name_are_those_of_that_name(small: Api, passes: Passes) -> None:
    told = passes("--scheduler-name", "default-scheduler")
    assert (told["pending"], told["bound"]) == (1, 1)
    assert set(bound(small)) == {"other"}
    assert told["setAside"] == {"otherSchedulers": {"placer": 6}, "gated": 0, "kindsNotRead": {}}


def test_all_names_are_looked_at_and_not_bound(small: Api, passes: Passes) -> None:
    told = passes("--scheduler-name", "*", "--dry-run")
    assert (told["pending"], told["placed"], told["setAside"]["otherSchedulers"]) == (7, 4, {})
    assert bound(small) == {}


def test_pods_that_kubelets_align_are_bound_one_by_one(
    cluster: Api, install: Callable[[str], None], passes: Passes
) -> None:
    """Both at once one would be refused (test_plan_live); each after the kubelet's answer both run."""
    install("noderesourcetopology")
    kubelets = Kubelets(cluster)
    zones = ({"cpu": "4", "memory": "8Gi"}, {"cpu": "2", "memory": "8Gi"})
    kubelets.add(node("n1", cpu=6), topologies=[numa_topology("n1", *zones)])
    cluster.create(live_pod("small", cpu=2, memory="1Gi", guaranteed=True))
    cluster.create(live_pod("large", cpu=4, memory="1Gi", guaranteed=True))
    with kubelets.running(every=0.01):
        told = passes("--settle", "20")
    assert (told["bound"], told["rejected"]) == (2, {})
    assert kubelets.rejected == {}
    found = {each["metadata"]["name"]: each for each in cluster.items("/api/v1/pods")}
    assert {name: each["status"]["phase"] for name, each in found.items()} == {"small": "Running", "large": "Running"}
    zone = "placer.dev/numa-zones"
    assert {name: each["metadata"]["annotations"][zone] for name, each in found.items()} == {
        "large": "node-0",
        "small": "node-1",
    }


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--every", "0.2s"], '--every: found "0.2s", expected a duration of 1s to 1h, such as 30s or 1m30s'),
        (["--metrics-bind-address", ":8080"], "--metrics-bind-address: found no --every, expected one"),
        (["--report-bind-address", ":8090"], "--report-bind-address: found no --every, expected one"),
        (
            ["--enforce", "gates", "--max-evictions-per-hour", "5"],
            "--enforce: found gates with --max-evictions-per-hour 5, expected one of the two",
        ),
        (
            ["--bind-workers", "0", "--settle", "-1"],
            "--bind-workers: found 0, expected a whole number, 1 to 256; --settle: found -1.0",
        ),
        (["--save", "/nowhere"], "--save: found no folder /nowhere"),
        (["--save-keep", "0"], "--save-keep: found 0, expected a whole number, at least 1"),
        (["--save-keep", "1"], "--save-keep: found no --save"),
    ],
)
def test_what_is_not_there_or_makes_no_sense_is_refused_at_once(
    flags: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", "--kubeconfig", "/nowhere", *flags]) == 2
    assert words in capsys.readouterr().err


def test_what_cannot_be_saved_is_told_and_stops_nothing(
    small: Api, passes: Passes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Snapshot, "write", full)
    told = passes("--save", str(tmp_path))
    assert (told["bound"], told["saved"]) == (3, [])
    assert told["notSaved"] == f"{tmp_path}: cannot be written: No space left on device"
    assert passes.err == f"placer: warning: the pass was not saved: {told['notSaved']}\n"
    assert len(bound(small)) == 3
    assert (len(told["instance"]), told["version"]) == (64, placer.__version__)
    assert datetime.fromisoformat(told["time"]) <= datetime.now(UTC)


def test_a_namespace_that_is_being_deleted_gets_nothing(cluster: Api, passes: Passes) -> None:
    """The server refuses a binding in it; a pass does not try one, says why, and binds what is elsewhere."""
    home = "/api/v1/namespaces/that-ends"
    cluster.create(node("n1"), live_pod("here"), live_pod("there", namespace="that-ends"))
    cluster.delete(home)
    try:
        told = passes()
        assert (told["pending"], told["bound"]) == (2, 1)
        (said,) = cluster.get(f"{home}/pods/there")["status"]["conditions"]
        assert said["message"].endswith("metadata.namespace: that-ends, which is being deleted")
        assert bound(cluster) == {"here": "n1"}
        with pytest.raises(Refused, match="being terminated"):
            cluster.call(
                "POST",
                f"{home}/pods/there/binding",
                {"metadata": {"name": "there"}, "target": {"kind": "Node", "name": "n1"}},
            )
    finally:
        cluster.wipe()
        cluster.call("PUT", f"{home}/finalize", {"metadata": {"name": "that-ends"}, "spec": {"finalizers": []}})
