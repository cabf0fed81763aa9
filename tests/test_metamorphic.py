"""What must happen to the answer when the question changes in a known way, whatever the right answer is.

Most relations are theorems about the optimum, so they are asked of ``exact``, with a proof on both sides; each says
why it holds. What is about the answer itself (the same bytes for the same question) is asked of the greedy too.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import cache
from hashlib import sha256
from pathlib import Path
from random import Random
from typing import Any

import pytest

from placer.answers.solving import solve
from placer.base.quantity import CPU, Resources, parse
from placer.cli import main
from placer.lab.generate import generate
from placer.problem import Constraints, Group, GroupKey, Instance, Key, NetworkTopology, Node, Pod, PodState
from placer.problem.instance import LEVELS
from placer.problem.placement import Placement, Score, better
from placer.problem.result import Result, Verdict
from placer.rules import verify
from placer.rules.scoring import score
from tests.shrink import describe
from tests.solving import carried_out
from tests.tiny import Tiny, tiny
from tests.world import GPU, port

SEEDS = range(30)


pytestmark = pytest.mark.usefixtures("search_here")


def answered(instance: Instance, method: str = "exact") -> Result:
    return solve(instance, method=method, workers=1, time_limit=None)


def optimum(instance: Instance) -> Score:
    """The proved optimum."""
    result = answered(instance)
    assert result.verdict is Verdict.OPTIMAL, describe(instance)
    return tuple(judged.value for judged in result.objective)


@cache
def known(seed: int) -> tuple[Score, Placement]:
    """The proved optimum of a tiny instance, and a placement that has it."""
    result = answered(tiny(seed).instance)
    assert result.verdict is Verdict.OPTIMAL, describe(tiny(seed).instance)
    assert result.placement is not None
    return tuple(judged.value for judged in result.objective), result.placement


def instances(
    keep: Callable[[Tiny], bool] = lambda _: True, seeds: Iterable[int] = SEEDS
) -> list[tuple[int, Instance]]:
    """Tiny instances of a kind, with their seeds."""
    return [(seed, tiny(seed).instance) for seed in seeds if keep(tiny(seed))]


def placed_first(instance: Instance) -> bool:
    return instance.policy.levels[0] == "placed"


# --------------------------------------------------------------------------------------------------- names and order


def renamed(instance: Instance, name: Callable[[str], str]) -> Instance:
    """The instance with every object's name changed, in the order that the new names have."""

    def key(old: Key) -> Key:
        return Key(old.namespace, name(old.name))

    def keys(old: Iterable[Key]) -> tuple[Key, ...]:
        return tuple(sorted(map(key, old)))

    def group_key(old: GroupKey | None) -> GroupKey | None:
        return None if old is None else old._replace(name=name(old.name))

    def names(old: Iterable[str]) -> tuple[str, ...]:
        return tuple(sorted(map(name, old)))

    def constraints(old: Constraints) -> Constraints:
        return replace(
            old,
            required=tuple(
                tuple(
                    replace(term, fields=tuple(replace(each, values=names(each.values)) for each in term.fields))
                    for term in terms
                )
                for terms in old.required
            ),
        )

    def pod(old: Pod) -> Pod:
        return replace(
            old,
            name=name(old.name),
            node=None if old.node is None else name(old.node),
            group=group_key(old.group),
            queue=None if old.queue is None else name(old.queue),
            constraints=constraints(old.constraints),
        )

    def group(old: Group) -> Group:
        return replace(
            old,
            key=old.key._replace(name=name(old.key.name)),
            queue=None if old.queue is None else name(old.queue),
            pending=keys(old.pending),
            bound=keys(old.bound),
            sub_groups=tuple(
                replace(part, pending=keys(part.pending), bound=keys(part.bound)) for part in old.sub_groups
            ),
        )

    domains = (
        replace(
            old,
            name=name(old.name),
            parent=None if old.parent is None else name(old.parent),
            children=names(old.children),
            nodes=names(old.nodes),
        )
        for old in instance.topology.hyper_nodes.values()
    )
    queues = (
        replace(old, name=name(old.name), parent=None if old.parent is None else name(old.parent))
        for old in instance.queues.values()
    )
    return replace(
        instance,
        nodes=_by_name(replace(node, name=name(node.name)) for node in instance.nodes.values()),
        pods=dict(sorted((pod.key, pod) for pod in map(pod, instance.pods.values()))),
        groups=dict(sorted((group.key, group) for group in map(group, instance.groups.values()))),
        topology=replace(instance.topology, hyper_nodes=_by_name(domains)),
        queues=_by_name(queues),
    )


