"""Numbers that no placement can beat, each with the name of the argument.

``volume``: the sum of one resource against all room. ``counting``: the same in pieces of one size; room if nothing else
were placed; the lowest tier and the fewest leaves that could hold a scope alone; limits by neighbours
(``neighbour_limits``). ``splits``: the least cost of AppGroups, each in its cheapest split over areas; the search of
``decomposed`` asks for it. ``lp``: all room at once, node class by node class. They show soon that an easy instance is
solved, and stop a solver that only lacks the proof. ``standalone`` counts the most pods of each class, ``call_costs``
the
least cost of calls.

Belongs here: arguments that hold for every placement, or for all with given values. Does not: anything that proposes a
placement (``methods``), why a group stays pending (``reasons``).
"""

from placer.bounds.call_costs import CallCosts
from placer.bounds.counting import NamedBound, bounds_for, named_bounds, weight_bound

__all__ = ["CallCosts", "NamedBound", "bounds_for", "named_bounds", "weight_bound"]
