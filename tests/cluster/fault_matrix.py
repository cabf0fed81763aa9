"""The matrix of faults: what may go wrong with each request of a pass, and with which exit code the pass ends then.

The tests of ``tests/cluster/test_faults_matrix_live.py`` try every cell against a real API server; ``models/faults.md``
sums them up (``python -m tests.cluster.fault_matrix`` prints each).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from tests.cluster.proxy import Rule, Spoil

__all__ = ["CELLS", "FAULTS", "PHASES", "Cell", "Fault", "Phase"]


@dataclass(frozen=True, slots=True)
class Phase:
    """Requests of one kind that a pass makes.

    Parameters
    ----------
    says
        What is asked, in a few words.
    method, begin, end
        Of the requests: their method, and how their paths begin and end.
    writes
        Whether something is changed by them.
    """

    says: str
    method: str
    begin: str
    end: str
    writes: bool = False

    def has(self, method: str, path: str) -> bool:
        """Whether a request is one of them."""
        return method == self.method and path.startswith(self.begin) and path.endswith(self.end)


@dataclass(frozen=True, slots=True)
class Fault:
    """What goes wrong.

    Parameters
    ----------
    says
        In a few words.
    spoil
        What the proxy does.
    writes_only
        Whether it makes a difference only where something is written.
    lasting
        Whether it is also tried on every request: after most others that is no different.
    """

    says: str
    spoil: Spoil
    writes_only: bool = False
    lasting: bool = False


_LEASES = "/apis/coordination.k8s.io/v1/namespaces/placer/leases"
_RECORDS = "/api/v1/namespaces/placer/configmaps"

PHASES: Mapping[str, Phase] = {
    "election": Phase("who holds the Lease", "GET", _LEASES, "/placer"),
    "acquiring": Phase("the Lease is made", "POST", _LEASES, "/leases", writes=True),
    "release": Phase("the Lease is renewed, and given back", "PUT", _LEASES, "/placer", writes=True),
    "record": Phase("gangs under way, as they are recorded", "GET", _RECORDS, "/placer-gangs"),
    "recording": Phase("gangs under way are recorded before the first binding", "POST", _RECORDS, "/configmaps", True),
    "recorded after": Phase("what is left of them is recorded", "PUT", _RECORDS, "/placer-gangs", writes=True),
    "readiness": Phase("whether the server is ready", "GET", "/readyz", "/readyz"),
    "discovery": Phase("which API groups there are", "GET", "/apis", "/apis"),
    "resources": Phase("which kinds a group has", "GET", "/apis/topology.volcano.sh/v1alpha1", "/v1alpha1"),
    "nodes": Phase("the list of nodes", "GET", "/api/v1/nodes", "/nodes"),
    "groups": Phase("the list of PodGroups", "GET", "/apis/scheduling.volcano.sh", "/podgroups"),
    "tree": Phase("the list of HyperNodes", "GET", "/apis/topology.volcano.sh", "/hypernodes"),
    "pods": Phase("lists of pods", "GET", "/api/v1/pods", "/pods"),
    "watch of pods": Phase("what happens to pods", "GET", "/api/v1/pods", "?watch"),
    "watch of nodes": Phase("what happens to nodes", "GET", "/api/v1/nodes", "?watch"),
    "current": Phase("what is current", "GET", "/api/v1/namespaces/placer-nothing", "/pods"),
    "binding": Phase("a pod gets its node", "POST", "/api/v1/namespaces", "/binding", writes=True),
    "condition": Phase("why a pod waits", "PATCH", "/api/v1/namespaces", "/status", writes=True),
    "status": Phase("phase and condition of a PodGroup", "PATCH", "/apis/scheduling.volcano.sh", "", writes=True),
    "Event": Phase("what became of a gang", "POST", "/apis/events.k8s.io", "/events", writes=True),
}

FAULTS: Mapping[str, Fault] = {
    "slow": Fault("comes half a second late", Spoil(delay=0.5)),
    "dropped": Fault("the connection breaks, the server never hears of it", Spoil(0), lasting=True),
    "lost": Fault("done, and the connection breaks before the answer", Spoil(0, forwarded=True)),
    "late": Fault(
        "reaches the server when nothing waits for it any more", Spoil(late=1.2), writes_only=True, lasting=True
    ),
    "stalled": Fault("the answer stops in the middle, the connection stays open", Spoil(stalls_after=40), lasting=True),
    "garbled": Fault("200, and no JSON behind it", Spoil(200, text='{"metadata": {"resou')),
    "401": Fault("who we are is not known, and nothing else is to be had of our credentials", Spoil(401)),
    "403": Fault("not allowed", Spoil(403), lasting=True),
    "404": Fault("not there", Spoil(404)),
    "409": Fault("a conflict", Spoil(409), writes_only=True),
    "410": Fault("forgotten", Spoil(410)),
    "422": Fault("not accepted", Spoil(422), writes_only=True),
    "429": Fault("no time, again after a second", Spoil(429, headers=(("Retry-After", "1"),))),
    "500": Fault("an error of the server", Spoil(500)),
    "503": Fault("not there for the moment", Spoil(503), lasting=True),
}


@dataclass(frozen=True, slots=True)
class Cell:
    """One fault of one kind of request: of the second such request only, or of each.

    The first binding of a pass, and with it its gang, has gone through then.
    """

    phase: str
    fault: str
    always: bool

    def __str__(self) -> str:
        return f"{self.phase}, {self.fault}, {'always' if self.always else 'once'}"

    @property
    def code(self) -> int:
        """Exit code of a pass to which it happens."""
        if self.phase == "binding":
            return _BINDING.get(self.fault, (0, 0))[self.always]
        fails = _FAIL.get(self.phase, frozenset())
        return 6 if self.fault in fails or (self.always and fails and self.fault not in _NO_ANSWER[self.phase]) else 0

    def rule(self) -> Rule:
        """What the proxy does."""
        phase, spoil, seen = PHASES[self.phase], FAULTS[self.fault].spoil, [0]
        first = 2 if self.phase == "binding" else 1

        def rule(method: str, path: str, _times: int) -> Spoil | None:
            if not phase.has(method, path):
                return None
            seen[0] += 1
            return spoil if self.always or seen[0] == first else None

        return rule


def _cells() -> Iterator[Cell]:
    for phase, about in PHASES.items():
        for fault, what in FAULTS.items():
            if about.writes or not what.writes_only:
                yield from (Cell(phase, fault, always) for always in ((False, True) if what.lasting else (False,)))


_SAYS_NO = frozenset(("garbled", "401", "403", "404"))
#: Requests without which there is no pass, to the faults after the first of which it ends; others are tried again.
_FAIL: Mapping[str, frozenset[str]] = {
    "election": frozenset(("401", "403", "410")),
    "acquiring": frozenset(("401", "403", "404", "410", "422")),
    "release": frozenset(("404",)),
    "record": frozenset(("garbled", "401", "403", "410")),
    "recording": frozenset(("401", "403", "404", "410", "422")),
    "readiness": frozenset(("401",)),
    "discovery": _SAYS_NO | {"410"},
    "resources": _SAYS_NO | {"410"},
    "nodes": _SAYS_NO,
    "groups": _SAYS_NO,
    "tree": _SAYS_NO,
    "pods": _SAYS_NO,
}
#: Where being slow or refused says nothing, however often.
_NO_ANSWER: Mapping[str, frozenset[str]] = {phase: frozenset() for phase in _FAIL} | {
    "readiness": frozenset(("403",)),
    "acquiring": frozenset(("late", "stalled")),  # the next look shows that it is ours
    "release": frozenset(("dropped", "late", "stalled", "403", "503")),  # it lasts for as long as the pass does
}
#: Fault of a binding to the exit codes of a pass where it happens once, and always.
_BINDING: Mapping[str, tuple[int, int]] = {
    "dropped": (0, 6),
    "garbled": (6, 6),
    "403": (6, 6),
    "404": (6, 6),
    "410": (6, 6),
    "422": (6, 6),
    "503": (0, 6),
}
CELLS = tuple(_cells())


def _codes(phase: str) -> Iterator[str]:
    for fault in FAULTS:
        found = [str(cell.code) for cell in CELLS if (cell.phase, cell.fault) == (phase, fault)]
        yield " / ".join(found) or "-"


if __name__ == "__main__":
    print(f"| request, one fault / always | {' | '.join(FAULTS)} |")
    for name, phase in PHASES.items():
        print(f"| {name}: {phase.says} | {' | '.join(_codes(name))} |")
