"""Arrays that are worked out once, as long as there are not too many."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

import numpy as np
import numpy.typing as npt

__all__ = ["Remembered"]

#: So many numbers are kept.
NUMBERS = 2_000_000

Key = TypeVar("Key", bound=Hashable)


class Remembered(Generic[Key]):
    """Arrays by key; all are forgotten when they would be more than :data:`NUMBERS` numbers.

    Parameters
    ----------
    make
        Works out the array of a key.
    """

    def __init__(self, make: Callable[[Key], npt.NDArray[np.int64]]) -> None:
        self._make = make
        self._known: dict[Key, npt.NDArray[np.int64]] = {}
        self._numbers = 0

    def __getitem__(self, key: Key) -> npt.NDArray[np.int64]:
        if key not in self._known:
            found = self._make(key)
            if self._numbers + found.size > NUMBERS:
                self._known.clear()
                self._numbers = 0
            self._known[key] = found
            self._numbers += found.size
        return self._known[key]
