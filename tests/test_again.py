"""Failed tests are run again, and only those that pass both times count as flaky."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent

#: Fails in the first of so many runs of it; a file counts them.
FAILS = """
from pathlib import Path
def test_{name}():
    counted = Path({folder!r}, "{name}")
    runs = len(counted.read_text()) if counted.exists() else 0
    counted.write_text("x" * (runs + 1))
    assert runs not in {failing}
"""


#: Verdicts on tests that fail in the first run alone, in the first two, and in the first and the third.
SAID = (("FAILED", "b"), ("FAILED", "c"), ("FLAKY", "a"))


def outcome(folder: Path, tests: dict[str, tuple[int, ...]]) -> tuple[int, list[str]]:
    """Exit code and verdicts of a first run and of the runs after it; each test with the runs in which it fails."""
    file = folder / "test_drawn.py"
    file.write_text("".join(FAILS.format(name=name, folder=str(folder), failing=runs) for name, runs in tests.items()))
    options = ["-c", str(folder / "pytest.ini"), "--rootdir", str(folder), "-q"]
    (folder / "pytest.ini").write_text("[pytest]\n")
    cache = folder / "cache"
    first = [sys.executable, "-m", "pytest", *options, "-o", f"cache_dir={cache}", str(file)]
    assert subprocess.run(first, check=False, cwd=folder, stdout=subprocess.DEVNULL).returncode == 1
    command = [sys.executable, "-m", "tests.again", str(cache), *options]
    environment = {"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin"}
    run = subprocess.run(command, check=False, cwd=folder, capture_output=True, text=True, env=environment)
    verdicts = [
        line for line in run.stdout.splitlines() if line.startswith(("FLAKY ", "FAILED ")) and " - " not in line
    ]
    return run.returncode, verdicts


def test_one_that_passes_both_times_is_flaky(tmp_path: Path) -> None:
    assert outcome(tmp_path, {"a": (0,), "b": ()}) == (0, ["FLAKY test_drawn.py::test_a"])


def test_one_that_fails_once_more_has_failed_and_more_than_three_are_not_run_again(tmp_path: Path) -> None:
    code, verdicts = outcome(tmp_path, {"a": (0,), "b": (0, 1), "c": (0, 2)})
    assert (code, sorted(verdicts)) == (1, [f"{word} test_drawn.py::test_{name}" for word, name in SAID])
    four = tmp_path / "four"
    four.mkdir()
    assert outcome(four, dict.fromkeys("abcd", (0,))) == (1, [])
