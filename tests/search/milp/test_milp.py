"""The MILP's numbers, its solvers' endings, its limits: what could go wrong between rows and an answer."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from pathlib import Path
from types import SimpleNamespace

import highspy
import pulp
import pytest
from ortools.sat.python.cp_model import CpModel

from placer.answers.solving import solve
from placer.arrays import Dense
from placer.arrays.dense_builder import make_dense
from placer.base.deadline import Deadline
from placer.base.errors import UsageError
from placer.bounds import NamedBound
from placer.problem.reading import read
from placer.problem.result import Termination, Verdict
from placer.search.events import Event, Improved, SearchOptions, TooLarge
from placer.search.exact import method as exact
from placer.search.exact.count_model import Linear, solver_form, value_at
from placer.search.exact.integer_form import IntegerForm, columns_of
from placer.search.milp import method, solvers
from placer.search.milp.method import MilpModel
from placer.search.milp.program import BASE, LARGEST, PulpProgram
from placer.search.milp.solvers import SolveStatus, ask, complaint, make_solver, proves, solve_status
from tests.world import World, hard

SOLVERS = ("HiGHS", "COIN_CMD")
PLANTED = Path(__file__).parents[3] / "instances" / "planted"


def competing() -> Dense:
    """Three gangs for the room of two, of sizes that no counting settles."""
    world = World()
    world.nodes("a b c", 5)
    for gang, size in (("x", 3), ("y", 2), ("z", 4)):
        world.pods_of(f"{gang}-0 {gang}-1 {gang}-2", world.gang(gang, 3), size)
    return make_dense(world.instance())


def told(dense: Dense, **options: object) -> tuple[str, list[Event]]:
    events: list[Event] = []
    return method.search(dense, replace(SearchOptions(), **options), events.append), events  # type: ignore[arg-type]


# -------------------------------------------------------------------------------------------------------------- numbers


@pytest.mark.parametrize(
    ("coefficients", "most"),
    [
        ((3, 5), 13),
        ((2**30 + 7, 2**30 - 9, 5), 2**31 + 3),
        ((2**40 + 1, 2**20 + 1, 1), 2**41 + 2**20 + 3),
        ((10**9 + 7, -(10**9), 3), 10),
        ((-(2**33) - 1, -(2**17)), -(2**34) - 2**18),
    ],
)
@pytest.mark.parametrize("by", [-1, 0, 1])
def test_a_row_written_digit_by_digit_says_the_same(coefficients: tuple[int, ...], most: int, by: int) -> None:
    model, row = CpModel(), Linear()
    counts = [model.new_int_var(0, 3, "") for _ in coefficients]
    for coefficient, count in zip(coefficients, counts, strict=True):
        row.add(coefficient, count)
    model.add(solver_form(row) <= most + by)
    program = PulpProgram(IntegerForm(model))
    rows = program.problem.constraints()
    for each in rows:
        assert all(abs(coefficient) <= BASE for coefficient in each.values())
    for point in product(range(4), repeat=len(counts)):
        program.start_from(point)
        assert all(each.valid() for each in rows) == (value_at(row, [*point]) <= most + by), point


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_node_that_is_full_to_the_byte(solver: str) -> None:
    """Memory in bytes without a common divisor: 3 and 4 fill the node exactly, one byte more does not fit."""
    for extra, placed in ((0, 2), (1, 1)):
        world = World()
        world.node("n1", gpu=0, cpu=3 * (10**9 + 7) + 4 * (10**9 + 9))
        world.pod("a", gpu=0, cpu=3 * (10**9 + 7) + extra)
        world.pod("b", gpu=0, cpu=4 * (10**9 + 9))
        ended, events = told(make_dense(world.instance()), solver=solver)
        assert ended == "proved"
        assert len([event for event in events if isinstance(event, Improved)][-1].solution) == placed


def test_numbers_beyond_doubles_are_refused() -> None:
    model = CpModel()
    count = model.new_int_var(0, 3, "")
    with pytest.raises(TooLarge, match="objective: a sum of more than 2\\^50"):
        PulpProgram(IntegerForm(model)).minimise(columns_of(Linear().add(LARGEST, count)), 1)
    world = World()
    world.node("n1", cpu=2**51)
    world.pod("a", cpu=2**51 - 1)
    world.pod("b", cpu=2)
    ended, events = told(make_dense(world.instance()))
    assert ended == "proved"
    assert len([event for event in events if isinstance(event, Improved)][-1].solution) == 1


def test_a_model_that_is_too_large_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exact, "MOST_VARIABLES", 1)
    assert told(competing()) == ("finished", [])


def test_what_is_no_integer_or_breaks_a_row_once_rounded_is_not_read() -> None:
    """A gang of three pods of 3 GPUs on nodes of 5."""
    model = MilpModel(competing())
    program, count = model.program, model.exact.variables.placed(0)[0].index
    program.start_from([0] * len(program.variables))
    assert program.read() == [0] * len(program.variables)
    program.variables[count].varValue = 1e-6
    assert program.read() == [0] * len(program.variables)
    program.variables[count].varValue = 0.4
    assert program.read() is None
    program.variables[count].varValue = 1.000001  # one of a gang of three
    assert program.read() is None


# -------------------------------------------------------------------------------------------------------------- endings


def test_no_other_sol_status_is_there_or_taken() -> None:
    assert len(pulp.LpSolution) == 5
    with pytest.raises(ValueError, match="sol_status: found 7"):
        solve_status(7)


ENDS = {
    "kOptimal": (SolveStatus.OPTIMAL, SolveStatus.OPTIMAL),
    "kInfeasible": (SolveStatus.IMPOSSIBLE, SolveStatus.IMPOSSIBLE),
    "kUnboundedOrInfeasible": (SolveStatus.IMPOSSIBLE, SolveStatus.IMPOSSIBLE),
    "kUnbounded": (SolveStatus.IMPOSSIBLE, SolveStatus.IMPOSSIBLE),
    **dict.fromkeys(
        ("kNotset", "kLoadError", "kModelError", "kPresolveError", "kSolveError", "kPostsolveError", "kModelEmpty"),
        (SolveStatus.NOTHING, SolveStatus.NOTHING),
    ),
    "kUnknown": (SolveStatus.NOTHING, SolveStatus.NOTHING),
    **dict.fromkeys(
        ("kObjectiveBound", "kObjectiveTarget", "kTimeLimit", "kIterationLimit", "kInterrupt"),
        (SolveStatus.FOUND, SolveStatus.NOTHING),
    ),
    **dict.fromkeys(("kSolutionLimit", "kMemoryLimit", "kHighsInterrupt"), (SolveStatus.FOUND, SolveStatus.NOTHING)),
}


@pytest.mark.parametrize("some", [True, False], ids=["with a solution", "without"])
@pytest.mark.parametrize("status", [name for name in dir(highspy.HighsModelStatus) if name.startswith("k")])
def test_every_ending_of_highs(status: str, some: bool) -> None:
    problem = pulp.LpProblem("test")
    count = problem.add_variable("x", 0, 1, pulp.LpInteger)
    problem += count + 0
    problem += count <= 0
    solver = make_solver("HiGHS")
    solver.createAndConfigureSolver(problem)
    solver.buildSolverModel(problem)
    values, info = SimpleNamespace(col_value=[0.0], col_dual=[0.0], row_value=[0.0], row_dual=[0.0]), SimpleNamespace()
    info.primal_solution_status = highspy.kSolutionStatusFeasible if some else highspy.kSolutionStatusNone
    problem.solverModel = SimpleNamespace(
        getModelStatus=lambda: getattr(highspy.HighsModelStatus, status),
        getObjectiveValue=lambda: 0.0,
        getSolution=lambda: values,
        getInfo=lambda: info,
    )
    problem.assignStatus(*solver.findSolutionValues(problem))
    assert solve_status(problem.sol_status) is ENDS[status][0 if some else 1]


@pytest.mark.parametrize(
    ("line", "means"),
    [
        ("Optimal - objective value 3", SolveStatus.OPTIMAL),
        ("Optimal (within gap tolerance) - objective value 3", SolveStatus.OPTIMAL),
        ("Stopped on time - objective value 3", SolveStatus.FOUND),
        ("Stopped on nodes - objective value 3", SolveStatus.FOUND),
        ("Stopped on time (no integer solution - continuous used) - objective value 3", SolveStatus.NOTHING),
        ("Integer infeasible - objective value 3", SolveStatus.NOTHING),
        ("Infeasible - objective value 3", SolveStatus.IMPOSSIBLE),
        ("Unbounded - objective value 3", SolveStatus.IMPOSSIBLE),
        ("Something new", SolveStatus.NOTHING),
    ],
)
def test_every_ending_of_cbc(line: str, means: SolveStatus, tmp_path: Path) -> None:
    (tmp_path / "solution").write_text(line + "\n")
    solver = make_solver("COIN_CMD")
    problem = pulp.LpProblem("test")
    problem.assignStatus(*solver.get_status(tmp_path / "solution"))
    assert solve_status(problem.sol_status) is means


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_millisecond_proves_nothing(solver: str) -> None:
    model = MilpModel(make_dense(read(PLANTED / "planted-50.json.gz")))
    model.aim(0)
    model.start_from(None)
    ended = ask(make_solver(solver, seconds=0.001), model.program.problem)
    assert ended in (SolveStatus.FOUND, SolveStatus.NOTHING)
    assert told(competing(), solver=solver, deadline=Deadline.within(0.001)) == ("time", [])


def test_a_program_that_crashes_under_a_limit_found_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """The bundled CBC does, where its limit ends before it has begun; what it left behind is gone."""
    model = MilpModel(competing())
    model.aim(0)
    monkeypatch.setattr(pulp.COIN_CMD, "executable", staticmethod(lambda _: "false"))
    for seconds in (1.0, None):
        solver = make_solver("COIN_CMD", seconds=seconds)
        solver.path = "false"
        if seconds:
            assert ask(solver, model.program.problem) is SolveStatus.NOTHING
        else:
            with pytest.raises(pulp.PulpSolverError):
                ask(solver, model.program.problem)
        assert not Path(solver.tmpDir).exists()


def test_a_solver_that_denies_every_solution_is_not_believed(monkeypatch: pytest.MonkeyPatch) -> None:
    module = method
    monkeypatch.setattr(module, "ask", lambda *_: SolveStatus.IMPOSSIBLE)
    with pytest.raises(RuntimeError, match="HiGHS finds no solution for admitted, where there is one"):
        told(competing())


@pytest.mark.parametrize("ended", [SolveStatus.NOTHING, SolveStatus.FOUND])
def test_what_is_not_optimal_is_not_proved(ended: SolveStatus, monkeypatch: pytest.MonkeyPatch) -> None:
    module = method
    monkeypatch.setattr(module, "ask", lambda solver, problem: ask(solver, problem) and ended)
    word, events = told(competing())
    assert word == "time"
    assert not [event for event in events if isinstance(event, NamedBound)]
    assert bool(events) == (ended is SolveStatus.FOUND)


def test_a_solver_that_keeps_a_gap_proves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    assert proves("HiGHS")
    assert proves("COIN_CMD")
    assert not proves("GLPK_CMD")
    module = method
    monkeypatch.setattr(module, "proves", lambda _: False)
    word, events = told(competing())
    assert word == "finished"
    assert [type(event) for event in events] == [Improved]


def test_nothing_to_decide_is_an_answer_too() -> None:
    word, events = told(make_dense(World().instance()))
    assert word == "proved"
    assert [event.solution for event in events if isinstance(event, Improved)] == [{}]


# -------------------------------------------------------------------------------------------------------------- solvers


def test_a_solvers_name_is_checked_before_the_work() -> None:
    assert complaint("HiGHS", None) is None
    assert complaint("COIN_CMD", 3) is None
    assert complaint("PULP_CBC_CMD", None) is None
    assert "found magic, expected a name that PuLP knows: " in str(complaint("magic", None))
    assert "not installed here" in str(complaint("MIPCL_CMD", None))
    assert "takes no work limit" in str(complaint("GLPK_CMD", 1))
    with pytest.raises(UsageError, match="milp solver: found magic"):
        solve(World().instance(), method="milp", milp_solver="magic")


def test_cbc_is_the_one_on_the_path_or_the_one_of_pulp(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    own = tmp_path / "cbc"
    own.write_text("")
    own.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert make_solver("COIN_CMD").path == "cbc"
    monkeypatch.setenv("PATH", "")
    bundled = make_solver("COIN_CMD").path
    assert bundled == make_solver("PULP_CBC_CMD").path
    assert Path(bundled).is_file()


def test_a_work_limit_counts_nodes_and_repeats() -> None:
    dense = make_dense(read(PLANTED / "planted-50.json.gz"))
    one, other = (told(dense, work=1 / solvers.NODES_PER_WORK, seed=3) for _ in range(2))
    assert one == other
    assert one[0] in ("time", "proved")


# --------------------------------------------------------------------------------------------------------- the assembly


def gang_of_two() -> World:
    world = World()
    world.nodes("a b")
    world.hyper("leaf-a", 1, "a")
    world.hyper("leaf-b", 1, "b")
    world.hyper("spine", 2, "leaf-a leaf-b")
    world.pods_of("train-0 train-1", world.gang("train", 2, topology=hard(2)), 3)
    return world


@pytest.mark.parametrize("solver", SOLVERS)
def test_the_whole_way(solver: str) -> None:
    result = solve(gang_of_two().instance(), method="milp", milp_solver=solver, workers=1)
    assert (result.method, result.termination, result.verdict) == ("milp", Termination.PROVED, Verdict.OPTIMAL)
    assert result.everything_placed
