"""Two passes at once, and passes that are killed after any of their bindings; on a real API server, counted at a proxy.

After each: no pod is bound twice, no node is over-full, at most one gang is half-bound, and that one is completed by
the next pass before any other.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import random
import signal
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Callable
from multiprocessing.connection import wait as wait_for
from multiprocessing.context import ForkServerProcess
from pathlib import Path

import pytest

from placer.cli import main, pass_flags
from placer.passes.cluster import Client
from placer.passes.cluster.writing.lease import LeaseOptions
from placer.passes.cluster.writing.plan_execution import BindingOptions
from placer.passes.scheduling_pass import Pass, PassOptions, PassSession, run_pass
from tests.cluster.api import Api
from tests.cluster.faults import PODS
from tests.cluster.passes import Passes, bound, gang, overfull
from tests.cluster.proxy import Proxy, Spoil
from tests.cluster.server import ControlPlane
from tests.examples import seed_blocks
from tests.support import node

LEASE = "/apis/coordination.k8s.io/v1/namespaces/placer/leases/placer"
#: Looks at the record of another more often: what is seen to live is seen so sooner.
OFTEN = LeaseOptions(retry_period=0.2)
#: Of passes one after another a killed one's Lease is taken over after 1 s, and not after 15.
SHORT = LeaseOptions(duration=1, renew_deadline=600.0, retry_period=0.2)
#: Starts processes from one that has read our modules: a process each, without the second that reading takes.
PROCESSES = multiprocessing.get_context("forkserver")
PROCESSES.set_forkserver_preload(["placer.passes.scheduling_pass", __name__])


def placer_run(*flags: str) -> None:
    """``placer run`` in a process of its own, with a Lease that is soon taken over."""
    pass_flags.lease_of = lambda _options: SHORT
    with Path(os.devnull).open("w") as nowhere, contextlib.redirect_stdout(nowhere):
        sys.exit(main(["run", *flags]))


def incomplete(cluster: Api, size: int) -> set[str]:
    """Gangs of so many pods of which some are bound and not all."""
    found: dict[str, int] = defaultdict(int)
    for name in bound(cluster):
        found[name.rpartition("-")[0]] += 1
    return {name for name, count in found.items() if count < size}


def delayed(seed: int) -> Callable[[str, str, int], Spoil | None]:
    """Every request takes a time of its own."""
    drawn = random.Random(seed)

    def rule(_method: str, _path: str, _times: int) -> Spoil | None:
        time.sleep(drawn.choice((0.0, 0.0, 0.002, 0.02)))
        return None

    return rule


@pytest.mark.parametrize("seeds", seed_blocks(20, 5, quick=0))
def test_of_two_passes_at_once_one_decides(
    seeds: range, cluster: Api, passes: Passes, proxy: Proxy, control_plane: ControlPlane
) -> None:
    """With room for half of the gangs, so that two that decide would split some."""
    cluster.create(*(node(f"n{number}", cpu=8) for number in range(4)))
    config = str(control_plane.kubeconfig("passes", url=proxy.url))
    decided = []
    for seed in seeds:
        proxy.rule = delayed(seed)
        cluster.create(*(each for number in range(4) for each in gang(f"s{seed}g{number}", 4, cpu=4)))
        both = [
            Pass(PassOptions(method="greedy", seed=seed, lease=OFTEN, binding=BindingOptions(settle=0.2))) for _ in "ab"
        ]
        threads = [
            threading.Thread(target=run_pass, args=(PassSession(Client.connect(config), threading.Event()), each))
            for each in both
        ]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
        decided.append(sum(each.result is not None for each in both))
        for each in both:
            assert each.result is not None or each.leader not in (None, each.identity)
        assert incomplete(cluster, 4) == set(), seed
        assert set(proxy.bindings().values()) <= {1}, seed
        assert overfull(cluster) == []
        assert len(bound(cluster)) == 8, seed  # of four gangs of four two have room
        cluster.each(cluster.delete, [f"{PODS}/{each['metadata']['name']}" for each in cluster.items(PODS)])
    assert set(decided) <= {1, 2}  # two where the second began after the first had ended


@pytest.mark.exhaustive
@pytest.mark.parametrize(("gangs", "size"), [(2, 3), (20, 3)], ids=["2", "20"])
def test_placer_is_killed_after_each_of_its_bindings(
    cluster: Api, passes: Passes, proxy: Proxy, control_plane: ControlPlane, gangs: int, size: int
) -> None:
    """Every pass binds one pod and is killed; the next completes what it left before it begins another gang."""
    cluster.create(*(node(f"n{number:02d}", cpu=6) for number in range(gangs)))
    cluster.create(*(each for number in range(gangs) for each in gang(f"g{number:02d}", size, cpu=2)))
    config = str(control_plane.kubeconfig("passes", url=proxy.url))
    for number in range(1, gangs * size + 1):
        before, half = set(bound(cluster)), incomplete(cluster, size)
        if number > size:  # enough of them have waited for the Lease of one that was killed
            cluster.delete(LEASE)
        flags = ("--kubeconfig", config, "--method", "greedy", "--settle", "0", "--bind-workers", "1")
        running = PROCESSES.Process(target=placer_run, args=flags)
        proxy.rule = _killing(running)
        running.start()
        running.join()
        assert running.exitcode == (-signal.SIGKILL if number < gangs * size else 0)
        (new,) = set(bound(cluster)) - before
        assert not half or {new.rpartition("-")[0]} == half
        assert len(incomplete(cluster, size)) <= 1
        assert set(proxy.bindings().values()) == {1}
        assert overfull(cluster) == []
    assert len(bound(cluster)) == gangs * size
    proxy.rule = lambda *_: None
    told = passes()
    assert (told["unfinished"], told["pending"], told["incomplete"]) == ([], 0, [])


def _killing(running: ForkServerProcess) -> Callable[[str, str, int], Spoil | None]:
    """Kill a pass when its first binding is made and the second is about to be."""
    begun = threading.Event()

    def rule(method: str, path: str, _times: int) -> Spoil | None:
        if method != "POST" or not path.endswith("/binding"):
            return None
        if not begun.is_set():
            begun.set()
            return None
        running.kill()
        wait_for([running.sentinel])
        return Spoil(0)

    return rule
