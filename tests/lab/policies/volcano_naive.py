"""Volcano's allocate once more, by the letter and without any short cut, over every way in which ties can fall.

One resource (cpu), the plug-ins priority, gang, predicates, binpack and network-topology-aware; no pods that leave, no
queues, no pods without requests. Everything is looked up anew each time; nothing is shared with
``placer/lab/policies``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from placer.problem import Group, Instance, Key, NetworkTopology, Pod

__all__ = ["PLUGINS", "Bound", "all_ways"]

PLUGINS = ("priority", "gang", "predicates", "binpack", "network-topology-aware")
TOP = "<top>"

#: Chooses one of so many.
Choose = Callable[[int], int]
#: Names of pods that were bound, with their nodes.
Bound = frozenset[tuple[str, str]]


def all_ways(instance: Instance, most: int) -> set[Bound] | None:
    """What is bound, over all ties; None where they can fall in more than ``most`` ways."""
    found, ahead = set[Bound](), list[int]()
    for _ in range(most):
        taken = list[tuple[int, int]]()

        def choose(options: int, taken: list[tuple[int, int]] = taken, ahead: list[int] = ahead) -> int:
            choice = ahead[len(taken)] if len(taken) < len(ahead) else 0
            taken.append((choice, options))
            return choice

        found.add(_Run(instance, choose).run())
        while taken and taken[-1][0] + 1 == taken[-1][1]:
            taken.pop()
        if not taken:
            return found
        ahead = [choice for choice, _ in taken[:-1]] + [taken[-1][0] + 1]
    return None


#: Who is where, the anchor of each subjob, and the pods of each that were not tried yet.
_State = tuple[dict[Key, str], dict[str, str | None], dict[str, list[Pod]]]


@dataclass(eq=False)
class Part:
    """A subjob."""

    uid: str
    size: int
    policy: int | None
    topology: bool
    cap: int | None
    number: int
    pods: list[Pod]
    anchor: str | None = None


@dataclass(eq=False)
class Whole:
    """A job; ``sheet`` has the pods of each subjob that were not tried yet."""

    group: Group
    parts: list[Part]
    cap: int | None
    anchor: str | None = None
    sheet: dict[str, list[Pod]] = field(default_factory=dict)
    required: set[str] = field(default_factory=set)
    misfits: dict[str, set[str]] = field(default_factory=dict)


class _Run:
    def __init__(self, instance: Instance, choose: Choose) -> None:
        self.instance, self.choose = instance, choose
        self.room = {name: node.allocatable["cpu"] for name, node in instance.nodes.items()}
        self.slots = {name: node.allocatable["pods"] for name, node in instance.nodes.items()}
        self.where = {pod.key: pod.node for pod in instance.pods.values() if pod.node is not None}
        domains = instance.topology.hyper_nodes
        self.tier = {name: each.tier for name, each in domains.items()}
        self.tier[TOP] = max(self.tier.values(), default=0) + 1
        self.above = {name: each.parent or TOP for name, each in domains.items()}
        self.opening = {domain: self._free(domain) for domain in self.tier}

    # ------------------------------------------------------------------------------------------------------- the tree

    def _line(self, domain: str) -> list[str]:
        return [domain] if domain == TOP else [domain, *self._line(self.above[domain])]

    def _within(self, node: str) -> list[str]:
        return [*self.instance.topology.path(node), TOP]

    def _nodes(self, domain: str) -> list[str]:
        return [node for node in self.room if domain in self._within(node)]

    def _common(self, one: str | None, other: str | None) -> str | None:
        if one is None or other is None:
            return one or other
        return next(each for each in self._line(one) if each in self._line(other))

    def _taken(self, node: str) -> tuple[int, int]:
        pods = [self.instance.pods[key] for key, place in self.where.items() if place == node]
        return sum(pod.requests["cpu"] for pod in pods), len(pods)

    def _free(self, domain: str) -> tuple[int, int]:
        nodes = self._nodes(domain)
        cpu, pods = (sum(self._taken(node)[index] for node in nodes) for index in (0, 1))
        return sum(self.room[node] for node in nodes) - cpu, sum(self.slots[node] for node in nodes) - pods

    # ------------------------------------------------------------------------------------------------------- the gang

    def _placed(self, pods: Iterable[Pod]) -> list[Pod]:
        return [pod for pod in pods if pod.key in self.where]

    def _ready(self, job: Whole) -> bool:
        placed = self._placed(pod for part in job.parts for pod in part.pods)
        roles = Counter(pod.role for pod in placed)
        if any(roles[role] < least for role, least in job.group.min_task_member.items()):
            return False
        for index, policy in enumerate(job.group.policies):
            ready = [part for part in job.parts if part.policy == index and len(self._placed(part.pods)) >= part.size]
            if len(ready) < policy.min_sub_groups:
                return False
        return len(placed) >= job.group.min_member

    def _part_ready(self, job: Whole, part: Part) -> bool:
        return len(self._placed(part.pods)) >= part.size if job.group.policies else self._ready(job)

    def _valid(self, job: Whole) -> bool:
        pods = [pod for part in job.parts for pod in part.pods]
        roles = Counter(pod.role for pod in pods)
        return (
            len(pods) >= job.group.min_member
            and all(roles[role] >= least for role, least in job.group.min_task_member.items())
            and all(
                sum(part.policy == index for part in job.parts) >= policy.min_sub_groups
                for index, policy in enumerate(job.group.policies)
            )
        )

    def _goes_on(self, job: Whole, part: Part) -> bool:
        pods = [pod for each in job.parts for pod in each.pods]
        if job.group.min_member == len(pods) or part.size >= len(part.pods):
            return False
        if job.group.policies:
            return True
        roles = Counter(pod.role for pod in self._placed(pods))
        return all(roles[role] >= job.group.min_task_member.get(role, 0) for role in job.misfits[part.uid])

    # ------------------------------------------------------------------------------------------------------- the jobs

    def _job(self, group: Group) -> Whole:
        asked = group.topology
        cap = self._cap(asked, None)
        parts = []
        for index, each in enumerate(group.sub_groups):
            policy = group.policies[each.policy]
            value = each.name.rpartition("-")[2]
            pods = [self.instance.pods[key] for key in (*each.pending, *each.bound)]
            limit, number = self._cap(policy.topology, cap), int(value) if value.isdecimal() else 0
            uid = f"{group.key.name}/{each.name}"
            assert all(pod.sub_group == index for pod in pods)
            parts.append(Part(uid, policy.size, each.policy, policy.topology is not None, limit, number, pods))
        rest = [self.instance.pods[key] for key in (*group.pending, *group.bound)]
        rest = [pod for pod in rest if pod.sub_group is None]
        if rest:
            size = 1 if group.policies else group.min_member
            parts.append(Part(group.key.name, size, None, asked is not None, cap, 0, rest))
        job = Whole(group, parts, cap)
        for part in parts:
            nodes = [node for pod in part.pods if (node := self.where.get(pod.key)) is not None]
            if part.topology and nodes:
                holding = [each for each in self.tier if set(nodes) <= set(self._nodes(each))]
                part.anchor = min(holding, key=self.tier.__getitem__)
            job.anchor = self._common(job.anchor, part.anchor)
            waiting = [pod for pod in part.pods if pod.key not in self.where]
            if waiting:
                job.sheet[part.uid] = sorted(waiting, key=lambda pod: (-pod.priority, pod.created, pod.name))
        for index, policy in enumerate(group.policies):
            mine = [part for part in parts if part.policy == index]
            missing = policy.min_sub_groups - sum(self._part_ready(job, part) for part in mine)
            unready = sorted((p for p in mine if not self._part_ready(job, p)), key=lambda p: self._turn(job, p))
            job.required |= {part.uid for part in unready[: max(0, missing)]}
        return job

    def _cap(self, asked: NetworkTopology | None, job: int | None) -> int | None:
        if asked is None:
            return None
        if asked.hard:
            return asked.highest_tier
        return self.tier[TOP] if job is None else job

    def _turn(self, job: Whole, part: Part) -> tuple[bool, int, bool, int, str]:
        priority = max(pod.priority for pod in part.pods)
        return part.uid not in job.required, -priority, self._part_ready(job, part), part.number, part.uid

    def run(self) -> Bound:
        """Bind; the pods that are, and where."""
        before = set(self.where)
        jobs = [self._job(group) for group in self.instance.groups.values() if group.pending]
        jobs = [job for job in jobs if self._valid(job)]
        while jobs:
            job = min(jobs, key=lambda job: (-job.group.priority, self._ready(job), job.group.created, job.group.key))
            jobs.remove(job)
            if job.group.policies or any(part.cap is not None for part in job.parts) or job.cap is not None:
                works = self._for_job(job)
            else:
                (part,) = job.parts
                job.misfits.setdefault(part.uid, set())
                works = self._for_pods(job, part, job.sheet[part.uid], TOP) is not None
            job.sheet = {uid: pods for uid, pods in job.sheet.items() if pods}
            if works and self._ready(job) and job.sheet:
                jobs.append(job)
        return frozenset((key.name, node) for key, node in self.where.items() if key not in before)

    # ------------------------------------------------------------------------------------------------------- the tries

    def _gradients(self, cap: int | None, anchor: str | None, within: str, pods: Sequence[Pod]) -> list[list[str]]:
        if cap is None:
            return [[within]]
        root = within
        if anchor is not None:
            if self.tier[anchor] > cap:
                return []
            root = [each for each in self._line(anchor) if self.tier[each] <= cap][-1]
            if within in self._line(root):
                pass
            elif root in self._line(within):
                root = within
            else:
                return []
        cpu = sum(pod.requests["cpu"] for pod in pods)
        found = [
            each
            for each in self.tier
            if root in self._line(each)
            and self.tier[each] <= cap
            and (anchor is not None or (cpu <= self.opening[each][0] and len(pods) <= self.opening[each][1]))
        ]
        tiers = sorted({self.tier[each] for each in found})
        return [[each for each in found if self.tier[each] == tier] for tier in tiers]

    def _best(self, scores: Sequence[float]) -> int:
        ties = [index for index, score in enumerate(scores) if score == max(scores)]
        return ties[self.choose(len(ties)) if len(ties) > 1 else 0]

    def _for_job(self, job: Whole) -> bool:
        for gradient in self._gradients(job.cap, job.anchor, TOP, ()):
            solutions = []
            for domain in gradient:
                state = self._state(job)
                job.misfits = {part.uid: set() for part in job.parts}
                job.sheet = {uid: list(pods) for uid, pods in job.sheet.items()}
                score = self._in_domain(job, domain)
                if score is not None and self._ready(job) and self.where != state[0]:
                    solutions.append((score, domain, self._state(job)))
                self._reset(job, state)
            if solutions:
                _, domain, chosen = solutions[self._best([each[0] for each in solutions])]
                self._reset(job, chosen)
                job.anchor = self._common(job.anchor, domain)
                return True
        return False

    def _state(self, job: Whole) -> _State:
        return dict(self.where), {part.uid: part.anchor for part in job.parts}, dict(job.sheet)

    def _reset(self, job: Whole, state: _State) -> None:
        self.where, anchors, job.sheet = state
        for part in job.parts:
            part.anchor = anchors[part.uid]

    def _in_domain(self, job: Whole, domain: str) -> float | None:
        """Subjob after subjob; the sum of their scores, None where none could be placed."""
        total, left = None, [part for part in job.parts if part.uid in job.sheet]
        while left:
            part = min(left, key=lambda part: self._turn(job, part))
            left.remove(part)
            score = self._for_part(job, part, domain)
            if score is None:
                del job.sheet[part.uid]
                continue
            total = (total or 0.0) + score
            if job.sheet[part.uid]:
                left.append(part)
            if self._ready(job):
                break
        return total

    def _for_part(self, job: Whole, part: Part, within: str) -> float | None:
        waiting = [pod for pod in part.pods if pod.key not in self.where]
        for gradient in self._gradients(part.cap, part.anchor, within, waiting):
            tries = []
            for domain in gradient:
                before, pods = dict(self.where), list(job.sheet[part.uid])
                job.misfits[part.uid] = set()
                if self._for_pods(job, part, pods, domain):
                    tries.append((domain, self.where, pods))
                self.where = before
            if tries:
                scores = self._fullness_of(part, [domain for domain, _, _ in tries])
                best = self._best(scores)
                domain, self.where, job.sheet[part.uid] = tries[best]
                part.anchor = self._common(part.anchor, domain)
                return scores[best]
        return None

    def _for_pods(self, job: Whole, part: Part, pods: list[Pod], domain: str) -> bool | None:
        """Pods one by one off the list; whether any was placed, None where the subjob is not ready then."""
        before, anchor, placed = dict(self.where), part.anchor, False
        while pods and self._nodes(domain):
            pod = pods.pop(0)
            if pod.role and pod.role in job.misfits[part.uid]:
                continue
            nodes = [node for node in self._nodes(domain) if self._fits(pod, node)]
            if not nodes:
                job.misfits[part.uid].add(pod.role)
                if self._goes_on(job, part):
                    continue
                break
            scores = self._scores(part, anchor, pod, nodes) if len(nodes) > 1 else [0.0]
            node = nodes[self._best(scores)]
            self.where = {**self.where, pod.key: node}
            placed = True
            if part.topology:
                anchor = self._common(anchor, self._leaf(node)) or anchor
            if self._part_ready(job, part):
                break
        if self._part_ready(job, part):
            return placed
        self.where = before
        return None

    def _fits(self, pod: Pod, node: str) -> bool:
        cpu, pods = self._taken(node)
        return cpu + pod.requests["cpu"] <= self.room[node] and pods < self.slots[node]

    # ------------------------------------------------------------------------------------------------------ the scores

    def _leaf(self, node: str) -> str | None:
        lowest = min(self.tier.values())
        return next((each for each in self._within(node) if self.tier[each] == lowest), None)

    def _fullness(self, domain: str, cpu: int) -> float:
        alloc = sum(self.room[node] for node in self._nodes(domain))
        after = cpu + sum(self._taken(node)[0] for node in self._nodes(domain))
        return after / alloc if cpu and after <= alloc else 0.0

    def _fullness_of(self, part: Part, domains: Sequence[str]) -> list[float]:
        cpu = sum(pod.requests["cpu"] for pod in part.pods)
        scores = [self._fullness(domain, cpu) for domain in domains]
        best = max(scores)
        if scores.count(best) > 1:
            for index, domain in enumerate(domains):
                if scores[index] == best:
                    inside = sum(self.where[pod.key] in self._nodes(domain) for pod in self._placed(part.pods))
                    scores[index] += inside / len(part.pods)
        return [100.0 * score for score in scores]

    def _scores(self, part: Part, anchor: str | None, pod: Pod, nodes: Sequence[str]) -> list[float]:
        cpu = pod.requests["cpu"]
        packed = [100.0 * ((self._taken(node)[0] + cpu) / self.room[node]) for node in nodes]
        if part.topology:
            near = list(self._near(part, anchor, nodes)) if anchor is not None else [0.0] * len(nodes)
        else:
            near = [self._normal(cpu, node) for node in nodes]
        return [one + 100.0 * other for one, other in zip(packed, near, strict=True)]

    def _near(self, part: Part, anchor: str, nodes: Sequence[str]) -> Iterator[float]:
        highest, lowest = self.tier[TOP], min(self.tier.values())
        scores = []
        for node in nodes:
            leaf = self._leaf(node)
            common = self._common(leaf, anchor)
            if leaf is None:
                scores.append(0.0)
            elif leaf == anchor or highest == lowest:
                scores.append(1.0)
            else:
                assert common is not None
                scores.append((highest - self.tier[common]) / (highest - lowest))
        best = max(scores)
        tied = scores.count(best) > 1
        for node, score in zip(nodes, scores, strict=True):
            leaf = self._leaf(node)
            there = [pod for pod in self._placed(part.pods) if leaf and self._leaf(self.where[pod.key]) == leaf]
            yield score + len(there) / len(part.pods) if tied and score == best else score

    def _normal(self, cpu: int, node: str) -> float:
        total = weights = 0.0
        for tier in range(min(self.tier.values()), self.tier[TOP] + 1):
            fading = 0.8 ** (tier - 1)
            mine = next((each for each in self._within(node) if self.tier[each] == tier), None)
            total += fading * (1.0 if mine is None else self._fullness(mine, cpu))
            weights += fading
        return total / weights
