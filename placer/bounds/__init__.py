"""Numbers that no placement can beat, each with the name of the argument.

``counting``, also by the name ``volume``: sums and pieces of requests against all room, limits of single scopes and
neighbours. ``splits``: the least cost of AppGroups; the search of ``decomposed`` asks for it. ``lp``: all room at once,
node class by node class.
"""

from placer.bounds.call_costs import CallCosts
from placer.bounds.counting import NamedBound, bounds_for, named_bounds, weight_bound

__all__ = ["CallCosts", "NamedBound", "bounds_for", "named_bounds", "weight_bound"]
