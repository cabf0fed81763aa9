"""What Kueue adds to pods of its queues when it admits them, and its Topologies."""

from __future__ import annotations

from typing import Any

import pytest

from tests.problem.test_unread_kinds import KUEUE, custom, told
from tests.support import Document, hyper_node, instance_of, node, policy

API = "kueue.x-k8s.io/v1beta1"
TOLERATION = {"key": "gpu", "operator": "Exists", "effect": "NoSchedule"}


def kueue(kind: str, name: str, namespace: str = "", **spec: Any) -> Document:
    return custom(API, kind, name, namespace, spec=spec)


def flavor(name: str, **labels: str) -> Document:
    return kueue("ResourceFlavor", name, nodeLabels=labels, tolerations=[TOLERATION])


def queues(*flavors: str, covers: str = "cpu") -> list[Document]:
    group = {"coveredResources": [covers], "flavors": [{"name": each, "resources": []} for each in flavors]}
    cluster = kueue("ClusterQueue", "all", resourceGroups=[group])
    return [cluster, kueue("LocalQueue", "team-a", "default", clusterQueue="all")]


def job(**selector: str) -> Document:
    container = {"name": "main", "resources": {"requests": {"cpu": "1"}}}
    template = {"spec": {"containers": [container], "restartPolicy": "Never", "nodeSelector": selector}}
    return custom("batch/v1", "Job", "j", labels={KUEUE: "team-a"}, spec={"template": template})


def eligible(*documents: Document) -> list[str]:
    """Nodes that take the pod of the Job."""
    tainted = {**node("a", {"pool": "a"}), "spec": {"taints": [{"key": "gpu", "effect": "NoSchedule"}]}}
    instance = instance_of(tainted, node("b", {"pool": "b"}), *documents)
    (pod,) = instance.pending
    return [name for name, each in instance.nodes.items() if pod.constraints.admits(each)]


def unknown(*documents: Document) -> str | None:
    return told(*documents).get("ResourceFlavor.kueue.x-k8s.io")


def test_labels_and_tolerations_of_the_only_flavor_are_those_of_the_pods() -> None:
    documents = [job(), *queues("a"), flavor("a", pool="a")]
    assert eligible(*documents) == ["a"]
    assert unknown(*documents) is None


@pytest.mark.parametrize(
    "documents",
    [
        [job()],
        [job(), *queues("a")],
        [job(), *queues("a", "b"), flavor("a", pool="a"), flavor("b", pool="b")],
        [job(pool="b"), *queues("a"), flavor("a", pool="a")],
        [job(), *queues("a"), kueue("ResourceFlavor", "a", nodeLabels=["pool"])],
    ],
)
def test_a_flavor_that_is_not_certain_is_not_added_and_the_workload_named(documents: list[Document]) -> None:
    assert eligible(*documents) == ["b"]
    message = "Kueue adds labels and tolerations of a flavor to pods of Job default/j when it admits them"
    assert unknown(*documents) == f"{message}: which is not certain here, and none is added"


def test_flavors_of_resources_that_no_pod_asks_for_are_not_added() -> None:
    documents = [job(), *queues("a", covers="nvidia.com/gpu"), flavor("a", pool="a")]
    assert (eligible(*documents), unknown(*documents)) == (["b"], None)


@pytest.mark.parametrize(
    ("others", "said"),
    [
        ([], "it is not read: Policy `topologyKeys: [rack, block]` makes a tree of its levels"),
        ([hyper_node("r", 1, nodes=("n1",))], "it is not read: HyperNodes are the tree"),
        ([policy(topologyKeys=["rack", "block"])], None),
    ],
)
def test_a_topology_of_kueue_is_named_with_the_policy_that_makes_a_tree_of_it(
    others: list[Document], said: str | None
) -> None:
    levels = [{"nodeLabel": each} for each in ("block", "rack", "kubernetes.io/hostname")]
    assert told(kueue("Topology", "dc", levels=levels), *others).get("Topology.kueue.x-k8s.io dc") == said
