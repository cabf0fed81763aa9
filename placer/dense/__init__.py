"""The instance by index: read-only numpy arrays for the methods, and the way back to names.

Belongs here: counting equal pods, the node order in which every HyperNode is a slice, exact scaling of amounts. Does
not: any decision (``methods``), any judgement of a placement (``verify`` and ``score`` never look here).
"""

from placer.dense.build import make_dense
from placer.dense.model import Dense, DenseGroup, DenseSubGroup, Domains, PodClass, QueueRow, Scope, Solution
from placer.dense.network import Call, DenseNetwork, Workload
from placer.dense.numa import DenseNuma
from placer.dense.score import beats, score_solution

__all__ = [
    "Call",
    "Dense",
    "DenseGroup",
    "DenseNetwork",
    "DenseNuma",
    "DenseSubGroup",
    "Domains",
    "PodClass",
    "QueueRow",
    "Scope",
    "Solution",
    "Workload",
    "beats",
    "make_dense",
    "score_solution",
]
