"""Something in front of the API server that spoils answers: for tests of what a client makes of them."""

from __future__ import annotations

import json
import socket
import ssl
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import urllib3

from tests.cluster.server import ControlPlane

__all__ = ["Proxy", "Spoil", "proxied"]


@dataclass(frozen=True)
class Spoil:
    """What happens to a request in place of an answer.

    Parameters
    ----------
    status
        Of the answer; 0: the connection is closed without any.
    forwarded
        Whether the server gets the request all the same.
    headers, text
        Of the answer.
    hang
        Seconds before it.
    late
        Seconds after which the server gets the request, whether the client still waits or not: its connection is
        closed then without an answer.
    delay
        Seconds after which the server gets the request, and its answer is handed on as it is.
    stalls_after
        Bytes of the server's answer that are handed on; nothing comes behind them, and the connection stays open.
        None: an answer is handed on whole, or not at all.
    """

    status: int = 0
    forwarded: bool = False
    headers: tuple[tuple[str, str], ...] = ()
    text: str = '{"message": "spoilt"}'
    hang: float = 0.0
    late: float = 0.0
    delay: float = 0.0
    stalls_after: int | None = None

    @property
    def is_answered_here(self) -> bool:
        """Whether the server never gets the request."""
        return not (self.forwarded or self.late or self.delay or self.stalls_after is not None)


#: Method, path (of a watch with ``?watch`` behind it), how often that was asked so far (from 1) to what happens; None:
#: nothing.
Rule = Callable[[str, str, int], Spoil | None]


#: Most seconds for which an answer that has stalled stays open.
_STALLED = 120.0
#: Headers that each of the two connections has its own of.
_OWN = ("Host", "Connection", "Content-Length", "Transfer-Encoding")


