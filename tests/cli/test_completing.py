"""Completion in the shells themselves: what stands on the line after a tab."""

from __future__ import annotations

import os
import pty
import re
import select
import shlex
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from placer.cli import main
from tests.tools import require

#: What is typed, and what a tab makes of it.
TYPED = [
    ("placer sol", "solve"),
    ("placer --json topolo", "--json topology"),
    ("placer solve --requ", "solve --require-all"),
    ("placer solve --method decom", "solve --method decomposed"),
    ("placer generate plan", "generate planted"),
    ("placer generate planted --pod-s", "generate planted --pod-sizes"),
    ("placer compare x --policies kube-default,coscheduli", "compare x --policies kube-default,coscheduling"),
    ("placer compare x --policies auto,mine=que", "compare x --policies auto,mine=queue-1.json.gz"),
    ("placer sweep plan", "sweep planted"),
    ("placer solve queue", "solve queue-1.json.gz"),  # the only one that can be an instance
    ("placer verify --strict x fol", "verify --strict x folder/"),
    ("placer run --save fol", "run --save folder/"),
    ("placer completion fi", "completion fish"),
    ("placer solve x -o wi", "solve x -o wide"),
    ("placer explain x -o na", "explain x -o name"),
    ("placer help topo", "help topology"),
    ("placer solve --seed ", "solve --seed"),  # nothing can be known of a number
]

#: Enough for shells whose script asks the same program.
FEW = TYPED[::4]

#: A shell, what it reads first, and how it is started.
SHELLS: dict[str, tuple[str, str, list[str]]] = {
    "bash": (".bashrc", "{script}\nPS1='READY> '\n", ["--noprofile", "--rcfile", "{home}/.bashrc", "-i"]),
    "zsh": (".zshrc", "autoload -U compinit\ncompinit -u -d {home}/dump\n{script}\nPS1='READY> '\n", ["-d", "-i"]),
}

ESCAPES = re.compile(rb"\x1b(\[[0-9;?]*[A-Za-z]|[=>])")


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A folder with files, and a ``placer`` that says how it is called and only completes."""
    for name in ("queue-1.json.gz", "queue-notes.txt", "folder/queue.yaml", "bin/placer"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    program = f"{shlex.quote(sys.executable)} -m placer"
    script = f'#!/bin/sh\n[ -n "$_ARGCOMPLETE" ] && exec {program} "$@"\nprintf "RAN<%s>\\n" "$*"\n'
    (tmp_path / "bin/placer").write_text(script)
    (tmp_path / "bin/placer").chmod(0o755)
    return tmp_path


def environment(home: Path) -> dict[str, str]:
    path = os.pathsep.join([str(home / "bin"), os.environ["PATH"]])
    roots = os.pathsep.join(each for each in sys.path if each)
    return {"HOME": str(home), "ZDOTDIR": str(home), "PATH": path, "PYTHONPATH": roots, "TERM": "xterm", "LC_ALL": "C"}


def script_of(shell: str, capsys: pytest.CaptureFixture[str]) -> str:
    assert main(["completion", shell]) == 0
    return capsys.readouterr().out


@pytest.mark.parametrize("shell", SHELLS)
def test_a_tab_completes(shell: str, home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program = require(shell, f"apt-get install {shell}")
    name, text, arguments = SHELLS[shell]
    (home / name).write_text(text.replace("{script}", script_of(shell, capsys)).replace("{home}", str(home)))
    command = [program, *(each.format(home=home) for each in arguments)]
    typed = TYPED if shell == "bash" else FEW
    ran = _typed(command, [line for line, _ in typed], home, environment(home))
    assert ran == [line for _, line in typed]


def _typed(command: list[str], lines: list[str], folder: Path, env: Mapping[str, str]) -> list[str]:
    """Type each line and a tab on a terminal, and return: what was run then."""
    ours, theirs = pty.openpty()
    child = subprocess.Popen(
        command, stdin=theirs, stdout=theirs, stderr=theirs, cwd=folder, env=env, start_new_session=True
    )
    os.close(theirs)
    try:
        screen = _Screen(ours)
        ran = []
        for line in lines:
            screen.until(rb"READY> ")
            os.write(ours, line.encode() + b"\t\r")
            ran.append(screen.until(rb"RAN<([^\r\n]*)>[\r\n]").rstrip())
        return ran
    finally:
        child.kill()
        child.wait()
        os.close(ours)


class _Screen:
    """What comes on a terminal."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._text = b""

    def until(self, pattern: bytes) -> str:
        """Read until a text comes, however long the machine takes; what comes after it is for the next."""
        while (found := re.search(pattern, ESCAPES.sub(b"", self._text))) is None:
            assert select.select([self._descriptor], [], [], 120)[0], f"nothing more after {self._text!r}"
            part = os.read(self._descriptor, 65536)
            assert part, f"the shell ended after {self._text!r}"
            self._text += part
        self._text = ESCAPES.sub(b"", self._text)[found.end() :]
        return found[found.lastindex or 0].decode()


@pytest.mark.parametrize(("line", "completed"), FEW)
def test_fish_completes(line: str, completed: str, home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fish = require("fish", "apt-get install fish")
    (home / "placer.fish").write_text(script_of("fish", capsys))
    ask = f"source placer.fish; complete --do-complete {shlex.quote(line)}"
    done = subprocess.run(
        [fish, "--no-config", "-c", ask], cwd=home, env=environment(home), capture_output=True, text=True, check=True
    )
    words = {each.split("\t")[0] for each in done.stdout.splitlines()}
    assert words == ({completed.split(" ")[-1]} if line[-1] != " " else set())


def test_a_script_is_no_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", "bash", "--json"]) == 2
    assert "--json" in capsys.readouterr().err
