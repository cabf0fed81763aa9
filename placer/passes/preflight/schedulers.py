"""Whether another scheduler takes pods of our name, and whether Volcano's programs know it as they should."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from placer.base.words import counted
from placer.passes.cluster.reading.schedulers import ProcessRole, SchedulerCensus, SchedulerProcess
from placer.passes.preflight.result import CheckResult, CheckState

if TYPE_CHECKING:
    from placer.passes.scheduling_pass import PassOptions

__all__ = ["other_schedulers", "volcano"]

_OTHER, _VOLCANO = "other schedulers", "volcano"
#: Programs that are to know our name, so that they make PodGroups for our pods and let them in.
_KNOWING = (ProcessRole.VOLCANO_CONTROLLER, ProcessRole.VOLCANO_WEBHOOK)
#: Name that every kube-scheduler has unless a file takes it away.
_DEFAULT = "default-scheduler"


def other_schedulers(census: SchedulerCensus, options: PassOptions) -> Iterator[CheckResult]:
    """Find who else takes pods that name us."""
    name, found = options.scheduler_name, 0
    for process in census.processes:
        if name in process.names and process.role not in _KNOWING:
            found += 1
            yield _same_name(process, name)
    if name == _DEFAULT and not found:
        found += 1
        expected = "a name of our own: kube-scheduler has this one, and binds the same pods"
        yield CheckResult(_OTHER, CheckState.FAILED, "--scheduler-name", _DEFAULT, expected, "name another scheduler")
    for pod in census.nominated:
        found += 1
        yield CheckResult(
            _OTHER,
            CheckState.WARNING,
            f"Pod {pod}",
            "status.nominatedNodeName, which placer does not write for pods that it binds itself",
            f"nobody else who takes pods of schedulerName {name}",
            f"look in the pod's Events and in profiles of other schedulers for {name}",
        )
    for namespace in sorted({pod.namespace for pod in census.placers} - {options.lease.namespace}):
        found += 1
        yield CheckResult(
            _OTHER,
            CheckState.WARNING,
            f"Namespace {namespace}",
            "passes of another placer, whose Lease is not ours: both may decide at once",
            f"one placer for schedulerName {name}",
            "delete one, or give each a scheduler name and nodes of its own; or one Lease to both "
            "(--leader-elect-resource-namespace)",
        )
    if not found:
        said = f"no argument of {counted(census.pods, 'pod')} names {name}; profiles in files cannot be seen"
        yield CheckResult(_OTHER, CheckState.OK, f"schedulerName {name}", said)


def _same_name(process: SchedulerProcess, name: str) -> CheckResult:
    return CheckResult(
        _OTHER,
        CheckState.FAILED,
        f"Pod {process.pod}",
        f"a scheduler that has our name, {name}",
        "another name: it binds the same pods",
        "change its --scheduler-name or its profile, or ours (schedulerName)",
    )


def volcano(census: SchedulerCensus, served: bool, options: PassOptions) -> Iterator[CheckResult]:
    """Find whether Volcano's programs and this pass share the work; ``served``: there are Volcano's PodGroups."""
    roles = {each.role for each in census.processes}
    if not served and roles.isdisjoint({ProcessRole.VOLCANO_SCHEDULER, *_KNOWING}):
        yield CheckResult(_VOLCANO, CheckState.OK, "Volcano", "not installed")
        return
    findings = [
        *(_known(each, options.scheduler_name) for each in census.processes if each.role in _KNOWING),
        *([] if options.dry_run else _shared(ProcessRole.VOLCANO_SCHEDULER in roles, options)),
    ]
    yield from findings
    if not findings:
        yield CheckResult(_VOLCANO, CheckState.OK, "Volcano", "installed; no pod of its controller manager is seen")


def _known(process: SchedulerProcess, name: str) -> CheckResult:
    what = f"Pod {process.pod}"
    if name in process.names:
        return CheckResult(_VOLCANO, CheckState.OK, what, f"{process.role.value} knows {name}")
    parts = [part for each in process.names for part in each.split(",") if part]
    joined = " as one name with a comma in it" if name in parts else ""
    arguments = " ".join(f"--scheduler-name={each}" for each in dict.fromkeys((*parts, name)))
    return CheckResult(
        _VOLCANO,
        CheckState.WARNING,
        what,
        f"{process.role.value} knows {', '.join(process.names)}{joined}",
        f"{name} too, so that plain pods of ours get PodGroups (Volcano's Jobs do without)",
        f"give it {arguments}, the argument once for each name",
    )


def _shared(scheduler_runs: bool, options: PassOptions) -> Iterator[CheckResult]:
    if scheduler_runs and (options.status.groups or options.enqueue):
        yield CheckResult(
            _VOLCANO,
            CheckState.FAILED,
            "vc-scheduler",
            "runs, and writes the status of PodGroups as this pass does",
            "one writer: --no-group-status, no --inqueue",
            "kubectl apply -k deploy/overlays/beside-volcano",
        )
    elif not scheduler_runs and not options.enqueue:
        yield CheckResult(
            _VOLCANO,
            CheckState.WARNING,
            "vc-scheduler",
            "is not seen to run, and this pass lets no jobs in: pods of Volcano's Jobs are never made",
            "--inqueue, if Volcano's Jobs are used",
            "kubectl apply -k deploy/overlays/inqueue",
        )
    else:
        yield CheckResult(_VOLCANO, CheckState.OK, "PodGroups", "one writer of their status")
