"""The tier tree from node labels, where no HyperNode is given (Policy ``topologyKeys``).

A domain is its path of labels from the widest key down: two racks of one name in two rows are two. A node without one
of the labels skips that level; it then shares no domain of the level with anybody, only the wider ones.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from placer.instance.node import Node
from placer.instance.topology import HyperNode, TopologyTree

__all__ = ["label_tree"]

#: Label values from the widest key down to the domain's own; empty where the node has no such label.
Path = tuple[str, ...]


def label_tree(keys: Sequence[str], nodes: Mapping[str, Node]) -> TopologyTree:
    """Build the tree of the domains that node labels name.

    Parameters
    ----------
    keys
        Label keys, nearest first; the first makes tier 1, and each key is the tierName of its tier.
    nodes
        Nodes by name.

    Returns
    -------
    TopologyTree
        A domain is named after its path, widest first, joined by ``/``; a label value holds no slash, so no two
        domains get one name. The virtual root has the tier after the last key's.
    """
    leaves: dict[Path, list[str]] = defaultdict(list)
    for name, node in nodes.items():
        path = tuple(node.labels.get(key, "") for key in reversed(keys))
        if any(path):
            leaves[_trimmed(path)].append(name)
    parents = _parents(leaves)
    children: dict[Path, list[Path]] = defaultdict(list)
    for path, parent in parents.items():
        if parent is not None:
            children[parent].append(path)
    made = {}
    for path, parent in sorted(parents.items(), key=lambda item: _name(item[0])):
        made[_name(path)] = HyperNode(
            name=_name(path),
            tier=len(keys) - len(path) + 1,
            tier_name=keys[len(keys) - len(path)],
            parent=None if parent is None else _name(parent),
            children=tuple(sorted(map(_name, children[path]))),
            nodes=tuple(sorted(leaves.get(path, ()))),
        )
    return TopologyTree(made, root_tier=len(keys) + 1)


def _trimmed(path: Path) -> Path:
    """Cut a path after its last label: the narrowest domain that it names."""
    end = max(index for index, value in enumerate(path) if value)
    return path[: end + 1]


def _parents(leaves: Mapping[Path, object]) -> dict[Path, Path | None]:
    """Every domain on the way up from the given ones, with the next wider domain; None above the widest."""
    found: dict[Path, Path | None] = {}
    for leaf in leaves:
        path: Path | None = leaf
        while path is not None and path not in found:
            wider = path[:-1]
            found[path] = _trimmed(wider) if any(wider) else None
            path = found[path]
    return found


def _name(path: Path) -> str:
    return "/".join(path)
