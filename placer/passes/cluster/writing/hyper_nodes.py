"""HyperNodes of a cluster, read whole, and written by server-side apply: conflicts with fields of others are refused.

Removals come first, so that no switch is ever below two; then lower tiers, so that a member is there before it is
named. A broken-off call leaves a smaller tree, and the next one writes the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from itertools import groupby
from typing import Any

from placer.base.errors import ClusterError
from placer.base.quantity import Resources
from placer.passes.cluster.planning.hyper_nodes import Document, HyperNodePlan
from placer.passes.cluster.reading.client import APPLY, Server, Unlisted, Writer, listed
from placer.passes.cluster.reading.paths import segment
from placer.passes.cluster.reading.views import ObjectView
from placer.problem import Node
from placer.topology.discovery.hyper_node_objects import API_VERSION

__all__ = ["FIELD_MANAGER", "HYPER_NODES", "labelled_nodes", "stored_hyper_nodes", "write_hyper_nodes"]

#: Who owns the fields that are written.
FIELD_MANAGER = "placer-discover"
#: Requests under way at once.
_WORKERS = 8
#: Refusals that are told.
_TOLD = 10


def write_hyper_nodes(server: Writer, plan: HyperNodePlan, *, force: bool = False) -> None:
    """Carry out a plan.

    Parameters
    ----------
    force
        Take over fields of other managers.

    Raises
    ------
    ClusterError
        The server refuses something, or does not answer; earlier writes remain.
    """
    _each(lambda document: _remove(server, document), plan.remove)
    for _, tier in groupby(
        sorted((*plan.create, *plan.change), key=lambda each: each["spec"]["tier"]), lambda each: each["spec"]["tier"]
    ):
        _each(lambda document: _apply(server, document, force=force), tier)


def _each(work: Callable[[Document], str | None], documents: Iterable[Document]) -> None:
    with ThreadPoolExecutor(_WORKERS) as threads:
        refusals = [each for each in threads.map(work, documents) if each is not None]
    if refusals:
        more = f"; and {len(refusals) - _TOLD:,} more" if len(refusals) > _TOLD else ""
        raise ClusterError(f"{'; '.join(refusals[:_TOLD])}{more}")


def _path(document: Document) -> str:
    return f"{HYPER_NODES}/{segment(document['metadata']['name'])}"


def _apply(server: Writer, document: Document, *, force: bool) -> str | None:
    parameters = {"fieldManager": FIELD_MANAGER, "force": str(force).lower()}
    answer = server.send("PATCH", _path(document), document, parameters=parameters, kind=APPLY)
    if answer.status in (200, 201):
        return None
    hint = " (--force-conflicts takes it over)" if answer.status == 409 else ""
    return f"HyperNode {document['metadata']['name']}: {answer.status} {answer.message}{hint}"


def _remove(server: Writer, document: Document) -> str | None:
    """Delete the HyperNode that was read, and no other of its name."""
    body = {"preconditions": {"uid": document["metadata"]["uid"]}}
    answer = server.send("DELETE", _path(document), body)
    if answer.status in (200, 202, 404):
        return None
    return f"HyperNode {document['metadata']['name']}: {answer.status} {answer.message}"


# ------------------------------------------------------------------------------------------------------ what is stored

HYPER_NODES = f"/apis/{API_VERSION}/hypernodes"


def stored_hyper_nodes(server: Server) -> list[dict[str, Any]]:
    """List the HyperNodes of a cluster.

    Raises
    ------
    ClusterError
        The cluster does not know the kind, does not answer or refuses.
    """
    try:
        found = list(listed(server.get, HYPER_NODES, dict[str, Any]))
    except Unlisted as error:
        if error.answer.status == 404:
            raise ClusterError(
                f"the cluster knows no HyperNodes ({API_VERSION}): install Volcano's definitions"
            ) from error
        raise
    return [{"apiVersion": API_VERSION, "kind": "HyperNode", **each} for each in found]


def labelled_nodes(server: Server) -> Mapping[str, Node]:
    """List the nodes of a cluster by name, with their labels alone.

    Raises
    ------
    ClusterError
        The server does not answer or refuses.
    """
    found = (each.metadata for each in listed(server.get, "/api/v1/nodes", ObjectView))
    by_name = {each.name: Node(each.name, Resources(), each.labels or {}) for each in found}
    return dict(sorted(by_name.items()))
