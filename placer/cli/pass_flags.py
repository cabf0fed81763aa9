"""The flags of ``run``, ``check`` and ``config``, and the file in their place (:mod:`placer.passes.configuration`).

A given flag goes before the file, the file before the flag's default.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from placer.base.errors import UsageError
from placer.cli import flags
from placer.passes.configuration import OPTIONS

if TYPE_CHECKING:
    from placer.passes.cluster.writing.lease import LeaseOptions
    from placer.passes.scheduling_pass import PassOptions


class Origin(NamedTuple):
    """Where a value comes from (``flag``, ``file``, ``environment`` or ``default``) and its name there."""

    source: str
    name: str

    def __str__(self) -> str:
        return self.source if self.source == "default" else f"{self.source} {self.name}"


def lease_of(options: argparse.Namespace) -> LeaseOptions:
    """The Lease: one for all that may place pods on the same nodes."""
    from placer.passes.cluster.reading.client import own_namespace
    from placer.passes.cluster.writing.lease import LeaseOptions

    default = LeaseOptions()
    namespace = options.leader_elect_resource_namespace or own_namespace() or default.namespace
    return LeaseOptions(namespace, options.leader_elect_resource_name or default.name)


def add_pass_flags(parser: argparse.ArgumentParser) -> None:
    """Add every flag of a pass."""
    text = "a file with these options as keys (timeLimit); options of the command line override it"
    flags.option(parser, "--config", "FILE", text)
    groups: dict[str, Any] = {"": parser}
    for each in OPTIONS.values():
        if each.group not in groups:
            groups[each.group] = parser.add_argument_group(each.group)
        each.add_to(groups[each.group])
    keys = [each for each in parser._actions if each.dest in OPTIONS]
    parser.set_defaults(defaults_of_keys={each.dest: each.default for each in keys})
    for action in keys:  # so that it is seen which were given
        action.default = argparse.SUPPRESS


def configured(options: argparse.Namespace) -> argparse.Namespace:
    """Fill in the file and defaults, and ``origins``; all faults of file and flags are one :class:`UsageError`."""
    from placer.passes.configuration import read_configuration

    defaults: dict[str, Any] = options.defaults_of_keys
    given = {name: value for name, value in vars(options).items() if name in defaults}
    written, faults = read_configuration(options.config) if options.config is not None else ({}, [])
    faults += _faults_of_flags(given)
    if faults:
        raise UsageError("; ".join(faults) if options.config is None else "\n  ".join(faults))
    origins = {name: _default_origin(name) for name in defaults}
    origins |= {name: Origin("file", f"{options.config}: {OPTIONS[name].key}") for name in written}
    origins |= {name: Origin("flag", OPTIONS[name].flag) for name in given}
    return argparse.Namespace(**{**vars(options), **defaults, **written, **given}, origins=origins)


def _faults_of_flags(given: dict[str, Any]) -> Iterator[str]:
    for name, value in given.items():
        if value is not None:
            yield from (f"{OPTIONS[name].flag}: {text}" for _, text in OPTIONS[name].faults(value))


def _default_origin(name: str) -> Origin:
    from placer.passes.cluster.reading.client import own_namespace

    if name == "kubeconfig" and os.environ.get("KUBECONFIG"):
        return Origin("environment", "KUBECONFIG")
    if name == "leader_elect_resource_namespace" and own_namespace() is not None:
        return Origin("environment", "the pod's namespace")
    return Origin("default", OPTIONS[name].flag)


def values_of_keys(options: argparse.Namespace) -> dict[str, Any]:
    """The value of each key that counts, as :func:`configured` gives the options."""
    return {OPTIONS[name].key: _holding(options, name) for name in options.origins}


def _holding(options: argparse.Namespace, name: str) -> Any:
    from placer.base.cores import usable_cores

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


def pass_options(options: argparse.Namespace) -> PassOptions:
    """What configured options ask for; something senseless is a :class:`UsageError`."""
    from placer.passes.cluster.reading.guards import Guards
    from placer.passes.cluster.writing.making_room import EvictionOptions
    from placer.passes.cluster.writing.plan_execution import BindingOptions
    from placer.passes.cluster.writing.status_writer import StatusOptions
    from placer.passes.configuration import seconds_of
    from placer.passes.saved_passes import SavedPasses
    from placer.passes.scheduling_pass import PassOptions

    folder = Path(options.save) if options.save is not None else None
    faults = _faults(options, folder)
    if faults:
        raise UsageError("; ".join(faults))
    return PassOptions(
        scheduler_name=options.scheduler_name,
        method=options.method,
        time_limit=options.time_limit,
        namespace_budget=flags.namespace_budget(options.namespace_budget, options.origins["namespace_budget"].name),
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
    from placer.problem import ANY_SCHEDULER

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
    from placer.search.search_limits import limit_faults

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
    from placer.kube.manifests.label_selectors import parse_label_selector

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
