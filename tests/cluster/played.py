"""An HTTP server on this machine that answers as a test says."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

__all__ = ["Asked", "Said", "played"]

#: Status, headers and parts of an answer; status 0: none, the connection is closed.
Said = tuple[int, Mapping[str, str], Iterable[bytes]]


@dataclass(frozen=True)
class Asked:
    """A request; names of headers are in small letters."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes


@contextmanager
def played(answer: Callable[[Asked], Said]) -> Iterator[str]:
    """A server for as long as the block lasts; its URL. An answer ends when its parts do."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def handle_any(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            named = {name.lower(): value for name, value in self.headers.items()}
            status, headers, parts = answer(Asked(self.command, self.path, named, body))
            if not status:
                self.close_connection = True
                return
            self.send_response_only(status)  # without a Date of its own
            for name, value in {**headers, "Transfer-Encoding": "chunked"}.items():
                self.send_header(name, value)
            self.end_headers()
            for part in parts:
                self.wfile.write(b"%x\r\n%b\r\n" % (len(part), part))
                self.wfile.flush()
            self.wfile.write(b"0\r\n\r\n")

        def log_message(self, *_: Any) -> None:
            """Say nothing."""

    for method in ("GET", "POST", "PATCH"):
        setattr(Handler, f"do_{method}", Handler.handle_any)

    class Server(ThreadingHTTPServer):
        daemon_threads = True
        block_on_close = False

        def handle_error(self, *_: Any) -> None:
            """Say nothing of a client that does not wait for all of an answer."""

    with Server(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
