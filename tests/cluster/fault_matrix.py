"""The matrix of faults: what may go wrong with each request of a pass, and with which exit code the pass ends then.

The tests of ``tests/cluster/test_faults_matrix_live.py`` try every cell against a real API server; ``models/faults.md``
lists them (``python -m tests.cluster.fault_matrix`` writes it anew).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.cluster.proxy import Rule, Spoil

__all__ = ["ADMISSION", "CELLS", "FAULTS", "PAGE", "PHASES", "Admission", "Cell", "Fault", "Phase", "page"]

PAGE = Path(__file__).parents[2] / "models" / "faults.md"
_ALWAYS = 1_000_000


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


@dataclass(frozen=True, slots=True)
class Admission:
    """Something by which a kubelet may reject a pod that the API server has let be bound to its node.

    Parameters
    ----------
    says
        What the kubelet looks at.
    reasons
        ``status.reason`` of a pod that it rejects for it (:func:`placer.cluster.reading.views.is_rejection`).
    answer
        What keeps such a pod from being bound there, and what remains.
    tests
        Where that is held.
    """

    says: str
    reasons: tuple[str, ...]
    answer: str
    tests: tuple[str, ...] = ()


_C3, _REFUSED = "tests/rules/test_c3_eligibility.py", "tests/instance/test_unsupported.py"

#: What kubelets of Kubernetes 1.35 look at. Source: the handlers that ``pkg/kubelet/kubelet.go`` lists.
ADMISSION: tuple[Admission, ...] = (
    Admission(
        "room: cpu, memory, ephemeral storage, number of pods, extended resources, huge pages; overhead of a "
        "RuntimeClass, "
        "resources of the pod level and sidecars counted in",
        ("OutOfcpu", "OutOfmemory", "OutOfephemeral-storage", "OutOfpods", "OutOfhugepages-2Mi", "OutOfnvidia.com/gpu"),
        "modelled: C2; checked again before each binding. What a kubelet holds that no pod shows (static pods not "
        "mirrored "
        "yet, a device that failed since) is left to the memory",
        ("tests/rules/test_c2_capacity.py", "tests/instance/test_requests.py"),
    ),
    Admission("host ports", ("NodePorts",), "modelled: C2", ("tests/rules/test_c2_capacity.py",)),
    Admission("node selector and affinity; `spec.nodeName`", ("NodeAffinity", "NodeName"), "modelled: C3", (_C3,)),
    Admission("taints `NoExecute`", ("TaintToleration",), "modelled: C3", (_C3,)),
    Admission(
        "operating system: `spec.os`, and a label `kubernetes.io/os` of the pod",
        ("PodOSNotSupported", "PodOSSelectorNodeLabelDoesNotMatch"),
        "modelled: C3; `Unsupported` where no node is of that system, or the two differ",
        (_REFUSED,),
    ),
    Admission(
        "pressure of memory, disk or processes",
        ("Evicted",),
        "modelled: C3, as far as the node has the taint by which its controller says so; until then left to the "
        "memory. "
        "`Evicted` counts by its message alone, since pods that ran are evicted, too",
        (_C3, "tests/cluster/test_rejections.py"),
    ),
    Admission(
        "the node shuts down",
        ("NodeShutdown",),
        "modelled: C3, as soon as the node says that it is not ready; until then left to the memory",
        (_C3,),
    ),
    Admission(
        "NUMA zones: cpus, memory and devices aligned by the Topology Manager",
        ("TopologyAffinityError", "UnexpectedAdmissionError"),
        "modelled: C10, where a NodeResourceTopology tells of the node's zones and policy; else left to the memory",
        ("tests/rules/test_c10_numa.py",),
    ),
    Admission(
        "whole physical cores (`full-pcpus-only` of the CPU Manager)",
        ("SMTAlignmentError",),
        "left to the memory: no object tells of the option, nor of threads per core",
    ),
    Admission(
        "kernel parameters",
        ("SysctlForbidden",),
        "`Unsupported` where one is not among those that every kubelet lets pods set",
        (_REFUSED,),
    ),
    Admission(
        "devices by claim (DRA)",
        ("UnexpectedAdmissionError",),
        "`Unsupported`",
        (_REFUSED,),
    ),
    Admission(
        "volumes that a node may have attached at most",
        ("VolumeAttachmentLimitExceeded",),
        "left to the memory: CSINodes are not read; a claim that is not bound is `Unsupported`, one that is bound "
        "decides by its "
        "volume's node affinity (C3). Kubelets before 1.35 do not reject the pod, it waits for its volume",
        (_REFUSED,),
    ),
    Admission(
        "AppArmor on a host that has none",
        ("AppArmor",),
        "left to the memory: no object tells. (A seccomp profile that is not there, a user namespace, a runtime "
        "handler that is "
        "not installed: no kubelet rejects a pod for these; it is admitted, and its containers do not start)",
    ),
    Admission(
        "`supplementalGroupsPolicy: Strict` on a runtime that does not know it",
        ("SupplementalGroupsPolicyNotSupported",),
        "left to the memory",
    ),
    Admission(
        "features that the kubelet has off, or does not declare: resources of the pod level, sidecars before 1.29",
        ("PodLevelResourcesNotSupported", "PodFeatureUnsupported", "InitContainerRestartPolicyForbidden"),
        "left to the memory: a kubelet's feature gates are in no object. Swap is no ground: no kubelet rejects a "
        "pod for it",
    ),
    Admission(
        "what the kubelet itself does not know: its own Node, a predicate that failed for no reason it can name",
        ("InvalidNodeInfo", "UnknownReason", "UnexpectedPredicateFailureType"),
        "left to the memory",
    ),
)

_UNHEARD = """
A pod that its kubelet rejects later than a pass waits (`--settle`, 5 s; it ends as soon as all have
answered), and that its controller deletes at once, is heard of all the same. A loop (`--every`) waits for no kubelet:
it has its watches open between passes, too. A gang stays recorded until its kubelets have answered, so that one of
which a pod is rejected is half-bound to the next pass. A pass records the pods that it has bound and no kubelet has
answered for; where one of them is gone by the next pass, that asks the server what has happened to failed pods since
(`placer/cluster/reading/unanswered.py`, `tests/cluster/test_unanswered.py`). It takes a second or two, and only then.
A server remembers about 75 s, and longer where less than a hundred pods change meanwhile; where it has forgotten, is
silent, or was set back, nothing is assumed, and the line says so (`told.troubles`): such a pod may be bound again, to
the same node if it is the best one still, which costs one binding a pass, of that workload.

