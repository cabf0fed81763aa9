"""Runs again, alone and twice, each test that has failed: one that passes both times is flaky, any other has failed.

``python -m tests.again CACHE [ARGUMENT ...]`` reads the failures of the last run from pytest's cache folder, and hands
the arguments on to pytest. It prints ``FLAKY name`` for each flaky test, which is to be mended next.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

__all__ = ["main"]

#: More flaky tests than this in one run fail it.
MOST = 3
_TIMES = 2


def main(arguments: Sequence[str]) -> int:
    """Run the failures of the last run again.

    Returns
    -------
    int
        0 where at most ``MOST`` tests had failed and all of them pass now, else 1.
    """
    cache, *options = arguments
    failed = sorted(json.loads((Path(cache) / "v/cache/lastfailed").read_text(encoding="utf-8")))
    if not failed:
        print("the run failed, and no test did")
        return 1
    if len(failed) > MOST:
        print(f"{len(failed)} tests failed: found more than {MOST}, so none is run again")
        return 1
    broken = [name for name in failed if not _passes(name, options)]
    for name in failed:
        print(f"{'FAILED' if name in broken else 'FLAKY'} {name}")
    return 1 if broken else 0


def _passes(name: str, options: Sequence[str]) -> bool:
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *options, name]
    return all(subprocess.run(command, check=False).returncode == 0 for _ in range(_TIMES))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