class Proxy:
    """What is in front; ``rule`` may be changed at any time."""

    def __init__(self, control_plane: ControlPlane) -> None:
        self.rule: Rule = lambda _method, _path, _times: None
        self.url = ""
        self.asked: Counter[tuple[str, str]] = Counter()
        self.done: Counter[tuple[str, str]] = Counter()  #: what the server said 2xx to
        self.reached: Counter[tuple[str, str]] = Counter()  #: what the server got, whatever it answered
        self.bound: Counter[str] = Counter()  #: uid of a pod to how often the server bound it
        self.held_back = 0  #: requests that the server gets later, and has not got yet
        self._control_plane = control_plane
        self.over = threading.Event()  #: set at the end
        self._lock = threading.Lock()
        self._watches: set[socket.socket] = set()
        self._pool = urllib3.PoolManager(maxsize=32, ca_certs=str(control_plane.certificate), retries=False)

    def bindings(self) -> dict[str, int]:
        """Pod to how often the server bound it."""
        return {path.split("/")[-2]: n for (_, path), n in self.done.items() if path.endswith("/binding")}

    def cut_watches(self) -> None:
        """Break the connection of every watch that is open."""
        with self._lock:
            watches = list(self._watches)
        for each in watches:
            with suppress(OSError):  # it has ended meanwhile
                each.shutdown(socket.SHUT_RDWR)

    def handle(self, handler: BaseHTTPRequestHandler) -> None:
        method, (path, _, query) = handler.command, handler.path.partition("?")
        path += "?watch" if "watch=true" in query else ""
        length = int(handler.headers.get("Content-Length") or 0)
        body = handler.rfile.read(length) if length else None
        with self._lock:
            self.asked[method, path] += 1
            times = self.asked[method, path]
        spoil = self.rule(method, path, times)  # it may wait for what another request does
        if spoil is not None and spoil.is_answered_here:
            self._spoil(handler, spoil)
            return
        with self._lock:
            self.held_back += spoil is not None
        try:
            time.sleep(spoil.late or spoil.delay if spoil is not None else 0.0)
            answer = self._forward(handler, body)
        finally:
            with self._lock:
                self.held_back -= spoil is not None
        with self._lock:
            self._note(method, path, body, answer.status)
        with self._open(handler.connection) if path.endswith("?watch") else nullcontext():
            self._answer(handler, spoil, answer)
        answer.release_conn()

    @contextmanager
    def _open(self, connection: socket.socket) -> Iterator[None]:
        """A connection over which a watch goes as long as the block lasts."""
        with self._lock:
            self._watches.add(connection)
        try:
            yield
        finally:
            with self._lock:
                self._watches.discard(connection)

    def _forward(self, handler: BaseHTTPRequestHandler, body: bytes | None) -> Any:
        headers = {name: value for name, value in handler.headers.items() if name not in _OWN}
        url = self._control_plane.url + handler.path
        return self._pool.request(handler.command, url, body=body, headers=headers, preload_content=False)

    def _note(self, method: str, path: str, body: bytes | None, status: int) -> None:
        self.reached[method, path] += 1
        self.done[method, path] += status < 300
        if path.endswith("/binding") and status < 300 and body is not None:
            self.bound[json.loads(body)["metadata"]["uid"]] += 1

    def _answer(self, handler: BaseHTTPRequestHandler, spoil: Spoil | None, answer: Any) -> None:
        """Hand on an answer of the server, or what stands in its place."""
        if spoil is None or spoil.delay or spoil.stalls_after is not None:
            self._pass_on(handler, answer, spoil.stalls_after if spoil is not None else None)
        else:
            answer.read()
            self._spoil(handler, spoil)

    @staticmethod
    def _spoil(handler: BaseHTTPRequestHandler, spoil: Spoil) -> None:
        time.sleep(spoil.hang)
        if not spoil.status:
            handler.close_connection = True
            return
        text = spoil.text.encode()
        handler.send_response(spoil.status)
        for name, value in (*spoil.headers, ("Content-Length", str(len(text)))):
            handler.send_header(name, value)
        handler.end_headers()
        handler.wfile.write(text)

    def _pass_on(self, handler: BaseHTTPRequestHandler, answer: Any, most: int | None) -> None:
        handler.send_response(answer.status)
        for name, value in answer.headers.items():
            if name not in _OWN:
                handler.send_header(name, value)
        handler.send_header("Transfer-Encoding", "chunked")
        handler.end_headers()
        for part in answer.stream(2**16, decode_content=False):
            sent = part if most is None else part[:most]
            if sent:
                handler.wfile.write(b"%x\r\n%b\r\n" % (len(sent), sent))
                handler.wfile.flush()
            most = None if most is None else most - len(sent)
        if most is not None:
            self.over.wait(_STALLED)
        handler.wfile.write(b"0\r\n\r\n")


@contextmanager
def proxied(control_plane: ControlPlane, *, encrypted: bool = False) -> Iterator[Proxy]:
    """Something in front of the server for as long as the block lasts; ``encrypted``: with the server's certificate."""
    proxy = Proxy(control_plane)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def handle_any(self) -> None:
            try:
                proxy.handle(self)
            except (OSError, ValueError, urllib3.exceptions.HTTPError):  # either side went away
                self.close_connection = True

        def log_message(self, *_: Any) -> None:
            """Say nothing."""

    for method in ("GET", "POST", "PUT", "PATCH", "DELETE"):
        setattr(Handler, f"do_{method}", Handler.handle_any)

    class Server(ThreadingHTTPServer):
        daemon_threads = True
        block_on_close = False
        request_queue_size = 64

        def handle_error(self, *where: Any) -> None:
            """Say nothing of a client that was killed in the middle of a request."""
            if not isinstance(sys.exception(), (ConnectionError, ssl.SSLError)):
                super().handle_error(*where)

    with Server(("127.0.0.1", 0), Handler) as server:
        if encrypted:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(control_plane.certificate, control_plane.certificate.with_suffix(".key"))
            # The handshake waits for the thread of the connection, so that a client that is slow keeps nobody off.
            server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
        proxy.url = f"http{'s' if encrypted else ''}://127.0.0.1:{server.server_address[1]}"
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        try:
            yield proxy
        finally:
            proxy.over.set()
            server.shutdown()
