"""The model for people, executed: MiniZinc finds what trying everything finds, value by value."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import placer
from placer.problem import Instance
from placer.problem.numa import NumaDemand, NumaNode
from placer.problem.placement import Score
from placer.rules import verify
from placer.rules.scoring import score
from tests.examples import examples, seed_blocks
from tests.minizinc import MODELS, ask, ask_data, in_order, minizinc
from tests.numa_drawn import demands, nodes
from tests.numa_worlds import HAND, crowded
from tests.oracle import best
from tests.oracle_disruption import best_preempting
from tests.shrink import shrink
from tests.tiny import Tiny, tiny, tiny_network
from tests.tiny_disruption import tiny_defrag, tiny_disruption, tiny_repair
from tests.tiny_neighbours import tiny_neighbours
from tests.tiny_numa import tiny_numa
from tests.world import World, port
from tests.written import written

#: One instance per rule and level.
SHIPPED = [path for path in sorted((MODELS.parent / "instances/tiny").glob("*.yaml")) if ".best" not in path.name]


@pytest.fixture(autouse=True)
def _needs_minizinc() -> None:
    minizinc()


def numbers(values: Score) -> list[int]:
    return [value.value for value in values]


def complaint(instance: Instance, most: Score, *, disturbing: bool = False) -> str:
    """What MiniZinc has against the claim that ``most`` is the best score of the instance; nothing if it agrees.

    One run judges all values: it must find a placement that is as good, none that is better, and that placement must
    keep the rules and have the values by the code that judges every answer.
    """
    claimed = in_order(instance, most, disturbing=disturbing)
    answer = ask(instance, 0, claimed, disturbing=disturbing)
    if answer is None:
        return f"MiniZinc finds nothing as good as {claimed}"
    if answer.values != tuple(claimed):
        return f"MiniZinc finds {answer.values}, which is better than {claimed}: {answer.placement}"
    if not answer.complete:
        return f"MiniZinc gave up on {claimed}"
    violations = verify(instance, answer.placement)
    if violations:
        return f"MiniZinc takes what breaks a rule: {violations}"
    counted = score(instance, answer.placement, disturbing=disturbing)
    if in_order(instance, counted, disturbing=disturbing) != claimed:
        return f"MiniZinc counts {claimed} where there is {counted}: {answer.placement}"
    return ""


@pytest.mark.parametrize("seeds", seed_blocks(500, 10))
@pytest.mark.parametrize("make", [tiny, tiny_network, tiny_numa, tiny_neighbours], ids=lambda make: str(make.__name__))
def test_it_agrees_with_trying_everything(make: Callable[[int], Tiny], seeds: range) -> None:
    for seed in seeds:
        if complaint(make(seed).instance, best(make(seed).instance)[0]):
            small = shrink(make(seed).instance, lambda instance: bool(complaint(instance, best(instance)[0])))
            pytest.fail(f"seed {seed}, shrunk: {complaint(small, best(small)[0])}\n\n{written(small)}")


@pytest.mark.parametrize("seeds", seed_blocks(60, 5))
@pytest.mark.parametrize("make", [lambda seed: tiny_disruption(seed).instance, tiny_repair, tiny_defrag])
def test_it_agrees_where_pods_that_run_may_be_disturbed(make: Callable[[int], Instance], seeds: range) -> None:
    for seed in seeds:
        wrong = complaint(make(seed), best_preempting(make(seed))[0], disturbing=True)
        assert wrong == "", f"seed {seed}: {wrong}\n\n{written(make(seed))}"


def test_less_than_the_least_that_goes_is_refused() -> None:
    """The gang of two goes; one of its pods alone is no unit, and nothing at all leaves no room."""
    world = World()
    world.node("n1", 2)
    gang = world.gang("small", 2)
    for name in "ab":
        world.running(name, "n1", gang)
    world.pod("new", None, 2, priority=5)
    instance = world.instance()
    least = in_order(instance, best_preempting(instance)[0], disturbing=True)
    assert least[:3] == [1_000_000, 1_000_000, 1]
    assert ask(instance, 0, least, disturbing=True) is not None
    assert ask(instance, 0, [least[0], 500_000, *least[2:]], disturbing=True) is None


@pytest.mark.parametrize("seed", [4, 12, 29, 63, 72, 117])
def test_it_finds_the_optimum_by_itself_value_after_value(seed: int) -> None:
    instance = tiny(seed).instance
    kept: list[int] = []
    for criterion in range(1, len(score(instance, best(instance)[1])) + 1):
        answer = ask(instance, criterion, kept)
        assert answer is not None
        assert answer.complete
        kept.append(answer.values[criterion - 1])
    assert kept == numbers(best(instance)[0])


def test_a_claim_that_is_too_good_and_one_that_can_be_beaten_are_told_apart() -> None:
    instance = tiny(0).instance
    most = numbers(best(instance)[0])
    assert most[0] > 0
    assert ask(instance, 0, [most[0] + 1, *most[1:]]) is None
    beaten = ask(instance, 0, [most[0] - 1, *most[1:]])
    assert beaten is not None
    assert beaten.values[0] == most[0]


def roles() -> World:
    """There is room for one pod; the larger one is not the master that the gang cannot do without."""
    world = World()
    world.node("n1", 3)
    gang = world.gang("g", 1, roles={"master": 1})
    world.pod("m", gang, 2, role="master")
    world.pod("w", gang, 3)
    return world


def ports() -> World:
    """Port 80 is open on n2 already, so two of the three pods that want it stay out."""
    world = World()
    world.nodes("n1 n2")
    world.running("old", "n2", ports=[port(80)])
    for name in "abc":
        world.pod(name, ports=[port(80)])
    return world


def addresses() -> World:
    """One port on two addresses, and on every address: two pods fit on the node, or one."""
    world = World()
    world.node("n1")
    world.pod("a", None, 1, ports=[port(80, "10.0.0.1")])
    world.pod("b", None, 1, ports=[port(80, "10.0.0.2")])
    world.pod("c", None, 2, ports=[port(80)])
    return world


def daemons() -> World:
    """A pod of a DaemonSet leaves its node empty, one that runs there too."""
    world = World()
    world.nodes("n1 n2", 1)
    world.running("d1", "n1", gpu=0, daemon=True)
    world.pod("d2", None, 1, daemon=True, not_on=["n1"])
    world.pod("a")
    return world


@pytest.mark.parametrize(
    "world", [roles, ports, addresses, daemons, *(world for world, _, _ in HAND)], ids=lambda world: str(world.__name__)
)
def test_it_agrees_on_what_seldom_decides(world: Callable[[], World]) -> None:
    instance = world().instance()
    assert complaint(instance, best(instance)[0]) == ""


@examples(80, derandomize=True)
@given(nodes(4), st.lists(demands(), min_size=1, max_size=4))
def test_it_agrees_on_what_kubelets_make_of_pods_by_chance(node: NumaNode, pods: list[NumaDemand]) -> None:
    """C10 alone, with what tiny instances leave out: ids with gaps, overhead, several units of several zones."""
    instance = crowded(node, pods)
    assert complaint(instance, best(instance)[0]) == ""


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: str(path.stem))
def test_it_agrees_on_shipped_instances(path: Path) -> None:
    """From Kubernetes objects, with amounts in the units that clusters have."""
    instance = placer.read(path)
    assert complaint(instance, best(instance)[0]) == ""


def test_the_converter_is_a_command(tmp_path: Path) -> None:
    """The worked example of models/README.md, from Kubernetes objects to the values stated there."""
    command = [sys.executable, str(MODELS / "to_dzn.py"), str(MODELS / "example.yaml")]
    data = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    answer = ask_data(f"{data}criterion = 0;\nkept = [3000000, 3500000, 7, 2, 1, 3];\n")
    assert answer is not None
    assert answer.complete
    assert answer.values == (3000000, 3500000, 7, 2, 1, 3)
