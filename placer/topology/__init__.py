"""What ``placer topology`` tells: a module per subcommand, each from files to a report that is plain values.

Belongs here: putting together what a person asks about the network of an instance. Does not: flags and printing
(``cli``), what costs mean (``instance.network``), what is computed from measurements (``controllers``).
"""

from placer.topology.costs import CostReport, Matrix, costs_of, read_costs

__all__ = ["CostReport", "Matrix", "costs_of", "read_costs"]
