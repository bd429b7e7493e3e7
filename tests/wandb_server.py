"""As much of a W&B server as a run needs: it keeps the history that it is sent."""

import gzip
import json
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

PROJECT = {"id": "p", "name": "logged", "entity": {"id": "e", "name": "we"}}
VIEWER = {"id": "u", "entity": "we", "username": "we", "flags": "{}", "teams": {"edges": []}}


class Server(ThreadingHTTPServer):
    """Runs by id: what they were opened with, the rows of their history, their exit code."""

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), _Handler)
        self.opened, self.history, self.exit_codes = {}, {}, {}
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_port}"

    def answer(self, query, variables):
        if "query RunResumeStatus" in query:
            return {"model": PROJECT | {"bucket": self.bucket(variables["name"])}}
        if "mutation UpsertBucket" in query:
            self.opened.setdefault(variables["name"], variables)
            return {"upsertBucket": {"bucket": self.named(variables["name"]), "inserted": True}}
        if "mutation CreateRunFiles" in query:
            return {"createRunFiles": {"runID": "x", "uploadHeaders": [], "files": []}}
        return {"viewer": VIEWER, "serverInfo": {}}

    def named(self, run):
        return {"id": "x", "name": run, "displayName": run, "config": "{}", "project": PROJECT}

    def bucket(self, run):
        if run not in self.opened:
            return None
        rows = self.history.get(run, [])
        tail = {
            "historyTail": json.dumps([json.dumps(row) for row in rows[-1:]]),
            "eventsTail": "[]",
            "summaryMetrics": "{}",
        }
        counts = {"historyLineCount": len(rows), "eventsLineCount": 0, "logLineCount": 0}
        return self.named(run) | tail | counts | {"wandbConfig": '{"t": 1}'}

    def stream(self, run, body):
        lines = body.get("files", {}).get("wandb-history.jsonl", {}).get("content", [])
        self.history.setdefault(run, []).extend(json.loads(line) for line in lines)
        if body.get("complete"):
            self.exit_codes[run] = body["exitcode"]

    def steps(self, run):
        return [row["_step"] for row in self.history[run]]


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_POST(self):
        body = self.read()
        if self.path.endswith("/graphql"):
            self.reply({"data": self.server.answer(body["query"], body.get("variables") or {})})
            return
        if self.path.endswith("/file_stream"):
            self.server.stream(self.path.split("/")[-2], body)
        self.reply({})

    def read(self):
        data = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if self.headers.get("Content-Encoding") == "gzip":
            data = gzip.decompress(data)
        return json.loads(data) if "json" in self.headers.get("Content-Type", "") else {}

    def reply(self, value):
        data = json.dumps(value).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


@contextmanager
def serving():
    """A server until the end, or until it is shut down."""
    server = Server()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
