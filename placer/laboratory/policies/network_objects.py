"""Which AppGroups, NetworkTopology and list of costs TopologicalSort and NetworkOverhead find, by their arguments.

Both look objects up by name in their ``namespaces``, one after another, and not in the pod's own. Without arguments of
a plug-in they are those that placer reads; with some, what is left out has the plug-in's default. An object that the
plug-in would not find stops it there; here it does without, and says so.

Source: scheduler-plugins ``pkg/networkaware/{topologicalsort,networkoverhead}``, ``apis/config/v1/defaults.go``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from placer.instance import Instance, Key, Link
from placer.laboratory.policies.faults import ConfigReader

__all__ = ["find_app_groups", "find_costs"]

_NAMESPACES = ("default",)
_NAME = "nt-default"
_LIST = "UserDefined"


def find_app_groups(
    instance: Instance, plugin: str, arguments: Mapping[str, Any] | None, reader: ConfigReader
) -> Mapping[Key, Key]:
    """AppGroup that a pod belongs to, as placer reads it, to the one that a plug-in finds; absent: none.

    Parameters
    ----------
    instance
        The problem.
    plugin
        Its name, for messages.
    arguments
        Of the plug-in; None: none are given.
    reader
        Takes faults and remarks.
    """
    if arguments is None:
        return {key: key for key in instance.app_groups}
    at = f"pluginConfig[{plugin}].args.namespaces"
    namespaces = _namespaces(arguments, reader, at)
    found: dict[Key, Key] = {}
    waiting = {pod.app_group for pod in instance.pending}
    for key in instance.app_groups:
        there = (Key(namespace, key.name) for namespace in namespaces)
        seen = next((each for each in there if each in instance.app_groups), None)
        if seen is not None:
            found[key] = seen
        if key in waiting and seen != key:
            known = f"{seen} counts" if seen is not None else "its pods count as pods without an AppGroup"
            reader.remark(at, f"AppGroup {key} is not looked for ({', '.join(namespaces)}): {known}")
    return found


def find_costs(
    instance: Instance, arguments: Mapping[str, Any] | None, reader: ConfigReader
) -> Mapping[Link, int] | None:
    """Costs of links as NetworkOverhead finds them; None: there is no NetworkTopology.

    Parameters
    ----------
    instance
        The problem.
    arguments
        ``namespaces``, ``networkTopologyName``, ``weightsName``; None: none are given.
    reader
        Takes faults and remarks.
    """
    network = instance.network
    if arguments is None:
        return None if network is None else network.costs
    at = "pluginConfig[NetworkOverhead].args"
    namespaces = _namespaces(arguments, reader, f"{at}.namespaces")
    name = reader.text(arguments.get("networkTopologyName"), f"{at}.networkTopologyName", _NAME)
    weights = reader.text(arguments.get("weightsName"), f"{at}.weightsName", _LIST)
    if network is None:
        return None
    there = (Key(namespace, name) for namespace in namespaces)
    key = next((each for each in there if each in instance.network_costs), None)
    if key is None:
        where = f"none of this name ({name}) in {', '.join(namespaces)}"
        reader.remark(f"{at}.networkTopologyName", f"{where}: {network.topology} is used")
        key = network.topology
    lists = instance.network_costs.get(key, {})
    if weights not in lists:
        unknown = "no cost between zones or regions is known"
        reader.remark(f"{at}.weightsName", f"NetworkTopology {key} has no list {weights}: {unknown}")
    return lists.get(weights, {})


def _namespaces(arguments: Mapping[str, Any], reader: ConfigReader, at: str) -> tuple[str, ...]:
    return reader.texts(arguments.get("namespaces"), at) or _NAMESPACES
