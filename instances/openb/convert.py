"""Turn the node and pod lists of Alibaba's GPU cluster trace 2023 (openb) into an instance.

Every row of the node list becomes a Node with its GPU type as label ``alibabacloud.com/gpu-model``. Of the pod list the
pods that ask for whole GPUs become waiting Pods, in the order of the list; shares of a GPU and pods without GPUs are
left out. ``gpu_spec`` ("A|B", the types a pod may use) becomes a node selector where it names one type, a required node
affinity where it names several. Times, phases and the nodes that pods once ran on are not used: the list is a queue.

Two options are ours, not the trace's: ``--load`` repeats pods, drawn by chance, until the queue asks for that share of
all GPUs; ``--typed`` gives a share of the pods that name no type one that could hold them.
"""

from __future__ import annotations

import argparse
import csv
from collections import Counter
from pathlib import Path
from typing import Any

from placer.kube.manifests import dump
from placer.lab.generate.random_source import RandomSource

HERE = Path(__file__).parent
GPU = "nvidia.com/gpu"
MODEL = "alibabacloud.com/gpu-model"
NODE_COLUMNS = ("sn", "cpu_milli", "memory_mib", "gpu", "model")
POD_COLUMNS = ("name", "cpu_milli", "memory_mib", "num_gpu", "gpu_milli", "gpu_spec", "qos")
#: Whole GPUs: the share of each GPU that is asked for, in thousandths.
WHOLE = 1000


Row = dict[str, str]


def read_rows(table: Path, columns: tuple[str, ...]) -> list[Row]:
    """Read a list.

    Raises
    ------
    SystemExit
        A column is missing.
    """
    with table.open(encoding="utf-8", newline="") as file:
        rows = csv.DictReader(file)
        missing = sorted(set(columns) - set(rows.fieldnames or ()))
        if missing:
            raise SystemExit(f"{table}: found no column {', '.join(missing)}, expected {', '.join(columns)}")
        return list(rows)


def amounts(row: Row, gpus: str) -> dict[str, str]:
    """Write milli-cores, MiB and GPUs as quantities."""
    return {"cpu": f"{row['cpu_milli']}m", "memory": f"{row['memory_mib']}Mi", GPU: gpus}


def node(row: Row) -> dict[str, Any]:
    """Make a Node; 110 pods each, which the list does not say."""
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": row["sn"], "labels": {MODEL: row["model"]}},
        "status": {"allocatable": amounts(row, row["gpu"]) | {"pods": "110"}},
    }


def whole(row: Row) -> bool:
    """Whether a pod asks for whole GPUs."""
    return int(row["num_gpu"]) >= 1 and int(row["gpu_milli"]) == WHOLE


def pod(row: Row) -> dict[str, Any]:
    """Make a waiting Pod."""
    container = {"name": "main", "resources": {"requests": amounts(row, row["num_gpu"])}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": row["name"], "namespace": "openb", "labels": {"qos": row["qos"]}},
        "spec": {"containers": [container], **types(row["gpu_spec"])},
    }


def types(spec: str) -> dict[str, Any]:
    """Say on which GPU types a pod may run."""
    models = [model for model in spec.split("|") if model]
    if not models:
        return {}
    if len(models) == 1:
        return {"nodeSelector": {MODEL: models[0]}}
    terms = [{"matchExpressions": [{"key": MODEL, "operator": "In", "values": models}]}]
    return {
        "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}
    }


def gpus(rows: list[Row], column: str) -> int:
    """Sum the GPUs."""
    return sum(int(row[column]) for row in rows)


def repeated(pods: list[Row], wanted: float, source: RandomSource) -> list[Row]:
    """Add copies of pods by chance until all ask for the wanted number of GPUs."""
    queue, asked, copies = list(pods), gpus(pods, "num_gpu"), Counter[str]()
    while asked < wanted:
        row = source.pick(pods)
        copies[row["name"]] += 1
        queue.append(row | {"name": f"{row['name']}-{copies[row['name']]}"})
        asked += int(row["num_gpu"])
    return queue


def typed(pods: list[Row], nodes: list[Row], share: float, source: RandomSource) -> list[Row]:
    """Give a share of the pods that name no type one, by the GPUs of the nodes that could hold the pod."""
    columns = (("cpu_milli", "cpu_milli"), ("memory_mib", "memory_mib"), ("num_gpu", "gpu"))
    kinds = Counter(tuple((key, node[key]) for key in NODE_COLUMNS[1:]) for node in nodes)

    def weights(pod: Row) -> Counter[str]:
        found = Counter[str]()
        for kind, count in kinds.items():
            room = dict(kind)
            if all(int(pod[asked]) <= int(room[there]) for asked, there in columns):
                found[room["model"]] += count * int(room["gpu"])
        return found

    def one(pod: Row) -> Row:
        if pod["gpu_spec"] or not source.chance(share):
            return pod
        found = sorted(weights(pod).items())
        return pod | {"gpu_spec": source.weighted([model for model, _ in found], [count for _, count in found])}

    return [one(pod) for pod in pods]


def main() -> None:
    """Write the instance."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("nodes", type=Path, help="openb_node_list_gpu_node.csv")
    parser.add_argument("pods", type=Path, help="openb_pod_list_*.csv")
    parser.add_argument("--first", type=int, default=None, metavar="N", help="only the first N pods (default: all)")
    parser.add_argument("--load", type=float, default=0, help="least GPUs asked, as a share of all (default 0)")
    parser.add_argument("--typed", type=float, default=0, help="share of pods that get a GPU type (default 0)")
    parser.add_argument("--seed", type=int, default=0, help="of --load and --typed (default 0)")
    parser.add_argument("-o", dest="output", type=Path, default=HERE / "openb.json.gz", help="where to")
    options = parser.parse_args()
    nodes = read_rows(options.nodes, NODE_COLUMNS)
    listed = read_rows(options.pods, POD_COLUMNS)
    pods = [row for row in listed if whole(row)][: options.first]
    there = gpus(nodes, "gpu")
    pods = repeated(pods, options.load * there, RandomSource(options.seed, "load"))
    pods = typed(pods, nodes, options.typed, RandomSource(options.seed, "types"))
    dump([*map(node, nodes), *map(pod, pods)], options.output)
    asked = gpus(pods, "num_gpu")
    print(f"nodes {len(nodes):,}, pods {len(pods):,} from {len(listed):,}, GPUs asked {asked:,} of {there:,}")


if __name__ == "__main__":
    main()
