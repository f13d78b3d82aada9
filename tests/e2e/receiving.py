"""A receiver of webhooks that can be down, and what it has seen."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock, Thread
from typing import Any, Literal

from standardwebhooks import Webhook

Mode = Literal["up", "unavailable", "losing answers", "hanging up"]

SECRET = "whsec_" + "c2VjcmV0LW9mLWEtdGVzdC0wMTIzNDU2Nzg5"


@dataclass(frozen=True, slots=True)
class Arrival:
    """A notification as it came: ``repeated`` is what its header said."""

    id: str
    type: str
    issue: str | None
    repeated: bool


@dataclass
class Receiver:
    """Takes what is signed rightly. In the mode ``losing answers`` it takes it and does not say
    so; in ``hanging up`` it takes nothing and closes the connection."""

    mode: Mode = "up"
    arrivals: list[Arrival] = field(default_factory=list)
    forged: list[str] = field(default_factory=list)
    lost_answers: int = 0
    port: int = 0
    _lock: Any = field(default_factory=Lock)

    @property
    def url(self) -> str:
        """Where it is."""
        return f"http://127.0.0.1:{self.port}/hook?from=sortie"

    def handle(self, body: bytes, headers: dict[str, str]) -> int | None:
        """Return the status to answer with, None for no answer."""
        with self._lock:
            mode = self.mode
            if mode == "unavailable":
                return 503
            if mode == "hanging up":
                return None
            try:
                told = Webhook(SECRET).verify(body, headers)
            except Exception as exc:
                self.forged.append(f"{headers}: {exc}")
                return 400
            issue = told["data"]["issue"]
            arrival = Arrival(
                headers["webhook-id"],
                told["type"],
                None if issue is None else issue["identifier"],
                headers.get("sortie-repeated") == "maybe",
            )
            self.arrivals.append(arrival)
            self.lost_answers += mode == "losing answers"
            return None if mode == "losing answers" else 204

    def unmarked_repetitions(self) -> list[Arrival]:
        """Return the arrivals after the first of their id that do not say so."""
        seen: set[str] = set()
        found = []
        for one in list(self.arrivals):
            if one.id in seen and not one.repeated:
                found.append(one)
            seen.add(one.id)
        return found

    def first_arrivals(self) -> list[Arrival]:
        """Return the first arrival of each id, in order."""
        return list({one.id: one for one in reversed(self.arrivals)}.values())[::-1]


@contextmanager
def receiving() -> Iterator[Receiver]:
    """Serve a receiver on a free port."""
    receiver = Receiver()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            length = int(self.headers["content-length"])
            body = self.rfile.read(length)
            if len(body) < length:  # its sender was killed
                self.close_connection = True
                return
            headers = {name.lower(): value for name, value in self.headers.items()}
            status = receiver.handle(body, headers)
            if status is None:
                self.close_connection = True
                self.connection.shutdown(socket.SHUT_RDWR)
                return
            self.send_response(status)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            """Say nothing."""

    class Server(ThreadingHTTPServer):
        daemon_threads = True
        request_queue_size = 64

        def handle_error(self, request: Any, client_address: Any) -> None:
            """A daemon that is killed breaks its connection."""

    with Server(("127.0.0.1", 0), Handler) as server:
        receiver.port = server.server_address[1]
        thread = Thread(target=server.serve_forever, args=(0.05,), daemon=True)
        thread.start()
        yield receiver
        server.shutdown()
        thread.join()
