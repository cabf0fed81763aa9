"""Which model reads which API group and kind, the kubectl names of a kind, and all its fields (``fields.json``)."""

from __future__ import annotations

import importlib
import json
import pkgutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property, reduce
from types import MappingProxyType
from typing import Any, get_args, get_origin

from placer.base.text import alike
from placer.kube.base import NamespacedObject, Present
from placer.kube.reader import SchemaReader, fields_of, is_closed, is_schema, schema_class, without_none


@dataclass(frozen=True)
class KindInfo:
    """How one kind is read and called.

    ``attribute``: sequence in ``manifests.Objects``. ``groups``: the first one is in use. ``schema``: module
    here, imported late, and how its class begins. ``keeps_text``: pods are made from it. ``skips_versions``: others
    are skipped, else a fault.
    """

    attribute: str
    kind: str
    groups: tuple[str, ...]
    versions: tuple[str, ...]
    schema: str
    short: tuple[str, ...] = ()
    keeps_text: bool = False
    skips_versions: bool = False

    @property
    def group(self) -> str:
        """API group in use."""
        return self.groups[0]

    @cached_property
    def plural(self) -> str:
        """Resource name in the API's paths."""
        name = self.kind.lower()
        return f"{name[:-1]}ies" if name.endswith("y") else f"{name}es" if name.endswith("s") else f"{name}s"

    @cached_property
    def model(self) -> Any:
        """Schema of an object of this kind."""
        module, _, prefix = self.schema.partition(".")
        model: Any = getattr(importlib.import_module(f"placer.kube.{module}"), f"{prefix}{self.kind}Manifest")
        return model

    @cached_property
    def namespaced(self) -> bool:
        """Whether objects of this kind live in a namespace."""
        return issubclass(schema_class(self.model), NamespacedObject)

    @cached_property
    def read(self) -> Callable[[bytes], Any]:
        """Reads JSON text as such an object; :class:`Misfit` has every fault."""
        return SchemaReader[Any](self.model).read


_CORE, _V1, _ALPHA, _BETA = ("",), ("v1",), ("v1alpha1",), ("v1beta1",)
_APPS, _VOLCANO, _KAI = ("apps",), ("scheduling.volcano.sh",), ("scheduling.run.ai",)
_SCHEDULING, _LWS = ("scheduling.k8s.io",), ("leaderworkerset.x-k8s.io",)
_SINCE_2 = ("v1alpha2", "v1alpha3", "v1beta1")
_COSCHEDULING = ("scheduling.x-k8s.io", "scheduling.sigs.x-k8s.io", "scheduling.sigs.k8s.io")
_APP_GROUP = ("appgroup.diktyo.x-k8s.io", "scheduling.sigs.x-k8s.io", "appgroup.diktyo.k8s.io", "diktyo.k8s.io")
_NETWORK = (
    "networktopology.diktyo.x-k8s.io",
    "scheduling.sigs.x-k8s.io",
    "networktopology.diktyo.k8s.io",
    "diktyo.k8s.io",
)

