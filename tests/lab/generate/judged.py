"""Generated documents as the judge sees them: no finding, and a planted placement that keeps all rules."""

from __future__ import annotations

from collections import Counter
from typing import Any

from placer.lab.generate import Generated
from placer.problem import Instance
from placer.problem.placement import Placement
from placer.rules import verify
from tests.support import instance_of

GPU = "nvidia.com/gpu"


def of_kind(made: Generated, kind: str) -> list[dict[str, Any]]:
    return [document for document in made.documents if document["kind"] == kind]


def name(document: dict[str, Any]) -> str:
    return str(document["metadata"]["name"])


def judged(made: Generated) -> tuple[Instance, Placement]:
    """The instance and its planted placement."""
    instance, placement = instance_of(*made.documents), Placement.of(made.planted or {})
    assert instance.findings == ()
    assert verify(instance, placement) == []
    assert len(placement.bindings) == made.summary.get("podsPlanted", len(placement.bindings))
    return instance, placement


def used(instance: Instance, placement: Placement, resource: str = GPU) -> Counter[str]:
    """Node to what pods have of a resource, those that run and those that are planted."""
    found = Counter[str]()
    for key, pod in instance.pods.items():
        node = pod.node or placement.node_of.get(key)
        if node is not None and pod.requests[resource]:
            found[node] += pod.requests[resource]
    return found
