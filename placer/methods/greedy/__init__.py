"""The greedy: several orders, each a run over all groups, the best answer kept and completed.

Belongs here: placing gangs one after the other by numpy on slices of the tree. Does not: proofs, solvers, moving what
is placed already.
"""

from placer.methods.greedy.complete import complete
from placer.methods.greedy.search import greedy

__all__ = ["complete", "greedy"]
