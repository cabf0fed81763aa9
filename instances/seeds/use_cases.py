"""Make Volcano's use cases: one Job that fills much of a large cluster, in the zones of its network.

Use Case 1 is a Job of 3,000 or 5,000 pods with 8 GPUs each, all in one zone of tier 1 if one has the nodes, else in
one of tier 2. Use Case 2 is a Job of 3,000 pods with 16 NPUs each, in groups: a group must stay in one HCCS zone (hard,
tier 1), the Job as low as possible in HCCS, RoCE and VPC (soft, tiers 1, 2 and 3). The seed gives pods, devices and
networks; sizes of zones are assumptions, and options here. A node holds one pod. Some nodes run a pod of somebody else;
which ones is chance.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from placer.kube.manifests import dump
from placer.lab.generate.random_source import RandomSource

GPU, CX7, BF3 = "nvidia.com/gpu", "rdma/cx7", "rdma/bf3"
NPU = "huawei.com/Ascend910"
HCCS, ROCE, VPC = "example.com/hccs", "example.com/roce", "vpc"
#: What a node of Use Case 1 has (8 H100, 8 ConnectX-7, 1 BlueField-3), and one of Use Case 2.
H100 = {"cpu": "220", "memory": "1900Gi", GPU: "8", CX7: "8", BF3: "1", "pods": "110"}
ASCEND = {"cpu": "192", "memory": "1536Gi", NPU: "16", "pods": "110"}


def node(name: str, labels: dict[str, str], allocatable: dict[str, str]) -> dict[str, Any]:
    """Make a Node."""
    metadata = {"name": name, "labels": labels} if labels else {"name": name}
    return {"apiVersion": "v1", "kind": "Node", "metadata": metadata, "status": {"allocatable": allocatable}}


def hyper_node(name: str, tier: int, tier_name: str, members: list[dict[str, Any]]) -> dict[str, Any]:
    """Make a HyperNode."""
    return {
        "apiVersion": "topology.volcano.sh/v1alpha1",
        "kind": "HyperNode",
        "metadata": {"name": name},
        "spec": {"tier": tier, "tierName": tier_name, "members": members},
    }


def by_name(name: str) -> dict[str, Any]:
    """Name a HyperNode as member."""
    return {"type": "HyperNode", "selector": {"exactMatch": {"name": name}}}


def by_label(zone: str) -> dict[str, Any]:
    """Name the nodes of an HCCS zone as members, by their label."""
    return {"type": "Node", "selector": {"labelMatch": {"matchLabels": {HCCS: zone}}}}


def by_pattern(zone: str) -> dict[str, Any]:
    """Name the nodes of a zone as members, by the pattern of their names."""
    return {"type": "Node", "selector": {"regexMatch": {"pattern": f"^{zone}-[0-9]+$"}}}


def running(names: Sequence[str], limits: dict[str, str]) -> Iterator[dict[str, Any]]:
    """Pods of somebody else, one on each of these nodes."""
    for name in sorted(names):
        yield {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": f"serving-{name}", "namespace": "serving"},
            "spec": {"nodeName": name, "containers": [{"name": "main", "resources": {"requests": limits}}]},
            "status": {"phase": "Running"},
        }


def task(name: str, replicas: int, limits: dict[str, str], **fields: Any) -> dict[str, Any]:
    """Make a task of a Volcano Job."""
    container = {"name": "main", "resources": {"limits": limits}}
    return {"name": name, "replicas": replicas, **fields, "template": {"spec": {"containers": [container]}}}


def job(name: str, topology: dict[str, Any], tasks: list[dict[str, Any]], **fields: Any) -> dict[str, Any]:
    """Make a Volcano Job: a gang of all its pods."""
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "schedulerName": "volcano",
            "minAvailable": sum(each["replicas"] for each in tasks),
            "networkTopology": topology,
            **fields,
            "tasks": tasks,
        },
    }


# ----------------------------------------------------------------------------------------------------------- Use Case 1


def zones(options: argparse.Namespace) -> dict[str, dict[str, tuple[int, int]]]:
    """Each fabric's zones, with their nodes and how many of these are in use."""
    return {
        fabric: {
            f"{fabric}-{letter}": (nodes, busy) for letter, nodes, busy in zip("abcdef", sizes, in_use, strict=False)
        }
        for fabric, sizes, in_use in (("east", options.east, options.busy), ("west", options.west, [0] * 6))
    }


