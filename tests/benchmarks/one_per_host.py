"""What one pod per host costs: 5,000 pods with required anti-affinity to their like, and the same pods without.

Both ask for 625 nodes of 1,000 and need no more nodes than that, if each application has at most so many pods;
an application of 1,000 pods needs 1,000 nodes. Each run is ``placer solve`` in a process of its own, from the
interpreter's start on; what counts is its processor seconds, the best of several. One line of JSON per method, number
of applications, with or without the terms; ``ratio`` is that of the processor seconds to those without. The goal is 2.

    python -m tests.benchmarks.one_per_host
    python -m tests.benchmarks.one_per_host --methods auto --applications 50 --repeat 1
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.benchmarks.start_up import processor_seconds

NODES, PODS, GPUS = 1000, 5000, 8
HOST = "kubernetes.io/hostname"


def objects(applications: int, apart: bool) -> Iterator[dict[str, Any]]:
    """Nodes of eight GPUs, and as many pods of one in each application."""
    for number in range(NODES):
        name = f"n{number}"
        allocatable = {"cpu": "64", "nvidia.com/gpu": str(GPUS), "pods": "110"}
        metadata = {"name": name, "labels": {HOST: name}}
        yield {"apiVersion": "v1", "kind": "Node", "metadata": metadata, "status": {"allocatable": allocatable}}
    for number in range(PODS):
        app = {"app": f"a{number % applications}"}
        term = {"labelSelector": {"matchLabels": app}, "topologyKey": HOST}
        asked = {"cpu": "8", "nvidia.com/gpu": "1"}
        spec: dict[str, Any] = {"containers": [{"name": "c", "resources": {"requests": asked, "limits": asked}}]}
        if apart:
            spec["affinity"] = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
        yield {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": f"p{number}", "labels": app}, "spec": spec}


def measured(path: Path, method: str, repeat: int) -> dict[str, Any]:
    """What a method opens and proves, and the least processor seconds of it."""
    command = [sys.executable, "-m", "placer", "solve", str(path), "--method", method, "--workers", "1", "--json"]
    runs = [processor_seconds([*command, "--work-limit", "2", "--quiet"]) for _ in range(repeat)]
    placement = json.loads(runs[0][1])
    opened = next(each for each in placement["objective"] if each["name"] == "packedNodes")
    return {
        "placed": len(placement["bindings"]),
        "opened": opened["value"],
        "bound": opened["bound"],
        "verdict": placement["verdict"],
        "processorSeconds": round(min(seconds for seconds, _ in runs), 2),
    }


def main() -> None:
    """Measure what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--methods", default="greedy,auto", metavar="LIST", help="greedy,auto")
    parser.add_argument("--applications", type=int, nargs="+", default=[50, 5], metavar="N", help="50 5")
    parser.add_argument("--repeat", type=int, default=3)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "instance.json")
        for applications in options.applications:
            seconds: dict[str, float] = {}
            for apart in (False, True):
                items = list(objects(applications, apart))
                path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
                for method in options.methods.split(","):
                    line = measured(path, method, options.repeat)
                    ratio = line["processorSeconds"] / seconds.setdefault(method, line["processorSeconds"])
                    about = {"applications": applications, "onePerHost": apart, "method": method}
                    print(json.dumps({**about, **line, "ratio": round(ratio, 2)}), flush=True)


if __name__ == "__main__":
    main()
