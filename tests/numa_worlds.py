"""Small worlds about NUMA zones, by hand, and what their kubelets admit; every way to solve is asked about them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from placer.base.quantity import Resources
from placer.problem import Instance
from placer.problem.numa import NumaDemand, NumaNode
from tests.numa_drawn import NAMES
from tests.numa_words import demand, numa
from tests.world import World

ONE, TWO, THREE, FOUR = (demand(f"{cores} cpu 1 memory") for cores in (1, 2, 3, 4))


def alone(node: NumaNode, **pods: NumaDemand) -> World:
    """One node, n1, with more cores than its zones have, and pods in no group."""
    world = World()
    world.node("n1", 0, cpu=99_000, numa=node)
    for name, asked in pods.items():
        world.pod(name, gpu=0, numa=asked)
    return world


def assigned() -> World:
    """Zones of 2 and 4 cores could hold 2, and 3 + 1; but the 1, which comes before the 2 in its pod, goes to zone 0.

    With the 3 in zone 1, nowhere are 2 left; before the 3, the 2 goes to zone 1, where then 2 are left.
    """
    return alone(numa("single", "container", "2 cpu 9 memory", "4 cpu 9 memory"), a=THREE, b=demand("1 cpu", "2 cpu"))


def ordered() -> World:
    """Only the 4 before the 2 works: else the 2 go to zone 0, where the 4 belong."""
    return alone(numa("single", "container", "4 cpu 9 memory", "2 cpu 9 memory"), a=TWO, b=FOUR)


def wide() -> World:
    """Pods of 6 cores take two zones of 4: with one of 2, wherever it goes, 8 are full."""
    node = numa("restricted", "container", "4 cpu 9 memory", "4 cpu 9 memory")
    return alone(node, a=demand("6 cpu 12 memory"), b=TWO, c=ONE)


def uneven() -> World:
    """5 cores take two zones, 1 of memory takes one: refused. 5 and 12 take two each."""
    node = numa("restricted", "container", "4 cpu 9 memory", "4 cpu 9 memory")
    return alone(node, a=demand("5 cpu 1 memory"), b=demand("5 cpu 12 memory"))


def whole() -> World:
    """Scope pod: 3 + 3 cores fit into no zone together, 3 + 1 into one each."""
    both, less = (demand("3 cpu 1 memory", f"{cores} cpu 1 memory") for cores in (3, 1))
    return alone(numa("single", "pod", "4 cpu 9 memory", "4 cpu 9 memory"), a=both, b=less, c=less)


def piecewise() -> World:
    """The same with scope container: the first leaves 1 core in each zone, the other two fill one zone each."""
    both, less = (demand("3 cpu 1 memory", f"{cores} cpu 1 memory") for cores in (3, 1))
    return alone(numa("single", "container", "4 cpu 9 memory", "4 cpu 9 memory"), a=both, b=less, c=less)


def initial() -> World:
    """Each needs a whole zone at first and keeps half of that one, which the kubelet has it use again: no third."""
    pod = demand("init: 4 cpu 1 memory", "2 cpu 1 memory")
    return alone(numa("single", "container", "4 cpu 9 memory", "4 cpu 9 memory"), a=pod, b=pod, c=pod)


def reused() -> World:
    """What needs 1 core at first gets it in zone 0, where its 4 have no room: zone 1 is no help.

    After a pod of 2 that is so as well; after one of 3 there is no core in zone 0, and both get zone 1. Who keeps the
    core of zone 0 is free to have 3 more in zone 1.
    """
    node = numa("single", "container", "3 cpu 9 memory", "4 cpu 9 memory")
    pods = [demand("init: 1 cpu 1 memory", f"{cores} cpu 1 memory") for cores in (4, 3)]
    more = demand("init: 1 cpu 1 memory", "1 cpu 1 memory", "3 cpu 1 memory")
    return alone(node, a=pods[0], b=pods[1], c=TWO, d=THREE, e=more)


def reused_shares() -> World:
    """Half cores are pinned nowhere, so 1.5 of an init container bind no zone; nor does a sidecar's 1."""
    node = numa("single", "container", "3 cpu 9 memory", "4 cpu 9 memory")
    pods = [demand(f"{first} cpu 1 memory", "4 cpu 1 memory") for first in ("init: 1.5", "sidecar: 1")]
    return alone(node, a=pods[0], b=pods[1])


def reused_gpu() -> World:
    """The GPU of an init container is used again as well, by pods of every QoS class."""
    node = numa("single", "container", "1 gpu", "2 gpu")
    return alone(node, a=demand("init: 1 gpu", "2 gpu", qos="Burstable"), b=demand("init: 1 gpu", "1 gpu"))


