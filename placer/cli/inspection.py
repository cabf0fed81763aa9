"""What a process that makes passes does, and what costs what: by SIGUSR2 on standard error, by HTTP, and in log lines.

The addresses, from the same machine alone, are those of Kubernetes: ``/configz``, ``/statusz``, ``/debug/flags/v``.
"""

from __future__ import annotations

import json
import platform
import resource
import signal
import sys
import threading
import time
import traceback
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from types import FrameType
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from placer.base.version import __version__
from placer.base.words import counted

if TYPE_CHECKING:
    from placer.passes.scheduling_pass import Pass
    from placer.problem import Instance

#: Levels of log lines, as components of Kubernetes have them: steps of passes, and every request.
_STEPS, _REQUESTS, _HIGHEST = 2, 6, 10
#: Most kinds and namespaces that are named, and calls of a stack.
_SHOWN, _CALLS = 10, 6
_MIB = 2**20


class Inspection:
    """Observes passes; ``configuration`` holds keys and values of the options that hold."""

    def __init__(self, configuration: Mapping[str, Any]) -> None:
        self._configuration = configuration
        self._began = datetime.now(UTC)
        self._level = 0
        self._now, self._since = "nothing yet", time.monotonic()
        self._pass: Pass | None = None  # that is under way
        self._last: list[str] = []  # of what the last pass cost; not the pass, which holds the cluster
        self._requests: dict[str, tuple[int, float]] = {}  # how many of a kind, and their seconds
        self.pages = {"/configz": self.configz, "/statusz": self.statusz, "/debug/flags/v": self.level}

    # ------------------------------------------------------------------------------------------------- what is heard

    def begun(self, done: Pass) -> None:
        """Note that a pass begins."""
        self._pass = done
        self._step(f"pass {done.identifier}")

    def phase(self, text: str) -> None:
        """Note what goes on."""
        self._step(text)

    def binding(self) -> None:
        """Note that a pass binds."""
        self._step("binding")

    def ended(self, done: Pass) -> None:
        """Note what a pass cost."""
        self._pass, self._last = None, list(_costs(done))
        self._step("between passes")

    def standing_by(self, why: str) -> None:
        """Note why no pass is made."""
        self._step(f"no pass: {why}")

    undecided = paused = standing_by

    def waiting(self) -> None:
        """Nothing is to be noted."""

    def request(self, method: str, url: str, status: int, seconds: float) -> None:
        """Note a request to the API server, as a client reports it."""
        parts = urlsplit(url)
        kind = f"{method} {_collection(parts.path)}"
        count, before = self._requests.get(kind, (0, 0.0))
        self._requests[kind] = count + 1, before + seconds
        if self._level >= _REQUESTS:
            _log(f"{method} {parts.path} {status or 'no answer'} in {1000 * seconds:.0f} ms")

    def _step(self, text: str) -> None:
        if text != self._now:
            self._now, self._since = text, time.monotonic()
            if self._level >= _STEPS:
                _log(text)

    # ------------------------------------------------------------------------------------------------- what is asked

    def configz(self, _body: str | None = None) -> str:
        """The options that hold."""
        return json.dumps({"placer": self._configuration}, indent=2) + "\n"

    def statusz(self, _body: str | None = None) -> str:
        """Which program this is, since when it runs, and what it does."""
        up = int((datetime.now(UTC) - self._began).total_seconds())
        lines = (
            "placer statusz",
            "This is for people: its form may change.",
            "",
            f"Started: {self._began:%Y-%m-%dT%H:%M:%SZ}",
            f"Up: {up // 3600} hr {up // 60 % 60:02} min {up % 60:02} sec",
            f"Python version: {platform.python_version()}",
            f"Binary version: {__version__}",
            f"Log level: {self._level}",
            f"Paths: {' '.join(sorted(self.pages))}",
            "",
            *self._lines(),
        )
        return "\n".join(lines) + "\n"

    def level(self, body: str | None = None) -> str:
        """The level of log lines, set where a number from 0 to 10 is given; another one is a :class:`ValueError`."""
        if body is None:
            return f"{self._level}\n"
        if not body.strip().isdecimal() or int(body) > _HIGHEST:
            raise ValueError(f"found {body.strip()!r}, expected a number from 0 to {_HIGHEST}")
        self._level = int(body)
        return f"the log level is {self._level} now\n"

    @contextmanager
    def heeded(self) -> Iterator[None]:
        """Heed SIGUSR2 as long as the block lasts."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = signal.signal(signal.SIGUSR2, self._dump)
        try:
            yield
        finally:
            signal.signal(signal.SIGUSR2, before)

    def _dump(self, _number: int, frame: FrameType | None) -> None:
        """Write what costs what in a thread of its own: a signal may come while standard error is being written."""
        calls = traceback.extract_stack(frame, _CALLS)[::-1]
        places = " < ".join(f"{each.name} ({each.filename.rpartition('/')[2]}:{each.lineno})" for each in calls)
        text = "\n".join(f"costs: {each}" for each in (*self._lines(), f"it is in: {places}"))
        threading.Thread(target=_log, args=(text,), name="costs", daemon=True).start()

    def _lines(self) -> Iterator[str]:
        used, children = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
        processor, searched = used.ru_utime + used.ru_stime, children.ru_utime + children.ru_stime
        yield (
            f"process: {used.ru_maxrss / 1024:,.0f} MiB at most, {threading.active_count()} threads, "
            f"{processor:,.1f} s of processor, {searched:,.1f} s in processes of searches"
        )
        yield f"now: {self._now}, for {time.monotonic() - self._since:.1f} s"
        yield from self._last if self._pass is None else (*_costs(self._pass), *_pods(self._pass))
        for kind, (count, seconds) in sorted(self._requests.items(), key=lambda each: -each[1][1])[:_SHOWN]:
            yield f"requests: {kind}: {count:,}, {seconds:,.1f} s"


def _costs(done: Pass) -> Iterator[str]:
    steps = ", ".join(f"{step} {seconds:.1f} s" for step, seconds in dict(done.seconds).items())
    yield f"pass: {done.began:%Y-%m-%dT%H:%M:%SZ}, {steps or 'no step'}"
    if done.read is not None:
        size = sum(map(len, done.read.snapshot.items))
        counts = Counter(done.read.snapshot.counts).most_common(_SHOWN)
        kinds = ", ".join(f"{kind} {count:,}" for kind, count in counts if count)
        yield f"snapshot: {size / _MIB:,.1f} MiB: {kinds or 'nothing'}"
    yield from () if done.result is None else _waiting(done.result.instance)


def _waiting(instance: Instance) -> Iterator[str]:
    held = Counter(key.namespace for key in instance.pods)
    for namespace, count in Counter(pod.key.namespace for pod in instance.pending).most_common(_SHOWN):
        yield f"namespace {namespace}: {count:,} pending of {counted(held[namespace], 'pod')} that are read"


def _pods(done: Pass) -> Iterator[str]:
    from placer.passes.cluster.reading.views import ObjectView, read_view

    sizes: dict[str, list[int]] = {}
    for item in done.read.snapshot.of_kind("Pod") if done.read is not None else ():
        sizes.setdefault(read_view(item, ObjectView).key.namespace, []).append(len(item))
    for namespace, each in sorted(sizes.items(), key=lambda entry: -sum(entry[1]))[:_SHOWN]:
        yield f"text of {namespace}: {counted(len(each), 'pod')}, {sum(each):,} bytes, the largest {max(each):,}"


def _collection(path: str) -> str:
    """A path without names of objects, so that there are few of them."""
    parts = path.strip("/").split("/")
    head = 2 if parts[0] == "api" else 3
    rest = parts[head:]
    if len(rest) > 2 and rest[0] == "namespaces":
        rest = rest[2:]
    return "/".join([*parts[:head], *rest[:1], *rest[2:]])


def _log(text: str) -> None:
    now = f"{datetime.now(UTC):%H:%M:%S.%f}"
    print("\n".join(f"placer: {now} {line}" for line in text.split("\n")), file=sys.stderr, flush=True)
