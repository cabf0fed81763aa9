"""``snapshot``: the cluster's objects in a file, to be solved, explained or sent to others."""

from __future__ import annotations

import argparse
import json
import sys
import time

from placer.cli import flags, printing
from placer.cli.pass_flags import lease_of
from placer.passes.cluster import Client, Snapshot, anonymized, take
from placer.passes.cluster.reading.client import Forbidden, server_time
from placer.passes.cluster.reading.earlier_passes import instance_in, marked
from placer.passes.cluster.reading.gang_record import RecordedGangs, read_record, record_name, record_troubles
from placer.passes.cluster.reading.rejections import (
    cooling_nodes,
    failed_pods,
    kept_off,
    of_ours,
    remembered,
    waiting_workloads,
)
from placer.problem.reading import refuse_findings


def _recorded(client: Client, options: argparse.Namespace) -> RecordedGangs:
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


def run(options: argparse.Namespace) -> int:
    """Carry out ``snapshot``."""
    printing.check_output(options)
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
