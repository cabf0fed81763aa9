"""The glossary has every word that summaries use, in the order of the alphabet, and there is one."""

from __future__ import annotations

import re
from pathlib import Path

from placer.base import words
from placer.base.words import prover_word, value_word
from placer.problem.result import Termination, Verdict

ROOT = Path(__file__).parent.parent
TEXT = (ROOT / "models" / "glossary.md").read_text()
ROWS = dict(re.findall(r"^\| \*\*(.+?)\*\* \| (.+) \|$", TEXT, re.MULTILINE))


def test_it_is_in_the_order_of_the_alphabet() -> None:
    found = [word.lower() for word in ROWS]
    assert found == sorted(found)
    assert len(found) == TEXT.count("\n| **")


def test_every_value_and_its_key_are_explained() -> None:
    for name in words._VALUES:
        assert value_word(name) in ROWS, name
        assert any(f"`{name}`" in meaning for meaning in ROWS.values()), name


def test_every_proof_is_explained() -> None:
    for by in words._PROVERS:
        assert prover_word(by).removeprefix("a ").removeprefix("the ") in ROWS, by
    assert {f"`{by}`" for by in ("volume", "lp", "master")} <= set(re.findall(r"`\w+`", TEXT))


def test_every_verdict_and_termination_is_explained() -> None:
    for verdict in Verdict:
        assert f"`{verdict}`" in TEXT
    for termination in Termination:
        assert f"`{termination}`" in ROWS["termination"]


def test_there_is_one_glossary_and_the_readme_leads_to_it() -> None:
    assert "models/glossary.md" in (ROOT / "README.md").read_text()
    pages = [page for page in ROOT.rglob("*.md") if "glossary" in page.name.lower()]
    assert pages == [ROOT / "models" / "glossary.md"]
