"""Texts that users read are plain English: short sentences, no "what" clauses, no words of a private dialect.

Docstrings and comments are not looked at. ``python -m tests.test_english`` prints the present counts; with the
name of a room, each place.
"""

from __future__ import annotations

import ast
import json
import re
import sys
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parent.parent
#: Most words of a sentence.
LONGEST = 30
#: What may be left per room: sentences that are too long, "what" clauses, words of the list. Figures only fall.
LEFT: dict[str, tuple[int, int, int]] = {
    "models": (0, 0, 0),
    "placer/base": (7, 0, 0),
    "placer/cli": (1, 0, 0),
    "placer/lab": (1, 0, 0),
    "placer/passes": (2, 0, 2),
}
_WORDS = re.compile(
    r"\b(?:told|tells?|telling|sets? aside|setting aside|stays?|staying|go(?:es|ing)? on|beside|anew"
    r"|node(?:s'|'s) worth|(?:is|are|be) none|believed?)\b",
    re.IGNORECASE,
)
#: A question, an interrogative adjective and fixed terms are no clauses.
_WHAT = re.compile(r"(?<!-)\bwhat\b(?!-|'s|s? (?:kind|if|to do)\b)", re.IGNORECASE)
_END = re.compile(r"(?<=[.!?])[)*_\"]*\s+(?=[^a-z])")
_CODE = re.compile(r"`+[^`]+`+")


def sentences(paragraph: str) -> list[str]:
    """Sentences of a paragraph, code as one word each."""
    plain = _CODE.sub("X", re.sub(r"!?\[([^]]*)\]\([^)]*\)", r"\1", paragraph))
    return [each for each in _END.split(" ".join(plain.split())) if each]


def paragraphs(page: str) -> Iterator[str]:
    """Paragraphs, list items, headings and cells of a page of Markdown, without blocks of code and formulas."""
    page = re.sub(r"^(?:---\n.*?\n---\n)|<!--.*?-->", "", page, flags=re.DOTALL)
    page = re.sub(r"^( *)(```+|\$\$).*?^\1 *\2", "\n", page, flags=re.DOTALL | re.MULTILINE)
    for block in re.split(r"\n\s*\n|\n(?= *(?:[*+-]|\d+\.) |#|\|)|(?<=\|)\n", page):
        if block.lstrip().startswith("|"):
            yield from re.split(r"(?<!\\)\|", _CODE.sub("`X`", block))
        else:
            yield block


def texts_of_code(tree: ast.AST) -> Iterator[str]:
    """Strings of a module that may be read by a user: those of several words that are no docstrings."""
    read: set[ast.AST] = set()  # parts of what came before them
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr):
            read.add(node.value)
        elif isinstance(node, ast.JoinedStr) and node not in read:
            read.update(node.values)
            yield "".join(str(part.value) if isinstance(part, ast.Constant) else "X" for part in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in read:
            yield node.value


def room_of(path: Path) -> str:
    """Room of a file: its page at the root, its folder, or its package."""
    parts = path.relative_to(ROOT).parts
    return parts[0] if parts[0] != "placer" or len(parts) == 2 else f"placer/{parts[1]}"


@cache
def texts() -> tuple[tuple[str, str, str], ...]:
    """Room, file and paragraph of all that users read."""
    found: list[tuple[Path, str]] = []
    pages = [path for folder in ("docs", "deploy", "models") for path in (ROOT / folder).rglob("*.md")]
    for path in [*ROOT.glob("*.md"), *sorted(pages)]:
        found += ((path, each) for each in paragraphs(path.read_text(encoding="utf-8")))
    for path in sorted((ROOT / "placer").rglob("*.py")):
        found += ((path, each) for each in texts_of_code(ast.parse(path.read_text(encoding="utf-8"))))
    for path in sorted((ROOT / "placer/answers/report/static").glob("*.js")):
        code = re.sub(r"^\s*(?://|\*|/\*).*$", "", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
        strings = re.findall(r"\"([^\"\n]+)\"|`([^`]+)`", re.sub(r"\$\{[^}]*\}", "X", code))
        found += ((path, each) for pair in strings for each in pair)
    for path in sorted((ROOT / "placer/schemas").glob("*.json")):
        found += ((path, each) for each in descriptions(json.loads(path.read_text(encoding="utf-8"))))
    alerts = ROOT / "deploy/monitoring/alerts.yml"
    found += ((alerts, each) for each in descriptions(yaml.safe_load(alerts.read_text(encoding="utf-8"))))
    return tuple((room_of(path), path.relative_to(ROOT).as_posix(), text) for path, text in found if " " in text)


def descriptions(value: object, key: str = "") -> Iterator[str]:
    """Texts of a schema or of alerts."""
    if isinstance(value, dict):
        for name, each in value.items():
            yield from descriptions(each, str(name))
    elif isinstance(value, list):
        for each in value:
            yield from descriptions(each, key)
    elif key in {"description", "title", "summary"} and isinstance(value, str):
        yield value


def faults(text: str) -> Iterator[tuple[int, str]]:
    """Faults of a paragraph: which of the three, and the sentence."""
    for sentence in sentences(text):
        if len(re.findall(r"\w[^\s]*", sentence)) > LONGEST:
            yield 0, sentence
        if not sentence.endswith("?"):
            yield from ((1, sentence) for _ in _WHAT.findall(sentence))
        yield from ((2, sentence) for _ in _WORDS.findall(sentence))


@cache
def counts() -> dict[str, tuple[int, int, int]]:
    """Faults of each room."""
    found: Counter[tuple[str, int]] = Counter()
    for room, _, text in texts():
        found.update((room, kind) for kind, _ in faults(text))
    return {room: (found[room, 0], found[room, 1], found[room, 2]) for room in sorted({room for room, _, _ in texts()})}


@pytest.mark.parametrize("room", sorted(LEFT))
def test_a_room_has_no_more_faults_than_before(room: str) -> None:
    found = counts()[room]
    places = f"python -m tests.test_english {room}"
    assert all(now <= most for now, most in zip(found, LEFT[room], strict=True)), f"{found}, {LEFT[room]}: {places}"


def test_every_room_has_its_figures() -> None:
    missing = {room: found for room, found in counts().items() if room not in LEFT and any(found)}
    assert not missing


def test_faults_are_counted_and_code_is_not() -> None:
    page = (
        "# What is beside it\n\n```\ntold what\n```\n\n| a | what goes on |\n\n`stay` and `what`. What is it?\n\n"
        + "w " * 31
    )
    assert Counter(kind for each in paragraphs(page) for kind, _ in faults(each)) == {0: 1, 1: 2, 2: 2}
    code = '"""What is told."""\nx = f"{x} is told " "what"\n'
    assert [kind for each in texts_of_code(ast.parse(code)) for kind, _ in faults(each)] == [1, 2]


if __name__ == "__main__":
    for room, found in counts().items():
        if len(sys.argv) == 1:
            print(f'    "{room}": {found},')
    for room, name, text in texts():
        if room in sys.argv[1:] or name in sys.argv[1:]:
            for kind, sentence in faults(text):
                print(f"{name}: {('long', 'what', 'word')[kind]}: {sentence}")
