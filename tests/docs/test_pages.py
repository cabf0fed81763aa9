"""What a page of the documentation says to type works as written, and prints what the page says."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from tests.docs.pages import PAGES, ROOT, Block, blocks, run, shown_of, timeless


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


@pytest.mark.parametrize("path", PAGES, ids=name_of)
def test_commands_of_a_page_print_what_it_says(path: Path, tmp_path: Path) -> None:
    ran = 0
    for block, printed, said in run(path.read_text(encoding="utf-8"), tmp_path):
        shown, expected = (printed, "") if said is None else (shown_of(printed, said), said.text)
        assert timeless(shown) == timeless(expected), block.text
        ran += 1
    assert ran


def test_a_block_that_is_cut_shows_the_first_lines() -> None:
    (said,) = blocks("```text\none\ntwo\n...\n```\n")
    assert shown_of("one\n2\nthree\n", said) == "one\n2\n...\n"
    assert shown_of("one\n", Block("text", None, "one\n", 0)) == "one\n"


def test_the_readme_the_first_hour_and_every_recipe_are_run() -> None:
    recipes = {path for path in (ROOT / "docs" / "recipes").glob("*.md") if path.name != "index.md"}
    assert {ROOT / "README.md", ROOT / "docs" / "questions.md", ROOT / "docs" / "first-hour.md", *recipes} <= {*PAGES}
    assert len(recipes) >= 4


@pytest.mark.parametrize("path", PAGES, ids=name_of)
def test_a_page_that_is_run_asks_for_no_cluster(path: Path) -> None:
    words = {"kubectl", "run", "snapshot", "--apply"}
    for block in blocks(path.read_text(encoding="utf-8")):
        if block.language == "sh":
            assert not words & {*shlex.split(block.text.replace("\\\n", " "), comments=True)}, block.text


def test_pages_differ_in_times_and_provers_alone() -> None:
    one = "proved after 1.7 s; found by greedy, proved by counting\nauto    12  100.00%    0.54   45\n"
    other = "proved after 12.0 s; found by greedy, proved by exact and counting\nauto    12  100.00%  3.10    1,045\n"
    assert timeless(one) == timeless(other)
    assert timeless(one) != timeless(one.replace("12  100", "11  100"))
    assert timeless(one) != timeless(one.replace("greedy", "exact"))


def test_examples_of_pictures_are_read_without_findings() -> None:
    import placer

    examples = sorted((ROOT / "docs" / "examples").glob("*.yaml"))
    assert examples
    for path in examples:
        assert [each.code for each in placer.read(path).findings if each.code != "NoHyperNodes"] == []


def test_commands_of_the_installation_are_those_of_the_readme() -> None:
    """They need a network, so they are not run here; that of the README is (``.ci/run`` installs)."""
    text = (ROOT / "docs" / "install.md").read_text(encoding="utf-8")
    (first, *_) = [block.text for block in blocks(text) if block.language == "sh"]
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert first.splitlines()[0] in readme
    extras = re.findall(r"^\| `(\w+)` \|", text, re.MULTILINE)
    declared = re.findall(
        r"^(\w+) = \[",
        (ROOT / "pyproject.toml")
        .read_text(encoding="utf-8")
        .split("[project.optional-dependencies]")[1]
        .split("[project.scripts]")[0],
        re.MULTILINE,
    )
    assert sorted(extras) == sorted(declared)
