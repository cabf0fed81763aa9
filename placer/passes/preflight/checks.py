"""The checks, each a function that gives its findings: state, object, found, expected, action."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from enum import Enum
from functools import cached_property
from typing import TYPE_CHECKING, Any

from placer.base.errors import ClusterError
from placer.base.words import counted
from placer.kube.kinds import BY_ATTRIBUTE, KindInfo
from placer.passes.cluster.reading.access import Right, allows, who_we_are
from placer.passes.cluster.reading.client import Client, Forbidden, Unlisted, listed
from placer.passes.cluster.reading.paths import segment
from placer.passes.cluster.reading.schedulers import ProcessRole, SchedulerCensus, SchedulerProcess, count_pods
from placer.passes.cluster.reading.served_kinds import ServedKinds
from placer.passes.cluster.reading.views import ObjectView, TopologyView
from placer.passes.cluster.writing.lease import PAUSED
from placer.passes.preflight.rights import NeededRight, needed_rights, read_kinds
from placer.search.memory import memory_limit

if TYPE_CHECKING:
    from placer.passes.scheduling_pass import PassOptions

__all__ = ["MIB", "CheckResult", "CheckState", "check_cluster", "memory_needed"]

MIB = 2**20
#: Oldest Kubernetes that has everything that is asked for, as ``deploy/README.md`` says.
_OLDEST = (1, 30)
#: Seconds by which clocks may differ: a token that was given out now must not be one of tomorrow.
_CLOCKS_DIFFER = 5.0
#: Kinds that are written, and not read as objects: group, version, plural, what for.
_WRITTEN = (
    ("coordination.k8s.io", "v1", "leases", "one pass at a time writes"),
    ("events.k8s.io", "v1", "events", "Events report the outcome of gangs"),
)
#: Programs that are to know our name, so that they make PodGroups for our pods and let them in.
_KNOWING = (ProcessRole.VOLCANO_CONTROLLER, ProcessRole.VOLCANO_WEBHOOK)
#: Name that every kube-scheduler has unless a file takes it away.
_DEFAULT = "default-scheduler"
#: Memory of programs and solvers before the first object is read, and of each node and pod: text, objects made of it,
#: and its share of arrays in both processes. No measured pass took more (the table in ``deploy/README.md``, and that of
#: 100,000 nodes in ``models/measured.md``).
_BASE, _EACH = 300 * MIB, 8 * 2**10


class CheckState(Enum):
    """How it stands, the best first."""

    OK = "ok"
    UNKNOWN = "unknown"
    WARNING = "warning"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class CheckResult:
    """One finding of a check; empty ``expected``: fine as it is; empty ``action``: nothing to do."""

    check: str
    state: CheckState
    object: str
    found: str
    expected: str = ""
    action: str = ""

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "check": self.check,
            "state": self.state.value,
            "object": self.object,
            "found": self.found,
            "expected": self.expected or None,
            "action": self.action or None,
        }


#: The result of a check: the first fields of a :class:`CheckResult` after the check's name.
_Found = tuple[CheckState, str, str, *tuple[str, ...]]
_OK, _UNKNOWN, _WARNING, _FAILED = CheckState.OK, CheckState.UNKNOWN, CheckState.WARNING, CheckState.FAILED
_UNSEEN: _Found = _UNKNOWN, "Pods", "they may not be listed (see rights)"


def check_cluster(client: Client, options: PassOptions) -> list[CheckResult]:
    """Check whether a cluster lets passes do their work; at least one result of every check.

    A server that does not answer, is not ready or does not know us is a :class:`ClusterError`.
    """
    looked = _CheckedCluster(client, options)
    return [CheckResult(name, *each) for name, check in _CHECKS.items() for each in check(looked)]


def memory_needed(nodes: int, pods: int) -> int:
    """Bytes that a pass takes at most, solvers included."""
    return _BASE + (nodes + pods) * _EACH


@dataclass(frozen=True)
class _CheckedCluster:
    client: Client
    options: PassOptions

    @cached_property
    def served(self) -> ServedKinds:
        return ServedKinds(self.client)

    @cached_property
    def census(self) -> SchedulerCensus | None:
        """None where pods may not be listed, which the rights tell."""
        try:
            found = count_pods(self.client, self.options.scheduler_name)
            return replace(found, nominated=()) if self.options.gates else found  # they may be nominated by us
        except Forbidden:
            return None

    def groups(self, info: KindInfo) -> set[str]:
        return {group for group, _ in (*self.served.places(info), *self.served.other_places(info))}


# -------------------------------------------------------------------------------------------------- server and kinds


def _server(cluster: _CheckedCluster) -> Iterator[_Found]:
    client = cluster.client
    cluster.served  # noqa: B018  # asks whether it is ready
    answer = client.get("/version")
    version = str(json.loads(answer.text).get("gitVersion", "")) if answer.status == 200 else ""
    user = who_we_are(client)
    number = re.match(r"v?(\d+)\.(\d+)", version)
    known = f"Kubernetes {version or 'of unknown version'}{user and f', as {user}'}"
    if number is not None and (int(number[1]), int(number[2])) < _OLDEST:
        expected = f"Kubernetes {_OLDEST[0]}.{_OLDEST[1]} or newer"
        yield _WARNING, client.url, known, expected, "upgrade the cluster"
    else:
        yield _OK, client.url, known


def _kinds(cluster: _CheckedCluster) -> Iterator[_Found]:
    for info in read_kinds(cluster.options):
        yield _kind(cluster, info)
    if not cluster.options.dry_run:
        for group, version, plural, purpose in _WRITTEN:
            if not cluster.served.serves(group, version, plural):
                expected = f"{group}/{version}, so that {purpose}"
                yield _FAILED, plural, "not served", expected, "upgrade the cluster"


def _kind(cluster: _CheckedCluster, info: KindInfo) -> _Found:
    name = f"{info.kind}.{info.group}" if info.group else info.kind
    read = [f"{group}/{version}" if group else version for group, version in cluster.served.places(info)]
    others = [f"{group}/{version}" for group, version in cluster.served.other_places(info)]
    if others:
        return (
            _WARNING if info.skips_versions else _FAILED,
            name,
            f"served as {', '.join(others)}",
            f"{info.group}/{' or '.join(info.versions)}: dependents of objects of other versions wait",
            "install a definition with a version that is read (deploy/crds), or a placer that reads this one",
        )
    if info.attribute == "volcano_jobs" and not read:
        expected = "Volcano's Jobs, which --inqueue lets in"
        return _FAILED, name, "not served", expected, "install Volcano, or leave --inqueue out"
    return _OK, name, f"served as {', '.join(read)}" if read else "not served, so none exist"


# ------------------------------------------------------------------------------------------------------------ rights


def _rights(cluster: _CheckedCluster) -> Iterator[_Found]:
    for needed in (*needed_rights(cluster.options), *_measured(cluster)):
        yield _right(cluster, needed)


def _right(cluster: _CheckedCluster, needed: NeededRight) -> _Found:
    right = needed.right
    if allows(cluster.client, right):
        return _OK, str(right), "given"
    action = f"kubectl apply -k {needed.folder}, or give {right.rule}"
    if _is_served(cluster, right):
        return _FAILED, str(right), "not given", f"given: {needed.purpose}", action
    expected = f"given before the kind is installed: {needed.purpose}"
    return _WARNING, str(right), "not given; the kind is not served", expected, action


def _is_served(cluster: _CheckedCluster, right: Right) -> bool:
    plural = right.resource.partition("/")[0]
    infos = [each for each in BY_ATTRIBUTE.values() if each.plural == plural and right.group in each.groups]
    return not infos or any(right.group in cluster.groups(each) for each in infos)


def _measured(cluster: _CheckedCluster) -> Iterator[NeededRight]:
    for group, version in cluster.served.places(BY_ATTRIBUTE["network_topologies"]):
        try:
            found = listed(cluster.client.get, f"/apis/{group}/{version}/networktopologies", TopologyView)
            names = sorted({(each.metadata.namespace, each.measurements) for each in found if each.measurements})
        except Forbidden:  # the right to list them is told by itself
            continue
        for namespace, name in names:
            purpose = "it has the measured costs of a NetworkTopology"
            yield NeededRight(Right("", "configmaps", "get", namespace, name), purpose, "deploy/measurements")


# ------------------------------------------------------------------------------------------------------------- Lease


def _lease(cluster: _CheckedCluster) -> Iterator[_Found]:
    client, lease = cluster.client, cluster.options.lease
    if cluster.options.dry_run:
        yield _OK, str(lease), "not needed by a dry run"
        return
    missing = _missing_namespace(cluster)
    if missing is not None:
        yield missing
        return
    try:
        answer = client.get(
            f"/apis/coordination.k8s.io/v1/namespaces/{segment(lease.namespace)}/leases/{segment(lease.name)}"
        )
    except Forbidden:
        yield _UNKNOWN, str(lease), "it may not be read (see rights)"
        return
    if answer.status != 200:
        yield _OK, str(lease), "not there yet; the first pass makes it"
        return
    record = json.loads(answer.text)
    yield _holder(record.get("spec") or {}, str(lease), client.now())
    why = (record["metadata"].get("annotations") or {}).get(PAUSED)
    if why is not None:
        action = f"kubectl -n {lease.namespace} annotate lease {lease.name} {PAUSED}-"
        yield _WARNING, str(lease), f"paused: {why or 'no reason given'}", "passes run", action


def _missing_namespace(cluster: _CheckedCluster) -> _Found | None:
    name = cluster.options.lease.namespace
    try:
        names = {each.metadata.name for each in listed(cluster.client.get, "/api/v1/namespaces", ObjectView)}
    except (Forbidden, Unlisted):
        return None
    if name in names:
        return None
    action = "kubectl apply -k deploy/base, or name another one (--leader-elect-resource-namespace)"
    return _FAILED, f"Namespace {name}", "not there", "the namespace of the Lease", action


def _holder(spec: Mapping[str, Any], lease: str, now: datetime) -> _Found:
    holder, seconds = spec.get("holderIdentity"), spec.get("leaseDurationSeconds") or 0
    if not holder:
        return _OK, lease, "free"
    renewed = datetime.fromisoformat(spec.get("renewTime") or "0001-01-01T00:00:00Z")
    age = max(timedelta(), now - renewed)
    if age <= timedelta(seconds=seconds + 1):  # the server's clock is told to a second
        return _OK, lease, f"held by {holder}, a pass that is under way"
    return (
        _WARNING,
        lease,
        f"held by {holder}, which renewed it last at {renewed:%Y-%m-%dT%H:%M:%SZ}",
        f"a holder that renews it every 2 s: this one was killed, and the next pass takes it over after {seconds} s",
        "nothing, if a pass follows; else see why none does (is the CronJob suspended?)",
    )


# --------------------------------------------------------------------------------------- schedulers, clock and memory


def _schedulers(cluster: _CheckedCluster) -> Iterator[_Found]:
    census, options = cluster.census, cluster.options
    if census is None:
        yield _UNSEEN
        return
    name = options.scheduler_name
    findings = [*_other_schedulers(census, name), *_other_placers(census, options)]
    yield from findings
    if not findings:
        said = f"no argument of {counted(census.pods, 'pod')} names {name}; profiles in files cannot be seen"
        yield _OK, f"schedulerName {name}", said


def _other_schedulers(census: SchedulerCensus, name: str) -> Iterator[_Found]:
    same = [each for each in census.processes if name in each.names and each.role not in _KNOWING]
    yield from (_same_name(process, name) for process in same)
    if name == _DEFAULT and not same:
        expected = "a name of our own: kube-scheduler has this one, and binds the same pods"
        yield _FAILED, "--scheduler-name", _DEFAULT, expected, "name another scheduler"
    for pod in census.nominated:
        yield (
            _WARNING,
            f"Pod {pod}",
            "status.nominatedNodeName, which placer does not write for pods that it binds itself",
            f"nobody else who takes pods of schedulerName {name}",
            f"look in the pod's Events and in profiles of other schedulers for {name}",
        )


def _other_placers(census: SchedulerCensus, options: PassOptions) -> Iterator[_Found]:
    for namespace in sorted({pod.namespace for pod in census.placers} - {options.lease.namespace}):
        yield (
            _WARNING,
            f"Namespace {namespace}",
            "passes of another placer, whose Lease is not ours: both may decide at once",
            f"one placer for schedulerName {options.scheduler_name}",
            "delete one, or give each a scheduler name and nodes of its own; or one Lease to both "
            "(--leader-elect-resource-namespace)",
        )


def _same_name(process: SchedulerProcess, name: str) -> _Found:
    return (
        _FAILED,
        f"Pod {process.pod}",
        f"a scheduler that has our name, {name}",
        "another name: it binds the same pods",
        "change its --scheduler-name or its profile, or ours (schedulerName)",
    )


def _volcano(cluster: _CheckedCluster) -> Iterator[_Found]:
    census, options = cluster.census, cluster.options
    if census is None:
        yield _UNSEEN
        return
    roles = {each.role for each in census.processes}
    if not cluster.groups(BY_ATTRIBUTE["pod_groups"]) and roles.isdisjoint({ProcessRole.VOLCANO_SCHEDULER, *_KNOWING}):
        yield _OK, "Volcano", "not installed"
        return
    findings = [
        *(_known(each, options.scheduler_name) for each in census.processes if each.role in _KNOWING),
        *([] if options.dry_run else _shared(ProcessRole.VOLCANO_SCHEDULER in roles, options)),
    ]
    yield from findings
    if not findings:
        yield _OK, "Volcano", "installed; no pod of its controller manager is seen"


def _known(process: SchedulerProcess, name: str) -> _Found:
    what = f"Pod {process.pod}"
    if name in process.names:
        return _OK, what, f"{process.role.value} knows {name}"
    parts = [part for each in process.names for part in each.split(",") if part]
    joined = " as one name with a comma in it" if name in parts else ""
    arguments = " ".join(f"--scheduler-name={each}" for each in dict.fromkeys((*parts, name)))
    return (
        _WARNING,
        what,
        f"{process.role.value} knows {', '.join(process.names)}{joined}",
        f"{name} too, so that plain pods of ours get PodGroups (Volcano's Jobs do without)",
        f"give it {arguments}, the argument once for each name",
    )


def _shared(scheduler_runs: bool, options: PassOptions) -> Iterator[_Found]:
    if scheduler_runs and (options.status.groups or options.enqueue):
        yield (
            _FAILED,
            "vc-scheduler",
            "runs, and writes the status of PodGroups as this pass does",
            "one writer: --no-group-status, no --inqueue",
            "kubectl apply -k deploy/overlays/beside-volcano",
        )
    elif not scheduler_runs and not options.enqueue:
        yield (
            _WARNING,
            "vc-scheduler",
            "is not seen to run, and this pass lets no jobs in: pods of Volcano's Jobs are never made",
            "--inqueue, if Volcano's Jobs are used",
            "kubectl apply -k deploy/overlays/inqueue",
        )
    else:
        yield _OK, "PodGroups", "one writer of their status"


def _clock(cluster: _CheckedCluster) -> Iterator[_Found]:
    behind = (cluster.client.now() - datetime.now(UTC)).total_seconds()
    if abs(behind) <= _CLOCKS_DIFFER:
        yield _OK, "this machine's", f"within {_CLOCKS_DIFFER:.0f} s of the server's"
        return
    yield (
        _WARNING,
        "this machine's",
        f"{abs(behind):.0f} s {'behind' if behind > 0 else 'ahead of'} the server's",
        f"at most {_CLOCKS_DIFFER:.0f} s: certificates and tokens end by the clock",
        "have this machine, or the server's, keep time (NTP)",
    )


def _memory(cluster: _CheckedCluster) -> Iterator[_Found]:
    try:
        answer = cluster.client.get("/api/v1/nodes", {"limit": "1"})
        if answer.status != 200:
            raise ClusterError(f"/api/v1/nodes: found status {answer.status}, expected 200")
    except Forbidden:
        answer = None
    if answer is None or cluster.census is None:
        yield _UNKNOWN, "this cluster", "its nodes or pods may not be listed (see rights)"
        return
    page = json.loads(answer.text)
    nodes = len(page.get("items") or ()) + page.get("metadata", {}).get("remainingItemCount", 0)
    pods = cluster.census.pods
    needed, limit = memory_needed(nodes, pods), memory_limit()
    size = f"{counted(nodes, 'node')}, {counted(pods, 'pod')}"
    found = f"a pass takes up to {needed // MIB:,} MiB; {limit // MIB:,} MiB are here"
    if needed <= limit:
        yield _OK, size, found
        return
    action = f"give the container at least {needed // MIB:,} MiB (resources in deploy/base/cron-job.yaml)"
    yield _FAILED, size, found, "as much as a pass takes", action


#: Checks in their order.
_CHECKS: Mapping[str, Callable[[_CheckedCluster], Iterator[_Found]]] = {
    "server": _server,
    "kinds": _kinds,
    "rights": _rights,
    "lease": _lease,
    "other schedulers": _schedulers,
    "volcano": _volcano,
    "clock": _clock,
    "memory": _memory,
}
