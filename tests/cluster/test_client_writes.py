"""What the client writes and follows: once, with what it is asked, and never a guess about what happened."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import urllib3

from placer.base.errors import ClusterError
from placer.passes.cluster.reading.client import MERGE, Busy, Client, Unanswered
from placer.passes.cluster.reading.credentials import Account, Credentials
from tests.cluster.played import Asked, Said, played


class Server:
    """Gives one answer to everything, part by part, and notes what it was asked."""

    def __init__(self, status: int, headers: dict[str, str] | None = None, *parts: bytes) -> None:
        self.status, self.headers, self.parts = status, headers or {}, parts
        self.asked: list[tuple[str, str, str, Any]] = []
        self.goes_on = threading.Event()  #: unless set, what is asked at /open stays open at its end

    def answer(self, asked: Asked) -> Said:
        kind = asked.headers.get("content-type", "")
        self.asked.append((asked.method, asked.path, kind, asked.body and json.loads(asked.body)))
        return self.status, self.headers, self._parts(asked.path)

    def _parts(self, path: str) -> Iterator[bytes]:
        yield from self.parts
        if path.startswith("/open"):
            self.goes_on.wait(60)


@contextmanager
def writing(status: int, headers: dict[str, str] | None = None, *parts: bytes) -> Iterator[tuple[Server, Client]]:
    server = Server(status, headers, *parts)
    with played(server.answer) as url, urllib3.PoolManager() as pool:
        account = Account(url, pool, {"authorization": "Bearer t"})
        try:
            yield server, Client(Credentials(lambda: account))
        finally:
            server.goes_on.set()


def test_what_is_written_goes_out_once_with_its_body_and_type() -> None:
    with writing(201, {}, b'{"x": 1}') as (server, client):
        answer = client.send("POST", "/api", {"a": 1}, parameters={"dryRun": "All"})
        assert (answer.status, answer.text, answer.again_after) == (201, b'{"x": 1}', None)
        client.send("PATCH", "/api", {"b": 2}, kind=MERGE)
        assert server.asked == [
            ("POST", "/api?dryRun=All", "application/json", {"a": 1}),
            ("PATCH", "/api", "application/merge-patch+json", {"b": 2}),
        ]


@pytest.mark.parametrize("status", [401, 403, 404, 409, 422, 429, 500, 503])
def test_every_answer_is_handed_on_and_nothing_is_tried_again(status: int) -> None:
    with writing(status, {"Retry-After": "7"}, b'{"message": "no"}') as (server, client):
        answer = client.send("POST", "/api", {})
        assert (answer.status, answer.message, answer.again_after) == (status, "no", 7.0)
        assert len(server.asked) == 1


def test_without_an_answer_it_is_not_known() -> None:
    with writing(0) as (server, client):
        with pytest.raises(Unanswered) as caught:
            client.send("POST", "/api", {})
        assert caught.value.exit_code == 6
        assert caught.value.why == "the connection broke before the answer was whole (ProtocolError)"
        assert len(server.asked) == 1


def test_an_answer_that_takes_too_long_is_none() -> None:
    with writing(200) as (_, client), pytest.raises(Unanswered, match=r"/open: no answer within 0\.2 s$") as caught:
        client.send("POST", "/open", {}, timeout=0.2)
    assert caught.value.why == "no answer within 0.2 s"  # all that tenants read of it


def test_lines_come_whole_however_they_are_sent() -> None:
    with writing(200, {}, b'{"a"', b': 1}\n{"b": 2}\n\n{"c"', b": 3}\n") as (server, client):
        found = list(client.follow("/api", {"watch": "true"}, lambda _: None))
        assert found == [b'{"a": 1}', b'{"b": 2}', b"", b'{"c": 3}']
        assert server.asked[0][:2] == ("GET", "/api?watch=true")


def test_an_open_answer_can_be_ended_from_outside() -> None:
    shut: list[Any] = []
    with writing(200, {}, b"one\n") as (_, client):
        lines = client.follow("/open", {}, shut.append)
        assert next(lines) == b"one"
        shut[0]()
        with pytest.raises((Unanswered, StopIteration)):
            next(lines)
        shut[0]()  # a second time changes nothing


def test_a_server_that_has_forgotten_says_so_in_one_way() -> None:
    with writing(410, {}, b'{"message": "too old"}') as (_, client):
        assert list(client.follow("/api", {}, lambda _: None)) == [b'{"type":"ERROR","object":{"code":410}}']


def test_a_watch_that_is_refused_is_an_error() -> None:
    with (
        writing(403, {}, b'{"message": "no"}') as (_, client),
        pytest.raises(ClusterError, match=r"^/api: 403 no$"),
    ):
        list(client.follow("/api", {}, lambda _: None))


def test_a_watch_that_there_is_no_time_for_says_when_to_ask_again() -> None:
    with (
        writing(429, {"Retry-After": "7"}, b'{"message": "later"}') as (_, client),
        pytest.raises(Busy, match=r"^/api: 429 later$") as busy,
    ):
        list(client.follow("/api", {}, lambda _: None))
    assert busy.value.again_after == 7.0
