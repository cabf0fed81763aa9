"""``topology discover``: HyperNodes from labels of nodes or from a fabric's own description, as manifests."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from placer.base.errors import UsageError
from placer.base.text import legible
from placer.cli import flags, printing

if TYPE_CHECKING:
    from placer.problem import Finding, Node
    from placer.topology.discovery import Discovery

SHOWN = 12  #: names that are told of each kind; --json has all


def add_discover(topics: Any) -> None:
    """Add ``topology discover`` and its flags."""
    text = "print HyperNodes made from labels of nodes, or from a description of the fabric"
    parser = flags.add_command(topics, "discover", text, _discover)
    flags.add_inputs(
        parser, "files, folders or - with the nodes; none: those of a cluster, with --from none at all", needed=False
    )
    parser.add_argument("--strict", action="store_true", help="findings are errors (exit 3)")
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--labels", metavar="KEYS", help="labels of nodes, nearest first: switch,rack,row")
    source.add_argument(
        "--from",
        dest="from_",
        metavar="FILE",
        help="output of ibnetdiscover, Slurm's topology.conf or topology.yaml, or topograph's; - is standard input",
    )
    parser.add_argument(
        "--topology", metavar="NAME", help="which one counts of a FILE with several; tree or block of a topology.conf"
    )
    flags.add_cluster(parser)
    group = parser.add_argument_group("writing into the cluster")
    group.add_argument(
        "--apply", action="store_true", help="write the HyperNodes into the cluster, by server-side apply"
    )
    group.add_argument("--dry-run", action="store_true", help="with --apply: print the changes, and write nothing")
    group.add_argument(
        "--prune",
        action="store_true",
        help="with --apply: remove HyperNodes that placer made and does not find any more",
    )
    group.add_argument(
        "--force-conflicts", action="store_true", help="with --apply: take over fields that another manager owns"
    )
    flags.add_output(parser, "the HyperNodes: .json, .yaml, each also .gz; default standard output")


def _discover(options: argparse.Namespace) -> int:
    from placer.problem.reading import refuse_findings
    from placer.topology.discovery import hyper_nodes

    _check(options)
    nodes, noted = _nodes(options)
    found = _find(options, nodes)
    documents, named = hyper_nodes(found)
    findings = (*noted, *found.findings, *named)
    if options.strict:
        refuse_findings(options.instance or [options.from_ or "cluster"], findings)
    for told in (*findings, *found.notes):
        print(f"placer: {legible(str(told))}", file=sys.stderr)
    if options.apply:
        _apply(documents, nodes or {}, findings, options)
    else:
        printing.put(documents, options)
    return flags.OK


def _check(options: argparse.Namespace) -> None:
    from placer.topology.discovery.labels import read_keys

    if options.output not in (None, "-"):
        printing.writable([Path(options.output)])
    if options.labels is not None:
        read_keys(options.labels)
        if options.topology is not None:
            raise UsageError(f"--topology: found {options.topology!r} with --labels, expected it with --from")
    _check_applying(options)


def _check_applying(options: argparse.Namespace) -> None:
    beside = ("dry_run", "prune", "force_conflicts")
    alone = [f"--{name.replace('_', '-')}" for name in beside if getattr(options, name)]
    if alone and not options.apply:
        raise UsageError(f"{', '.join(alone)}: found no --apply with it, expected it")
    if options.apply and options.instance:
        raise UsageError("--apply: found INSTANCE with it, expected no INSTANCE: the nodes are those of the cluster")
    if options.apply and options.output == "-":
        raise UsageError("-o - --apply: found two documents for standard output, expected one")


def _apply(
    documents: Sequence[Mapping[str, Any]],
    nodes: Mapping[str, Node],
    findings: Sequence[Finding],
    options: argparse.Namespace,
) -> None:
    from placer.passes.cluster import Client
    from placer.passes.cluster.planning.hyper_nodes import plan_hyper_nodes
    from placer.passes.cluster.writing.hyper_nodes import stored_hyper_nodes, write_hyper_nodes

    if options.output is not None:
        printing.write(documents, options.output)
    client = Client.connect(options.kubeconfig, options.context)
    plan = plan_hyper_nodes(documents, stored_hyper_nodes(client), nodes, prune=options.prune)
    if not options.dry_run:
        write_hyper_nodes(client, plan, force=options.force_conflicts)
    document = {
        **plan.as_dict(),
        "dryRun": options.dry_run,
        "findings": [each.as_dict() for each in findings],
    }
    if options.json:
        printing.tell(printing.headed("HyperNodeChanges", document), options)
    else:
        _summarise(plan.as_dict(), options)


def _summarise(done: Mapping[str, Any], options: argparse.Namespace) -> None:
    for word in ("created", "changed", "removed", "left"):
        names = done[word]
        more = f" and {len(names) - SHOWN:,} more" if len(names) > SHOWN else ""
        told = f": {', '.join(names[:SHOWN])}{more}" if names else ""
        hint = " (found no longer; --prune removes them)" if word == "left" and names else ""
        if names or word != "left":
            print(f"{word:<9}  {len(names):,}{told}{hint}")
    print(f"unchanged  {done['unchanged']:,}")
    if options.dry_run:
        print("nothing is written (--dry-run)")


def _find(options: argparse.Namespace, nodes: Mapping[str, Node] | None) -> Discovery:
    from placer.topology.discovery import discover_file, discover_labels
    from placer.topology.discovery.labels import read_keys

    if options.from_ is not None:
        return discover_file(options.from_, nodes, options.topology)
    return discover_labels(read_keys(options.labels), nodes or {}, ", ".join(options.instance) or "cluster")


def _nodes(options: argparse.Namespace) -> tuple[Mapping[str, Node] | None, tuple[Finding, ...]]:
    whose = options.instance or options.apply or options.kubeconfig is not None or options.context is not None
    if options.from_ is not None and not whose:
        return None, ()
    if flags.in_cluster(options):
        from placer.passes.cluster import Client
        from placer.passes.cluster.writing.hyper_nodes import labelled_nodes

        return labelled_nodes(Client.connect(options.kubeconfig, options.context)), ()
    from placer.kube.manifests import load
    from placer.problem.findings import Findings
    from placer.problem.instance_builder import read_nodes
    from placer.problem.notices import note_ignored

    objects = load(options.instance)
    findings = Findings()
    note_ignored(objects, findings)
    return read_nodes(objects.nodes), findings.all()
