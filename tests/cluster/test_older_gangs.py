"""Passes at servers of Kubernetes 1.35 and 1.36, whose gangs newer ones do not serve.

Pods of 1.35 name a pod group of a Workload, and a key; PodGroups of 1.36 are of v1alpha2. No custom resource can stand
for them: a kube-apiserver answers for all of its own groups. So a double does, which has the lists of such a server.
"""

from __future__ import annotations

import json
from typing import Any

from placer.passes.cluster.reading.client import Response
from tests.cluster.test_any_object import Double, pass_at
from tests.cluster.things import live_pod
from tests.problem.test_upstream_gangs import gang, of_workload, upstream, workload
from tests.support import Document, node


class Older(Double):
    """A double without v1beta1 of ``scheduling.k8s.io``, whose PodGroups can be asked for one by one."""

    def __init__(self, documents: list[Document]) -> None:
        super().__init__(documents, [])
        self.lists = {path: each for path, each in self.lists.items() if "/scheduling.k8s.io/v1beta1/" not in path}

    def send(self, method: str, path: str, body: Any = None, **options: Any) -> Response:
        place, _, name = path.rpartition("/")
        listed = place.replace("/namespaces/default", "")
        if method == "GET" and listed.endswith("/podgroups"):
            found = [each for each in self.lists.get(listed, ()) if each["metadata"]["name"] == name]
            return Response(200, json.dumps(found[0]).encode()) if found else Response(404, b"{}")
        return super().send(method, path, body, **options)


def test_a_gang_that_a_workload_declares_is_bound_whole_or_not_at_all() -> None:
    """Nodes of 8 cpu: three pods of 4 go on two of them, three of 8 do not."""
    spec = workload({"gang": {"minCount": 3}})
    pods = [
        live_pod(f"w-{key}-{number}", spec={"workloadRef": of_workload("", key)["spec"]["workloadRef"]}, cpu=cpu)
        for key, cpu in (("0", 4), ("1", 8))
        for number in range(3)
    ]
    server, done = pass_at(Older([node("n1"), node("n2"), spec, *pods]))
    assert set(server.bound) == {"w-0-0", "w-0-1", "w-0-2"}
    assert done.result is not None
    assert {str(key): reason.code for key, reason in done.result.reasons.items()} == {
        "PodGroup default/w/workers/1": "InsufficientResources"
    }
    conditions = [body["status"]["conditions"] for path, body in server.written if path.endswith("/pods/w-1-0/status")]
    assert conditions[0][0]["message"].startswith("InsufficientResources: ")
    assert not [path for path, _ in server.written if "podgroups" in path]  # such a gang is no object
    events = [body for path, body in server.written if path.endswith("/events")]
    (event,) = [each for each in events if each["reason"] == "Scheduled"]
    assert (event["regarding"]["kind"], event["regarding"]["name"]) == ("Workload", "w")
    assert event["note"].startswith("workers/0: Successfully assigned 3 pods to ")


def test_pod_groups_of_v1alpha2_say_of_themselves_what_kube_scheduler_of_1_36_would_say() -> None:
    """A node of 6 cpu: the gang of two pods of 3 goes, that of three waits; that of another scheduler is left alone."""
    template = {"podGroupTemplateRef": {"workload": {"workloadName": "train", "podGroupTemplateName": "workers"}}}
    documents = [node("n1", cpu=6)]
    for name, count in (("two", 2), ("three", 3)):
        documents.append(upstream(version="v1alpha2", name=name, **gang(count, disruptionMode="PodGroup", **template)))
        spec = {"schedulingGroup": {"podGroupName": name}}
        documents += [live_pod(f"{name}-{number}", spec=spec, cpu=3) for number in range(count)]
    other = {"schedulingGroup": {"podGroupName": "other"}}
    documents.append(upstream(version="v1alpha2", name="other", **gang(1)))
    documents.append(live_pod("other-0", scheduler="default-scheduler", spec=other, cpu=3))
    server, done = pass_at(Older(documents))
    assert set(server.bound) == {"two-0", "two-1"}
    assert done.result is not None
    groups = done.result.instance.groups.values()
    assert {each.key.name for each in groups if each.disrupted_whole} == {"two", "three"}
    place = "/apis/scheduling.k8s.io/v1alpha2/namespaces/default/podgroups/"
    said = {
        path.removeprefix(place): [
            (each["type"], each["status"], each["reason"]) for each in body["status"]["conditions"]
        ]
        for path, body in server.written
        if path.startswith(place)
    }
    assert said == {
        "two/status": [("PodGroupScheduled", "True", "Scheduled")],
        "three/status": [("PodGroupScheduled", "False", "Unschedulable")],
    }
