"""Seeded tiny instances that together use every feature the rules know, small enough to try everything.

Each is at most 9 pending pods on at most 6 nodes; of :func:`tiny_network`, which lays a network and AppGroups over the
same, at most 8 pods. ``tags`` names the features in use, so that a test can ask for instances of a kind and count them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from random import Random

from placer.problem import Dependency, GroupKey, Instance, Key, NetworkTopology, PodState, Policy, SubGroupPolicy
from placer.problem.communication import REGION_LABEL, ZONE_LABEL
from placer.problem.instance import LEVELS, NO_TIER
from tests.world import COSCHEDULING, GPU, VOLCANO, World, hard, port, soft

#: Most pending pods by number of nodes, so that everything can be tried.
MOST_PODS = {3: 9, 4: 8, 5: 7, 6: 6}
#: The same where pods of one group are of several workloads, and so seldom equal.
MOST_CALLING_PODS = {3: 8, 4: 7, 5: 6}
#: Pods of which many have to wait, where nothing is tried by brute force.
MOST_CROWDED_PODS = {4: 24, 5: 28, 6: 32}


@dataclass(frozen=True)
class Tiny:
    """An instance, what it uses, and the seed that makes it again."""

    seed: int
    instance: Instance
    tags: frozenset[str]


def tiny(seed: int) -> Tiny:
    """Make the instance of a seed."""
    maker = TinyMaker(Random(f"tiny {seed}"), MOST_PODS)
    return Tiny(seed, maker.make(), frozenset(maker.tags))


def tiny_network(seed: int) -> Tiny:
    """Make the instance of a seed with areas, links and AppGroups; seeds have nothing to do with those of ``tiny``."""
    maker = TinyNetworkMaker(Random(f"tiny network {seed}"), MOST_CALLING_PODS)
    return Tiny(seed, maker.make(), frozenset(maker.tags))


def crowded(seed: int) -> Tiny:
    """Like :func:`tiny` with more pods than can be placed, and more than brute force bears."""
    maker = TinyMaker(Random(f"crowded {seed}"), MOST_CROWDED_PODS, most_gangs=9)
    return Tiny(seed, maker.make(), frozenset(maker.tags))


def crowded_network(seed: int) -> Tiny:
    """Like :func:`tiny_network`, crowded."""
    maker = TinyNetworkMaker(Random(f"crowded network {seed}"), MOST_CROWDED_PODS, most_gangs=9)
    return Tiny(seed, maker.make(), frozenset(maker.tags))


class TinyMaker:
    """One instance in the making; every chance comes from ``random``."""

    def __init__(self, random: Random, most_pods: Mapping[int, int], most_gangs: int = 3) -> None:
        self.random, self.most_gangs = random, most_gangs
        self.tags: set[str] = set()
        self.world = World(self._policy())
        self.size = random.randint(min(most_pods), max(most_pods))
        self.left = random.randint(4, most_pods[self.size])
        self.count = 0

    def make(self) -> Instance:
        """Cluster first, then what runs there, then who waits."""
        self._nodes()
        self._tree()
        self._queues()
        self.strangers()
        for _ in range(self.random.randint(1, self.most_gangs)):
            if self.left > 0:
                self.gang()
        while self.left > 0 and self.chance(0.5):
            self._alone()
        return self.world.instance()

    def chance(self, probability: float, tag: str = "") -> bool:
        """Toss a coin; where it says yes the instance has the tag."""
        yes = self.random.random() < probability
        if yes and tag:
            self.tags.add(tag)
        return yes

    def name(self) -> str:
        """A name whose order is not the order of making."""
        self.count += 1
        return f"{self.random.choice('abcxyz')}{self.count}"

    def _policy(self) -> Policy:
        levels: tuple[str, ...] = LEVELS
        if self.chance(0.15, "levels"):
            levels = self.random.choice(
                [
                    ("packing", "placed", "locality"),
                    ("placed", "packing", "locality"),
                    ("locality", "placed"),
                    ("placed",),
                    ("placed", "packing"),
                ]
            )
        weights = {}
        if self.chance(0.1, "resourceWeights"):
            weights = {self.random.choice([GPU, "cpu"]): Fraction(self.random.choice(["1", "2.5", "0.1"]))}
        off = frozenset({"C11"}) if self.chance(0.05, "ruleOff") else frozenset[str]()
        return Policy(
            levels=levels,
            resource_weights=weights,
            rules_off=off,
            locality_all=self.chance(0.07, "localityAll"),
        )

    def _nodes(self) -> None:
        mixed = self.chance(0.4, "unequalNodes")
        size = self.random.choice([2, 2, 3, 4])
        for index in range(self.size):
            self.world.node(
                f"n{index}",
                self.random.randint(1, 4) if mixed else size,
                cpu=self.random.choice([1000, 2000, 3000]) if mixed else 2000,
                pods=2 if self.chance(0.1, "podsLimit") else 110,
                labels={"disk": "ssd"} if self.chance(0.3) else {},
                taints=["gpu"] if self.chance(0.08, "taint") else [],
                unschedulable=self.chance(0.03, "unschedulable"),
                ready=not self.chance(0.03, "notReady"),
            )

    def _tree(self) -> None:
        nodes = list(self.world.node_list)
        shape = self.random.choice(["none", "leaves", "leaves", "spines", "spines", "mixed", "zero"])
        self.tags.add(f"tree:{shape}")
        if shape == "none":
            return
        if self.chance(0.25, "outsideNode"):
            nodes.pop(self.random.randrange(len(nodes)))
        cut = self.random.randint(1, max(1, len(nodes) - 1))
        halves = [half for half in (nodes[:cut], nodes[cut:]) if half]
        low = 0 if shape == "zero" else 1
        leaves = [self.world.hyper(f"leaf{i}", low, " ".join(half)) for i, half in enumerate(halves)]
        if shape in ("spines", "zero"):
            self.world.hyper("spine", low + self.random.randint(1, 2), " ".join(leaves))
        if shape == "mixed":  # a HyperNode with both kinds of members, and one that lists a node of its child again
            self.world.hyper("spine", 3, f"{leaves[0]} {' '.join(nodes[cut:])} {nodes[0]}")
            self.world.domains.pop("leaf1", None)

    def _queues(self) -> None:
        if self.chance(0.4, "queue"):
            parent = None
            if self.chance(0.4, "parentQueue"):
                parent = self.world.queue("root", gpu=self.random.randint(1, 5), closed=self.chance(0.1))
            closed = self.chance(0.1, "closedQueue")
            limit = {"gpu": self.random.randint(0, 4)} if self.chance(0.8) else {"cpu": 1000}
            self.world.queue("tight", parent=parent, closed=closed, **limit)
            self.world.queue("wide", parent=parent)

    def queue(self) -> str | None:
        return self.random.choice(["tight", "tight", "wide", "unknown"]) if self.chance(0.7) else None

    def strangers(self) -> None:
        """Pods that hold room and are nobody's of ours."""
        nodes = list(self.world.node_list)
        for state, probability in ((PodState.BOUND, 0.5), (PodState.TERMINATING, 0.15), (PodState.NOMINATED, 0.15)):
            if self.chance(probability, state.value):
                for _ in range(self.random.randint(1, 2)):
                    daemon = state is PodState.BOUND and self.chance(0.3, "daemon")
                    self.world.pod(
                        self.name(),
                        None,
                        0 if daemon else self.random.randint(1, 2),
                        cpu=self.random.choice([0, 500]),
                        queue=self.queue(),
                        ports=[port(80)] if self.chance(0.1, "hostPort") else [],
                        daemon=daemon,
                        state=state,
                        node=self.random.choice(nodes),
                    )
        if self.chance(0.07, "overcommit"):
            self.world.running(self.name(), self.random.choice(nodes), None, 9)

    def _topology(self) -> NetworkTopology | None:
        kind = self.random.choices(
            ["", "hard", "soft", "hardNoLimit", "unknownTier"], [0.35, 0.4, 0.2, 0.03, 0.02], k=1
        )[0]
        self.tags.add(kind or "noTopology")
        made = {"hard": hard(self.random.choice([0, 1, 1, 1, 2, 2, 3])), "soft": soft(), "hardNoLimit": hard()}
        made["unknownTier"] = hard(NO_TIER)
        return made.get(kind)

    def _group_topology(self, coscheduling: bool) -> NetworkTopology | None:
        asked = None if coscheduling else self._topology()
        return soft() if asked is None and self.world.policy.locality_all else asked

    def gang(self) -> GroupKey:
        """A gang that waits, most of the time."""
        size = min(self.left, self.random.randint(1, 4))
        coscheduling = self.chance(0.15, "coscheduling")
        parted = not coscheduling and size > 1 and self.chance(0.45, "subGroups")
        elastic = self.chance(0.4, "elastic")
        policies = self._policies(size) if parted else []
        roles = {}
        if not parted and not coscheduling and size > 1 and self.chance(0.3, "roles"):
            roles = {"worker": self.random.randint(1, size - 1), "master": 1}
        least = self.random.randint(0, size) if elastic or parted else size
        gang = self.world.gang(
            self.name(),
            max(least, sum(roles.values())),
            roles=roles,
            topology=self._group_topology(coscheduling),
            policies=policies,
            queue=self.queue(),
            priority=10 if self.chance(0.25, "priority") else 0,
            invalid="its PodGroup is not there" if self.chance(0.04, "invalid") else None,
            api_group=COSCHEDULING if coscheduling else VOLCANO,
        )
        if not coscheduling and self.chance(0.1, "succeeded"):
            self.world.finished(gang, role="worker", part="0" if policies else None)
        self._members(gang, size, list(roles), len(policies))
        return gang

    def _policies(self, size: int) -> list[SubGroupPolicy]:
        count = 2 if self.chance(0.25, "twoPolicies") else 1
        return [
            SubGroupPolicy(
                f"policy{index}",
                self.random.randint(1, max(1, min(3, size))),
                1 if self.chance(0.5, "minSubGroups") else 0,
                self._topology(),
            )
            for index in range(count)
        ]

    def _members(self, gang: GroupKey, size: int, roles: Sequence[str], policies: int) -> None:
        """The gang's pods: mostly equal ones, some of them running already."""
        gpu, cpu = self.random.choice([(1, 0), (1, 500), (2, 0), (2, 1000), (0, 1000)])
        runs = self.chance(0.25, "running")
        for index in range(size):
            odd = self.chance(0.15, "unequalPods")
            state, node = PodState.PENDING, None
            if runs and self.chance(0.4):
                state, node = PodState.BOUND, self.random.choice([*self.world.node_list, *self.world.node_list, "gone"])
                if self.chance(0.2, "terminatingMember"):
                    state = PodState.TERMINATING
            self.world.pod(
                self.name(),
                gang,
                1 if odd else gpu,
                cpu=cpu,
                part=f"{index % 2}" if policies and self.chance(0.9) else None,
                policy=self.random.randrange(policies) if policies else 0,
                role=self.random.choice([*roles, "worker"]) if index >= len(roles) else roles[index],
                selector={"disk": "ssd"} if odd and self.chance(0.5, "selector") else {},
                tolerates=["gpu"] if self.chance(0.1, "toleration") else [],
                unsupported=["spec.resourceClaims: devices"] if self.chance(0.05, "unsupported") else [],
                state=state,
                node=node,
            )
            if state is PodState.PENDING:
                self.left -= 1

    def _alone(self) -> None:
        """A pod in no group."""
        nodes = list(self.world.node_list)
        self.tags.add("alone")
        self.world.pod(
            self.name(),
            None,
            self.random.choice([0, 1, 1, 2]),
            cpu=self.random.choice([0, 0, 1000]),
            queue=self.queue(),
            priority=self.random.choice([0, 0, 10]),
            selector={"disk": "ssd"} if self.chance(0.15, "selector") else {},
            not_on=[self.random.choice(nodes)] if self.chance(0.1, "affinity") else [],
            ports=[port(80)] if self.chance(0.3, "hostPort") else [],
            unsupported=["spec.resourceClaims: devices"] if self.chance(0.1, "unsupported") else [],
            daemon=self.chance(0.05, "newDaemon"),
        )
        self.left -= 1


