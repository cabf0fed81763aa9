"""Pod sets of Kueue that require one domain of a node label (C7 by label), of pods that exist and of expanded ones."""

from __future__ import annotations

from typing import Any

import pytest

from placer.problem import Instance, Key
from placer.problem.placement import Placement
from placer.rules import verify
from tests.support import Document, instance_of, node, pod

KUEUE, JOB_SET, LWS = "kueue.x-k8s.io", "jobset.sigs.k8s.io", "leaderworkerset.sigs.k8s.io"
REQUIRED = f"{KUEUE}/podset-required-topology"
NODES = (*(node(f"n-{rack}", {"rack": rack}) for rack in "ab"), node("n-bare"))
RACK = {REQUIRED: "rack"}


def member(name: str, *, owner: str = "", annotations: dict[str, str] | None = None, **labels: str) -> Document:
    """A pod that requires one rack; labels as ``prefix__name``, the owner as ``apiVersion Kind name``."""
    version, kind, of = owner.split() if owner else ("", "", "")
    owners = [{"apiVersion": version, "kind": kind, "name": of, "uid": of, "controller": True}] if owner else []
    known = {"kueue": KUEUE, "jobset": JOB_SET, "lws": LWS}
    named = {}
    for key, value in labels.items():
        prefix, _, rest = key.partition("__")
        named[f"{known.get(prefix, prefix)}/{rest.replace('_', '-')}"] = value
    return pod(name, labels=named, annotations=RACK | (annotations or {}), metadata={"ownerReferences": owners}, cpu=1)


def sets(instance: Instance) -> dict[str, str]:
    """Pod to the name of its unit, empty where it has none."""
    found = {}
    for key, each in instance.pods.items():
        assert all((unit.topology_key, unit.exclusive) == ("rack", False) for unit in each.neighbours.units)
        found[key.name] = ", ".join(unit.name.removesuffix(f" ({REQUIRED})") for unit in each.neighbours.units)
    return found


JOINED = {f"{KUEUE}/podset-group-name": "all"}
BY_KUEUE = {f"{KUEUE}/workload": "w"}
CASES: dict[str, tuple[Document, str]] = {
    "a batch Job": (member("p", owner="batch/v1 Job j"), "Job default/j"),
    "a pod group": (member("p", kueue__pod_group_name="g", owner="apps/v1 StatefulSet s"), "pod group default/g"),
    "a replicated job": (
        member("p", jobset__jobset_name="s", jobset__replicatedjob_name="w", owner="batch/v1 Job s-w-0"),
        "replicated job w of JobSet default/s",
    ),
    "replicated jobs that are joined": (
        member("p", annotations=JOINED, jobset__jobset_name="s", jobset__replicatedjob_name="w"),
        "pod sets all of JobSet default/s",
    ),
    "a replica": (member("p", lws__name="l", lws__group_index="1"), "replica 1 of LeaderWorkerSet default/l"),
    "a replica whose pod sets Kueue tells apart": (
        member("p", lws__name="l", lws__group_index="1", kueue__podset="leader"),
        "pod set leader of replica 1 of LeaderWorkerSet default/l",
    ),
    "any workload of Kueue": (
        member("p", annotations=BY_KUEUE, kueue__podset="worker", owner="kubeflow.org/v1 PyTorchJob t"),
        "pod set worker of Workload default/w",
    ),
    "a role of another owner": (
        member("p", owner="kubeflow.org/v1 PyTorchJob t", **{"training.kubeflow.org__replica_type": "worker"}),
        "role worker of PyTorchJob default/t",
    ),
    "a StatefulSet": (member("p", owner="apps/v1 StatefulSet s"), "StatefulSet default/s"),
}


@pytest.mark.parametrize("case", CASES)
def test_the_pod_set_of_a_pod(case: str) -> None:
    written, expected = CASES[case]
    assert sets(instance_of(*NODES, written)) == {"p": expected}


@pytest.mark.parametrize("owner", ["", "apps/v1 ReplicaSet r"])
def test_a_pod_that_is_a_pod_set_by_itself_needs_the_label_alone(owner: str) -> None:
    instance = instance_of(*NODES, member("p", owner=owner))
    assert sets(instance) == {"p": ""}
    found = verify(instance, Placement.of({Key("default", "p"): "n-bare"}))
    assert [(each.rule, each.message.partition(": ")[2]) for each in found] == [
        ("C3", f"node is without the label rack, which annotation {REQUIRED} asks for")
    ]
    assert verify(instance, Placement.of({Key("default", "p"): "n-b"})) == []


def test_a_pod_that_runs_holds_its_set_to_its_domain() -> None:
    running = member("p", owner="batch/v1 Job j")
    running["spec"]["nodeName"], running["status"] = "n-a", {"phase": "Running"}
    instance = instance_of(*NODES, running, member("q", owner="batch/v1 Job j"))
    assert [each.rule for each in verify(instance, Placement.of({Key("default", "q"): "n-b"}))] == ["C7"]


def template(annotations: dict[str, str]) -> dict[str, Any]:
    resources = {"requests": {"cpu": "1"}}
    return {
        "metadata": {"annotations": annotations},
        "spec": {"restartPolicy": "Never", "containers": [{"name": "main", "resources": resources}]},
    }


def workers(*, leader: dict[str, str] | None, worker: dict[str, str]) -> Document:
    templates = {"workerTemplate": template(worker), "size": 3}
    templates |= {"leaderTemplate": template(leader)} if leader is not None else {}
    return {
        "apiVersion": "leaderworkerset.x-k8s.io/v1",
        "kind": "LeaderWorkerSet",
        "metadata": {"name": "l", "namespace": "default"},
        "spec": {"replicas": 1, "leaderWorkerTemplate": templates},
    }


def test_a_leader_with_a_template_of_its_own_is_a_pod_set_of_its_own_unless_joined() -> None:
    replica = "replica 0 of LeaderWorkerSet default/l"
    assert set(sets(instance_of(*NODES, workers(leader=None, worker=RACK))).values()) == {replica}
    assert sets(instance_of(*NODES, workers(leader=RACK, worker=RACK))) == {
        "l-0": f"leader of {replica}",
        "l-0-1": f"workers of {replica}",
        "l-0-2": f"workers of {replica}",
    }
    both = RACK | JOINED
    assert set(sets(instance_of(*NODES, workers(leader=both, worker=both))).values()) == {f"pod sets all of {replica}"}
    assert sets(instance_of(*NODES, workers(leader={}, worker=RACK)))["l-0"] == ""


def test_the_replicas_of_a_replicated_job_are_one_pod_set() -> None:
    job = {"parallelism": 2, "completions": 2, "template": template(RACK)}
    replicated = [{"name": name, "replicas": 2, "template": {"spec": job}} for name in ("v", "w")]
    item = {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "metadata": {"name": "s", "namespace": "default"},
        "spec": {"replicatedJobs": replicated},
    }
    found = sets(instance_of(*NODES, item))
    assert len(found) == 8
    assert {key: value for key, value in found.items() if key.startswith("s-v")} == {
        f"s-v-{job}-{index}": "replicated job v of JobSet default/s" for job in range(2) for index in range(2)
    }
