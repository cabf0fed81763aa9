"""Pods beyond what a ready gang needs: as many as still fit, without moving anything."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice

import numpy as np

from placer.dense import DenseGroup
from placer.dense.score import ready
from placer.methods.greedy.domains import anchor, candidates, demand_of, tops, touched_leaves
from placer.methods.greedy.gang import Style, pack
from placer.methods.greedy.nodes import Way, place_one
from placer.methods.greedy.pack import choose
from placer.methods.greedy.plan import Block
from placer.methods.greedy.state import State

__all__ = ["extend", "is_ready"]


def is_ready(state: State, group: int) -> bool:
    """Whether the group is ready as things stand (C5)."""
    gang = state.dense.groups[group]
    return ready(state.dense, group, {index: state.placed[index] for index in gang.classes})


def extend(state: State, group: int, style: Style) -> None:
    """Place what is left of a ready group, as much as fits: subgroups whole or at their size, other pods one by one."""
    gang = state.dense.groups[group]
    if not any(state.left(index) for index in gang.classes):
        return
    for sub in gang.sub_groups:
        part = state.dense.sub_groups[sub]
        if part.short and not any(state.placed[index] for index in part.classes):
            _start(state, gang, sub, style)
    for index in sorted(gang.classes, key=lambda index: (-state.layout.class_prices[index], index)):
        sub = state.dense.classes[index].sub_group
        if state.left(index) and (sub < 0 or _started(state, sub)):
            _fill(state, gang, index, style)


def _started(state: State, sub: int) -> bool:
    part = state.dense.sub_groups[sub]
    return not part.short or any(state.placed[index] for index in part.classes)


def _start(state: State, gang: DenseGroup, sub: int, style: Style) -> None:
    """Place a subgroup that has nothing yet: all its pods where they fit, else at least as many as it may have (C6)."""
    part = state.dense.sub_groups[sub]
    prices = state.layout.class_prices
    dearest = sorted(part.classes, key=lambda index: (-prices[index], index))
    whole = tuple((index, state.left(index)) for index in dearest)
    leaves = part.scope if style.few else None
    outers = tops(state, gang.scope, state.layout.domains.root)
    for outer in outers:
        block = Block(sub, whole)
        for domain in candidates(state, part.scope, outer, demand_of(state, (block,)), (block,)):
            if pack(state, whole, domain, leaves, style):
                return
    for outer in outers:
        for domain in tops(state, part.scope, outer):
            if any(_as_many(state, order, domain, part.short, style) for order in (dearest, dearest[::-1])):
                return


def _as_many(state: State, classes: Sequence[int], domain: int, least: int, style: Style) -> bool:
    """Place as many pods as fit of one class after the other; undone where they are fewer than ``least``."""
    mark = state.mark()
    for index in classes:
        _place(state, index, domain, None, style)
    if sum(state.placed[index] for index in classes) >= least:
        return True
    state.undo(mark)
    return False


def _place(state: State, index: int, domain: int, scope: int | None, style: Style) -> None:
    """Place as many pods of a class in a domain as its queues and the room allow; few leaves of ``scope``, if any."""
    begin, end = state.layout.slice_of(domain)
    if state.communication is not None and index in state.dense.workload_of:
        while state.left(index) and place_one(state, index, Way((begin, end), style.reuse, scope)):
            pass
        return
    shape = state.layout.shape_of[index]
    count = min(state.left(index), state.queue_limit(index), int(state.fits(shape)[begin:end].sum()))
    leaves = None if scope is None else touched_leaves(state, scope)
    chosen = choose(state, shape, count, (begin, end), leaves=leaves, reuse=style.reuse) if count > 0 else None
    if chosen is not None:
        state.take(index, *chosen)


def _fill(state: State, gang: DenseGroup, index: int, style: Style) -> None:
    """Place as many pods of one class as its scopes, its queues and the room allow, nearest first."""
    sub = state.dense.classes[index].sub_group
    scopes = [gang.scope] + ([state.dense.sub_groups[sub].scope] if sub >= 0 else [])
    wanted = [scope for scope in scopes if state.dense.scopes[scope].wanted]
    for domain in _nearest_first(state, scopes, index):
        _place(state, index, domain, wanted[-1] if wanted and style.few else None, style)
        if not state.left(index):
            return


def _nearest_first(state: State, scopes: list[int], index: int) -> Iterator[int]:
    """Domains for one more pod, narrow ones before those around them; the caller places pods after each."""
    root = state.layout.domains.root
    for outer in _roomiest_first(state, tops(state, scopes[0], root), index):
        inner = [outer] if len(scopes) == 1 else _roomiest_first(state, tops(state, scopes[1], outer), index)
        for top in inner:
            before = state.placed[index]
            yield from _upward(state, scopes[-1], top, index)
            limited = any(state.dense.scopes[scope].limit is not None for scope in scopes)
            if limited and state.placed[index] > before:  # what is placed now ties the scopes to this domain
                return


def _upward(state: State, scope: int, top: int, index: int) -> Iterator[int]:
    """From where the scope is up to ``top``; where it is nowhere, first the lowest domain that takes all pods."""
    if state.dense.scopes[scope].wanted:
        domain = anchor(state, scope)
        if domain is None:
            block = Block(state.dense.classes[index].sub_group, ((index, state.left(index)),))
            yield from islice(candidates(state, scope, top, demand_of(state, (block,)), (block,)), 1)
        else:
            tree = state.layout.domains
            inside = set(state.layout.inside(top).domains.tolist())
            while domain in inside and domain != top:
                yield domain
                domain = int(tree.parent[domain])
    yield top


def _roomiest_first(state: State, domains: list[int], index: int) -> list[int]:
    if len(domains) < 2:
        return domains
    fit = np.concatenate(([0], np.cumsum(state.able(index))))
    tree = state.layout.domains
    return sorted(domains, key=lambda domain: (int(fit[tree.begin[domain]] - fit[tree.end[domain]]), domain))
