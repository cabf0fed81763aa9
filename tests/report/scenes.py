"""What the page is shown with: a small cluster in which a gang runs, one is placed, one waits; hostile names; size."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from placer.base.quantity import Resources
from placer.problem import Constraints, Group, GroupKey, HyperNode, Instance, Key, Node, Pod, PodState, TopologyTree
from tests.support import Document, hyper_node, node, pod, pod_group, queue

__all__ = ["HOSTILE", "UNREADABLE", "busy", "crowded", "fleet", "hostile", "large", "write"]

#: Names that mean something to a parser of HTML, of JSON or of text, or to the eye.
HOSTILE = (
    "</script><img src=x onerror=window.hacked=1>",
    "<svg onload=window.hacked=1>",
    "\"'><b>bold</b>&amp;{{script}}",
    "</style><style>*{display:none}",
    "\u202egnp.exe\u2066\u200b",
    "line\u2028break\u2029",
    "-->]]><!--",
    "__proto__",
    "a" * 253,
    "名前\U0001f600",
)

#: A name with control characters, which reading refuses; a page made from other data shows it all the same.
UNREADABLE = "a\ttab\x07a bell\x00nothing\ud800half"


def fleet() -> list[Document]:
    """Three leaves of four nodes of 8 GPUs below a spine; leaf-3 has a fifth one, which is cordoned.

    Gang runs holds leaf-1. Gang x, which wants one leaf, fits leaf-2 or leaf-3; gang y asks for 5 pods of 8 GPUs within
    one leaf, which no leaf has.
    """
    names = {f"leaf-{leaf}": tuple(f"n{leaf}{index}" for index in range(4)) for leaf in (1, 2, 3)}
    with_closed = names | {"leaf-3": (*names["leaf-3"], "n34")}
    near = {"mode": "hard", "highestTierAllowed": 1}
    return [
        *(node(name, cpu=32, memory="64Gi", gpu=8, pods=20) for each in names.values() for name in each),
        {**node("n34", cpu=32, memory="64Gi", gpu=8, pods=20), "spec": {"unschedulable": True}},
        *(hyper_node(leaf, 1, nodes=each, tier_name="rack") for leaf, each in with_closed.items()),
        hyper_node("spine", 2, children=tuple(names)),
        queue("research", {"gpu": 80}),
        pod_group("runs", minMember=4, queue="research", networkTopology=near),
        *(pod(f"runs-{index}", group="runs", node=f"n1{index}", gpu=8, cpu=8) for index in range(4)),
        pod_group("x", minMember=3, queue="research", networkTopology=near),
        *(pod(f"x-{index}", group="x", gpu=4, cpu=8) for index in range(3)),
        pod_group("y", minMember=5, queue="research", networkTopology=near),
        *(pod(f"y-{index}", group="y", gpu=8, cpu=8) for index in range(5)),
        pod("alone", node="n20", cpu=30, memory="1Gi"),
    ]


def crowded() -> tuple[list[Document], Document]:
    """Three full nodes of 8 GPUs and two pods that need one each, and a placement that disturbs what runs for them.

    ``low`` is evicted from a; one pod of 4 GPUs moves from b to the other on c.
    """
    kept = {
        "metadata": {
            "ownerReferences": [
                {"apiVersion": "batch/v1", "kind": "Job", "name": "web", "uid": "w", "controller": True}
            ]
        }
    }
    things = [
        *(node(name, cpu=32, memory="64Gi", gpu=8, pods=20) for name in ("a", "b", "c")),
        pod_group("low", minMember=1),
        pod("low-0", group="low", node="a", gpu=8, spec={"priority": 1}, **kept),
        *(pod(f"half-{name}", node=name, gpu=4, spec={"priority": 1}, **kept) for name in ("b", "c")),
        *(pod(f"high-{index}", gpu=8, spec={"priority": 5}) for index in range(2)),
    ]
    placement = {
        "apiVersion": "placer.dev/v1alpha1",
        "kind": "Placement",
        "bindings": [{"namespace": "default", "pod": f"high-{index}", "node": "ab"[index]} for index in range(2)],
        "evictions": [
            {"namespace": "default", "pod": "low-0", "node": "a", "unit": "PodGroup/default/low", "priority": 1}
        ],
        "moves": [{"namespace": "default", "pod": "half-b", "from": "b", "to": "c", "unit": "Pod/default/half-b"}],
        "steps": [
            {"go": ["default/half-b"], "bind": ["default/half-b"]},
            {"go": ["default/low-0"], "bind": ["default/high-0", "default/high-1"]},
        ],
    }
    return things, placement


#: Of :func:`busy`: namespace, queue, name, priority, pods and GPUs of each, hours ago; those that run come first.
RUNNING = (
    ("research", "research", "llm-7b-pretrain", 500, 16, 8, 310),
    ("research", "research", "moe-sweep", 300, 12, 8, 75),
    ("vision", "vision", "vit-large", 300, 8, 8, 52),
    ("vision", "vision", "detector", 200, 10, 4, 44),
    ("speech", "speech", "asr-train", 300, 8, 8, 90),
    ("speech", "speech", "tts-tune", 200, 6, 4, 30),
    ("serving", "serving", "chat-prod", 900, 24, 2, 700),
    ("serving", "serving", "embed-prod", 900, 20, 1, 650),
    ("research", "research", "evals", 100, 18, 2, 9),
)
WAITING = (
    ("research", "research", "llm-70b-pretrain", 500, 16, 8, 20),
    ("vision", "vision", "world-model", 300, 8, 8, 15),
    ("speech", "speech", "codec", 300, 4, 8, 12),
    ("research", "research", "reward-model", 300, 6, 4, 7),
    ("vision", "vision", "segmenter", 200, 8, 4, 6),
    *(("research", "research", f"ablation-{index:02}", 100, 4, 8, 40 - index) for index in range(7)),
    ("vision", "vision", "one-rack", 400, 8, 8, 5),
)


def busy(moment: float = 1_795_788_180) -> list[Document]:
    """96 nodes of 8 GPUs, tainted as usual, in 12 racks below 3 spines; teams that run, and jobs that wait.

    One node is cordoned and one is not Ready. A random stream with a fixed seed says which nodes a group is on.
    """
    draw = random.Random(5)
    names = {
        f"s{rack // 4}-r{rack:02}": [f"s{rack // 4}-r{rack:02}-n{index}" for index in range(8)] for rack in range(12)
    }
    taint = {"spec": {"taints": [{"key": "nvidia.com/gpu", "value": "", "effect": "NoSchedule"}]}}
    tolerates = {"spec": {"tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists"}]}}
    nodes = {
        name: {**node(name, cpu=96, memory="1Ti", gpu=8, pods=60), **taint} for rack in names.values() for name in rack
    }
    nodes["s1-r05-n3"]["spec"] = {**taint["spec"], "unschedulable": True}
    nodes["s2-r10-n6"]["status"]["conditions"] = [{"type": "Ready", "status": "False"}]
    things: list[Document] = [*nodes.values()]
    things += [hyper_node(rack, 1, nodes=tuple(each), tier_name="rack") for rack, each in names.items()]
    spines = {f"spine-{index}": tuple(rack for rack in names if rack.startswith(f"s{index}")) for index in range(3)}
    things += [hyper_node(name, 2, children=racks, tier_name="spine") for name, racks in spines.items()]
    things += [queue(name, {"nvidia.com/gpu": 400}) for name in ("research", "vision", "speech", "serving")]
    owner = {"apiVersion": "batch/v1", "kind": "Job", "controller": True}
    left = {name: 8 for name in nodes if name not in ("s1-r05-n3", "s2-r10-n6")}
    racks = list(names)
    for job, (namespace, of, name, priority, pods, gpus, hours) in enumerate((*RUNNING, *WAITING)):
        runs, near = job < len(RUNNING), {"mode": "hard", "highestTierAllowed": 1 if name == "one-rack" else 3}
        made = {"creationTimestamp": datetime.fromtimestamp(moment - 3600 * hours, UTC).isoformat()}
        group = pod_group(name, namespace=namespace, minMember=pods, queue=of, networkTopology=near)
        group["metadata"] |= made
        things.append(group)
        first = draw.randrange(len(racks)) if gpus < 8 else 3 * job % len(racks)
        order = [each for rack in racks[first:] + racks[:first] for each in names[rack]]
        if gpus < 4:
            draw.shuffle(order)
        for index in range(pods):
            on = next(each for each in order if left.get(each, 0) >= gpus) if runs else None
            if on is not None:
                left[on] -= gpus
            spec = {"spec": {"priority": priority, **tolerates["spec"]}}
            one = pod(f"{name}-{index}", namespace=namespace, group=name, node=on, gpu=gpus, cpu=10 * gpus, **spec)
            one["metadata"] |= made | {"ownerReferences": [owner | {"name": name, "uid": name}]}
            things.append(one)
    return things


def hostile() -> list[Document]:
    """A cluster in which everything that has a name has one of :data:`HOSTILE`."""
    return [
        *(node(name, cpu=8, gpu=4) for name in HOSTILE),
        *(hyper_node(name, 1, nodes=(name,), tier_name=name) for name in HOSTILE),
        *(queue(name, {"gpu": 4}) for name in HOSTILE),
        *(pod_group(name, namespace=name, minMember=2, queue=name) for name in HOSTILE),
        *(pod(f"{name[:200]}-0", namespace=name, group=name, gpu=9) for name in HOSTILE),
        *(pod(f"{name[:200]}-1", namespace=name, node=name, gpu=1) for name in HOSTILE),
    ]


def write(folder: Path, name: str, documents: Iterable[Mapping[str, Any]]) -> str:
    """Write an instance; the name of the file."""
    path = folder / f"{name}.json"
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": list(documents)}))
    return str(path)


def large(nodes: int, pods: int) -> Instance:
    """So many nodes, eight below a leaf and sixteen leaves below a spine, and so many pods, in gangs of eight.

    Nine in ten of the pods run. It is made without files, for reading takes most of the time.
    """
    names = [f"node-{index:05}.cluster.example.org" for index in range(nodes)]
    leaves, spines = -(-nodes // 8), -(-nodes // 128)
    domains = {
        **{
            f"leaf-{leaf}": HyperNode(
                f"leaf-{leaf}", 1, "", f"spine-{leaf // 16}", (), tuple(names[leaf * 8 : leaf * 8 + 8])
            )
            for leaf in range(leaves)
        },
        **{
            f"spine-{spine}": HyperNode(
                f"spine-{spine}",
                2,
                "",
                "core",
                tuple(f"leaf-{leaf}" for leaf in range(spine * 16, min(leaves, spine * 16 + 16))),
            )
            for spine in range(spines)
        },
        "core": HyperNode("core", 3, "", None, tuple(f"spine-{spine}" for spine in range(spines))),
    }
    room = Resources({"cpu": 96_000, "memory": 2**39, "nvidia.com/gpu": 16, "pods": 110})
    asked = Resources({"cpu": 6_000, "memory": 2**34, "nvidia.com/gpu": 1, "pods": 1})
    groups, all_pods = {}, {}
    for number in range(pods // 8):
        key = GroupKey("scheduling.volcano.sh", f"team-{number % 40}", f"training-job-{number:05}")
        members = tuple(Key(key.namespace, f"{key.name}-worker-{index}") for index in range(8))
        runs = number < pods * 9 // 80
        groups[key] = Group(key, 8, pending=() if runs else members, bound=members if runs else ())
        for index, member in enumerate(members):
            on = names[(number * 8 + index) % nodes] if runs else None
            state = PodState.BOUND if runs else PodState.PENDING
            all_pods[member] = Pod(*member, state, asked, Constraints(), node=on, group=key)
    return Instance(
        {name: Node(name, room, {}) for name in names},
        dict(sorted(all_pods.items())),
        dict(sorted(groups.items())),
        TopologyTree(domains, root_tier=4),
    )
