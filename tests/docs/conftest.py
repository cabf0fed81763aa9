"""The documentation site, built once, and one browser to look at it."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.browsers import chromium
from tests.tools import require_package

ROOT = Path(__file__).parents[2]
HOW = "pip install '.[docs,cluster]'"


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site as ``mkdocs build --strict`` makes it, where every warning is an error."""
    for package in ("mkdocs", "material", "mkdocstrings_handlers", "latex2mathml", "matplotlib", "prometheus_client"):
        require_package(package, HOW)
    folder = tmp_path_factory.getbasetemp()
    folder = folder.parent if "PYTEST_XDIST_WORKER" in os.environ else folder  # processes of one run share it
    target = folder / "site"
    with (folder / "site.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not target.exists():
            _build(target)
    return target


def _build(target: Path) -> None:
    words = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(target)]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(words, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        target.rename(target.with_name("broken-site")) if target.exists() else None
        pytest.fail(f"mkdocs build --strict ends with {done.returncode}:\n{done.stdout}{done.stderr}", pytrace=False)


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """Chromium."""
    yield from chromium()
