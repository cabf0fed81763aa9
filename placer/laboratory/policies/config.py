"""Configuration of a cluster's own scheduler, for the policy that mimics it.

A KubeSchedulerConfiguration has profiles; which policy one belongs to is told by its plug-ins. A volcano-scheduler.conf
belongs to `volcano`, or to `volcano-labels` where it has the plug-in network-topology. Either may stand in the
ConfigMap that a cluster keeps it in.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from placer.instance import Instance
from placer.laboratory.policies.cluster_state import ClusterState
from placer.laboratory.policies.faults import ConfigReader
from placer.laboratory.policies.profile import Profile, read_profile
from placer.laboratory.policies.run import pod_by_pod
from placer.laboratory.policies.volcano.settings import FRAGMENT, read_settings
from placer.manifests.yamltext import YamlError, documents

__all__ = ["read_config"]

_DEFAULT = "default-scheduler"
_KUBE = "KubeSchedulerConfiguration"
_VERSIONS = tuple(f"kubescheduler.config.k8s.io/{version}" for version in ("v1", "v1beta3", "v1beta2"))
_VOLCANO = "volcano-scheduler.conf"
#: Fields of a KubeSchedulerConfiguration that are about how its process runs, and decide no placement.
_OPERATION = (
    *("apiVersion", "kind", "parallelism", "leaderElection", "clientConnection", "delayCacheUntilActive"),
    *("healthzBindAddress", "metricsBindAddress", "enableProfiling", "enableContentionProfiling"),
    *("podInitialBackoffSeconds", "podMaxBackoffSeconds"),
)
#: Plug-in to the policy that is about it; the first that a profile has counts.
_ABOUT = {
    "NetworkOverhead": "network-overhead",
    "TopologicalSort": "network-overhead",
    "NodeResourceTopologyMatch": "numa-match",
    "Coscheduling": "coscheduling",
}


def read_config(text: str | bytes, file: str = "-", *, scheduler_name: str | None = None) -> dict[str, dict[str, Any]]:
    """Read the configuration of a scheduler.

    Parameters
    ----------
    text
        YAML or JSON.
    file
        Where it is from, for messages.
    scheduler_name
        Only the profile of this name; None: every profile.

    Returns
    -------
    dict
        Policy to its arguments, as :func:`placer.laboratory.policies.mimic` takes them. Of several profiles for one
        policy it is that of the default scheduler, else the first; the others' names go with it, so that the policy
        tells of them.

    Raises
    ------
    BadInstance
        Every fault: the object (kind of configuration), field, what was found and what was expected. What is sound and
        not mimicked, such as a plug-in that is not known here, is none: the policy runs without it and says so.
    """
    written = _parsed(text, file)
    if isinstance(written, Mapping) and written.get("kind") == "ConfigMap":
        written = _parsed(_content(written, ConfigReader(file, "ConfigMap")), file)
    if isinstance(written, Mapping) and ("profiles" in written or written.get("kind") == _KUBE):
        return _kube(written, ConfigReader(file, _KUBE), scheduler_name)
    reader = ConfigReader(file, _VOLCANO)
    if not isinstance(written, Mapping):
        # The form in which plug-ins are documented: a tier by itself, to be put among those that are there.
        written = {FRAGMENT: written}
    elif "tiers" not in written:
        reader.note("", ", ".join(written) or "nothing", f"a {_KUBE}, or a {_VOLCANO} with tiers")
    reader.raise_any()
    labels = read_settings(written, reader).keys is not None
    reader.raise_any()
    return {"volcano-labels" if labels else "volcano": dict(written)}


def _content(config_map: Mapping[str, Any], reader: ConfigReader) -> str:
    """The configuration in a ConfigMap: Volcano's by its key, else the only entry."""
    data = reader.mapping(config_map.get("data"), "data")
    key = _VOLCANO if _VOLCANO in data else next(iter(data), "")
    if not data or (len(data) > 1 and key != _VOLCANO):
        reader.note("data", ", ".join(data) or "nothing", f"one configuration, or {_VOLCANO}")
    text = reader.text(data.get(key), f"data[{key}]")
    reader.raise_any()
    return text


def _parsed(text: str | bytes, file: str) -> Mapping[str, Any] | list[Any]:
    reader = ConfigReader(file, "")
    values: list[Any] = []
    try:
        found = documents(text.encode() if isinstance(text, str) else text)
        values = [json.loads("".join(document.pieces)) for document in found if document.pieces]
    except YamlError as error:
        reader.note(error.place, error.found, error.expected)
    else:
        if len(values) != 1:
            reader.note("", f"{len(values)} documents", "one")
        elif not isinstance(values[0], Mapping) and not _is_tiers(values[0]):
            reader.fault("", values[0], "a mapping")
    reader.raise_any()
    parsed: Mapping[str, Any] | list[Any] = values[0]
    return parsed


def _is_tiers(value: object) -> bool:
    """Whether a value is a list of tiers: what stands below ``tiers`` in a volcano-scheduler.conf."""
    return isinstance(value, list) and bool(value) and all(isinstance(tier, Mapping) for tier in value)


def _kube(written: Mapping[str, Any], reader: ConfigReader, scheduler_name: str | None) -> dict[str, dict[str, Any]]:
    if written.get("apiVersion", _VERSIONS[0]) not in _VERSIONS:
        reader.fault("apiVersion", written["apiVersion"], f"one of {', '.join(_VERSIONS)}")
    if written.get("kind", _KUBE) != _KUBE:
        reader.fault("kind", written["kind"], _KUBE)
    found: dict[str, list[dict[str, Any]]] = {}
    names: list[str] = []
    common = {key: value for key, value in written.items() if key not in (*_OPERATION, "profiles")}
    for index, entry in enumerate(reader.items(written.get("profiles"), "profiles") or ({},)):
        at = f"profiles[{index}]"
        profile = reader.mapping(entry, at)
        names.append(reader.text(profile.get("schedulerName"), f"{at}.schedulerName", _DEFAULT))
        if scheduler_name is not None and names[-1] != scheduler_name:
            continue
        whole = {**common, **profile, "schedulerName": names[-1]}
        found.setdefault(_policy(_checked(whole, reader, at)), []).append(whole)
    if scheduler_name is not None and scheduler_name not in names:
        reader.note("profiles", ", ".join(names), f"a profile with schedulerName {scheduler_name}")
    reader.raise_any()
    return {policy: _chosen(profiles) for policy, profiles in found.items()}


def _chosen(profiles: list[dict[str, Any]]) -> dict[str, Any]:
    """One of several profiles for one policy; with it the names of the others."""
    default = (each for each in profiles if each["schedulerName"] == _DEFAULT)
    chosen = next(default, profiles[0])
    others = [each["schedulerName"] for each in profiles if each is not chosen]
    return {**chosen, "profiles": others} if others else chosen


def _checked(profile: Mapping[str, Any], reader: ConfigReader, at: str) -> Profile:
    """Read a profile and the arguments of its plug-ins, on a cluster without nodes."""
    before = len(reader.faults)
    read = read_profile(profile, reader, f"{at}.")
    if len(reader.faults) == before:
        inner = ConfigReader(reader.file, reader.object)
        pod_by_pod(ClusterState(Instance({}, {}, {}), seed=0), read, inner)
        reader.take(inner, f"{at}.")
    return read


def _policy(profile: Profile) -> str:
    """The policy that a profile belongs to."""
    return next((policy for name, policy in _ABOUT.items() if name in profile.plugins), "kube-default")
