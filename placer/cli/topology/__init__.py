"""``topology``: a subcommand for each question about the network, a module for each.

Belongs here: flags and printing. Does not: the content (``placer.problem.domains``, ``placer.topology.discovery``,
``placer.topology.network_costs``).
"""

from __future__ import annotations

from typing import Any

from placer.cli.topology.costs import add_costs
from placer.cli.topology.discover import add_discover
from placer.cli.topology.show import add_show

__all__ = ["add_topology"]


def add_topology(commands: Any) -> None:
    """Add ``topology`` and its subcommands."""
    text = "show or discover the network: tier tree, HyperNodes, cost matrix"
    parser = commands.add_parser("topology", help=text, description=text[0].upper() + text[1:] + ".")
    topics = parser.add_subparsers(dest="topic", metavar="TOPIC", required=True, help="one of")
    add_show(topics)
    add_discover(topics)
    add_costs(topics)
