"""The greedy: several orders, each a run over all groups, the best answer kept and completed.

Belongs here, lower modules first: what never changes (``layout``) and the partial solution with its counts (``state``);
``best_fit`` of equal pods; pods that call each other (``areas``, ``communicating``, ``local_search``); ``gangs`` and
what trying everything adds (``backtrack``); whole AppGroups (``app_groups``); orders, runs and repairs (``search``).
Does not: proofs, solvers.
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
