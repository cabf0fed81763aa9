"""A partial solution that methods move: what is placed, the room that is left, and the way back.

Belongs here: counts of classes on nodes; room of nodes, host ports, queues, links and NUMA zones; the calls between
placed pods; ``take`` and ``undo``; which pods may be moved. A rule of room or of neighbours has its place here, once.
Does not: any choice of what is placed where (``greedy``, ``decomposed``).
"""

from placer.methods.partial.partial_solution import Mobility, PartialSolution, SharedRoom
from placer.methods.partial.placed_calls import LIMITLESS, CallGraph, Communication, Partner

__all__ = ["LIMITLESS", "CallGraph", "Communication", "Mobility", "PartialSolution", "Partner", "SharedRoom"]
