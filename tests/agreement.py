"""Agreement on as many tiny instances with neighbours as is wanted; the tests of the repository try some of them.

Trying everything, every method that proves, and MiniZinc find the same values on pods that ask something of each other
(C12 to C15, C7 by label), mixed with tiers, gangs, calls and NUMA zones. Each line is one that does not agree; the last
one counts::

    python -m tests.agreement --seeds 400-1399
    python -m tests.agreement --seeds 0-99 --methods exact,milp --no-minizinc
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Callable, Mapping

from placer.instance import Instance
from placer.placement import Score
from tests.oracle import best
from tests.test_agreement import disagreement
from tests.test_minizinc import complaint
from tests.tiny_neighbours import tiny_neighbours

METHODS = "exact,milp,decomposed"


def main() -> int:
    """Try the seeds; 1 where any does not agree."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seeds", default="0-999", metavar="FIRST-LAST")
    parser.add_argument("--methods", default=METHODS, metavar="A,B", help=f"default {METHODS}")
    parser.add_argument("--no-minizinc", action="store_true", help="without MiniZinc, which takes longest")
    asked = parser.parse_args()
    first, _, last = asked.seeds.partition("-")
    tries: Mapping[str, Callable[[Instance, Score], str]] = {
        **{method: disagreement(method) for method in asked.methods.split(",")},
        **({} if asked.no_minizinc else {"MiniZinc": complaint}),
    }
    tags, failed, tried = Counter[str](), 0, 0
    for seed in range(int(first), int(last or first) + 1):
        tiny = tiny_neighbours(seed)
        most = best(tiny.instance)[0]
        tags.update(tiny.tags)
        tried += 1
        for name, attempt in tries.items():
            wrong = attempt(tiny.instance, most)
            if wrong:
                failed += 1
                print(f"seed {seed}, {name}: {wrong}", flush=True)
        if tried % 50 == 0:
            print(f"{tried} tried, {failed} disagree", file=sys.stderr, flush=True)
    against = f"{', '.join(tries)} against trying everything"
    print(f"{tried} instances, {against}: {failed} disagree; {dict(sorted(tags.items()))}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
