"""Tools from outside that some tests need, such as MiniZinc."""

from __future__ import annotations

import importlib.util
import os
import shutil
from typing import NoReturn

import pytest

__all__ = ["require", "require_package"]


def require(tool: str, how: str) -> str:
    """Path of a tool; without it the test is skipped by name, or fails where all tools must be there.

    Parameters
    ----------
    tool
        Name of the program, looked for on the path.
    how
        How to get it, such as ``apt-get install minizinc``; part of the message.

    Returns
    -------
    str
        Where the program is. Under ``PLACER_REQUIRE_TOOLS=1`` (continuous integration) a missing one fails the test.
    """
    path = shutil.which(tool)
    if path is None:
        _missing(tool, how)
    return path


def require_package(name: str, how: str) -> None:
    """As :func:`require`, of a Python package that is an extra of the project."""
    if importlib.util.find_spec(name) is None:
        _missing(name, how)


def _missing(what: str, how: str) -> NoReturn:
    message = f"{what} is not installed: {how}"
    if os.environ.get("PLACER_REQUIRE_TOOLS") == "1":
        pytest.fail(message, pytrace=False)
    pytest.skip(message)
