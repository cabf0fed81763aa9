"""The report of a loop: the page of the last pass that decided something, at an address of its own."""

from __future__ import annotations

from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest

from placer import solve
from placer.answers.report import contents_of_result, page
from placer.cli.running import LiveReport
from placer.passes.metrics_server import PageServer
from tests.report.scenes import fleet
from tests.support import instance_of

BEGAN = datetime(2026, 11, 27, 14, 3, tzinfo=UTC)


def done(result: Any) -> Any:
    return SimpleNamespace(result=result, began=BEGAN)


def test_the_page_of_the_last_answer_is_served_and_made_once() -> None:
    made: list[float] = []

    def make(result: Any, moment: float) -> str:
        made.append(moment)
        return page(contents_of_result(result, moment, cluster="west", every=30.0))

    report = LiveReport(make)
    with PageServer(("127.0.0.1", 0), {"/report": report.page}, "--report-bind-address") as server:
        address = f"http://127.0.0.1:{server.port}"
        with pytest.raises(HTTPError, match="503"):
            urlopen(f"{address}/report", timeout=10)
        report.ended(done(solve(instance_of(*fleet()), method="greedy")))
        report.ended(done(None))  # a pass that decided nothing leaves the page
        for _ in range(2):
            with urlopen(f"{address}/report", timeout=10) as answer:
                text = answer.read().decode()
                assert answer.headers["Content-Type"] == "text/html; charset=utf-8"
                assert answer.headers["Cache-Control"] == "no-store"
                assert answer.headers["X-Frame-Options"] == "DENY"
        with pytest.raises(HTTPError, match="404"):
            urlopen(f"{address}/metrics", timeout=10)
    assert made == [BEGAN.timestamp()]
    for part in (
        '"cluster":"west"',
        '"live":true',
        f'"moment":{int(BEGAN.timestamp())}',
        '"every":30.0',
        '"name":["runs"',
    ):
        assert part in text


def test_a_page_of_a_result_says_the_same_as_one_of_its_placement() -> None:
    result = solve(instance_of(*fleet()), method="greedy")
    found = contents_of_result(result, BEGAN.timestamp(), cluster="west")
    assert found["headline"].startswith("1 of 2 groups that wait can start: 3 of 8 pods have a place.")
    assert found["violations"] == []
    assert found["groups"]["words"][found["groups"]["name"].index("y")] == "no domain has room"
