"""How a command ends whatever becomes of its terminal, its pipe, its disk: one line at most, and the right code."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.examples import exhaustive
from tests.support import node, pod
from tests.waiting import interrupt, started

FULL = Path("/dev/full")

PROGRAM = (sys.executable, "-m", "placer")


@pytest.fixture
def cluster(tmp_path: Path) -> Path:
    """Two nodes of 8 cpu, three pods of 3, and one that fits nowhere."""
    objects = [node("a"), node("b"), *(pod(f"p{index}", cpu=3) for index in range(3)), pod("giant", cpu=9)]
    path = tmp_path / "cluster.json"
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))
    return path


@pytest.fixture
def bad_placement(tmp_path: Path) -> Path:
    bindings = [{"namespace": "default", "pod": f"p{index}", "node": "a"} for index in range(3)]
    path = tmp_path / "bad-placement.json"
    path.write_text(json.dumps({"apiVersion": "placer.dev/v1alpha1", "kind": "Placement", "bindings": bindings}))
    return path


def shell(command: str, **environment: str) -> subprocess.CompletedProcess[bytes]:
    """Run a command line of bash in which ``$PLACER`` is the program."""
    given = {**os.environ, "PLACER": " ".join(PROGRAM), **environment}
    return subprocess.run(["bash", "-o", "pipefail", "-c", command], capture_output=True, check=False, env=given)


# -------------------------------------------------------------------------------------------------------- closed pipes


@pytest.mark.parametrize(
    ("words", "code"),
    [
        ("solve {cluster}", 0),
        ("solve {cluster} --require-all --json", 5),
        ("verify {cluster} {placement}", 1),
        ("generate planted --nodes 20", 0),
        ("--help", 0),
    ],
)
def test_a_reader_that_goes_away_changes_nothing(words: str, code: int, cluster: Path, bad_placement: Path) -> None:
    """The reader is gone before anything is written, so every write fails; the code is that of the answer."""
    reader, writer = os.pipe()
    os.close(reader)
    command = [*PROGRAM, *words.format(cluster=cluster, placement=bad_placement).split()]
    done = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, check=False)
    os.close(writer)
    assert (done.returncode, done.stderr) == (code, b"")


def test_both_documents_are_written_though_the_reader_of_the_first_is_gone(cluster: Path, tmp_path: Path) -> None:
    target = tmp_path / "placement.json"
    done = shell(f"$PLACER solve {cluster} --bindings - -o {target} | true")
    assert (done.returncode, done.stderr) == (0, b"")
    assert len(json.loads(target.read_text())["bindings"]) == 3


# --------------------------------------------------------------------------------------------------- full, closed, odd


@pytest.mark.skipif(not FULL.exists(), reason="there is no /dev/full on this system")
@pytest.mark.parametrize(
    ("words", "code"),
    [
        ("solve {cluster}", 2),
        ("solve {cluster} --require-all -o -", 5),
        ("generate planted --nodes 20", 2),
        ("solve --help", 2),
    ],
)
def test_a_full_disk_under_standard_output(words: str, code: int, cluster: Path, bad_placement: Path) -> None:
    done = shell(f"$PLACER {words.format(cluster=cluster, placement=bad_placement)} > /dev/full")
    reason = os.strerror(errno.ENOSPC)
    assert done.stderr.decode() == f"placer: standard output: cannot be written: {reason}\n"
    assert done.returncode == code


@pytest.mark.skipif(not FULL.exists(), reason="there is no /dev/full on this system")
@pytest.mark.parametrize(
    ("words", "ending"),
    [
        ("solve {cluster} -o {target}", ".yaml.gz"),
        ("solve {cluster} --bindings {target}", ".yaml"),
        ("compare {cluster} --policies greedy -o {target}", ".json"),
        ("generate planted --nodes 20 -o {target}", ".json"),
    ],
)
def test_a_full_disk_under_a_file(words: str, ending: str, cluster: Path, tmp_path: Path) -> None:
    target = tmp_path / f"target{ending}"
    target.symlink_to(FULL)
    done = shell(f"$PLACER {words.format(cluster=cluster, target=target)}")
    assert done.stderr.decode() == f"placer: {target}: cannot be written: {os.strerror(errno.ENOSPC)}\n"
    assert done.returncode == 2


@pytest.mark.parametrize("closed", [">&-", "2>&-", "<&- >&- 2>&-", "2>/dev/full"])
@pytest.mark.parametrize(
    ("words", "code"),
    [
        ("solve {cluster} --require-all -o {target}", 5),
        pytest.param("solve {cluster}.not-there", 3, marks=pytest.mark.exhaustive),
    ],
)
def test_closed_streams_change_nothing(words: str, code: int, closed: str, cluster: Path, tmp_path: Path) -> None:
    """Nor does a file of ours get the number of a closed stream, and then what was to be printed."""
    target = tmp_path / "placement.json"
    done = shell(f"$PLACER {words.format(cluster=cluster, target=target)} {closed}")
    assert done.returncode == code
    assert b"Traceback" not in done.stderr + done.stdout
    if "2>" in closed:
        assert done.stderr == b""  # and on standard output, no word of what was meant for standard error
        assert b"placer:" not in done.stdout
    if code == 5:
        assert len(json.loads(target.read_text())["bindings"]) == 3


def test_standard_input_that_is_closed_is_an_empty_one(cluster: Path) -> None:
    done = shell(f"$PLACER solve {cluster} - <&-")
    empty = shell(f"$PLACER solve {cluster} - </dev/null")
    assert (done.returncode, done.stderr) == (empty.returncode, empty.stderr)
    assert b"Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("words", "encoding"), [("solve {cluster}", "ascii"), ("verify {cluster} {placement}", "latin-1")]
)
def test_a_terminal_of_few_characters(words: str, encoding: str, cluster: Path, bad_placement: Path) -> None:
    words = words.format(cluster=cluster, placement=bad_placement)
    done, rich = (shell(f"$PLACER {words}", PYTHONIOENCODING=each) for each in (encoding, "utf-8"))
    assert (done.returncode, done.stderr) == (rich.returncode, b"")
    text = done.stdout.decode(encoding)
    assert len(text.splitlines()) == len(rich.stdout.decode().splitlines())
    assert "\\u" not in text, "a character without a stand-in that reads well"
    assert "?" not in text


def test_the_plain_locale_without_utf8(cluster: Path, tmp_path: Path) -> None:
    """Names that are not of ASCII, in arguments and in what is said of them."""
    odd = tmp_path / "grün-中.json"
    odd.write_text("{")
    plain = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    assert shell(f"$PLACER solve {cluster}", **plain).returncode == 0
    done = shell(f"$PLACER solve {odd}", **plain)
    assert done.returncode == 3
    assert done.stderr.isascii()
    assert done.stderr.startswith(b"placer: 1 fault in the input\n")
    assert b"Traceback" not in done.stderr


def test_a_file_name_that_is_no_text() -> None:
    done = subprocess.run([*PROGRAM, "solve", b"n\xff.json"], capture_output=True, check=False)
    assert (done.returncode, done.stderr.count(b"\n"), b"Traceback" in done.stderr) == (3, 2, False)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("3 × 4 · 5 ≤ 6 → 7…", "3 x 4 - 5 <= 6 -> 7..."),
        ("─│┌┼━ é ½", "-|++- e 12"),
        ("⠋⠙⠼⠦", "\\/|-"),
        ("中 \udcff", "\\u4e2d \\udcff"),
    ],
)
def test_stand_ins_read_well(text: str, shown: str) -> None:
    program = (
        f"import sys\nfrom placer.cli.streams import standard_streams\n"
        f"with standard_streams(): print({text!a}); print({text!a}, file=sys.stderr)"
    )
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, env=environment)
    assert (done.stdout, done.stderr) == (f"{shown}\n", f"{shown}\n")


# ---------------------------------------------------------------------------------------------------------- interrupts

#: Runs in every interpreter of a test: where a module of a given name is about to be imported, a signal comes; in the
#: first process only, since a search's has a session of its own.
HOOK = """
import atexit, importlib.abc, os, signal, sys

