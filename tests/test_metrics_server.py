"""Whoever reaches the port of a loop's metrics takes little of it, and kubelets have their answer all the same."""

from __future__ import annotations

import socket
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from placer import metrics_server
from placer.metrics import LoopMetrics
from placer.metrics_server import MetricsServer
from tests.waiting import wait_until


@pytest.fixture
def server() -> Iterator[MetricsServer]:
    with MetricsServer(("127.0.0.1", 0), LoopMetrics("placer")) as found:
        yield found


def connected(server: MetricsServer) -> socket.socket:
    connection = socket.create_connection(("127.0.0.1", server.port))
    connection.settimeout(60.0)
    return connection


def lives(server: MetricsServer) -> bool:
    with urllib.request.urlopen(f"http://127.0.0.1:{server.port}/livez", timeout=60.0) as answer:
        return bool(answer.status == 200)


def is_open(connection: socket.socket, more: bytes) -> bool:
    """Whether the other end takes more."""
    try:
        connection.sendall(more)
    except ConnectionError:
        return False
    return True


def answered(connection: socket.socket) -> bytes:
    """All that comes until the other end is gone."""
    found = b""
    try:
        while more := connection.recv(4096):
            found += more
    except ConnectionError:
        pass
    return found


def test_a_request_is_over_after_a_while_though_more_and_more_of_it_comes(
    server: MetricsServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(metrics_server, "_SLOW", 1.0)
    began = time.monotonic()
    with connected(server) as connection:
        while is_open(connection, b"X"):
            time.sleep(0.05)
    assert time.monotonic() - began > 0.9


def test_no_more_is_read_than_a_request_may_have(server: MetricsServer) -> None:
    with connected(server) as connection:
        connection.sendall(b"GET /livez HTTP/1.0\r\n" + b"X: %s\r\n" % (b"y" * 1000) * 15)
        wait_until(lambda: not is_open(connection, b"X: y\r\n"), "the end of it")


def test_the_oldest_connection_gives_way(server: MetricsServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics_server, "_MOST", 3)
    with ExitStack() as stack:
        idle = [stack.enter_context(connected(server)) for _ in range(3)]
        assert lives(server)
        assert answered(idle[0]) == b""
        for each in idle[1:]:
            each.sendall(b"GET /readyz HTTP/1.0\r\n\r\n")
            assert b"503" in answered(each)
    wait_until(lambda: not server._server._open, "all connections to be over")


def test_what_a_flood_leaves_is_nothing(server: MetricsServer) -> None:
    before = threading.active_count()
    with ExitStack() as stack:
        for _ in range(10 * metrics_server._MOST):
            stack.enter_context(connected(server))
        assert lives(server)
        assert threading.active_count() <= before + 2 * metrics_server._MOST
    wait_until(lambda: threading.active_count() <= before, "the end of all threads")


def test_who_is_gone_before_the_answer_is_no_trouble(
    server: MetricsServer, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(metrics_server.prometheus, "generate_latest", lambda _: b"x" * 50_000_000)
    with connected(server) as connection:
        connection.sendall(b"GET /metrics HTTP/1.0\r\n\r\n")
    wait_until(lambda: not server._server._open, "the end of it")
    assert lives(server)
    assert capfd.readouterr().err == ""
