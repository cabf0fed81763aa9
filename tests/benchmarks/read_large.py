"""How long a large instance takes to read, beside what ``orjson`` takes for the same text.

The text is what ``kubectl get nodes,pods -A -o json`` prints: indented by four, with managedFields and status, about
15 kB per pod. Each way runs in a process of its own; memory is its peak beyond what it had with the text in hand.

    python tests/benchmarks/read_large.py --nodes 5000 --pods 55000
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import resource
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

TIME = "2026-03-01T08:{:02d}:{:02d}Z"
STARTED = {"reason": "Started", "image": "registry.example.org/team/worker:1.4.2"}


def node(index: int) -> dict[str, Any]:
    """One node of eight GPUs as the API server stores it."""
    room = {
        "cpu": "126",
        "ephemeral-storage": "948584Mi",
        "hugepages-1Gi": "0",
        "hugepages-2Mi": "0",
        "memory": "1031742Mi",
        "nvidia.com/gpu": "8",
        "pods": "110",
    }
    labels = {
        "beta.kubernetes.io/arch": "amd64",
        "beta.kubernetes.io/os": "linux",
        "kubernetes.io/arch": "amd64",
        "kubernetes.io/hostname": f"node-{index:05d}",
        "kubernetes.io/os": "linux",
        "node.kubernetes.io/instance-type": "gpu-8",
        "topology.kubernetes.io/region": "region-1",
        "topology.kubernetes.io/zone": f"zone-{index // 1000}",
        "network.example.org/rack": f"rack-{index // 16}",
    }
    conditions = [
        {
            "lastHeartbeatTime": TIME.format(index % 60, 1),
            "lastTransitionTime": TIME.format(1, 2),
            "message": f"kubelet has sufficient {kind} available",
            "reason": f"KubeletHas{kind}",
            "status": "False",
            "type": kind,
        }
        for kind in ("MemoryPressure", "DiskPressure", "PIDPressure")
    ]
    conditions.append(
        {"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "kubelet is posting ready status"}
    )
    images = [
        {
            "names": [
                f"registry.example.org/team/image-{n}@sha256:{n:064x}",
                f"registry.example.org/team/image-{n}:1.{n}",
            ],
            "sizeBytes": n,
        }
        for n in range(30)
    ]
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "annotations": {
                "node.alpha.kubernetes.io/ttl": "0",
                "volumes.kubernetes.io/controller-managed-attach-detach": "true",
            },
            "creationTimestamp": TIME.format(0, 0),
            "labels": labels,
            "name": f"node-{index:05d}",
            "resourceVersion": str(10**6 + index),
            "uid": f"00000000-0000-4000-8000-{index:012d}",
            "managedFields": [managed("kubelet", {f"f:{key}": {} for key in labels})],
        },
        "spec": {"podCIDR": f"10.{index // 256}.{index % 256}.0/24", "providerID": f"example://{index}"},
        "status": {
            "addresses": [{"address": f"10.0.{index // 256}.{index % 256}", "type": "InternalIP"}],
            "allocatable": room,
            "capacity": room | {"cpu": "128"},
            "conditions": conditions,
            "images": images,
            "nodeInfo": {
                "architecture": "amd64",
                "kernelVersion": "6.8.0",
                "kubeletVersion": "v1.35.1",
                "osImage": "Linux",
            },
        },
    }


def managed(manager: str, fields: dict[str, Any]) -> dict[str, Any]:
    """One entry of managedFields: who wrote which fields."""
    return {
        "apiVersion": "v1",
        "fieldsType": "FieldsV1",
        "fieldsV1": {"f:metadata": {"f:labels": {".": {}, **fields}}},
        "manager": manager,
        "operation": "Update",
        "time": TIME.format(2, 3),
    }


def container(name: str, gpus: int) -> dict[str, Any]:
    """One container with what a template of a training job usually says."""
    amount = {"cpu": str(4 * gpus or 1), "memory": f"{32 * gpus or 1}Gi"}
    if gpus:
        amount["nvidia.com/gpu"] = str(gpus)
    return {
        "args": ["--config=/etc/job/config.yaml", "--epochs=90", "--checkpoint=/data/checkpoints", f"--name={name}"],
        "command": ["python", "-m", "trainer.main"],
        "env": [
            {"name": f"SETTING_{n}", "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.name"}}}
            if n % 2
            else {"name": f"SETTING_{n}", "value": f"value-{n}"}
            for n in range(2)
        ],
        "image": "registry.example.org/team/worker:1.4.2",
        "imagePullPolicy": "IfNotPresent",
        "livenessProbe": {
            "failureThreshold": 3,
            "httpGet": {"path": "/healthz", "port": 8080, "scheme": "HTTP"},
            "periodSeconds": 10,
        },
        "name": name,
        "ports": [{"containerPort": 8080, "name": "metrics", "protocol": "TCP"}],
        "resources": {"limits": amount, "requests": amount},
        "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
        "terminationMessagePath": "/dev/termination-log",
        "terminationMessagePolicy": "File",
        "volumeMounts": [{"mountPath": f"/data/{n}", "name": f"volume-{n}"} for n in range(4)]
        + [{"mountPath": "/var/run/secrets/kubernetes.io/serviceaccount", "name": "kube-api-access", "readOnly": True}],
    }


def pod(index: int, nodes: int) -> dict[str, Any]:
    """One pod of a Volcano job; one in eleven is still pending."""
    job, rank = divmod(index, 64)
    pending = index % 11 == 0
    labels = {
        "app.kubernetes.io/name": "trainer",
        "app.kubernetes.io/instance": f"train-{job}",
        "volcano.sh/job-name": f"train-{job}",
        "volcano.sh/job-namespace": "research",
        "volcano.sh/queue-name": f"queue-{job % 7}",
        "volcano.sh/task-index": str(rank),
        "volcano.sh/task-spec": "worker",
        "volcano.sh/partition-id": str(rank // 8),
    }
    conditions = [
        {"lastProbeTime": None, "lastTransitionTime": TIME.format(job % 60, rank % 60), "status": "True", "type": kind}
        for kind in ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled")
    ]
    statuses = [
        {
            "allocatedResources": {"cpu": "4", "memory": "32Gi", "nvidia.com/gpu": "1"}
            if name == "worker"
            else {"cpu": "1", "memory": "1Gi"},
            "containerID": f"containerd://{index:064x}",
            "image": "registry.example.org/team/worker:1.4.2",
            "imageID": f"registry.example.org/team/worker@sha256:{7:064x}",
            "lastState": {},
            "name": name,
            "ready": True,
            "restartCount": 0,
            "started": True,
            "state": {"running": {"startedAt": TIME.format(4, 5)}},
        }
        for name in ("worker", "sidecar")
    ]
    status: dict[str, Any] = {"phase": "Pending", "qosClass": "Guaranteed"}
    spec: dict[str, Any] = {}
    if not pending:
        spec = {"nodeName": f"node-{index % nodes:05d}"}
        status = {
            "conditions": conditions,
            "containerStatuses": statuses,
            "hostIP": "10.0.0.1",
            "phase": "Running",
            "podIP": f"10.{index // 65536}.{index // 256 % 256}.{index % 256}",
            "qosClass": "Guaranteed",
            "startTime": TIME.format(3, rank % 60),
        }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "annotations": {
                "scheduling.k8s.io/group-name": f"train-{job}",
                "volcano.sh/job-name": f"train-{job}",
                "volcano.sh/queue-name": f"queue-{job % 7}",
                "volcano.sh/task-index": str(rank),
                "volcano.sh/task-spec": "worker",
                "volcano.sh/template-uid": f"train-{job}-worker",
            },
            "creationTimestamp": TIME.format(job % 60, 0),
            "labels": labels,
            "managedFields": [
                managed(
                    "vc-controller-manager",
                    {f"f:{key}": {} for key in labels},
                ),
                managed(
                    "kubelet", {f'k:{{"type":"{entry["type"]}"}}': {".": {}, "f:status": {}} for entry in conditions}
                ),
            ],
            "name": f"train-{job}-worker-{rank}",
            "namespace": "research",
            "ownerReferences": [
                {
                    "apiVersion": "batch.volcano.sh/v1alpha1",
                    "blockOwnerDeletion": True,
                    "controller": True,
                    "kind": "Job",
                    "name": f"train-{job}",
                    "uid": f"00000000-0000-4000-9000-{job:012d}",
                }
            ],
            "resourceVersion": str(2 * 10**6 + index),
            "uid": f"00000000-0000-4000-a000-{index:012d}",
        },
        "spec": {
            "containers": [container("worker", 1), container("sidecar", 0)],
            "dnsPolicy": "ClusterFirst",
            "enableServiceLinks": True,
            "preemptionPolicy": "PreemptLowerPriority",
            "priority": 1000,
            "restartPolicy": "Never",
            "schedulerName": "placer",
            "securityContext": {"fsGroup": 1000},
            "serviceAccount": "default",
            "terminationGracePeriodSeconds": 30,
            "tolerations": [
                {
                    "effect": "NoExecute",
                    "key": f"node.kubernetes.io/{key}",
                    "operator": "Exists",
                    "tolerationSeconds": 300,
                }
                for key in ("not-ready", "unreachable")
            ],
            "volumes": [
                {"configMap": {"defaultMode": 420, "name": f"config-{n}"}, "name": f"volume-{n}"} for n in range(2)
            ]
            + [
                {
                    "name": "kube-api-access",
                    "projected": {"defaultMode": 420, "sources": [{"serviceAccountToken": {"path": "token"}}]},
                }
            ],
            **spec,
        },
        "status": status,
    }


def text_of(nodes: int, pods: int) -> Iterator[bytes]:
    """The List as kubectl prints it, piece by piece."""
    yield b'{\n    "apiVersion": "v1",\n    "items": [\n'
    total = nodes + pods
    for index in range(total):
        item = node(index) if index < nodes else pod(index - nodes, nodes)
        lines = json.dumps(item, indent=4).replace("\n", "\n        ")
        yield f"        {lines}{',' if index + 1 < total else ''}\n".encode()
    yield b'    ],\n    "kind": "List",\n    "metadata": {\n        "resourceVersion": ""\n    }\n}\n'


def with_orjson(path: Path) -> Callable[[], object]:
    """Everything as Python values, the yardstick."""
    import orjson

    text = path.read_bytes()
    return lambda: orjson.loads(text)


def with_placer(path: Path) -> Callable[[], object]:
    """Our own way, from the text in hand to typed objects."""
    from placer.kube import manifests

    texts = manifests.read_texts([path])
    return lambda: manifests.validate(manifests.split(texts))


def measured(way: Callable[[Path], Callable[[], object]], path: Path) -> tuple[float, float]:
    """Seconds and MiB beyond the text of one way, in a process of its own."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(_measure, (way, path))


def _measure(way: Callable[[Path], Callable[[], object]], path: Path) -> tuple[float, float]:
    work = way(path)
    before = peak()
    start = time.perf_counter()
    kept = work()
    seconds = time.perf_counter() - start
    grown = peak() - before
    del kept
    return seconds, grown


def peak() -> float:
    """Most memory this process ever had, in MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main() -> None:
    """Write the text, run both ways, print one line each."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nodes", type=int, default=500)
    parser.add_argument("--pods", type=int, default=5500)
    parser.add_argument("--keep", type=Path, help="write the text here and leave it")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = options.keep or Path(folder) / "cluster.json"
        if not path.exists():
            with path.open("wb") as file:
                file.writelines(text_of(options.nodes, options.pods))
        print(f"{options.nodes} nodes, {options.pods} pods, {path.stat().st_size / 2**20:.0f} MiB of text")
        yardstick, memory = measured(with_orjson, path)
        print(f"orjson {yardstick:7.2f} s, {memory:6.0f} MiB beyond the text")
        seconds, memory = measured(with_placer, path)
        print(f"placer {seconds:7.2f} s, {memory:6.0f} MiB beyond the text, {seconds / yardstick:.2f} times orjson")


if __name__ == "__main__":
    main()
