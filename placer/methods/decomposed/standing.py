"""The solution at hand, indexed so that a change of a few nodes costs what those nodes cost."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from placer.dense import Dense, Solution, score_solution
from placer.methods.decomposed.traffic import Traffic

__all__ = ["Standing"]


class Standing:
    """A solution, what it leaves of every node, and its values.

    Parameters
    ----------
    dense
        The instance.
    solution
        Keeps all rules.

    Attributes
    ----------
    solution
        Read-only for others.
    free
        int64, shape (nodes, resources): room left.
    busy
        int64, shape (nodes,): classes on each node that are no daemons'.
    placed
        Per class: pods placed.
    at
        Class to node to count.
    on
        Node to class to count.
    traffic
        Pods that call each other, and what they take of links.
    values
        As :func:`placer.dense.score_solution` gives them.
    """

    def __init__(self, dense: Dense, solution: Solution) -> None:
        self.dense = dense
        self.solution: Solution = {}
        self.free: npt.NDArray[np.int64] = dense.free.copy()
        self.busy = np.zeros(len(dense.nodes), dtype=np.int64)
        self.placed = [0] * len(dense.classes)
        self.at: dict[int, dict[int, int]] = defaultdict(dict)
        self.on: dict[int, dict[int, int]] = defaultdict(dict)
        self.traffic = Traffic(dense)
        self.values: tuple[int, ...] = ()
        self.put(solution.items())
        self.values = score_solution(dense, self.solution)

    def put(self, places: Iterable[tuple[tuple[int, int], int]]) -> None:
        """Add counts of classes on nodes (negative: take away); the values are the caller's to renew."""
        for (index, node), count in places:
            now = self.solution.get((index, node), 0) + count
            one = self.dense.classes[index]
            self.free[node] -= one.request * count
            self.placed[index] += count
            self.traffic.put(index, node, count)
            if not one.daemon:
                self.busy[node] += (now > 0) - (now - count > 0)
            if now:
                self.solution[index, node] = self.at[index][node] = self.on[node][index] = now
            else:
                del self.solution[index, node], self.at[index][node], self.on[node][index]

    def change(self, taken: Solution, put: Solution, values: tuple[int, ...] | None = None) -> None:
        """Make a change; ``values`` after it where somebody knows them."""
        self.put((place, -count) for place, count in taken.items())
        self.put(put.items())
        self.values = score_solution(self.dense, self.solution) if values is None else values

    def there(self, nodes: Iterable[int]) -> Solution:
        """What is on some nodes."""
        return {(index, node): count for node in nodes for index, count in self.on.get(node, {}).items()}
