"""The same sweep on a Dask cluster: a scheduler and two workers, started as Dask's documentation says."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from placer.base.errors import UsageError
from placer.base.executors import open_executor
from placer.base.extras import how_to_install
from placer.cli import main
from placer.lab.sweep.records import RunRecord
from placer.lab.sweep.runs import plan, sweep
from tests.executing import process_id, waits_for_a_file
from tests.support import node, pod
from tests.tools import require_package
from tests.waiting import wait_until

ROOT = Path(__file__).parents[3]


class Cluster:
    """A scheduler and workers of one thread, in a folder of their own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.processes: list[subprocess.Popen[bytes]] = []
        self.address = ""

    def start(self, *command: str) -> subprocess.Popen[bytes]:
        """``dask ...``, with what it says in a file."""
        with (self.folder / f"{len(self.processes)}.log").open("wb") as log:
            started = subprocess.Popen(
                [sys.executable, "-m", "dask", *command, "--no-dashboard"],
                cwd=self.folder,
                stdout=log,
                stderr=log,
                env={**os.environ, "PYTHONPATH": str(ROOT)},
            )
        self.processes.append(started)
        return started

    def scheduler(self) -> None:
        """``dask scheduler``, on a free port of this machine."""
        known = self.folder / "scheduler.json"
        self.start("scheduler", "--host", "127.0.0.1", "--port", "0", "--scheduler-file", str(known))
        wait_until(lambda: known.exists() and known.read_text().endswith("}"))
        self.address = json.loads(known.read_text())["address"]

    def worker(self) -> subprocess.Popen[bytes]:
        """``dask worker ADDRESS``."""
        return self.start("worker", self.address, "--nthreads", "1", "--local-directory", str(self.folder))

    def stop(self) -> None:
        """Workers first: without their scheduler they would wait for it."""
        for process in reversed(self.processes):
            process.terminate()
            process.wait()


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A scheduler with two workers."""
    require_package("distributed", how_to_install("dask"))
    found = Cluster(tmp_path_factory.mktemp("dask"))
    try:
        found.scheduler()
        for _ in range(2):
            found.worker()
        with open_executor(f"dask:{found.address}", 2) as executor:
            wait_until(lambda: len({executor.submit(process_id).result() for _ in range(4)}) == 2)
        yield found
    finally:
        found.stop()


@pytest.fixture
def instance(tmp_path: Path) -> Path:
    """One node of 8 cpu and three pods of 3: two fit."""
    path = tmp_path / "cluster.json"
    objects = [node("a"), *(pod(f"p{index}", cpu=3) for index in range(3))]
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))
    return path


def figures(lines: list[RunRecord]) -> list[dict[str, Any]]:
    """What does not depend on where a run was, sorted."""
    where = {"seconds", "seconds_to_first", "processor_seconds", "trace", "peak_memory_mib"}
    return sorted((line.model_dump(mode="json", exclude=where) for line in lines), key=str)


def test_two_calls_run_at_once_in_two_other_processes(cluster: Cluster, tmp_path: Path) -> None:
    with open_executor(f"dask:{cluster.address}", 2) as executor:
        paths = [tmp_path / name for name in "ab"]
        # Each ends only when the other one has begun.
        calls = [executor.submit(waits_for_a_file, str(mine), str(other)) for mine, other in (paths, paths[::-1])]
        found = {call.result(timeout=600) for call in calls}
    assert len(found) == 2
    assert os.getpid() not in found


@pytest.mark.exhaustive
def test_the_same_sweep_gives_the_same_lines(cluster: Cluster, instance: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(instance.parent)
    words = ["planted --nodes 4 --gpus 2 --pod-sizes 1", "cluster.json", "nowhere.json"]
    runs = plan(words, seeds=[1], policies=["volcano", "greedy"])
    there = list(sweep(runs, executor=f"dask:{cluster.address}", jobs=2))
    assert figures(there) == figures(list(sweep(runs)))
    assert sum(line.error is None for line in there) == 4
    assert all(20 < (line.peak_memory_mib or 0) < 2000 for line in there if line.error is None)


def test_as_users_type_it_and_resumed(cluster: Cluster, instance: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = instance.with_name("lines.jsonl")
    command = ["sweep", str(instance), "--policies", "as-is,greedy", "--jobs", "2", "--workers", "1", "-o", str(target)]
    there = [*command, "--executor", f"dask:{cluster.address}"]
    assert main([*there, "--seeds", "1-2"]) == 0
    assert capsys.readouterr().err == ""
    assert main([*there, "--seeds", "1-3"]) == 0
    assert "6 runs, 4 of them known from before" in capsys.readouterr().out
    lines = [json.loads(line) for line in target.read_text().splitlines()]
    assert sorted((line["policy"], line["seed"], line["placedPods"]) for line in lines) == [
        *(("as-is", seed, 0) for seed in (1, 2, 3)),
        *(("greedy", seed, 2) for seed in (1, 2, 3)),
    ]


@pytest.mark.exhaustive
def test_a_worker_that_is_killed_costs_no_line(cluster: Cluster, instance: Path) -> None:
    """Its run is given to another one."""
    more = cluster.worker()
    try:
        runs = plan([str(instance)], seeds=range(1, 7), policies=["greedy"])
        lines = sweep(runs, executor=f"dask:{cluster.address}", jobs=3)
        found = [next(lines)]
        more.kill()
        more.wait()
        found += lines
    finally:
        more.kill()
    assert sorted(line.seed for line in found) == [1, 2, 3, 4, 5, 6]
    assert {(line.placed_pods, line.error) for line in found} == {(2, None)}


def test_leaving_cancels_what_waits(cluster: Cluster, tmp_path: Path) -> None:
    """Of eight calls two go on; a scheduler hands each worker one more beforehand, which may begin yet."""
    go = tmp_path / "go"
    with open_executor(f"dask:{cluster.address}", 2) as executor:
        paths = [tmp_path / f"begun-{number}" for number in range(8)]
        calls = [executor.submit(waits_for_a_file, str(path), str(go)) for path in paths]
        wait_until(lambda: sum(path.exists() for path in paths) == 2)
    assert all(call.cancelled() for call in calls)
    go.touch()
    with open_executor(f"dask:{cluster.address}", 2) as executor:
        assert executor.submit(process_id).result(timeout=600)
    assert 2 <= sum(path.exists() for path in paths) <= 4


def test_an_error_there_is_raised_here(cluster: Cluster) -> None:
    with open_executor(f"dask:{cluster.address}", 1) as executor, pytest.raises(ModuleNotFoundError):
        executor.submit(__import__, "placer.nowhere").result(timeout=600)


def test_no_scheduler_or_no_worker_is_a_usage_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    require_package("distributed", how_to_install("dask"))
    monkeypatch.setattr("placer.base.executors.DASK_PATIENCE", 1)
    with pytest.raises(UsageError, match="executor dask:: found no address of a scheduler"):
        open_executor("dask:", 1)
    for address in ("tcp://127.0.0.1:1", "nonsense://x"):
        with pytest.raises(UsageError, match=f"executor dask:{address}: cannot be opened: "):
            open_executor(f"dask:{address}", 1)
    lonely = Cluster(tmp_path)
    try:
        lonely.scheduler()
        with pytest.raises(UsageError, match=r"cannot be opened: .*: Only 0/1 workers arrived"):
            open_executor(f"dask:{lonely.address}", 1)
    finally:
        lonely.stop()


def test_without_dask_it_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(UsageError, match=r"executor dask:tcp://h:1: needs Dask .*: pip install '\.\[dask\]'"):
        open_executor("dask:tcp://h:1", 1)
