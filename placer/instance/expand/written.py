"""Expanded objects written out in full: the whole template of a workload's own text, not only the fields that are
read.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from pydantic import TypeAdapter

from placer.instance.expand.blueprint import Blueprint
from placer.instance.expand.plan import make_plan
from placer.kube.base import LAST_APPLIED, NamespacedObject
from placer.kube.volcano import PodGroupManifest, PodGroupSpec, VolcanoJobManifest

if TYPE_CHECKING:
    from placer.manifests import Objects

__all__ = ["documents"]

Document = dict[str, Any]


def documents(objects: Objects, *, only_added: bool = False) -> Iterator[Document]:
    """Write PodGroups, then pods, as ``kubectl apply`` takes them.

    They are the objects of :func:`placer.instance.expand.expand` with everything that their workload says of them.
    Owners are written only where the workload has a uid: the API server refuses a reference without one.

    Parameters
    ----------
    objects
        The instance's objects, with the text of the workloads.
    only_added
        As in ``expand``.

    Raises
    ------
    BadInstance
        Too many pods would be made.
    """
    plan = make_plan(objects, only_added=only_added)
    for job, group in plan.pod_groups:
        yield _pod_group(job, group)
    for blueprint in plan.blueprints:
        yield from _pods(blueprint, objects.document(blueprint.owner))


def _pod_group(job: VolcanoJobManifest, group: PodGroupManifest) -> Document:
    metadata = _metadata(job, group.name, dict(group.metadata.labels or {}), dict(group.metadata.annotations or {}))
    spec = _spec_adapter().dump_python(group.spec, mode="json", by_alias=True, exclude_none=True)
    return {"apiVersion": group.api_version, "kind": group.kind, "metadata": metadata, "spec": spec}


@lru_cache(maxsize=1)
def _spec_adapter() -> TypeAdapter[Any]:
    return TypeAdapter(PodGroupSpec)


def _pods(blueprint: Blueprint, owner: Document) -> Iterator[Document]:
    template: Any = owner
    for step in blueprint.path:
        template = template[step]
    written = template.get("metadata") or {}
    labels, annotations = written.get("labels") or {}, written.get("annotations") or {}
    annotations.pop(LAST_APPLIED, None)
    for number, name in blueprint.names():
        metadata = _metadata(
            blueprint.owner,
            name,
            labels | blueprint.labels.of(name, number),
            annotations | blueprint.annotations.of(name, number),
        )
        spec = _spec(blueprint, template["spec"], owner.get("spec") or {}, name)
        yield {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec, "status": {"phase": "Pending"}}


def _metadata(owner: NamespacedObject, name: str, labels: Document, annotations: Document) -> Document:
    metadata: Document = {"name": name, "namespace": owner.namespace}
    if owner.metadata.creation_timestamp is not None:
        metadata["creationTimestamp"] = f"{owner.metadata.creation_timestamp.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"
    if labels:
        metadata["labels"] = labels
    if annotations:
        metadata["annotations"] = annotations
    if owner.metadata.uid:
        metadata["ownerReferences"] = [
            {
                "apiVersion": owner.api_version,
                "kind": owner.kind,
                "name": owner.name,
                "uid": owner.metadata.uid,
                "controller": True,
                "blockOwnerDeletion": True,
            }
        ]
    return metadata


def _spec(blueprint: Blueprint, template: Document, owner: Document, name: str) -> Document:
    spec = dict(template)
    if not spec.get("schedulerName") and blueprint.scheduler_name:
        spec["schedulerName"] = blueprint.scheduler_name
    if not spec.get("priorityClassName") and blueprint.priority_class_name:
        spec["priorityClassName"] = blueprint.priority_class_name
    if blueprint.hostname:
        spec.setdefault("hostname", name)
        if owner.get("serviceName"):
            spec.setdefault("subdomain", owner["serviceName"])
    claims = blueprint.claims_of(name)
    if claims:
        kept = [volume for volume in spec.get("volumes") or () if volume.get("name") not in claims]
        added = [{"name": volume, "persistentVolumeClaim": {"claimName": claim}} for volume, claim in claims.items()]
        spec["volumes"] = kept + added
    return spec
