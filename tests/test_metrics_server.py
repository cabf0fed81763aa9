"""Whoever reaches the port of a loop's metrics takes little of it, and kubelets have their answer all the same."""

from __future__ import annotations

import errno
import http.client
import json
import socket
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from placer.base.errors import UsageError
from placer.base.version import __version__
from placer.cli.inspection import Inspection
from placer.passes import metrics_server
from placer.passes.metrics import LoopMetrics
from placer.passes.metrics_server import MetricsServer
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


# --------------------------------------------------------------------------------------- who is on the same machine


def answer(server: MetricsServer, method: str, path: str, body: str = "", host: str = "localhost") -> tuple[int, str]:
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60.0)
    try:
        connection.request(method, path, body or None, {"Host": host})
        found = connection.getresponse()
        return found.status, found.read().decode()
    finally:
        connection.close()


@pytest.fixture
def inspected() -> Iterator[MetricsServer]:
    pages = Inspection({"timeLimit": 5.0}).pages
    with MetricsServer(("", 0), LoopMetrics("placer"), pages) as found:
        yield found


def test_options_and_status_are_told_by_the_names_of_kubernetes(inspected: MetricsServer) -> None:
    status, text = answer(inspected, "GET", "/configz")
    assert (status, json.loads(text)) == (200, {"placer": {"timeLimit": 5.0}})
    status, text = answer(inspected, "GET", "/statusz", host="[::1]:8080")
    assert status == 200
    assert f"Binary version: {__version__}\n" in text
    assert "now: nothing yet" in text


def test_the_log_level_is_set_while_it_runs(inspected: MetricsServer) -> None:
    assert answer(inspected, "GET", "/debug/flags/v") == (200, "0\n")
    assert answer(inspected, "PUT", "/debug/flags/v", "6") == (200, "the log level is 6 now\n")
    assert answer(inspected, "PUT", "/debug/flags/v", "loud") == (
        400,
        "found 'loud', expected a number from 0 to 10\n",
    )
    assert answer(inspected, "GET", "/debug/flags/v") == (200, "6\n")


@pytest.mark.parametrize("path", ["/configz", "/statusz", "/metrics", "/livez"])
def test_nothing_else_takes_what_is_written(path: str, inspected: MetricsServer) -> None:
    status, _ = answer(inspected, "PUT", path, "6")
    assert status in (404, 405)


@pytest.mark.parametrize("host", ["evil.example", "evil.example:8080", "10.0.0.7:8080", "localhost.evil.example"])
def test_a_web_page_of_another_name_gets_nothing(host: str, inspected: MetricsServer) -> None:
    """A browser on an operator's machine may be led to a forwarded port by the name of a foreign page."""
    assert answer(inspected, "GET", "/configz", host=host)[0] == 403
    assert answer(inspected, "GET", "/livez", host=host)[0] == 200


@pytest.mark.parametrize(
    ("client", "here"),
    [
        ("127.0.0.1", True),
        ("::1", True),
        ("::ffff:127.0.0.1", True),
        ("10.0.0.7", False),
        ("::ffff:10.0.0.7", False),
        ("fe80::1%eth0", False),
        ("", False),
    ],
)
def test_who_is_elsewhere_gets_nothing(client: str, here: bool) -> None:
    status, _, text = metrics_server._local(lambda _: "it", "/configz", None, client, "localhost:8080")
    assert (status, text == b"it") == ((200, True) if here else (403, False))


def test_without_such_pages_there_are_none(server: MetricsServer) -> None:
    assert answer(server, "GET", "/configz")[0] == 404
