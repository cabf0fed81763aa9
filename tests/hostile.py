"""Objects of a namespace that means harm, as an API server admits them: few or many, each costs as much as it can."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Any

from tests.support import Document, pod_group

__all__ = ["EVIL", "HOSTILE", "hostile_pod"]

#: The namespace that they are in.
EVIL = "evil"


def hostile_pod(name: str, labels: dict[str, str] | None = None, **spec: Any) -> Document:
    """A pending pod of a millicore."""
    main: dict[str, Any] = {"name": "main", "image": "x", "resources": {"requests": {"cpu": "1m"}}}
    main |= spec.pop("main", {})
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": EVIL, "labels": labels or {}},
        "spec": {"schedulerName": "placer", "containers": [main], **spec},
    }


def _asking(name: str, resources: list[str]) -> Document:
    return hostile_pod(name, main={"resources": {"requests": {"cpu": "1m"} | dict.fromkeys(resources, "1")}})


def one_of_many_resources(size: int) -> list[Document]:
    """One pod that asks for so many resources that no node offers."""
    return [_asking("many", [f"evil.example/r{number}" for number in range(size)])]


def pods_of_many_resources(size: int) -> list[Document]:
    """Pods that ask for 100 resources each, all of them different."""
    numbers = count()
    return [_asking(f"some-{pod}", [f"evil.example/r{next(numbers)}" for _ in range(100)]) for pod in range(size // 2)]


def one_resource_each(size: int) -> list[Document]:
    """Pods that ask for one resource each that no node offers."""
    return [_asking(f"one-{pod}", [f"evil.example/r{pod}"]) for pod in range(size * 3 // 2)]


def _terms(size: int, each: int, key: str, term: Callable[[dict[str, Any]], dict[str, Any]]) -> list[Document]:
    """Pods with distinct selectors, of which each means one pod at most."""
    numbers, pods = count(), []
    for pod in range(size):
        said = [{"labelSelector": {"matchLabels": {"n": str(next(numbers))}}, "topologyKey": key} for _ in range(each)]
        pods.append(hostile_pod(f"t-{pod}", {"n": str(pod)}, **term({"terms": said})))
    return pods


def anti_affinity(size: int) -> list[Document]:
    """Pods with 20 terms of anti-affinity of their own each."""

    def term(said: dict[str, Any]) -> dict[str, Any]:
        return {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": said["terms"]}}}

    return _terms(size, 20, "kubernetes.io/hostname", term)


def affinity(size: int) -> list[Document]:
    """Pods that each want near them what another one of them is."""

    def term(said: dict[str, Any]) -> dict[str, Any]:
        return {"affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": said["terms"]}}}

    return _terms(size, 1, "kubernetes.io/hostname", term)


def spread(size: int) -> list[Document]:
    """Pods with 20 spread constraints of their own each."""

    def term(said: dict[str, Any]) -> dict[str, Any]:
        limits = [each | {"maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"} for each in said["terms"]]
        return {"topologySpreadConstraints": limits}

    return _terms(size, 20, "kubernetes.io/hostname", term)


def broad_terms(size: int, kind: str = "podAntiAffinity") -> list[Document]:
    """Pods of which each has 20 terms that mean all of them, and no two terms are alike."""
    numbers, pods = count(), []
    for pod in range(size):
        said = []
        for _ in range(20):
            but = {"key": "n", "operator": "NotIn", "values": [f"x{next(numbers)}"]}
            said.append({"labelSelector": {"matchExpressions": [but]}, "topologyKey": "kubernetes.io/hostname"})
        required = {"requiredDuringSchedulingIgnoredDuringExecution": said}
        pods.append(hostile_pod(f"b-{pod}", {"n": str(pod)}, affinity={kind: required}))
    return pods


def broad_affinity(size: int) -> list[Document]:
    """The same, each near all of the others."""
    return broad_terms(size, "podAffinity")


def broad_spread(size: int) -> list[Document]:
    """Pods of which each has 10 spread constraints that count all of them, and no two are alike."""
    numbers, pods = count(), []
    for pod in range(size):
        said = []
        for _ in range(10):
            but = {"key": "n", "operator": "NotIn", "values": [f"x{next(numbers)}"]}
            rest = {"maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule", "topologyKey": "kubernetes.io/hostname"}
            said.append({"labelSelector": {"matchExpressions": [but]}, **rest})
        pods.append(hostile_pod(f"s-{pod}", {"n": str(pod)}, topologySpreadConstraints=said))
    return pods


def host_ports(size: int) -> list[Document]:
    """Pods with 20 host ports of their own each."""
    pods = []
    for pod in range(size):
        ports = [{"containerPort": 80, "hostPort": 1024 + (pod * 20 + port) % 60000} for port in range(20)]
        pods.append(hostile_pod(f"p-{pod}", main={"ports": ports}))
    return pods


def node_terms(size: int) -> list[Document]:
    """Pods with node affinity of their own each."""
    pods = []
    for pod in range(size):
        told = [
            {"matchExpressions": [{"key": "n", "operator": "NotIn", "values": [f"{pod}-{number}"]}]}
            for number in range(20)
        ]
        required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": told}}
        pods.append(hostile_pod(f"a-{pod}", affinity={"nodeAffinity": required}))
    return pods


def amounts(size: int) -> list[Document]:
    """Pods of which no two ask for the same."""
    return [
        hostile_pod(f"q-{pod}", main={"resources": {"requests": {"cpu": f"{pod + 1}m", "memory": str(10**6 + pod)}}})
        for pod in range(size)
    ]


def huge_labels(size: int) -> list[Document]:
    """Pods with 97,000 bytes of labels each, a tenth as many."""
    values = {f"k{number}": "v" * 60 for number in range(1500)}
    return [hostile_pod(f"l-{pod}", values) for pod in range(max(1, size // 10))]


def long_terms(size: int) -> list[Document]:
    """Pods of which each asks of nodes and of other pods by thousands of values: little text, and many words."""
    pods = []
    for pod in range(size):
        values = [f"x{pod}-{number}" for number in range(2_000)]
        but = {"matchExpressions": [{"key": "n", "operator": "NotIn", "values": values}]}
        near = [{"labelSelector": but, "topologyKey": "kubernetes.io/hostname"}]
        asked = {
            "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [but]}},
            "podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": near},
        }
        pods.append(hostile_pod(f"w-{pod}", affinity=asked))
    return pods


def long_groups(size: int) -> list[Document]:
    """PodGroups with thousands of tasks and resources each, a tenth as many, and as many without pods as it likes."""
    much = {f"t{number}": 1 for number in range(5_000)}
    less = {f"evil.example/r{number}": "1" for number in range(5_000)}
    long = [pod_group(f"l-{at}", EVIL, minMember=1, minTaskMember=much, minResources=less) for at in range(size // 10)]
    return [*long, *(pod_group(f"e-{number}", EVIL, minMember=1) for number in range(size))]


def priorities(size: int) -> list[Document]:
    """Pods of which no two are as urgent, and none as urgent as the others: each is a value of its own."""
    return [hostile_pod(f"u-{pod}", priority=-1 - pod) for pod in range(size)]


def unknown_queues(size: int) -> list[Document]:
    """Pods that name a queue each that is not there."""
    return [_named(f"k-{pod}", "scheduling.volcano.sh/queue-name", f"q-{pod}") for pod in range(size)]


def sub_groups(size: int) -> list[Document]:
    """A gang of 200 policies for subgroups, of which each pod is one of its own."""
    labels = {"labelSelector": {"matchLabels": {"n": "0"}}, "matchLabelKeys": ["m"]}
    policies = [{"name": f"part-{at}", "subGroupSize": 1, "minSubGroups": 0, **labels} for at in range(200)]
    pods = [_named(f"s-{pod}", "scheduling.k8s.io/group-name", "g") for pod in range(size)]
    for number, each in enumerate(pods):
        each["metadata"]["labels"] = {"n": "0", "m": str(number)}
    return [pod_group("g", EVIL, minMember=1, subGroupPolicy=policies), *pods]


def app_groups(size: int) -> list[Document]:
    """Pods of which each depends on all others, by way of 20 workloads that depend on each other."""
    works = [
        {"kind": "Deployment", "apiVersion": "apps/v1", "name": f"w{at}", "selector": f"w{at}"} for at in range(20)
    ]
    on = [{"workload": each, "minBandwidth": "1"} for each in works]
    listed = [{"workload": each, "dependencies": [dep for dep in on if dep["workload"] is not each]} for each in works]
    group = {
        "apiVersion": "appgroup.diktyo.x-k8s.io/v1alpha1",
        "kind": "AppGroup",
        "metadata": {"name": "app", "namespace": EVIL},
        "spec": {"numMembers": 20, "topologySortingAlgorithm": "KahnSort", "workloads": listed},
    }
    name = "appgroup.diktyo.x-k8s.io"
    return [group, *(hostile_pod(f"d-{pod}", {name: "app", f"{name}.workload": f"w{pod % 20}"}) for pod in range(size))]


def _named(name: str, annotation: str, value: str) -> Document:
    made = hostile_pod(name)
    made["metadata"]["annotations"] = {annotation: value}
    return made


#: What to try, by name.
HOSTILE: dict[str, Callable[[int], list[Document]]] = {
    each.__name__: each
    for each in (
        *(one_of_many_resources, pods_of_many_resources, one_resource_each, anti_affinity, affinity, spread),
        *(broad_terms, broad_affinity, broad_spread, host_ports, node_terms, amounts, huge_labels),
        *(long_terms, long_groups, priorities, unknown_queues, sub_groups, app_groups),
    )
}
