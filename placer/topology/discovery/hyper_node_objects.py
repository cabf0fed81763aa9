"""A tier tree to HyperNode manifests, as Volcano's discovery makes them, but the same names for the same tree.

A label states their maker, since Volcano's controller deletes those of its own sources. A name has at most 63
characters, as Volcano's admission takes for a member.
"""

from __future__ import annotations

import hashlib
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

from placer.base.text import shown
from placer.problem import Finding, HyperNode
from placer.problem.domains import natural
from placer.problem.findings import Findings
from placer.topology.discovery.switches import Discovery

API_VERSION = "topology.volcano.sh/v1alpha1"
#: Label of every HyperNode that a discovery made, and its value on ours.
SOURCE_LABEL, SOURCE = "volcano.sh/network-topology-source", "placer"
DOMAIN = "placer.dev/domain"

_LONGEST = 63
_HASH = 8


def hyper_nodes(found: Discovery) -> tuple[list[dict[str, Any]], tuple[Finding, ...]]:
    """Manifests of a tree as plain values, lower tiers first, and findings about changed names."""
    findings = Findings()
    names = _names(found, findings)
    documents = [_document(each, found, names) for each in found.tree.hyper_nodes.values()]
    documents.sort(key=lambda each: (each["spec"]["tier"], natural(each["metadata"]["name"])))
    return documents, findings.all()


def _document(domain: HyperNode, found: Discovery, names: Mapping[str, str]) -> dict[str, Any]:
    title = found.titles.get(domain.name, domain.name)
    spec: dict[str, Any] = {"tier": domain.tier}
    if domain.tier_name:
        spec["tierName"] = domain.tier_name
    members = [*_members("HyperNode", (names[each] for each in domain.children)), *_members("Node", domain.nodes)]
    return {
        "apiVersion": API_VERSION,
        "kind": "HyperNode",
        "metadata": {
            "name": names[domain.name],
            "labels": {SOURCE_LABEL: SOURCE, **found.labels.get(domain.name, {})},
            "annotations": {DOMAIN: title},
        },
        "spec": {**spec, "members": members},
    }


def _members(kind: str, names: Any) -> Iterator[dict[str, Any]]:
    for name in sorted(names, key=natural):
        yield {"type": kind, "selector": {"exactMatch": {"name": name}}}


def _names(found: Discovery, findings: Findings) -> dict[str, str]:
    wanted: dict[str, list[str]] = defaultdict(list)
    for name in sorted(found.tree.hyper_nodes):
        wanted[_plain(name)].append(name)
    taken = set(wanted)
    named: dict[str, str] = {}
    for plain, domains in wanted.items():
        if len(domains) == 1:
            named[domains[0]] = plain
            continue
        for domain in domains:
            named[domain], length = plain, _HASH
            while domain != plain and named[domain] in taken:
                named[domain] = _with_hash(plain, domain, length)
                length += 1
            taken.add(named[domain])
        told = ", ".join(f"{shown(domain)} is {named[domain]}" for domain in domains)
        findings.add("DomainNamesCollide", f"HyperNode {plain}", f"{len(domains)} domains come to {plain}: {told}")
    return named


def _plain(name: str) -> str:
    parts = re.split(r"[./]+", name.lower())
    clean = (re.sub(r"[^a-z0-9]+", "-", part).strip("-") for part in parts)
    plain = ".".join(part for part in clean if part) or "domain"
    return plain if len(plain) <= _LONGEST else _with_hash(plain, name, _HASH)


def _with_hash(plain: str, name: str, length: int) -> str:
    digest = hashlib.sha256(name.encode()).hexdigest()[:length]
    return f"{plain[: _LONGEST - 1 - length].rstrip('-.')}-{digest}"
