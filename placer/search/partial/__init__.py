"""A partial solution that methods move: what is placed, the room that is left, and the way back.

A rule of room or of neighbours has its place here, once.
"""

from placer.search.partial.partial_solution import Mobility, PartialSolution, SharedRoom
from placer.search.partial.placed_calls import LIMITLESS, CallGraph, Communication, Partner

__all__ = ["LIMITLESS", "CallGraph", "Communication", "Mobility", "PartialSolution", "Partner", "SharedRoom"]
