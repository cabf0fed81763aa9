"""Holes that an attack found at a real API server, as that attack used them; others are in ``test_tenants_live``."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

import pytest

from placer.kube.kinds import BY_ATTRIBUTE
from placer.passes.cluster import Client
from placer.passes.cluster.reading.client import Response
from placer.passes.cluster.reading.reflectors import Reflectors
from placer.passes.cluster.writing.plan_execution import BindingOptions
from placer.passes.metrics import LoopMetrics
from placer.passes.metrics_server import MetricsServer
from placer.passes.scheduling_pass import Pass, PassOptions, PassSession, run_pass
from placer.search import process
from placer.search.process import ProcessEnd, ProcessResult
from tests.cluster.api import Api
from tests.cluster.applied import Run
from tests.cluster.controllers import Controllers, owned, priority_class
from tests.cluster.kubelets import Admission, Kubelets, Rejection
from tests.cluster.loops import looping
from tests.cluster.passes import Passes, bound, gang
from tests.cluster.server import ControlPlane
from tests.cluster.test_metrics_live import told as metrics_of
from tests.cluster.things import live_pod
from tests.hostile import EVIL, anti_affinity, one_of_many_resources, pods_of_many_resources
from tests.support import node, pod_group, policy, queue
from tests.waiting import started, wait_until

pytestmark = pytest.mark.usefixtures("lasting_lease")

NEVER = 3600.0


def scheduled(cluster: Api, namespace: str, name: str) -> dict[str, Any]:
    """The condition that says why a pod waits."""
    status = cluster.get(f"/api/v1/namespaces/{namespace}/pods/{name}")["status"]
    found: dict[str, Any] = next(each for each in status["conditions"] if each["type"] == "PodScheduled")
    return found


def a_pass(control_plane: ControlPlane, settle: float = 0.1) -> Pass:
    """A pass in this process, of which more is known than its line tells."""
    done = Pass(PassOptions(method="greedy", binding=BindingOptions(settle=settle)))
    run_pass(PassSession(Client.connect(str(control_plane.kubeconfig("passes"))), threading.Event()), done)
    return done


def test_thousands_of_resources_and_terms_cost_their_own_namespace_alone(cluster: Api, passes: Passes) -> None:
    """Holes 1 and 2: thousands of resources that no node offers, and terms beyond a budget, of pods of a millicore."""
    asking = [*one_of_many_resources(3_000), *pods_of_many_resources(6)]
    for (amounts,) in ([each["resources"] for each in pod["spec"]["containers"]] for pod in asking):
        amounts["limits"] = amounts["requests"]
    cluster.create(*asking, *anti_affinity(30))
    cluster.create(*(node(f"n{at}", cpu=4) for at in range(3)), *gang("train", 4))
    cluster.create(*(live_pod(f"good-{at}", namespace="other", cpu=1) for at in range(4)))
    done = passes("--time-limit", "600", "--namespace-budget", "terms=500")
    assert {f"{name}-{at}" for name in ("train", "good") for at in range(4)} <= bound(cluster).keys()
    assert done["costs"][0]["namespace"] == EVIL
    spent = done["costs"][0]
    assert (spent["resources"] > 300, spent["terms"] > 600, spent["waiting"] > 4) == (True, True, True), spent
    assert done["findings"]["BudgetExceeded"] == 1
    assert "Unsupported" in scheduled(cluster, EVIL, "many")["message"]


def test_a_pod_group_is_no_more_urgent_than_its_pods(cluster: Api, run: Run) -> None:
    """Hole 3: nothing that runs goes for the class of a PodGroup, unless an operator lets the class decide."""
    running = [owned(f"eval-{at}", f"eval-{at}", "low", "n0", cpu=4) for at in range(2)]
    cluster.create(priority_class("low", 10), priority_class("high", 1_000))
    cluster.create(node("n0", cpu=8), node("n1", cpu=4), *running)
    cluster.create(*(pod_group(name, minMember=1, priorityClassName="high") for name in ("a-rush", "b-rush")))
    cluster.create(*(live_pod(f"{name}-0", group=name, cpu=4) for name in ("a-rush", "b-rush")))
    (made, _) = cluster.create(policy(disruption={"evict": "lower-priority"}), owned("fair", "fair", "low", cpu=4))
    with Controllers(cluster, []).running():
        done = run()
        assert done["disruption"] is None
        assert bound(cluster) == {"eval-0": "n0", "eval-1": "n0", "fair": "n1"}
        assert done["findings"]["PriorityAboveItsPods"] == 2
        cluster.patch(cluster.path(made), {"spec": {"groupPriority": "class"}})
        assert run()["disruption"]["evicted"]


def test_no_node_cools_down_for_a_pod_that_placer_did_not_bind(cluster: Api, passes: Passes) -> None:
    """Hole 9: its author names the node, and an honest kubelet rejects it."""
    status = {"phase": "Failed", "reason": "OutOfcpu", "startTime": f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"}
    aimed = live_pod("aimed", namespace=EVIL, node="n0", cpu=9, status=status)  # of two nodes it would back off
    cluster.create(*(node(f"n{at}", cpu=8) for at in range(2)), aimed)
    cluster.create(*(live_pod(f"good-{at}", cpu=8) for at in range(2)))
    assert passes()["coolingNodes"] == []
    assert set(bound(cluster).values()) == {"n0", "n1"}


def test_a_single_pod_of_another_namespace_is_bound_while_a_search_runs(
    cluster: Api, passes: Passes, control_plane: ControlPlane, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Hole 12: the search of a hard queue ends when the test has seen which pods are bound."""
    meanwhile: list[dict[str, str]] = []

    def run_apart(*_: Any) -> ProcessResult:
        for each in threading.enumerate():
            if each.name == "express lane":
                each.join()
        meanwhile.append(bound(cluster))
        return ProcessResult(ProcessEnd.KILLED)

    monkeypatch.setattr("placer.bounds.named_bounds", lambda *_: ())
    monkeypatch.setattr("placer.bounds.bounds_for", lambda *_: ())
    monkeypatch.setattr(process, "run_apart", run_apart)
    hard = [pod_group("hard", namespace=EVIL, minMember=2)]
    hard += [live_pod(f"hard-{at}", namespace=EVIL, group="hard", cpu=8) for at in range(2)]
    cluster.create(node("n1", cpu=8), *hard, live_pod("small", cpu=1))
    with looping(control_plane, NEVER, method="auto", time_limit=None, workers=1) as loop:
        loop.wait_for_passes(1)
    assert meanwhile[0] == {"small": "n1"}


