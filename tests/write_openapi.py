"""Writes ``tests/data/openapi/kubernetes.json`` anew: what an API server says its objects may look like.

``python -m tests.write_openapi``, after the version in ``tests/cluster/controlplane`` has changed. It starts that API
server and asks it for ``/openapi/v3``; kept is what the kinds consist of that placer lists, without descriptions.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.cluster.api import Api
from tests.cluster.binaries import programs
from tests.cluster.server import ControlPlane

TARGET = Path(__file__).parent / "data" / "openapi" / "kubernetes.json"

#: Path of a document to the kinds of it that placer lists.
KINDS = {
    "api/v1": ("Node", "Pod", "Namespace", "PersistentVolumeClaim", "PersistentVolume", "ConfigMap"),
    "apis/apps/v1": ("DaemonSet", "ReplicaSet"),
    "apis/policy/v1": ("PodDisruptionBudget",),
    "apis/scheduling.k8s.io/v1": ("PriorityClass",),
    "apis/scheduling.k8s.io/v1beta1": ("PodGroup", "Workload"),
}
#: What of a schema is for people, or for clients that merge.
LEFT_OUT = frozenset(("description", "default", "example"))


def document(api: Api) -> dict[str, Any]:
    """The whole file: where it is from, the name of each kind's schema, the schemas."""
    paths = api.get("/openapi/v3")["paths"]
    schemas: dict[str, Any] = {}
    kinds = {}
    for path, names in KINDS.items():
        found = api.get(paths[path]["serverRelativeURL"])["components"]["schemas"]
        for name, schema in found.items():
            for each in schema.get("x-kubernetes-group-version-kind") or ():
                if each["kind"] in names and path.endswith(f"{each['group']}/{each['version']}".strip("/")):
                    kinds[each["kind"]] = name
        schemas |= found
    kept: dict[str, Any] = {}
    waiting = sorted(kinds.values())
    while waiting:
        name = waiting.pop()
        if name not in kept:
            kept[name] = _plain(schemas[name])
            waiting += _named(kept[name])
    source = {
        "name": "kube-apiserver, /openapi/v3",
        "version": api.get("/version")["gitVersion"],
        "licence": "Apache-2.0, The Kubernetes Authors",
    }
    return {"source": source, "kinds": dict(sorted(kinds.items())), "schemas": dict(sorted(kept.items()))}


def _plain(schema: Any) -> Any:
    """A schema without what is for people; references by the name alone."""
    if isinstance(schema, list):
        return [_plain(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    if list(schema) == ["$ref"]:
        return {"$ref": schema["$ref"].rpartition("/")[2]}
    found = {
        key: {name: _plain(each) for name, each in value.items()} if key == "properties" else _plain(value)
        for key, value in schema.items()
        if key not in LEFT_OUT and not key.startswith("x-kubernetes")
    }
    return found["allOf"][0] if len(found.get("allOf") or ()) == 1 and "type" not in found else found


def _named(schema: Any) -> Iterator[str]:
    """The schemas that one refers to."""
    if isinstance(schema, dict):
        if isinstance(schema.get("$ref"), str):
            yield schema["$ref"]
        for each in schema.values():
            yield from _named(each)
    elif isinstance(schema, list):
        for each in schema:
            yield from _named(each)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        server = ControlPlane(programs(), Path(folder))
        try:
            server.start()
            found = document(Api(server.url, server.certificate, server.token))
        finally:
            server.stop()
    lines = [f"  {json.dumps(name)}: {json.dumps(each)}" for name, each in found["schemas"].items()]
    head = json.dumps({key: value for key, value in found.items() if key != "schemas"}, indent=1)
    TARGET.write_text(f'{head[:-2]},\n "schemas": {{\n' + ",\n".join(lines) + "\n }\n}\n")


if __name__ == "__main__":
    main()
