"""Agreement on as many tiny instances as is wanted; the tests of the repository try some of them.

Trying everything, every method that proves, and MiniZinc find the same values: on pods that ask something of each other
(C12 to C15, C7 by label), mixed with tiers, gangs, calls and NUMA zones; with ``--family preempt``, ``repair`` and
``defrag`` where pods that run may be evicted or moved (D1 to D5). Each line is one that does not agree; the last one
counts::

    python -m tests.agreement --seeds 400-1399
    python -m tests.agreement --seeds 0-99 --methods exact,milp --no-minizinc
    python -m tests.agreement --family preempt --seeds 0-499
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Callable, Mapping
from functools import partial

from tests.disturbing import DISTURBING, UNPROVED
from tests.oracle import best
from tests.oracle_disruption import best_preempting
from tests.test_agreement import disagreement
from tests.test_minizinc import complaint
from tests.tiny import Tiny
from tests.tiny_disruption import tiny_defrag, tiny_disruption, tiny_repair
from tests.tiny_neighbours import tiny_neighbours

METHODS = "exact,milp,decomposed"

#: Families in which what runs may be disturbed.
DISTURBED: Mapping[str, Callable[[int], Tiny]] = {
    "preempt": tiny_disruption,
    "repair": lambda seed: Tiny(seed, tiny_repair(seed), tiny_disruption(seed).tags),
    "defrag": lambda seed: Tiny(seed, tiny_defrag(seed), tiny_disruption(seed).tags),
}


def main() -> int:
    """Try the seeds; 1 where any does not agree."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seeds", default="0-999", metavar="FIRST-LAST")
    parser.add_argument("--family", default="neighbours", choices=["neighbours", *DISTURBED])
    parser.add_argument(
        "--methods", metavar="A,B", help=f"default {METHODS}; {','.join(DISTURBING)} of what is disturbed"
    )
    parser.add_argument("--no-minizinc", action="store_true", help="without MiniZinc, which takes longest")
    asked = parser.parse_args()
    first, _, last = asked.seeds.partition("-")
    disturbing = asked.family in DISTURBED
    known = DISTURBING if disturbing else {name: disagreement(name) for name in METHODS.split(",")}
    tries = {name: known[name] for name in (asked.methods.split(",") if asked.methods else known)}
    if not asked.no_minizinc:
        tries["MiniZinc"] = partial(complaint, disturbing=disturbing)
    make = DISTURBED.get(asked.family, tiny_neighbours)
    tags, seen, failed, tried = Counter[str](), Counter[str](), 0, 0
    for seed in range(int(first), int(last or first) + 1):
        tiny = make(seed)
        most, placement = (best_preempting if disturbing else best)(tiny.instance)
        seen.update(evicts=bool(placement.evictions), moves=bool(placement.moves))
        tags.update(tiny.tags)
        tried += 1
        for name, attempt in tries.items():
            wrong = attempt(tiny.instance, most)
            seen["not proved"] += wrong.startswith(UNPROVED)
            if wrong and not wrong.startswith(UNPROVED):
                failed += 1
                print(f"seed {seed}, {name}: {wrong}", flush=True)
        if tried % 50 == 0:
            print(f"{tried} tried, {failed} disagree", file=sys.stderr, flush=True)
    against = f"{', '.join(tries)} against trying everything"
    print(f"{tried} instances, {against}: {failed} disagree; {dict(sorted((tags + seen).items()))}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
