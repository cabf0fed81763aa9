"""Writes ``requirements.lock`` and ``build.lock`` anew: which files of which versions the image is made of.

Each line names a version and the check sums of its wheels, one for each architecture; pip refuses any other file.
``python deploy/lock.py`` asks pip, which asks the package index; run it when a dependency in ``pyproject.toml`` changes
or one of these versions has to go, and run the tests after it.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import tomllib
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
#: Of the image: see ``Dockerfile``. Its Debian has glibc 2.36.
PYTHON = "3.11"
ARCHITECTURES = ("x86_64", "aarch64")
_GLIBC = ("manylinux2014", *(f"manylinux_2_{minor}" for minor in range(17, 37)))


def main() -> None:
    """Ask for what ``pyproject.toml`` asks for."""
    project = tomllib.loads((HERE.parent / "pyproject.toml").read_text())
    runtime = project["project"]["dependencies"] + project["project"]["optional-dependencies"]["cluster"]
    _write("requirements.lock", runtime)
    _write("build.lock", project["build-system"]["requires"])


def _write(name: str, requirements: Iterable[str]) -> None:
    """Write the lock of some requirements and of all that they require."""
    found: dict[str, set[str]] = defaultdict(set)
    for architecture in ARCHITECTURES:
        for item in _resolved(requirements, architecture):
            pin = f"{item['metadata']['name'].lower()}=={item['metadata']['version']}"
            found[pin].add(item["download_info"]["archive_info"]["hashes"]["sha256"])
    names = [pin.partition("==")[0] for pin in found]
    if len(names) != len(set(names)):
        raise SystemExit(f"the architectures do not agree on versions: {sorted(found)}")
    lines = [f"# Made by deploy/lock.py, for Python {PYTHON} on Linux: {', '.join(ARCHITECTURES)}."]
    for pin, sums in sorted(found.items()):
        lines += [f"{pin} \\", *(f"    --hash=sha256:{each} \\" for each in sorted(sums))]
        lines[-1] = lines[-1].removesuffix(" \\")
    (HERE / name).write_text("\n".join(lines) + "\n")


def _resolved(requirements: Iterable[str], architecture: str) -> list[dict[str, Any]]:
    """What pip would install there."""
    platforms = [f"--platform={glibc}_{architecture}" for glibc in _GLIBC]
    with tempfile.TemporaryDirectory() as target:
        report = Path(target) / "report.json"
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--dry-run", "--ignore-installed"]
        command += ["--only-binary=:all:", f"--python-version={PYTHON}", *platforms]
        command += [f"--target={target}", f"--report={report}", *requirements]
        subprocess.run(command, check=True)
        resolved: list[dict[str, Any]] = json.loads(report.read_text())["install"]
    return resolved


if __name__ == "__main__":
    main()