_ALL = (
    KindInfo("nodes", "Node", _CORE, _V1, "core", ("no",)),
    KindInfo("pods", "Pod", _CORE, _V1, "pod", ("po",)),
    KindInfo("config_maps", "ConfigMap", _CORE, _V1, "core", ("cm",)),
    KindInfo("namespaces", "Namespace", _CORE, _V1, "core", ("ns",)),
    KindInfo("persistent_volume_claims", "PersistentVolumeClaim", _CORE, _V1, "core", ("pvc",)),
    KindInfo("persistent_volumes", "PersistentVolume", _CORE, _V1, "core", ("pv",)),
    KindInfo("priority_classes", "PriorityClass", _SCHEDULING, _V1, "core", ("pc",)),
    KindInfo("pod_groups", "PodGroup", _VOLCANO, _BETA, "volcano", ("pg", "podgroup-v1beta1"), skips_versions=True),
    KindInfo("queues", "Queue", _VOLCANO, _BETA, "volcano", ("q", "queue-v1beta1")),
    KindInfo("volcano_jobs", "Job", ("batch.volcano.sh",), _ALPHA, "volcano.Volcano", ("vcjob", "vj"), keeps_text=True),
    KindInfo("hyper_nodes", "HyperNode", ("topology.volcano.sh",), _ALPHA, "volcano", ("hn",)),
    KindInfo(
        "coscheduling_pod_groups",
        "PodGroup",
        _COSCHEDULING,
        _ALPHA,
        "scheduler_plugins.Coscheduling",
        ("pg", "pgs"),
        skips_versions=True,
    ),
    KindInfo("upstream_pod_groups", "PodGroup", _SCHEDULING, _SINCE_2, "scheduling.Upstream", skips_versions=True),
    KindInfo("kai_pod_groups", "PodGroup", _KAI, ("v2alpha2",), "scheduling.Kai", ("pg",), skips_versions=True),
    KindInfo("workloads", "Workload", _SCHEDULING, (*_ALPHA, *_SINCE_2), "scheduling", skips_versions=True),
    KindInfo("app_groups", "AppGroup", _APP_GROUP, _ALPHA, "scheduler_plugins", ("ag",)),
    KindInfo("network_topologies", "NetworkTopology", _NETWORK, _ALPHA, "scheduler_plugins", ("nt",)),
    KindInfo(
        "node_resource_topologies",
        "NodeResourceTopology",
        ("topology.node.k8s.io",),
        ("v1alpha1", "v1alpha2"),
        "scheduler_plugins",
        ("node-res-topo",),
    ),
    KindInfo("deployments", "Deployment", _APPS, _V1, "apps", ("deploy",), keeps_text=True),
    KindInfo("stateful_sets", "StatefulSet", _APPS, _V1, "apps", ("sts",), keeps_text=True),
    KindInfo("replica_sets", "ReplicaSet", _APPS, _V1, "apps", ("rs",)),
    KindInfo("jobs", "Job", ("batch",), _V1, "apps", keeps_text=True),
    KindInfo("job_sets", "JobSet", ("jobset.x-k8s.io",), ("v1alpha2",), "workload_sets", keeps_text=True),
    KindInfo("leader_worker_sets", "LeaderWorkerSet", _LWS, _V1, "workload_sets", ("lws",), keeps_text=True),
    KindInfo("pod_disruption_budgets", "PodDisruptionBudget", ("policy",), _V1, "core", ("pdb",)),
    KindInfo("policies", "Policy", ("placer.dev",), _ALPHA, "policy"),
)

#: (API group, kind) to how it is read; an older group leads to the same entry as the one in use.
KINDS: Mapping[tuple[str, str], KindInfo] = MappingProxyType(
    {(group, info.kind): info for info in _ALL for group in info.groups}
)
BY_ATTRIBUTE: Mapping[str, KindInfo] = MappingProxyType({info.attribute: info for info in _ALL})


def find_kinds(word: str) -> tuple[KindInfo, ...]:
    """Kinds that a word names, as kubectl takes it; several where API groups share the name."""
    name, _, group = word.lower().partition(".")
    return tuple(
        info
        for info in _ALL
        if name in (info.kind.lower(), info.plural, *info.short) and (not group or _in(info, group))
    )


def _in(info: KindInfo, group: str) -> bool:
    version, _, rest = group.partition(".")
    return group in info.groups or (version in info.versions and rest in info.groups)


# --------------------------------------------------------------------------------------------------------------- fields

#: A way through an object: keys, and indices of lists.
Steps = tuple[str | int, ...]


@dataclass(eq=False, slots=True)
class Fields:
    """Possible fields at one place of an object.

    ``values``: below keys that are free. ``open``: anything may stand there.
    """

    names: dict[str, Fields] = field(default_factory=dict)
    values: Fields | None = None
    open: bool = False
    is_list: bool = False

    def under(self, key: str) -> Fields | None:
        """The place below a key; None where there is no such field."""
        return self.names.get(key, self.values)

    def at(self, steps: Iterable[str | int | None]) -> Fields | None:
        """The place that steps lead to; an index may be text, or None for any."""
        here: Fields | None = self
        for step in steps:
            if here is None or here.open:
                break
            if isinstance(step, str) and not (here.is_list and step.isdecimal()):
                here = here.under(step)
            elif here.is_list:
                here = Fields(here.names, here.values)
        return here


_OPEN = Fields(open=True)
#: Text or a number: nothing stands below it.
_VALUE = Fields()


@cache
def known_fields(info: KindInfo, version: str = "") -> Fields | None:
    """Every field of a kind, of one version (empty: of any); None where they are not known."""
    model = info.model
    if is_closed(model):
        return _joined(Fields({"metadata": _of_type("ObjectMeta")}), model)
    types = types_of(info)
    if not types:
        return None
    if len(types) > 1 and version in types:
        return _of_type(types[version])
    whole = reduce(_merged, map(_of_type, types.values()))
    return _joined(whole, model)


def _merged(one: Fields, other: Fields) -> Fields:
    names = dict(one.names)
    for name, each in other.names.items():
        there = names.get(name)
        names[name] = _merged(there, each) if there is not None and there.names and each.names else there or each
    return Fields(names, one.values or other.values, one.open or other.open)


@cache
def read_fields(info: KindInfo) -> Fields:
    """Fields of a kind that its schema declares: those that some rule reads."""
    return _of_schema(info.model)


