"""Why a group that fits alone does not fit beside what a placement binds, and what of it is in the way."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from itertools import takewhile

import numpy as np
import numpy.typing as npt

from placer.dense import Solution, make_dense
from placer.instance import GroupKey
from placer.methods.greedy import tops
from placer.outcome import Outcome
from placer.placement import MAXIMISED
from placer.reasons.cause import Cause
from placer.reasons.causes import Causes
from placer.reasons.words import plural
from placer.result import Reason

__all__ = ["Beside"]

BoolArray = npt.NDArray[np.bool_]

#: How many groups a message names.
NAMED = 3


class Beside:
    """The cluster once a placement is carried out; groups that wait are asked there what keeps each of them out.

    Parameters
    ----------
    causes
        Of groups alone, in the cluster as it is.
    solution
        The placement; keeps all rules.
    """

    def __init__(self, causes: Causes, solution: Solution) -> None:
        self.causes, self.solution = causes, solution
        self.instance, self.dense, self.layout = causes.instance, causes.dense, causes.groups.layout
        prices = self.layout.class_prices
        entries = [(index, node, count, prices[index] * count) for (index, node), count in sorted(solution.items())]
        self.classes, self.nodes, self.pods, self.prices = np.array(entries, dtype=np.int64).reshape(-1, 4).T
        self.groups = np.array([each.group for each in self.dense.classes], dtype=np.int64)[self.classes]
        self._names: dict[tuple[int, GroupKey | None], tuple[Cause, str]] = {}
        self._usable: dict[object, BoolArray] = {}

    @cached_property
    def _after(self) -> Causes:
        """The same question in the instance as it stands then."""
        instance = Outcome(self.instance, self.dense.placement(self.solution)).carried_out()
        return Causes(instance, make_dense(instance), {}, decided=True)

    def reason(self, key: GroupKey) -> Reason:
        """Name the rule that keeps out a group that fits alone, how far it is from keeping it, and who holds the rest.

        NotDecided where no rule is proved to.
        """
        cause = self._after.of(key)
        first = [name for name, _ in takewhile(lambda level: level[0] not in MAXIMISED, self.dense.levels)]
        if (cause is None or cause.code == "NotDecided") and first:
            return Reason("Outcompeted", f"fits alone; the policy puts {', '.join(first)} before placing it")
        if cause is None:
            return Reason("NotDecided", "fits alone, and beside this placement as well: no time to tell")
        held = self._held_once(cause, key)
        if cause.code == "NotDecided":
            message = f"fits alone; beside this placement counting does not exclude it, and no place was found{held}"
            return Reason("NotDecided", f"{message}: no time to tell")
        return Reason("Outcompeted", f"fits alone; beside this placement: {cause.message}{held}")

    def _held_once(self, cause: Cause, key: GroupKey) -> str:
        """Groups of which nothing is placed share a cause, and who is in their way."""
        # The cause is kept beside the text, so that its id stays its own.
        place = id(cause), key if self.causes.ready(key) else None
        if place not in self._names:
            self._names[place] = cause, self._held(cause, key)
        return self._names[place][1]

    def _held(self, cause: Cause, key: GroupKey) -> str:
        """New pods that are in the way, group by group."""
        number, texts = self.causes.index[key], []
        at = self._at(cause.nodes)
        if cause.held:
            holds = [cause.holds(self.instance.pods[each.pods[0]]) for each in self.dense.classes]
            names = self._listed(np.array(holds, dtype=bool)[self.classes], number, self.pods)
            texts += [f"{cause.held} {names}"] if names else []
        if cause.nodes is not None or not texts:
            names = self._listed(at[self.nodes], number, self.prices)
            if not names and not texts:
                names = self._listed(self._usable_by(number)[self.nodes], number, self.prices)
            texts += [f"the room went to {names}"] if names else []
        return "".join(f"; {text}" for text in texts)

    def _at(self, names: frozenset[str] | None) -> BoolArray:
        found = np.zeros(len(self.dense.nodes), dtype=bool)
        found[[self.dense.node_index[name] for name in names or ()]] = True
        return found

    def _usable_by(self, group: int) -> BoolArray:
        """Nodes that some pod of the group may use: bool, shape (nodes,)."""
        gang = self.dense.groups[group]
        masks = tuple(sorted({self.dense.classes[index].mask for index in gang.classes}))
        scope = self.dense.scopes[gang.scope]
        key = (masks, scope.limit, scope.bound)
        if key not in self._usable:
            within = np.zeros(len(self.dense.nodes), dtype=bool)
            for domain in tops(self.causes.groups.alone.state, gang.scope, self.layout.domains.root):
                begin, end = self.layout.slice_of(domain)
                within[begin:end] = True
            self._usable[key] = within & self.dense.masks[list(masks)].any(axis=0)
        return self._usable[key]

    def _listed(self, there: BoolArray, own: int, much: Sequence[int] | npt.NDArray[np.int64]) -> str:
        """Groups of the entries, those with most first."""
        amounts = np.zeros(len(self.dense.groups), dtype=np.int64)
        pods = np.zeros(len(self.dense.groups), dtype=np.int64)
        np.add.at(amounts, self.groups[there], np.asarray(much)[there])
        np.add.at(pods, self.groups[there], self.pods[there])
        pods[own] = 0
        order = sorted(np.flatnonzero(pods).tolist(), key=lambda group: (-int(amounts[group]), group))
        texts = [f"{self.dense.groups[group].key} ({plural(int(pods[group]), 'pod')})" for group in order[:NAMED]]
        more = len(order) - NAMED
        return ", ".join(texts) + (f" and {plural(more, 'other group')}" if more > 0 else "")
