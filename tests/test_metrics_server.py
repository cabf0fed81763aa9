"""Whoever reaches the port of a loop's metrics takes little of it, and kubelets have their answer all the same."""

from __future__ import annotations

import errno
import socket
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from placer import metrics_server
from placer.errors import UsageError
from placer.metrics import LoopMetrics
from placer.metrics_server import MetricsServer
from tests.waiting import wait_until

#: Seconds.
FOR_EVER = 600.0


@pytest.fixture
def server() -> Iterator[MetricsServer]:
    with MetricsServer(("127.0.0.1", 0), LoopMetrics("placer")) as found:
        yield found


@pytest.mark.parametrize("host", ["", "::"])
def test_both_stacks_are_answered(host: str) -> None:
    """A pod that has addresses of IPv6 alone is asked there, as one of IPv4 is there."""
    with MetricsServer((host, 0), LoopMetrics("placer")) as server:
        asked = ["127.0.0.1", *(["[::1]"] if has_ipv6() else [])]
        for each in asked:
            with urllib.request.urlopen(f"http://{each}:{server.port}/livez", timeout=60.0) as answer:
                assert answer.status == 200


def test_a_machine_without_ipv6_answers_at_ipv4(monkeypatch: pytest.MonkeyPatch) -> None:

    def no_address(_: object) -> None:
        raise OSError(errno.EADDRNOTAVAIL, "Cannot assign requested address")

    monkeypatch.setattr(metrics_server._BothStacks, "server_bind", no_address)
    with MetricsServer(("", 0), LoopMetrics("placer")) as server:
        assert lives(server)
    with pytest.raises(UsageError, match=r"--metrics-bind-address \[::1\]:0: Cannot assign"):
        MetricsServer(("::1", 0), LoopMetrics("placer"))


def test_an_address_that_is_taken_is_refused_in_its_spelling(server: MetricsServer) -> None:
    with pytest.raises(UsageError, match=rf"--metrics-bind-address :{server.port}: Address already in use"):
        MetricsServer(("", server.port), LoopMetrics("placer"))


def has_ipv6() -> bool:
    try:
        with socket.socket(socket.AF_INET6) as tried:
            tried.bind(("::1", 0))
    except OSError:
        return False
    return True


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


def test_no_more_is_read_than_a_request_may_have(server: MetricsServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """One line without an end: of headers the library takes no more than a hundred."""
    monkeypatch.setattr(metrics_server, "_SLOW", FOR_EVER)
    with connected(server) as connection:
        connection.sendall(b"GET /" + b"y" * (metrics_server._LONGEST - 5))
        wait_until(lambda: not is_open(connection, b"y"), "the end of it")


def test_the_oldest_connection_gives_way(server: MetricsServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics_server, "_MOST", 3)
    monkeypatch.setattr(metrics_server, "_SLOW", FOR_EVER)
    with ExitStack() as stack:
        idle = [stack.enter_context(connected(server)) for _ in range(3)]
        assert lives(server)
        assert answered(idle[0]) == b""
        for each in idle[1:]:
            each.sendall(b"GET /readyz HTTP/1.0\r\n\r\n")
            assert b"503" in answered(each)
    wait_until(lambda: not server._server._open, "all connections to be over")


def test_what_a_flood_leaves_is_nothing(server: MetricsServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics_server, "_SLOW", FOR_EVER)
    before, most = threading.active_count(), metrics_server._MOST
    with ExitStack() as stack:
        for _ in range(10 * most):
            stack.enter_context(connected(server))
        assert lives(server)
        wait_until(lambda: threading.active_count() <= before + most, "the end of those that gave way")
    wait_until(lambda: threading.active_count() <= before, "the end of all threads")


def test_who_is_gone_before_the_answer_is_no_trouble(
    server: MetricsServer, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, gone = threading.Event(), threading.Event()

    def text(_: object) -> bytes:
        asked.set()
        assert gone.wait(FOR_EVER)
        return b"x" * 50_000_000

    monkeypatch.setattr(metrics_server.prometheus, "generate_latest", text)
    with connected(server) as connection:
        connection.sendall(b"GET /metrics HTTP/1.0\r\n\r\n")
        assert asked.wait(FOR_EVER)
    gone.set()
    wait_until(lambda: not server._server._open, "the end of it")
    assert lives(server)
    assert capfd.readouterr().err == ""