def _by_name(objects: Iterable[Any]) -> dict[str, Any]:
    return dict(sorted((each.name, each) for each in objects))


def scrambled(name: str) -> str:
    """A name whose order has nothing to do with the old one's."""
    return f"{sha256(name.encode()).hexdigest()[:8]}-{name}"


def test_names_decide_nothing() -> None:
    """No rule and no value looks at a name, so a bijection of names is one of placements that keeps every value."""
    for seed, instance in instances():
        assert optimum(renamed(instance, scrambled)) == known(seed)[0], describe(instance)


def test_only_the_order_of_priorities_counts() -> None:
    """O1 compares priorities, it never calculates with them: any increasing change of them leaves every value."""
    for seed, instance in instances(lambda t: "priority" in t.tags):
        groups = {key: replace(group, priority=7 * group.priority - 30) for key, group in instance.groups.items()}
        wanted = tuple(v if v.priority is None else replace(v, priority=7 * v.priority - 30) for v in known(seed)[0])
        assert optimum(replace(instance, groups=groups)) == wanted, describe(instance)


# --------------------------------------------------------------------------------------------------------- more nodes


def with_node(instance: Instance, node: Node) -> Instance:
    """The instance with one node more, in no HyperNode."""
    return replace(instance, nodes=dict(sorted({**instance.nodes, node.name: node}.items())))


def equal_nodes(found: Tiny) -> bool:
    return len({node.allocatable for node in found.instance.nodes.values()}) == 1


def test_an_equal_node_never_makes_it_worse() -> None:
    """With equal nodes no weight changes, and every old placement is there still, worth what it was."""
    gained = 0
    for seed, instance in instances(equal_nodes):
        value = optimum(with_node(instance, Node("m", next(iter(instance.nodes.values())).allocatable, {})))
        assert not better(known(seed)[0], value), describe(instance)
        gained += better(value, known(seed)[0])
    assert gained >= 1


def doubled(instance: Instance) -> Instance:
    """The instance and a copy of it under other names, side by side; tiers and the virtual root's tier stay."""
    one, other = (renamed(instance, lambda name, mark=mark: f"{name}-{mark}") for mark in "ab")  # type: ignore[misc]
    return replace(
        one,
        nodes=dict(sorted({**one.nodes, **other.nodes}.items())),
        pods=dict(sorted({**one.pods, **other.pods}.items())),
        groups=dict(sorted({**one.groups, **other.groups}.items())),
        topology=replace(
            one.topology,
            hyper_nodes=dict(sorted({**one.topology.hyper_nodes, **other.topology.hyper_nodes}.items())),
        ),
        queues=dict(sorted({**one.queues, **other.queues}.items())),
    )


def test_twice_the_cluster_and_twice_the_queue_place_at_least_twice() -> None:
    """Both k and total double, so no weight changes; two optimal placements side by side are valid, and every value
    is a sum over groups, nodes and HyperNodes, none of which is in both halves. Together more may be possible: a gang
    may use what both halves leave free.
    """
    gained = 0
    for seed, instance in instances(seeds=range(20)):
        value, placement = known(seed)
        twice = tuple(replace(each, value=2 * each.value) for each in value)
        both = doubled(instance)
        pairs = [(Key(k.namespace, f"{k.name}-{m}"), f"{n}-{m}") for m in "ab" for k, n in placement.node_of.items()]
        assert verify(both, Placement.of(pairs)) == []
        assert score(both, Placement.of(pairs)) == twice
        found = optimum(both)
        assert not better(twice, found), describe(instance)
        gained += better(found, twice)
    assert gained >= 1


# -------------------------------------------------------------------------------------------------------------- units


