"""Family ``planted``: a full cluster whose queue is known to fit entirely."""

from __future__ import annotations

from dataclasses import dataclass, replace

from placer.laboratory.generate.carving import CarvedGang, carve
from placer.laboratory.generate.cluster import Cluster, Generated, job_names, name_cluster, write_jobs
from placer.laboratory.generate.fabric import Fabric, build_fabric
from placer.laboratory.generate.jobs import GeneratedJob, draw_jobs
from placer.laboratory.generate.options import GangMix, option, options_of
from placer.laboratory.generate.random_source import RandomSource
from placer.laboratory.generate.weigh import weigh

__all__ = ["PlantedOptions", "plant", "planted"]

#: The layout that Volcano's scheduler was timed on: one pod fills a node, everything hard, 5 % of the nodes stay empty.
LIKE_VOLCANO = {
    "leaf_size": 16,
    "leaves_per_spine": 16,
    "fill": 0.949,
    "tier_shares": (0.42, 0.38, 0.2),
    "subgroups": 0.0,
    "soft": 0.0,
}


@dataclass(frozen=True, kw_only=True)
class PlantedOptions(GangMix):
    """Options of ``planted``; those of :class:`~placer.laboratory.generate.options.GangMix` besides."""

    nodes: int = option(64, "number of nodes", 1, 100_000)
    fill: float = option(1.0, "share of the nodes that is full; the others stay empty", 0.01)
    running: float = option(0.0, "share of gangs that run already, where they were planted")
    anchored: float = option(0.0, "share of gangs of which half runs already")
    overfull: float = option(0.0, "jobs beyond the planted ones, as a share of all GPUs", 0, 100)
    like_volcano: bool = option(False, "the layout that Volcano was timed on, for all options left at their defaults")

    def settled(self) -> PlantedOptions:
        """Apply ``like_volcano``: what still has its default takes the value of that layout."""
        if not self.like_volcano:
            return self
        defaults = {each.name: each.default for each in options_of(type(self))}
        left = {name: value for name, value in LIKE_VOLCANO.items() if getattr(self, name) == defaults[name]}
        return replace(self, **left, like_volcano=False)  # type: ignore[arg-type]


def planted(options: PlantedOptions) -> Generated:
    """Make a full cluster and a queue cut from it.

    Parameters
    ----------
    options
        See there.

    Returns
    -------
    Generated
        See :func:`plant`.
    """
    mix = options.settled()
    fabric = build_fabric(mix.nodes, mix, RandomSource(mix.seed, "fabric"))
    return plant(name_cluster(fabric, RandomSource(mix.seed, "names of nodes")), mix)


def plant(cluster: Cluster, mix: PlantedOptions) -> Generated:
    """Fill a cluster, and make a queue of what it was filled with.

    Every GPU of every full node is in exactly one planted pod, every hard limit and every subgroup is kept by the
    planted placement, and each queue's capability is exactly what its planted jobs ask for. With ``overfull`` there
    are more jobs than fit; the planted placement then leaves these out (and where priorities differ it need not be
    the best one).

    Parameters
    ----------
    cluster
        Any tree of nodes.
    mix
        The options; those that lay out a cluster say nothing here, but ``nodes`` has to be the number of nodes there
        are.

    Returns
    -------
    Generated
        With the planted placement of all pending pods that are not beyond the full cluster.
    """
    fabric = cluster.fabric
    inside = _weighed(fabric, mix, "planted gangs", mix.fill)
    beyond = _beyond(_weighed(fabric, mix, "gangs beyond", 1.0), mix) if mix.overfull else []
    gangs = [*inside, *beyond]
    names = job_names(len(gangs), RandomSource(mix.seed, "names of jobs"))
    jobs = draw_jobs(gangs, names, mix, RandomSource(mix.seed, "jobs"), _running(len(inside), len(beyond), mix))
    documents, cut = write_jobs(jobs, jobs[: len(inside)], cluster, mix, RandomSource(mix.seed, "pods"))
    return Generated([*cluster.documents(mix), *documents], cut, _summary(mix, jobs, len(inside), len(cut)))


def _weighed(fabric: Fabric, mix: PlantedOptions, purpose: str, fill: float) -> list[CarvedGang]:
    source = RandomSource(mix.seed, purpose)
    return weigh(carve(fabric, mix, source, fill), fabric, mix, source)


def _beyond(gangs: list[CarvedGang], mix: PlantedOptions) -> list[CarvedGang]:
    """Gangs up to the wanted number of GPUs, from a cluster of the same kind; again from the start where one is not
    enough.
    """
    wanted, found = mix.overfull * mix.nodes * mix.gpus, list[CarvedGang]()
    queue = RandomSource(mix.seed, "choice beyond").shuffled(gangs)
    while sum(gang.gpus for gang in found) < wanted:
        found.append(queue[len(found) % len(queue)])
    return found


def _running(inside: int, beyond: int, mix: PlantedOptions) -> list[float]:
    """Share of each gang that runs: all of it, half of it, nothing; gangs beyond the cluster never run."""
    source = RandomSource(mix.seed, "running")
    shares = [1.0 if source.chance(mix.running) else 0.5 if source.chance(mix.anchored) else 0.0 for _ in range(inside)]
    return shares + [0.0] * beyond


def _summary(mix: PlantedOptions, jobs: list[GeneratedJob], inside: int, planted_pods: int) -> dict[str, int]:
    return {
        "nodes": mix.nodes,
        "gpus": mix.nodes * mix.gpus,
        "gpusPlanted": sum(job.gang.gpus for job in jobs[:inside]),
        "jobs": len(jobs),
        "jobsPlanted": inside,
        "pods": sum(job.gang.pods for job in jobs),
        "podsRunning": sum(job.running for job in jobs),
        "podsPlanted": planted_pods,
    }
