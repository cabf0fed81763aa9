"""The plug-in DefaultPreemption: for a pod that finds no node, it evicts where that costs least, whatever becomes of
gangs.

Source: Kubernetes ``pkg/scheduler/framework/plugins/defaultpreemption``, ``pkg/scheduler/framework/preemption``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from operator import itemgetter

import numpy as np

from placer.lab.policies.framework import ClusterState, SchedulingCycle, Task
from placer.problem import Key, Pod

__all__ = ["DefaultPreemption"]

#: Of how many nodes at least the victims are worked out: this many, or this share.
_CANDIDATES, _CANDIDATES_SHARE = 100, 0.1
#: Added to every priority in the sum, so that fewer pods of negative priorities are not worse.
_POSITIVE = 2**31


#: Smaller is chosen: violated budgets, highest priority, sum of priorities, number of pods, the latest start; the node;
#: and its victims, the most important first.
_Candidate = tuple[tuple[float, ...], int, Sequence[Pod]]


class DefaultPreemption:
    """Makes room for one pod after another; the filters are those of the scheduler's step."""

    def __init__(self, state: ClusterState, step: SchedulingCycle) -> None:
        self.state = state
        self.step = step
        self._running = state.running()
        budgets = [budget for budget in state.instance.budgets if not budget.of_policy]
        self._allowed = {budget.key: budget.allowed for budget in budgets}
        self._budgets: dict[Key, list[Key]] = {}
        for budget in budgets:
            for pod in budget.pods:
                self._budgets.setdefault(pod, []).append(budget.key)

    def __call__(self, task: Task) -> int | None:
        """Evict for a pod, and return its node; None: nothing is evicted."""
        if task.pod.never_preempts:
            return None
        chosen = min(self._candidates(task), key=itemgetter(0), default=None)
        if chosen is None:
            return None
        _, node, victims = chosen
        for pod in victims:
            self.state.evict(pod)
            for budget in self._budgets.get(pod.key, ()):
                self._allowed[budget] = max(0, self._allowed[budget] - 1)
        return node

    def _candidates(self, task: Task) -> list[_Candidate]:
        nodes = self.state.everywhere[task.eligible[self.state.everywhere]]
        if not len(nodes):
            return []
        nodes = np.roll(nodes, -self.state.random.randrange(len(nodes)))
        most = max(_CANDIDATES, int(len(self.state.everywhere) * _CANDIDATES_SHARE))
        found = list[_Candidate]()
        for node in nodes.tolist():
            candidate = self._dry_run(task, node)
            if candidate is not None:
                found.append(candidate)
            if len(found) >= most and not all(order[0] for order, _, _ in found):
                break
        return found

    def _dry_run(self, task: Task, node: int) -> _Candidate | None:
        """All pods of a lower priority leave; as many come back as the pod lets, the most important first."""
        lower = self._lower(task, node)
        for pod in lower:
            self.state.evict(pod)
        breaking, victims = self._breaking(lower), lower
        helps = bool(lower) and self._fits(task, node)
        if helps:
            order = sorted(lower, key=lambda pod: pod.key not in breaking)
            victims = [pod for pod in order if not self._back(pod, task, node)]
        for pod in victims:
            self.state.evict(pod, -1)
        if not (helps and victims):
            return None
        victims = sorted(victims, key=_importance)
        return (sum(pod.key in breaking for pod in victims), *_cost(victims)), node, victims

    def _lower(self, task: Task, node: int) -> list[Pod]:
        there = (pod for pod in self._running.get(node, ()) if pod.key not in self.state.evicted)
        return sorted((pod for pod in there if pod.priority < task.pod.priority), key=_importance)

    def _back(self, pod: Pod, task: Task, node: int) -> bool:
        self.state.evict(pod, -1)
        if self._fits(task, node):
            return True
        self.state.evict(pod)
        return False

    def _fits(self, task: Task, node: int) -> bool:
        nodes = np.array([node], dtype=np.int64)
        return all(bool(each(task, nodes)[0]) for each in self.step.filters)

    def _breaking(self, pods: Iterable[Pod]) -> set[Key]:
        """Pods, evicted one after another, for which a budget allows no more."""
        left, found = dict(self._allowed), set[Key]()
        for pod in pods:
            budgets = self._budgets.get(pod.key, ())
            for budget in budgets:
                left[budget] -= 1
            if any(left[budget] < 0 for budget in budgets):
                found.add(pod.key)
        return found


def _cost(victims: Sequence[Pod]) -> tuple[float, ...]:
    """Highest priority, sum of priorities, number, the latest start of the highest; ``victims`` by importance."""
    highest = victims[0].priority
    earliest = min(pod.created for pod in victims if pod.priority == highest)
    return highest, sum(pod.priority + _POSITIVE for pod in victims), len(victims), -earliest


def _importance(pod: Pod) -> tuple[int, float, Key]:
    return -pod.priority, pod.created, pod.key
