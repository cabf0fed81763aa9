"""Family ``clos``: a Clos fabric with running jobs and a queue of others; what fits is not known."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from placer.laboratory.generate.carving import CarvedGang, carve
from placer.laboratory.generate.cluster import Cluster, Generated, job_names, name_cluster, write_jobs
from placer.laboratory.generate.fabric import Fabric, build_fabric
from placer.laboratory.generate.jobs import draw_jobs
from placer.laboratory.generate.options import GangMix, option
from placer.laboratory.generate.random_source import RandomSource
from placer.laboratory.generate.weigh import weigh

__all__ = ["ClosOptions", "clos"]

#: What a running service asks for: milli-cores and MiB. It needs no GPU.
SERVICE = (100, 256)
#: Share of the waiting jobs that the capabilities of the queues have room for.
WITHIN_CAPABILITY = 0.8


@dataclass(frozen=True, kw_only=True)
class ClosOptions(GangMix):
    """Options of ``clos``; those of :class:`~placer.laboratory.generate.options.GangMix` besides."""

    spines: int = option(4, "number of spines", 1, 100_000)
    load: float = option(0.5, "share of the GPUs that running jobs hold")
    queue: float = option(1.0, "GPUs that the queue asks for, as a share of those that are free", 0, 100)
    gangs: int = option(0, "number of gangs in the queue, whatever they ask for; 0: as many as --queue says", 0, 10**6)
    services: int = option(0, "running pods without GPUs on every node", 0, 1000)

    def check(self) -> None:
        """Check what concerns more than one option."""
        super().check()
        nodes = self.nodes
        self.demand(
            nodes <= 100_000, "spines", f"{self.spines:,}, which makes {nodes:,} nodes", "at most 100,000 nodes"
        )

    @property
    def nodes(self) -> int:
        """Number of nodes."""
        return self.leaf_size * self.leaves_per_spine * self.spines


def clos(options: ClosOptions) -> Generated:
    """Make a cluster with running jobs and a queue.

    Running jobs keep all rules. The queue is of the same kind, drawn up to its share of the free GPUs; whether it
    fits is open.

    Parameters
    ----------
    options
        See there.

    Returns
    -------
    Generated
        Without a planted placement.
    """
    mix = options
    fabric = build_fabric(mix.nodes, mix, RandomSource(mix.seed, "fabric"))
    cluster = name_cluster(fabric, RandomSource(mix.seed, "names of nodes"))
    running = _running(fabric, mix)
    waiting = _waiting(fabric, mix, mix.nodes * mix.gpus - sum(gang.gpus for gang in running))
    names = job_names(len(running) + len(waiting), RandomSource(mix.seed, "names of jobs"))
    shares = [1.0] * len(running) + [0.0] * len(waiting)
    jobs = draw_jobs([*running, *waiting], names, mix, RandomSource(mix.seed, "jobs"), shares)
    within = jobs[: len(running) + math.ceil(WITHIN_CAPABILITY * len(waiting))]
    documents, _ = write_jobs(jobs, within, cluster, mix, RandomSource(mix.seed, "pods"))
    spare = (SERVICE[0] * mix.services, SERVICE[1] * mix.services, mix.services)
    services = list(_services(cluster, mix.services))
    summary = {
        "nodes": mix.nodes,
        "gpus": mix.nodes * mix.gpus,
        "gpusRunning": sum(gang.gpus for gang in running),
        "gpusPending": sum(gang.gpus for gang in waiting),
        "jobsPending": len(waiting),
        "podsRunning": sum(gang.pods for gang in running) + len(services),
        "podsPending": sum(gang.pods for gang in waiting),
    }
    return Generated([*cluster.documents(mix, spare), *documents, *services], None, summary)


def _running(fabric: Fabric, mix: ClosOptions) -> list[CarvedGang]:
    """Gangs of a full cluster, by chance, as long as the load is not exceeded."""
    budget, chosen = mix.load * mix.nodes * mix.gpus, list[CarvedGang]()
    source = RandomSource(mix.seed, "running gangs")
    for gang in source.shuffled(weigh(carve(fabric, mix, source), fabric, mix, source)) if mix.load else []:
        if gang.gpus <= budget:
            chosen.append(gang)
            budget -= gang.gpus
    return chosen


def _waiting(fabric: Fabric, mix: ClosOptions, free: int) -> list[CarvedGang]:
    """Gangs of other full clusters, by chance: so many, or until the wanted GPUs are reached."""
    source, chosen, budget = RandomSource(mix.seed, "queue"), list[CarvedGang](), mix.queue * free
    for gang in _stream(fabric, mix, source) if mix.gangs or budget > 0 else ():
        chosen.append(gang)
        budget -= gang.gpus
        if len(chosen) == mix.gangs if mix.gangs else budget <= 0:
            break
    return chosen


def _stream(fabric: Fabric, mix: ClosOptions, source: RandomSource) -> Iterator[CarvedGang]:
    """Gangs without end; where sizes are asked for, only those that have them."""
    least, most = mix.gang_pods or (1, mix.nodes * mix.gpus)
    while True:
        cut = weigh(carve(fabric, mix, source), fabric, mix, source)
        gangs = [gang for gang in source.shuffled(cut) if least <= gang.pods <= most]
        mix.demand(bool(gangs), "gang_pods", f"{least},{most}", "sizes that the fabric can hold")
        yield from gangs


def _services(cluster: Cluster, number: int) -> Iterator[dict[str, Any]]:
    """Pods of a service on every node."""
    for name in sorted(cluster.nodes):
        for index in range(number):
            room = {"cpu": f"{SERVICE[0]}m", "memory": f"{SERVICE[1]}Mi"}
            yield {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {"name": f"service-{name}-{index}", "namespace": "services"},
                "spec": {
                    "nodeName": name,
                    "containers": [
                        {"name": "service", "image": "example.com/service:1", "resources": {"requests": room}}
                    ],
                },
                "status": {"phase": "Running"},
            }
