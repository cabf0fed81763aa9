"""Planted clusters of NUMA nodes through the whole call: what is placed of what was planted, what is proved, how long.

    python -m tests.benchmarks.numa_planted --nodes 50 --seeds 3
    python -m tests.benchmarks.numa_planted --nodes 1000 --seeds 1 --set pod_cores=8,10,12,14,16,24 --set pairs=0.2

One line per instance: pods, placed weight over that of all pods for the greedy and for the answer, the verdict, nodes
where pods must be bound one by one of all nodes, seconds of the greedy and in all.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Mapping

from placer.answers.solving import solve
from placer.kube.manifests import from_documents, validate
from placer.lab.generate import generate
from placer.problem import Instance
from placer.problem.instance_builder import make_instance
from placer.problem.result import Result


def main() -> None:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=50)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="an option of the family")
    asked = parser.parse_args()
    options = dict(_option(text) for text in asked.set)
    for seed in range(1, asked.seeds + 1):
        made = generate("numa", nodes=asked.nodes, seed=seed, **options)
        instance = make_instance(validate(from_documents(made.documents)))
        greedy, _ = _timed(instance, "greedy", asked.seconds, asked.workers)
        answer, seconds = _timed(instance, "auto", asked.seconds, asked.workers)
        assert answer.placement is not None
        print(
            f"nodes {asked.nodes} seed {seed}: pods {len(made.planted)}, greedy {_share(greedy):.4%}, "
            f"answer {_share(answer):.4%} {answer.verdict.value}, one by one {len(answer.placement.one_by_one)}, "
            f"greedy {greedy.seconds['solve']:.1f} s, all {seconds:.1f} s",
            flush=True,
        )


def _option(text: str) -> tuple[str, object]:
    """A number, or several with commas."""
    name, _, value = text.partition("=")
    numbers = [float(part) if "." in part else int(part) for part in value.split(",")]
    return name, tuple(numbers) if "," in value or name in ("zones", "pod_cores") else numbers[0]


def _timed(instance: Instance, method: str, seconds: float, workers: int) -> tuple[Result, float]:
    began = time.monotonic()
    result = solve(instance, method=method, time_limit=seconds, workers=workers)
    return result, time.monotonic() - began


def _share(result: Result) -> float:
    weights: Mapping[object, int] = result.instance.weights
    return result.weight.value.value / max(1, sum(weights.values()))


if __name__ == "__main__":
    main()
