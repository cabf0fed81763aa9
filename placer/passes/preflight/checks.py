"""The checks, each a function that gives its findings."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import TYPE_CHECKING

import msgspec

from placer.base.errors import ClusterError
from placer.base.words import counted
from placer.kube.kinds import BY_ATTRIBUTE, KindInfo
from placer.passes.cluster.reading.access import Right, allows, who_we_are
from placer.passes.cluster.reading.client import Client, Forbidden, Unlisted, listed
from placer.passes.cluster.reading.paths import segment
from placer.passes.cluster.reading.schedulers import SchedulerCensus, count_pods
from placer.passes.cluster.reading.served_kinds import ServedKinds
from placer.passes.cluster.reading.views import ObjectView, TopologyView
from placer.passes.cluster.writing.lease import PAUSED
from placer.passes.preflight.memory import MIB, memory_needed
from placer.passes.preflight.result import CheckResult, CheckState
from placer.passes.preflight.rights import NeededRight, needed_rights, read_kinds
from placer.passes.preflight.schedulers import other_schedulers, volcano
from placer.search.memory import memory_limit

if TYPE_CHECKING:
    from placer.passes.scheduling_pass import PassOptions

__all__ = ["check_cluster"]

#: Oldest Kubernetes that has everything that is asked for, as ``deploy/README.md`` says.
_OLDEST = (1, 30)
#: Seconds by which clocks may differ: a token that was given out now must not be one of tomorrow.
_CLOCKS_DIFFER = 5.0
_OK, _UNKNOWN, _WARNING, _FAILED = CheckState.OK, CheckState.UNKNOWN, CheckState.WARNING, CheckState.FAILED
#: Kinds that are written, and not read as objects: group, version, plural, what for.
_WRITTEN = (
    ("coordination.k8s.io", "v1", "leases", "one pass at a time writes"),
    ("events.k8s.io", "v1", "events", "Events report the outcome of gangs"),
)


def check_cluster(client: Client, options: PassOptions) -> list[CheckResult]:
    """Check whether a cluster lets passes do their work; at least one result of every check.

    A server that does not answer, is not ready or does not know us is a :class:`ClusterError`.
    """
    looked = _CheckedCluster(client, options)
    checks = (_server, _kinds, _rights, _lease, _schedulers, _volcano, _clock, _memory)
    return [each for check in checks for each in check(looked)]


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


def _server(cluster: _CheckedCluster) -> Iterator[CheckResult]:
    client = cluster.client
    cluster.served  # noqa: B018  # asks whether it is ready
    answer = client.get("/version")
    version = str(json.loads(answer.text).get("gitVersion", "")) if answer.status == 200 else ""
    user = who_we_are(client)
    number = re.match(r"v?(\d+)\.(\d+)", version)
    known = f"Kubernetes {version or 'of unknown version'}{user and f', as {user}'}"
    if number is not None and (int(number[1]), int(number[2])) < _OLDEST:
        expected = f"Kubernetes {_OLDEST[0]}.{_OLDEST[1]} or newer"
        yield CheckResult("server", _WARNING, client.url, known, expected, "upgrade the cluster")
    else:
        yield CheckResult("server", _OK, client.url, known)


def _kinds(cluster: _CheckedCluster) -> Iterator[CheckResult]:
    for info in read_kinds(cluster.options):
        yield _kind(cluster, info)
    if not cluster.options.dry_run:
        for group, version, plural, purpose in _WRITTEN:
            if not cluster.served.serves(group, version, plural):
                expected = f"{group}/{version}, so that {purpose}"
                yield CheckResult("kinds", _FAILED, plural, "not served", expected, "upgrade the cluster")


def _kind(cluster: _CheckedCluster, info: KindInfo) -> CheckResult:
    name = f"{info.kind}.{info.group}" if info.group else info.kind
    read = [f"{group}/{version}" if group else version for group, version in cluster.served.places(info)]
    others = [f"{group}/{version}" for group, version in cluster.served.other_places(info)]
    if others:
        return CheckResult(
            "kinds",
            _WARNING if info.skips_versions else _FAILED,
            name,
            f"served as {', '.join(others)}",
            f"{info.group}/{' or '.join(info.versions)}: dependents of objects of other versions wait",
            "install a definition with a version that is read (deploy/crds), or a placer that reads this one",
        )
    if info.attribute == "volcano_jobs" and not read:
        expected = "Volcano's Jobs, which --inqueue lets in"
        return CheckResult("kinds", _FAILED, name, "not served", expected, "install Volcano, or leave --inqueue out")
    return CheckResult("kinds", _OK, name, f"served as {', '.join(read)}" if read else "not served, so none exist")


# ------------------------------------------------------------------------------------------------------------ rights


def _rights(cluster: _CheckedCluster) -> Iterator[CheckResult]:
    for needed in (*needed_rights(cluster.options), *_measured(cluster)):
        yield _right(cluster, needed)


def _right(cluster: _CheckedCluster, needed: NeededRight) -> CheckResult:
    right = needed.right
    if allows(cluster.client, right):
        return CheckResult("rights", _OK, str(right), "given")
    action = f"kubectl apply -k {needed.folder}, or give {right.rule}"
    if _is_served(cluster, right):
        return CheckResult("rights", _FAILED, str(right), "not given", f"given: {needed.purpose}", action)
    expected = f"given before the kind is installed: {needed.purpose}"
    return CheckResult("rights", _WARNING, str(right), "not given; the kind is not served", expected, action)


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


class _LeaseSpec(msgspec.Struct, rename="camel"):
    holder_identity: str | None = None
    lease_duration_seconds: int | None = None
    renew_time: datetime | None = None


class _LeaseRecord(ObjectView):
    spec: _LeaseSpec = msgspec.field(default_factory=_LeaseSpec)


def _lease(cluster: _CheckedCluster) -> Iterator[CheckResult]:
    client, lease = cluster.client, cluster.options.lease
    if cluster.options.dry_run:
        yield CheckResult("lease", _OK, str(lease), "not needed by a dry run")
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
        yield CheckResult("lease", _UNKNOWN, str(lease), "it may not be read (see rights)")
        return
    if answer.status != 200:
        yield CheckResult("lease", _OK, str(lease), "not there yet; the first pass makes it")
        return
    record = msgspec.json.decode(answer.text, type=_LeaseRecord)
    yield _holder(record.spec, str(lease), client.now())
    why = (record.metadata.annotations or {}).get(PAUSED)
    if why is not None:
        action = f"kubectl -n {lease.namespace} annotate lease {lease.name} {PAUSED}-"
        yield CheckResult("lease", _WARNING, str(lease), f"paused: {why or 'no reason given'}", "passes run", action)


def _missing_namespace(cluster: _CheckedCluster) -> CheckResult | None:
    name = cluster.options.lease.namespace
    try:
        names = {each.metadata.name for each in listed(cluster.client.get, "/api/v1/namespaces", ObjectView)}
    except (Forbidden, Unlisted):
        return None
    if name in names:
        return None
    action = "kubectl apply -k deploy/base, or name another one (--leader-elect-resource-namespace)"
    return CheckResult("lease", _FAILED, f"Namespace {name}", "not there", "the namespace of the Lease", action)


def _holder(spec: _LeaseSpec, lease: str, now: datetime) -> CheckResult:
    if not spec.holder_identity:
        return CheckResult("lease", _OK, lease, "free")
    renewed = spec.renew_time or datetime.min.replace(tzinfo=UTC)
    age = max(timedelta(), now - renewed)
    if age <= timedelta(seconds=(spec.lease_duration_seconds or 0) + 1):  # the server's clock is told to a second
        return CheckResult("lease", _OK, lease, f"held by {spec.holder_identity}, a pass that is under way")
    return CheckResult(
        "lease",
        _WARNING,
        lease,
        f"held by {spec.holder_identity}, which renewed it last at {renewed:%Y-%m-%dT%H:%M:%SZ}",
        "a holder that renews it every 2 s: this one was killed, and the next pass takes it over after "
        f"{spec.lease_duration_seconds or 0} s",
        "nothing, if a pass follows; else see why none does (is the CronJob suspended?)",
    )


# --------------------------------------------------------------------------------------- schedulers, clock and memory


def _schedulers(cluster: _CheckedCluster) -> Iterator[CheckResult]:
    if cluster.census is None:
        yield CheckResult("other schedulers", _UNKNOWN, "Pods", "they may not be listed (see rights)")
    else:
        yield from other_schedulers(cluster.census, cluster.options)


def _volcano(cluster: _CheckedCluster) -> Iterator[CheckResult]:
    if cluster.census is None:
        yield CheckResult("volcano", _UNKNOWN, "Pods", "they may not be listed (see rights)")
    else:
        served = bool(cluster.groups(BY_ATTRIBUTE["pod_groups"]))
        yield from volcano(cluster.census, served, cluster.options)


def _clock(cluster: _CheckedCluster) -> Iterator[CheckResult]:
    behind = (cluster.client.now() - datetime.now(UTC)).total_seconds()
    if abs(behind) <= _CLOCKS_DIFFER:
        yield CheckResult("clock", _OK, "this machine's", f"within {_CLOCKS_DIFFER:.0f} s of the server's")
        return
    yield CheckResult(
        "clock",
        _WARNING,
        "this machine's",
        f"{abs(behind):.0f} s {'behind' if behind > 0 else 'ahead of'} the server's",
        f"at most {_CLOCKS_DIFFER:.0f} s: certificates and tokens end by the clock",
        "have this machine, or the server's, keep time (NTP)",
    )


def _memory(cluster: _CheckedCluster) -> Iterator[CheckResult]:
    try:
        answer = cluster.client.get("/api/v1/nodes", {"limit": "1"})
        if answer.status != 200:
            raise ClusterError(f"/api/v1/nodes: found status {answer.status}, expected 200")
    except Forbidden:
        answer = None
    if answer is None or cluster.census is None:
        yield CheckResult("memory", _UNKNOWN, "this cluster", "its nodes or pods may not be listed (see rights)")
        return
    page = json.loads(answer.text)
    nodes = len(page.get("items") or ()) + page.get("metadata", {}).get("remainingItemCount", 0)
    pods = cluster.census.pods
    needed, limit = memory_needed(nodes, pods), memory_limit()
    size = f"{counted(nodes, 'node')}, {counted(pods, 'pod')}"
    found = f"a pass takes up to {needed // MIB:,} MiB; {limit // MIB:,} MiB are here"
    if needed <= limit:
        yield CheckResult("memory", _OK, size, found)
        return
    action = f"give the container at least {needed // MIB:,} MiB (resources in deploy/base/cron-job.yaml)"
    yield CheckResult("memory", _FAILED, size, found, "as much as a pass takes", action)
