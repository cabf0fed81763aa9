"""What DaemonSets of a tenant cost a pass: seconds of processor for the room that is held for their pods.

    python -m tests.benchmarks.daemon_sets [NODES]

On 1,000 new nodes: DaemonSets that want a pod on one node each, named by a term of 4,900 names of others; the same for
nodes that are not new; and DaemonSets meant for no node. On a busy machine 1.0, 0.3, 0.1 and 0.3 s; 7.8 and 1.0 s
were reported of the first and the third, where each node was asked by itself.
"""

from __future__ import annotations

import json
import sys
import time
from datetime import UTC, datetime, timedelta
from typing import Any

from placer.kube.kinds import BY_ATTRIBUTE
from placer.passes.cluster.reading.daemon_sets import DAEMON_SETS, daemon_room, new_nodes
from placer.passes.cluster.reading.field_filter import list_reader, readable
from placer.problem.instance_builder import read_nodes
from tests.support import node

_HOST = "kubernetes.io/hostname"


def nodes(count: int, minutes: int) -> list[bytes]:
    """What is kept of nodes that have been there for so long."""
    created = {"creationTimestamp": (datetime.now(UTC) - timedelta(minutes=minutes)).isoformat()}
    reader = list_reader(BY_ATTRIBUTE["nodes"], "v1")
    made = (node(f"node-{at:05}") for at in range(count))
    return [reader.object(json.dumps({**each, "metadata": each["metadata"] | created}).encode()) for each in made]


def daemon_set(at: int, names: int, desired: int) -> bytes:
    """A DaemonSet as it comes, with a node affinity that has so many names."""
    values = [f"node-{at:05}", *(f"other-{at}-{each}" for each in range(names))]
    term = {"matchExpressions": [{"key": _HOST, "operator": "In", "values": values}]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    container = {"name": "main", "image": "example.com/agent:1", "resources": {"requests": {"cpu": "1m"}}}
    spec = {"containers": [container], "affinity": {"nodeAffinity": required}}
    document: dict[str, Any] = {
        "metadata": {"name": f"d{at}", "namespace": "evil"},
        "spec": {"template": {"spec": spec}},
        "status": {"desiredNumberScheduled": desired, "numberReady": 0, "observedGeneration": 1},
    }
    return json.dumps(document).encode()


def seconds(written: list[bytes], there: list[bytes]) -> float:
    """Of processor, from the page of a list to the pods that hold room."""
    page = b'{"metadata": {}, "items": [' + b",".join(written) + b"]}"
    began = time.process_time()
    kept = list_reader(DAEMON_SETS, "apps/v1").read(page).items or ()
    manifests = list(readable(BY_ATTRIBUTE["nodes"], there))
    daemon_room(kept, read_nodes(manifests), new_nodes(manifests, datetime.now(UTC)), (), ())
    return time.process_time() - began


def main() -> None:
    """Measure each."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000
    new, old = nodes(count, 1), nodes(count, 60)
    from placer.arrays.eligibility import Eligibility

    Eligibility([])  # its libraries are imported by any pass
    for name, sets, names, desired, there in (
        ("300 with long affinity, new nodes", 300, 4_900, 1, new),
        ("300 with long affinity, older nodes", 300, 4_900, 1, old),
        ("2,000 meant for no node, new nodes", 2_000, 10, 0, new),
        ("2,000 for a node each, new nodes", 2_000, 10, 1, new),
    ):
        written = [daemon_set(at, names, desired) for at in range(sets)]
        print(f"{name:40} {seconds(written, there):6.2f} s")


if __name__ == "__main__":
    main()
