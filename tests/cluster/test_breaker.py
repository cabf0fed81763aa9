"""When a server is not asked any more, and when it is asked again."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping

import pytest

from placer.base.errors import ClusterError
from placer.passes.cluster.reading.client import Response, Unanswered
from placer.passes.cluster.writing.breaker import Breaker, PatientWriter


class Server:
    """Answers with a status after the other, 0: not at all; the last one for ever. Each answer takes a second."""

    def __init__(self, *statuses: int, again_after: float | None = None) -> None:
        self.statuses, self.again_after = list(statuses), again_after
        self.now, self.asked = 100.0, 0

    def clock(self) -> float:
        return self.now

    def get(self, _path: str, _parameters: Mapping[str, str] | None = None) -> Response:
        return Response(200, b"{}")

    def send(self, *_: object, **__: object) -> Response:
        self.asked += 1
        self.now += 1
        status = self.statuses.pop(0) if len(self.statuses) > 1 else self.statuses[0]
        if not status:
            raise Unanswered("no answer")
        return Response(status, b'{"message": "said"}', self.again_after)


def tried(server: Server, times: int, patience: float = 6.0, method: str = "POST") -> Breaker:
    breaker = Breaker(server, patience, clock=server.clock)
    for _ in range(times):
        try:
            breaker.send(method, "/x")
        except Unanswered:
            continue
    return breaker


@pytest.mark.parametrize(("status", "said"), [(0, "no answer"), (401, "401 said"), (429, "429 said")])
def test_it_opens_when_all_is_refused_for_as_long_as_patience_lasts(status: int, said: str) -> None:
    assert tried(Server(status), 6).open is None
    assert tried(Server(status), 7).open == f"the server has refused everything for 6 s: {said}"


def test_what_was_found_done_is_as_good_as_an_answer() -> None:
    """A server that does all and whose answers get lost is none that refuses."""
    breaker = tried(Server(0), 7)
    assert breaker.open is not None
    breaker.note_answer()
    assert (breaker.open, breaker.refused) == (None, None)


def test_a_few_refusals_do_not_open_it_however_long_they_took() -> None:
    assert tried(Server(503), 4, patience=0).open is None
    assert tried(Server(503), 5, patience=0).open is not None


@pytest.mark.parametrize("status", [201, 404, 409, 422])
def test_an_answer_about_an_object_closes_it(status: int) -> None:
    breaker = tried(Server(*[503] * 8, status), 9)
    assert (breaker.open, breaker.refused) == (None, None)


@pytest.mark.parametrize("status", [403, 500])
def test_what_may_be_of_one_namespace_does_not_open_it_but_is_told(status: int) -> None:
    breaker = tried(Server(status), 40)
    assert breaker.open is None
    assert breaker.refused == f"the server refused all that was sent, 40 times: {status} said"
    assert tried(Server(status), 4).refused is None


def test_what_is_read_says_nothing_about_what_is_written() -> None:
    assert tried(Server(503), 40, method="GET").refused is None
    breaker = tried(Server(503), 8)
    breaker.get("/x")
    assert breaker.open is not None


def test_only_what_counts_closes_it() -> None:
    server = Server(*[503] * 8, 200)
    breaker = Breaker(server, 6.0, methods=("POST",), clock=server.clock)
    for _ in range(8):
        breaker.send("POST", "/x")
    assert breaker.send("PATCH", "/x").status == 200
    assert breaker.open is not None
    breaker.send("POST", "/x")
    assert breaker.open is None


def waits(server: Server, seconds: float) -> tuple[Response, list[float]]:
    waited: list[float] = []
    writer = PatientWriter(Breaker(server, 1000.0, clock=server.clock), time.monotonic() + seconds, waited.append)
    return writer.send("PATCH", "/x"), waited


def test_a_server_without_time_is_asked_again_when_it_says() -> None:
    answer, waited = waits(Server(429, 429, 200, again_after=2.0), 60)
    assert answer.status == 200
    assert [2 <= each <= 2.2 for each in waited] == [True, True]
    answer, waited = waits(Server(429, 200), 60)
    assert [1 <= each <= 1.1 for each in waited] == [True]


def test_where_it_wants_more_time_than_there_is_that_is_the_answer() -> None:
    server = Server(429, 200, again_after=90.0)
    answer, waited = waits(server, 60)
    assert (answer.status, waited, server.asked) == (429, [], 1)


@pytest.mark.parametrize("status", [404, 409, 422, 500, 503])
def test_other_answers_are_handed_on(status: int) -> None:
    server = Server(status)
    assert waits(server, 60)[0].status == status
    assert server.asked == 1


def test_once_open_nothing_is_sent() -> None:
    server = Server(503)
    writer = PatientWriter(tried(server, 8), time.monotonic() + 60)
    with pytest.raises(ClusterError, match=re.escape("not written: the server has refused everything for 7 s: 503")):
        writer.send("PATCH", "/x")
    assert server.asked == 8
