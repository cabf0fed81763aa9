"""Names by which users call a group: ``NAMESPACE/NAME``, with kind and API group before it where two share that."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from placer.instance.keys import GroupKey, Key
from placer.instance.problem import Instance

__all__ = ["CalledGroup", "full_name", "one_of"]

#: How a kind may be written in place of ``podgroup``, as kubectl takes it.
_PODS = ("pod", "pods", "po")
_KINDS = ("podgroup", "podgroups", "pg", *_PODS)


def full_name(key: GroupKey) -> str:
    """Give the name that only one group has.

    Examples
    --------
    >>> full_name(GroupKey("kueue.x-k8s.io", "ml", "train")), full_name(GroupKey("", "ml", "p"))
    ('podgroup.kueue.x-k8s.io/ml/train', 'pod/ml/p')
    """
    kind = ".".join(filter(None, (key.kind.lower(), key.api_group)))
    return f"{kind}/{key.namespace}/{key.name}"


@dataclass(frozen=True, slots=True)
class CalledGroup:
    """What a user calls a group.

    Parameters
    ----------
    place
        Namespace and name.
    kind, api_group
        What stands before these; empty: nothing.
    """

    place: Key
    kind: str = ""
    api_group: str = ""

    @classmethod
    def of(cls, words: str) -> CalledGroup:
        """Read ``[KIND[.GROUP]/]NAMESPACE/NAME``; a name alone is in ``default``.

        Examples
        --------
        >>> CalledGroup.of("ml/train").place, CalledGroup.of("podgroup.kueue.x-k8s.io/ml/train").api_group
        (Key(namespace='ml', name='train'), 'kueue.x-k8s.io')
        """
        head, _, rest = words.partition("/")
        kind, _, api_group = head.lower().partition(".")
        is_kind = kind in _KINDS and (bool(api_group) or "/" in rest)
        namespace, slash, name = (rest if is_kind else words).partition("/")
        place = Key(namespace, name) if slash else Key("default", namespace)
        return cls(place, kind, api_group) if is_kind else cls(place)

    def groups(self, instance: Instance) -> set[GroupKey]:
        """Find the groups that are meant: those with pending pods where there are any, else the group of a pod."""
        named = {key for key in instance.groups if key[1:] == self.place and self._means(key)}
        return {key for key in named if instance.groups[key].pending} or named or self._of_pod(instance)

    def _means(self, key: GroupKey) -> bool:
        if not self.kind:
            return True
        return (self.kind in _PODS) is (key.kind == "Pod") and self.api_group in ("", key.api_group)

    def _of_pod(self, instance: Instance) -> set[GroupKey]:
        pod = instance.pods.get(self.place) if self.kind in ("", *_PODS) else None
        group = pod.group if pod is not None else None
        return {group} if group is not None and group in instance.groups else set()


def one_of(keys: Iterable[GroupKey]) -> str:
    """Give the names among which the user has to choose."""
    return f"one of {', '.join(sorted(map(full_name, keys)))}"