def scaled(instance: Instance, resource: str, factor: int) -> Instance:
    """One resource counted in another unit: in every request, allocatable and capability."""

    def amounts(old: Mapping[str, int]) -> dict[str, int]:
        return {name: amount * factor if name == resource else amount for name, amount in old.items()}

    return replace(
        instance,
        nodes={
            k: replace(node, allocatable=Resources(amounts(node.allocatable))) for k, node in instance.nodes.items()
        },
        pods={k: replace(pod, requests=Resources(amounts(pod.requests))) for k, pod in instance.pods.items()},
        queues={k: replace(queue, capability=amounts(queue.capability)) for k, queue in instance.queues.items()},
    )


@pytest.mark.parametrize(("resource", "factor"), [(GPU, 1000), (CPU, 7), (GPU, 2**50 + 1)])
def test_the_unit_of_a_resource_decides_nothing(resource: str, factor: int) -> None:
    """Weights are shares and rules compare like with like: the optimum is worth the same, the greedy's steps are the
    same, and so is its placement.
    """
    for seed, instance in instances(seeds=range(20)):
        other = scaled(instance, resource, factor)
        assert dict(other.weights) == dict(instance.weights)
        assert answered(other, "greedy").placement == answered(instance, "greedy").placement, describe(instance)
        assert optimum(other) == known(seed)[0], describe(instance)


# --------------------------------------------------------------------------------------------------- fewer, more rules


def _topologies(instance: Instance, change: Callable[[NetworkTopology], NetworkTopology]) -> Instance:
    """The instance with every wish of groups and subgroups changed."""

    def changed(old: NetworkTopology | None) -> NetworkTopology | None:
        return None if old is None else change(old)

    return replace(
        instance,
        groups={
            key: replace(
                group,
                topology=changed(group.topology),
                policies=tuple(replace(policy, topology=changed(policy.topology)) for policy in group.policies),
            )
            for key, group in instance.groups.items()
        },
    )


def _higher(topology: NetworkTopology) -> NetworkTopology:
    return topology if topology.highest_tier is None else replace(topology, highest_tier=topology.highest_tier + 1)


def _pods(instance: Instance, change: Callable[[Pod], Pod]) -> Instance:
    return replace(instance, pods={key: change(pod) for key, pod in instance.pods.items()})


def _nodes(instance: Instance, change: Callable[[Node], Node]) -> Instance:
    return replace(instance, nodes={key: change(node) for key, node in instance.nodes.items()})


def _without_waiting(instance: Instance) -> Instance:
    gone = (PodState.TERMINATING, PodState.NOMINATED)
    return replace(instance, pods={key: pod for key, pod in instance.pods.items() if pod.state not in gone})


#: Changes that forbid less and leave every placement worth what it was.
LOOSER: Mapping[str, Callable[[Instance], Instance]] = {
    "limits a tier higher": lambda i: _topologies(i, _higher),
    "soft for hard": lambda i: _topologies(i, lambda t: replace(t, hard=False)),
    "no taint, no cordon, all Ready": lambda i: _nodes(
        i, lambda n: replace(n, taints=(), unschedulable=False, ready=True)
    ),
    "no selector, no affinity": lambda i: _pods(
        i, lambda p: replace(p, constraints=replace(p.constraints, selector=(), required=()))
    ),
    "all is modelled": lambda i: _pods(i, lambda p: replace(p, unsupported=())),
    "no capability": lambda i: replace(
        i, queues={name: replace(queue, capability={}, open=True) for name, queue in i.queues.items()}
    ),
    "no group is invalid": lambda i: replace(
        i, groups={key: replace(group, invalid=None) for key, group in i.groups.items()}
    ),
    "nobody leaves or is nominated": _without_waiting,
}

#: How many of the instances that a change concerns are tried, and in how many of them at least it must gain something.
TRIED, GAINING = 12, 1


