"""Every right that a pass needs, and its purpose.

``deploy/`` grants these and no others, as a test shows for each overlay.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from placer.kube.kinds import BY_ATTRIBUTE, KindInfo
from placer.kube.unread_kinds import LIMITS
from placer.passes.cluster.reading.access import Right
from placer.passes.cluster.reading.daemon_sets import DAEMON_SETS
from placer.passes.cluster.reading.snapshot import LISTED
from placer.passes.cluster.writing.controllers import CONTROLLED
from placer.problem.gangs import UPSTREAM, VOLCANO

if TYPE_CHECKING:
    from placer.passes.scheduling_pass import PassOptions

__all__ = ["NeededRight", "needed_rights", "read_kinds"]

_GATES = "deploy/overlays/gates"
_PLACES = "deploy/namespace-rights"
#: Read beside what is always listed: where there are AppGroups, and last of all.
_MORE = ("replica_sets", "pods")


@dataclass(frozen=True, slots=True)
class NeededRight:
    """A right, what cannot be done without it, and the folder of ``deploy/`` that grants it."""

    right: Right
    purpose: str
    folder: str = "deploy/base"


def read_kinds(options: PassOptions) -> list[KindInfo]:
    """The kinds that a pass lists."""
    jobs = ("volcano_jobs",) if options.enqueue and not options.dry_run else ()
    return [BY_ATTRIBUTE[each] for each in (*LISTED, *_MORE, *jobs)]


def needed_rights(options: PassOptions) -> list[NeededRight]:
    """List the rights that a pass needs, each once."""
    kept = [*_binding(options)]
    if not options.dry_run:
        kept += _telling(options)
    if options.disturbs:
        purpose = "room is made where the Policy has it so (--max-evictions-per-hour)"
        kept.append(NeededRight(Right("", "pods/eviction", "create"), purpose, "deploy/overlays/disruption"))
    found = [*_reading(options), *_within(kept, options)]
    if not options.dry_run:
        found += [*_controlling(options), *_leading(options)]
    return list({each.right: each for each in reversed(found)}.values())[::-1]


def _within(needed: Iterable[NeededRight], options: PassOptions) -> Iterator[NeededRight]:
    places = sorted(options.guards.namespaces)
    if not places:
        yield from needed
        return
    for place in places:
        yield from (replace(each, right=each.right.within(place), folder=_PLACES) for each in needed)
    if not options.dry_run and options.status.events:
        purpose = "Events of nodes are written (not with --no-events)"
        yield NeededRight(
            Right("events.k8s.io", "events", "create", "default"), purpose, "deploy/components/namespaces"
        )


def _reading(options: PassOptions) -> Iterator[NeededRight]:
    for info in read_kinds(options):
        folder = "deploy/overlays/inqueue" if info.attribute == "volcano_jobs" else "deploy/base"
        for group in info.groups:
            yield NeededRight(Right(group, info.plural, "list"), f"a pass reads every {info.kind}", folder)
    if options.every is not None:
        purpose = "lists are kept between passes (--every), and not taken in each"
        for info in (*map(BY_ATTRIBUTE.__getitem__, (*LISTED, *_MORE)), DAEMON_SETS):
            for group in info.groups:
                yield NeededRight(Right(group, info.plural, "watch"), purpose, "deploy/overlays/deployment")
    yield from _telling_of_limits()
    yield NeededRight(Right("apps", "daemonsets", "list"), "room is held for pods of DaemonSets that are still to come")
    for resource in ("pods", "nodes"):
        yield NeededRight(Right("", resource, "watch"), "a gang goes out only where its room is still there")
    yield NeededRight(Right("", "pods", "get"), "an answer that got lost may have been a binding")
    namespace, name = options.record
    purpose = "gangs that a pass left half-bound come first"
    yield NeededRight(Right("", "configmaps", "get", namespace, name), purpose)


def _telling_of_limits() -> Iterator[NeededRight]:
    for limit in LIMITS:
        for group in limit.groups if limit.of_namespace and not limit.on_making else ():
            purpose = f"findings name pods of namespaces with an {limit.kind}, which is not read"
            yield NeededRight(Right(group, limit.plural, "list"), purpose)


def _binding(options: PassOptions) -> Iterator[NeededRight]:
    if options.dry_run != "client":
        yield NeededRight(Right("", "pods/binding", "create"), "pods are bound")
    if options.gates and options.dry_run != "client":
        purpose, folder = "pods with the hold gate are released for their nodes (--enforce gates)", _GATES
        yield NeededRight(Right("", "pods", "patch"), purpose, folder)
        yield NeededRight(Right("", "pods/status", "patch"), purpose)
    if not options.dry_run and options.patience < float("inf"):
        purpose = "a gang that remains half-bound is rolled back (not with --half-bound-patience inf)"
        yield NeededRight(Right("", "pods", "delete"), purpose)


def _telling(options: PassOptions) -> Iterator[NeededRight]:
    purpose = "pods get their reason as a condition, and a binding in doubt is fenced"
    yield NeededRight(Right("", "pods/status", "patch"), purpose)
    if options.status.conditions:
        purpose = "PodGroups of Kubernetes say whether they were scheduled (not with --no-conditions)"
        yield NeededRight(Right(UPSTREAM, "podgroups", "get"), purpose)
        yield NeededRight(Right(UPSTREAM, "podgroups/status", "patch"), purpose)
    if options.status.events:
        yield NeededRight(Right("events.k8s.io", "events", "create"), "Events are written (not with --no-events)")
    if options.status.groups:
        purpose = "PodGroups of Volcano get their status (not with --no-group-status)"
        yield NeededRight(Right(VOLCANO, "podgroups", "get"), purpose)
        yield NeededRight(Right(VOLCANO, "podgroups", "patch"), purpose)
    if options.enqueue:
        yield NeededRight(Right(VOLCANO, "podgroups", "patch"), "PodGroups are let in (--inqueue)")


def _controlling(options: PassOptions) -> Iterator[NeededRight]:
    for kind in sorted(options.controllers):
        purpose = f"placer writes in place of a controller of {kind} (--controllers)"
        yield NeededRight(Right(*CONTROLLED[kind], "patch"), purpose, "deploy/overlays/controllers")


def _leading(options: PassOptions) -> Iterator[NeededRight]:
    lease = options.lease
    for verb in ("create", "get", "update"):
        name = "" if verb == "create" else lease.name
        purpose = "one pass at a time writes"
        yield NeededRight(Right("coordination.k8s.io", "leases", verb, lease.namespace, name), purpose)
    namespace, record = options.record
    purpose = "gangs are recorded before they are bound, since they may be left half-bound"
    yield NeededRight(Right("", "configmaps", "create", namespace), purpose)
    yield NeededRight(Right("", "configmaps", "update", namespace, record), purpose)