class TinyNetworkMaker(TinyMaker):
    """Lays areas and links over the nodes, and dependencies over the pods, of an instance that is made as ever."""

    def make(self) -> Instance:
        super().make()
        self._areas()
        self._links()
        self._app_groups()
        return self.world.instance()

    def _policy(self) -> Policy:
        policy = super()._policy()
        if self.chance(0.2, "networkLevel"):
            orders = [("networkCost", "placed"), ("placed", "networkCost"), ("placed", "networkCost", "locality")]
            policy = replace(policy, levels=self.random.choice(orders))
        if self.chance(0.25, "majority"):
            policy = replace(policy, network_cost="majority")
        if self.chance(0.05, "networkRuleOff"):
            policy = replace(policy, rules_off=frozenset({self.random.choice(["C8", "C9"])}))
        return policy

    def _areas(self) -> None:
        """Two regions of two zones, as a rule."""
        for name, node in self.world.node_list.items():
            labels = {REGION_LABEL: self.random.choice("rrs"), ZONE_LABEL: self.random.choice("xxyy")}
            if self.chance(0.05, "noRegion"):
                labels = {ZONE_LABEL: "x"}
            elif self.chance(0.08, "noZone"):
                labels.pop(ZONE_LABEL)
            self.world.node_list[name] = replace(node, labels={**node.labels, **labels})

    def _links(self) -> None:
        self.world.links("zone", "x=y", self.random.randint(0, 6), self._capacity())
        self.world.links("region", "r=s", self.random.randint(5, 30), self._capacity())
        if self.chance(0.2, "oneWay"):
            ends = self.random.choice(["zone y>x", "region s>r"]).split()
            self.world.links(ends[0], ends[1], self.random.randint(0, 150), self._capacity())

    def _capacity(self) -> int | None:
        return self.random.choice([0, 5, 10, 20]) if self.chance(0.8, "capacity") else None

    def _app_groups(self) -> None:
        groups = [self._app_group(f"app{index}") for index in range(2 if self.chance(0.3, "twoAppGroups") else 1)]
        for key, pod in self.world.pods.items():
            if self.chance(0.92):
                app_group, workloads = self.random.choice(groups)
                workload = None if self.chance(0.05, "noWorkload") else self.random.choice(workloads)
                self.world.pods[key] = replace(pod, app_group=app_group, workload=workload)

    def _app_group(self, name: str) -> tuple[Key, list[str]]:
        """Two or three workloads and some calls among them."""
        workloads = ["a", "b", "c"][: self.random.randint(2, 3)]
        far = self.chance(0.5, "farCalls")
        pairs = [self.random.sample(workloads, 2) for _ in range(self.random.randint(1, 3))]
        if self.chance(0.15, "callsItself"):
            pairs.append([workloads[0], workloads[0]])
        dependencies = [Dependency(one, other, self._limit(far), self._bandwidth()) for one, other in pairs]
        return self.world.app_group(name, *dependencies), workloads

    def _limit(self, far: bool) -> int:
        return self.random.choice([20, 30, 100] if far else [0, 0, 3, 5, 10])

    def _bandwidth(self) -> int | None:
        return self.random.choice([5, 10, 10, 20, 30]) if self.chance(0.8, "minBandwidth") else None
