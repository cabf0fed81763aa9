"""Room that is asked for before anybody waits for it: shapes written as gangs, jobs in files.

A shape ``4 x 8 x nvidia.com/gpu=8,cpu=96 @ 1`` is four gangs of eight pods, each in one domain of tier 1; without the
tier, each anywhere. It becomes Kubernetes objects, which are read and judged like anything that waits.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from placer.base.errors import UsageError
from placer.base.quantity import parse
from placer.base.words import some
from placer.kube.manifests import Text, read_objects
from placer.problem import GroupKey, Instance

#: ``N x PODS x RESOURCES [@ TIER]``; any other text is the name of a file.
_SHAPE = re.compile(
    r"\s*([1-9]\d{0,8})\s*x\s*([1-9]\d{0,8})\s*x\s*([^\s=,]+=[^\s=,@]+(?:,[^\s=,]+=[^\s=,@]+)*)\s*(?:@\s*(\S+)\s*)?"
)
_LIKE_A_SHAPE = re.compile(r"\s*\d+\s*x\s*\d")
_FILES = (".json", ".yaml", ".yml", ".gz")
_FORM = "'N x PODS x RESOURCES [@ TIER]', such as '4 x 8 x nvidia.com/gpu=8,cpu=96 @ 1'"
#: Kinds that say what the cluster is: no job has them.
_NO_JOB = ("Node", "HyperNode", "NodeResourceTopology", "Policy", "PodDisruptionBudget")
#: Pods that one call may want.
_MOST_PODS = 100_000
#: Tiers or keys that a message names.
_NAMED = 12


@dataclass(frozen=True)
class _WantedShape:
    gangs: int
    pods: int
    requests: Mapping[str, str]
    tier: str | None

    @classmethod
    def parse(cls, words: str) -> _WantedShape:
        match = _SHAPE.fullmatch(words)
        if match is None:
            raise UsageError(f"--want {words!r}: expected {_FORM}, or a file")
        gangs, pods = int(match[1]), int(match[2])
        if gangs * pods > _MOST_PODS:
            raise UsageError(f"--want {words!r}: found {gangs * pods:,} pods, expected at most {_MOST_PODS:,}")
        requests = dict(each.split("=") for each in match[3].split(","))
        wrong = next((f"{name}: found {amount}" for name, amount in requests.items() if not _is_amount(amount)), None)
        if wrong is not None:
            raise UsageError(f"--want {words!r}: {wrong}, expected a quantity, such as 8 or 500m")
        return cls(gangs, pods, requests, match[4])

    def objects(self, instance: Instance, taken: Collection[str]) -> Iterator[dict[str, Any]]:
        """The PodGroups and Pods that they are; their namespace is none that is ``taken``."""
        names = ("wanted", *(f"wanted-{number}" for number in range(len(taken))))
        namespace = next(name for name in names if name not in taken)
        constraint = self._constraint(instance)
        width = len(str(self.gangs))
        for number in range(1, self.gangs + 1):
            name = f"gang-{number:0{width}}"
            yield self._group(name, namespace, constraint)
            yield from (self._pod(f"{name}-{pod}", namespace, name, instance, constraint) for pod in range(self.pods))

    def _constraint(self, instance: Instance) -> dict[str, Any]:
        if self.tier is None:
            return {}
        tier = _tier(instance, self.tier)
        if tier is not None:
            return {"highestTierAllowed": tier}
        if any(self.tier in node.labels for node in instance.nodes.values()):
            return {"key": self.tier}
        raise UsageError(
            f"--want: found no tier or label {self.tier}, expected {_known_tiers(instance)} or a label key"
        )

    def _group(self, name: str, namespace: str, constraint: Mapping[str, Any]) -> dict[str, Any]:
        metadata = {"name": name, "namespace": namespace}
        if "key" in constraint:
            policy = {"gang": {"minCount": self.pods}}
            spec = {"schedulingPolicy": policy, "schedulingConstraints": {"topology": [constraint]}}
            return {"apiVersion": "scheduling.k8s.io/v1alpha2", "kind": "PodGroup", "metadata": metadata, "spec": spec}
        limit = {"networkTopology": {"mode": "hard", **constraint}} if constraint else {}
        spec = {"minMember": self.pods, **limit}
        return {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup", "metadata": metadata, "spec": spec}

    def _pod(
        self, name: str, namespace: str, group: str, instance: Instance, constraint: Mapping[str, Any]
    ) -> dict[str, Any]:
        """It tolerates taints named like its extended resources, as the admission plugin has it."""
        extended = sorted(each for each in self.requests if "/" in each)
        metadata: dict[str, Any] = {"name": name, "namespace": namespace}
        spec: dict[str, Any] = {
            "containers": [{"name": "main", "resources": {"requests": dict(self.requests)}}],
            "tolerations": [{"key": each, "operator": "Exists"} for each in extended],
        }
        if instance.scheduler_name not in (None, "*"):
            spec["schedulerName"] = instance.scheduler_name
        if "key" in constraint:
            spec["schedulingGroup"] = {"podGroupName": group}
        else:
            metadata["annotations"] = {"scheduling.k8s.io/group-name": group}
        return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def _is_amount(text: str) -> bool:
    try:
        return parse(text) >= 0
    except ValueError:
        return False


def _tier(instance: Instance, name: str) -> int | None:
    """The tier of a number or a tierName; None where no HyperNode is of it, or HyperNodes of several are."""
    domains = instance.topology.hyper_nodes.values()
    tiers = {each.tier for each in domains if name in (str(each.tier), each.tier_name)}
    return tiers.pop() if len(tiers) == 1 else None


def _known_tiers(instance: Instance) -> str:
    domains = instance.topology.hyper_nodes.values()
    known = sorted({str(each.tier) for each in domains} | {each.tier_name for each in domains if each.tier_name})
    return f"one of {', '.join(some(known, _NAMED))}" if known else "a tier (none exists)"


def count_at_tier(option: str, words: str, instance: Instance) -> tuple[int, int]:
    """Read ``K@TIER`` of an option, by number or tierName; a wrong text or an absent tier is a :class:`UsageError`."""
    match = re.fullmatch(r"([1-9][0-9]{0,8})@(.+)", words)
    if match is None:
        raise UsageError(f"{option} {words}: expected K@TIER with K from 1 on, such as 2@1 or 2@rack")
    tier = _tier(instance, match[2])
    if tier is None:
        raise UsageError(f"{option} {words}: found no one tier {match[2]}, expected {_known_tiers(instance)}")
    return int(match[1]), tier


def _namespaces(instance: Instance) -> set[str]:
    return {key.namespace for key in instance.pods} | {key.namespace for key in instance.groups}


def is_shape(words: str) -> bool:
    """Whether ``--want`` has a shape, not the name of a file."""
    return _LIKE_A_SHAPE.match(words) is not None


def wanted_objects(words: str, instance: Instance, taken: Collection[str] = ()) -> tuple[str, ...]:
    """The request of ``--want`` as Kubernetes objects, each as JSON.

    ``words``: a shape, or the name of a file with a job: Pods, their PodGroups, or workloads that make them.
    ``taken``: namespaces in use that ``instance`` does not show. A wrong shape, an absent tier and objects of the
    cluster itself are a :class:`UsageError`, a file that cannot be read is a :class:`BadInstance`.
    """
    if is_shape(words):
        known = _namespaces(instance).union(taken)
        return tuple(json.dumps(each) for each in _WantedShape.parse(words).objects(instance, known))
    if not (words == "-" or words.endswith(_FILES) or Path(words).exists()):
        raise UsageError(f"--want {words!r}: found no such file, expected one, or {_FORM}")
    raws = read_objects([words])
    odd = next((raw for raw in raws if raw.kind in _NO_JOB), None)
    if odd is not None:
        raise UsageError(f"--want {words}: found {odd.label}, expected a job: the cluster itself cannot be wanted")
    return tuple(bytes(raw.text).decode() for raw in raws)


def wanted_text(objects: Sequence[str]) -> list[Text]:
    """Wanted objects as one text to be read next to others; none where there are none."""
    items = ",".join(objects)
    return (
        [Text("wanted objects", f'{{"apiVersion":"v1","kind":"List","items":[{items}]}}'.encode())] if objects else []
    )


def new_groups(instance: Instance, before: Instance) -> list[GroupKey]:
    """Groups with pods that wait and were not there before, in their order; :class:`UsageError`: others have moved."""
    new = (pod for pod in instance.pending if pod.key not in before.pods)
    groups = list(dict.fromkeys(pod.group for pod in new if pod.group is not None))
    nodes = {key: pod.node for key, pod in before.pods.items()}
    odd = next((pod for key, pod in instance.pods.items() if pod.node != nodes.get(key)), None)
    if groups and odd is not None:
        raise UsageError(f"--want: found Pod {odd.key} on Node {odd.node}, expected pods that wait for one")
    return groups


def groups_wanted(instance: Instance, objects: Sequence[str], taken: set[str]) -> list[GroupKey] | None:
    """The groups of a shape's objects; None where their namespace has something else, so that another is needed.

    ``taken`` gets the namespaces of all that is there.
    """
    taken |= _namespaces(instance)
    metadata = [json.loads(each)["metadata"] for each in objects]
    namespace, names = metadata[0]["namespace"], {each["name"] for each in metadata}
    groups = [key for key in instance.groups if key.namespace == namespace]
    there = {key.name for key in instance.pods if key.namespace == namespace}.union(key.name for key in groups)
    return groups if there <= names else None
