"""No text for readers of a Namespace contains a name, a label value or a term of another one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from random import Random

import pytest

from placer.answers.solving import solve
from placer.base.words import NamedThing, NameList, Sentence
from placer.passes.cluster.writing.status_writer import _OthersHidden
from placer.problem import Dependency, GroupKey, Instance, Key, Pod, Requirement
from placer.problem.neighbours import AffinityTerm, PodSelector, SpreadLimit
from tests.tiny import tiny_network
from tests.tiny_neighbours import tiny_neighbours, with_neighbours

#: No word of ours contains any of these.
NAMESPACES = ("qalfaq", "qbravoq", "qcharlieq")
INFRASTRUCTURE = "qinfraq"


def _labels(labels: Mapping[str, str]) -> dict[str, str]:
    """Labels of a node, and once more for the terms of each Namespace."""
    return {**labels, **{f"{each}-{key}": value for each in NAMESPACES for key, value in labels.items()}}


class _Renamed:
    """An instance of one Namespace, handed out to several: whatever belongs to one of them has its name in it."""

    def __init__(self, random: Random, instance: Instance) -> None:
        self.random, self.instance = random, instance
        self.home: dict[object, str] = {}

    def make(self) -> Instance:
        pods = {pod.key: pod for pod in map(self._pod, self.instance.pods.values())}
        keys = {key: self._key(key) for key in self.instance.pods}
        groups = {}
        for key, group in self.instance.groups.items():
            parts = tuple(
                replace(each, pending=tuple(map(keys.__getitem__, each.pending)), bound=self._of(each.bound))
                for each in group.sub_groups
            )
            groups[self._group(key)] = replace(
                group,
                key=self._group(key),
                sub_groups=parts,
                pending=tuple(map(keys.__getitem__, group.pending)),
                bound=self._of(group.bound),
                finished=self._of(group.finished),
            )
        network = self.instance.network
        return replace(
            self.instance,
            pods=dict(sorted(pods.items())),
            groups=dict(sorted(groups.items())),
            nodes={name: replace(each, labels=_labels(each.labels)) for name, each in self.instance.nodes.items()},
            app_groups={
                self._app(key): replace(
                    each,
                    key=self._app(key),
                    workloads=tuple(self._workload(key, name) for name in each.workloads),
                    dependencies=tuple(self._call(key, call) for call in each.dependencies),
                )
                for key, each in self.instance.app_groups.items()
            },
            network=None if network is None else replace(network, topology=Key(INFRASTRUCTURE, f"{INFRASTRUCTURE}-nt")),
            namespaces={},
        )

    def _of(self, keys: tuple[Key, ...]) -> tuple[Key, ...]:
        return tuple(map(self._key, keys))

    def _home(self, thing: object) -> str:
        if thing not in self.home:
            self.home[thing] = self.random.choice(NAMESPACES)
        return self.home[thing]

    def _key(self, key: Key) -> Key:
        pod = self.instance.pods.get(key)
        home = self._home(pod.group or key) if pod is not None else self._home(key)
        return Key(home, f"{home}-{key.name}")

    def _group(self, key: GroupKey) -> GroupKey:
        home = self._home(key)
        return GroupKey(key.api_group, home, f"{home}-{key.name}")

    def _app(self, key: Key) -> Key:
        home = self._home(("app", key))
        return Key(home, f"{home}-{key.name}")

    def _workload(self, app: Key, name: str) -> str:
        return f"{self._app(app).namespace}-{name}"

    def _call(self, app: Key, call: Dependency) -> Dependency:
        return replace(call, origin=self._workload(app, call.origin), destination=self._workload(app, call.destination))

    def _pod(self, pod: Pod) -> Pod:
        key, app = self._key(pod.key), pod.app_group
        asks = pod.neighbours
        return replace(
            pod,
            namespace=key.namespace,
            name=key.name,
            group=None if pod.group is None else self._group(pod.group),
            labels={**pod.labels, f"{key.namespace}-label": f"{key.namespace}-value"},
            neighbours=replace(
                asks,
                affinity=tuple(self._term(key.namespace, each) for each in asks.affinity),
                anti_affinity=tuple(self._term(key.namespace, each) for each in asks.anti_affinity),
                spread=tuple(self._limit(key.namespace, each) for each in asks.spread),
                units=tuple(replace(each, name=f"{key.namespace}-{each.name}") for each in asks.units),
            ),
            app_group=None if app is None else self._app(app),
            workload=None if app is None or pod.workload is None else self._workload(app, pod.workload),
        )

    def _term(self, home: str, term: AffinityTerm) -> AffinityTerm:
        return AffinityTerm(f"{home}-{term.topology_key}", self._selector(home, term.pods, everywhere=True))

    def _limit(self, home: str, limit: SpreadLimit) -> SpreadLimit:
        return replace(limit, pods=self._selector(home, limit.pods, everywhere=False))

    def _selector(self, home: str, selector: PodSelector, *, everywhere: bool) -> PodSelector:
        absent = Requirement(f"{home}-absent", "DoesNotExist", ())
        requirements = None if selector.requirements is None else (*selector.requirements, absent)
        return PodSelector((home,), () if everywhere else None, requirements)


def handed_out(seed: int) -> Instance:
    """A tiny instance of several Namespaces."""
    random = Random(f"namespaces {seed}")
    made = tiny_network(seed).instance if seed % 3 == 0 else tiny_neighbours(seed).instance
    if seed % 6 == 0:
        made, _ = with_neighbours(random, made)
    return _Renamed(random, made).make()


def given_away(key: GroupKey, text: str) -> list[str]:
    return [each for each in (*NAMESPACES, INFRASTRUCTURE) if each != key.namespace and each in text]


def check(seed: int) -> tuple[int, int]:
    """How many reasons of an instance name others to operators, and how many texts there are in all."""
    instance = handed_out(seed)
    reasons = solve(instance, method="greedy").reasons
    hidden = _OthersHidden(instance)
    for key, reason in reasons.items():
        told = reason.told(key.namespace)
        assert not given_away(key, told), f"seed {seed}, {key}: {told}\n{reason.message}"
        assert hidden.told(told, key.namespace) == told  # it knew already
    named = [key for key, reason in reasons.items() if given_away(key, reason.message)]
    return len(named), len(reasons)


def test_no_reason_names_anything_of_another_namespace() -> None:
    found = [check(seed) for seed in range(60)]
    assert sum(named for named, _ in found) > 15
    assert sum(every for _, every in found) > 80


@pytest.mark.exhaustive
@pytest.mark.parametrize("part", range(20))
def test_nor_does_any_of_many(part: int) -> None:
    for seed in range(60 + 50 * part, 110 + 50 * part):
        check(seed)


def test_a_victim_reads_a_uid_of_who_gains() -> None:
    groups = NamedThing("a", "PodGroup a/train", 7, 4, "1-2"), NamedThing("b", "PodGroup b/eval", 9, 2, "3-4")
    text = "evicted so that " + Sentence.of(NameList(groups, 3, "group")) + " are admitted"
    assert str(text) == "evicted so that PodGroup a/train and PodGroup b/eval are admitted"
    others = "2 groups of other Namespaces (6 pods, priority 7 to 9, uid 1-2, 3-4)"
    assert text.told("c") == f"evicted so that {others} are admitted"
    with pytest.raises(TypeError, match="f-string"):
        f"{text}"