def test_a_pod_of_long_labels_waits_alone(cluster: Api, passes: Passes) -> None:
    """Hole 14: a server takes a megabyte of labels, of which a pass keeps 64 KiB at most."""
    labels = {f"k{number}": "v" * 63 for number in range(12_000)}
    cluster.create(node("n1"), live_pod("long", namespace=EVIL, labels=labels, cpu=1), live_pod("good", cpu=1))
    done = passes()
    assert bound(cluster) == {"good": "n1"}
    assert done["unsupported"] == 1
    message = scheduled(cluster, EVIL, "long")["message"]
    assert message.startswith("Unsupported: ")
    assert "bytes of labels and annotations, of 65,536 at most" in message


def test_a_queue_takes_pods_of_the_namespaces_that_it_names_alone(cluster: Api, passes: Passes) -> None:
    """Hole 16: who comes first and names the queue of another team uses up nothing of it."""
    named = {"scheduling.volcano.sh/queue-name": "team"}
    made = queue("team", {"cpu": 2})
    made["metadata"]["annotations"] = {"placer.dev/namespaces": "team, team-b"}
    cluster.create(made, node("n1"), live_pod("thief", namespace=EVIL, annotations=named, cpu=1))
    assert passes()["bound"] == 0
    assert scheduled(cluster, EVIL, "thief")["message"].startswith("QueueClosed: annotation placer.dev/namespaces")
    cluster.create(*(live_pod(space, namespace=space, annotations=named, cpu=1) for space in ("team", "team-b")))
    assert passes()["bound"] == 2
    assert bound(cluster).keys() == {"team", "team-b"}