def use_case_1(options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Two fabrics of two zones, and a Job of PyTorch or MPI."""
    fabrics = zones(options)
    yield hyper_node("datacenter", 3, "datacenter", [by_name(fabric) for fabric in fabrics])
    for fabric, inside in fabrics.items():
        yield hyper_node(fabric, 2, "fabric", [by_name(zone) for zone in inside])
        for zone, (count, busy) in inside.items():
            yield hyper_node(zone, 1, "zone", [by_pattern(zone)])
            names = [f"{zone}-{number:04d}" for number in range(count)]
            yield from (node(name, {}, H100) for name in names)
            in_use = RandomSource(options.seed, f"busy {zone}").shuffled(names)[:busy]
            yield from running(in_use, {"cpu": "160", "memory": "1200Gi", GPU: "8", CX7: "8"})
    worker = {"cpu": "192", "memory": "1600Gi", GPU: "8", CX7: "8"}
    topology = {"mode": "hard", "highestTierAllowed": 2}
    if options.framework == "mpi":
        launcher = task("mpimaster", 1, {"cpu": "8", "memory": "32Gi"})
        tasks, plugins = [launcher, task("mpiworker", options.pods, worker)], {"mpi": [], "ssh": [], "svc": []}
    else:
        tasks = [task("master", 1, worker), task("worker", options.pods - 1, worker)]
        plugins = {"pytorch": ["--master=master", "--worker=worker"]}
    yield job("train", topology, tasks, plugins=plugins)


# ----------------------------------------------------------------------------------------------------------- Use Case 2


def use_case_2(options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """HCCS zones in RoCE zones in a VPC, and a Job in groups."""
    roces, names = [f"roce-{number:02d}" for number in range(options.roce)], []
    yield hyper_node(VPC, 3, "vpc", [by_name(roce) for roce in roces])
    for roce in roces:
        inside = [f"{roce}-hccs-{number}" for number in range(options.hccs)]
        yield hyper_node(roce, 2, "roce", [by_name(zone) for zone in inside])
        for zone in inside:
            yield hyper_node(zone, 1, "hccs", [by_label(zone)])
            of_zone = [f"{zone}-{number:02d}" for number in range(options.nodes)]
            yield from (node(name, {HCCS: zone, ROCE: roce}, ASCEND) for name in of_zone)
            names += of_zone
    yield from running(RandomSource(options.seed, "busy").shuffled(names)[: options.busy], {NPU: "16"})
    partition = {
        "totalPartitions": options.pods // options.group,
        "partitionSize": options.group,
        "networkTopology": {"mode": "hard", "highestTierAllowed": 1},
    }
    worker = {"cpu": "160", "memory": "1Ti", NPU: "16"}
    yield job("llm", {"mode": "soft"}, [task("worker", options.pods, worker, partitionPolicy=partition)])


# -------------------------------------------------------------------------------------------------------------- command


def counts(text: str) -> list[int]:
    """Read numbers with commas between them."""
    return [int(word) for word in text.split(",")]


def parse() -> tuple[argparse.ArgumentParser, argparse.Namespace]:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    cases = parser.add_subparsers(required=True, metavar="CASE")
    one, two = (cases.add_parser(number, help=f"Use Case {number}") for number in "12")
    for case, make in ((one, use_case_1), (two, use_case_2)):
        case.set_defaults(make=make)
        case.add_argument("-o", dest="output", type=Path, required=True, help="where to")
        case.add_argument("--pods", type=int, default=3000, help="of the Job with devices (default 3000)")
        case.add_argument("--seed", type=int, default=1, help="of the choice of nodes in use (default 1)")
    one.add_argument("--framework", choices=["pytorch", "mpi"], default="pytorch", help="of the Job (default pytorch)")
    one.add_argument("--east", type=counts, default=[3072, 2048], help="nodes of the zones of fabric east")
    one.add_argument("--west", type=counts, default=[1024, 1024], help="nodes of the zones of fabric west")
    one.add_argument("--busy", type=counts, default=[48, 48], help="of the nodes of fabric east in use, by zone")
    two.add_argument("--group", type=int, default=8, help="pods of a group, a divisor of --pods (default 8)")
    two.add_argument("--nodes", type=int, default=24, help="nodes of an HCCS zone (default 24)")
    two.add_argument("--hccs", type=int, default=8, help="HCCS zones of a RoCE zone (default 8)")
    two.add_argument("--roce", type=int, default=17, help="RoCE zones (default 17)")
    two.add_argument("--busy", type=int, default=32, help="nodes that run something else (default 32)")
    return parser, parser.parse_args()


def main() -> None:
    """Write the instance."""
    parser, options = parse()
    if options.make is use_case_2 and options.pods % options.group:
        parser.error(f"--pods: found {options.pods}, expected a multiple of --group, {options.group}")
    documents = sorted(options.make(options), key=lambda each: each["kind"] in ("Pod", "Job"))
    dump(documents, options.output)
    nodes, busy = (sum(each["kind"] == kind for each in documents) for kind in ("Node", "Pod"))
    print(f"nodes {nodes:,}, busy {busy:,}, pods {options.pods:,}")


if __name__ == "__main__":
    main()
