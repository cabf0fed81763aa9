"""What tests of executors and of the sweep name as ``tests.executing:...``, or run in another process."""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path

from tests.waiting import wait_until


def threads(workers: int) -> Executor:
    """An executor of the user's, as Dask's or Ray's would be."""
    return ThreadPoolExecutor(workers, thread_name_prefix="theirs")


def many_threads(workers: int) -> Executor:
    """One with room for more than it is asked for."""
    return ThreadPoolExecutor(8 * workers)


def breaks(workers: int) -> Executor:
    """One whose workers cannot begin."""
    return ThreadPoolExecutor(workers, initializer=divmod, initargs=(1, 0))


def elsewhere(workers: int) -> Executor:
    """One whose workers are in another folder, as on another machine."""
    context = multiprocessing.get_context("spawn")
    return ProcessPoolExecutor(workers, context, os.chdir, ("/",))


def refuses(workers: int) -> Executor:
    raise OSError(f"no scheduler for {workers} workers")


def no_executor(workers: int) -> int:
    return workers


def process_id() -> int:
    return os.getpid()


def is_interrupted() -> str:
    """What Ctrl-C does to each process of the terminal's group."""
    signal.raise_signal(signal.SIGINT)
    return "goes on"


def writes_its_id_and_sleeps(path: str) -> None:
    Path(path).write_text(str(os.getpid()))
    time.sleep(600)


def waits_for_a_file(mine: str, other: str) -> int:
    """Write one file, end when another one is there."""
    Path(mine).touch()
    wait_until(Path(other).exists)
    return os.getpid()


def writes_whether_ctrl_c_is_held_back(path: str) -> None:
    Path(path).write_text(str(signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, ())))
