"""What tests of several rooms share: instances from small YAML texts, and the cases taken from Volcano."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from placer.kube.manifests import Objects, Text, from_documents, split, validate
from placer.problem import Instance
from placer.problem.instance_builder import make_instance

DATA = Path(__file__).parent / "data"

Document = Mapping[str, Any]


def objects_of(*docs: str | Document) -> Objects:
    """Objects as reading files gives them; a text may hold several YAML documents."""
    raws = [
        raw
        for number, doc in enumerate(docs)
        for raw in (split([Text(f"text-{number}", doc.encode())]) if isinstance(doc, str) else from_documents([doc]))
    ]
    return validate(raws)


def instance_of(*docs: str | Document, **options: Any) -> Instance:
    """The instance that the objects state; ``options`` are those of ``make_instance``."""
    return make_instance(objects_of(*docs), **options)


def node(name: str, labels: Mapping[str, str] | None = None, **allocatable: object) -> Document:
    """A ready node; without ``allocatable`` of 8 cpu, 32Gi and 110 pods. Write ``nvidia.com/gpu`` as ``gpu``."""
    amounts = _quantities({"cpu": 8, "memory": "32Gi", "pods": 110} | allocatable)
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, **(labels or {})}},
        "status": {"allocatable": amounts, "conditions": [{"type": "Ready", "status": "True"}]},
    }


def pod(
    name: str,
    *,
    group: str | None = None,
    node: str | None = None,
    namespace: str = "default",
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    spec: Mapping[str, Any] | None = None,
    metadata: Mapping[str, Any] | None = None,
    status: Mapping[str, Any] | None = None,
    **requests: object,
) -> Document:
    """A pod of one container, bound where ``node`` is given; ``group`` names a PodGroup of Volcano."""
    notes = dict(annotations or {}) | ({"scheduling.k8s.io/group-name": group} if group else {})
    container = {"name": "main", "resources": {"requests": _quantities(requests)}}
    body: dict[str, Any] = {"containers": [container], **(spec or {})}
    if node is not None:
        body["nodeName"] = node
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "labels": dict(labels or {}),
            "annotations": notes,
            **(metadata or {}),
        },
        "spec": body,
        "status": {"phase": "Pending" if node is None else "Running", **(status or {})},
    }


def pod_group(name: str, namespace: str = "default", **spec: Any) -> Document:
    """A PodGroup of Volcano; ``spec`` as it is written, such as ``minMember=2``."""
    return {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "PodGroup",
        "metadata": {"name": name, "namespace": namespace},
        "spec": spec,
    }


def hyper_node(
    name: str, tier: int, *, nodes: tuple[str, ...] = (), children: tuple[str, ...] = (), tier_name: str | None = None
) -> Document:
    """A HyperNode whose members are named one by one."""
    members = [_member("Node", each) for each in nodes] + [_member("HyperNode", each) for each in children]
    spec: dict[str, Any] = {"tier": tier, "members": members}
    if tier_name is not None:
        spec["tierName"] = tier_name
    return {
        "apiVersion": "topology.volcano.sh/v1alpha1",
        "kind": "HyperNode",
        "metadata": {"name": name},
        "spec": spec,
    }


def queue(name: str, capability: Mapping[str, object] | None = None, parent: str | None = None) -> Document:
    """An open queue of Volcano."""
    spec: dict[str, Any] = {} if capability is None else {"capability": _quantities(capability)}
    if parent is not None:
        spec["parent"] = parent
    return {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "Queue",
        "metadata": {"name": name},
        "spec": spec,
        "status": {"state": "Open"},
    }


def policy(**spec: Any) -> Document:
    """A Policy object."""
    return {"apiVersion": "placer.dev/v1alpha1", "kind": "Policy", "metadata": {"name": "default"}, "spec": spec}


@cache
def volcano_cases() -> Mapping[str, Document]:
    """The cases taken from Volcano's tests and issues, by id."""
    text = (DATA / "volcano_cases.yaml").read_text(encoding="utf-8")
    return {case["id"]: case for case in yaml.safe_load(text)["cases"]}


def volcano_case(name: str) -> Instance:
    """The instance of one case taken from Volcano; what must come of it is ``volcano_cases()[name]["expected"]``."""
    return instance_of(*case_documents(volcano_cases()[name]))


def case_documents(case: Document) -> list[Document]:
    """Kubernetes objects that state a case; its ``daemon`` is one pod of a DaemonSet on every node."""
    daemon = case.get("daemon")
    return [
        *(node(name, **amounts) for name, amounts in case["nodes"].items()),
        *(
            hyper_node(
                each["name"],
                each["tier"],
                nodes=tuple(each.get("nodes", ())),
                children=tuple(each.get("hypernodes", ())),
                tier_name=each.get("tierName"),
            )
            for each in case.get("hypernodes", ())
        ),
        *map(_case_group, case["podgroups"]),
        *(pod(f"daemon-{name}", node=name, metadata=_OF_DAEMON_SET, **daemon) for name in case["nodes"] if daemon),
        *map(_case_pod, case["pods"]),
    ]


_OF_DAEMON_SET = {
    "ownerReferences": [{"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "daemon", "controller": True}]
}


def _case_group(written: Document) -> Document:
    spec = {key: value for key, value in written.items() if key not in ("name", "priority")}
    if "minResources" in spec:
        spec["minResources"] = _quantities(spec["minResources"])
    return pod_group(written["name"], **spec)


def _case_pod(written: Document) -> Document:
    known = ("name", "pg", "node", "labels", "allowedNodes")
    allowed = written.get("allowedNodes")
    spec = None
    if allowed is not None:
        terms = [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": [name]}]} for name in allowed]
        required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
        spec = {"affinity": {"nodeAffinity": required}}
    return pod(
        written["name"],
        group=written.get("pg"),
        node=written.get("node"),
        labels=written.get("labels"),
        spec=spec,
        **{key: value for key, value in written.items() if key not in known},
    )


def _member(kind: str, name: str) -> Document:
    return {"type": kind, "selector": {"exactMatch": {"name": name}}}


def _quantities(amounts: Mapping[str, object]) -> dict[str, str]:
    return {"nvidia.com/gpu" if name == "gpu" else name: str(amount) for name, amount in amounts.items()}


def listing(text: str | bytes) -> Any:
    """The items of a list of placer's that a command printed as JSON; any other document as it is."""
    document = json.loads(text)
    is_list = isinstance(document, dict) and str(document.get("kind")).endswith("List") and "items" in document
    if is_list and document["apiVersion"] == "placer.dev/v1alpha1":
        return document["items"]
    return document
