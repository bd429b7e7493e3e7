"""``ssdfl run --live``: serve the report on loopback during the run."""

from __future__ import annotations

import sys
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
    from ssdfl.experiments import Advance
    from ssdfl.records import Experiment, RunFolder
    from ssdfl.records.folder import Row
    from ssdfl.report.run_data import Facts

HOST = "127.0.0.1"
PATIENCE_S = 5.0
"""How late a page's request may be before a finished run stops waiting for it."""
LONGEST_PAUSE_S = 10.0
"""The longest pause between two requests of a page; as in ``live.js``."""


class LiveRun:
    """The records of a run so far, and the page that shows them."""

    def __init__(self, folder: RunFolder, experiment: Experiment) -> None:
        self.folder, self.experiment = folder, experiment
        self.total = experiment.all_cycles
        self.done = self.computed = self.version = 0
        self.text, self.ended = "preparing", False
        self.newest_heard, self.due_s = -1, float("-inf")
        self._start_s = 0.0
        self._rows: dict[tuple[str, int], list[Row]] = {}
        self._kept: dict[tuple[str, int], list[Row]] = {}
        self._facts: Facts = {}
        self._records, self._building = threading.Lock(), threading.Lock()

    def cycle(self, advance: Advance) -> None:
        """Record that one more cycle is done."""
        key = (advance.method, advance.seed)
        with self._records:
            self._start_s = self._start_s or time.monotonic()
            if advance.record is not None:
                self._rows.setdefault(key, []).append(
                    {"method": key[0], "seed": key[1], **asdict(advance.record)}
                )
                self.computed += 1
            else:
                self._rows[key] = [
                    row for row in self._earlier(advance) if row["cycle"] <= advance.cycle
                ]
            self.done += 1
            self.version += 1
            self.text = f"{self._progress(advance)}{self._remaining()}"

    def _earlier(self, advance: Advance) -> list[Row]:
        """The records of a method and seed; read again only after a new cycle."""
        method, seed = advance.method, advance.seed
        rows = self._kept.get((method, seed), [])
        if not rows or rows[-1]["cycle"] < advance.cycle:
            rows = [
                {"method": method, "seed": seed, **row}
                for row in self.folder.read_rows(seed, method)
            ]
            self._kept[method, seed] = rows
        return rows

    def end(self, text: str) -> None:
        """Show open pages how the run ended, and wait until every page that still polls has it."""
        with self._records:
            self._rows = {}
            for row in self.folder.all_rows():
                self._rows.setdefault((row["method"], row["seed"]), []).append(row)
            self.text, self.ended = text, True
            self.version += 1
        while self.newest_heard < self.version and time.monotonic() < self.due_s:
            time.sleep(0.05)

    def page(self) -> str:
        """The page."""
        from ssdfl.report.live import live_page

        with self._building:
            page = live_page(self.folder, self.experiment, self._facts)
        self.heard(-1, 0.0)
        return page

    def news(self, seen: int) -> tuple[int, str | None]:
        """The current version, and the changes since version ``seen``; None if there are none."""
        from ssdfl.report.live import live_news

        with self._building:
            with self._records:
                version = self.version
                status = {"version": version, "ended": self.ended, "text": self.text}
                status |= {"done": self.done, "total": self.total}
                rows = [
                    row for method in self.experiment.methods for row in self._of_method(method)
                ]
            if seen == version:
                return version, None
            return version, live_news(self.folder, self.experiment, rows, status, self._facts)

    def heard(self, version: int, pause_s: float) -> None:
        """Note the version that a page has received, and its pause before the next request."""
        self.newest_heard = version
        self.due_s = time.monotonic() + min(pause_s, LONGEST_PAUSE_S) + PATIENCE_S

    def _of_method(self, method: str) -> list[Row]:
        return [row for seed in self.experiment.seeds for row in self._rows.get((method, seed), [])]

    def _progress(self, advance: Advance) -> str:
        record = advance.record
        goal = self.folder.goal(self.experiment)
        shown = ""
        if record and record.tested:
            shown = f", {goal.noun} {goal.score.shown(getattr(record, goal.reading))}"
        cycles = f"cycle {advance.cycle} of {self.experiment.cycles}"
        place = f"seed {advance.seed}, {advance.method}, {cycles}"
        return place + shown

    def _remaining(self) -> str:
        if self.computed < 2:
            return ""
        left_s = (time.monotonic() - self._start_s) / (self.computed - 1) * (self.total - self.done)
        return (
            f"; about {left_s:.0f} s to go"
            if left_s < 120
            else f"; about {left_s / 60:.0f} min to go"
        )


def own_names(port: int) -> set[str]:
    """The ``Host`` headers that a browser may send to this server; it leaves out port 80."""
    names = {HOST, "localhost"}
    return {f"{name}:{port}" for name in names} | (names if port == 80 else set())


class _Handler(BaseHTTPRequestHandler):
    """Serves the page and its updates, to pages of this address only."""

    server: _Server

    def do_GET(self) -> None:
        # DNS rebinding: another site's page may reach loopback under its own name; refuse it.
        if self.headers.get("Host") not in self.server.own_names:
            self._answer(403, "text/plain", "Open 127.0.0.1 instead.")
            return
        try:
            self._answer_about(self.path)
        except ConnectionError:
            raise
        except Exception as error:  # the page shows it, and the run continues
            self._complain(error)

    def _answer_about(self, path: str) -> None:
        url = urlsplit(path)
        if url.path == "/":
            self._answer(200, "text/html; charset=utf-8", self.server.live.page())
        elif url.path == "/data.json":
            self._tell({name: values[0] for name, values in parse_qs(url.query).items()})
        else:
            self._answer(404, "text/plain", "Only / and /data.json exist.")

    def _complain(self, error: Exception) -> None:
        """Answer with an error, and print it in the terminal unless it was the last one printed."""
        text = f"Cannot build the page: {type(error).__name__}: {error}"
        if text != self.server.complaint:
            sys.stderr.write(f"ssdfl: {text}\n")
        self.server.complaint = text
        self._answer(500, "text/plain; charset=utf-8", text)

    def _tell(self, asked: dict[str, str]) -> None:
        seen, pause_ms = asked.get("seen", ""), asked.get("pause", "")
        version, news = self.server.live.news(int(seen) if seen.isdecimal() else -1)
        self._answer(204 if news is None else 200, "application/json", news or "")
        self.server.live.heard(version, int(pause_ms) / 1000 if pause_ms.isdecimal() else 0.0)

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
        self.live, self.complaint = live, ""
        self.own_names = own_names(self.server_port)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore a reader that closed its connection."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


@contextmanager
def serving(live: LiveRun, port: int = 0) -> Iterator[str]:
    """Serve a live run on loopback; yields the address.

    Raises:
        InputError: the port is not available.
    """
    check_range("--port", port, 0, 65535, "Leave it out to use any free port.")
    try:
        server = _Server(live, port)
    except OSError as error:
        remedy = f"({error.strerror}) Choose another, or leave it out."
        raise InputError("--port", port, "a free port", remedy) from None
    thread = threading.Thread(
        target=server.serve_forever, kwargs={"poll_interval": 0.1}, daemon=True
    )
    thread.start()
    try:
        yield f"http://{HOST}:{server.server_port}/"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
