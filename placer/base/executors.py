"""Where work is carried out: one ``concurrent.futures.Executor``, chosen by name.

``local``: processes on this machine, each a fresh interpreter; ``inline``: a call runs when it is submitted;
``dask:ADDRESS``: the workers of a Dask cluster, by the address of its scheduler; ``package.module:function``: of the
number of workers, returns an Executor. Whatever is submitted must be importable and picklable. On a cluster every
worker needs placer in the same version, and files under the same paths.
"""

from __future__ import annotations

import importlib
import multiprocessing
import os
import signal
import threading
import weakref
from collections.abc import Callable
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from multiprocessing import resource_tracker
from multiprocessing.context import SpawnContext, SpawnProcess
from types import TracebackType
from typing import Any, ParamSpec, TypeVar

from placer.base.errors import UsageError
from placer.base.extras import how_to_install

P = ParamSpec("P")
T = TypeVar("T")

#: The names that need no function of the user's.
EXECUTORS = ("local", "inline", "dask:ADDRESS")

#: Seconds within which a Dask scheduler answers and has a worker.
DASK_PATIENCE = 10


def open_executor(name: str, workers: int) -> Executor:
    """Open an executor, to be used as a context manager.

    Leaving the context waits for nothing: calls that have not begun are cancelled, and the processes of ``local`` are
    killed. They end too when this process or its process group is killed, and leave Ctrl-C to it. A call on a Dask
    worker runs there to its end.

    Parameters
    ----------
    name
        ``local``, ``inline``, ``dask:ADDRESS`` or ``package.module:function``.
    workers
        How many calls may run at once, at least 1; ``inline`` always runs one, a Dask cluster one per thread of its
        workers.

    Raises
    ------
    UsageError
        No such name, function or number, or the function fails or returns something else; no Dask scheduler or worker.

    Notes
    -----
    ``local`` starts processes as ``multiprocessing`` does with *spawn*: a script that uses it must keep its own calls
    under ``if __name__ == "__main__"``.

    Examples
    --------
    >>> with open_executor("inline", 1) as executor:
    ...     executor.submit(pow, 2, 5).result()
    32
    """
    if workers < 1:
        raise UsageError(f"workers: found {workers}, expected at least 1")
    if name == "local":
        return _Local(workers)
    if name == "inline":
        return _Inline()
    if name.startswith("dask:"):
        client = _connected(name)
        return _Borrowed(client.get_executor(), client.close)
    return _Borrowed(_made(name, workers))


class _Process(SpawnProcess):
    """A process that Ctrl-C does not reach before it is a worker: until then it would end with a traceback."""

    def start(self) -> None:
        resource_tracker.ensure_running()  # else it would be started in between, and let the signal through
        before = signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGINT,))  # a child has its parent's mask
        try:
            super().start()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)


class _Starting(SpawnContext):
    def __init__(self) -> None:
        super().__init__()
        self.made: list[SpawnProcess] = []

    def Process(self, *args: Any, **kwargs: Any) -> SpawnProcess:  # type: ignore[override]  # noqa: N802
        """Make a process; ``multiprocessing`` has a class here, which is called just so."""
        self.made.append(_Process(*args, **kwargs))
        return self.made[-1]


class _Local(ProcessPoolExecutor):
    def __init__(self, workers: int) -> None:
        self._context = _Starting()
        super().__init__(workers, mp_context=self._context, initializer=_prepare)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        started = [process for process in self._context.made if process.pid is not None]
        for process in started:
            process.kill()
        self.shutdown(cancel_futures=True)  # its thread closes a pipe, to which the interpreter would write at exit
        for process in started:
            process.join()


def _prepare() -> None:
    """Make this a worker: Ctrl-C is for the parent to heed, and when the parent is gone, so is this process.

    Nothing else would tell: the pool's workers hold the writing ends of the pipes they read from.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, (signal.SIGINT,))
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


class _Inline(Executor):
    def __init__(self) -> None:
        self._closed = False

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        if self._closed:
            raise RuntimeError("cannot schedule new futures after shutdown")
        future: Future[T] = Future()
        future.set_running_or_notify_cancel()
        try:
            future.set_result(fn(*args, **kwargs))
        except Exception as error:
            future.set_exception(error)
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:  # noqa: ARG002  # all are done
        self._closed = True


class _Borrowed(Executor):
    """An executor of another library. It is asked for ``submit`` and ``shutdown(wait=...)`` alone: not all of them can
    cancel on shutdown (Dask's cannot), so what was not waited for is cancelled one by one.
    """

    def __init__(self, inner: Executor, close: Callable[[], None] = lambda: None) -> None:
        self._inner, self._close = inner, close
        self._futures: weakref.WeakSet[Future[Any]] = weakref.WeakSet()

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        future = self._inner.submit(fn, *args, **kwargs)
        self._futures.add(future)
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        if cancel_futures:
            for future in list(self._futures):
                future.cancel()
        self._inner.shutdown(wait=wait)
        self._close()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.shutdown(wait=False, cancel_futures=True)


def _connected(name: str) -> Any:
    try:
        from distributed import Client
    except ImportError as error:
        raise UsageError(f"executor {name}: needs Dask ({error}): {how_to_install('dask')}") from error
    client, address = None, name.removeprefix("dask:")
    if not address:  # with none a client would start a cluster of its own
        raise UsageError(f"executor {name}: found no address of a scheduler, expected dask:tcp://HOST:PORT")
    try:
        client = Client(address, timeout=DASK_PATIENCE, set_as_default=False)
        client.wait_for_workers(1, timeout=DASK_PATIENCE)
    except Exception as error:  # a wrong address is a ValueError, an OSError, a TypeError ...
        if client is not None:
            client.close()
        raise UsageError(f"executor {name}: cannot be opened: {type(error).__name__}: {error}") from error
    return client


def _made(name: str, workers: int) -> Executor:
    module, _, function = name.partition(":")
    if not module or not function:
        raise UsageError(f"executor: found {name!r}, expected one of {', '.join(EXECUTORS)}, package.module:function")
    try:
        made = getattr(importlib.import_module(module), function)(workers)
    except Exception as error:  # the user's code, which may raise anything
        raise UsageError(f"executor {name}: cannot be opened: {type(error).__name__}: {error}") from error
    if not isinstance(made, Executor):
        raise UsageError(f"executor {name}: found {type(made).__name__}, expected a concurrent.futures.Executor")
    return made
