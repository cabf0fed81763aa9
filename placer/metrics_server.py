"""Where a loop of passes tells Prometheus its metrics, and kubelets whether it lives and is ready.

Whoever reaches the port may be anyone in the cluster, so nobody can take much of the process that binds: a connection
is over after ten seconds whatever it does, no more than a short request is read of it, and where there are too many the
one that has been there longest goes, so that the next question of a kubelet is heard.
"""

from __future__ import annotations

import errno
import io
import socket
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import prometheus_client as prometheus

from placer.errors import UsageError
from placer.metrics import LoopMetrics

__all__ = ["MetricsServer"]

#: Seconds for a question and its answer; a client that takes longer is let go.
_SLOW = 10.0
#: Bytes of a request, at most.
_LONGEST = 16 * 1024
#: Connections at once; the oldest gives way.
_MOST = 64
_TEXT = "text/plain; charset=utf-8"


class MetricsServer:
    """Answers ``/metrics``, ``/livez``, ``/healthz`` (the same) and ``/readyz``, in threads of its own.

    Parameters
    ----------
    address
        Host and port; an empty host or ``::``: all addresses of this machine, of IPv6 and of IPv4, whichever it has;
        port 0: any.
    metrics
        What to tell.

    Raises
    ------
    UsageError
        Nobody can listen there.
    """

    def __init__(self, address: tuple[str, int], metrics: LoopMetrics) -> None:
        pages: dict[str, Callable[[], tuple[int, str, bytes]]] = {
            "/metrics": lambda: (200, prometheus.CONTENT_TYPE_LATEST, prometheus.generate_latest(metrics.registry)),
            "/livez": lambda: _health(metrics.trouble),
            "/healthz": lambda: _health(metrics.trouble),
            "/readyz": lambda: _health(None if metrics.ready else "no pass has ended yet"),
        }

        class Handler(BaseHTTPRequestHandler):
            def setup(self) -> None:
                super().setup()
                self.request_read = _BoundedRequest(self.connection)
                self.rfile = io.BufferedReader(self.request_read)

            def do_GET(self) -> None:  # the name is of the library
                page = pages.get(self.path.partition("?")[0])
                status, kind, text = (404, _TEXT, b"not found\n") if page is None else page()
                self.connection.settimeout(self.request_read.seconds)
                self.send_response(status)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)

            def log_message(self, *_: object) -> None:
                """Keep standard error for what concerns passes."""

        host, port = address
        try:
            self._server = _listening(host, port, Handler)
        except OSError as error:
            shown = f"[{host}]" if ":" in host else host
            raise UsageError(f"--metrics-bind-address {shown}:{port}: {error.strerror}") from error
        self.port: int = self._server.server_address[1]
        self._thread = threading.Thread(target=self._server.serve_forever, name="metrics", daemon=True)

    def __enter__(self) -> MetricsServer:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()


def _listening(host: str, port: int, handler: type[BaseHTTPRequestHandler]) -> _FewConnections:
    """Listen at an address; where it is all of the machine's and the machine knows no IPv6, at those of IPv4."""
    if host and ":" not in host:
        return _FewConnections((host, port), handler)
    try:
        return _BothStacks((host or "::", port), handler)
    except OSError as error:
        if host not in ("", "::") or error.errno == errno.EADDRINUSE:
            raise
    return _FewConnections(("", port), handler)


class _FewConnections(ThreadingHTTPServer):
    """One thread for each connection, and few of them."""

    daemon_threads = True
    request_queue_size = 2 * _MOST  # the library's few would be full at once, and kubelets not heard for a second

    def __init__(self, *arguments: Any) -> None:
        self._guard = threading.Lock()
        self._open: dict[socket.socket, None] = {}  # in the order in which they came
        super().__init__(*arguments)

    def process_request(self, request: Any, client_address: Any) -> None:
        """Begin to answer, and end the oldest connection where there are too many."""
        with self._guard:
            self._open[request] = None
            oldest = next(iter(self._open)) if len(self._open) > _MOST else None
            if oldest is not None:
                del self._open[oldest]
                with suppress(OSError):  # it is over already
                    oldest.shutdown(socket.SHUT_RDWR)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        """Forget a connection that is over."""
        with self._guard:
            self._open.pop(request, None)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing of clients that are gone before they have their answer."""
        if not isinstance(sys.exc_info()[1], OSError):
            super().handle_error(request, client_address)


class _BothStacks(_FewConnections):
    """Listens at an address of IPv6; at all of them, those of IPv4 are among them."""

    address_family = socket.AF_INET6

    def server_bind(self) -> None:
        """Say so, whatever the machine does where nothing is said."""
        self.socket.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        super().server_bind()


class _BoundedRequest(io.RawIOBase):
    """What a client sends: a few bytes, within a few seconds."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection, self._left = connection, _LONGEST
        self._until = time.monotonic() + _SLOW

    def readable(self) -> bool:
        """It is all that it is for."""
        return True

    @property
    def seconds(self) -> float:
        """How long the connection may last still.

        Raises
        ------
        TimeoutError
            No longer.
        """
        left = self._until - time.monotonic()
        if left <= 0:
            raise TimeoutError("it took too long")
        return left

    def readinto(self, buffer: Any) -> int:
        """Read what has come.

        Raises
        ------
        TimeoutError
            It took too long.
        ConnectionError
            It is more than a request may have.
        """
        self._connection.settimeout(self.seconds)
        if not self._left:
            raise ConnectionError("the request is too long")
        read = self._connection.recv_into(buffer, min(len(buffer), self._left))
        self._left -= read
        return read


def _health(trouble: str | None) -> tuple[int, str, bytes]:
    return (200, _TEXT, b"ok\n") if trouble is None else (503, _TEXT, f"{trouble}\n".encode())
