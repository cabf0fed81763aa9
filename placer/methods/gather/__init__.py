"""Gathering room in one NUMA zone after the other by exchanging pods, so that pods that wait fit in (C10).

Belongs here: what the exchanges need to know of classes and zones, and the walk. Does not: which nodes take part and
what a step is put back into (``decomposed``).
"""

from placer.methods.gather.walk import EXCHANGE_WORK, gather

__all__ = ["EXCHANGE_WORK", "gather"]
