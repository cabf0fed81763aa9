"""Status of a HyperNode: how many nodes are in it at any depth, and whether it is sound.

Unlike Volcano's controller (1.15.1, ``pkg/controllers/hypernode``) it counts nodes, not members.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from placer.problem import Finding, Instance
from placer.topology.controllers.times import timestamp

CONSISTENT = "placer.dev/Consistent"
_MESSAGE = 1000

Document = Mapping[str, Any]


def hyper_node_statuses(written: Iterable[Document], instance: Instance, now: datetime) -> dict[str, dict[str, Any]]:
    """HyperNode to its status; ``written`` are the objects as JSON, ``now`` has a time zone.

    The condition ``placer.dev/Consistent`` has the code of the first finding, or ``BrokenBelow``.
    """
    tree, counts = instance.topology, Counter[str]()
    for each in tree.hyper_nodes.values():
        counts.update(dict.fromkeys(tree.paths[each.name], len(each.nodes)))
    found: defaultdict[str, list[Finding]] = defaultdict(list)
    for finding in sorted(instance.findings):
        found[finding.object].append(finding)
    statuses: dict[str, dict[str, Any]] = {}
    for document in written:
        name = document["metadata"]["name"]
        count = {"nodeCount": counts[name]} if name in tree.hyper_nodes else {}
        condition = _condition(found[f"HyperNode {name}"], is_whole=bool(count))
        statuses[name] = count | {"conditions": [_with_time(condition, document, now)]}
    return statuses


def _condition(findings: Iterable[Finding], *, is_whole: bool) -> dict[str, str]:
    said, reason = list(findings), ""
    if said:
        reason, message = said[0].code, "; ".join(each.message for each in said)[:_MESSAGE]
    elif not is_whole:
        reason, message = "BrokenBelow", "left out of the tree with a HyperNode below it, whose condition says why"
    else:
        return {"type": CONSISTENT, "status": "True", "reason": "Consistent", "message": ""}
    return {"type": CONSISTENT, "status": "False", "reason": reason, "message": message}


def _with_time(condition: dict[str, str], written: Document, now: datetime) -> dict[str, str]:
    conditions = (written.get("status") or {}).get("conditions") or ()
    before = next((each for each in conditions if each["type"] == CONSISTENT), None)
    kept = before is not None and before["status"] == condition["status"]
    since = before["lastTransitionTime"] if before is not None and kept else timestamp(now)
    return {**condition, "lastTransitionTime": since}
