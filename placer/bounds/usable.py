"""Room that pods can use: what is left over on a node whatever goes there is no room.

Of 3 GPUs pods of 2 use 2. Where every pod with a GPU asks for at least 4 cores with it, 10 free cores are room for 2
GPUs, however many are free.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import numpy.typing as npt

__all__ = ["usable"]

IntArray = npt.NDArray[np.int64]

#: Room is made up from requests exactly up to so many units, beyond that it is taken as it is.
EXACT_ROOM = 20_000


def usable(request: IntArray, free: IntArray) -> IntArray:
    """Bound what pods on one node can take together of each resource.

    Parameters
    ----------
    request
        int64, shape (shapes, resources): requests of all pods that may go to the nodes.
    free
        int64, shape (nodes, resources), at least 0.

    Returns
    -------
    int64, shape (nodes, resources), at most ``free``.
    """
    found = free.copy()
    for resource in range(free.shape[1]):
        for other in range(free.shape[1]):
            ratio = _most_per(request, resource, other) if resource != other else None
            if ratio is not None:
                most = free[:, other].astype(object) * ratio.numerator // ratio.denominator
                found[:, resource] = np.minimum(found[:, resource], most).astype(np.int64)
    for resource in range(free.shape[1]):
        largest = int(found[:, resource].max(initial=0))
        if largest <= EXACT_ROOM:
            sums = _sums_of(np.unique(request[:, resource]).tolist(), largest)
            amounts = found[:, resource].tolist()
            found[:, resource] = [(sums & ((2 << amount) - 1)).bit_length() - 1 for amount in amounts]
    return found


def _most_per(request: IntArray, resource: int, other: int) -> Fraction | None:
    """Most of a resource that comes with a unit of another one; None where it comes without."""
    asking = request[request[:, resource] > 0][:, [resource, other]]
    if (asking[:, 1] == 0).any():
        return None
    if not len(asking):
        return Fraction(0)
    ratios = asking[:, 0] / asking[:, 1]
    near = np.unique(asking[ratios >= ratios.max() * (1 - 1e-9)], axis=0)
    return max(Fraction(int(mine), int(its)) for mine, its in near)


def _sums_of(amounts: list[int], most: int) -> int:
    """All sums up to ``most`` of the amounts, each used any number of times: bit i is set where i is a sum."""
    sums, within = 1, (1 << (most + 1)) - 1
    for amount in amounts:
        step = amount
        while 0 < step <= most:
            sums |= (sums << step) & within
            step *= 2
    return sums
