"""Admission policies of ``deploy/`` at a real API server: all that they take from placer's token and from tenants.

RBAC alone lets each attempt through, which is tried first; the policies refuse it. All of them are dry runs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import pytest
import yaml

from placer.passes.cluster.reading.client import JSON, MERGE, STRATEGIC_MERGE
from tests.cluster.api import Api, Refused
from tests.cluster.applied import Run, allowed, full
from tests.cluster.conftest import POLICIES as POLICY_KIND
from tests.cluster.controllers import Controllers, priority_class
from tests.cluster.deployed import Deployed
from tests.cluster.faults import PODS
from tests.cluster.held import held
from tests.cluster.passes import Passes, bound, gang
from tests.cluster.things import live_pod
from tests.problem.test_upstream_gangs import gang as upstream_gang
from tests.problem.test_upstream_gangs import upstream
from tests.support import Document, node, pod_group
from tests.test_deploy import DEPLOY
from tests.waiting import wait_until

GATES = "overlays/gates"
POLICIES = "ValidatingAdmissionPolicy"
VOLCANO = "/apis/scheduling.volcano.sh/v1beta1/namespaces/default/podgroups"
UPSTREAM = "/apis/scheduling.k8s.io/v1beta1/namespaces/default/podgroups"
EVENTS = "/apis/events.k8s.io/v1/namespaces/default/events"
TOLERATE = [{"key": "a", "operator": "Exists", "effect": "NoSchedule"}]
RECORDS = "/api/v1/namespaces/placer/configmaps"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/placer/leases"
#: About as much as all annotations of an object may have.
LONG = "x" * 250_000
SCHEDULED = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
OWNER = {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": "uid-of-owner"}


@dataclass(frozen=True)
class Attempt:
    """A request that changes nothing, since it is a dry run."""

    name: str
    method: str
    path: str
    body: Any = None
    kind: str = MERGE

    def status(self, api: Api) -> int:
        """The answer of the server: 200 where it would do it."""
        mark = "&" if "?" in self.path else "?"
        body = self.body
        if self.method == "PUT":
            version = api.get(self.path)["metadata"]["resourceVersion"]
            body = {**body, "metadata": {**body["metadata"], "resourceVersion": version}}
        try:
            api.call(self.method, f"{self.path}{mark}dryRun=All", body, self.kind)
        except Refused as refusal:
            return refusal.status
        return 200


def patched(name: str, pod: str, body: Document) -> Attempt:
    return Attempt(f"{pod}: {name}", "PATCH", f"{PODS}/{pod}", body, STRATEGIC_MERGE)


def status_of(name: str, pod: str, status: Document) -> Attempt:
    return Attempt(f"{pod}: status {name}", "PATCH", f"{PODS}/{pod}/status", {"status": status}, STRATEGIC_MERGE)


def image(of: str) -> Document:
    return {"spec": {"containers": [{"name": "main", "image": of}]}}


def condition(kind: str, status: str) -> Document:
    return {"conditions": [{"type": kind, "status": status, "reason": "Forged", "message": "forged"}]}


def binding(pod: str, **metadata: Any) -> Document:
    target = {"apiVersion": "v1", "kind": "Node", "name": "n1"}
    return {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": pod, **metadata}, "target": target}


def event(controller: str, **metadata: Any) -> Document:
    return {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"name": "forged", "namespace": "default", **metadata},
        "eventTime": "2026-11-27T12:00:00.000000Z",
        "reportingController": controller,
        "reportingInstance": "forged-1",
        "action": "Scheduling",
        "reason": "Forged",
        "type": "Normal",
        "regarding": {"apiVersion": "v1", "kind": "Pod", "namespace": "default", "name": "own"},
    }


def record(name: str = "placer-gangs", **metadata: Any) -> Document:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "placer", **metadata}}


def lease(name: str = "placer", **spec: Any) -> Document:
    held = {"holderIdentity": "me", "leaseDurationSeconds": 15, **spec}
    metadata = {"name": name, "namespace": "placer"}
    return {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata, "spec": held}


def group_condition(kind: str) -> Document:
    one = {"type": kind, "status": "False", "reason": "x", "message": "", "lastTransitionTime": "2026-11-27T12:00:00Z"}
    return {"status": {"conditions": [one]}}


ONE_NODE = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]}
PINNED = {
    "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [ONE_NODE]}}}
}
SOFT = {
    "affinity": {
        "nodeAffinity": {
            "preferredDuringSchedulingIgnoredDuringExecution": [
                {"weight": 1, "preference": {"matchExpressions": [{"key": "a", "operator": "Exists"}]}}
            ]
        }
    }
}
FREED = {"schedulingGates": None}
SWAPPED = [{"op": "replace", "path": "/spec/containers/0/image", "value": "evil:1"}]


def to(fields: Document, **metadata: Any) -> Document:
    return {"spec": fields} | ({"metadata": metadata} if metadata else {})


#: Requests that placer's token may make by RBAC, and must not.
TAKEN = [
    patched("image", "other", image("evil:1")),
    patched("image", "held", image("evil:1")),
    patched("tolerations", "held", to({"tolerations": TOLERATE})),
    patched("node selector", "held", to({"nodeSelector": {"a": "b"}})),
    patched("soft affinity", "held", to(SOFT)),
    patched("labels", "held", {"metadata": {"labels": {"a": "b"}}}),
    patched("labels", "own", {"metadata": {"labels": {"a": "b"}}}),
    patched("annotations", "held", {"metadata": {"annotations": {"a": "b"}}}),
    patched("an annotation less", "held", {"metadata": {"annotations": {"kept": None}}}),
    patched("finalizers", "held", {"metadata": {"finalizers": ["example.com/never"]}}),
    patched("owners", "held", {"metadata": {"ownerReferences": [OWNER]}}),
    Attempt("held: freed for no node", "PATCH", f"{PODS}/held", to(FREED)),
    Attempt("twice: freed of another's gate", "PATCH", f"{PODS}/twice", to(FREED | PINNED)),
    Attempt("other: image by JSON patch", "PATCH", f"{PODS}/other", SWAPPED, "application/json-patch+json"),
    status_of("podIP", "own", {"podIP": "10.1.2.3", "podIPs": [{"ip": "10.1.2.3"}]}),
    status_of("podIP", "other", {"podIP": "10.1.2.3", "podIPs": [{"ip": "10.1.2.3"}]}),
    status_of("hostIP", "own", {"hostIP": "10.1.2.3", "hostIPs": [{"ip": "10.1.2.3"}]}),
    status_of("Failed", "own", {"phase": "Failed"}),
    status_of("Failed", "running", {"phase": "Failed"}),
    status_of("Succeeded", "other", {"phase": "Succeeded"}),
    status_of("reason", "own", {"reason": "OutOfcpu"}),
    status_of("message", "own", {"message": "forged"}),
    status_of("start", "own", {"startTime": "2026-11-27T12:00:00Z"}),
    status_of("Ready", "own", condition("Ready", "True")),
    status_of("Ready", "running", condition("Ready", "False")),
    status_of("gone Ready", "running", {"conditions": [{"$patch": "delete", "type": "Ready"}]}),
    status_of("PodScheduled", "own", condition("PodScheduled", "True")),
    status_of("PodScheduled", "running", condition("PodScheduled", "False")),
    status_of("PodScheduled", "other", condition("PodScheduled", "False")),
    status_of("nomination", "other", {"nominatedNodeName": "n1"}),
    Attempt("other: deleted", "DELETE", f"{PODS}/other"),
    Attempt("held: deleted", "DELETE", f"{PODS}/held"),
    Attempt("daemon: deleted", "DELETE", f"{PODS}/daemon"),
    Attempt(
        "own: bound with an annotation", "POST", f"{PODS}/own/binding", binding("own", annotations={"a": "b"}), JSON
    ),
    Attempt("own: bound with a label", "POST", f"{PODS}/own/binding", binding("own", labels={"a": "b"}), JSON),
    Attempt("Volcano: spec", "PATCH", f"{VOLCANO}/train", {"spec": {"minMember": 1}}),
    Attempt("Volcano: queue", "PATCH", f"{VOLCANO}/train", {"spec": {"queue": "rich"}}),
    Attempt("Volcano: labels", "PATCH", f"{VOLCANO}/train", {"metadata": {"labels": {"a": "b"}}}),
    Attempt("Volcano: annotations", "PATCH", f"{VOLCANO}/train", {"metadata": {"annotations": {"a": "b"}}}),
    Attempt("Volcano: owners", "PATCH", f"{VOLCANO}/train", {"metadata": {"ownerReferences": [OWNER]}}),
    Attempt("Volcano: finalizers", "PATCH", f"{VOLCANO}/train", {"metadata": {"finalizers": ["example.com/never"]}}),
    Attempt("PodGroup: condition", "PATCH", f"{UPSTREAM}/train/status", group_condition("DisruptionTarget")),
    Attempt("Event of another", "POST", EVENTS, event("kubelet"), JSON),
    Attempt("Event with a long annotation", "POST", EVENTS, event("placer", annotations={"a": LONG}), JSON),
    Attempt("Event with a long field", "POST", EVENTS, event("placer") | {"regarding": {"fieldPath": LONG}}, JSON),
    status_of("long message", "own", {"conditions": [SCHEDULED | {"message": LONG}]}),
    Attempt("Volcano: long message", "PATCH", f"{VOLCANO}/train", {"status": {"conditions": [{"message": LONG}]}}),
    Attempt("own: marked", "POST", f"{PODS}/own/binding", binding("own", annotations={"placer.dev/room": "n1"}), JSON),
    Attempt("running: deleted at once", "DELETE", f"{PODS}/running?gracePeriodSeconds=0"),
    Attempt("ConfigMap of any name", "POST", RECORDS, record("filler-1"), JSON),
    Attempt("record as ever it is", "PUT", f"{RECORDS}/placer-gangs", record() | {"immutable": True}, JSON),
    Attempt("record with labels", "PUT", f"{RECORDS}/placer-gangs", record(labels={"a": "b"}), JSON),
    Attempt("record held", "PUT", f"{RECORDS}/placer-gangs", record(finalizers=["example.com/never"]), JSON),
    Attempt("Lease of any name", "POST", LEASES, lease("filler-1"), JSON),
    Attempt("Lease for years", "PUT", f"{LEASES}/placer", lease(leaseDurationSeconds=2**31 - 1), JSON),
    Attempt("Lease for the last time", "PUT", f"{LEASES}/placer", lease(leaseTransitions=2**31 - 1), JSON),
    Attempt("Lease with a long holder", "PUT", f"{LEASES}/placer", lease(holderIdentity=LONG), JSON),
]
#: Requests that passes need, and that the policies let through.
LEFT = [
    Attempt("own: bound", "POST", f"{PODS}/own/binding", binding("own"), JSON),
    Attempt(
        "own: bound with zones",
        "POST",
        f"{PODS}/own/binding",
        binding("own", annotations={"placer.dev/numa-zones": "node-0"}),
        JSON,
    ),
    status_of("PodScheduled", "own", condition("PodScheduled", "False")),
    status_of("PodScheduled", "held", condition("PodScheduled", "False")),
    status_of("nomination", "own", {"nominatedNodeName": "n1"}),
    status_of("nomination", "held", {"nominatedNodeName": "n1"}),
    status_of("no nomination", "running", {"nominatedNodeName": None}),
    Attempt("held: released", "PATCH", f"{PODS}/held", to(FREED | PINNED)),
    Attempt(
        "held: released with zones",
        "PATCH",
        f"{PODS}/held",
        to(FREED | PINNED, annotations={"placer.dev/numa-zones": "node-0"}),
    ),
    Attempt("own: deleted", "DELETE", f"{PODS}/own"),
    Attempt("running: deleted", "DELETE", f"{PODS}/running"),
    Attempt("released: deleted", "DELETE", f"{PODS}/released"),
    Attempt("Volcano: status", "PATCH", f"{VOLCANO}/train", {"status": {"phase": "Inqueue"}}),
    Attempt("PodGroup: scheduled", "PATCH", f"{UPSTREAM}/train/status", group_condition("PodGroupInitiallyScheduled")),
    Attempt("Event", "POST", EVENTS, event("placer"), JSON),
    Attempt("record", "PUT", f"{RECORDS}/placer-gangs", record(), JSON),
    Attempt("Lease", "PUT", f"{LEASES}/placer", lease(), JSON),
]


def things() -> Iterator[Document]:
    """A pod of each kind, and gangs."""
    yield node("n1")
    yield from (record(), lease())
    yield from (pod_group("train", minMember=2), upstream(name="train", **upstream_gang(2)))
    yield live_pod("own", cpu=1)
    yield live_pod("running", node="n1", cpu=1, status={"phase": "Running", **condition("Ready", "True")})
    yield live_pod("other", scheduler="default-scheduler", cpu=1)
    yield held(live_pod("held", cpu=1, metadata={"annotations": {"kept": "yes"}}))
    yield held(live_pod("twice", cpu=1), "example.com/quota")
    yield live_pod("released", scheduler="default-scheduler", cpu=1, spec=PINNED)
    owner = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "agent", "uid": "uid-of-agent", "controller": True}
    yield live_pod("daemon", scheduler="default-scheduler", cpu=1, spec=PINNED, metadata={"ownerReferences": [owner]})


def apply_all(deployed: Deployed, *folders: str, policies: bool = True) -> None:
    """Apply folders; without ``policies``, all but these."""
    for folder in folders:
        found = [each for each in yaml.safe_load_all(deployed.kubectl("kustomize", str(DEPLOY / folder))) if each]
        kept = [each for each in found if policies or not each["kind"].startswith(POLICIES)]
        deployed.kubectl("apply", "-f", "-", text=yaml.safe_dump_all(kept))
    deployed.wait()


def in_force(api: Api, attempts: Iterable[Attempt]) -> None:
    """Wait until each of some attempts is refused by a policy: one comes into force within seconds."""
    for each in attempts:
        wait_until(partial(_is_refused, api, each), f"a policy against {each.name}")


def _is_refused(api: Api, attempt: Attempt) -> bool:
    return attempt.status(api) == 422


def test_the_token_can_do_what_passes_do_and_no_more(deployed: Deployed) -> None:
    apply_all(deployed, "crds", GATES, policies=False)
    deployed.api.create(*things())
    placer = deployed.as_account("placer")
    assert {each.name: each.status(placer) for each in (*TAKEN, *LEFT)} == {each.name: 200 for each in (*TAKEN, *LEFT)}
    apply_all(deployed, GATES)
    in_force(placer, TAKEN)
    assert {each.name: each.status(placer) for each in LEFT} == {each.name: 200 for each in LEFT}
    # Nobody else is kept from anything.
    assert {each.name for each in TAKEN if each.status(deployed.api) != 200} == set()


# ------------------------------------------------------------------------------------------------------- of tenants


CLASS = {"priorityClassName": "placer"}
TEMPLATES = [{"name": "workers", "schedulingPolicy": {"basic": {}}, **CLASS}]
OURS = "/api/v1/namespaces/placer/pods"
#: Objects that name the class of placer's own passes.
RANKS = [
    Attempt("pod", "POST", PODS, live_pod("p", spec=CLASS), JSON),
    Attempt("Volcano's gang", "POST", VOLCANO, pod_group("g", minMember=1, **CLASS), JSON),
    Attempt("Volcano's gang, changed", "PATCH", f"{VOLCANO}/train", to(CLASS)),
    Attempt("Kubernetes' gang", "POST", UPSTREAM, upstream(**upstream_gang(1), **CLASS), JSON),
    Attempt(
        "Kubernetes' Workload",
        "POST",
        "/apis/scheduling.k8s.io/v1beta1/namespaces/default/workloads",
        upstream("Workload", podGroupTemplates=TEMPLATES),
        JSON,
    ),
]


def test_the_class_of_passes_is_for_passes(deployed: Deployed) -> None:
    """A tenant under a quota on all classes that there were has this one, too, but for the policy."""
    apply_all(deployed, "crds", "base", policies=False)
    deployed.api.create(pod_group("train", minMember=2))
    assert {each.name: each.status(deployed.api) for each in RANKS} == {each.name: 200 for each in RANKS}
    apply_all(deployed, "base")
    in_force(deployed.api, RANKS)
    deployed.api.create(priority_class("other", 10))
    for spec in ({}, {"priorityClassName": "other"}):
        assert Attempt("pod", "POST", PODS, live_pod("p", spec=spec), JSON).status(deployed.api) == 200
    own = yaml.safe_load((DEPLOY / "base" / "cron-job.yaml").read_text())["spec"]["jobTemplate"]["spec"]["template"]
    spec = {**own["spec"], "automountServiceAccountToken": False}
    made = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "pass", "namespace": "placer"}, "spec": spec}
    assert Attempt("pass", "POST", OURS, made, JSON).status(deployed.api) == 200


# ---------------------------------------------------------------------------------- passes work as without policies


@pytest.fixture
def kept(deployed: Deployed, passes: Passes) -> Callable[..., None]:
    """Has passes made by placer's account, with an overlay and all its policies in force."""
    probes = [each for each in TAKEN if each.name in ("other: status podIP", "other: deleted", "Volcano: spec")]
    image_of = [each for each in TAKEN if each.name == "other: image"]

    def work(folder: str, url: str | None = None) -> None:
        deployed.apply(folder)
        deployed.api.create(live_pod("other", scheduler="nobody"), pod_group("train", minMember=2))
        in_force(deployed.as_account("placer"), [*probes, *(image_of if folder == GATES else ())])
        for path in (f"{PODS}/other", f"{VOLCANO}/train"):
            deployed.api.delete(path)
        passes.config = deployed.kubeconfig("placer", url)

    return work


