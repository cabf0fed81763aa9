"""What runs and may be disturbed, as data of ``disruption.mzn``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from minizinc_text import names, numbers, plain, sets

from placer.problem import Group, Instance, Key, Pod, PodState

__all__ = ["disruption_lines", "may_go"]


def may_go(instance: Instance) -> list[Key]:
    """Pods that D2 lets be disturbed, each by itself: bound and not protected."""
    return [key for key, pod in instance.pods.items() if pod.state is PodState.BOUND and not pod.protected]


def disruption_lines(
    before: Instance, pods: Sequence[Pod], groups: Sequence[Group], node: Mapping[str, int]
) -> Iterator[str]:
    """Write the section.

    Parameters
    ----------
    before
        The instance, with what runs where it runs.
    pods
        All that are decided, in the order of their numbers.
    groups
        Theirs, in the order of their numbers.
    node
        Number of each node.
    """
    number = {pod.key: index for index, pod in enumerate(pods, 1)}
    running = {pod.key for pod in pods if before.pods[pod.key].state is PodState.BOUND}
    yield numbers("home", (node.get(before.pods[pod.key].node or "", 0) for pod in pods))
    yield numbers("own_priority", (before.pods[pod.key].unit_priority for pod in pods))
    yield numbers("disrupted_whole", (group.disrupted_whole for group in groups))
    yield f"budgets = {len(before.budgets)};"
    yield names("budget_name", before.budgets)
    yield sets("budget_pods", (sorted(number[key] for key in each.pods & number.keys()) for each in before.budgets))
    yield numbers("budget_allows", (each.allowed for each in before.budgets))
    of = {name: index for index, name in enumerate(before.queues, 1)}
    held = (before.keeping_queue(before.pods[pod.key]) if pod.key in running else None for pod in pods)
    yield numbers("keeping_queue", (of.get(queue or "", 0) for queue in held))
    known = (before.groups.get(group.key) for group in groups)
    asked = (None if group is None else before.waiting_queue(group) for group in known)
    yield numbers("waiting_queue", (of.get(queue or "", 0) for queue in asked))
    yield f"may_evict = {plain(before.may_evict and not before.moves_only)};"
    yield f"may_move = {plain(before.may_move)};"
    yield f"any_priority = {plain(before.moves_only)};"
    yield f"most_moves = {-1 if before.most_moves is None else before.most_moves};"
