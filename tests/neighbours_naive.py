"""An order in which each pod is admitted by those before it (C12), by trying them all: shares no code with placer."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from placer.problem import Instance, Key, Pod, PodState


def some_order(
    instance: Instance, pairs: Sequence[tuple[Key, str]], fine: Callable[[list[tuple[Key, str]]], bool]
) -> list[tuple[Key, str]] | None:
    """An order of bindings in which each is admitted and that is ``fine`` in the end; None where there is none.

    ``fine`` is asked of all bindings in order.
    """
    return _extend(instance, [], list(pairs), fine, set())


def _extend(
    instance: Instance,
    done: list[tuple[Key, str]],
    left: list[tuple[Key, str]],
    fine: Callable[[list[tuple[Key, str]]], bool],
    dead: set[frozenset[Key]],
) -> list[tuple[Key, str]] | None:
    if not left:
        return list(done) if fine(done) else None
    here = frozenset(key for key, _ in left)
    if here in dead:
        return None
    for number, (key, node) in enumerate(left):
        if _admitted(instance, done, key, node):
            found = _extend(instance, [*done, (key, node)], left[:number] + left[number + 1 :], fine, dead)
            if found is not None:
                return found
    if not any(instance.aligning_nodes):
        dead.add(here)
    return None


def _admitted(instance: Instance, done: Sequence[tuple[Key, str]], key: Key, node: str) -> bool:
    """What kube-scheduler says of one pod beside bound ones and those placed so far."""
    pod = instance.pods[key]
    terms = pod.neighbours.affinity
    labels = instance.nodes[node].labels
    if not terms:
        return True
    if any(term.topology_key not in labels for term in terms):
        return False

    def matches(other: Pod) -> bool:
        return all(term.pods.matches(other, instance.namespaces) for term in terms)

    there = [(each, each.node) for each in instance.pods.values() if each.state is PodState.BOUND]
    there += [(instance.pods[other], name) for other, name in done]
    domains = {
        (term.topology_key, instance.nodes[name].labels[term.topology_key])
        for other, name in there
        if name in instance.nodes and matches(other)
        for term in terms
        if term.topology_key in instance.nodes[name].labels
    }
    if not domains and matches(pod):
        return True
    return all((term.topology_key, labels[term.topology_key]) in domains for term in terms)
