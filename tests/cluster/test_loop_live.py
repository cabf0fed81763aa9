"""Pass after pass in one process, on a real API server: what begins one, what is kept, who makes them, how it ends."""

from __future__ import annotations

import gc
import signal
import sys
import weakref
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from placer.answers.solving import solve
from placer.base.errors import UsageError
from placer.cli import running as running_command
from placer.cli.signals import StopSignals
from placer.passes.cluster.writing.lease import LeaseOptions
from placer.passes.scheduling_pass import Pass, PassOptions
from placer.problem import Instance
from placer.problem.result import Result, Verdict
from tests.cluster.api import Api
from tests.cluster.conftest import POLICIES
from tests.cluster.faults import PODS
from tests.cluster.kubelets import Admission, Impatient
from tests.cluster.loops import looping
from tests.cluster.passes import bound, gang, leaves
from tests.cluster.proxy import Proxy, Spoil
from tests.cluster.server import ControlPlane
from tests.cluster.things import live_pod, of_a_job
from tests.support import node, policy
from tests.waiting import interrupt, started, wait_until

LEASE = "/apis/coordination.k8s.io/v1/namespaces/placer/leases/placer"
#: So long that whatever happens within a test is not by the clock.
NEVER = 3600.0


@pytest.fixture
def volcano(cluster: Api, install: Callable[[str], None]) -> None:
    install("volcano")


def test_what_comes_is_bound_without_waiting_for_the_period(
    cluster: Api, control_plane: ControlPlane, volcano: None
) -> None:
    cluster.create(*leaves(2, 2, cpu=4))
    with looping(control_plane, NEVER) as loop:
        assert loop.bound == 0
        cluster.create(*gang("train", 4, tier=1, cpu=2))
        wait_until(lambda: loop.bound == 4, "its binding")
        assert len({name.rpartition("-")[0] for name in bound(cluster).values()}) == 1  # one leaf
        cluster.create(live_pod("whole", cpu=4), live_pod("other", cpu=4), live_pod("waits", cpu=4))
        wait_until(lambda: loop.bound == 6, "the binding of two")
        cluster.delete(f"/api/v1/namespaces/default/pods/{next(iter({'whole', 'other'} & bound(cluster).keys()))}")
        wait_until(lambda: loop.bound == 7, "the binding of the third, in the room of one that is gone")
        assert not any(each.report.error or each.report.troubles for each in loop.passes)
    assert "holderIdentity" not in cluster.get(LEASE)["spec"]


@pytest.mark.parametrize(
    ("flags", "code", "said"),
    [
        ((), 3, ""),  # of the last pass, which found two Policies
        (("--leader-elect-resource-namespace", "nowhere"), 6, "placer: no pass is made: "),
    ],
)
def test_the_command_ends_as_its_last_pass_did(
    flags: tuple[str, ...], code: int, said: str, cluster: Api, control_plane: ControlPlane, volcano: None
) -> None:
    cluster.install([POLICIES])
    other = policy() | {"metadata": {"name": "other"}}
    cluster.create(node("n1", cpu=8), policy(), other)
    command = [sys.executable, "-m", "placer", "run", "--kubeconfig", str(control_plane.kubeconfig()), "--every", "1h"]
    with started([*command, *flags]) as running:
        assert running.stdout is not None
        assert running.stderr is not None
        heard = (running.stderr if said else running.stdout).readline()
        interrupt(running, signal.SIGTERM)
    assert running.returncode == code
    assert heard.startswith(said or "{")


def test_what_it_does_itself_begins_no_pass(cluster: Api, control_plane: ControlPlane, volcano: None) -> None:
    """Nodes, conditions and Events that are written are changes, too."""
    cordoned = node("n2", cpu=1) | {"spec": {"unschedulable": True}}  # one write makes it schedulable
    cluster.create(node("n1", cpu=4), cordoned, *gang("a", 4), live_pod("waits", cpu=1))
    with looping(control_plane, NEVER) as loop:
        assert loop.bound == 4
        cluster.create(live_pod("theirs", scheduler="another", cpu=1))
        cluster.patch("/api/v1/nodes/n1", {"metadata": {"annotations": {"unread": "text"}}})
        cluster.patch("/api/v1/nodes/n2", {"spec": {"unschedulable": None}})  # the first that may help
        wait_until(lambda: loop.bound == 5, "the binding of what waits")
        assert [len(each.bound.plan.batches) for each in loop.passes] == [1, 1]


