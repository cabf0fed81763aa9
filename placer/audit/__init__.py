"""What runs, whoever placed it: against the rules, against the best there is, and what the cluster has left.

Belongs here: one entry per running group (``groups``), sums over the cluster (``sums``). Does not: what waits
(``placer.explain``), how it is printed (``placer.cli``).
"""
