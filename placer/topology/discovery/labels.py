"""Labels of nodes to a tier tree, as a Policy's ``topologyKeys`` read them: a domain is its path of labels."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from placer.base.errors import BadInstance, Fault, UsageError
from placer.base.text import found_like, shown
from placer.problem import Node
from placer.problem.findings import Findings, counted
from placer.problem.tier_tree import label_tree
from placer.topology.discovery.switches import Discovery

#: Most characters of a tierName; a label's key may be longer.
_LONGEST_KEY = 253


def read_keys(text: str) -> tuple[str, ...]:
    """Read the keys of ``--labels``, nearest first; :class:`UsageError`: none, empty, twice, or no tierName."""
    keys = tuple(key.strip() for key in text.split(","))
    if not all(keys):
        raise UsageError(
            f"--labels: found {text!r}, expected keys of labels with commas, nearest first: switch,rack,row"
        )
    twice = sorted({key for key in keys if keys.count(key) > 1})
    if twice:
        raise UsageError(f"--labels: found {', '.join(twice)} twice, expected each key once")
    long = [key for key in keys if len(key) > _LONGEST_KEY]
    if long:
        raise UsageError(f"--labels: found a key of {len(long[0])} characters, expected at most {_LONGEST_KEY}")
    return keys


def discover_labels(keys: Sequence[str], nodes: Mapping[str, Node], source: str = "the nodes") -> Discovery:
    """Find the domains that labels of nodes name, the nearest of ``keys`` first.

    A node without the nearest label is in the nearest domain whose label it has; keys that no node has are faults.
    """
    _refuse_unknown(keys, nodes, source)
    findings = Findings()
    _note_missing(keys, nodes, findings)
    for key, wider in ((key, keys[place + 1 :]) for place, key in enumerate(keys)):
        _note_ambiguous(key, wider, nodes, findings)
    tree = label_tree(keys, nodes)
    labels = {name: {domain.tier_name: name.rpartition("/")[2]} for name, domain in tree.hyper_nodes.items()}
    return Discovery(tree, labels=labels, findings=findings.all())


def _refuse_unknown(keys: Sequence[str], nodes: Mapping[str, Node], source: str) -> None:
    known = {key for node in nodes.values() for key, value in node.labels.items() if value}
    faults = []
    for key in keys:
        if key not in known:
            expected = f"at least one{found_like(key, known)}"
            faults.append(Fault(source, None, f"label {shown(key)}", "", "no Node with a value of it", expected))
    if faults:
        raise BadInstance(faults)


def _note_missing(keys: Sequence[str], nodes: Mapping[str, Node], findings: Findings) -> None:
    without: dict[str, set[str]] = defaultdict(set)
    for name, node in nodes.items():
        missing = [key for key in keys if not node.labels.get(key)]
        if len(missing) == len(keys):
            missing = [""]
        for key in missing:
            without[key].add(f"Node {name}")
    for key, names in without.items():
        what = f"no label {key}: that tier is skipped" if key else f"none of the labels {', '.join(keys)}: no domain"
        findings.add(
            "NodeWithoutLabel", min(names), f"{counted(names)}, {len(names):,} of {len(nodes):,} nodes, with {what}"
        )


def _note_ambiguous(key: str, wider: Sequence[str], nodes: Mapping[str, Node], findings: Findings) -> None:
    places: dict[str, dict[tuple[str, ...], set[str]]] = defaultdict(lambda: defaultdict(set))
    for name, node in nodes.items():
        value = node.labels.get(key)
        if value:
            places[value][tuple(node.labels.get(each, "") for each in wider)].add(f"Node {name}")
    for value, found in places.items():
        if len(found) > 1:
            told = "; ".join(f"{_words(wider, path)}: {counted(names)}" for path, names in sorted(found.items()))
            subject = f"label {key}={value}"
            message = f"{subject} names {len(found)} domains, one for each of {told}"
            findings.add("LabelInTwoDomains", subject, message)


def _words(keys: Sequence[str], values: Sequence[str]) -> str:
    pairs = zip(keys, values, strict=True)
    return ", ".join(f"{key}={value}" if value else f"no {key}" for key, value in pairs)
