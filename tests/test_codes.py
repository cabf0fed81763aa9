"""Every code that is said is in the catalogue, every code of the catalogue is said, and the page is made from it."""

from __future__ import annotations

import ast
import importlib.util
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import get_args

import pytest

from docs.hooks.codes import CONDITIONS, EVENTS
from placer.base.codes import (
    FINDINGS,
    REASONS,
    Code,
    ConditionReason,
    EventReason,
    FindingCode,
    ReasonCode,
)
from tests.structure import modules, tree_of

ROOT = Path(__file__).parent.parent

CATALOGUES: dict[str, tuple[Mapping[str, Code], object]] = {
    "reasons": (REASONS, ReasonCode),
    "findings": (FINDINGS, FindingCode),
    "conditions": (CONDITIONS, ConditionReason),
    "events": (EVENTS, EventReason),
}

#: What an annotation says of the codes that may stand there.
TYPES: dict[str, Mapping[str, Code]] = {
    "FindingCode": FINDINGS,
    "ReasonCode": REASONS,
    "ConditionReason": CONDITIONS,
    "EventReason": EVENTS,
}


def trees() -> Iterator[tuple[Path, ast.Module]]:
    """Every file of the package but the catalogue."""
    return ((path, tree_of(path)) for name, path in modules().items() if name != "placer.base.codes")


def called(call: ast.Call) -> str:
    """Name of what is called, of an attribute with the last name before it."""
    function = call.func
    if isinstance(function, ast.Attribute):
        before = function.value
        owner = before.attr if isinstance(before, ast.Attribute) else before.id if isinstance(before, ast.Name) else ""
        return f"{owner}.{function.attr}"
    return function.id if isinstance(function, ast.Name) else ""


def makers() -> Iterator[tuple[str, int, Mapping[str, Code]]]:
    """What makes a thing with a code: what is called, place of the code among its arguments, codes that it may have.

    A class with such a field, a function or method with such a parameter; a method is told by an owner that is called
    like its class. Codes that come by way of a variable are held by their type.
    """
    for _, tree in trees():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                fields = [each for each in node.body if isinstance(each, ast.AnnAssign)]
                yield from _places(node.name, [each.annotation for each in fields])
                for method in (each for each in node.body if isinstance(each, ast.FunctionDef)):
                    yield from _places(f"{node.name.lower()}.{method.name}", _annotations(method)[1:])
            elif isinstance(node, ast.FunctionDef) and not any(each.arg == "self" for each in node.args.args):
                yield from _places(node.name, _annotations(node))


def _annotations(function: ast.FunctionDef) -> list[ast.expr | None]:
    return [argument.annotation for argument in function.args.args]


def _places(name: str, annotations: Sequence[ast.expr | None]) -> Iterator[tuple[str, int, Mapping[str, Code]]]:
    for place, annotation in enumerate(annotations):
        if isinstance(annotation, ast.Name) and annotation.id in TYPES:
            yield name, place, TYPES[annotation.id]


def said() -> Iterator[tuple[str, str, Mapping[str, Code]]]:
    """Where a code is written where a thing is made, the code, and the catalogue it must be in."""
    known = {name: (place, catalogue) for name, place, catalogue in makers()}
    assert known.keys() >= {"Finding", "findings.add", "Reason", "Cause", "_WaitingReason", "_Event", "_gang_event"}
    for path, tree in trees():
        constants = {
            target.id: node.value.value
            for node in tree.body
            if isinstance(node, ast.Assign | ast.AnnAssign) and isinstance(node.value, ast.Constant)
            for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
            if isinstance(target, ast.Name)
        }
        for call in (node for node in ast.walk(tree) if isinstance(node, ast.Call)):
            place, catalogue = known.get(called(call).lstrip("_"), known.get(called(call), (-1, {})))
            if not 0 <= place < len(call.args):
                continue
            code = call.args[place]
            text = constants.get(code.id) if isinstance(code, ast.Name) else getattr(code, "value", None)
            if isinstance(text, str):
                yield f"{path.relative_to(ROOT)}:{call.lineno}", text, catalogue


def test_every_code_that_is_said_is_in_the_catalogue() -> None:
    found = list(said())
    assert len(found) > 50
    assert {code for _, code, _ in found} >= {"HyperNodeMember", "Outcompeted", "HalfBound", "SolverDied", "Bandwidth"}
    missing = [f"{where}: {code}" for where, code, catalogue in found if code not in catalogue]
    assert not missing, f"not in placer/base/codes.py: {missing}"


@cache
def strings() -> set[str]:
    return {
        node.value
        for _, tree in trees()
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }


@pytest.mark.parametrize("name", CATALOGUES)
def test_a_catalogue_has_what_its_type_says_and_what_the_code_says(name: str) -> None:
    catalogue, kind = CATALOGUES[name]
    assert list(catalogue) == list(get_args(kind))
    unsaid = catalogue.keys() - strings()
    assert not unsaid, f"no code says {sorted(unsaid)}"


def test_findings_are_in_order() -> None:
    assert list(FINDINGS) == sorted(FINDINGS)


def messages() -> Iterator[list[str]]:
    """Every text of the package that is long enough to tell, as the pieces between its values."""
    for _, tree in trees():
        for node in ast.walk(tree):
            parts = node.values if isinstance(node, ast.JoinedStr) else [node]
            pieces = [part.value for part in parts if isinstance(part, ast.Constant) and isinstance(part.value, str)]
            if sum(map(len, pieces)) >= 12:
                yield pieces


def is_of(example: str, pieces: list[str]) -> bool:
    """Whether an example has the pieces of a message, one after another."""
    at = 0
    for piece in pieces:
        at = example.find(piece, at)
        if at < 0:
            return False
        at += len(piece)
    return True


def test_examples_are_messages_that_the_code_writes() -> None:
    """A message that is worded anew leaves its example behind, unless this fails."""
    known = list(messages())
    unknown = [
        f"{name}: {code.example}"
        for catalogue, _ in CATALOGUES.values()
        for name, code in catalogue.items()
        if not any(is_of(code.example, pieces) for pieces in known)
    ]
    assert not unknown


@pytest.mark.parametrize("name", CATALOGUES)
def test_words_are_whole_sentences(name: str) -> None:
    for code, (meaning, example, remedy) in CATALOGUES[name][0].items():
        assert re.fullmatch(r"[A-Z`].*[.]", meaning), code
        assert re.fullmatch(r"[A-Z`].*[.]", remedy), code
        assert example == example.strip() != "", code
        assert "\n" not in example, code


def test_the_page_is_made_from_the_catalogue() -> None:
    spec = importlib.util.spec_from_file_location("codes_page", ROOT / "docs" / "hooks" / "codes.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    page = (ROOT / "models" / "codes.md").read_text(encoding="utf-8")
    for name, (catalogue, _) in CATALOGUES.items():
        assert f"\n<!-- made: {name} -->\n" in page
        made = module.PARTS[name]()
        assert all(f"### {code}\n" in made for code in catalogue)
