"""The instance by index: read-only numpy arrays for the methods, and the way back to names.

Decisions are made in ``methods`` and judged by ``verify`` and ``score``, which never look here.
"""

from placer.arrays.model import (
    Dense,
    DenseGroup,
    DenseScope,
    DenseSubGroup,
    Domains,
    PodClass,
    QueueRow,
    beats,
    ready,
    score_solution,
)
from placer.arrays.network import Call, DenseNetwork, Workload
from placer.arrays.solution import Counts, Solution, placed_by_class

__all__ = [
    "Call",
    "Counts",
    "Dense",
    "DenseGroup",
    "DenseNetwork",
    "DenseScope",
    "DenseSubGroup",
    "Domains",
    "PodClass",
    "QueueRow",
    "Solution",
    "Workload",
    "beats",
    "placed_by_class",
    "ready",
    "score_solution",
]
