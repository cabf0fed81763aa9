"""The exact method on instances whose optimum can be worked out by hand: each rule, each value, and what it claims."""

from __future__ import annotations

import random
from dataclasses import dataclass

import pytest

from placer.arrays import Dense, Solution, score_solution
from placer.arrays.dense_builder import make_dense
from placer.problem import Instance, Policy, SubGroupPolicy
from placer.problem.placement import MAXIMISED
from placer.rules import verify
from placer.rules.scoring import score
from placer.search.events import BoundFound, Improved, SearchOptions, TooLarge
from placer.search.exact import method as exact
from placer.search.exact.method import ExactModel, safe_bound, search
from placer.search.greedy.multi_start import greedy
from tests.world import World, hard, port, soft

#: The module; as an attribute of its package it is the function.


@dataclass(frozen=True)
class Told:
    """What a search told: how it ended, its solutions and its bounds."""

    end: str
    dense: Dense
    solutions: tuple[Solution, ...]
    bounds: tuple[BoundFound, ...]

    @property
    def values(self) -> dict[str, int]:
        """Values of the last solution; of several priorities the lowest one's."""
        values = score_solution(self.dense, self.solutions[-1])
        return {name: value for (name, _), value in zip(self.dense.criteria, values, strict=True)}

    @property
    def pods(self) -> int:
        return sum(self.solutions[-1].values())


def told(instance: Instance, **options: object) -> Told:
    """Search, and check every solution by the rules."""
    dense = make_dense(instance)
    solutions: list[Solution] = []
    bounds: list[BoundFound] = []

    def emit(event: object) -> None:
        if isinstance(event, Improved):
            solutions.append(event.solution)
        elif isinstance(event, BoundFound):
            bounds.append(event)

    end = search(dense, SearchOptions(**options), emit)  # type: ignore[arg-type]
    for solution in solutions:
        placement = dense.placement(solution)
        assert verify(instance, placement) == []
        assert tuple(value.value for value in score(instance, placement)) == score_solution(dense, solution)
    return Told(end, dense, tuple(solutions), tuple(bounds))


def best(world: World) -> Told:
    found = told(world.instance())
    assert found.end == "proved"
    return found


# Rules


def test_capacity() -> None:
    # 2 nodes of 4 GPUs, pods of 3: one per node, though 8 GPUs would be enough for two of them and two thirds.
    world = World()
    world.nodes("a b")
    for name in "xyz":
        world.pod(name, gpu=3)
    assert best(world).pods == 2


def test_host_ports() -> None:
    # Port 80 on every address clashes with port 80 on one; on two different addresses it does not.
    world = World()
    world.node("a")
    world.pod("any", ports=[port(80)])
    world.pod("one", ports=[port(80, "10.0.0.1")])
    world.pod("two", ports=[port(80, "10.0.0.2")])
    world.pod("other", ports=[port(81)])
    assert best(world).pods == 3


def test_eligibility() -> None:
    world = World()
    world.node("a", labels={"disk": "ssd"})
    world.node("b", 8)
    for name in "uvwxyz":
        world.pod(name, selector={"disk": "ssd"})
    assert best(world).pods == 4


def test_gang_and_what_it_needs_at_least() -> None:
    # 4 GPUs. The gang of 3 pods of 2 never fits; of the one that needs 1 of 3, two fit.
    world = World()
    world.node("a")
    world.pods_of("p0 p1 p2", world.gang("big", 3), gpu=2)
    world.pods_of("q0 q1 q2", world.gang("elastic", 1), gpu=2)
    found = best(world)
    assert (found.pods, found.values["admitted"], found.values["placed"]) == (2, 500_000, 1_000_000)


def test_required_pods_come_before_optional_ones() -> None:
    # 4 GPUs: two gangs that need 1 of 4 and 2 of 2. All 4 of the first one weigh as much, but admit less.
    world = World()
    world.node("a")
    world.pods_of("p0 p1 p2 p3", world.gang("first", 1))
    world.pods_of("q0 q1", world.gang("second", 2))
    found = best(world)
    assert found.values["admitted"] == 750_000
    assert found.pods == 4


