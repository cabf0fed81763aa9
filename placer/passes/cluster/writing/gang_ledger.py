"""The record of half-bound gangs written into its ConfigMap (:mod:`placer.passes.cluster.reading.gang_record`)."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import replace

from placer.base.errors import ClusterError
from placer.passes.cluster.reading.client import Response, Unanswered, Writer
from placer.passes.cluster.reading.gang_record import RecordedGangs, fitted, read_record, record_path

__all__ = ["write_record"]

#: Seconds between tries, and to wait for an answer: without a record nothing is bound, so it is tried for a while.
_PAUSES = (0.2, 0.5, 1.0, 2.0)
_PATIENCE = 5.0
#: Seconds after which nothing is tried again, also where the server wants to be asked later.
_LONGEST = 30.0
#: Answers after which what is there has to be read.
_IN_DOUBT = (200, 201, 404, 409)
#: Answers after which the same may be taken a little later.
_AGAIN = frozenset((429, *range(500, 600)))


def write_record(
    server: Writer, namespace: str, name: str, before: RecordedGangs, wanted: RecordedGangs
) -> RecordedGangs:
    """Write the record, unless it is so already.

    Returns
    -------
    RecordedGangs
        The written record; ``dropped`` counts entries for which there was no room.

    Raises
    ------
    ClusterError
        The server refuses or does not answer, or another has written to it, which the next pass reads.
    """
    wanted = replace(wanted, unread=(), dropped={}, size=0)
    if wanted == before:
        return before
    wanted, data = fitted(wanted)
    if wanted == before:  # what is new has no room
        return replace(before, dropped=wanted.dropped)
    return _written(server, namespace, name, before, wanted, data)


def _written(
    server: Writer, namespace: str, name: str, before: RecordedGangs, wanted: RecordedGangs, data: Mapping[str, str]
) -> RecordedGangs:
    trouble, version, until = "", before.version, time.monotonic() + _LONGEST
    for pause in (*_PAUSES, _LONGEST):  # none after the last try
        wait = pause
        try:
            answer = server.send(*_request(namespace, name, version, data), timeout=_PATIENCE)
            if written := _version(answer):
                return replace(wanted, version=written)
            trouble, wait = f"{answer.status} {answer.message}", max(filter(None, (pause, answer.again_after)))
            if answer.status in _IN_DOUBT and (version or answer.status != 404):
                there = read_record(server, namespace, name)
                version = there.version
                if _says(there, wanted):
                    return replace(wanted, version=version)
                if not _says(there, before):
                    raise _refused(namespace, name, "another has written it meanwhile")
            elif answer.status not in _AGAIN:
                break
        except Unanswered as error:
            trouble = str(error)
        if time.monotonic() + wait > until:
            break  # to ask earlier than the server wants would not help
        time.sleep(wait)
    raise _refused(namespace, name, trouble)


def _refused(namespace: str, name: str, trouble: str) -> ClusterError:
    return ClusterError(f"ConfigMap {namespace}/{name}, the record of half-bound gangs: {trouble}")


def _version(answer: Response) -> str:
    if answer.status not in (200, 201):
        return ""
    try:
        return str(json.loads(answer.text)["metadata"]["resourceVersion"])
    except (ValueError, KeyError, TypeError):
        return ""


def _says(there: RecordedGangs, other: RecordedGangs) -> bool:
    return replace(there, version="") == replace(other, version="")


def _request(namespace: str, name: str, version: str, data: Mapping[str, str]) -> tuple[str, str, dict[str, object]]:
    metadata = {"name": name, "namespace": namespace} | ({"resourceVersion": version} if version else {})
    body: dict[str, object] = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}
    body["binaryData"] = data
    return ("PUT", record_path(namespace, name), body) if version else ("POST", record_path(namespace), body)
