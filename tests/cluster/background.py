"""What is played next to a test works in a thread of its own."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

__all__ = ["at_work"]


@contextmanager
def at_work(step: Callable[[], object], every: float) -> Iterator[None]:
    """Step again and again as long as the block lasts; what goes wrong there is raised at its end."""
    over, faults = threading.Event(), list[BaseException]()

    def work() -> None:
        try:
            while not over.wait(every):
                step()
        except BaseException as fault:
            faults.append(fault)

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
    if faults:
        raise faults[0]