That a uid that was bound is gone, and its controller has made another pod, is by itself not taken for a rejection: a
controller that restarts a whole gang (a JobSet, a Job of Volcano, a LeaderWorkerSet) leaves just the same behind, and
healthy gangs would wait for it, twice as long each time. What kubelets say in Events says no more: of a pod that is
gone it does not name the controller.

Whose a pod is, and by `spec.nodeName` also where it goes, its author may write; so may a kubelet be made to
reject it. What the pods of one namespace had rejected has four nodes cool down at a time at most, the latest.
"""

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


def page() -> str:
    """The page that lists the matrix."""
    lines = [
        "# Faults, and the reaction of a pass",
        "",
        "Every kind of request of a pass, from the Lease to the last Event, with every fault that may happen to it,",
        "tried against a real API server behind a proxy that delays, drops, forwards late,",
        "refuses and stalls (`tests/cluster/test_faults_matrix_live.py`; `python -m tests.cluster.fault_matrix` makes",
        "this page). The test command tries a part of the cells, `.ci/exhaustive` the others. After each,",
        "whatever the exit code:",
        "",
        "- no pod was bound twice: counted at the proxy, by uid;",
        "- no node has more than it can hold;",
        "- where a gang is half-bound the pass ended with 6, and its pods have a condition that says so, unless",
        "  conditions cannot be written, or the server has said that all is bound (then it is `unseen`);",
        "- after three passes that nothing disturbs all is bound that `placer solve` could bind at the beginning.",
        "",
        "## Faults",
        "",
        "| fault | what happens to a request |",
        "| --- | --- |",
        *(f"| {name} | {fault.says} |" for name, fault in FAULTS.items()),
        "",
        "An expired token gives a 401, too, so the credentials are read again first: token file, kubeconfig, plug-in. "
        "If they have changed, the request is repeated without a fault (`tests/cluster/test_credentials_live.py`).",
        "",
        "## Exit codes",
        "",
        "Of a pass in which it happens once / to every such request. A dash: it makes no difference there.",
        "",
        "| request | " + " | ".join(FAULTS) + " |",
        "| --- |" + " --- |" * len(FAULTS),
        *(f"| {name}: {phase.says} | " + " | ".join(_codes(name)) + " |" for name, phase in PHASES.items()),
        "",
        "## Evictions",
        "",
        "Answers to an eviction, and the reaction of passes and `--apply` "
        "(`placer/cluster/writing/eviction.py`); `tests/cluster/test_disturbed_live.py` draws",
        "them at random, with budgets, and with controllers that make again what went late, under other names, "
        "or never: nothing is",
        "evicted twice, or for nothing, and every plan is carried out or reported.",
        "",
        "| answer | before anything has gone | after |",
        "| --- | --- | --- |",
        "| 429 for a disruption budget | ends the plan, nothing is evicted | tried for 30 s, then the evicted "
        "pods are reported |",
        "| 429, the server has no time | tried for 10 s | tried for 30 s |",
        "| 403, 422 and others of one request | ends the plan | ends the plan, the evicted pods are reported |",
        "| 404, or another pod of the name | it is gone already | the same |",
        "| 5xx, no answer | the pod is read; one that is not ending is tried again, by its uid | the same |",
        "",
        "A pass or call that is killed between two evictions, before the first, or with the last "
        "(`tests/cluster/test_disturbing_killed_live.py`): for whom room is made and where moved",
        "pods go is in the ConfigMap before the first eviction. No pod is evicted twice; the next pass resumes, or "
        "reports that it does not; moved pods get their room, though a more urgent one waits.",
        "If one pod of a gang was evicted and another runs, no room is kept: the next pass completes the gang, "
        "and looks again for pods to evict.",
        "",
        "## Releases",
        "",
        "With `--enforce gates` a pod gets its node by two requests, the nomination and the release "
        "(`placer/cluster/writing/release.py`). `tests/cluster/test_gates_faults_live.py` has each fault",
        "above happen to each of them, and kills a pass between two pods of a gang: nothing is released twice; a gang "
        "of which a part is released ends the pass with 6 and comes",
        "first in the next one. A pod that is nominated and not released loses its nomination, at the latest in the "
        "next pass: a real kube-scheduler keeps other pods off that room until then.",
        "",
        "## What kubelets reject",
        "",
        "A kubelet may reject a pod that is bound to its node. Causes in Kubernetes 1.35, and the answer of placer:",
        "a rule by which the pod is not placed there, a refusal (`Unsupported`), or, where no object tells, the "
        "*memory*: the",
        "node cools down after the first rejection of a workload, and after one by a second node the workload "
        "backs off",
        "(`placer/cluster/reading/rejections.py`, `tests/cluster/test_rejections.py`, "
        "`tests/cluster/test_faults_kubelets_live.py`).",
        "",
        "| the kubelet looks at | `status.reason` | placer | held by |",
        "| --- | --- | --- | --- |",
        *(
            f"| {each.says} | {', '.join(f'`{reason}`' for reason in each.reasons)} | {each.answer} | "
            f"{', '.join(f'`{name}`' for name in each.tests)} |"
            for each in ADMISSION
        ),
        _UNHEARD.rstrip(),
        "",
    ]
    return "\n".join(lines)


def _codes(phase: str) -> Iterator[str]:
    for fault in FAULTS:
        found = [str(cell.code) for cell in CELLS if (cell.phase, cell.fault) == (phase, fault)]
        yield " / ".join(found) or "-"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
