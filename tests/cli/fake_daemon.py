"""A daemon as commands see it: a file beside the database, and an HTTP server behind it."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

from msgspec.structs import replace

from sortie.daemon.endpoint_file import DaemonEndpoint, EndpointFile, endpoint_of_this_process

TOKEN = "token-5f1c0de"
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)

STATE: dict[str, Any] = {
    "generated_at": "2026-01-01T12:00:00.000000Z",
    "status": "running",
    "workflow": {"path": "/p/WORKFLOW.md", "valid": True, "errors": []},
    "counts": {"running": 0, "waiting": 0, "held": 0},
    "running": [],
    "waiting": [],
    "held": [],
    "slots": {"total": 10, "free": 10, "by_state": {}, "by_host": {}},
    "totals": {"runs": 0, "turns": 0, "credits": None, "tokens": None, "seconds_running": 0.0},
}
READY = (200, {"status": "ready"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A request that arrived."""

    method: str
    path: str
    authorization: str | None


@dataclass
class FakeDaemon:
    """Answers by method and path with a status and a document, or bytes as they are.

    ``asked`` are the requests in their order. What is not in ``answers`` is 404.
    """

    url: str
    answers: dict[str, tuple[int, Any]] = field(default_factory=dict)
    headers: dict[str, str] = field(default_factory=dict)
    asked: list[Asked] = field(default_factory=list)

    def endpoint(self) -> DaemonEndpoint:
        """Return what a daemon tells that is this process and serves here."""
        found = endpoint_of_this_process(url=self.url, token=TOKEN, workflow="/p/WORKFLOW.md")
        return replace(found, started_at=NOON)

    def show(self, state: dict[str, Any], ready: tuple[int, Any] = READY) -> None:
        """Have a state and readiness to show."""
        self.answers |= {"GET /api/v1/state": (200, state), "GET /readyz": ready}


@contextmanager
def serving() -> Iterator[FakeDaemon]:
    """Serve a fake for the length of the block."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            path, authorization = self.path, self.headers["authorization"]
            fake.asked.append(Asked(method=self.command, path=path, authorization=authorization))
            missing = {"error": {"code": "not_found", "message": "there is nothing at this path"}}
            status, answer = fake.answers.get(f"{self.command} {path}", (404, missing))
            body = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
            self.send_response(status)
            # As the real one, or a client that reads beyond the end would not be noticed.
            lengths = {"Content-Length": str(len(body))}
            for name, value in (lengths | fake.headers).items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        do_POST = do_GET

        def log_message(self, *_args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    fake = FakeDaemon(url=f"http://127.0.0.1:{server.server_port}/")
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield fake
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def announce(here: Path, endpoint: DaemonEndpoint, name: str = ".sortie.db") -> None:
    """Leave word of a daemon beside a database."""
    EndpointFile(os.fspath(here / name), endpoint).write()
