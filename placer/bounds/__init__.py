"""Numbers that no placement can beat, each with the name of the argument.

``volume``: what is asked in all of one resource against the room in all. ``counting``: the same in pieces of one size;
what would have room if nothing else were placed; the lowest tier and the fewest leaves that could hold a scope alone.
What neighbours let in at most (``neighbour_limits``) belongs to it.
``splits``: what AppGroups cost at least, each in its cheapest split over areas; the search of ``decomposed`` asks for
it. ``lp``, in a module of its own: all room at once, node class by node class. They need no search, say soon that an
easy instance is solved, and stop a solver that only lacks the proof. What they count with: how many pods of each class
can be placed at most (``standalone``), what calls cost at least (``call_costs``).

Belongs here: arguments that hold for every placement, or for all with given values. Does not: anything that proposes a
placement (``methods``), why a group stays pending (``reasons``).
"""

from placer.bounds.call_costs import CallCosts
from placer.bounds.counting import NamedBound, bounds_for, named_bounds, weight_bound

__all__ = ["CallCosts", "NamedBound", "bounds_for", "named_bounds", "weight_bound"]
