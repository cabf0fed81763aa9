"""Where a group that waits may be: the nodes of each domain that it could be in, whatever runs there."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from placer.arrays import Dense
from placer.base.grouping import grouped
from placer.problem import Group, GroupKey, Instance


def index_of(dense: Dense, group: GroupKey) -> int | None:
    """Position of a group in the arrays; None where nothing of it can be placed whatever goes."""
    return next((index for index, each in enumerate(dense.groups) if each.key == group), None)


def alike(instance: Instance, group: Group) -> object:
    """Equal for groups that may be in the same domains and need the same there."""
    pods = [instance.pods[key] for key in group.pending]
    asked = frozenset((pod.requests, pod.constraints) for pod in pods)
    keys = frozenset(unit.topology_key for pod in pods for unit in pod.neighbours.units)
    return (
        asked,
        keys,
        len(pods),
        group.need,
        group.topology,
        group.bound,
        group.priority,
        instance.waiting_queue(group),
    )


def label_keys(instance: Instance, group: GroupKey) -> list[str]:
    """Keys of which all pods of a group that wait need one value (C7 by label), sorted."""
    pods = (instance.pods[key] for key in instance.groups[group].pending)
    return sorted({unit.topology_key for pod in pods for unit in pod.neighbours.units})


def is_confined(instance: Instance, dense: Dense, index: int) -> bool:
    """Whether a group has to be in one domain."""
    group = dense.groups[index]
    return bool(label_keys(instance, group.key)) or dense.limit_domains(group.scope) is not None


def group_domains(instance: Instance, dense: Dense, index: int) -> Iterator[list[str]]:
    """Nodes of each domain that a group may be in, those that some pod of it may be on or runs on, in tree order.

    Of a group that may be anywhere all of them are one domain.
    """
    able = _able(instance, dense, index)
    tops, tree = dense.limit_domains(dense.groups[index].scope), dense.domains
    keys = label_keys(instance, dense.groups[index].key)
    if tops is None and not keys:
        yield [dense.nodes[node] for node in np.flatnonzero(able)]
        return
    for top in (tree.root,) if tops is None else tops:
        names = [dense.nodes[node] for node in range(tree.begin[top], tree.end[top]) if able[node]]
        yield from _by_label(instance, keys, names)


def _able(instance: Instance, dense: Dense, index: int) -> npt.NDArray[np.bool_]:
    group = dense.groups[index]
    masks = sorted({dense.classes[each].mask for each in group.classes})
    homes = {instance.pods[key].node for key in instance.groups[group.key].bound}
    able: npt.NDArray[np.bool_] = np.asarray(dense.masks[masks].any(axis=0), bool)
    able |= [name in homes for name in dense.nodes]
    return able


def _by_label(instance: Instance, keys: Sequence[str], names: Sequence[str]) -> Iterator[list[str]]:
    labels = {name: instance.nodes[name].labels for name in names}
    labelled = [name for name in names if all(key in labels[name] for key in keys)]
    yield from grouped(labelled, lambda name: tuple(labels[name][key] for key in keys)).values()
