"""SIGTERM at every stage of a pass: it ends with a report, and nothing is half-bound without one."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest

from placer.passes.cluster import plan_bindings
from tests.cluster.api import Api
from tests.cluster.faults import half_bound
from tests.cluster.passes import Passes, bound, gang
from tests.cluster.proxy import Proxy, Spoil
from tests.cluster.server import ControlPlane
from tests.cluster.things import live_pod
from tests.support import node
from tests.waiting import started


def stopped_at(pod: str, then: Spoil | None) -> Callable[[str, str, int], Spoil | None]:
    """SIGTERM comes with the binding of a pod; what happens to bindings from then on."""
    over = threading.Event()

    def rule(_method: str, path: str, _times: int) -> Spoil | None:
        if not path.endswith("/binding"):
            return None
        if path.endswith(f"/{pod}/binding") and not over.is_set():
            over.set()
            os.kill(os.getpid(), signal.SIGTERM)
        if over.is_set():
            time.sleep(0.3)  # the pass hears of it long before the gang is complete
        return then if over.is_set() else None

    return rule


def test_sigterm_completes_the_gang_under_way_and_begins_no_other(cluster: Api, passes: Passes, proxy: Proxy) -> None:
    cluster.create(*(node(f"n{number}", pods=100, cpu=100) for number in range(2)))
    cluster.create(*gang("a", 60), *gang("b", 60))
    proxy.rule = stopped_at("a-1", None)
    told = passes()
    assert told["interrupted"] is True
    assert told["left"] == {"PodGroup default/b": "the pass was to end"}
    assert {name[0] for name in bound(cluster)} == {"a"}
    assert (len(bound(cluster)), told["bound"]) == (60, 60)


def test_sigterm_while_the_server_hangs_ends_with_a_report(cluster: Api, passes: Passes, proxy: Proxy) -> None:
    """What was bound and what was not is told; nothing is waited for that does not come."""
    cluster.create(node("n1", cpu=100), *gang("train", 60))
    proxy.rule = stopped_at("train-30", Spoil(0, hang=60.0))
    told = passes(code=6)
    assert told["interrupted"] is True
    (found,) = half_bound(told).values()
    assert found["bound"] == len(bound(cluster)) == told["bound"]
    assert 0 < found["bound"] < 60


def test_sigterm_before_anything_is_bound_binds_nothing(
    cluster: Api, passes: Passes, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*arguments: Any) -> Any:
        os.kill(os.getpid(), signal.SIGTERM)
        return plan_bindings(*arguments)

    monkeypatch.setattr("placer.passes.scheduling_pass.plan_bindings", interrupted)
    cluster.create(node("n1"), *gang("train", 4))
    told = passes()
    assert (told["interrupted"], told["bound"]) == (True, 0)
    assert bound(cluster) == {}


def test_sigterm_after_its_line_leaves_a_pass_its_exit_code(cluster: Api, control_plane: ControlPlane) -> None:
    cluster.create(node("n1", cpu=8), live_pod("p", cpu=1))
    with started([sys.executable, "-m", "placer", "run", "--kubeconfig", str(control_plane.kubeconfig())]) as running:
        assert running.stdout is not None
        assert '"bound": 1' in running.stdout.readline()
        while running.poll() is None:  # at each moment of its end
            running.send_signal(signal.SIGTERM)
            with suppress(subprocess.TimeoutExpired):
                running.wait(0.01)
    assert running.returncode == 0