def test_where_nothing_has_changed_and_nothing_is_proved_the_search_goes_on(
    cluster: Api, control_plane: ControlPlane, volcano: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From the answer of the pass before, by another seed; where something has changed it begins anew."""
    calls: list[tuple[int, Result | None]] = []
    answers: list[Result] = []

    def unproved(instance: Instance, *, seed: int, earlier: Result | None, **options: Any) -> Result:
        calls.append((seed, earlier))
        answers.append(replace(solve(instance, seed=seed, **options), verdict=Verdict.FEASIBLE))
        return answers[-1]

    monkeypatch.setattr("placer.passes.scheduling_pass.solve", unproved)
    cluster.create(node("n1", cpu=4), live_pod("giant", cpu=5))
    with looping(control_plane, 0.5) as loop:
        loop.wait_for_passes(4)
        cluster.create(live_pod("huge", cpu=6))
        wait_until(lambda: len(answers[-1].reasons) == 2, "a pass with both")
    number = next(index for index, each in enumerate(answers) if len(each.reasons) == 2)
    told = [place for place, (_, earlier) in enumerate(calls) if earlier is not None]
    assert told  # the conditions that the first pass writes are a change
    assert all(calls[place] == (answers[place - 1].seed + 1, answers[place - 1]) for place in told)
    assert calls[0] == calls[number] == (0, None)


def test_what_a_kubelet_rejects_between_passes_is_known_though_the_pod_is_deleted_at_once(
    cluster: Api, control_plane: ControlPlane, volcano: None
) -> None:
    """The kubelet of n1 knows of less than it told, and answers when no pass waits for it any more."""
    kubelets = Impatient(cluster)
    kubelets.add(node("n1", cpu=8))
    kubelets.admissions["n1"] = Admission.of(node("n1", cpu=5))
    cluster.create(node("n2", cpu=7))
    with looping(control_plane, NEVER) as loop:
        cluster.create(of_a_job("first", cpu=8))
        wait_until(lambda: loop.bound == 1, "the binding to n1")
        kubelets.step()
        assert cluster.items(PODS) == []
        cluster.create(of_a_job("second", cpu=6))
        wait_until(lambda: loop.bound == 2, "the binding of the next one")
        assert bound(cluster) == {"second": "n2"}
        assert (read := loop.passes[-1].read) is not None
        assert read.cooling == {"n1"}


def test_one_beside_it_stands_by_and_takes_over(cluster: Api, control_plane: ControlPlane, volcano: None) -> None:
    cluster.create(node("n1", cpu=8))
    with looping(control_plane, NEVER) as first, looping(control_plane, NEVER) as second:
        holder = cluster.get(LEASE)["spec"]["holderIdentity"]
        assert (second.passes, set(second.reasons)) == ([], {f"{LeaseOptions()} is held by {holder}"})
        first.stop.set()
        second.wait_for_passes(1)
        cluster.create(live_pod("a", cpu=1))
        wait_until(lambda: second.bound == 1, "the binding by the second")
        assert cluster.get(LEASE)["spec"]["holderIdentity"] != holder


def test_a_pass_that_is_over_is_forgotten_though_nobody_looks_for_garbage(
    cluster: Api, control_plane: ControlPlane, volcano: None
) -> None:
    """What a pass makes refers to itself here and there; the command lets Python look for that very seldom."""
    cluster.create(node("n1", cpu=8))
    gc.disable()
    try:
        with looping(control_plane, 1.0) as loop:
            for number in range(3):
                cluster.create(live_pod(f"p-{number}", cpu=1))
                wait_until(lambda: loop.bound == number + 1, "its binding")  # noqa: B023 (called at once)
            kept = [weakref.ref(each.read.snapshot) for each in loop.passes if each.read is not None]
            loop.passes.clear()
            loop.wait_for_passes(1)
            loop.passes.clear()
            loop.wait_for_passes(1)
            assert [each for each in kept if each() is not None] == []
    finally:
        gc.enable()


def test_options_that_cannot_be_end_the_loop(cluster: Api, control_plane: ControlPlane, volcano: None) -> None:
    cluster.create(node("n1", cpu=8), live_pod("a", cpu=1))
    with pytest.raises(UsageError, match="workers: found 0"), looping(control_plane, 1.0, workers=0) as loop:
        loop.wait_for_passes(2)
    assert len(loop.passes) == 1


def test_a_server_that_is_away_ends_passes_and_not_the_loop(
    cluster: Api, control_plane: ControlPlane, volcano: None, proxy: Proxy
) -> None:
    cluster.create(node("n1", cpu=8))
    with looping(control_plane, 1.0, url=proxy.url) as loop:
        proxy.rule = lambda _method, path, _times: None if "leases" in path else Spoil(status=503)
        wait_until(lambda: loop.passes[-1].report.error is not None, "a pass that ends with an error")
        cluster.create(live_pod("a", cpu=1))
        proxy.rule = lambda *_: None
        wait_until(lambda: loop.bound == 1, "the binding when it is back")


def test_a_list_that_may_not_be_watched_is_taken_in_each_pass(
    cluster: Api, control_plane: ControlPlane, volcano: None, proxy: Proxy
) -> None:
    """As in a cluster whose account has the rights of the CronJob."""
    *_, spine = racks = list(leaves(2, 2, cpu=4))
    late = [each for each in racks if each["kind"] == "HyperNode" and each is not spine]
    cluster.create(*(each for each in racks if each not in late), *gang("train", 2, tier=1))
    proxy.rule = lambda _method, path, _times: Spoil(status=403) if path.endswith("hypernodes?watch") else None
    with looping(control_plane, 1.0, url=proxy.url) as loop:
        assert loop.bound == 0
        cluster.create(*late)
        wait_until(lambda: loop.bound == 2, "its binding")
        path = "/apis/topology.volcano.sh/v1alpha1/hypernodes"
        loop.wait_for_passes(len(loop.passes) + 2)  # by then the watch was refused
        (trouble,) = loop.passes[-1].report.troubles
        assert trouble.startswith(f"{path} was listed again: {path}: 403")


@pytest.mark.parametrize(
    ("codes", "code"),
    [([], 0), ([3], 3), ([3, None], 3), ([None], 0), ([3, 0], 0), (["6"], 6), (["6", "0"], 0), ([0, "6"], 0)],
)
def test_a_loop_ends_as_the_last_pass_that_was_not_broken_off(codes: list[int | str | None], code: int) -> None:
    """None: one that was; in quotes: nobody knows who makes passes, or another one does."""
    teller = running_command._LoopTeller(StopSignals(), lambda _: None, None)
    for each in codes:
        if isinstance(each, str):
            (teller.undecided if each == "6" else teller.standing_by)("why")
            continue
        done = Pass(PassOptions())
        teller.begun(done)
        done.report.interrupted, done.report.exit_code = each is None, each or 0
        teller.ended(done)
    assert teller.exit_code == code


@pytest.mark.parametrize("binds", [False, True])
def test_who_reads_the_line_of_a_pass_and_interrupts_at_once_gets_its_exit_code(
    binds: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    signals, done, told = StopSignals(), Pass(PassOptions()), []
    done.report.exit_code = 3
    teller = running_command._LoopTeller(signals, lambda _: None, None)

    def tell(each: Pass, _format: str | None) -> None:
        signals(signal.SIGTERM, None)
        told.append(each)

    monkeypatch.setattr(running_command, "_tell", tell)
    teller.begun(done)
    if binds:
        teller.binding()
        teller.ended(done)
        assert told == [done]  # what was bound is told, whoever interrupts
    else:
        with pytest.raises(KeyboardInterrupt):
            teller.ended(done)
    assert (teller.exit_code, signals.stop.is_set()) == (3, True)
