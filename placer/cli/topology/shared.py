"""What the subcommands share: an instance in files or in a cluster, and where what is found is written."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from placer.base.errors import UsageError
from placer.cli.terminal import add_cluster, add_inputs, add_reading, tell, writable, write

if TYPE_CHECKING:
    from placer.passes.cluster import Snapshot

__all__ = ["add_source", "check_output", "in_cluster", "print_or_write", "snapshot"]


def add_source(parser: argparse.ArgumentParser) -> None:
    """Add INSTANCE, the flags of reading, and those of the cluster that is read without one."""
    add_inputs(parser, "files, folders or -; default: read the cluster", needed=False)
    add_reading(parser)
    add_cluster(parser)


def in_cluster(options: argparse.Namespace) -> bool:
    """Whether a cluster is read; together with INSTANCE it is refused."""
    if options.instance and (options.kubeconfig is not None or options.context is not None):
        raise UsageError("--kubeconfig, --context: found INSTANCE with them, expected one or the other")
    return not options.instance


def snapshot(options: argparse.Namespace) -> Snapshot:
    """Take a snapshot of the cluster."""
    from placer.answers.progress import Progress
    from placer.passes.cluster import Client, take

    client = Client.connect(options.kubeconfig, options.context)
    with Progress(quiet=options.quiet, began=options.began, limit=None) as progress:
        return take(client, options.scheduler_name or "placer", lambda name, count: progress.phase(f"{name} {count:,}"))


def print_or_write(document: Any, options: argparse.Namespace) -> bool:
    """Write or print what ``--json`` and ``-o`` ask for; whether text is still wanted."""
    if options.output is not None:
        write(document, options.output)
    if options.output == "-":
        return False
    if options.json:
        tell(document, options)
    return not options.json


def check_output(options: argparse.Namespace) -> None:
    """Refuse before the work a file that could not be written."""
    if options.output not in (None, "-"):
        writable([Path(options.output)])
