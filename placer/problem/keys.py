"""Identities of objects: the keys of the instance's mappings."""

from __future__ import annotations

from typing import NamedTuple


def label_word(value: str) -> str:
    """A value of a label for people: ``""`` for the empty one."""
    return value or '""'


class Key(NamedTuple):
    """Namespace and name of an object of one kind."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


class GroupKey(NamedTuple):
    """Identity of a group: ``api_group`` of its PodGroup or owner, empty for a pod by itself.

    A gang of a Workload of v1alpha1 is called ``WORKLOAD/POD_GROUP`` or ``WORKLOAD/POD_GROUP/KEY``.
    """

    api_group: str
    namespace: str
    name: str

    @property
    def kind(self) -> str:
        """``PodGroup``, or ``Pod`` for a pod in no group."""
        return "PodGroup" if self.api_group else "Pod"

    def as_dict(self) -> dict[str, str]:
        """Plain data, as documents name a group."""
        return {"kind": self.kind, "namespace": self.namespace, "name": self.name}

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}"
