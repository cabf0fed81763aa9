"""Which model reads which API group and kind, and the names under which kubectl finds a kind."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import Any

from pydantic import TypeAdapter

from placer.kube import apps, core, coscheduling, diktyo, numa, policy, volcano
from placer.kube.pod import PodManifest

__all__ = ["BY_ATTRIBUTE", "KINDS", "KindInfo", "find_kinds"]


@dataclass(frozen=True)
class KindInfo:
    """How one kind is read and called.

    Parameters
    ----------
    attribute
        Name of the sequence in ``manifests.Objects``.
    kind
        Kind as it is written in an object.
    groups
        API groups under which it is read; the first one is the one in use, the others are older spellings.
    versions
        Versions that are read.
    model
        The schema.
    plural
        Resource name, as in the API's paths.
    short
        Short names of kubectl.
    namespaced
        Whether objects of this kind live in a namespace.
    keeps_text
        Whether the object's own text is kept beside the typed object, because pods are made from it.
    """

    attribute: str
    kind: str
    groups: tuple[str, ...]
    versions: tuple[str, ...]
    model: type[Any]
    plural: str
    short: tuple[str, ...] = ()
    namespaced: bool = True
    keeps_text: bool = False

    @property
    def group(self) -> str:
        """API group in use."""
        return self.groups[0]

    @cached_property
    def adapter(self) -> TypeAdapter[Any]:
        """Validator of the model, made when it is first needed."""
        return TypeAdapter(self.model)

    def read(self, text: bytes) -> Any:
        """Read JSON text as an object of this kind.

        Raises
        ------
        pydantic.ValidationError
            With every fault of the object.
        """
        return self.adapter.validator.validate_json(text, by_alias=True, by_name=False)


_VOLCANO = "scheduling.volcano.sh"
_COSCHEDULING = ("scheduling.x-k8s.io", "scheduling.sigs.x-k8s.io", "scheduling.sigs.k8s.io")
_APP_GROUP = ("appgroup.diktyo.x-k8s.io", "scheduling.sigs.x-k8s.io", "appgroup.diktyo.k8s.io", "diktyo.k8s.io")
_NETWORK = (
    "networktopology.diktyo.x-k8s.io",
    "scheduling.sigs.x-k8s.io",
    "networktopology.diktyo.k8s.io",
    "diktyo.k8s.io",
)
_V1, _ALPHA, _BETA = ("v1",), ("v1alpha1",), ("v1beta1",)

_ALL = (
    KindInfo("nodes", "Node", ("",), _V1, core.NodeManifest, "nodes", ("no",), namespaced=False),
    KindInfo("pods", "Pod", ("",), _V1, PodManifest, "pods", ("po",)),
    KindInfo("config_maps", "ConfigMap", ("",), _V1, core.ConfigMapManifest, "configmaps", ("cm",)),
    KindInfo("namespaces", "Namespace", ("",), _V1, core.NamespaceManifest, "namespaces", ("ns",), namespaced=False),
    KindInfo(
        "persistent_volume_claims",
        "PersistentVolumeClaim",
        ("",),
        _V1,
        core.PersistentVolumeClaimManifest,
        "persistentvolumeclaims",
        ("pvc",),
    ),
    KindInfo(
        "persistent_volumes",
        "PersistentVolume",
        ("",),
        _V1,
        core.PersistentVolumeManifest,
        "persistentvolumes",
        ("pv",),
        namespaced=False,
    ),
    KindInfo(
        "priority_classes",
        "PriorityClass",
        ("scheduling.k8s.io",),
        _V1,
        core.PriorityClassManifest,
        "priorityclasses",
        ("pc",),
        namespaced=False,
    ),
    KindInfo(
        "pod_groups", "PodGroup", (_VOLCANO,), _BETA, volcano.PodGroupManifest, "podgroups", ("pg", "podgroup-v1beta1")
    ),
    KindInfo(
        "queues", "Queue", (_VOLCANO,), _BETA, volcano.QueueManifest, "queues", ("q", "queue-v1beta1"), namespaced=False
    ),
    KindInfo(
        "volcano_jobs",
        "Job",
        ("batch.volcano.sh",),
        _ALPHA,
        volcano.VolcanoJobManifest,
        "jobs",
        ("vcjob", "vj"),
        keeps_text=True,
    ),
    KindInfo(
        "hyper_nodes",
        "HyperNode",
        ("topology.volcano.sh",),
        _ALPHA,
        volcano.HyperNodeManifest,
        "hypernodes",
        ("hn",),
        namespaced=False,
    ),
    KindInfo(
        "coscheduling_pod_groups",
        "PodGroup",
        _COSCHEDULING,
        _ALPHA,
        coscheduling.CoschedulingPodGroupManifest,
        "podgroups",
        ("pg", "pgs"),
    ),
    KindInfo("app_groups", "AppGroup", _APP_GROUP, _ALPHA, diktyo.AppGroupManifest, "appgroups", ("ag",)),
    KindInfo(
        "network_topologies",
        "NetworkTopology",
        _NETWORK,
        _ALPHA,
        diktyo.NetworkTopologyManifest,
        "networktopologies",
        ("nt",),
    ),
    KindInfo(
        "node_resource_topologies",
        "NodeResourceTopology",
        ("topology.node.k8s.io",),
        ("v1alpha1", "v1alpha2"),
        numa.NodeResourceTopologyManifest,
        "noderesourcetopologies",
        ("node-res-topo",),
        namespaced=False,
    ),
    KindInfo(
        "deployments",
        "Deployment",
        ("apps",),
        _V1,
        apps.DeploymentManifest,
        "deployments",
        ("deploy",),
        keeps_text=True,
    ),
    KindInfo(
        "stateful_sets",
        "StatefulSet",
        ("apps",),
        _V1,
        apps.StatefulSetManifest,
        "statefulsets",
        ("sts",),
        keeps_text=True,
    ),
    KindInfo("replica_sets", "ReplicaSet", ("apps",), _V1, apps.ReplicaSetManifest, "replicasets", ("rs",)),
    KindInfo("jobs", "Job", ("batch",), _V1, apps.JobManifest, "jobs", keeps_text=True),
    KindInfo("policies", "Policy", ("placer.dev",), _ALPHA, policy.PolicyManifest, "policies", namespaced=False),
)

#: (API group, kind) to how it is read; an older group leads to the same entry as the one in use.
KINDS: Mapping[tuple[str, str], KindInfo] = MappingProxyType(
    {(group, info.kind): info for info in _ALL for group in info.groups}
)
#: Name of the sequence in ``manifests.Objects`` to the kind that it holds.
BY_ATTRIBUTE: Mapping[str, KindInfo] = MappingProxyType({info.attribute: info for info in _ALL})


def find_kinds(word: str) -> tuple[KindInfo, ...]:
    """Find the kinds that a word names, as kubectl takes it.

    Parameters
    ----------
    word
        Kind, plural or short name in any case; ``NAME.GROUP`` or ``NAME.VERSION.GROUP`` where groups share the name.

    Returns
    -------
    tuple of KindInfo
        Empty where no kind has that name; several where groups share it and the word names none of them.

    Examples
    --------
    >>> [info.group for info in find_kinds("podgroup")]
    ['scheduling.volcano.sh', 'scheduling.x-k8s.io']
    >>> [info.group for info in find_kinds("PodGroups.scheduling.volcano.sh")]
    ['scheduling.volcano.sh']
    """
    name, _, group = word.lower().partition(".")
    return tuple(
        info
        for info in _ALL
        if name in (info.kind.lower(), info.plural, *info.short) and (not group or _in(info, group))
    )


def _in(info: KindInfo, group: str) -> bool:
    """Whether a kind belongs to a group that is written with or without a version before it."""
    version, _, rest = group.partition(".")
    return group in info.groups or (version in info.versions and rest in info.groups)
