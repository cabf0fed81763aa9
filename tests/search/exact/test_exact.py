"""What the exact method claims, the size of its models, and what a part of an instance holds it to."""

from __future__ import annotations

import random
import re
from dataclasses import dataclass
from pathlib import Path

import pytest

from placer.arrays import Dense, Solution, score_solution
from placer.arrays.dense_builder import make_dense
from placer.base.deadline import Deadline
from placer.problem import Instance
from placer.problem.placement import MAXIMISED
from placer.problem.reading import read
from placer.rules import verify
from placer.rules.scoring import score
from placer.search.events import BoundFound, Improved, SearchOptions, TooLarge
from placer.search.exact import method as exact
from placer.search.exact.method import ExactModel, Must, safe_bound, search
from placer.search.greedy.multi_start import greedy
from tests.judge import placement
from tests.kep import kep_cluster
from tests.search.test_rows import held
from tests.shop import SHOP, shop, star
from tests.world import World, calls, hard, soft

ROOT = Path(__file__).parents[3]


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
    found = told(hard_to_prove(), deadline=Deadline(0.0))
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


# Calls


def test_a_model_whose_calls_are_too_many_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    dense = make_dense(shop(kep_cluster(), calls("web>db", 100), calls("web>web", 100)).instance())
    model = ExactModel(dense)
    assert model.calls is not None
    size = 2 * 8 + model.calls.count
    monkeypatch.setattr(exact, "MOST_VARIABLES", size)
    ExactModel(dense)
    monkeypatch.setattr(exact, "MOST_VARIABLES", size - 1)
    with pytest.raises(TooLarge, match=f"^{size:,} variables, at most {size - 1:,}$"):
        ExactModel(dense)


def test_without_a_network_the_models_are_what_the_page_says() -> None:
    """Sizes of shipped instances as they were before the model knew any call."""
    page = (ROOT / "models/exact.md").read_text(encoding="utf-8")
    for path in ("planted/planted-50", "clos/clos-128"):
        row = re.search(rf"^\| {Path(path).name} .*$", page, re.MULTILINE)
        assert row is not None
        cells = [cell.strip() for cell in row[0].strip("|").split("|")]
        dense = make_dense(read(ROOT / f"instances/{path}.json.gz"))
        model = ExactModel(dense)
        model.aim(0)
        first = model.variables.size
        for criterion in range(len(dense.criteria)):
            model.criterion(criterion)
        found = (first, model.variables.size, len(model.proto.proto.constraints))
        assert found == (int(cells[4]), int(cells[5]), int(cells[7]))
        assert model.calls is None


def test_majority_of_pods_that_are_held_is_what_the_whole_allows() -> None:
    """As running pods w and the far x may keep their surplus of 1; where they are new pods that a part holds, not."""
    world = star()
    world.running("w", "n1", app=SHOP, workload="web")
    world.running("far", "n5", app=SHOP, workload="x")
    dense = make_dense(world.instance())
    assert dense.network is not None
    web = next(number for number, each in enumerate(dense.network.workloads) if each.bound and each.bound[0][0] == 0)
    must = Must(surplus={(web, int(dense.network.area[0])): 0})
    solution = dense.solution(placement("y@n1"))
    assert held(ExactModel(dense, must), solution) is not None
    assert held(ExactModel(dense), Solution()) is not None
    assert held(ExactModel(dense, must), Solution()) is None