def reused_wide() -> World:
    """Restricted: 6 cores of an init container are in both zones, and 2 are to have one: refused. 5 have both."""
    pods = [demand("init: 6 cpu", f"{cores} cpu") for cores in (2, 5)]
    return alone(numa("restricted", "container", "4 cpu", "4 cpu"), a=pods[0], b=pods[1])


def initial_whole() -> World:
    """Scope pod: the same, as the pod has one zone."""
    pod = demand("init: 4 cpu 1 memory", "2 cpu 1 memory")
    return alone(numa("single", "pod", "4 cpu 9 memory", "4 cpu 9 memory"), a=pod, b=pod, c=pod)


def gone() -> World:
    """Who runs there took 3 of zone 0: 2 and 4 cores fit only one to zone 1, and 1 besides."""
    return alone(numa("single", "container", "1 of 4 cpu 9 memory", "4 cpu 9 memory"), a=TWO, b=FOUR, c=ONE, d=ONE)


def parts() -> World:
    """2.5 cores are not pinned, wherever they are; 2 are, and find no second zone."""
    node = numa("single", "container", "2 cpu 9 memory", "1 cpu 9 memory")
    return alone(node, a=demand("2.5 cpu 1 memory"), b=demand("2.5 cpu 9 memory"), c=TWO, d=TWO)


def over() -> World:
    """Scope pod: overhead counts where a container has the resource aligned, and 1.5 cores are not."""
    node = numa("single", "pod", "2 cpu 9 memory", "2 cpu 9 memory")
    return alone(
        node,
        a=demand("1.5 cpu 1 memory", overhead="3 cpu 1 memory"),
        b=demand("1 cpu 1 memory", overhead="2 cpu"),
        c=demand("1 cpu 1 memory", overhead="1 cpu"),
    )


def led() -> World:
    """Alone, the first container of a takes zone 0, where the second belongs; b, which takes the GPU there, helps."""
    node = numa("single", "container", "4 cpu 9 memory 1 gpu", "3 cpu 9 memory 1 gpu")
    return alone(node, a=demand("2 cpu 1 gpu", "4 cpu 1 memory"), b=demand("1 gpu 1 memory"))


def drained() -> World:
    """Restricted: 5 cores take 4 of zone 0 and 1 of zone 1, where 3 and the GPU are left for the other container; the
    other way round they would not be.
    """
    node = numa("restricted", "container", "4 cpu 9 memory", "4 cpu 9 memory 1 gpu")
    return alone(node, a=demand("5 cpu 12 memory", "3 cpu 1 memory 1 gpu"), b=ONE)


def empty() -> World:
    """Restricted: 3 cores go to one zone, because an empty one could hold them, and wait for it."""
    return alone(numa("restricted", "container", "2 of 4 cpu 9 memory", "2 of 4 cpu 9 memory"), a=THREE, b=TWO, c=TWO)


def roomy(instance: Instance) -> Instance:
    """The instance with room on every node for all pods, as far as its zones are not looked at."""
    more = Resources(dict.fromkeys(NAMES, 99_000))
    nodes = {name: replace(node, allocatable=node.allocatable + more) for name, node in instance.nodes.items()}
    return replace(instance, nodes=nodes)


def crowded(node: NumaNode, pods: list[NumaDemand]) -> Instance:
    """Pods in no group and one node with room for all of them, but for its zones."""
    world = World()
    world.node("n1", 0, numa=node)
    for number, asked in enumerate(pods):
        world.pod(f"p{number}", gpu=0, numa=asked)
    return roomy(world.instance())


#: Pods that can be placed together, and such as cannot.
HAND: list[tuple[Callable[[], World], str, str]] = [
    (assigned, "a b", "ab"),
    (ordered, "a b ab", ""),
    (wide, "a b ab bc ac", "abc"),
    (uneven, "b", "a ab"),
    (whole, "b c bc", "a ab"),
    (piecewise, "a b c bc", "ab ac abc"),
    (initial, "a ab", "abc"),
    (reused, "b e cd ad bd ab", "a ac"),
    (reused_shares, "a b", "ab"),
    (reused_gpu, "b ab", "a"),
    (reused_wide, "b", "a ab"),
    (initial_whole, "a ab", "abc"),
    (drained, "a b", "ab"),
    (empty, "b bc", "a ab"),
    (over, "a c ac", "b ab"),
    (led, "b ab", "a"),
    (parts, "a b c ab abc", "cd abcd"),
    (gone, "a b c d bc ac acd", "ab abc bcd abcd"),
]


def together(pods: str) -> str:
    return " ".join(f"{pod}@n1" for pod in pods)
