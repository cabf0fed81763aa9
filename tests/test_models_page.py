"""What models/README.md says of the code and of its worked example is so."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import placer
from placer.problem import Instance, Key
from placer.problem.placement import Placement
from placer.rules import RULES, verify
from placer.rules.scoring import LEVEL_SCORES, score
from tests.oracle import best

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "models" / "README.md").read_text(encoding="utf-8")
MODEL = (ROOT / "models" / "placement.mzn").read_text(encoding="utf-8")


def table(header: str) -> list[list[str]]:
    """Rows of the table whose first line starts so, cell by cell."""
    lines = PAGE[PAGE.index(header) :].split("\n\n")[0].splitlines()[2:]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


RULE_ROWS = table("| rule | name everywhere |")
LEVEL_ROWS = table("| level | function of `score` |")


def functions(*paths: Path) -> set[str]:
    """Names of all functions and methods in the files."""
    trees = (ast.parse(path.read_text(encoding="utf-8")) for path in paths)
    return {node.name for tree in trees for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}


def name_in(cell: str) -> str:
    """The last code word of a cell."""
    return str(re.findall(r"`([^`]+)`", cell)[-1])


def test_every_rule_has_its_row_and_its_formula_in_the_order_of_the_judge() -> None:
    assert [row[0] for row in RULE_ROWS] == [rule for rule, _ in RULES]
    titles = re.findall(r"^### (C\d+) `(\w+)`$", PAGE, re.MULTILINE)
    assert titles == [(row[0], name_in(row[1])) for row in RULE_ROWS]
    assert [(rule, check.__name__) for rule, check in RULES] == titles
    assert [rule for rule, _ in RULES] == [f"C{number}" for number in range(1, len(RULES) + 1)]


@pytest.mark.parametrize("row", RULE_ROWS, ids=lambda row: str(row[0]))
def test_a_rule_is_where_the_page_says(row: list[str]) -> None:
    rule, name = row[0], name_in(row[1])
    exact = functions(*(ROOT / "placer/search/exact").glob("*.py"), ROOT / "placer/arrays/dense_builder.py")
    words = re.findall(r"`(\w+)`", row[2])
    assert any(word in exact for word in words)
    assert f"predicate {name}()" in MODEL
    assert f"\nconstraint {name}();" in MODEL
    assert rule in dict(RULES)
    assert (ROOT / f"tests/rules/test_{rule.lower()}_{name}.py").is_file()


def test_the_model_states_the_rules_in_the_same_order() -> None:
    stated = re.findall(r"^(?:% )?predicate (\w+)\(\) =", MODEL, re.MULTILINE)
    assert stated == [name_in(row[1]) for row in RULE_ROWS]


@pytest.mark.parametrize("row", LEVEL_ROWS, ids=lambda row: str(row[2]))
def test_a_value_is_where_the_page_says(row: list[str]) -> None:
    exact = functions(ROOT / "placer/search/exact/objective.py", ROOT / "placer/search/exact/count_model.py")
    assert {name_in(row[3]), f"_{name_in(row[3])}"} & exact
    assert f"function var int: {name_in(row[3])}_value(" in MODEL
    if row[1]:
        assert name_in(row[1]) in {level.__name__ for level in LEVEL_SCORES.values()}
        assert (ROOT / f"tests/rules/test_{row[0].lower()}_{name_in(row[1])}.py").is_file()


@pytest.mark.parametrize("method", ["exact", "milp", "decomposed"])
def test_the_page_of_a_formulation_names_the_modules_of_its_package(method: str) -> None:
    page = (ROOT / "models" / f"{method}.md").read_text(encoding="utf-8")
    cells = re.findall(r"^\| ((?:`\w+\.py`(?:, )?)+) \|", page, re.MULTILINE)
    named = [module for cell in cells for module in re.findall(r"`(\w+\.py)`", cell)]
    there = [path.name for path in (ROOT / "placer/search" / method).rglob("*.py") if path.name != "__init__.py"]
    assert sorted(named) == sorted(there)


def example() -> tuple[Instance, Placement]:
    """The worked example, and the placement that the page shows."""
    rows = table("| node | n1 |")
    nodes = ["n1", "n2", "n3", "n4", "n5"]
    cells = dict(zip(nodes, (re.findall(r"`(\w+)`", cell) for cell in rows[1][1:]), strict=False))
    placement = Placement.of((Key("default", pod), node) for node, pods in cells.items() for pod in pods)
    return placer.read(ROOT / "models" / "example.yaml"), placement


def test_the_placement_of_the_example_keeps_the_rules_and_is_the_best_there_is() -> None:
    instance, placement = example()
    assert len(placement.bindings) == 7
    assert instance.findings == ()
    assert verify(instance, placement) == []
    assert score(instance, placement) == best(instance)[0]


def test_the_values_of_the_example_are_those_on_the_page() -> None:
    said = {name_in(row[1]): row[2] for row in table("| level | value | here |")}
    counted = {value.name: value.value for value in score(*example())}
    assert "; ".join(f"{value:,}" for value in counted.values()) == "3,000,000; 3,500,000; 7; 2; 1; 3"
    assert "kept = [3000000, 3500000, 7, 2, 1, 3];" in PAGE
    assert all(re.search(rf"\b{value:,}\b", said[name]) for name, value in counted.items())


def test_what_the_page_says_would_break_a_rule_does() -> None:
    instance, placement = example()
    moved = dict(placement.node_of)
    breaches = {"C2": ("e2", "n1"), "C3": ("e2", "n5"), "C4": ("odd", "n1"), "C7": ("t4", "n1")}
    for rule, (pod, node) in breaches.items():
        worse = Placement.of({**moved, Key("default", pod): node})
        assert rule in {violation.rule for violation in verify(instance, worse)}, rule
    alone = Placement.of({pod: node for pod, node in moved.items() if pod.name != "t4"})
    assert {"C5", "C6"} <= {violation.rule for violation in verify(instance, alone)}
