"""What goes wrong in passes of a soak, drawn by a seed."""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from tests.cluster.proxy import Rule, Spoil

__all__ = [
    "FAULTS",
    "SERVER_ENDS",
    "SERVER_IS_KILLED",
    "STANDBY_IS_KILLED",
    "WATCHES_BREAK",
    "SoakFault",
    "drawn_faults",
]


@dataclass(frozen=True, slots=True)
class SoakFault:
    """What becomes of requests.

    Parameters
    ----------
    spoil
        What the proxy does to those it hits.
    share
        How many of those that it may hit.
    method, end
        How their methods and their paths begin and end.
    most
        How many it hits.
    lease
        Whether it hits the Lease, and nothing else.
    """

    spoil: Spoil
    share: float
    method: tuple[str, ...] = ("POST", "PATCH", "PUT", "DELETE")
    end: str = ""
    most: int = 1_000_000
    lease: bool = False

    def rule(self, seed: str) -> Rule:
        """What the proxy goes by."""
        draw, lock, left = random.Random(seed), threading.Lock(), [self.most]

        def rule(method: str, path: str, _times: int) -> Spoil | None:
            is_lease = "/leases" in path
            if is_lease is not self.lease or method not in self.method or not path.endswith(self.end):
                return None
            with lock:
                hits = left[0] > 0 and draw.random() < self.share
                left[0] -= hits
            return self.spoil if hits else None

        return rule


_ANY = ("GET", "POST", "PATCH", "PUT", "DELETE")
WATCHES_BREAK, SERVER_ENDS, SERVER_IS_KILLED = "watches break", "the server ends", "the server is killed"
STANDBY_IS_KILLED = "the standby is killed"

FAULTS: Mapping[str, SoakFault | None] = {
    "slow": SoakFault(Spoil(delay=0.3), 0.5, _ANY),
    "dropped": SoakFault(Spoil(0), 0.3),
    "lost": SoakFault(Spoil(0, forwarded=True), 0.3),
    "late": SoakFault(Spoil(late=1.2), 0.3, ("POST",), "/binding"),
    "refused": SoakFault(Spoil(403), 0.3, ("POST",), "/binding"),
    "busy": SoakFault(Spoil(429, headers=(("Retry-After", "1"),)), 0.5, _ANY),
    "unavailable": SoakFault(Spoil(503), 1.0, _ANY),
    "stalled": SoakFault(Spoil(stalls_after=40), 0.5, ("POST",), "/binding", most=4),
    "silent": SoakFault(Spoil(stalls_after=0), 0.5, ("GET",), "?watch", most=2),
    "no renewal": SoakFault(Spoil(503), 1.0, _ANY, lease=True),
    WATCHES_BREAK: None,
    SERVER_ENDS: None,
    SERVER_IS_KILLED: None,
    STANDBY_IS_KILLED: None,
}


def drawn_faults(seed: int) -> Iterator[str]:
    """Faults without end: each comes once before any comes again."""
    draw = random.Random(f"{seed} faults")
    while True:
        names = list(FAULTS)
        draw.shuffle(names)
        yield from names
