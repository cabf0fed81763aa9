"""What the README says to type works as written."""

from __future__ import annotations

import argparse
import json
import re
from pathlib import Path

import placer
from placer.cli import program

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, re.DOTALL)


def test_the_first_command_installs_and_solves_a_shipped_instance() -> None:
    """Its last part runs with the other commands of the page (``tests/docs``); the installation is that of CI."""
    (command, *_) = blocks("sh")
    install, solve = command.split(".venv/bin/placer ")
    assert install == "python3 -m venv .venv && .venv/bin/pip install -q -e '.[dev]' && "
    assert (ROOT / solve.split()[1]).is_file()


def test_the_second_command_is_the_one_of_ci() -> None:
    assert blocks("bash")[0] == ".venv/bin/python -m pytest -n auto\n"
    setup = (ROOT / ".ci" / "setup").read_text()
    assert "PLACER_REQUIRE_TOOLS=1" in setup
    assert "python -m pytest -n auto " in setup
    assert (ROOT / ".ci" / "run").read_text().endswith("\nrun_tests\n")


def test_it_has_the_length_of_a_page() -> None:
    assert 120 <= len(README.splitlines()) <= 150


def test_it_says_by_which_option_plain_workloads_become_gangs() -> None:
    (row,) = re.findall(r"^\| with plain Jobs and Deployments \| (.*) \|$", README, re.MULTILINE)
    (key, value) = re.findall(r"`(\w+): (\w+)`", row)[0]
    schema = json.loads((ROOT / "placer" / "schemas" / "policy.schema.json").read_text())
    gangs = schema["properties"]["spec"]["properties"][key]
    assert value in gangs["enum"]
    assert all(kind in row and kind in gangs["description"] for kind in ("Indexed Job", "JobSet", "replica"))


def test_the_commands_that_need_a_cluster_only_read() -> None:
    (_, commands, *_) = blocks("bash")
    found = [line.partition("#")[0].split() for line in commands.splitlines()]
    assert [words[:2] for words in found] == [["placer", "queue"], ["placer", "audit"], ["placer", "report"]]
    for words in found:
        program.parser().parse_args(words[1:])


def test_the_figures_of_other_schedulers_are_those_of_the_page_about_them() -> None:
    """Which ``tests/lab/test_compare_shipped.py`` computes."""
    page = (ROOT / "docs" / "compare.md").read_text(encoding="utf-8")
    rows = {"kube-scheduler": "kube-default", "Volcano": "volcano", "placer": "auto"}
    for name, policy in rows.items():
        (figures,) = re.findall(rf"^\| {name} \| (\d+) \| ([\d.]+%) \| (\d+) \|$", README, re.MULTILINE)
        (line,) = re.findall(rf"^{policy} +(\d+) .*?%\*? +([\d.]+%) (.*)$", page, re.MULTILINE)
        broken = sum(map(int, re.findall(r"C\d+ (\d+)", line[2])))
        assert figures == (line[0], line[1], str(broken))


def test_every_command_and_folder_it_names_exists() -> None:
    for name in re.findall(r"`(placer/[a-z_/.]+|instances/[a-z_/.]*|tests/[a-z_/.]+)`", README):
        assert (ROOT / name).exists(), name
    (choices,) = (each for each in program.parser()._actions if isinstance(each, argparse._SubParsersAction))
    shown = "".join(blocks("bash") + blocks("console"))
    named = set(re.findall(r"^(?:\$ )?placer ([a-z]+)", shown, re.MULTILINE))
    assert len(named) >= 7
    assert named <= choices.choices.keys()


def test_the_changelog_has_one_section_which_is_this_version() -> None:
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert re.findall(r"^## \[([^]]+)\]", text, re.MULTILINE) == [placer.__version__]
    assert len(text.splitlines()) <= 60
