"""The values of a solution by index, for methods that compare many; :mod:`placer.score` is what counts."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence

from placer.dense.model import Dense, DenseGroup, Solution
from placer.dense.network import network_cost
from placer.placement import MAXIMISED

__all__ = ["beats", "score_solution"]


def score_solution(dense: Dense, solution: Solution) -> tuple[int, ...]:
    """Value of each of ``dense.levels`` after ``solution``.

    Parameters
    ----------
    dense
        The instance.
    solution
        Must keep the rules; gangs that are not ready are counted as not admitted.

    Returns
    -------
    tuple of int
        As :func:`placer.score.score` gives them, in the same order.
    """
    values: dict[str, Callable[[], Mapping[int | None, int]]] = {
        "admitted": lambda: _admitted(dense, solution),
        "placed": lambda: _placed(dense, solution),
        "locality": lambda: {None: _locality(dense, solution)},
        "span": lambda: {None: _span(dense, solution)},
        "networkCost": lambda: {None: _network_cost(dense, solution)},
        "packedHyperNodes": lambda: {None: _packed_hyper_nodes(dense, solution)},
        "packedNodes": lambda: {None: len(_newly_used(dense, solution))},
    }
    found = {name: values[name]() for name in dict.fromkeys(name for name, _ in dense.levels)}
    return tuple(found[name].get(priority, 0) for name, priority in dense.levels)


def beats(dense: Dense, values: Sequence[int], others: Sequence[int], levels: int | None = None) -> bool:
    """Whether values are strictly better than others: the first that differs decides, as in ``placement.better``.

    Parameters
    ----------
    dense
        The instance.
    values, others
        One number per level, as :func:`score_solution` gives them.
    levels
        Compare only so many of the first levels; None: all.
    """
    for (name, _), mine, other in zip(dense.levels[:levels], values, others, strict=levels is None):
        if mine != other:
            return (mine > other) == (name in MAXIMISED)
    return False


def ready(dense: Dense, group: int, placed: Mapping[int, int]) -> bool:
    """Whether a group is ready (C5) when ``placed`` new pods of each class are placed."""
    gang = dense.groups[group]
    if sum(placed.get(index, 0) for index in gang.classes) < gang.short:
        return False
    for role, short in gang.short_by_role:
        if sum(placed.get(i, 0) for i in gang.classes if dense.classes[i].role == role) < short:
            return False
    return all(_ready_of(dense, gang, policy, placed) >= short for policy, short in gang.short_by_policy)


def _ready_of(dense: Dense, gang: DenseGroup, policy: int, placed: Mapping[int, int]) -> int:
    """How many subgroups of a policy become ready."""
    subs = (sub for sub in map(dense.sub_groups.__getitem__, gang.sub_groups) if sub.policy == policy and sub.short)
    return sum(sum(placed.get(index, 0) for index in sub.classes) >= sub.short for sub in subs)


def _counts(solution: Solution) -> dict[int, int]:
    counts: dict[int, int] = defaultdict(int)
    for (index, _), count in solution.items():
        counts[index] += count
    return counts


def _admitted(dense: Dense, solution: Solution) -> dict[int | None, int]:
    counts = _counts(solution)
    values: dict[int | None, int] = defaultdict(int)
    for index, gang in enumerate(dense.groups):
        if gang.need_weight and ready(dense, index, counts):
            values[gang.priority] += gang.need_weight
    return values


def _placed(dense: Dense, solution: Solution) -> dict[int | None, int]:
    values: dict[int | None, int] = defaultdict(int)
    for index, count in _counts(solution).items():
        pod_class = dense.classes[index]
        values[dense.groups[pod_class.group].priority] += pod_class.weight * count
    return values


def _nodes_by_class(solution: Solution) -> dict[int, list[tuple[int, int]]]:
    found: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for (index, node), count in solution.items():
        found[index].append((node, count))
    return found


def _locality(dense: Dense, solution: Solution) -> int:
    wanted = [scope for scope in dense.scopes if scope.wanted]
    by_class = _nodes_by_class(solution) if wanted else {}
    total = dense.constant_locality
    for scope in wanted:
        new = [place for index in scope.classes for place in by_class.get(index, ())]
        domain = dense.common([*scope.bound, *(node for node, _ in new)])
        if domain is not None:
            total += (len(scope.bound) + sum(count for _, count in new)) * int(dense.domains.tier[domain])
    return total


def _span(dense: Dense, solution: Solution) -> int:
    wanted = [scope for scope in dense.scopes if scope.wanted]
    by_class = _nodes_by_class(solution) if wanted else {}
    total = dense.constant_span
    for scope in wanted:
        nodes = {node for index in scope.classes for node, _ in by_class.get(index, ())}
        nodes.update(node for node in scope.bound if node >= 0)
        total += len({int(dense.leaf_unit[node]) for node in nodes}) + scope.lost_leaves
    return total


def _network_cost(dense: Dense, solution: Solution) -> int:
    calls = 0 if dense.network is None else network_cost(dense.network, solution.items())
    return dense.constant_network + calls


def _newly_used(dense: Dense, solution: Solution) -> set[int]:
    return {node for index, node in solution if not dense.classes[index].daemon and not dense.node_used[node]}


def _packed_hyper_nodes(dense: Dense, solution: Solution) -> int:
    tree = dense.domains
    opened: set[int] = set()
    for node in _newly_used(dense, solution):
        domain = int(dense.leaf[node])
        while domain != tree.root and domain not in opened and not tree.used[domain]:
            opened.add(domain)
            domain = int(tree.parent[domain])
    return len(opened)