WHERE, NUMBER, HOW = os.environ["AT"], int(os.environ["NUMBER"]), os.environ["HOW"]
MAIN = int(os.environ.setdefault("MAIN", str(os.getpid())))


class Lost:
    def __del__(self):
        os.kill(os.getpid(), NUMBER)


class Finder(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name == WHERE and os.getpid() == MAIN:
            sys.meta_path.remove(self)
            if HOW == "lost":
                Lost()
            else:
                os.kill(os.getpid(), NUMBER)
            sys.stdout.write(f"at {name}")
        return None


if HOW == "end":
    atexit.register(os.kill, os.getpid(), NUMBER)
else:
    sys.meta_path.insert(0, Finder())
"""


def interrupted(
    tmp_path: Path, where: str, number: int, *command: str, how: str = "raised"
) -> subprocess.CompletedProcess[str]:
    """Run a command that gets a signal at a moment of its life."""
    hooks = tmp_path / "hooks"
    hooks.mkdir(exist_ok=True)
    (hooks / "sitecustomize.py").write_text(HOOK)
    path = os.pathsep.join([str(hooks), *(each for each in sys.path if each)])
    environment = {**os.environ, "PYTHONPATH": path, "AT": where, "NUMBER": str(number), "HOW": how}
    environment.pop("MAIN", None)
    return subprocess.run(command, capture_output=True, text=True, check=False, env=environment)


#: Modules that a ``solve`` imports, in order: of the command line, of reading, of deciding.
MOMENTS = [
    "placer.cli.signals", "placer.cli.streams", "argparse", "placer.cli.completing", "placer.answers.document",
    "msgspec", "yaml", "placer.problem.instance_builder",
]  # fmt: skip


@pytest.mark.parametrize("number", [signal.SIGINT, *exhaustive(signal.SIGTERM)], ids=lambda number: number.name)
@pytest.mark.parametrize("where", MOMENTS)
def test_an_interrupt_while_it_starts(where: str, number: signal.Signals, cluster: Path, tmp_path: Path) -> None:
    done = interrupted(tmp_path, where, number, *PROGRAM, "solve", str(cluster))
    if number == signal.SIGTERM and where == "placer.cli.signals":
        assert (done.returncode, done.stderr) == (-number, "")  # nothing of ours is there yet; the system ends it
    else:
        assert (done.returncode, done.stderr) == (128 + number, "placer: interrupted\n")


@pytest.mark.parametrize("program", ["placer", "placer.cli"])
def test_an_interrupt_is_the_same_however_it_is_started(program: str, cluster: Path, tmp_path: Path) -> None:
    command = (sys.executable, "-m", program, "solve", str(cluster))
    done = interrupted(tmp_path, "placer.cli.program", signal.SIGINT, *command)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "placer: interrupted\n")


def test_an_interrupt_that_falls_into_a_destructor_is_not_lost(cluster: Path, tmp_path: Path) -> None:
    """A KeyboardInterrupt raised in one is only printed, and the program would go on."""
    fifo = tmp_path / "more.json"
    os.mkfifo(fifo)
    done = interrupted(tmp_path, "msgspec", signal.SIGINT, *PROGRAM, "solve", str(fifo), str(cluster), how="lost")
    assert (done.returncode, done.stderr) == (130, "placer: interrupted\n")


def test_an_interrupt_after_the_answer_leaves_no_traceback(cluster: Path, tmp_path: Path) -> None:
    done = interrupted(tmp_path, "", signal.SIGINT, *PROGRAM, "solve", str(cluster), how="end")
    assert done.stdout.count("3 of 4 pending") == 1
    assert (done.returncode, done.stderr) == (-signal.SIGINT, "")


@pytest.mark.parametrize("number", [signal.SIGINT, *exhaustive(signal.SIGTERM)], ids=lambda number: number.name)
@pytest.mark.parametrize(
    "words",
    [["solve", "{fifo}"], ["verify", "--json", "{fifo}", "{fifo}"], ["compare", "{fifo}"]],
    ids=" ".join,
)
def test_an_interrupt_while_it_reads(words: list[str], number: signal.Signals, tmp_path: Path) -> None:
    """A pipe by name, which is opened when somebody writes to it: that is when the signal comes."""
    fifo = tmp_path / "cluster.json"
    os.mkfifo(fifo)
    command = [*PROGRAM, *(word.format(fifo=fifo) for word in words)]
    with started(command) as running, os.fdopen(_writer_of(fifo, running), "wb"):
        out, err = interrupt(running, number)
    assert (running.returncode, out, err) == (128 + number, "", "placer: interrupted\n")


def _writer_of(fifo: Path, running: subprocess.Popen[Any]) -> int:
    """Open a pipe for writing as soon as it has a reader."""
    while running.poll() is None:
        with contextlib.suppress(OSError):  # no reader yet
            return os.open(fifo, os.O_WRONLY | os.O_NONBLOCK)
        os.sched_yield()
    raise AssertionError(f"ended before it read: {running.communicate()}")


#: A program whose second explanation never ends.
SLOW = """
import signal, sys
from placer.cli import main
from placer.answers.explain import explanation

fast, calls = explanation._explained, []

def slow(*arguments):
    calls.append(arguments)
    return fast(*arguments) if len(calls) == 1 else signal.pause()

explanation._explained = slow
sys.exit(main())
"""

POLICY = """
import signal

def slow(instance, **_):
    signal.pause()
"""


@pytest.mark.parametrize(
    ("words", "line", "done", "said"),
    [
        ("explain {cluster} --time-limit 900", "(2 of 2)", "default/giant waits", "1 of 2 groups"),
        ("compare {cluster} --policies greedy,it=policy:slow --json", "(2 of 2)", '"greedy"', "1 of 2 rows"),
        ("sweep {cluster} --seeds 1 --policies greedy,it=policy:slow", "run 2 of 2", "\ngreedy ", "1 of 2 runs"),
    ],
)
def test_ctrl_c_prints_the_answers_that_are_there(
    words: str, line: str, done: str, said: str, cluster: Path, tmp_path: Path
) -> None:
    """It comes as soon as the progress on the terminal says that the second answer is looked for."""
    objects = json.loads(cluster.read_text())
    objects["items"].append(pod("wide", cpu=1, spec={"nodeSelector": {"rack": "r1"}}))
    cluster.write_text(json.dumps(objects))
    (tmp_path / "policy.py").write_text(POLICY)
    ours, theirs = os.openpty()
    command = [sys.executable, "-c", SLOW, *words.format(cluster=cluster).split()]
    path = os.pathsep.join([str(tmp_path), *(each for each in sys.path if each)])
    environment = {**os.environ, "TERM": "xterm", "PYTHONPATH": path}
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=theirs, text=True, env=environment) as running:
        os.close(theirs)
        shown = ""
        while line not in shown:
            shown += os.read(ours, 4096).decode()
        running.send_signal(signal.SIGINT)
        out = running.communicate()[0]
    with contextlib.suppress(OSError):  # nobody has the terminal open any more
        while part := os.read(ours, 4096).decode():
            shown += part
    os.close(ours)
    assert done in f"\n{out}"
    assert f"placer: interrupted: {said} done" in shown
    assert running.returncode == 130


def test_a_job_in_the_background_heeds_no_ctrl_c(cluster: Path) -> None:
    """Shells start such jobs with SIGINT ignored."""
    program = f"trap '' INT; $PLACER solve {cluster} & kill -INT $!; wait $!"
    done = shell(program)
    assert (done.returncode, done.stderr) == (0, b"")


# ------------------------------------------------------------------------------------------- after the line of a pass

AFTER = """
import os, signal
from placer.cli.signals import Signals, StopSignals
with Signals(own=True) as outer:
    outer.raised()
    signals = StopSignals()
    with signals.heeded():
        signals.answered()
        os.kill(os.getpid(), signal.SIGTERM)
    os.kill(os.getpid(), signal.SIGTERM)
os.kill(os.getpid(), signal.SIGTERM)
raise SystemExit(6)
"""


def test_a_signal_after_the_line_of_a_pass_changes_nothing() -> None:
    """Whoever has read it may end the process, at any moment up to its end: a good pass is no failed Job."""
    done = subprocess.run([sys.executable, "-c", AFTER], capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (6, b"")
