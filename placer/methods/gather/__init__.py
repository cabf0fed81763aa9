"""Exchanging pods between NUMA zones: so that pods that wait fit in, and so that kubelets admit them by age (C10).

Belongs here: what the exchanges need to know of classes and zones, and the walk. Does not: which nodes take part and
what a step is put back into (``decomposed``).
"""

from placer.methods.gather.ages import by_age
from placer.methods.gather.walk import EXCHANGE_WORK, gather

__all__ = ["EXCHANGE_WORK", "by_age", "gather"]
