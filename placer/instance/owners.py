"""Who made a pod."""

from __future__ import annotations

from placer.kube.base import Metadata, OwnerReference

__all__ = ["controller", "is_daemon"]

_MIRROR_ANNOTATION = "kubernetes.io/config.mirror"


def controller(metadata: Metadata) -> OwnerReference | None:
    """The owner that made an object: the controller among its owners, else the first."""
    owners = metadata.owner_references
    return next((each for each in owners or () if each.controller), owners[0] if owners else None)


def is_daemon(metadata: Metadata) -> bool:
    """Whether a pod belongs to its node: of a DaemonSet, or static."""
    owner = controller(metadata)
    if owner is not None and owner.kind in ("DaemonSet", "Node"):
        return True
    return _MIRROR_ANNOTATION in (metadata.annotations or {})
