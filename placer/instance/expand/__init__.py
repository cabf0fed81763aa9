"""Workloads to the PodGroups and pods that their controllers would make, where none of their pods is in the instance.

Belongs here: one file per family of controllers (``volcano``, ``workloads``), who owns what (``ownership``), how pods
come of a template (``blueprint``), which of them are made (``plan``) and how they are written out in full
(``written``). Does not: whether anything is expanded at all (offline it is, in a cluster it is not), which the caller
decides.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from placer.instance.expand.plan import LIMIT, Plan, make_plan
from placer.instance.expand.written import documents
from placer.instance.model import Finding
from placer.kube.pod import PodManifest
from placer.kube.volcano import PodGroupManifest

if TYPE_CHECKING:
    from placer.manifests import Objects

__all__ = ["LIMIT", "Expansion", "Plan", "documents", "expand", "make_plan"]


@dataclass(frozen=True)
class Expansion:
    """What workloads would make.

    Parameters
    ----------
    pods, pod_groups
        New objects, in the order of the input, workload by workload.
    findings
        Tasks that could not be expanded or are odd, and names that are taken; sorted.
    """

    pods: tuple[PodManifest, ...] = ()
    pod_groups: tuple[PodGroupManifest, ...] = ()
    findings: tuple[Finding, ...] = ()


def expand(objects: Objects, *, only_added: bool = False) -> Expansion:
    """Make the PodGroups and pods of every workload that has no pod in the instance.

    Parameters
    ----------
    objects
        The instance's objects.
    only_added
        Expand only what came by ``--with``: the rest is from a cluster, whose controllers do it themselves.

    Returns
    -------
    Expansion
        Pods of one template share their spec.

    Raises
    ------
    BadInstance
        More than :data:`LIMIT` pods would be made.
    """
    plan = make_plan(objects, only_added=only_added)
    pods = tuple(pod for blueprint in plan.blueprints for pod in blueprint.pods())
    return Expansion(pods, tuple(group for _, group in plan.pod_groups), plan.findings)
