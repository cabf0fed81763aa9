"""The greedy: several orders, each a run over all groups, the best answer kept and completed.

Belongs here: placing gangs one after the other by numpy on slices of the tree; pods that call each other by area, then
by node, and moved in the end. Does not: proofs, solvers.
"""

from placer.methods.greedy.backtrack import Effort, force
from placer.methods.greedy.best_fit import candidates, tops
from placer.methods.greedy.gangs import Style, extend
from placer.methods.greedy.layout import GreedyLayout, least
from placer.methods.greedy.search import complete, greedy, squeeze_in
from placer.methods.greedy.state import GreedyState

__all__ = [
    "Effort",
    "GreedyLayout",
    "GreedyState",
    "Style",
    "candidates",
    "complete",
    "extend",
    "force",
    "greedy",
    "least",
    "squeeze_in",
    "tops",
]
