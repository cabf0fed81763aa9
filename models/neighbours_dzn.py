"""Pod affinity, anti-affinity, spread and units as data of ``placement.mzn``: every pod looked at by every selector."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from minizinc_text import names, numbers, sets, table

from placer.problem import Instance, Pod, PodState
from placer.problem.neighbours import ChildJob, PodSelector

__all__ = ["neighbour_lines"]


def neighbour_lines(instance: Instance, pods: Sequence[Pod], node: Mapping[str, int]) -> Iterator[str]:
    """Write what pending pods and those with a node ask of each other.

    Parameters
    ----------
    instance
        The instance.
    pods
        Its pending pods, in the order of the model.
    node
        Node name to number; nodes that are not there come last.
    """
    there = len(instance.nodes)
    others = [
        pod for pod in instance.pods.values() if pod.state.on_node and node.get(pod.node or "", there + 1) <= there
    ]
    writer = _Neighbours(instance, pods, others)
    yield from writer.keys()
    yield f"others = {len(others)};"
    yield names("other_name", [pod.key for pod in others])
    yield numbers("other_node", (node[pod.node or ""] for pod in others))
    yield numbers("other_leaves", (pod.state is PodState.TERMINATING for pod in others))
    yield from writer.affinities()
    yield from writer.repulsions()
    yield from writer.spreads()
    yield from writer.units()
    yield from writer.child_jobs()


class _Neighbours:
    """Terms and constraints, each once."""

    def __init__(self, instance: Instance, pods: Sequence[Pod], others: Sequence[Pod]) -> None:
        self.instance, self.pods, self.everybody = instance, pods, (*pods, *others)
        asked = [pod.neighbours for pod in pods]
        running = (pod.neighbours.affinity for pod in others)
        self.terms = list(dict.fromkeys(terms for terms in (*(each.affinity for each in asked), *running) if terms))
        self.apart = list(dict.fromkeys(term for pod in self.everybody for term in pod.neighbours.anti_affinity))
        self.limits = list(dict.fromkeys(limit for each in asked for limit in each.spread))
        labels = [term.topology_key for several in self.terms for term in several]
        labels += [term.topology_key for term in self.apart] + [limit.topology_key for limit in self.limits]
        self.together = list(dict.fromkeys(unit for pod in self.everybody for unit in pod.neighbours.units))
        labels += [unit.topology_key for unit in self.together]
        labels += [job.topology_key for pod in self.everybody for job in pod.neighbours.jobs]
        self.key = {label: number for number, label in enumerate(dict.fromkeys(labels), 1)}

    def keys(self) -> Iterator[str]:
        """Topology keys, and the domain of every node."""
        nodes = self.instance.nodes.values()
        rows = []
        for label in self.key:
            values = {
                value: number
                for number, value in enumerate(
                    sorted({each.labels[label] for each in nodes if label in each.labels}), 1
                )
            }
            rows.append([values.get(each.labels.get(label, ""), 0) if label in each.labels else 0 for each in nodes])
        yield f"keys = {len(self.key)};"
        yield names("key_name", self.key)
        yield table("key_domain", rows, self.key, width=len(self.instance.nodes))

    def _matching(self, selectors: Iterable[PodSelector]) -> list[int]:
        wanted = list(selectors)
        known = self.instance.namespaces
        return [
            number for number, pod in enumerate(self.everybody, 1) if all(each.matches(pod, known) for each in wanted)
        ]

    def affinities(self) -> Iterator[str]:
        """Sets of terms of pod affinity."""
        yield f"affinities = {len(self.terms)};"
        yield sets("affinity_keys", (sorted({self.key[term.topology_key] for term in terms}) for terms in self.terms))
        yield sets(
            "affinity_owners",
            (
                [number for number, pod in enumerate(self.everybody, 1) if pod.neighbours.affinity == terms]
                for terms in self.terms
            ),
        )
        yield sets("affinity_matches", (self._matching(term.pods for term in terms) for terms in self.terms))

    def repulsions(self) -> Iterator[str]:
        """Terms of pod anti-affinity."""
        yield f"repulsions = {len(self.apart)};"
        yield numbers("repulsion_key", (self.key[term.topology_key] for term in self.apart))
        yield sets(
            "repulsion_owners",
            (
                [number for number, pod in enumerate(self.everybody, 1) if term in pod.neighbours.anti_affinity]
                for term in self.apart
            ),
        )
        yield sets("repulsion_matches", (self._matching([term.pods]) for term in self.apart))

    def spreads(self) -> Iterator[str]:
        """Spread constraints that forbid."""
        nodes = list(enumerate(self.instance.nodes.values(), 1))
        yield f"spreads = {len(self.limits)};"
        yield numbers("spread_key", (self.key[limit.topology_key] for limit in self.limits))
        yield numbers("max_skew", (limit.max_skew for limit in self.limits))
        yield numbers("min_domains", (limit.min_domains for limit in self.limits))
        yield sets(
            "spread_counted", ([number for number, each in nodes if limit.counts(each)] for limit in self.limits)
        )
        yield sets(
            "spread_owners",
            (
                [number for number, pod in enumerate(self.pods, 1) if limit in pod.neighbours.spread]
                for limit in self.limits
            ),
        )
        yield sets("spread_matches", (self._matching([limit.pods]) for limit in self.limits))

    def units(self) -> Iterator[str]:
        """Units, each in one domain."""
        lost = {
            unit
            for pod in self.instance.pods.values()
            if pod.state is PodState.BOUND and pod.node not in self.instance.nodes
            for unit in pod.neighbours.units
        }
        yield f"units = {len(self.together)};"
        yield names("unit_name", [unit.name for unit in self.together])
        yield numbers("unit_key", (self.key[unit.topology_key] for unit in self.together))
        yield numbers("unit_exclusive", (unit.exclusive for unit in self.together))
        yield numbers("unit_lost", (unit in lost for unit in self.together))
        yield sets(
            "unit_pods",
            (
                [number for number, pod in enumerate(self.everybody, 1) if unit in pod.neighbours.units]
                for unit in self.together
            ),
        )

    def child_jobs(self) -> Iterator[str]:
        """Per topology key the pods of Jobs of JobSets that are exclusive in it, and those of other Jobs."""
        for name, exclusive in (("exclusive_job_pods", True), ("other_job_pods", False)):
            yield sets(
                name,
                (
                    [n for n, pod in enumerate(self.everybody, 1) if ChildJob(key, exclusive) in pod.neighbours.jobs]
                    for key in self.key
                ),
            )