def test_roles() -> None:
    # One master and two workers are needed; the worker that does not fit beside the master keeps all out.
    world = World()
    world.nodes("a b", 2)
    gang = world.gang("job", 3, roles={"master": 1, "worker": 2})
    world.pod("m", gang, 2, role="master")
    world.pod("w0", gang, 2, role="worker")
    world.pod("w1", gang, 2, role="worker")
    assert best(world).pods == 0
    world.node("c", 2)
    assert best(world).pods == 3


def test_subgroups_are_placed_whole() -> None:
    # 4 GPUs, subgroups of 3: one of the two; the fourth GPU stays free, since a part of a subgroup is none.
    world = World()
    world.node("a")
    gang = world.gang("job", policies=[SubGroupPolicy("p", 3)])
    for part in "01":
        world.pods_of(f"{part}x {part}y {part}z", gang, part=part)
    assert best(world).pods == 3


def test_tier_limit() -> None:
    # Leaves of 2 nodes: 8 GPUs. A gang of 9 fits the spine, not a leaf.
    for tier, pods in ((1, 0), (2, 9)):
        world = World()
        world.nodes("a b c d")
        world.hyper("l0", 1, "a b")
        world.hyper("l1", 1, "c d")
        world.hyper("s", 2, "l0 l1")
        world.pods_of(" ".join(f"p{i}" for i in range(9)), world.gang("g", 9, topology=hard(tier)))
        assert best(world).pods == pods


def test_running_pods_hold_their_gang_to_a_leaf() -> None:
    world = World()
    world.nodes("a b", 3)
    world.hyper("l0", 1, "a")
    world.hyper("l1", 1, "b")
    gang = world.gang("g", 1, topology=hard(1))
    world.running("r", "a", gang)
    world.pods_of("p0 p1 p2 p3", gang)
    assert best(world).pods == 2


def test_queue() -> None:
    world = World()
    world.nodes("a b")
    world.queue("all", gpu=5)
    world.queue("part", parent="all", gpu=4)
    for name in "uvwxyz":
        world.pod(name, queue="part" if name < "y" else "all")
    assert best(world).pods == 5


# Values


def fabric(leaves: int = 2, gpu: int = 4) -> World:
    """Leaves of two nodes under one spine."""
    world = World()
    for leaf in range(leaves):
        world.nodes(f"n{leaf}a n{leaf}b", gpu)
        world.hyper(f"l{leaf}", 1, f"n{leaf}a n{leaf}b")
    world.hyper("s", 2, " ".join(f"l{leaf}" for leaf in range(leaves)))
    return world


def test_locality_and_span() -> None:
    # Leaves of 8 GPUs. Gangs of 5 and 4 cannot share one, one of 6 is alone in a third: 5 + 4 + 6 pods on tier 1.
    world = fabric(3)
    for name, pods in (("g", 5), ("h", 4), ("i", 6)):
        world.pods_of(" ".join(f"{name}{i}" for i in range(pods)), world.gang(name, pods, topology=soft()))
    found = best(world)
    assert (found.values["locality"], found.values["span"]) == (15, 3)


def test_a_gang_that_must_be_split_touches_as_few_leaves_as_it_can() -> None:
    # 8 + 8 GPUs under a spine of tier 2: 12 pods on tier 2, two leaves.
    world = fabric(3)
    world.pods_of(" ".join(f"g{i}" for i in range(12)), world.gang("g", 12, topology=soft()))
    found = best(world)
    assert (found.values["locality"], found.values["span"]) == (24, 2)


def test_running_pods_count_in_locality() -> None:
    # One pod runs in leaf 0, which has 1 GPU left; the two that wait are split or both leave it: (1 + 2) x tier 2.
    world = fabric(2, 1)
    gang = world.gang("g", 0, topology=soft())
    world.running("r", "n0a", gang)
    world.pods_of("p0 p1", gang)
    found = best(world)
    assert (found.values["locality"], found.values["span"]) == (6, 2)


def test_elastic_gangs_place_what_fits_before_they_look_at_locality() -> None:
    # 4 of 4 pods on two leaves are worth more than 2 on one.
    world = fabric(2, 1)
    world.pods_of("p0 p1 p2 p3", world.gang("g", 1, topology=soft()))
    found = best(world)
    assert (found.pods, found.values["locality"], found.values["span"]) == (4, 8, 2)


