"""What runs, against the rules and the best there is, and the amounts that the cluster has left.

Belongs here: entries per running group, sums. Does not: what waits (``placer.explain``), printing (``placer.cli``).
"""