@pytest.mark.parametrize("name", LOOSER)
def test_forbidding_less_never_makes_it_worse(name: str) -> None:
    """Every placement that was valid still is, and is worth the same: the best of more cannot be less.

    Weights know allocatable and requests only; O2 counts hard and soft alike; O4 knows running pods only, not those
    that leave or are nominated.
    """
    touched = gained = 0
    for seed, instance in instances(seeds=range(300)):
        other = LOOSER[name](instance)
        if other != instance:
            touched += 1
            value, placement = known(seed)
            assert verify(other, placement) == []
            assert score(other, placement) == value
            found = optimum(other)
            assert not better(value, found), describe(instance)
            gained += better(found, value)
        if touched >= TRIED and gained >= GAINING:
            break
    assert touched >= TRIED
    assert gained >= GAINING


def _lower(topology: NetworkTopology) -> NetworkTopology:
    return replace(topology, highest_tier=topology.highest_tier - 1) if topology.highest_tier else topology


#: Changes that forbid more and leave every placement worth what it was.
TIGHTER: Mapping[str, Callable[[Instance], Instance]] = {
    "one host port for all": lambda i: _pods(i, lambda p: replace(p, host_ports=(port(80),))),
    "limits a tier lower": lambda i: _topologies(i, _lower),
    "a node is cordoned": lambda i: _nodes(i, lambda n: replace(n, unschedulable=n.unschedulable or n.name == "n0")),
    "every queue is closed": lambda i: replace(i, queues={k: replace(q, open=False) for k, q in i.queues.items()}),
}


@pytest.mark.parametrize("name", TIGHTER)
def test_forbidding_more_never_makes_it_better(name: str) -> None:
    """The same the other way round: the best that is left was there before, worth the same."""
    lost = 0
    for seed, instance in instances(lambda t: TIGHTER[name](t.instance) != t.instance)[:TRIED]:
        result = answered(TIGHTER[name](instance))
        assert result.placement is not None
        assert verify(instance, result.placement) == []
        value = score(instance, result.placement)
        assert value == tuple(judged.value for judged in result.objective)
        assert not better(value, known(seed)[0]), describe(instance)
        lost += better(known(seed)[0], value)
    assert lost >= GAINING


# --------------------------------------------------------------------------------------------------- fewer, more pods


def alone(instance: Instance) -> list[Group]:
    return [group for group in instance.groups.values() if group.pending and not group.key.api_group]


@pytest.mark.parametrize("method", ["greedy", "exact", "auto"])
def test_carrying_out_the_answer_leaves_nothing_to_do(method: str) -> None:
    """Every answer is maximal: could more be placed beside it, nothing moved, then both together would be a valid
    placement with more in it. Held while ``placed`` is the first level. The greedy promises it of whole groups.
    """
    for _, instance in instances(lambda t: placed_first(t.instance)):
        result = answered(instance, method)
        assert result.placement is not None
        after = carried_out(instance, result.placement)
        more = answered(after).placement
        assert more is not None
        assert more.bindings == (), f"{result.placement}\n{more}\n{describe(instance)}"


def test_a_gang_of_one_is_a_lone_pod() -> None:
    """ "A pod in no group is a gang of one" (C5): a PodGroup of minMember 1 around it is worth the same."""
    tried = 0
    for seed, instance in instances(lambda t: "alone" in t.tags and "localityAll" not in t.tags, range(80)):
        for group in alone(instance):
            tried += 1
            (pod,) = group.pending
            key = GroupKey("scheduling.volcano.sh", pod.namespace, f"around-{pod.name}")
            groups = {k: g for k, g in instance.groups.items() if k != group.key} | {key: replace(group, key=key)}
            pods = {**instance.pods, pod: replace(instance.pods[pod], group=key)}
            other = replace(instance, groups=dict(sorted(groups.items())), pods=pods)
            assert optimum(other) == known(seed)[0], describe(instance)
    assert tried >= 25


def test_levels_left_out_at_the_end_change_nothing_above() -> None:
    """Each level is compared only among the best of those above it: a shorter list has the values of its beginning."""
    tried = 0
    for seed, instance in instances(lambda t: t.instance.policy.levels == LEVELS, range(30)):
        for count in (1, 2):
            tried += 1
            shorter = replace(instance, policy=replace(instance.policy, levels=LEVELS[:count]))
            found = optimum(shorter)
            assert found == known(seed)[0][: len(found)], describe(instance)
    assert tried >= 30


