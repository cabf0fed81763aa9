"""Tools from outside that some tests need, such as MiniZinc."""

from __future__ import annotations

import os
import shutil

import pytest

__all__ = ["require"]


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
    if path is not None:
        return path
    message = f"{tool} is not installed: {how}"
    if os.environ.get("PLACER_REQUIRE_TOOLS") == "1":
        pytest.fail(message, pytrace=False)
    pytest.skip(message)
