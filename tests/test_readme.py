"""What the README says to type works as written."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import placer

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, re.DOTALL)


def test_the_first_command_solves_a_shipped_instance() -> None:
    """The part after the installation, which this environment has behind it already."""
    command = next(line for line in "".join(blocks("sh")).splitlines() if "placer solve" in line)
    words = shlex.split(command.split("&&")[-1])
    assert words[0] == ".venv/bin/placer"
    (shown,) = re.findall(r"first command above prints:\n\n```\n(.*?)```", README, re.DOTALL)
    assert timeless(printed(words[1:])) == timeless(shown)


def printed(words: list[str]) -> str:
    """What the program prints that is installed."""
    placer = shutil.which("placer", path=os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]))
    assert placer is not None
    environment = {name: value for name, value in os.environ.items() if name != "COLUMNS"}
    done = subprocess.run([placer, *words], cwd=ROOT, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout


def test_an_explanation_is_as_shown() -> None:
    ((command, shown),) = re.findall(
        r"```sh\n(placer explain [^\n]*)\n```\n\nprints:\n\n```\n(.*?)```", README, re.DOTALL
    )
    assert printed(shlex.split(command)[1:]) == shown


def timeless(text: str) -> list[str]:
    """The lines of a summary without its seconds."""
    seconds = re.compile(r"(after|read|build|solve|verify) \d+\.\d")
    return [seconds.sub(r"\1", line.rstrip()) for line in text.splitlines()]


def test_the_second_command_is_the_one_of_ci() -> None:
    command = next(line for line in "".join(blocks("sh")).splitlines() if "pytest" in line)
    assert command == ".venv/bin/python -m pytest -n auto"
    setup = (ROOT / ".ci" / "setup").read_text()
    assert "PLACER_REQUIRE_TOOLS=1" in setup
    assert "python -m pytest -n auto " in setup
    assert (ROOT / ".ci" / "run").read_text().endswith("\nrun_tests\n")


def test_the_notebook_example_runs(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(ROOT)
    (example,) = blocks("python")
    exec(compile(example, "README.md", "exec"), {})
    assert capsys.readouterr().out.startswith("admitted 0 ")


def test_every_command_and_folder_it_names_exists() -> None:
    for name in re.findall(r"`(placer/[a-z_/.]+|instances/[a-z_/.]*|tests/[a-z_/.]+)`", README):
        assert (ROOT / name).exists(), name
    for command in re.findall(r"^\| `placer ([a-z]+)", README, re.MULTILINE):
        done = subprocess.run([sys.executable, "-m", "placer.cli", command, "--help"], capture_output=True, check=False)
        assert done.returncode == 0, command


def test_the_changelog_begins_with_what_is_not_released_and_has_this_version() -> None:
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    heads = re.findall(r"^## \[([^]]+)\](?: - \d{4}-\d\d-\d\d)?$", text, re.MULTILINE)
    assert heads[0] == "Unreleased"
    assert heads[1] == placer.__version__
    kinds = set(re.findall(r"^### (.*)$", text, re.MULTILINE))
    assert kinds <= {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}