def test_a_condition_names_nothing_of_another_namespace(
    cluster: Api, passes: Passes, control_plane: ControlPlane
) -> None:
    """Hole 24: the reason for an operator names who has the room, and the tenant's condition and Event do not."""
    cluster.create(priority_class("high", 1_000), node("n1", cpu=8))
    secret = live_pod("tops-0", namespace="secret", group="tops", cpu=8, spec={"priorityClassName": "high"})
    cluster.create(pod_group("tops", namespace="secret", minMember=1), secret, live_pod("p", namespace=EVIL, cpu=2))
    result = a_pass(control_plane).result
    assert result is not None
    (reason,) = result.reasons.values()
    assert "secret/tops" in str(reason.message)
    notes = [each["note"] for each in cluster.items(f"/apis/events.k8s.io/v1/namespaces/{EVIL}/events")]
    condition = scheduled(cluster, EVIL, "p")["message"]
    assert condition.startswith("Outcompeted: ")
    assert len(notes) == 1
    for text in (condition, *notes):
        assert "other Namespace" in text
        assert "secret" not in text
        assert "tops" not in text


def test_a_loop_asks_for_failed_pods_once(cluster: Api, control_plane: ControlPlane) -> None:
    """Hole 26: later ones come by the watch of all pods."""
    client, asked = Client.connect(str(control_plane.kubeconfig("loop"))), list[str]()
    get = client.get

    def noted(path: str, parameters: Mapping[str, str] | None = None) -> Response:
        asked.append((parameters or {}).get("fieldSelector", ""))
        return get(path, parameters)

    client.get = noted  # type: ignore[method-assign]  # only this client notes what it asks
    cluster.create(node("n1", cpu=8))
    with looping(control_plane, NEVER, client=client) as loop:
        before = len(asked)
        assert sum(each.startswith("status.phase=Failed") for each in asked) == 1
        cluster.create(live_pod("p", cpu=1))
        loop.wait_for_passes(2)
        assert not [each for each in asked[before:] if each.startswith("status.phase=Failed")]


def test_a_kind_of_which_nothing_happens_is_heard_of(
    cluster: Api, control_plane: ControlPlane, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Hole 27: the server has nothing to say, and ends the watch whole."""
    monkeypatch.setattr("placer.passes.cluster.reading.reflectors._WINDOW", 1)
    lists = Reflectors(Client.connect(str(control_plane.kubeconfig("lists"))))
    path = "/api/v1/persistentvolumes"
    try:
        lists(path, BY_ATTRIBUTE["persistent_volumes"], "v1", lambda _: None)
        watch = lists._of[path].watch
        assert watch is not None
        first = watch.heard
        wait_until(lambda: watch.heard > first, "a word of the quiet kind")
        assert not lists.troubles
    finally:
        lists.close()


def test_sigterm_after_its_line_leaves_a_pass_its_exit_code(cluster: Api, control_plane: ControlPlane) -> None:
    """Hole 28."""
    cluster.create(node("n1", cpu=8), live_pod("p", cpu=1))
    with started([sys.executable, "-m", "placer", "run", "--kubeconfig", str(control_plane.kubeconfig())]) as running:
        assert running.stdout is not None
        assert '"bound": 1' in running.stdout.readline()
        while running.poll() is None:  # at each moment of its end
            running.send_signal(signal.SIGTERM)
            with suppress(subprocess.TimeoutExpired):
                running.wait(0.01)
    assert running.returncode == 0


class Talkative(Kubelets):
    """Kubelets that give their reasons at length."""

    def _report(self, pod: Mapping[str, Any], rejection: Rejection | None) -> None:
        long = Rejection("OutOf" + "x" * 12_000, rejection.message) if rejection is not None else None
        super()._report(pod, long)


def test_reasons_of_kubelets_are_short_and_the_server_knows_who_writes(
    cluster: Api, passes: Passes, control_plane: ControlPlane
) -> None:
    """Holes 21 and 25: in metrics, and as the manager of a condition, which a server reads from the User-Agent."""
    kubelets = Talkative(cluster)
    kubelets.add(node("n1", cpu=8))
    kubelets.admissions["n1"] = Admission.of(node("n1", cpu=5))
    cluster.create(live_pod("p", cpu=6), live_pod("giant", cpu=9))
    metrics = LoopMetrics("placer")
    with kubelets.running(every=0.01):
        metrics.ended(a_pass(control_plane, settle=300.0))
    with MetricsServer(("127.0.0.1", 0), metrics) as server:
        reasons = [labels for (name, *labels) in metrics_of(server) if name == "placer_kubelet_rejections_total"]
    assert reasons == [["OutOf" + "x" * 58]]
    managers = cluster.get("/api/v1/namespaces/default/pods/giant")["metadata"]["managedFields"]
    assert [each["manager"] for each in managers if each.get("subresource") == "status"] == ["placer"]