def test_packing_opens_as_little_as_possible() -> None:
    # 5 pods of 2 GPUs need 3 nodes, and 3 nodes two leaves and their spine.
    world = fabric(3)
    for name in "vwxyz":
        world.pod(name, gpu=2)
    found = best(world)
    assert (found.values["packedHyperNodes"], found.values["packedNodes"]) == (3, 3)


def test_packing_prefers_what_is_used_already() -> None:
    world = fabric(3)
    world.running("r", "n2b", None, 2)
    world.pod("p", gpu=2)
    found = best(world)
    assert (found.values["packedHyperNodes"], found.values["packedNodes"]) == (0, 0)


def test_the_order_of_the_policy_decides() -> None:
    # With packing first nothing is placed: nothing opened is best.
    world = World(Policy(levels=("packing", "placed")))
    world.nodes("a b")
    world.pod("p")
    assert best(world).pods == 0


# What it claims


def hard_to_prove() -> Instance:
    """Forty nodes of 7 GPUs, gangs of odd sizes: no proof in no time."""
    world = World()
    dice = random.Random(5)
    for leaf in range(8):
        names = [f"n{leaf}-{i}" for i in range(5)]
        world.nodes(" ".join(names), 7, cpu=7000)
        world.hyper(f"l{leaf}", 1, " ".join(names))
    world.hyper("s", 2, " ".join(f"l{leaf}" for leaf in range(8)))
    for number in range(24):
        size = dice.randint(2, 6)
        gang = world.gang(f"g{number}", size, topology=hard(1) if number % 2 else soft())
        gpu, cpu = dice.choice([(2, 1700), (3, 3500), (4, 2900)])
        world.pods_of(" ".join(f"g{number}-{i}" for i in range(size)), gang, gpu, cpu=cpu)
    return world.instance()


def test_a_tiny_limit_never_proves_anything_false() -> None:
    instance = hard_to_prove()
    short, long = told(instance, work=0.02), told(instance, work=3.0)
    assert short.end == "time"
    reached = score_solution(long.dense, long.solutions[-1])
    for bound in (*short.bounds, *long.bounds):
        if bound.criterion is not None and bound.context in ((), reached[: bound.criterion]):
            name = long.dense.criteria[bound.criterion][0]
            value = reached[bound.criterion]
            assert value <= bound.bound if name in MAXIMISED else value >= bound.bound


def test_no_time_at_all_tells_no_solution_and_no_proof() -> None:
    found = told(hard_to_prove(), seconds=0.0)
    assert found.end == "time"
    assert found.solutions == ()
    assert all(bound.by in ("volume", "counting") for bound in found.bounds)


def test_one_worker_repeats() -> None:
    instance = hard_to_prove()
    one, two = (told(instance, work=0.8, seed=3) for _ in range(2))
    assert one.solutions == two.solutions
    assert one.bounds == two.bounds


def test_a_hint_is_not_lost() -> None:
    instance = hard_to_prove()
    dense = make_dense(instance)
    hint = greedy(dense)
    found = told(instance, work=1.0, hint=hint)
    mine, its = score_solution(dense, found.solutions[-1]), score_solution(dense, hint)
    for (name, _), one, other in zip(dense.criteria, mine, its, strict=True):
        if one != other:
            assert (one > other) == (name in MAXIMISED)
            break


@pytest.mark.parametrize(
    ("bound", "maximised", "integer"),
    [(10.0, True, 10), (10.9999, True, 10), (9.99999999, True, 10), (10.00000001, False, 10), (10.0001, False, 11)],
)
def test_bounds_are_rounded_to_the_safe_side(bound: float, maximised: bool, integer: int) -> None:
    assert safe_bound(bound, maximised) == integer


def test_a_model_too_large_is_refused_before_it_is_built(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exact, "MOST_VARIABLES", 10)
    instance = hard_to_prove()
    with pytest.raises(TooLarge, match=r"^[0-9,]{2,} variables, at most 10$"):
        ExactModel(make_dense(instance))
    found = told(instance)
    assert found.end == "finished"
    assert any(bound.criterion is None for bound in found.bounds)
