"""How long the policies take, and what `volcano` comes to on the layout that the real one was run on.

Seconds are processor time of the policy itself; generating and reading are not in them.

    python -m tests.benchmarks.policies --seconds
    python -m tests.benchmarks.policies --like-volcano 512 1024 5120 --seeds 20
"""

from __future__ import annotations

import argparse
import time
from collections import Counter
from dataclasses import replace
from random import Random
from typing import Any

from placer.kube.manifests import from_documents, validate
from placer.lab.generate import generate
from placer.lab.policies.mimicry import POLICIES, run
from placer.problem import Instance, SubGroupPolicy
from placer.problem.instance_builder import make_instance
from placer.rules import verify
from tests.world import World, hard

#: 1,000 nodes and about 1,000 pending pods each: half the nodes full of whole-node pods, and small ones mixed.
QUEUES: dict[str, dict[str, Any]] = {
    "like Volcano's": {"nodes": 1000, "like_volcano": True},
    "mixed": {"nodes": 1000, "pod_sizes": (1, 2, 4, 8), "fill": 0.36, "roles": 0.2, "elastic": 0.2},
    "overfull": {"nodes": 1000, "fill": 0.75, "overfull": 0.25, "priorities": 3, "running": 0.2},
}

#: The plug-ins of the real runs.
CONFIGURED = {
    "tiers": [
        {"plugins": [{"name": name} for name in ("priority", "gang", "conformance")]},
        {
            "plugins": [
                {"name": name}
                for name in ("predicates", "proportion", "nodeorder", "binpack", "network-topology-aware")
            ]
        },
    ]
}


def made(seed: int, **options: Any) -> Instance:
    """Instance of a planted queue."""
    return make_instance(validate(from_documents(generate("planted", seed=seed, **options).documents)))


def subgroups() -> Instance:
    """One job of 1,000 pods in 100 subgroups, each for a leaf of ten nodes: the size of Volcano's own benchmark."""
    world = World()
    for leaf in range(100):
        names = [world.node(f"n{leaf:02}{each}", gpu=8, cpu=64_000) for each in range(10)]
        world.hyper(f"l{leaf:02}", 1, " ".join(names))
    for spine in range(10):
        world.hyper(f"s{spine}", 2, " ".join(f"l{spine}{leaf}" for leaf in range(10)))
    world.hyper("root", 3, " ".join(f"s{spine}" for spine in range(10)))
    job = world.gang("job", 1000, topology=hard(3), policies=[SubGroupPolicy("part", 10, 100, hard(1))])
    for part in range(100):
        for each, gpu in enumerate((8, 4, 4, 2, 2, 1, 8, 4, 6, 8)):
            world.pod(f"p{part}-{each}", job, gpu, cpu=8_000, part=str(part))
    return world.instance()


def seconds() -> None:
    """Time every policy on every queue."""
    queues = {name: made(1, **options) for name, options in QUEUES.items()}
    for name, instance in {**queues, "one job of 100 mixed subgroups": subgroups()}.items():
        print(f"{name}: {len(instance.nodes):,} nodes, {len(instance.pending):,} pending pods")
        for policy in POLICIES:
            begin = time.process_time()
            placement = run(instance, policy)
            taken = time.process_time() - begin
            broken = Counter(violation.rule for violation in verify(instance, placement))
            told = ", ".join(f"{rule} {count:,}" for rule, count in broken.items()) or "nothing"
            print(f"  {policy:16} {taken:6.1f} s, {len(placement.bindings):,} bound, breaks {told}", flush=True)


def shuffled(instance: Instance, seed: int) -> Instance:
    """The same with PodGroups of another age: in the real runs all were of one second, and came by their uid."""
    ages = list(range(len(instance.groups)))
    Random(seed).shuffle(ages)
    groups = zip(ages, instance.groups.items(), strict=True)
    return replace(instance, groups={key: replace(group, created=float(age)) for age, (key, group) in groups})


def float_of(share: str) -> float:
    return float(share.rstrip("%"))


def like_volcano(nodes: int, instances: int, seeds: int) -> None:
    """Share of the pods that is bound, of several instances over ties and orders of the PodGroups."""
    for made_by in range(1, instances + 1):
        instance = made(made_by, nodes=nodes, like_volcano=True)
        gangs = sum(bool(group.key.api_group) for group in instance.groups.values())
        shares = Counter[str]()
        begin = time.process_time()
        for seed in range(seeds):
            placement = run(shuffled(instance, seed), "volcano", seed=seed, arguments=CONFIGURED)
            assert not verify(instance, placement)
            shares[f"{len(placement.bindings) / len(instance.pending):.1%}"] += 1
        taken = (time.process_time() - begin) / seeds
        told = ", ".join(f"{share} in {shares[share]}" for share in sorted(shares, key=float_of, reverse=True))
        print(f"{nodes:,} nodes, seed {made_by}: {gangs} gangs, {told}; {taken:.1f} s a run", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", action="store_true", help="time every policy on 1,000 nodes")
    parser.add_argument("--like-volcano", nargs="*", type=int, default=[], metavar="NODES")
    parser.add_argument("--instances", type=int, default=3, metavar="N", help="of each size (3)")
    parser.add_argument("--seeds", type=int, default=20, metavar="N", help="of ties and of orders (20)")
    options = parser.parse_args()
    if options.seconds:
        seconds()
    for nodes in options.like_volcano:
        like_volcano(nodes, options.instances, options.seeds)


if __name__ == "__main__":
    main()
