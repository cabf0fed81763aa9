"""Make Volcano's Use Case 2: one Job of 3,000 pods with 16 NPUs each, in groups, over HCCS, RoCE and VPC zones.

The seed gives pods, NPUs and the three networks; sizes of zones and groups are assumptions, and options here. A node
holds one pod. HCCS zones are HyperNodes of tier 1, RoCE zones tier 2, the VPC tier 3. A group of pods must stay in one
HCCS zone (hard, tier 1), the Job as low as possible (soft). Some nodes run a pod of somebody else; which ones is
chance.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from placer.generate.random_source import RandomSource
from placer.manifests import dump

HERE = Path(__file__).parent
NPU = "huawei.com/Ascend910"
ALLOCATABLE = {"cpu": "192", "memory": "1536Gi", NPU: "16", "pods": "110"}
HCCS, ROCE, VPC = "example.com/hccs", "example.com/roce", "vpc"


def node(name: str, hccs: str, roce: str) -> dict[str, Any]:
    """Make a Node that says in labels which zones it is in."""
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {HCCS: hccs, ROCE: roce}},
        "status": {"allocatable": ALLOCATABLE},
    }


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


def cluster(options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Nodes and HyperNodes."""
    roces = [f"roce-{number:02d}" for number in range(options.roce)]
    yield hyper_node(VPC, 3, "vpc", [by_name(roce) for roce in roces])
    for roce in roces:
        zones = [f"{roce}-hccs-{number}" for number in range(options.hccs)]
        yield hyper_node(roce, 2, "roce", [by_name(zone) for zone in zones])
        for zone in zones:
            yield hyper_node(zone, 1, "hccs", [by_label(zone)])
            yield from (node(f"{zone}-{number:02d}", zone, roce) for number in range(options.nodes))


def running(names: list[str], options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Pods of somebody else, one on each of so many nodes."""
    for name in sorted(RandomSource(options.seed, "busy").shuffled(names)[: options.busy]):
        yield {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": f"serving-{name}", "namespace": "serving"},
            "spec": {
                "nodeName": name,
                "containers": [{"name": "main", "resources": {"requests": {NPU: "16"}}}],
            },
            "status": {"phase": "Running"},
        }


def job(options: argparse.Namespace) -> dict[str, Any]:
    """Make the Volcano Job: a gang of all pods, in groups."""
    partition = {
        "totalPartitions": options.pods // options.group,
        "partitionSize": options.group,
        "networkTopology": {"mode": "hard", "highestTierAllowed": 1},
    }
    container = {"name": "main", "resources": {"limits": {"cpu": "160", "memory": "1Ti", NPU: "16"}}}
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": "llm", "namespace": "default"},
        "spec": {
            "schedulerName": "volcano",
            "minAvailable": options.pods,
            "networkTopology": {"mode": "soft"},
            "tasks": [
                {
                    "name": "worker",
                    "replicas": options.pods,
                    "partitionPolicy": partition,
                    "template": {"spec": {"containers": [container]}},
                }
            ],
        },
    }


def main() -> None:
    """Write the instance."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", dest="output", type=Path, default=HERE / "volcano_use_case_2.json.gz", help="where to")
    parser.add_argument("--pods", type=int, default=3000, help="of the Job, a multiple of --group (default 3000)")
    parser.add_argument("--group", type=int, default=8, help="pods of a group (default 8)")
    parser.add_argument("--nodes", type=int, default=24, help="nodes of an HCCS zone (default 24)")
    parser.add_argument("--hccs", type=int, default=8, help="HCCS zones of a RoCE zone (default 8)")
    parser.add_argument("--roce", type=int, default=17, help="RoCE zones (default 17)")
    parser.add_argument("--busy", type=int, default=32, help="nodes that run something else (default 32)")
    parser.add_argument("--seed", type=int, default=1, help="of the choice of busy nodes (default 1)")
    options = parser.parse_args()
    if options.pods % options.group:
        parser.error(f"--pods: found {options.pods}, expected a multiple of --group, {options.group}")
    documents = list(cluster(options))
    names = [each["metadata"]["name"] for each in documents if each["kind"] == "Node"]
    dump([*documents, *running(names, options), job(options)], options.output)
    print(f"nodes {len(names):,}, busy {options.busy:,}, pods {options.pods:,} in groups of {options.group}")


if __name__ == "__main__":
    main()
