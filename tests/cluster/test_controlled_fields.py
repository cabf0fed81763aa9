"""Which fields a controller applies: none that another owns, and none where everything is so already."""

from __future__ import annotations

from typing import Any

from placer.passes.cluster.writing.controllers import FIELD_MANAGER, field_update

COUNT, TIME = ("status", "nodeCount"), ("status", "weightCalculationTime")


def stored(status: dict[str, Any], *managers: tuple[str, str, dict[str, Any]]) -> dict[str, Any]:
    fields = [
        {"manager": name, "operation": operation, "fieldsV1": {"f:status": owned}}
        for name, operation, owned in managers
    ]
    metadata = {"name": "nt", "namespace": "default", "resourceVersion": "7", "uid": "u", "managedFields": fields}
    return {"apiVersion": "g/v1", "kind": "NetworkTopology", "metadata": metadata, "status": status}


def test_what_nobody_owns_is_applied_to_the_version_that_was_read() -> None:
    update = field_update(stored({}), {COUNT: 3, TIME: None})
    assert update.left == ()
    assert update.document == {
        "apiVersion": "g/v1",
        "kind": "NetworkTopology",
        "metadata": {"name": "nt", "namespace": "default", "resourceVersion": "7"},
        "status": {"nodeCount": 3},
    }


def test_what_is_so_already_is_not_applied_whoever_owns_it() -> None:
    for manager in ("else", FIELD_MANAGER):
        there = stored({"nodeCount": 3}, (manager, "Apply", {"f:nodeCount": {}}))
        assert field_update(there, {COUNT: 3}) == (update := field_update(there, {COUNT: 3, TIME: None}))
        assert (update.document, update.left) == (None, ())


def test_a_field_of_another_is_left_and_the_others_are_applied() -> None:
    there = stored({"nodeCount": 1}, ("else", "Update", {".": {}, "f:nodeCount": {}}))
    update = field_update(there, {COUNT: 3, TIME: "now"})
    assert update.left == ("status.nodeCount (else)",)
    assert update.document is not None
    assert update.document["status"] == {"weightCalculationTime": "now"}


def test_an_update_under_our_name_is_somebody_elses() -> None:
    there = stored({"nodeCount": 1}, (FIELD_MANAGER, "Update", {"f:nodeCount": {}}))
    assert field_update(there, {COUNT: 3}).left == (f"status.nodeCount ({FIELD_MANAGER})",)


def test_a_field_that_goes_is_given_up_and_the_others_are_kept() -> None:
    owned = (FIELD_MANAGER, "Apply", {"f:nodeCount": {}, "f:weightCalculationTime": {}})
    there = stored({"nodeCount": 3, "weightCalculationTime": "then"}, owned)
    update = field_update(there, {COUNT: 3, TIME: None})
    assert update.document is not None
    assert update.document["status"] == {"nodeCount": 3}
