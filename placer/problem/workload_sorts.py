"""The six orders in which an AppGroup's workloads may be placed one after another.

Source: KEP-260 "Application Group CRD"; diktyo-io/appgroup-controller; otaviokr/topological-sort.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from itertools import chain
from types import MappingProxyType

#: Workload to those that it calls, both in the order of the spec; every workload is a key.
Graph = Mapping[str, Sequence[str]]

DEFAULT_ALGORITHM = "KahnSort"


@dataclass(frozen=True, slots=True)
class WorkloadOrder:
    """Workloads in the order in which they are to be placed; with a ``cycle`` that of the spec."""

    algorithm: str
    workloads: tuple[str, ...]
    cycle: tuple[str, ...] = ()

    @property
    def indices(self) -> dict[str, int]:
        """Place of each workload, from 1: the smallest is placed first."""
        return {workload: place for place, workload in enumerate(self.workloads, 1)}


def sort_workloads(
    algorithm: str | None,
    workloads: Iterable[str],
    dependencies: Mapping[str, Sequence[str]],
    roots: Sequence[str] = (),
) -> WorkloadOrder:
    """Order the workloads of an AppGroup; equal input gives the equal order.

    ``algorithm``: of :data:`ALGORITHMS`, else the default. ``roots``: workloads that come first, else ValueError.

    Examples
    --------
    >>> calls = {"web": ["cart", "ads"], "cart": ["redis"]}
    >>> sort_workloads("KahnSort", ["web", "cart", "ads", "redis"], calls).workloads
    ('web', 'ads', 'cart', 'redis')
    """
    known = algorithm if algorithm is not None and algorithm in ALGORITHMS else DEFAULT_ALGORITHM
    graph = _graph(workloads, dependencies)
    unknown = sorted(set(roots) - graph.keys())
    if unknown:
        raise ValueError(f"roots: found {', '.join(unknown)}, expected workloads of the AppGroup")
    cycle = find_cycle(graph)
    if cycle:
        return WorkloadOrder(known, tuple(graph), cycle)
    sort, arrange = ALGORITHMS[known]
    return WorkloadOrder(known, tuple(arrange(sort(graph, tuple(dict.fromkeys((*roots, *graph)))))))


def find_cycle(dependencies: Graph) -> tuple[str, ...]:
    """The first circle of calls; of one workload: it calls itself."""
    sorter = TopologicalSorter[str](dict.fromkeys(dependencies, ()))
    for workload, calls in dependencies.items():
        for called in calls:
            sorter.add(called, workload)
    try:
        sorter.prepare()
    except CycleError as error:
        return tuple(error.args[1][:-1])
    return ()


def _graph(workloads: Iterable[str], dependencies: Mapping[str, Sequence[str]]) -> Graph:
    named = chain(workloads, dependencies, chain.from_iterable(dependencies.values()))
    return {workload: tuple(dependencies.get(workload, ())) for workload in dict.fromkeys(named)}


def _kahn(graph: Graph, order: Sequence[str]) -> list[str]:
    """Takes the workload found last, a stack as in the controller."""
    callers = Counter(chain.from_iterable(graph.values()))
    ready = [workload for workload in order if not callers[workload]]
    found: list[str] = []
    while ready:
        found.append(ready.pop())
        for called in graph[found[-1]]:
            callers[called] -= 1
            if not callers[called]:
                ready.append(called)
    return found


def _tarjan(graph: Graph, order: Sequence[str]) -> list[str]:
    found: dict[str, None] = {}
    for start in order:
        path = [] if start in found else [(start, iter(graph[start]))]
        while path:
            workload, calls = path[-1]
            called = next((each for each in calls if each not in found), None)
            if called is None:
                found[workload] = None
                path.pop()
            else:
                path.append((called, iter(graph[called])))
    return list(found)[::-1]


def _alternating(order: Sequence[str]) -> Iterator[str]:
    for place in range((len(order) + 1) // 2):
        yield order[place]
        if place != len(order) - 1 - place:
            yield order[-1 - place]


#: Name of an algorithm to its sort and the arrangement of the result.
ALGORITHMS: Mapping[
    str,
    tuple[Callable[[Graph, Sequence[str]], Sequence[str]], Callable[[Sequence[str]], Iterable[str]]],
] = MappingProxyType(
    {
        "KahnSort": (_kahn, tuple),
        "TarjanSort": (_tarjan, tuple),
        "ReverseKahn": (_kahn, reversed),
        "ReverseTarjan": (_tarjan, reversed),
        "AlternateKahn": (_kahn, _alternating),
        "AlternateTarjan": (_tarjan, _alternating),
    }
)
