"""One browser for all tests of the page."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.browsers import chromium


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """Chromium."""
    yield from chromium()