def _of_schema(model: Any) -> Fields:
    if model is Present:
        return _VALUE
    return Fields({each.encode_name: _of_annotation(each.type) for each in fields_of(model)})


def _of_annotation(annotation: Any) -> Fields:
    inner = without_none(annotation)
    if is_schema(inner):
        return _of_schema(inner)
    arguments = get_args(inner)
    if get_origin(inner) is tuple:
        item = _of_annotation(arguments[0])
        return Fields(item.names, item.values, is_list=True)
    return Fields(values=_of_annotation(arguments[1])) if get_origin(inner) is dict else _VALUE


# ------------------------------------------------------------------------------------------- what is written down


@cache
def _data() -> Mapping[str, Mapping[str, str]]:
    text = pkgutil.get_data("placer.kube", "fields.json")  # importlib.resources takes longer to import than to read it
    assert text is not None
    data: Mapping[str, Mapping[str, str]] = json.loads(text)
    return data


def types_of(info: KindInfo) -> dict[str, str]:
    """Type of a kind's objects by version, as in ``fields.json``."""
    called, kinds = f"{info.kind}.{info.group}".rstrip("."), _data()["kinds"]
    if called not in kinds:
        return {}
    older = {each: kinds[f"{called}/{each}"] for each in info.versions if f"{called}/{each}" in kinds}
    return {info.versions[-1]: kinds[called]} | older


def type_fields(called: str) -> dict[str, str]:
    """Fields of a type, and the type of each; with a star: free keys."""
    words = (word.partition(":") for word in _data()["types"][called].split())
    return {name: inner for name, _, inner in words}


@cache
def _of_type(called: str) -> Fields:
    if not called:
        return _OPEN
    if called.startswith("*"):
        return Fields(values=_of_type(called[1:]))
    return Fields({name: _of_type(inner) for name, inner in type_fields(called).items()})


@cache
def _joined(known: Fields, model: Any) -> Fields:
    names = dict(known.names)
    either: tuple[str, ...] = getattr(model, "SPELLINGS", ())
    for declared in fields_of(model):
        spellings = either if declared.encode_name in either else (declared.encode_name,)
        parts = [names[each] for each in spellings if each in names]
        part = _together(parts) if parts else _of_annotation(declared.type)
        inner = schema_in(declared.type)
        if parts and inner is not None and part.names:
            part = _joined(part, inner)
        names.update(dict.fromkeys(spellings, part))
    return Fields(names, known.values, known.open)


def _together(parts: Sequence[Fields]) -> Fields:
    if len(parts) == 1:
        return parts[0]
    return Fields({name: each for part in parts for name, each in part.names.items()})


def schema_in(annotation: Any) -> Any:
    """Schema of a field or of its list's items, if any."""
    inner = without_none(annotation)
    if get_origin(inner) is tuple:
        inner = without_none(get_args(inner)[0])
    return inner if is_schema(inner) and inner is not Present else None


# ---------------------------------------------------------------------------------------------------------- near misses

#: Least likeness, from 0 to 1, of a known name that is shown.
_KINDS_ALIKE = 0.8
_GROUPS_ALIKE = 0.85

#: Somebody who writes one of placer's kinds under these groups means placer's.
_OWN_GROUPS = frozenset(("", "apps", "autoscaling", "batch", "extensions", "policy", "scheduling.k8s.io"))
#: Kinds of groups that placer reads from, or of Kubernetes, that are themselves although they sound like others.
_THEMSELVES = frozenset({("scheduling.k8s.io", "CompositePodGroup"), ("scheduling.run.ai", "Queue")})


def nearest(key: str, above: Sequence[tuple[Steps, Fields]]) -> Steps:
    """The known path that is most like an unknown ``key``; ``above``: places on the way, the root first."""
    place, here = above[-1]
    like = alike(key, here.names)
    if like is not None:
        return (*place, like)
    for other, fields in reversed(above[:-1]):
        if key in fields.names:
            return (*other, key)
    below = [name for name, each in here.names.items() if key in each.names]
    return (*place, below[0], key) if len(below) == 1 else ()


def nearest_kind(group: str, kind: str) -> KindInfo | None:
    """The kind that somebody may have meant by one that is not read, if any."""
    if (group, kind) in _THEMSELVES or not _is_familiar(group):
        return None
    here = {info.kind: info for (each, _), info in KINDS.items() if each == group}
    anywhere = {info.kind: info for info in reversed(tuple(KINDS.values()))}
    for kinds in (here, anywhere):
        like = alike(kind, kinds, _KINDS_ALIKE)
        if like is not None:
            return kinds[like]
    return None


def _is_familiar(group: str) -> bool:
    groups = {each for each, _ in KINDS}
    return group in groups or group in _OWN_GROUPS or alike(group, groups, _GROUPS_ALIKE) is not None
