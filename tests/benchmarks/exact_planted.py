"""Planted instances through greedy and the exact search: what is placed, what is proved, and how long it takes.

    python tests/benchmarks/exact_planted.py --nodes 16,50,200 --seeds 10 --seconds 60 --workers 2
    python tests/benchmarks/exact_planted.py --nodes 50 --set pod_sizes=1,2,4,8 --set roles=0.5

One line per instance: value/bound per criterion (a dash where nothing is proved), seconds until everything was placed,
seconds in all. The last line of a size counts how many were placed whole and how many were proved.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from placer.base.deadline import Deadline

sys.path.insert(0, str(Path(__file__).parents[2]))

from placer.arrays import Dense, Solution
from placer.arrays.dense_builder import make_dense
from placer.kube.manifests import from_documents, validate
from placer.lab.generate import FAMILIES, generate
from placer.problem.instance_builder import make_instance
from placer.rules import verify
from placer.search.events import Event, Improved, SearchOptions
from placer.search.exact.method import search
from placer.search.greedy.multi_start import greedy
from placer.search.incumbent import Incumbent


@dataclass
class Run:
    """What one search told, and when."""

    dense: Dense
    began: float = field(default_factory=time.monotonic)
    full_after: float | None = None

    def __post_init__(self) -> None:
        self.incumbent = Incumbent(self.dense, self.began)
        self.all_pods = sum(pod_class.size for pod_class in self.dense.classes)

    def hear(self, event: Event) -> None:
        self.incumbent.on_event(event, "exact")
        if isinstance(event, Improved) and self.full_after is None and sum(event.solution.values()) == self.all_pods:
            self.full_after = time.monotonic() - self.began

    @property
    def placed(self) -> float:
        """Share of the weight that is placed."""
        return _weight(self.dense, self.incumbent.solution or Solution()) / max(1, _all_weight(self.dense))


def _weight(dense: Dense, solution: Solution) -> int:
    return sum(dense.classes[index].weight * count for (index, _), count in solution.items())


def _all_weight(dense: Dense) -> int:
    return sum(pod_class.weight * pod_class.size for pod_class in dense.classes)


def run(nodes: int, seed: int, options: argparse.Namespace) -> tuple[bool, bool]:
    """Run one instance and print its line; say whether all was placed and whether all was proved."""
    made = generate("planted", nodes=nodes, seed=seed, **dict(options.set))
    instance = make_instance(validate(from_documents(made.documents)))
    dense = make_dense(instance)
    start = time.monotonic()
    hint = greedy(dense)
    greedy_seconds = time.monotonic() - start
    found = Run(dense)
    end = search(
        dense, SearchOptions(Deadline.within(options.seconds), math.inf, options.workers, seed, hint), found.hear
    )
    seconds = time.monotonic() - found.began
    assert found.incumbent.solution is not None
    assert verify(instance, dense.placement(found.incumbent.solution)) == []
    values = " ".join(
        f"{name}:{value}/{'-' if bound is None else bound.value}"
        for (name, _), value, bound in zip(
            dense.criteria, found.incumbent.values, found.incumbent.bounds(), strict=True
        )
    )
    full = "never" if found.full_after is None else f"{found.full_after:.1f}"
    greedy_share = _weight(dense, hint) / max(1, _all_weight(dense))
    print(
        f"{nodes:5} {seed:4} {len(dense.groups):6} {100 * greedy_share:7.2f} {greedy_seconds:6.2f} "
        f"{100 * found.placed:7.2f} {full:>6} {seconds:6.1f} {end:8} {values}",
        flush=True,
    )
    return found.full_after is not None, end == "proved"


def _setting(text: str) -> tuple[str, Any]:
    """``name=value`` as the option of that name reads it."""
    name, _, value = text.partition("=")
    option = next(each for each in FAMILIES["planted"].flags if each.name == name)
    return name, option.parse(value)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", default="16,50,200", help="sizes, with commas")
    parser.add_argument("--seeds", type=int, default=10, help="seeds per size")
    parser.add_argument("--first", type=int, default=0, help="first seed")
    parser.add_argument("--seconds", type=float, default=60.0, help="limit of each search")
    parser.add_argument("--workers", type=int, default=2, help="solver threads")
    parser.add_argument("--set", action="append", type=_setting, default=[], help="option of the family, name=value")
    options = parser.parse_args()
    print("nodes seed groups greedy%  sec    exact%   full    all end      value/bound")
    for nodes in map(int, options.nodes.split(",")):
        seeds = range(options.first, options.first + options.seeds)
        outcomes = [run(nodes, seed, options) for seed in seeds]
        whole, proved = (sum(column) for column in zip(*outcomes, strict=True))
        print(f"{nodes} nodes: {whole} of {len(outcomes)} placed whole, {proved} proved", flush=True)


if __name__ == "__main__":
    main()
