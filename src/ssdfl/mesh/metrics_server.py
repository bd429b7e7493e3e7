"""Metrics on loopback; apart, as most devices serve none and need no web server."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from ssdfl.errors import InputError

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


@contextmanager
def serving(port: int, text: Callable[[], str]) -> Iterator[None]:
    """Serve a text as ``/metrics`` on a port of loopback for the block.

    Raises:
        InputError: the port is taken.
    """
    try:
        server = ThreadingHTTPServer(("127.0.0.1", port), _handler(text))
    except (OSError, OverflowError) as error:
        raise InputError("--metrics", port, "a free port of this host", f"({error})") from None
    threading.Thread(target=server.serve_forever, daemon=True, name="metrics").start()
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()


def _handler(text: Callable[[], str]) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        """Answers GET /metrics."""

        def do_GET(self) -> None:
            """The metrics, or 404."""
            if self.path.partition("?")[0] != "/metrics":
                self.send_error(404, "only /metrics is here")
                return
            body = text().encode()
            self.send_response(200)
            self.send_header("Content-Type", CONTENT_TYPE)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Not into the device's output."""

    return Handler
