"""``ssdfl run --live``: the report's page on loopback, while the run goes on."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

from ssdfl.errors import InputError, check_range

if TYPE_CHECKING:
    from ssdfl.experiments import Advance, Experiment, RunFolder
    from ssdfl.experiments.store import Row
    from ssdfl.report.run_data import Facts

HOST = "127.0.0.1"
PATIENCE_S = 4.0
"""How long a finished run waits for open pages to fetch its end."""


class LiveRun:
    """The records of a run so far, and the page that shows them."""

    def __init__(self, folder: RunFolder, experiment: Experiment) -> None:
        self.folder, self.experiment = folder, experiment
        self.total = experiment.all_cycles
        self.done = self.computed = self.version = 0
        self.text, self.ended = "preparing", False
        self.told, self.asked_s = -1, float("-inf")
        self._start_s = 0.0
        self._rows: dict[tuple[str, int], list[Row]] = {}
        self._facts: Facts = {}
        self._records, self._building = threading.Lock(), threading.Lock()

    def cycle(self, advance: Advance) -> None:
        """One more cycle is done."""
        key = (advance.method, advance.seed)
        with self._records:
            self._start_s = self._start_s or time.monotonic()
            if advance.record is not None:
                self._rows.setdefault(key, []).append(
                    {"method": key[0], "seed": key[1], **asdict(advance.record)}
                )
                self.computed += 1
            elif not self._rows.get(key):
                kept = self.folder.read_rows(advance.seed, advance.method)
                self._rows[key] = [{"method": key[0], "seed": key[1], **row} for row in kept]
            self.done += 1
            self.version += 1
            self.text = f"{self._progress(advance)}{self._remaining()}"

    def end(self, text: str) -> None:
        """Tell open pages how the run ended, and wait until one that was there lately has heard it."""
        with self._records:
            self._rows = {}
            for row in self.folder.all_rows():
                self._rows.setdefault((row["method"], row["seed"]), []).append(row)
            self.text, self.ended = text, True
            self.version += 1
        until = time.monotonic() + PATIENCE_S
        while self.told < self.version and self.asked_s > until - 2 * PATIENCE_S and time.monotonic() < until:
            time.sleep(0.05)

    def page(self) -> str:
        """The page."""
        from ssdfl.report.live import live_page

        with self._building:
            return live_page(self.folder, self.experiment, self._facts)

    def news(self, seen: int) -> tuple[int, str | None]:
        """The version that there is, and what is new to a page that has seen one; None if nothing is."""
        from ssdfl.report.live import live_news

        self.asked_s = time.monotonic()
        with self._building:
            with self._records:
                version = self.version
                status = {"version": version, "ended": self.ended, "text": self.text}
                status |= {"done": self.done, "total": self.total}
                rows = [row for method in self.experiment.methods for row in self._of_method(method)]
            if seen == version:
                return version, None
            return version, live_news(self.folder, self.experiment, rows, status, self._facts)

    def _of_method(self, method: str) -> list[Row]:
        return [row for seed in self.experiment.seeds for row in self._rows.get((method, seed), [])]

    def _progress(self, advance: Advance) -> str:
        record = advance.record
        accuracy = f", {100 * record.accuracy:.1f} %" if record and record.tested else ""
        place = f"seed {advance.seed}, {advance.method}, cycle {advance.cycle} of {self.experiment.cycles}"
        return place + accuracy

    def _remaining(self) -> str:
        if self.computed < 2:
            return ""
        left_s = (time.monotonic() - self._start_s) / (self.computed - 1) * (self.total - self.done)
        return f"; about {left_s:.0f} s to go" if left_s < 120 else f"; about {left_s / 60:.0f} min to go"


class _Handler(BaseHTTPRequestHandler):
    """Answers for the page and for its news, to pages of this very address only."""

    server: _Server

    def do_GET(self) -> None:
        # Another site's page may reach loopback under a name of its own; it gets nothing.
        if self.headers.get("Host") not in self.server.own_names:
            self._answer(403, "text/plain", "Ask for 127.0.0.1.")
            return
        url = urlsplit(self.path)
        if url.path == "/":
            self._answer(200, "text/html; charset=utf-8", self.server.live.page())
        elif url.path == "/data.json":
            seen = parse_qs(url.query).get("seen", [""])[0]
            version, news = self.server.live.news(int(seen) if seen.isdecimal() else -1)
            self._answer(204 if news is None else 200, "application/json", news or "")
            self.server.live.told = version
        else:
            self._answer(404, "text/plain", "There is / and /data.json.")

    def _answer(self, code: int, kind: str, text: str) -> None:
        body = text.encode()
        self.send_response(code)
        self.send_header("Content-Type", kind)
        self.send_header("Cache-Control", "no-store")
        if code != 204:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing: the terminal belongs to the run."""


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, live: LiveRun, port: int) -> None:
        super().__init__((HOST, port), _Handler)
        self.live = live
        self.own_names = {f"{name}:{self.server_port}" for name in (HOST, "localhost")}

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A reader that went away is no news."""


@contextmanager
def serving(live: LiveRun, port: int = 0) -> Iterator[str]:
    """Serve a live run on loopback; yields the address.

    Raises:
        InputError: the port cannot be had.
    """
    check_range("--port", port, 0, 65535, "Leave it out for a free one.")
    try:
        server = _Server(live, port)
    except OSError as error:
        remedy = f"({error.strerror}) Choose another, or leave it out."
        raise InputError("--port", port, "a port that is free", remedy) from None
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.1}, daemon=True)
    thread.start()
    try:
        yield f"http://{HOST}:{server.server_port}/"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
