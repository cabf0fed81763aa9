"""The server that answers Prometheus and the probes of kubelets.

Anyone in the cluster may reach the port, so connections and requests are bounded. Pages that name objects are for the
same machine alone, as with ``kubectl port-forward``, and not for web pages there, which ask by another host name.
"""

from __future__ import annotations

import errno
import io
import ipaddress
import socket
import sys
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

import prometheus_client as prometheus

from placer.base.errors import UsageError
from placer.passes.metrics import LoopMetrics

__all__ = ["MetricsServer", "PageAnswer", "PageServer"]

#: Seconds for a question and its answer; a client that takes longer is let go.
_SLOW = 10.0
#: Bytes of a request, at most.
_LONGEST = 16 * 1024
#: Connections at once; the oldest gives way.
_MOST = 64
_TEXT = "text/plain; charset=utf-8"
#: Status, type and text of an answer.
PageAnswer = tuple[int, str, bytes]
#: Gives a page to who is on the same machine; takes what is written there, None: nothing is.
_LocalPage = Callable[[str | None], str]


class PageServer:
    """Answers for some paths, in threads of its own.

    Parameters
    ----------
    address
        Host and port; an empty host or ``::``: all addresses of this machine; port 0: any.
    local
        Pages for the same machine alone, which raise ``ValueError`` for a wrong body. Those below ``/debug/flags/`` may
        be written to.

    Raises
    ------
    UsageError
        Nobody can listen there.
    """

    def __init__(
        self,
        address: tuple[str, int],
        pages: Mapping[str, Callable[[], PageAnswer]],
        flag: str,
        local: Mapping[str, _LocalPage] | None = None,
    ) -> None:
        class Handler(BaseHTTPRequestHandler):
            def setup(self) -> None:
                super().setup()
                self.request_read = _BoundedRequest(self.connection)
                self.rfile = io.BufferedReader(self.request_read)

            def do_GET(self) -> None:  # the names are of the library
                self._answer(None)

            def do_PUT(self) -> None:
                length = self.headers.get("Content-Length", "")
                self._answer(self.rfile.read(min(int(length), _LONGEST)).decode() if length.isdecimal() else "")

            def _answer(self, body: str | None) -> None:
                path = self.path.partition("?")[0]
                asked = (self.client_address[0], self.headers.get("Host", ""))
                if local and path in local:
                    status, kind, text = _local(local[path], path, body, *asked)
                elif body is not None or path not in pages:
                    status, kind, text = 404, _TEXT, b"not found\n"
                else:
                    status, kind, text = pages[path]()
                self.connection.settimeout(self.request_read.seconds)
                self.send_response(status)
                self.send_header("Content-Type", kind)
                self.send_header("Cache-Control", "no-store")
                self.send_header("X-Content-Type-Options", "nosniff")
                self.send_header("X-Frame-Options", "DENY")
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)

            def log_message(self, *_: object) -> None:
                pass

        host, port = address
        try:
            self._server = _listening(host, port, Handler)
        except OSError as error:
            shown = f"[{host}]" if ":" in host else host
            raise UsageError(f"{flag} {shown}:{port}: {error.strerror}") from error
        self.port: int = self._server.server_address[1]
        self._thread = threading.Thread(target=self._server.serve_forever, name=flag, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()


class MetricsServer(PageServer):
    """Answers ``/metrics``, ``/livez``, ``/healthz`` (the same) and ``/readyz``.

    Raises
    ------
    UsageError
        Nobody can listen there.
    """

    def __init__(
        self, address: tuple[str, int], metrics: LoopMetrics, local: Mapping[str, _LocalPage] | None = None
    ) -> None:
        pages: dict[str, Callable[[], PageAnswer]] = {
            "/metrics": lambda: (200, prometheus.CONTENT_TYPE_LATEST, prometheus.generate_latest(metrics.registry)),
            "/livez": lambda: _health(metrics.trouble),
            "/healthz": lambda: _health(metrics.trouble),
            "/readyz": lambda: _health(None if metrics.ready else "no pass has ended yet"),
        }
        super().__init__(address, pages, "--metrics-bind-address", local)


def _local(page: _LocalPage, path: str, body: str | None, client: str, host: str) -> PageAnswer:
    name = host.rpartition(":")[0] if host.rpartition(":")[2].isdecimal() else host
    if not _is_here(client) or not (name in ("", "localhost") or _is_here(name.strip("[]"))):
        return 403, _TEXT, b"this page is for who is on the same machine: kubectl port-forward POD 8080\n"
    if body is not None and not path.startswith("/debug/flags/"):
        return 405, _TEXT, b"this page is only read\n"
    try:
        text = page(body)
    except ValueError as error:
        return 400, _TEXT, f"{error}\n".encode()
    return 200, "application/json" if text.startswith("{") else _TEXT, text.encode()


def _is_here(address: str) -> bool:
    try:
        found = ipaddress.ip_address(address)
    except ValueError:
        return False
    mapped = found.ipv4_mapped if isinstance(found, ipaddress.IPv6Address) else None
    return (mapped or found).is_loopback


def _listening(host: str, port: int, handler: type[BaseHTTPRequestHandler]) -> _FewConnections:
    """Listen at an address; where it means all of a machine without IPv6, at those of IPv4."""
    if host and ":" not in host:
        return _FewConnections((host, port), handler)
    try:
        return _BothStacks((host or "::", port), handler)
    except OSError as error:
        if host not in ("", "::") or error.errno == errno.EADDRINUSE:
            raise
    return _FewConnections(("", port), handler)


class _FewConnections(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 2 * _MOST  # the library's few would be full at once, and kubelets not heard for a second

    def __init__(self, *arguments: Any) -> None:
        self._guard = threading.Lock()
        self._open: dict[socket.socket, None] = {}  # in the order in which they came
        super().__init__(*arguments)

    def process_request(self, request: Any, client_address: Any) -> None:
        with self._guard:
            self._open[request] = None
            oldest = next(iter(self._open)) if len(self._open) > _MOST else None
            if oldest is not None:
                del self._open[oldest]
                with suppress(OSError):  # it is over already
                    oldest.shutdown(socket.SHUT_RDWR)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        with self._guard:
            self._open.pop(request, None)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        if not isinstance(sys.exc_info()[1], OSError):
            super().handle_error(request, client_address)


class _BothStacks(_FewConnections):
    address_family = socket.AF_INET6

    def server_bind(self) -> None:
        self.socket.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        super().server_bind()


class _BoundedRequest(io.RawIOBase):
    def __init__(self, connection: socket.socket) -> None:
        self._connection, self._left = connection, _LONGEST
        self._until = time.monotonic() + _SLOW

    def readable(self) -> bool:
        return True

    @property
    def seconds(self) -> float:
        left = self._until - time.monotonic()
        if left <= 0:
            raise TimeoutError("it took too long")
        return left

    def readinto(self, buffer: Any) -> int:
        self._connection.settimeout(self.seconds)
        if not self._left:
            raise ConnectionError("the request is too long")
        read = self._connection.recv_into(buffer, min(len(buffer), self._left))
        self._left -= read
        return read


def _health(trouble: str | None) -> tuple[int, str, bytes]:
    return (200, _TEXT, b"ok\n") if trouble is None else (503, _TEXT, f"{trouble}\n".encode())