def test_gangs_are_bound_and_status_of(kept: Callable[..., None], passes: Passes, cluster: Api) -> None:
    kept("base")
    own = {"spec": {"schedulingGroup": {"podGroupName": "up"}}}
    cluster.create(node("n1"), *gang("a", 2), upstream(name="up", **upstream_gang(2)))
    cluster.create(*(live_pod(f"up-{number}", cpu=1, **own) for number in range(2)), *gang("large", 2, cpu=100))
    done = passes()
    assert (done["bound"], done["told"]["troubles"]) == (4, [])
    assert (done["told"]["conditions"], done["told"]["groups"]) == (2, 3)
    assert cluster.get(f"{VOLCANO}/a")["status"]["phase"] == "Running"
    assert cluster.get(f"{UPSTREAM}/up")["status"]["conditions"][0]["status"] == "True"


@pytest.mark.usefixtures("lasting_lease")
def test_room_is_made(kept: Callable[..., None], passes: Passes, cluster: Api) -> None:
    kept("overlays/disruption")
    cluster.install([POLICY_KIND])
    controllers = Controllers(cluster, full(cluster))
    allowed(cluster, evict="lower-priority")
    with controllers.running():
        done = Run(passes)()
    assert sorted(done["disruption"]["evicted"]) == ["default/eval0-0", "default/eval0-1"]
    assert (done["disruption"]["trouble"], done["told"]["troubles"]) == (None, [])
    assert {"train-0", "train-1"} <= bound(cluster).keys()
