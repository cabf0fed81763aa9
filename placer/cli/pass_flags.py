"""The flags of ``run``, ``check`` and ``config``, and the file in their place (:mod:`placer.configuration`).

A given flag goes before the file, the file before the flag's default.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from placer.cli.snapshotting import add_cooling, add_lease, lease_of
from placer.cli.sources import METHOD_HELP, namespace_budget
from placer.deadline import duration
from placer.errors import UsageError
from placer.methods import METHODS
from placer.terminal import add_cluster

if TYPE_CHECKING:
    from placer.scheduling_pass import PassOptions

__all__ = ["Origin", "add_pass_flags", "configured", "pass_options", "values_of_keys"]

#: Flags that are no keys: where the keys are, and what is printed.
_NO_KEYS = ("help", "json", "quiet", "config")


class Origin(NamedTuple):
    """Where a value comes from (``flag``, ``file``, ``environment`` or ``default``) and its name there."""

    source: str
    name: str


def add_pass_flags(parser: argparse.ArgumentParser) -> None:
    """Add every flag of a pass."""
    parser.add_argument(
        "--config",
        metavar="FILE",
        help="a file with these options as keys (timeLimit); options of the command line override it",
    )
    add_cluster(parser)
    parser.add_argument(
        "--scheduler-name",
        metavar="NAME",
        default="placer",
        help="whose pending pods are ours; '*', any scheduler's, only with --dry-run (default placer)",
    )
    parser.add_argument("--strict", action="store_true", help="findings are errors (exit 3): nothing is bound")
    search = parser.add_argument_group("searching")
    search.add_argument("--method", choices=METHODS, metavar="METHOD", default="auto", help=METHOD_HELP)
    search.add_argument(
        "--time-limit", type=duration, default=20.0, metavar="DURATION", help="until the first binding (default 20)"
    )
    search.add_argument(
        "--namespace-budget",
        default="default",
        metavar="BUDGET",
        help="budget of each namespace: terms=N,resources=N,bytes=N, default or off",
    )
    search.add_argument("--workers", type=int, metavar="N", help="solver threads (default: the cores there are)")
    search.add_argument("--seed", type=int, default=0, metavar="N", help="default 0")
    _add_binding(parser.add_argument_group("binding"))
    _add_guards(parser.add_argument_group("guards"))
    _add_disrupting(parser.add_argument_group("making room"))
    add_lease(parser.add_argument_group("leader election"))
    _add_telling(parser.add_argument_group("telling"))
    parser.add_argument(
        "--every",
        metavar="DURATION",
        help="pass after pass: when something has changed, and at least so often (10s, 1m30s); default: one pass",
    )
    parser.add_argument(
        "--metrics-bind-address",
        metavar="ADDRESS",
        help="with --every: where /metrics, /livez and /readyz are answered (:8080); default: nowhere",
    )
    parser.add_argument(
        "--report-bind-address",
        metavar="ADDRESS",
        help="with --every: where /report shows the last pass (127.0.0.1:8090, for kubectl port-forward). "
        "The page names the objects of every namespace, and asks nobody who they are; default: nowhere",
    )
    parser.add_argument(
        "--enforce",
        choices=("bind", "gates"),
        default="bind",
        help="gates: decide for pods with the gate placer.dev/hold, too, and let their own scheduler bind them there",
    )
    keys = [each for each in parser._actions if each.dest not in _NO_KEYS]
    parser.set_defaults(defaults_of_keys={each.dest: each.default for each in keys})
    for each in keys:  # so that it is seen which were given
        each.default = argparse.SUPPRESS


def configured(options: argparse.Namespace) -> argparse.Namespace:
    """Fill in the file and defaults, and ``origins``; all faults of file and flags are one :class:`UsageError`."""
    from placer.configuration import key_of, read_configuration, wrong_values

    defaults: dict[str, Any] = options.defaults_of_keys
    given = {name: value for name, value in vars(options).items() if name in defaults}
    written, faults = read_configuration(options.config) if options.config is not None else ({}, [])
    faults += [f"{_flag(name)}: {text}" for name, text in wrong_values(given)]
    if faults:
        raise UsageError("; ".join(faults) if options.config is None else "\n  ".join(faults))
    origins = {
        name: Origin("flag", _flag(name))
        if name in given
        else Origin("file", f"{options.config}: {key_of(name)}")
        if name in written
        else _default_origin(name)
        for name in defaults
    }
    return argparse.Namespace(**{**vars(options), **defaults, **written, **given}, origins=origins)


def _flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def _default_origin(name: str) -> Origin:
    from placer.cluster.reading.client import own_namespace

    if name == "kubeconfig" and os.environ.get("KUBECONFIG"):
        return Origin("environment", "KUBECONFIG")
    if name == "leader_elect_resource_namespace" and own_namespace() is not None:
        return Origin("environment", "the pod's namespace")
    return Origin("default", _flag(name))


def values_of_keys(options: argparse.Namespace) -> dict[str, Any]:
    """The value of each key that counts, as :func:`configured` gives the options."""
    from placer.configuration import key_of

    return {key_of(name): _holding(options, name) for name in options.origins}


def _holding(options: argparse.Namespace, name: str) -> Any:
    from placer.cores import usable_cores

    value = getattr(options, name)
    if name == "leader_elect_resource_namespace":
        return lease_of(options).namespace
    if name == "leader_elect_resource_name":
        return lease_of(options).name
    if name == "kubeconfig" and options.origins[name].source == "environment":
        return os.environ["KUBECONFIG"]
    if name == "workers" and value is None:
        return usable_cores()
    if value == float("inf"):
        return "inf"
    return None if value == "" else value


def _add_binding(group: Any) -> None:
    group.add_argument(
        "--dry-run",
        nargs="?",
        const="client",
        default="",
        choices=("client", "server"),
        help="write nothing; =server: let the server try each binding and keep none",
    )
    group.add_argument("--bind-workers", type=int, default=16, metavar="N", help="bindings at a time (default 16)")
    group.add_argument(
        "--gang-grace",
        type=duration,
        default=30.0,
        metavar="DURATION",
        help="how long a gang may go without another of its pods being bound, before it is given up (default 30)",
    )
    group.add_argument(
        "--half-bound-patience",
        type=duration,
        default=300.0,
        metavar="DURATION",
        help="how long a gang may be half-bound before its bound pods are deleted; inf: for ever (default 300)",
    )
    group.add_argument(
        "--roll-back", action="store_true", help="the same as --half-bound-patience 0: at the end of the pass"
    )
    group.add_argument(
        "--settle",
        type=duration,
        default=5.0,
        metavar="DURATION",
        help="most seconds that a pass without --every waits for kubelets at the end (default 5)",
    )
    add_cooling(group)
    group.add_argument(
        "--inqueue",
        action="store_true",
        help="move Pending PodGroups of our pods and Volcano jobs to Inqueue first; not where vc-scheduler runs",
    )


def _add_guards(group: Any) -> None:
    group.add_argument(
        "--namespaces", type=_names, metavar="NAME,...", help="place pods of these namespaces alone (default all)"
    )
    group.add_argument(
        "--node-selector",
        metavar="SELECTOR",
        help="bind to nodes with these labels alone, as kubectl takes them: pool=batch,!spare (default all)",
    )
    group.add_argument(
        "--max-bindings", type=int, metavar="N", help="most pods bound in a pass, in whole gangs (default any number)"
    )


def _add_disrupting(group: Any) -> None:
    group.add_argument(
        "--max-evictions-per-hour",
        type=int,
        default=0,
        metavar="N",
        help="most pods evicted or moved within an hour, where the Policy's disruption has it so (default 0: none)",
    )
    group.add_argument(
        "--gone-within",
        type=duration,
        default=30.0,
        metavar="DURATION",
        help="how long a pass waits until evicted pods are gone, and moved ones were made again (default 30)",
    )
    group.add_argument(
        "--hold-room",
        type=duration,
        default=600.0,
        metavar="DURATION",
        help="how long room that was made is held for its gang by the passes that follow (default 600)",
    )


def _names(text: str) -> list[str]:
    return [each.strip() for each in text.split(",")]


def _add_telling(group: Any) -> None:
    group.add_argument(
        "--no-conditions", action="store_true", help="leave conditions of pods and of Kubernetes' PodGroups alone"
    )
    group.add_argument("--no-events", action="store_true", help="write no Events")
    group.add_argument(
        "--no-group-status", action="store_true", help="leave Volcano's PodGroups alone, as where vc-scheduler runs"
    )
    group.add_argument(
        "--tell-limit",
        type=duration,
        default=20.0,
        metavar="DURATION",
        help="most seconds for all of this; the next pass writes the rest (default 20)",
    )
    group.add_argument(
        "--controllers",
        type=_names,
        metavar="KIND,...",
        help="write in place of controllers of AppGroup, NetworkTopology, HyperNode (default: of none)",
    )
    group.add_argument(
        "--save", metavar="FOLDER", help="keep the snapshot and the Placement of the pass there, for `placer solve`"
    )
    group.add_argument("--save-keep", type=int, metavar="N", help="most passes that are kept there (default: all)")
    group.add_argument(
        "--save-keep-bytes", type=int, metavar="BYTES", help="most bytes of them together (default: any)"
    )


def pass_options(options: argparse.Namespace) -> PassOptions:
    """What configured options ask for; something senseless is a :class:`UsageError`."""
    from placer.cluster.reading.guards import Guards
    from placer.cluster.writing.making_room import EvictionOptions
    from placer.cluster.writing.plan_execution import BindingOptions
    from placer.cluster.writing.status_writer import StatusOptions
    from placer.configuration import seconds_of
    from placer.saved_passes import SavedPasses
    from placer.scheduling_pass import PassOptions

    folder = Path(options.save) if options.save is not None else None
    faults = _faults(options, folder)
    if faults:
        raise UsageError("; ".join(faults))
    return PassOptions(
        scheduler_name=options.scheduler_name,
        method=options.method,
        time_limit=options.time_limit,
        namespace_budget=namespace_budget(options.namespace_budget, options.origins["namespace_budget"].name),
        workers=options.workers,
        seed=options.seed,
        binding=BindingOptions(
            workers=options.bind_workers,
            grace=options.gang_grace,
            settle=options.settle,
            dry_run=options.dry_run == "server",
        ),
        dry_run=options.dry_run,
        cool_down=options.cool_down,
        status=StatusOptions(
            not options.no_conditions, not options.no_events, not options.no_group_status, options.tell_limit
        ),
        enqueue=options.inqueue,
        strict=options.strict,
        save=None if folder is None else SavedPasses(folder, options.save_keep, options.save_keep_bytes),
        lease=lease_of(options),
        patience=0.0 if options.roll_back else options.half_bound_patience,
        guards=Guards(frozenset(options.namespaces or ()), options.node_selector or ""),
        most=options.max_bindings,
        every=None if options.every is None else seconds_of(options.every),
        eviction=EvictionOptions(min(EvictionOptions().grace, options.gone_within), options.gone_within),
        evictions_per_hour=options.max_evictions_per_hour,
        hold=options.hold_room,
        controllers=frozenset(options.controllers or ()),
        gates=options.enforce == "gates",
    )


def _faults(options: argparse.Namespace, folder: Path | None) -> list[str]:
    from placer.instance import ANY_SCHEDULER

    faults = [*_limit_faults(options), *_saving_faults(options, folder), *_lease_faults(options)]
    faults += _guard_faults(options)
    for name in ("metrics_bind_address", "report_bind_address"):
        if getattr(options, name) is not None and options.every is None:
            faults.append(
                f"{options.origins[name].name}: found no --every, expected one: a single pass leaves its line"
            )
    if options.enforce == "gates" and options.max_evictions_per_hour > 0:
        faults.append(
            f"{options.origins['enforce'].name}: found gates with {options.origins['max_evictions_per_hour'].name} "
            f"{options.max_evictions_per_hour}, expected one of the two: no room is made for pods that others bind"
        )
    if options.scheduler_name == ANY_SCHEDULER and options.dry_run != "client":
        faults.append(
            f"{options.origins['scheduler_name'].name}: found {ANY_SCHEDULER}, expected one name: pods that "
            "other schedulers bind are only looked at (--dry-run)"
        )
    return faults


def _limit_faults(options: argparse.Namespace) -> Iterator[str]:
    from placer.methods.search_limits import limit_faults

    asked = {
        "time_limit": limit_faults(options.time_limit),
        "workers": limit_faults(None, options.workers),
        "seed": limit_faults(None, seeds=(options.seed,)),
    }
    for name, faults in asked.items():
        for fault in faults:
            yield f"{options.origins[name].name}: {fault.partition(': ')[2]}"


def _guard_faults(options: argparse.Namespace) -> Iterator[str]:
    from placer.kube.base import DNS_SUBDOMAIN
    from placer.manifests.label_selectors import parse_label_selector

    for name in options.namespaces or ():
        if not DNS_SUBDOMAIN.fullmatch(name):
            yield f"{options.origins['namespaces'].name}: found {name!r}, expected names of namespaces"
    try:
        parse_label_selector(options.node_selector or "any")
    except ValueError:
        where = options.origins["node_selector"].name
        yield f"{where}: found {options.node_selector!r}, expected labels as kubectl takes them: pool=batch,!spare"


def _lease_faults(options: argparse.Namespace) -> Iterator[str]:
    from placer.kube.base import DNS_SUBDOMAIN

    lease = lease_of(options)
    for name, value in (("namespace", lease.namespace), ("name", lease.name)):
        if not DNS_SUBDOMAIN.fullmatch(value):
            where = options.origins[f"leader_elect_resource_{name}"].name
            yield f"{where}: found {value}, expected a name of Kubernetes (a-z, 0-9, -)"


def _saving_faults(options: argparse.Namespace, folder: Path | None) -> Iterator[str]:
    if folder is not None and not folder.is_dir():
        yield f"{options.origins['save'].name}: found no folder {folder}, expected one"
    for name in ("save_keep", "save_keep_bytes"):
        if getattr(options, name) is not None and folder is None:
            yield f"{options.origins[name].name}: found no --save, expected a folder"
