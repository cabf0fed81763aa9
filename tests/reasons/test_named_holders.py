"""Who is named: pods that hold a domain, pods that are being deleted, nodes whose places for pods are taken; each claim
against the rules, and against trying everything.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache

import pytest

from placer.answers.reasons import reasons
from placer.answers.solving import solve
from placer.arrays.dense_builder import make_dense
from placer.problem import GroupKey, Instance, Key, PodState
from placer.problem.neighbours import Neighbours
from placer.problem.outcome import Outcome
from placer.problem.placement import Placement
from placer.problem.result import Reason
from placer.rules import verify
from placer.search.greedy.multi_start import greedy
from tests.oracle import placements
from tests.solving import carried_out
from tests.support import instance_of, node, pod
from tests.tiny import Tiny, tiny
from tests.tiny_neighbours import tiny_neighbours
from tests.world import World, apart, near, spread

#: Reasons that what runs has no part in.
OF_ITSELF = ("InvalidGroup", "GangIncomplete", "Unsupported", "NoEligibleNode", "NotDecided")


@cache
def told(make: Callable[[int], Tiny], seeds: range) -> tuple[tuple[Instance, GroupKey, Reason], ...]:
    """Reasons after the greedy, each with the instance in which its message is so."""
    found = []
    for seed in seeds:
        instance = make(seed).instance
        if instance.policy.levels[:1] != ("placed",):
            continue
        dense = make_dense(instance)
        solution = greedy(dense)
        after = Outcome(instance, dense.placement(solution)).carried_out()
        for key, reason in reasons(instance, dense, solution).items():
            found.append((after if reason.code == "Outcompeted" else instance, key, reason))
    return tuple(found)


def sentences(reason: Reason) -> Iterator[tuple[str, str]]:
    """Topology key of each sentence about neighbours, and what it says of it."""
    rule = r"(?:must be in (?:no|one)|be spread over) (\S+) "
    parts = re.split(rule, reason.message)
    yield from zip(parts[1::2], parts[2::2], strict=True)


def broken(world: Instance, key: GroupKey, node: str) -> Iterator[set[str]]:
    """The rules that each pod left of a group breaks on a node by itself."""
    for left in world.groups[key].pending:
        yield {each.rule for each in verify(world, Placement.of({left: node}))}


NEIGHBOURS = range(90)


def test_who_is_said_to_be_in_the_way_keeps_a_pod_of_the_group_off() -> None:
    seen = 0
    for world, key, reason in told(tiny_neighbours, NEIGHBOURS):
        for label, text in sentences(reason):
            held = re.search(r": (Pod [^:]*) (?:is|are) in the way", text)
            for name in re.findall(r"Pod (\S+?/[^\s,]+)", held[1]) if held else ():
                pod = world.pods[Key(*name.split("/"))]
                assert pod.node is not None
                assert f"in {world.nodes[pod.node].labels[label]}" in text
                assert any("C13" in rules for rules in broken(world, key, pod.node)), f"{key}: {name}: {reason}"
                assert ("deleted" in text) >= (pod.state is PodState.TERMINATING)
                seen += 1
    assert seen >= 15


def test_where_there_is_said_to_be_room_only_rules_about_neighbours_are_broken() -> None:
    seen = 0
    for world, key, reason in told(tiny_neighbours, NEIGHBOURS):
        for label, text in sentences(reason):
            outside = r"(?: and )?(on nodes without this label)?"
            room = re.search(rf"there is room for one of them (?:in ([^;]*?)(?: and \d+ more)?)?{outside}(?:;|$)", text)
            if room is None:
                continue
            values = set(re.split(", | and ", room[1])) if room[1] else set()
            values |= {""} if room[2] else set()
            roomy = {
                node.labels.get(label, "")
                for name, node in world.nodes.items()
                if any(not rules & {"C2", "C3"} for rules in broken(world, key, name))
            }
            assert values <= roomy, f"{key}: {reason}"
            seen += 1
    assert seen >= 10


def test_a_group_fits_once_pods_that_are_being_deleted_have_ended_where_it_is_said() -> None:
    """And where it would, and is not ready, it is said."""
    seen = missed = 0
    for world, key, reason in told(tiny, range(250)):
        ready = Outcome(world, Placement()).ready(world.groups[key])
        ending = [pod for pod in world.pods.values() if pod.state is PodState.TERMINATING]
        if ready or not ending or reason.code in OF_ITSELF or "the policy puts" in reason.message:
            continue
        left = replace(world, pods={each: pod for each, pod in world.pods.items() if pod not in ending})
        lone = carried_out(left, Placement(), key)
        fits = any(Outcome(lone, each).ready(lone.groups[key]) for each in placements(lone))
        said = "it fits once" in reason.message
        assert said <= fits, f"{key}: {reason}"
        seen, missed = seen + said, missed + (fits and not said)
        named = re.findall(r"Pod (\S+) on Node (\S+?)(?:,| and|$)", reason.message.partition("it fits once")[2])
        assert all(world.pods[Key(*name.split("/"))].node == node for name, node in named)
    assert seen >= 5
    assert missed <= seen / 5


# -------------------------------------------------------------------------------------------------------- worked out


def said(world: World) -> tuple[str, str]:
    """Code and message of the only reason."""
    (reason,) = solve(world.instance(), method="greedy").reasons.values()
    return reason.code, reason.message


def hosts(count: int, room: int = 8) -> World:
    world = World()
    for number in range(count):
        world.node(f"n{number}", room, labels={"host": f"n{number}", "zone": "ab"[number % 2]})
    return world


WEB = {"app": "web"}


def test_only_those_in_domains_with_room_are_named() -> None:
    """n0 is full and has a pod of the kind; n1 has room, and the pod there is the one in the way."""
    world = hosts(2)
    world.running("full", "n0", gpu=8, labels=WEB)
    world.running("there", "n1", gpu=1, labels=WEB)
    world.pod("p", labels=WEB, asks=apart("host", app="web"))
    code, message = said(world)
    assert code == "PodAntiAffinity"
    assert "with pods of app=web, themselves among them: Pod default/there in n1 is in the way" in message
    assert "default/full" not in message


def test_a_pod_whose_own_term_keeps_others_off_is_named() -> None:
    world = hosts(1)
    world.running("old", "n0", labels={"app": "db"}, asks=apart("zone", app="web"))
    world.pod("p", labels=WEB)
    message = "others must be in no zone with pods of app=web, as its pods are: Pod default/old in a is in the way"
    assert message in said(world)[1]


def test_counted_pods_are_named_where_a_spread_keeps_a_pod_out() -> None:
    world = hosts(2)
    world.running("w", "n0", gpu=1, labels=WEB)
    world.running("x", "n1", gpu=8)
    world.pod("p", labels=WEB, asks=spread("zone", app="web"))
    code, message = said(world)
    assert code == "TopologySpread"
    assert "b has 0 of pods of app=web and a has 1 of pods of app=web (Pod default/w)" in message
    assert "there is room for one of them in a; 2 such domains (a, b)" in message


@pytest.mark.parametrize("beside", [False, True])
def test_a_pod_to_be_near_is_named_and_who_took_the_room_there(beside: bool) -> None:
    world = hosts(2)
    world.running("db", "n0", gpu=4, labels={"app": "db"})
    if beside:
        world.pod("rival", gpu=4, selector={"host": "n0"}, priority=10)
    else:
        world.running("other", "n0", gpu=4)
    asks: Neighbours = near("zone", app="db")
    world.pod("p", labels=WEB, asks=asks)
    code, message = said(world)
    assert code == ("Outcompeted" if beside else "PodAffinity")
    assert "its pods must be in one zone with pods of app=db: Pod default/db is in a" in message
    assert "there is room for one of them in b" in message
    assert message.endswith("the room went to Pod default/rival (1 pod)") is beside


def test_new_pods_in_the_way_are_named_and_no_others() -> None:
    world = hosts(2)
    for name in "abc":
        world.pod(f"web-{name}", gpu=1, labels=WEB, asks=apart("host", app="web"), priority=1)
    for name in "xy":
        world.pod(f"other-{name}", gpu=1, priority=2)
    code, message = said(world)
    assert code == "Outcompeted"
    assert "Pod default/web-a in n0 and Pod default/web-b in n1 are in the way" in message
    assert "other-" not in message


def test_places_for_pods_are_named_where_they_are_short() -> None:
    world = World()
    world.node("n0", 8, pods=1)
    world.node("n1", 0, pods=9)
    world.pods_of("a b", world.gang("g", 2))
    assert said(world) == (
        "InsufficientResources",
        "needs room for 2 pods of nvidia.com/gpu 1; the nodes have room for 1 in all, 1 too few; places for pods "
        "(pods) are short: Node n0 has 1 of 1 free",
    )
    world = World()
    world.node("n0", 1, pods=9)
    world.pods_of("a b", world.gang("g", 2))
    assert "pods)" not in said(world)[1]


def test_every_minimum_that_is_missed_is_named_with_the_role() -> None:
    world = hosts(1)
    gang = world.gang("g", 3, roles={"master": 1, "worker": 2})
    for name in "ab":
        world.pod(name, gang, role="worker")
    assert said(world) == (
        "GangIncomplete",
        "minMember is 3, but there are 2 pending pods; minTaskMember of task master is 1, but there are 0 pending pods",
    )


def test_the_role_for_which_there_is_no_room_is_named() -> None:
    world = hosts(1)
    gang = world.gang("g", 2, roles={"master": 1, "worker": 1})
    world.pod("m", gang, gpu=9, role="master")
    world.pod("w", gang, gpu=1, role="worker")
    code, message = said(world)
    assert code == "InsufficientResources"
    assert message.endswith("; 1 of the 2 pods that it needs asks for this: task master")


#: Namespaces that a term means, as written, and where none of its pods runs.
WHERE: list[tuple[dict[str, object], str]] = [
    ({}, " in Namespace default;"),
    ({"namespaces": ["a", "b"]}, " in Namespaces a and b;"),
    ({"namespaceSelector": {"matchLabels": {"team": "x"}}}, " in Namespaces of team=x;"),
    ({"namespaceSelector": {}, "labelSelector": {"matchLabels": {"app": "none"}}}, ";"),
]


@pytest.mark.parametrize(("more", "where"), WHERE)
def test_pods_of_another_namespace_are_not_said_not_to_run(more: dict[str, object], where: str) -> None:
    """db runs, in a Namespace that the term does not mean."""
    term = {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "db"}}, **more}
    affinity = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    db = pod("db", namespace="other", node="n", labels={"app": "db"}, cpu=1)
    found = instance_of(node("n", cpu=8, labels={"zone": ""}), db, pod("p", cpu=1, spec={"affinity": affinity}))
    result = solve(found)
    (reason,) = result.reasons.values()
    assert reason.code == "PodAffinity"
    assert f": none runs{where}" in reason.message
    assert '""' in reason.message


def test_a_pod_that_attracts_nobody_since_it_is_being_deleted_is_named() -> None:
    near = {"topologyKey": "rack", "labelSelector": {"matchLabels": {"app": "w"}}}
    asks = {"affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [near]}}}
    held = pod("x", node="a", labels={"app": "w"})
    ending = {**held, "metadata": {**held["metadata"], "deletionTimestamp": "2026-01-01T00:00:00Z"}}
    instance = instance_of(node("a", {"rack": "1"}), ending, pod("p", spec=asks))
    dense = make_dense(instance)
    (why,) = reasons(instance, dense, greedy(dense)).values()
    assert "none runs in Namespace default but Pod default/x, which is being deleted" in why.message
