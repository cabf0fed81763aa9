"""The incumbent, indexed so that a change of a few nodes costs what those nodes cost, with its values."""

from __future__ import annotations

from collections.abc import Iterable

from placer.arrays import Dense, Solution, score_solution
from placer.search.partial import PartialSolution


class IncumbentState(PartialSolution):
    """A solution that keeps all rules, the room that it leaves of every node, and its values.

    Who proposes a change decides which pods kubelets admit (C10); zones are not replayed here. ``solution`` is
    read-only for others; a change binds its pods of a node after those that were there.
    """

    def __init__(self, dense: Dense, solution: Solution) -> None:
        super().__init__(dense, zones=False)
        self.solution = Solution()
        self.values: tuple[int, ...] = ()
        self.change(Solution(), solution)

    def change(self, taken: Solution, put: Solution, values: tuple[int, ...] | None = None) -> None:
        """Make a change that is not undone; ``values`` after it where they are known."""
        for sign, places in ((-1, taken), (1, put)):
            for (index, node), count in places.items():
                self.take(index, [node], [sign * count])
        order = self.solution.order
        for node in {**taken.order, **put.order}:
            come = put.order.get(node, ())
            stay = [index for index in order.pop(node, ()) if index in self.on[node] and index not in come]
            if stay or come:
                order[node] = (*stay, *come)
        self._log.clear()
        self.values = score_solution(self.dense, self.solution) if values is None else values

    def _count(self, index: int, node: int, count: int) -> None:
        super()._count(index, node, count)
        now = self.where[index].get(node, 0)
        if now:
            self.solution[index, node] = now
        else:
            del self.solution[index, node]

    def there(self, nodes: Iterable[int]) -> Solution:
        """Pods on some nodes."""
        order = self.solution.order
        return Solution(
            {(index, node): count for node in nodes for index, count in self.on.get(node, {}).items()},
            {node: order[node] for node in nodes if node in order},
        )
