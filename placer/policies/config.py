"""Configuration of a cluster's own scheduler, for the policy that mimics it.

A KubeSchedulerConfiguration has profiles; which policy one belongs to is told by its plug-ins. A volcano-scheduler.conf
belongs to `volcano`, or to `volcano-labels` where it has the plug-in network-topology.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from placer.instance import Instance
from placer.manifests.yamltext import YamlError, documents
from placer.policies.faults import Reader
from placer.policies.ledger import Ledger
from placer.policies.profile import Profile, read_profile
from placer.policies.run import pod_by_pod
from placer.policies.volcano.settings import read_settings

__all__ = ["read_config"]

_KUBE = "KubeSchedulerConfiguration"
_VERSIONS = tuple(f"kubescheduler.config.k8s.io/{version}" for version in ("v1", "v1beta3", "v1beta2"))
_VOLCANO = "volcano-scheduler.conf"
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
        Policy to its arguments, as :func:`placer.policies.run` takes them.

    Raises
    ------
    BadInstance
        Every fault: the object (kind of configuration), field, what was found and what was expected. A plug-in that
        nobody here knows is one, since nobody could say what it does; so are two profiles for one policy.
    """
    written = _parsed(text, file)
    if "profiles" in written or written.get("kind") == _KUBE:
        return _kube(written, Reader(file, _KUBE), scheduler_name)
    reader = Reader(file, _VOLCANO)
    if "tiers" not in written:
        reader.note("", ", ".join(written) or "nothing", f"a {_KUBE}, or a {_VOLCANO} with tiers")
    reader.raise_any()
    labels = read_settings(written, reader).keys is not None
    reader.raise_any()
    return {"volcano-labels" if labels else "volcano": dict(written)}


def _parsed(text: str | bytes, file: str) -> Mapping[str, Any]:
    reader = Reader(file, "")
    values: list[Any] = []
    try:
        found = documents(text.encode() if isinstance(text, str) else text)
        values = [json.loads("".join(document.pieces)) for document in found if document.pieces]
    except YamlError as error:
        reader.note(error.place, error.found, error.expected)
    else:
        if len(values) != 1:
            reader.note("", f"{len(values)} documents", "one")
        elif not isinstance(values[0], Mapping):
            reader.fault("", values[0], "a mapping")
    reader.raise_any()
    return dict(values[0])


def _kube(written: Mapping[str, Any], reader: Reader, scheduler_name: str | None) -> dict[str, dict[str, Any]]:
    if written.get("apiVersion", _VERSIONS[0]) not in _VERSIONS:
        reader.fault("apiVersion", written["apiVersion"], f"one of {', '.join(_VERSIONS)}")
    if written.get("kind", _KUBE) != _KUBE:
        reader.fault("kind", written["kind"], _KUBE)
    found: dict[str, dict[str, Any]] = {}
    names: list[str] = []
    for index, entry in enumerate(reader.items(written.get("profiles"), "profiles") or ({},)):
        at = f"profiles[{index}]"
        profile = reader.mapping(entry, at)
        names.append(reader.text(profile.get("schedulerName"), f"{at}.schedulerName", "default-scheduler"))
        if scheduler_name is not None and names[-1] != scheduler_name:
            continue
        share = written.get("percentageOfNodesToScore")
        whole = {**({} if share is None else {"percentageOfNodesToScore": share}), **profile}
        policy = _policy(_checked(whole, reader, at))
        if policy in found:
            expected = f"one profile for {policy}; a scheduler name chooses"
            reader.note(at, f"another one ({names[-1]})", expected)
        found[policy] = whole
    if scheduler_name is not None and scheduler_name not in names:
        reader.note("profiles", ", ".join(names), f"a profile with schedulerName {scheduler_name}")
    reader.raise_any()
    return found


def _checked(profile: Mapping[str, Any], reader: Reader, at: str) -> Profile:
    """Read a profile and the arguments of its plug-ins, on a cluster without nodes."""
    read = read_profile(profile, reader, f"{at}.")
    if not reader.faults:
        inner = Reader(reader.file, reader.object)
        pod_by_pod(Ledger(Instance({}, {}, {}), seed=0), read, inner)
        reader.take(inner, f"{at}.")
    return read


def _policy(profile: Profile) -> str:
    """The policy that a profile belongs to."""
    return next((policy for name, policy in _ABOUT.items() if name in profile.plugins), "kube-default")
