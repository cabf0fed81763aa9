"""``topology``: a module for each question about the network.

Belongs here: printing. Does not: the content (``placer.problem.domains``, ``placer.topology.discovery``,
``placer.topology.network_costs``), flags (``placer.cli.commands``).
"""
