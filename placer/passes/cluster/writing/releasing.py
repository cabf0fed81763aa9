"""One pod released: its node in its affinity, its hold gate removed, so that its own scheduler binds it.

First ``status.nominatedNodeName``, which no tenant may write, and by which kube-scheduler keeps the room. Then one
PATCH of ``matchFields`` with the node's name in every term, and no gates; the API server allows additions to terms
alone. A gate cannot be put back; a nomination alone is removed by the fence
(:mod:`placer.passes.cluster.writing.binding`).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from placer.passes.cluster.planning.binding_plan import PlannedBinding
from placer.passes.cluster.reading.views import NODE_FIELD

__all__ = ["nomination", "release"]

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def nomination(bind: PlannedBinding, version: str) -> dict[str, Any]:
    """The strategic merge patch of the status of a pod before its release."""
    return {"metadata": _which(bind, version), "status": {"nominatedNodeName": bind.node}}


def release(bind: PlannedBinding, text: bytes, annotations: Mapping[str, str]) -> dict[str, Any]:
    """The JSON merge patch that releases a pod, given whole as ``text``, with additional annotations."""
    pod = json.loads(text)
    metadata: dict[str, Any] = _which(bind, pod["metadata"]["resourceVersion"])
    if annotations:
        metadata["annotations"] = dict(annotations)
    affinity = ((pod["spec"].get("affinity") or {}).get("nodeAffinity") or {}).get(_REQUIRED) or {}
    terms = [_narrowed(term, bind.node) for term in affinity.get("nodeSelectorTerms") or [{"matchFields": []}]]
    required = {"nodeAffinity": {_REQUIRED: {"nodeSelectorTerms": terms}}}
    return {"metadata": metadata, "spec": {"affinity": required, "schedulingGates": None}}


def _which(bind: PlannedBinding, version: str) -> dict[str, str]:
    return {"uid": bind.uid} | ({"resourceVersion": version} if version else {})


def _narrowed(term: Mapping[str, Any], node: str) -> dict[str, Any]:
    """A term that matches no other node; an empty one is kept, since it matches nothing."""
    if not term:
        return {}
    name = {"key": NODE_FIELD, "operator": "In", "values": [node]}
    fields = term.get("matchFields") or []
    return {**term, "matchFields": [*fields, *([] if name in fields else [name])]}
