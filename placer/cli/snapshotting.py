"""``snapshot``: the cluster's objects in a file, to be solved, explained or sent to others."""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from placer.cli import flags, printing
from placer.passes.configuration import OPTIONS

if TYPE_CHECKING:
    from placer.passes.cluster import Client, Snapshot
    from placer.passes.cluster.reading.gang_record import RecordedGangs
    from placer.passes.cluster.writing.lease import LeaseOptions


def add_snapshot(commands: Any) -> None:
    """Add ``snapshot`` and its flags."""
    parser = flags.add_command(commands, "snapshot", "write the cluster's objects, as an instance", _snapshot)
    flags.add_cluster(parser)
    parser.add_argument(
        "--scheduler-name",
        metavar="NAME",
        default="*",
        help="whose pending pods are ours (default '*': any scheduler's)",
    )
    parser.add_argument("--strict", action="store_true", help="findings are errors (exit 3): nothing is written")
    parser.add_argument(
        "--anonymize",
        action="store_true",
        help="replace every name, label value and reference by another one; the decision is the same",
    )
    OPTIONS["cool_down"].add_to(parser)
    add_lease(parser)
    flags.add_output(parser, f"{', '.join(printing.ENDINGS)}; default standard output", "-")


def add_lease(parser: Any) -> None:
    """Add the flags of the Lease, and so of the record of half-bound gangs; ``--help`` leaves them out."""
    for name in ("leader_elect_resource_namespace", "leader_elect_resource_name"):
        OPTIONS[name].add_to(parser)


def lease_of(options: argparse.Namespace) -> LeaseOptions:
    """The Lease: one for all that may place pods on the same nodes."""
    from placer.passes.cluster.reading.client import own_namespace
    from placer.passes.cluster.writing.lease import LeaseOptions

    default = LeaseOptions()
    namespace = options.leader_elect_resource_namespace or own_namespace() or default.namespace
    return LeaseOptions(namespace, options.leader_elect_resource_name or default.name)


def _recorded(client: Client, options: argparse.Namespace) -> RecordedGangs:
    from placer.passes.cluster.reading.client import Forbidden
    from placer.passes.cluster.reading.gang_record import RecordedGangs, read_record, record_name, record_troubles

    lease = lease_of(options)
    where = lease.namespace, record_name(lease.name)
    try:
        found = read_record(client, *where)
    except Forbidden as error:
        print(f"placer: gangs that are half-bound are not marked: {error}", file=sys.stderr)
        return RecordedGangs()
    for trouble in record_troubles(found, *where):
        print(f"placer: {trouble}", file=sys.stderr)
    return found


def _snapshot(options: argparse.Namespace) -> int:
    from placer.passes.cluster import Client, anonymized, take
    from placer.passes.cluster.reading.client import server_time
    from placer.passes.cluster.reading.earlier_passes import marked
    from placer.passes.cluster.reading.rejections import (
        cooling_nodes,
        failed_pods,
        kept_off,
        of_ours,
        remembered,
        waiting_workloads,
    )

    printing.writable([Path(options.output)] if options.output != "-" else [])
    client = Client.connect(options.kubeconfig, options.context)
    with printing.progress_of(options) as progress:
        failed = failed_pods(client, options.scheduler_name, options.cool_down)
        taken = take(client, options.scheduler_name, lambda name, count: progress.phase(f"{name} {count:,}"))
        record, now = _recorded(client, options), server_time(client)
        workloads = remembered(record.workloads, of_ours(failed, record), options.cool_down, now)
        cooling = cooling_nodes(workloads, options.cool_down, now)
        waiting, apart = waiting_workloads(workloads, now), kept_off(workloads, cooling)
        snapshot = marked(taken, cooling, record.gangs, now, waiting, apart)
        if options.strict:
            _refuse_findings(snapshot)
        if options.anonymize:
            progress.phase("replacing names")
            snapshot = anonymized(snapshot)
        progress.phase("writing")
        _write(snapshot, options.output)
    if options.output != "-":
        _summarise(snapshot, options)
    return flags.OK


def _refuse_findings(snapshot: Snapshot) -> None:
    from placer.passes.cluster.reading.earlier_passes import instance_in
    from placer.problem.reading import refuse_findings

    refuse_findings(["cluster"], instance_in(snapshot).findings)


def _write(snapshot: Snapshot, target: str) -> None:
    """Write JSON as it came, anything else by way of its values: so too where a terminal would obey what came."""
    if target == "-" and not sys.stdout.isatty():
        snapshot.write_text(sys.stdout.buffer)
        sys.stdout.flush()
    elif target.removesuffix(".gz").endswith(".json"):
        with printing.written(target):
            snapshot.write(target)
    else:
        printing.write(json.loads(snapshot.text().data), target)


def _summarise(snapshot: Snapshot, options: argparse.Namespace) -> None:
    counts = {resource: count for resource, count in snapshot.counts.items() if count}
    seconds = round(time.monotonic() - options.began, 1)
    if options.json:
        document = {"file": options.output, "schedulerName": snapshot.scheduler_name, "objects": counts}
        document |= {"resourceVersions": dict(snapshot.versions), "seconds": seconds}
        printing.tell(printing.headed("SnapshotSummary", document), options, [options.output])
    else:
        told = ", ".join(f"{resource} {count:,}" for resource, count in counts.items()) or "nothing"
        print(f"{options.output}: {told}; {seconds} s")
