"""What both families write: a cluster with names, and jobs in it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from placer.instance import Key
from placer.laboratory.generate.fabric import TIER_NAMES, Fabric
from placer.laboratory.generate.jobs import NAMESPACE, GeneratedJob, pod_groups, total_requests
from placer.laboratory.generate.objects import Document, hyper_nodes, named, node, priority_class, queue
from placer.laboratory.generate.options import GangMix
from placer.laboratory.generate.random_source import RandomSource

__all__ = ["Cluster", "Generated", "job_names", "name_cluster", "write_jobs"]


@dataclass(frozen=True)
class Generated:
    """An instance that was made.

    Parameters
    ----------
    documents
        Kubernetes objects as plain dicts, ready for JSON or YAML.
    planted
        Pod to node of a placement that is known to keep every rule; None where the family knows none.
    summary
        What was made, name to number, in the order to print.
    """

    documents: list[Document]
    planted: Mapping[Key, str] | None
    summary: Mapping[str, int]


@dataclass(frozen=True)
class Cluster:
    """A fabric and the names of its nodes and domains (by tier); names tell nothing of the layout."""

    fabric: Fabric
    nodes: tuple[str, ...]
    domains: tuple[tuple[str, ...], ...]

    def documents(self, mix: GangMix, spare: tuple[int, int, int] = (0, 0, 0)) -> Iterator[Document]:
        """Make Nodes and HyperNodes, each kind by name.

        Parameters
        ----------
        mix
            The options; GPUs per node are of interest here.
        spare
            Milli-cores, MiB and pods per node that are there besides what GPUs bring.
        """
        fabric = self.fabric
        limit = max(110, mix.gpus + spare[2])
        nodes = [
            node(name, fabric.types[i], mix.gpus, limit, self._above(i), spare[:2]) for i, name in enumerate(self.nodes)
        ]
        yield from sorted(nodes, key=_name)
        yield from sorted(hyper_nodes(fabric, self.nodes, self.domains), key=_name)

    def _above(self, number: int) -> list[str]:
        tiers = range(1, self.fabric.tiers + 1)
        return [self.domains[tier - 1][self.fabric.domain(tier, number)] for tier in tiers]


def _name(document: Document) -> str:
    return str(document["metadata"]["name"])


def name_cluster(fabric: Fabric, source: RandomSource) -> Cluster:
    """Give out names by chance."""
    words = TIER_NAMES[fabric.tiers]
    domains = [_names(word, fabric.domains(tier), source) for tier, word in enumerate(words[:-1], start=1)]
    return Cluster(fabric, _names("node", fabric.nodes, source), (*domains, (words[-1],)))


def _names(word: str, count: int, source: RandomSource) -> tuple[str, ...]:
    return tuple(source.shuffled([named(word, i, count) for i in range(count)]))


def job_names(count: int, source: RandomSource) -> list[str]:
    """Names for ``count`` jobs, by chance."""
    return list(_names("job", count, source))


def write_jobs(
    jobs: Sequence[GeneratedJob], planted: Sequence[GeneratedJob], cluster: Cluster, mix: GangMix, source: RandomSource
) -> tuple[list[Document], dict[Key, str]]:
    """Make PriorityClasses, Queues, PodGroups and Pods, each kind by name.

    Parameters
    ----------
    jobs
        All jobs.
    planted
        Those that are meant to fit together: a queue's capability is exactly what these ask for.
    cluster, mix, source
        Names of nodes, options, all chance.

    Returns
    -------
    tuple
        The documents, and where each pending pod of a planted job was cut from.
    """
    fits = {job.name for job in planted}
    groups: list[Document] = []
    pods: list[Document] = []
    cut: dict[Key, str] = {}
    for job in sorted(jobs, key=lambda job: job.name):
        group, members = pod_groups(job, source)
        groups.append(group)
        for member in members:
            pods.append(member.document)
            target = cluster.nodes[member.node]
            if member.running:
                member.document["spec"]["nodeName"] = target
                member.document["status"] = {"phase": "Running"}
            elif job.name in fits:
                cut[Key(NAMESPACE, member.name)] = target
    return [*_classes(mix), *_queues(planted, mix), *groups, *sorted(pods, key=_name)], dict(sorted(cut.items()))


def _classes(mix: GangMix) -> list[Document]:
    count = mix.priorities if mix.priorities > 1 else 0
    return [priority_class(f"priority-{i + 1}", 100 * (i + 1)) for i in range(count)]


def _queues(jobs: Sequence[GeneratedJob], mix: GangMix) -> list[Document]:
    names = sorted(f"team-{i + 1}" for i in range(mix.queues))
    return [queue(name, total_requests([job for job in jobs if job.queue == name])) for name in names]
