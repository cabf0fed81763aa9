"""A file that describes a fabric, of any format: its content tells which."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping
from typing import Any

from placer.discovery.hosts import NodeNames, with_nodes
from placer.discovery.infiniband import discover_infiniband
from placer.discovery.slurm import discover_topology_conf, discover_topology_yaml
from placer.discovery.switches import Discovery
from placer.discovery.topograph import discover_graph
from placer.errors import BadInstance, Fault, UsageError
from placer.legible import shown
from placer.manifests import read_texts
from placer.manifests.syntax import YamlError, documents, refusal

_INFINIBAND = re.compile(r'^\s*(?:switchguid=|caguid=|(?:Switch|Ca|Rt)\s+\d+\s+")', re.MULTILINE)
_CONF = re.compile(r"^\s*(?:SwitchName|BlockName|BlockSizes|RingName)\s*=", re.MULTILINE | re.IGNORECASE)
_EXPECTED = (
    "the output of ibnetdiscover, Slurm's topology.conf or topology.yaml, or files of topograph (these, its JSON, "
    "or its ConfigMap)"
)
#: Keys of the ConfigMap that topograph's Slinky engine writes.
_FILES = ("topology.yaml", "topology.conf")


def discover_file(path: str, nodes: Collection[str] | None = None, topology: str | None = None) -> Discovery:
    """Find the domains that a file describes; ``-`` is standard input.

    ``nodes``: those that count; None: not known. ``topology``: the one that counts.

    Raises
    ------
    BadInstance
        Every fault of the file; it is of no format that is read; no host of it is a node.
    UsageError
        None of its topologies is chosen, or it has none of the name.
    """
    texts = read_texts([path])
    if len(texts) != 1:
        raise BadInstance([Fault(path, None, "", "", f"{len(texts)} files", "one")])
    source, data = texts[0].name, bytes(texts[0].data)
    names = NodeNames(nodes)
    return with_nodes(_of_text(data.decode(), source, names, topology), names, source)


def _of_text(text: str, source: str, names: NodeNames, topology: str | None) -> Discovery:
    if _INFINIBAND.search(text) and not text.lstrip().startswith(("{", "-")):
        _no_choice(topology, source)
        return discover_infiniband(text, source, lambda host: names.node(host) is not None)
    if _CONF.search(text) and not re.search(r"^kind:\s*ConfigMap", text, re.MULTILINE):
        return discover_topology_conf(text, source, topology)
    return _of_document(_parsed(text, source), source, names, topology)


def _of_document(document: Any, source: str, names: NodeNames, topology: str | None) -> Discovery:
    if isinstance(document, list) and document:
        return discover_topology_yaml(document, source, topology)
    if isinstance(document, dict):
        if "instances" in document:
            _no_choice(topology, source)
            return discover_graph(document, source)
        for key, text in _files(document).items():
            return _of_text(text, f"{source}: {key}", names, topology)
    found = f"a {type(document).__name__}" if document is not None else "nothing"
    raise BadInstance([Fault(source, None, "", "", found, _EXPECTED)])


def _files(document: Mapping[str, Any]) -> dict[str, str]:
    data = document.get("data") if document.get("kind") == "ConfigMap" else None
    files = data if isinstance(data, dict) else {}
    return {key: files[key] for key in _FILES if isinstance(files.get(key), str)}


def _parsed(text: str, source: str) -> Any:
    try:
        if text.lstrip()[:1] in ("{", "["):
            refused = refusal(text.encode())
            if refused is not None:
                raise YamlError(*refused)
            return json.loads(text)
        found = ["".join(document.pieces) for document in documents(text.encode())]
    except (YamlError, ValueError, RecursionError) as error:
        told = error.found if isinstance(error, YamlError) else str(error)
        place = error.place if isinstance(error, YamlError) else ""
        raise BadInstance([Fault(source, None, "", place, shown(told, 200), _EXPECTED)]) from error
    whole = [json.loads(each) for each in found if each]
    return whole[0] if len(whole) == 1 else None


def _no_choice(topology: str | None, source: str) -> None:
    if topology is not None:
        raise UsageError(f"--topology: found {topology!r}, expected none, for {source} has one topology")
