"""What a real API server takes of any objects, all of it at once beside gangs that are in order."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from tests.cluster.any_objects import changed
from tests.cluster.api import Api, Refused
from tests.cluster.passes import Passes, bound
from tests.cluster.test_any_object import ALL_GOOD, WORDS, good, odd
from tests.support import Document
from tests.write_openapi import TARGET, document

#: Objects that are made of each that is in order.
EACH = 6


@pytest.mark.exhaustive
@pytest.mark.parametrize("number", range(8))
def test_what_the_server_takes_ends_no_pass(
    number: int, cluster: Api, passes: Passes, install: Callable[[str], None]
) -> None:
    for whose in ("scheduler-plugins", "noderesourcetopology"):
        install(whose)
    cluster.create(*good())
    taken = [each for each in some(number) if is_taken(cluster, each)]
    kinds = {each["kind"] for each in taken}
    assert {"Pod", "Node", "PodGroup", "HyperNode", "NodeResourceTopology"} <= kinds  # not all that is odd is refused
    told = passes(code=None)
    assert told["error"] is None
    assert bound(cluster).keys() & ALL_GOOD == ALL_GOOD


def test_the_schemas_are_those_of_the_server(api: Api) -> None:
    """``python -m tests.write_openapi`` writes them anew."""
    assert json.loads(TARGET.read_text()) == document(api)


def some(number: int) -> list[Document]:
    """Objects that are changed, each under a name of its own; the same for the same number."""
    found: list[Document] = []

    @seed(number)
    @settings(max_examples=EACH, database=None, phases=[Phase.generate], suppress_health_check=list(HealthCheck))
    @given(st.data())
    def collect(data: st.DataObject) -> None:
        found.extend(data.draw(changed(each, WORDS)) for each in odd())

    collect()
    for place, each in enumerate(found):
        if each["kind"] != "Namespace" and each["metadata"]["name"] != "nt-default":
            each["metadata"]["name"] = f"{each['metadata']['name']}-{place}"
    return found


def is_taken(cluster: Api, document: Document) -> bool:
    try:
        cluster.create(document)
    except Refused:
        return False
    return True
