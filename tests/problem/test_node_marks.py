"""Limits to nodes that stand outside a pod's spec (C3): node groups of queues, NUMA policies."""

from __future__ import annotations

from typing import Any

import pytest

from placer.problem import Instance, Key
from placer.problem.placement import Placement
from placer.rules import verify
from tests.cluster.things import numa_topology
from tests.support import Document, instance_of, node, pod, pod_group, policy, queue

GROUP = "volcano.sh/nodegroup-name"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
NODES = (*(node(f"n-{name}", {GROUP: name}) for name in "abc"), node("n-bare"))


def asking(name: str = "q", near: Any = None, far: Any = None, parent: str | None = None) -> Document:
    """A queue with node groups: required and preferred ones."""
    made, words = queue(name, parent=parent), (REQUIRED, PREFERRED)
    affinity = {
        field: {word: list(names) for word, names in zip(words, groups, strict=True) if names}
        for field, groups in (("nodeGroupAffinity", near), ("nodeGroupAntiAffinity", far))
        if groups is not None
    }
    made["spec"] |= {"affinity": affinity} if affinity else {}
    return made


def admitted(instance: Instance, name: str = "p") -> list[str]:
    found = instance.pods[Key("default", name)]
    return [each for each, place in instance.nodes.items() if found.constraints.admits(place)]


@pytest.mark.parametrize(
    ("near", "far", "nodes"),
    [
        (None, None, ["n-a", "n-b", "n-bare", "n-c"]),
        (("a", ""), None, ["n-a"]),
        (("ab", ""), None, ["n-a", "n-b"]),
        (("a", "b"), None, ["n-a", "n-b"]),
        (("", "b"), None, ["n-b"]),
        (("ab", ""), ("a", ""), ["n-b"]),
        (("ab", ""), ("", "a"), ["n-a", "n-b"]),
        (None, ("a", ""), ["n-b", "n-bare", "n-c"]),
        (None, ("", "a"), ["n-a", "n-b", "n-bare", "n-c"]),
        (("z", ""), None, []),
    ],
)
def test_node_groups_of_a_queue(near: Any, far: Any, nodes: list[str]) -> None:
    """Required and preferred ones admit, required anti-affinity forbids; a node without the label is in none."""
    documents = [*NODES, asking("q", near, far), pod_group("g", minMember=1, queue="q"), pod("p", group="g", cpu=1)]
    assert admitted(instance_of(*documents)) == nodes


def test_the_judge_names_the_queue() -> None:
    in_queue = pod("p", annotations={"scheduling.volcano.sh/queue-name": "q"}, cpu=1)
    instance = instance_of(*NODES, asking("q", ("a", "")), in_queue)
    (found,) = verify(instance, Placement.of({Key("default", "p"): "n-b"}))
    assert found.rule == "C3"
    assert found.message == "Pod default/p may not be on Node n-b: node is not in node group a of Queue q"


def test_a_preference_of_a_queue_is_a_finding_where_something_waits_in_it() -> None:
    in_queue = pod("p", annotations={"scheduling.volcano.sh/queue-name": "q"}, cpu=1)
    queues = [asking("q", None, ("", "a")), asking("r", None, ("", "a"))]
    found = [each for each in instance_of(*NODES, *queues, in_queue).findings if each.code == "PreferenceIgnored"]
    assert [each.object for each in found] == ["Queue q"]


NUMA = "volcano.sh/numa-topology-policy"
ZONES = ({"cpu": "4"}, {"cpu": "4"})


@pytest.mark.parametrize(
    ("wanted", "nodes"),
    [
        ("single-numa-node", ["n-s"]),
        ("restricted", ["n-r"]),
        ("none", ["n-bare", "n-r", "n-s"]),
        ("best-effort", ["n-bare", "n-r", "n-s"]),
        ("no-such-policy", []),
    ],
)
@pytest.mark.parametrize("off", [False, True])
def test_numa_policies(wanted: str, nodes: list[str], off: bool) -> None:
    """Where C10 is off zones are not looked at, and the policy of a node is known all the same."""
    documents = [
        *(node("n-s"), node("n-r"), node("n-bare"), pod("p", annotations={NUMA: wanted}, cpu=1)),
        *(numa_topology("n-s", *ZONES), numa_topology("n-r", *ZONES, policy="restricted")),
        *([policy(rules={"C10": "off"})] if off else []),
    ]
    assert admitted(instance_of(*documents)) == nodes


def numatopology(name: str) -> Document:
    return {"apiVersion": "nodeinfo.volcano.sh/v1alpha1", "kind": "Numatopology", "metadata": {"name": name}}


def test_numatopologies_are_a_finding_for_nodes_that_nothing_else_tells_of() -> None:
    documents = [node("n-s"), node("n-t"), numa_topology("n-s", *ZONES)]
    documents += [numatopology(name) for name in ("n-s", "n-t", "n-gone")]
    found = [each.message for each in instance_of(*documents).findings if each.code == "UnsupportedKind"]
    assert len(found) == 1
    assert found[0].endswith("NUMA zones are not modelled for Node n-t")
    assert not instance_of(*documents, policy(rules={"C10": "off"})).findings
