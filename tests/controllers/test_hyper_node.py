"""Status of HyperNodes: nodes at any depth, and the condition of those that are not as they were meant."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from placer.topology.controllers import hyper_node_statuses
from tests.support import Document, hyper_node, instance_of, node

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


def statuses(*documents: Document, now: datetime = NOW) -> dict[str, dict[str, Any]]:
    written = [each for each in documents if each["kind"] == "HyperNode"]
    return hyper_node_statuses(written, instance_of(*documents), now)


def condition(status: dict[str, Any]) -> tuple[str, str]:
    (found,) = status["conditions"]
    return found["status"], found["reason"]


def test_nodes_at_any_depth_count() -> None:
    """Volcano's controller would say 2 of the spine: its members."""
    leaves = (hyper_node("a", 1, nodes=("n1", "n2")), hyper_node("b", 1, nodes=("n3",)))
    found = statuses(*map(node, ("n1", "n2", "n3")), *leaves, hyper_node("spine", 2, children=("a", "b")))
    assert {name: each["nodeCount"] for name, each in found.items()} == {"a": 2, "b": 1, "spine": 3}
    assert {condition(each) for each in found.values()} == {("True", "Consistent")}


def test_what_is_broken_says_so_and_has_no_count() -> None:
    broken = (hyper_node("a", 1, nodes=("n1",)), hyper_node("b", 1, nodes=("n1",)))
    found = statuses(node("n1"), *broken, hyper_node("spine", 2, children=("a",)))
    assert not any("nodeCount" in each for each in found.values())
    assert condition(found["a"]) == ("False", "HyperNodeOverlap")
    assert condition(found["spine"]) == ("False", "BrokenBelow")


def test_its_time_is_that_of_the_last_change() -> None:
    leaf = hyper_node("a", 1, nodes=("n1",))
    before = statuses(node("n1"), leaf)["a"]
    leaf["status"] = before
    later = NOW + timedelta(hours=1)
    assert statuses(node("n1"), leaf, now=later)["a"] == before
    (changed,) = statuses(leaf, hyper_node("b", 2, nodes=("n2",)), node("n2"), now=later)["a"]["conditions"]
    assert (changed["status"], changed["lastTransitionTime"]) == ("False", "2026-03-01T13:00:00Z")
