"""A soak: 360 passes of ``placer run --every`` on 1,000 nodes beside a real kube-scheduler, and a judge of them.

    python -m tests.benchmarks.soak [--passes 360] [--nodes 1000] [--seed 0] [-o LINES] [-- FLAGS OF placer run]

Starts an API server of its own, kube-scheduler, and two processes of placer, of which one stands by; half of the cpu
runs pods from the beginning. In each pass gangs, single pods and pods of kube-scheduler's arrive and others end; in
each fifth one something goes wrong; twice the Lease is handed over, since its holder is killed, and since it is told to
end. Prints a line for each pass, then the figures and what the judge has to say (``tests/cluster/soak/judge.py``); ends
with 1 where something does not hold.
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from tests.benchmarks.bind import started
from tests.cluster.soak.judge import Limits, figures, judge
from tests.cluster.soak.run import SoakOptions, soak


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--passes", type=int, default=360)
    parser.add_argument("--nodes", type=int, default=1_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("flags", nargs="*", default=["--method", "greedy"], help="of placer run, behind --")
    parser.add_argument("-o", dest="lines", type=Path, help="where to write the lines as well")
    wanted = parser.parse_args()
    options = SoakOptions(wanted.passes, wanted.nodes, wanted.seed, flags=tuple(wanted.flags))
    limits = Limits(passes=wanted.passes)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended before its time"))  # what was started ends, too
    with ExitStack() as stack:
        outputs = [sys.stdout]
        if wanted.lines is not None:
            outputs.append(stack.enter_context(wanted.lines.open("w")))

        def tell(line: dict[str, Any]) -> None:
            for each in outputs:
                print(json.dumps(line), file=each, flush=True)

        server, api = stack.enter_context(started())
        records = soak(server, api, options, tell)
        faults = judge(records, limits)
        tell({"figures": figures(records, limits), "faults": faults})
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
