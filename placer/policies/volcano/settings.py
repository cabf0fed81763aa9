"""volcano-scheduler.conf: tiers of plug-ins with their arguments.

Without a configuration: the plug-ins of the default one that decide where pods go, and network-topology-aware with its
default arguments, without which hard limits are silently not enforced.

Source: Volcano ``installer/helm/chart/volcano/config/volcano-scheduler.conf``, ``pkg/scheduler/plugins/*``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from placer.policies.faults import Reader
from placer.policies.volcano.enqueue import Overcommit
from placer.policies.volcano.topology import Weights

__all__ = ["DEFAULT", "DEFAULT_LABELS", "KNOWN", "Settings", "read_settings"]

_ACTIONS = "enqueue, allocate, backfill"

#: The configuration without a configuration.
DEFAULT: Mapping[str, Any] = {
    "actions": _ACTIONS,
    "tiers": [
        {"plugins": [{"name": "priority"}, {"name": "gang"}, {"name": "conformance"}]},
        {
            "plugins": [
                {"name": "overcommit"},
                {"name": "drf"},
                {"name": "predicates"},
                {"name": "proportion"},
                {"name": "nodeorder"},
                {"name": "binpack"},
                {"name": "network-topology-aware"},
            ]
        },
    ],
}
#: The same for the label plug-in, which is older than network-topology-aware; its keys are those of the Policy.
DEFAULT_LABELS: Mapping[str, Any] = {
    "actions": _ACTIONS,
    "tiers": [
        DEFAULT["tiers"][0],
        {"plugins": [*DEFAULT["tiers"][1]["plugins"][:-1], {"name": "network-topology"}]},
    ],
}
_DECIDE = (
    "priority",
    "gang",
    "drf",
    "predicates",
    "proportion",
    "nodeorder",
    "binpack",
    "overcommit",
    "network-topology-aware",
    "network-topology",
)
#: Plug-ins that decide nothing about where pending pods go, or nothing that an instance tells of.
_IDLE = ("conformance", "sla", "pdb", "usage", "rescheduling", "resourcequota", "tdm")
KNOWN = (*_DECIDE, *_IDLE)
#: Actions that Volcano has; those that evict, and shuffle, do nothing here.
_KNOWN_ACTIONS = (
    *_ACTIONS.split(", "),
    *("preempt", "reclaim", "shuffle", "gangpreempt", "gangreclaim"),
)
#: ``enableX: false`` takes one function from a plug-in.
_SWITCHES = {
    "enableJobOrder": "job order",
    "enableNodeOrder": "node order",
    "enablePredicate": "predicate",
    "enableJobEnqueued": "enqueue",
}
_NODE_ORDER = {"leastrequested": 1, "mostrequested": 0, "balancedresource": 1}
_BINPACK = "binpack"
_HYPERNODE = "hypernode.binpack"
_OVERCOMMIT = "overcommit-factor"


@dataclass(frozen=True, slots=True)
class Settings:
    """What a session goes by.

    Parameters
    ----------
    actions
        Their names; a configuration that says nothing of them has Volcano's own.
    job_order
        Plug-ins that order jobs, first one first.
    gang, proportion, predicates
        Whether they are on.
    node_order
        Weights of nodeorder's scores; empty: off.
    binpack
        Its weight (0: off) and the weights of resources.
    topology
        Arguments of network-topology-aware; None: off.
    keys
        Weight of network-topology and its labels, nearest first; without labels HyperNodes stand for them. None: off.
    overcommit
        Its factors; None: off.
    """

    actions: frozenset[str]
    job_order: tuple[str, ...]
    gang: bool
    proportion: bool
    predicates: bool
    node_order: Mapping[str, int]
    binpack: tuple[int, Mapping[str, int]]
    topology: Weights | None
    keys: tuple[int, tuple[str, ...]] | None
    overcommit: Overcommit | None


def read_settings(written: Mapping[str, Any], reader: Reader) -> Settings:
    """Read a configuration.

    Parameters
    ----------
    written
        Its plain values.
    reader
        Takes the faults.
    """
    plugins: dict[str, _Plugin] = {}
    for index, tier in enumerate(reader.items(written.get("tiers"), "tiers")):
        for plugin in _plugins(reader.mapping(tier, f"tiers[{index}]"), reader, f"tiers[{index}]"):
            plugins[plugin.name] = plugin
    if not plugins:
        reader.fault("tiers", written.get("tiers"), "at least one tier with a plug-in")
    keys = plugins.get("network-topology")
    return Settings(
        actions=_actions(written.get("actions"), reader),
        job_order=tuple(n for n in plugins if n in ("priority", "gang", "drf") and plugins[n].on("job order")),
        gang="gang" in plugins,
        proportion="proportion" in plugins,
        predicates="predicates" in plugins and plugins["predicates"].on("predicate"),
        node_order=_node_order(plugins.get("nodeorder")),
        binpack=_binpack(plugins.get("binpack")),
        topology=_topology(plugins.get("network-topology-aware")),
        keys=_keys(keys, needed=written is not DEFAULT_LABELS) if keys is not None else None,
        overcommit=_overcommit(plugins.get("overcommit")),
    )


class _Plugin:
    """One plug-in of the configuration."""

    def __init__(self, name: str, written: Mapping[str, Any], reader: Reader, at: str) -> None:
        self.name = name
        self.reader = reader
        self.at = f"{at}.arguments"
        self.arguments = reader.mapping(written.get("arguments"), self.at)
        self._off = {what for switch, what in _SWITCHES.items() if written.get(switch) is False}
        for switch, value in written.items():
            if switch.startswith("enable") and not isinstance(value, bool):
                reader.fault(f"{at}.{switch}", value, "true or false")

    def on(self, function: str) -> bool:
        return function not in self._off

    def number(self, key: str, default: float, *, whole: bool = True) -> float:
        """A number, also one written as text, as the plug-ins take it; below 0 it is the default."""
        value = self.arguments.get(key)
        if value is None:
            return default
        try:
            if isinstance(value, bool):
                raise ValueError
            found = int(value) if whole else float(value)
        except (TypeError, ValueError):
            self.reader.fault(f"{self.at}[{key}]", value, "an integer" if whole else "a number")
            return default
        return found if found >= 0 else default

    def names(self, key: str) -> list[str]:
        """A list in one text, separated by commas."""
        text = self.reader.text(self.arguments.get(key), f"{self.at}[{key}]")
        return [name for each in text.split(",") if (name := each.strip())]

    def resources(self, prefix: str) -> dict[str, int]:
        """Weights of cpu, memory, and of the resources that are listed."""
        found = {name: int(self.number(f"{prefix}.{name}", 1)) for name in ("cpu", "memory")}
        for name in self.names(f"{prefix}.resources"):
            found[name] = int(self.number(f"{prefix}.resources.{name}", 1))
        return found


def _actions(written: object, reader: Reader) -> frozenset[str]:
    """Actions, a list in one text, separated by commas."""
    names = [name.strip() for name in reader.text(written, "actions", _ACTIONS).split(",")]
    for name in names:
        if name not in _KNOWN_ACTIONS:
            reader.fault("actions", name or None, f"one of {', '.join(_KNOWN_ACTIONS)}")
    return frozenset(names)


def _plugins(tier: Mapping[str, Any], reader: Reader, at: str) -> Iterator[_Plugin]:
    for index, entry in enumerate(reader.items(tier.get("plugins"), f"{at}.plugins")):
        place = f"{at}.plugins[{index}]"
        each = reader.mapping(entry, place)
        name = reader.text(each.get("name"), f"{place}.name")
        if name not in KNOWN:
            reader.fault(f"{place}.name", name or None, f"one of {', '.join(KNOWN)}")
        else:
            yield _Plugin(name, each, reader, place)


def _node_order(plugin: _Plugin | None) -> Mapping[str, int]:
    if plugin is None or not plugin.on("node order"):
        return {}
    return {name: int(plugin.number(f"{name}.weight", default)) for name, default in _NODE_ORDER.items()}


def _binpack(plugin: _Plugin | None) -> tuple[int, Mapping[str, int]]:
    if plugin is None or not plugin.on("node order"):
        return 0, {}
    return int(plugin.number(f"{_BINPACK}.weight", 1)), plugin.resources(_BINPACK)


def _overcommit(plugin: _Plugin | None) -> Overcommit | None:
    if plugin is None or not plugin.on("enqueue"):
        return None
    default, prefix = Overcommit().factor, f"{_OVERCOMMIT}."
    factors = {key: plugin.number(key, default, whole=False) for key in plugin.arguments if key.startswith(_OVERCOMMIT)}
    # A factor below 1 is the default, also one of a single resource.
    factors = {key: factor if factor >= 1 else default for key, factor in factors.items()}
    single = {key.removeprefix(prefix): factor for key, factor in factors.items() if key.startswith(prefix)}
    return Overcommit(factors.get(_OVERCOMMIT, default), single)


def _topology(plugin: _Plugin | None) -> Weights | None:
    if plugin is None:
        return None
    enabled = plugin.arguments.get(f"{_HYPERNODE}.normal-pod.enable", True)
    if enabled not in (True, False, "true", "false"):
        plugin.reader.fault(f"{plugin.at}[{_HYPERNODE}.normal-pod.enable]", enabled, "true or false")
    return Weights(
        weight=int(plugin.number("weight", 1)),
        resources=plugin.resources(_HYPERNODE),
        normal_pods=enabled in (True, "true"),
        fading=plugin.number(f"{_HYPERNODE}.normal-pod.fading", 0.8, whole=False),
    )


def _keys(plugin: _Plugin, *, needed: bool) -> tuple[int, tuple[str, ...]]:
    kind = plugin.reader.text(plugin.arguments.get("network-topology.type"), f"{plugin.at}[network-topology.type]")
    if kind not in ("", "static"):
        plugin.reader.fault(f"{plugin.at}[network-topology.type]", kind, "static: the fabric cannot be asked")
    # The design document writes network-topology.keys, the pull request net-topology.keys.
    keys = plugin.names("network-topology.keys") or plugin.names("net-topology.keys")
    if needed and not keys:
        plugin.reader.fault(f"{plugin.at}[network-topology.keys]", None, "labels of nodes, nearest first")
    return int(plugin.number("network-topology.weight", 1)), tuple(keys)