# ------------------------------------------------------------------------------- the same question in another writing


def shuffled(value: Any, random: Random) -> Any:
    """The same objects, keys and members in another order; lists whose order means something stay."""
    if isinstance(value, list):
        return [shuffled(each, random) for each in value]
    if not isinstance(value, dict):
        return value
    entries = [(key, shuffled(each, random)) for key, each in value.items()]
    random.shuffle(entries)
    for key, each in entries:
        if key in ("members", "containers", "conditions") and isinstance(each, list):
            random.shuffle(each)
    return dict(entries)


def in_other_units(value: Any, key: str = "") -> Any:
    """The same amounts, written otherwise: 16 as 16000m, 128Gi in bytes, 8 as 8e0."""
    if key in ("requests", "limits", "allocatable", "capability", "capacity") and isinstance(value, dict):
        return {name: _rewritten(name, str(amount)) for name, amount in value.items()}
    if isinstance(value, dict):
        return {name: in_other_units(each, name) for name, each in value.items()}
    return [in_other_units(each) for each in value] if isinstance(value, list) else value


def _rewritten(resource: str, text: str) -> str:
    nano = parse(text)
    other = (
        f"{nano // 10**6}m" if resource == "cpu" else f"{nano // 10**9}e0" if "/" in resource else f"{nano // 10**9}"
    )
    assert parse(other) == nano
    return other


def with_strangers(documents: list[Any]) -> list[Any]:
    """Objects besides that no rule knows: of other kinds, finished pods, a PodGroup and a queue of nobody."""
    return [
        {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web", "namespace": "default"}, "spec": {}},
        *documents,
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "done", "namespace": "default"},
            "spec": {"nodeName": "gone", "containers": [{"name": "c"}]},
            "status": {"phase": "Succeeded"},
        },
        {
            "apiVersion": "scheduling.volcano.sh/v1beta1",
            "kind": "PodGroup",
            "metadata": {"name": "nobodys", "namespace": "default"},
            "spec": {"minMember": 3},
        },
        {
            "apiVersion": "scheduling.volcano.sh/v1beta1",
            "kind": "Queue",
            "metadata": {"name": "nobodys"},
            "spec": {"capability": {"cpu": "1"}},
        },
        {"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "thing"}},
    ]


WRITINGS: Mapping[str, Callable[[list[Any]], list[Any]]] = {
    "backwards": lambda documents: documents[::-1],
    "shuffled": lambda documents: Random(1).sample(shuffled(documents, Random(2)), len(documents)),
    "in other units": in_other_units,
    "with strangers": with_strangers,
}


def a_queue() -> list[Any]:
    """Too many jobs for 12 nodes, some of them running, of two priorities, with subgroups and queues."""
    made = generate(
        "planted", nodes=9, leaf_size=3, leaves_per_spine=2, pod_sizes=(1, 2, 4, 8), overfull=0.4, running=0.2,
        anchored=0.3, priorities=2, queues=2, roles=0.3, elastic=0.3, seed=4,
    )  # fmt: skip
    return json.loads(json.dumps(made.documents))


def bindings_of(documents: list[Any], folder: Path, *options: str) -> bytes:
    """What ``solve --bindings`` writes."""
    (folder / "instance.json").write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": documents}))
    target = folder / "bindings.json"
    written = ["--bindings", str(target), "--quiet", *options]
    limits = ["--workers", "1", "--time-limit", "600", "--work-limit", "1"]
    assert main(["solve", str(folder / "instance.json"), *limits, *written]) == 0
    return target.read_bytes()


@pytest.mark.parametrize("method", ["greedy", "exact", "auto"])
def test_however_it_is_written_the_bindings_are_the_same_bytes(method: str, tmp_path: Path) -> None:
    """An instance is a set of objects, and a quantity is a number; models/interface.md promises the same placement for
    the same input, seed and version (greedy; with one worker under a work limit).
    """
    wanted = bindings_of(a_queue(), tmp_path, "--method", method)
    assert len(json.loads(wanted)["items"]) >= 10
    for name, write in WRITINGS.items():
        assert bindings_of(write(a_queue()), tmp_path, "--method", method) == wanted, name
