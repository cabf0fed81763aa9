"""volcano-scheduler.conf: tiers of plug-ins with their arguments.

The default has network-topology-aware, too, without which hard limits are silently not enforced.

Source: Volcano ``installer/helm/chart/volcano/config/volcano-scheduler.conf``, ``pkg/scheduler/plugins/*``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from placer.base.text import found_like
from placer.lab.policies.faults import ConfigReader
from placer.lab.policies.volcano.topology import TopologyWeights

__all__ = ["DEFAULT", "DEFAULT_LABELS", "FRAGMENT", "VolcanoSettings", "read_settings"]

#: Key of tiers that stand by themselves, to be put among those of the default configuration.
FRAGMENT = "fragment"

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
#: Those of them that order jobs.
_JOB_ORDER = ("priority", "gang", "drf")
#: Plug-ins that only say who may be evicted.
_IDLE = ("conformance", "pdb")
#: Plug-ins that Volcano has and that are not mimicked.
_OTHERS = (
    *("capacity", "capacity-card", "deviceshare", "numaaware", "nodegroup", "task-topology", "extender", "tdm"),
    *("usage", "resource-strategy-fit", "resourcequota", "rescheduling", "sla", "cdp", "pod-topology-spread"),
)
#: Actions that Volcano has and that do nothing here.
_IDLE_ACTIONS = ("preempt", "reclaim", "shuffle", "gangpreempt", "gangreclaim")
_KNOWN_ACTIONS = (*_ACTIONS.split(", "), *_IDLE_ACTIONS)
#: ``enableX: false`` takes one function from a plug-in.
_SWITCHES = {
    "enableJobOrder": "job order",
    "enableNodeOrder": "node order",
    "enablePredicate": "predicate",
    "enableJobEnqueued": "enqueue",
}
#: Switches of functions that are about eviction only.
_EVICTING = (
    *("enablePreemptable", "enableReclaimable", "enablePreemptive", "enableUnifiedEvictable", "enableVictim"),
    *("enableTargetJob", "enableReservedNodes", "enableJobStarving"),
)
_PREFERRED = "preferences score every node alike"
#: Arguments to why they decide nothing here.
_REASONS: Mapping[str, str] = {
    "hypernode.gradient.evict.max-hypernodes": "nothing is evicted",
    **{
        f"{name}.weight": _PREFERRED
        for name in ("nodeaffinity", "podaffinity", "tainttoleration", "imagelocality", "podtopologyspread")
    },
}
#: Predicates that are off unless an argument says otherwise.
_OFF = ("predicate.ProportionalEnable", "predicate.GPUSharingEnable", "predicate.DynamicResourceAllocationEnable")
_NODE_ORDER = {"leastrequested": 1, "mostrequested": 0, "balancedresource": 1}
_BINPACK = "binpack"
_HYPERNODE = "hypernode.binpack"
_OVERCOMMIT, _FACTOR = "overcommit-factor", 1.2


@dataclass(frozen=True, slots=True)
class VolcanoSettings:
    """The settings of a session.

    Parameters
    ----------
    node_order
        Weights of nodeorder's scores; empty: off.
    binpack
        Its weight (0: off) and the weights of resources.
    keys
        Weight of network-topology and its labels, nearest first; without labels HyperNodes stand for them. None: off.
    overcommit
        Factors of resources, ``""`` for all others; None: off.
    """

    actions: frozenset[str]
    job_order: tuple[str, ...]
    gang: bool
    proportion: bool
    predicates: bool
    node_order: Mapping[str, int]
    binpack: tuple[int, Mapping[str, int]]
    topology: TopologyWeights | None
    keys: tuple[int, tuple[str, ...]] | None
    overcommit: Mapping[str, float] | None


def read_settings(written: Mapping[str, Any], reader: ConfigReader) -> VolcanoSettings:
    """Read a configuration, plain values, or tiers by themselves below :data:`FRAGMENT`.

    The reader takes the faults, and remarks.
    """
    needed = written is not DEFAULT_LABELS
    if FRAGMENT in written:
        written = _completed(written[FRAGMENT], reader)
    reader.rest(written, "", ("actions", "tiers"))
    tiers = enumerate(reader.items(written.get("tiers"), "tiers"))
    plugins = {each.name: each for index, tier in tiers for each in _plugins(tier, reader, f"tiers[{index}]")}
    if not plugins:
        reader.fault("tiers", written.get("tiers"), "at least one tier with a plug-in")
    settings = VolcanoSettings(
        actions=_actions(written.get("actions"), reader),
        job_order=tuple(each.name for each in plugins.values() if each.name in _JOB_ORDER and each.on("job order")),
        gang="gang" in plugins,
        proportion="proportion" in plugins,
        predicates="predicates" in plugins and plugins["predicates"].on("predicate"),
        node_order=_node_order(plugins.get("nodeorder")),
        binpack=_binpack(plugins.get("binpack")),
        topology=_topology(plugins.get("network-topology-aware")),
        keys=_keys(plugins.get("network-topology"), needed=needed),
        overcommit=_overcommit(plugins.get("overcommit")),
    )
    for plugin in plugins.values():
        plugin.remark_rest()
    return settings


def _completed(fragment: list[Any], reader: ConfigReader) -> Mapping[str, Any]:
    tiers = [reader.mapping(tier, "tiers") for tier in fragment]
    named = {
        reader.mapping(plugin, "tiers").get("name")
        for tier in tiers
        for plugin in reader.items(tier.get("plugins"), "tiers.plugins")
    }
    # The two topology plug-ins stand for each other: the older one was not to be used beside the newer one.
    replaced = named | ({"network-topology-aware"} if "network-topology" in named else set())
    default = [
        {"plugins": [plugin for plugin in tier["plugins"] if plugin["name"] not in replaced]}
        for tier in DEFAULT["tiers"]
    ]
    names = ", ".join(plugin["name"] for tier in default for plugin in tier["plugins"])
    reader.remark("tiers", f"a part of a configuration, put among plug-ins of the default one: {names}")
    return {"actions": _ACTIONS, "tiers": [*default, *tiers]}


class _Plugin:
    def __init__(self, name: str, written: Mapping[str, Any], reader: ConfigReader, at: str) -> None:
        self.name = name
        self.reader = reader
        self.at = f"{at}.arguments"
        self.arguments = reader.mapping(written.get("arguments"), self.at)
        self.place = at
        self._written = written
        self._asked = {"name", "arguments", *_EVICTING}
        self._honoured: set[str] = set()
        for switch, value in written.items():
            if switch.startswith("enable") and not isinstance(value, bool):
                reader.fault(f"{at}.{switch}", value, "true or false")

    def on(self, function: str) -> bool:
        switch = next(switch for switch, what in _SWITCHES.items() if what == function)
        self._asked.add(switch)
        return self._written.get(switch) is not False

    def get(self, key: str, default: object = None) -> Any:
        self._honoured.add(key)
        return self.arguments.get(key, default)

    def remark_rest(self) -> None:
        """A switch that is on is as if it were not written."""
        at = f"{self.place} ({self.name})"
        rest = {key: value for key, value in self._written.items() if value is not True}
        self.reader.rest(rest, f"{at}.", self._asked, hint=False)  # Volcano has more switches than are asked for
        told = {key: value for key, value in self.arguments.items() if not _is_default(key, value)}
        self.reader.rest(told, f"{at}.arguments.", self._honoured, _REASONS, hint=False)

    def number(self, key: str, default: float, *, whole: bool = True) -> float:
        """Numbers may be texts, as the plug-ins take them; below 0 it is the default."""
        value = self.get(key)
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
        text = self.reader.text(self.get(key), f"{self.at}[{key}]")
        return [name for each in text.split(",") if (name := each.strip())]

    def resources(self, prefix: str) -> dict[str, int]:
        found = {name: int(self.number(f"{prefix}.{name}", 1)) for name in ("cpu", "memory")}
        for name in self.names(f"{prefix}.resources"):
            found[name] = int(self.number(f"{prefix}.resources.{name}", 1))
        return found


def _is_default(key: str, value: object) -> bool:
    if key == "predicate.CacheEnable":
        return True  # how quickly it is found out, not what
    return key.startswith("predicate.") and key.endswith("Enable") and value in (True, "true") and key not in _OFF


def _actions(written: object, reader: ConfigReader) -> frozenset[str]:
    names = [name.strip() for name in reader.text(written, "actions", _ACTIONS).split(",")]
    for name in names:
        if name not in _KNOWN_ACTIONS:
            reader.fault("actions", name or None, f"one of {', '.join(_KNOWN_ACTIONS)}")
    idle = [name for name in names if name in _IDLE_ACTIONS]
    if idle:
        reader.remark("actions", f"{', '.join(idle)} not mimicked: nothing is evicted")
    return frozenset(names)


def _plugins(tier: object, reader: ConfigReader, at: str) -> Iterator[_Plugin]:
    for index, entry in enumerate(reader.items(reader.mapping(tier, at).get("plugins"), f"{at}.plugins")):
        place = f"{at}.plugins[{index}]"
        each = reader.mapping(entry, place)
        name = reader.text(each.get("name"), f"{place}.name")
        if name in _DECIDE:
            yield _Plugin(name, each, reader, place)
        elif name in _OTHERS:
            reader.remark(f"{place}.name", f"the plug-in {name} is not mimicked")
        elif name and name not in _IDLE:
            like = found_like(name, (*_DECIDE, *_OTHERS, *_IDLE))
            told = f"no plug-in of Volcano that is known here: the policy runs without {name}{like}"
            reader.remark(f"{place}.name", told)
        elif not name and isinstance(each.get("name"), str | None):
            reader.fault(f"{place}.name", None, "the name of a plug-in")


def _node_order(plugin: _Plugin | None) -> Mapping[str, int]:
    if plugin is None or not plugin.on("node order"):
        return {}
    return {name: int(plugin.number(f"{name}.weight", default)) for name, default in _NODE_ORDER.items()}


def _binpack(plugin: _Plugin | None) -> tuple[int, Mapping[str, int]]:
    if plugin is None or not plugin.on("node order"):
        return 0, {}
    return int(plugin.number(f"{_BINPACK}.weight", 1)), plugin.resources(_BINPACK)


def _overcommit(plugin: _Plugin | None) -> Mapping[str, float] | None:
    if plugin is None or not plugin.on("enqueue"):
        return None
    keys = {_OVERCOMMIT, *(key for key in plugin.arguments if key.startswith(_OVERCOMMIT))}
    factors = {key: plugin.number(key, _FACTOR, whole=False) for key in sorted(keys)}
    # A factor below 1 is the default, also one of a single resource.
    return {
        key.removeprefix(_OVERCOMMIT).removeprefix("."): factor if factor >= 1 else _FACTOR
        for key, factor in factors.items()
    }


def _topology(plugin: _Plugin | None) -> TopologyWeights | None:
    if plugin is None:
        return None
    enabled = plugin.get(f"{_HYPERNODE}.normal-pod.enable", True)
    if enabled not in (True, False, "true", "false"):
        plugin.reader.fault(f"{plugin.at}[{_HYPERNODE}.normal-pod.enable]", enabled, "true or false")
    return TopologyWeights(
        weight=int(plugin.number("weight", 1)),
        resources=plugin.resources(_HYPERNODE),
        normal_pods=enabled in (True, "true"),
        fading=plugin.number(f"{_HYPERNODE}.normal-pod.fading", 0.8, whole=False),
    )


def _keys(plugin: _Plugin | None, *, needed: bool) -> tuple[int, tuple[str, ...]] | None:
    if plugin is None:
        return None
    field = f"{plugin.at}[network-topology.type]"
    kind = plugin.reader.text(plugin.get("network-topology.type"), field, "", ("static", "dynamic"))
    if kind == "dynamic":
        plugin.reader.remark(field, "not mimicked: the fabric cannot be asked, HyperNodes stand for it")
    # The design document writes network-topology.keys, the pull request net-topology.keys.
    keys = plugin.names("network-topology.keys") or plugin.names("net-topology.keys")
    if needed and not keys and kind != "dynamic":
        plugin.reader.fault(f"{plugin.at}[network-topology.keys]", None, "labels of nodes, nearest first")
    weight = int(plugin.number("network-topology.weight", 1))
    return weight if plugin.on("node order") else 0, tuple(keys)
