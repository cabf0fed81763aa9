"""Where ``explain`` and ``audit`` read from: files, or a cluster in place of them."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from io import BytesIO
from typing import TYPE_CHECKING

from placer.cli.snapshotting import add_cluster
from placer.errors import UsageError
from placer.terminal import add_reading

if TYPE_CHECKING:
    from placer.instance.namespace_budget import NamespaceBudget
    from placer.manifests import Text

__all__ = ["SECONDS", "add_source", "namespace_budget", "source"]

SECONDS = 60.0  #: of the whole call where no limit is given


def add_source(parser: argparse.ArgumentParser) -> None:
    """Add INSTANCE, the flags of reading, and those of the cluster that is read without one."""
    parser.add_argument(
        "instance", nargs="*", metavar="INSTANCE", help="files, folders or -; default: read the cluster"
    )
    add_reading(parser, lenient=True)
    add_cluster(parser)


def source(options: argparse.Namespace) -> Sequence[str | Text]:
    """What is read: files, or the cluster's snapshot, with the pods of any scheduler, where none are given.

    Raises
    ------
    UsageError
        Files and a cluster are named both.
    ClusterError
        The cluster does not answer.
    """
    named = options.kubeconfig is not None or options.context is not None
    if options.instance:
        if named:
            raise UsageError("--kubeconfig, --context: found INSTANCE with them, expected one or the other")
        return list(options.instance)
    from placer.cluster import Client, take
    from placer.instance import ANY_SCHEDULER
    from placer.manifests import Text
    from placer.progress import Progress

    client = Client.connect(options.kubeconfig, options.context)
    with Progress(quiet=options.quiet, began=options.began, limit=None) as progress:
        name = options.scheduler_name or ANY_SCHEDULER
        taken = take(client, name, lambda what, count: progress.phase(f"{what} {count:,}"))
    text = BytesIO()
    taken.write_text(text)
    return [Text("cluster", text.getvalue())]


def namespace_budget(words: str, name: str = "--namespace-budget") -> NamespaceBudget | None:
    """The budget that an option states.

    Raises
    ------
    UsageError
        It does not parse.
    """
    from placer.instance.namespace_budget import parse_budget

    try:
        return parse_budget(words)
    except ValueError as error:
        raise UsageError(f"{name}: {error}") from error
