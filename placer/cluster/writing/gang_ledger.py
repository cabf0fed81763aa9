"""The record of half-bound gangs written into its ConfigMap (:mod:`placer.cluster.reading.gang_record`)."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

from placer.cluster.reading.client import Response, Unanswered, Writer
from placer.cluster.reading.gang_record import (
    GangRecord,
    RecordedDisruption,
    RecordedGangs,
    RejectedWorkload,
    UnansweredPods,
    packed,
    read_record,
    record_path,
)
from placer.cluster.reading.views import Workload
from placer.errors import ClusterError
from placer.instance import GroupKey

__all__ = ["write_record"]

#: Seconds between tries, and to wait for an answer: without a record nothing is bound, so it is tried for a while.
_PAUSES = (0.2, 0.5, 1.0, 2.0)
_PATIENCE = 5.0


def write_record(
    server: Writer,
    namespace: str,
    name: str,
    before: RecordedGangs,
    gangs: Mapping[GroupKey, GangRecord],
    workloads: Mapping[Workload, RejectedWorkload] = MappingProxyType({}),
    disruption: RecordedDisruption | None = None,
    unanswered: UnansweredPods | None = None,
) -> RecordedGangs:
    """Write what is recorded; nothing where it is so already.

    Parameters
    ----------
    server
        Where.
    namespace, name
        Of the ConfigMap.
    before
        The record as it was read or written last.
    gangs, workloads, disruption, unanswered
        What is to be recorded; of the last two by default what is so already.

    Raises
    ------
    ClusterError
        The server refuses, or does not answer; or another has written to it meanwhile, which the next pass reads.
    """
    disturbed = before.disruption if disruption is None else disruption
    silent = before.unanswered if unanswered is None else unanswered
    wanted = RecordedGangs(dict(gangs), before.version, dict(workloads), disturbed, silent)
    return before if wanted == before else _written(server, namespace, name, before, wanted)


def _written(server: Writer, namespace: str, name: str, before: RecordedGangs, wanted: RecordedGangs) -> RecordedGangs:
    """Write until it is known that it is done. Where that is in doubt, what is there by now tells."""
    data = packed(wanted.gangs, wanted.workloads, wanted.disruption, wanted.unanswered)
    trouble, version = "", before.version
    for pause in (*_PAUSES, 0.0):
        try:
            answer = server.send(*_request(namespace, name, version, data), timeout=_PATIENCE)
            written = _version(answer) if answer.status in (200, 201) else ""
            if written:
                return replace(wanted, version=written)
            trouble = f"{answer.status} {answer.message}"
            if answer.status in (200, 201, 409) or (answer.status == 404 and version):
                there = read_record(server, namespace, name)
                if _says(there, wanted):
                    return there
                if not _says(there, before):
                    trouble = "another has written it meanwhile"
                    break
                version = there.version
            elif answer.status < 500 and answer.status != 429:
                break
        except Unanswered as error:
            trouble = str(error)
        time.sleep(pause)
    raise ClusterError(f"ConfigMap {namespace}/{name}, the record of half-bound gangs: {trouble}")


def _version(answer: Response) -> str:
    """The resourceVersion of what was written; empty where the answer does not say it."""
    try:
        return str(json.loads(answer.text)["metadata"]["resourceVersion"])
    except (ValueError, KeyError, TypeError):
        return ""


def _says(there: RecordedGangs, other: RecordedGangs) -> bool:
    """Whether one record says what another does."""
    return replace(there, version="") == replace(other, version="")


def _request(namespace: str, name: str, version: str, data: Mapping[str, str]) -> tuple[str, str, dict[str, object]]:
    metadata = {"name": name, "namespace": namespace} | ({"resourceVersion": version} if version else {})
    body: dict[str, object] = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}
    body["binaryData"] = data
    return ("PUT", record_path(namespace, name), body) if version else ("POST", record_path(namespace), body)
