"""The instance by index: read-only numpy arrays for the methods, and the way back to names.

Belongs here: counting equal pods, the node order in which every HyperNode is a slice, exact scaling of amounts. Does
not: any decision (``methods``), any judgement of a placement (``verify`` and ``score`` never look here).
``placer.dense.dense_builder`` makes the arrays of an instance; ``placer.dense.numa`` has the kubelets.
"""

from placer.dense.model import (
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
from placer.dense.network import Call, DenseNetwork, Workload
from placer.dense.solution import Counts, Solution, placed_by_class

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
