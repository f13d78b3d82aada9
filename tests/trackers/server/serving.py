"""A test server: a service behind real sockets, with faults in between and a description beside.

It runs in threads of its own, so that a test on a virtual clock and a daemon in another process
can both ask it.
"""

from __future__ import annotations

import re
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import ClassVar, Protocol

from tests.trackers.server.certificates import server_context
from tests.trackers.server.exchange import Received, Reply, received
from tests.trackers.server.faults import (
    HTML,
    Drip,
    Fault,
    Hang,
    Html,
    Instead,
    Large,
    Refuse,
    Reset,
    Rule,
    Truncate,
)


class Service(Protocol):
    """What stands behind the server: it answers one request at a time."""

    def answer(self, request: Received) -> Reply:
        """Perform a request and return what it is answered."""


class Contract(Protocol):
    """What exchanges are held to; both methods raise AssertionError."""

    def check_request(self, request: Received) -> None: ...

    def check_answer(self, request: Received, reply: Reply) -> None: ...


Hook = Callable[[Received], object]


@dataclass
class TestServer:
    """The server's switches, and what it saw.

    ``asked`` are all requests so far. ``violations`` are the exchanges that were not as described.
    ``skew`` is how far its clock is ahead of ours. ``before`` and ``after`` are called with each
    request, before it is performed and before it is answered; with one that ends the client a
    crash at a request is tried.
    """

    __test__: ClassVar[bool] = False

    service: Service
    contract: Contract | None = None
    certificate: Path | None = None
    skew: timedelta = timedelta()
    rules: list[Rule] = field(default_factory=list)
    asked: list[Received] = field(default_factory=list)
    violations: list[str] = field(default_factory=list)
    before: Hook = lambda request: None
    after: Hook = lambda request: None
    closing: threading.Event = field(default_factory=threading.Event)
    lock: threading.RLock = field(default_factory=threading.RLock)
    _http: ThreadingHTTPServer | None = None
    _thread: threading.Thread | None = None
    _port: int = 0
    _connections: set[socket.socket] = field(default_factory=set)

    @property
    def url(self) -> str:
        """Its address, without a path."""
        return f"{'http' if self.certificate is None else 'https'}://127.0.0.1:{self._port}"

    def now(self) -> datetime:
        """Return the time by its clock."""
        return datetime.now(UTC) + self.skew

    def inject(
        self,
        fault: Fault,
        *,
        method: str = "",
        path: str = "",
        body: str = "",
        times: float = 1,
        skip: int = 0,
    ) -> None:
        """Have the next ``times`` requests go wrong that have this method, path and body.

        The first ``skip`` of those are left alone. ``path`` and ``body`` are regular expressions
        that are found in them.
        """
        rule = Rule(
            fault=fault,
            method=method,
            path=re.compile(path),
            body=re.compile(body),
            times=times,
            skip=skip,
        )
        with self.lock:
            self.rules.append(rule)

    def heal(self) -> None:
        """Have nothing go wrong any more."""
        with self.lock:
            self.rules.clear()

    def count(self, method: str = "", path: str = "") -> int:
        """Return how many requests there were with this method whose path matches."""
        found = re.compile(path)
        return sum(1 for r in self.asked if method in ("", r.method) and found.search(r.path))

    def start(self) -> None:
        """Listen, on the same port as before if it has listened already."""
        handler = type("Handler", (_Handler,), {"server_of_test": self})
        self._http = _Listener(("127.0.0.1", self._port), handler)
        self._port = self._http.server_address[1]
        if self.certificate is not None:
            self._http.socket = server_context(self.certificate).wrap_socket(
                self._http.socket, server_side=True, do_handshake_on_connect=False
            )
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.02,))
        self._thread.start()

    def stop(self) -> None:
        """Listen no longer, and drop every connection: the next one is refused."""
        assert self._http is not None
        assert self._thread is not None
        self._http.shutdown()
        self._thread.join()
        self._http.server_close()
        with self.lock:
            for connection in list(self._connections):
                with suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)

    def take(self, request: Received) -> tuple[Reply, Fault | None]:
        """Return what a request is answered, and what shall go wrong with that answer."""
        with self.lock:
            self.asked.append(request)
            self.before(request)
            fault = next((rule.fault for rule in self.rules if rule.takes(request)), None)
            reply = _own_reply(fault)
            if reply is None:
                reply = self._performed(request, fault)
            self.after(request)
            return reply, fault

    def _performed(self, request: Received, fault: Fault | None) -> Reply:
        if isinstance(fault, Reset | Hang) and not fault.performed:
            return Reply()
        try:
            if self.contract is not None:
                self.contract.check_request(request)
            reply = self.service.answer(request)
            if self.contract is not None and reply.sound:
                self.contract.check_answer(request, reply)
        except Exception as exc:
            self.violations.append(f"{type(exc).__name__}: {exc}")
            return Reply(status=501, body={"message": f"not as described: {exc}"})
        return fault.change(reply) if isinstance(fault, Instead) else reply


def _own_reply(fault: Fault | None) -> Reply | None:
    """Return the answer of a fault that has the request not performed."""
    match fault:
        case Refuse():
            return Reply(
                status=fault.status,
                body=fault.body,
                headers=fault.headers,
                content_type=fault.content_type,
            )
        case Html(status):
            return Reply(status=status, body=HTML, content_type="text/html; charset=utf-8")
        case Large(size):
            return Reply(body=b" " * size)
        case _:
            return None


class _Listener(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 128

    def handle_error(self, request: object, client_address: object) -> None:
        """Say nothing: clients go away, and are sent away."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server_of_test: ClassVar[TestServer]

    def setup(self) -> None:
        super().setup()
        with self.server_of_test.lock:
            self.server_of_test._connections.add(self.connection)

    def finish(self) -> None:
        with self.server_of_test.lock:
            self.server_of_test._connections.discard(self.connection)
        with suppress(OSError, ValueError):
            super().finish()

    def _serve(self) -> None:
        server = self.server_of_test
        length = int(self.headers.get("Content-Length") or 0)
        body = self.rfile.read(length)
        if len(body) < length:  # the client was ended while it asked
            self.close_connection = True
            return
        with server.lock:
            number = len(server.asked) + 1
            request = received(
                number, self.command, self.path, dict(self.headers.items()), body, server.url
            )
            reply, fault = server.take(replace(request, client=self.client_address[0]))
        self._send(reply, fault)

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _serve

    def _send(self, reply: Reply, fault: Fault | None) -> None:
        if isinstance(fault, Hang):
            self.server_of_test.closing.wait(120)
            self.close_connection = True
            return
        if isinstance(fault, Reset):
            self._reset()
            return
        content = reply.content
        if isinstance(fault, Truncate) and fault.whole:
            content = content[: len(content) // 2]
        self._send_head(reply, len(content))
        if isinstance(fault, Truncate) and not fault.whole:
            self.wfile.write(content[: len(content) // 2])
            self.close_connection = True
        elif isinstance(fault, Drip):
            for place in range(len(content)):
                self.wfile.write(content[place : place + 1])
                if self.server_of_test.closing.wait(fault.seconds):
                    return
        else:
            self.wfile.write(content)

    def _send_head(self, reply: Reply, length: int) -> None:
        server = self.server_of_test
        self.send_response_only(reply.status, HTTPStatus(reply.status).phrase)
        headers = {"Date": format_datetime(server.now(), usegmt=True), **reply.headers}
        if reply.status not in (204, 304):
            headers["Content-Length"] = str(length)
            headers.setdefault("Content-Type", reply.content_type)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()

    def _reset(self) -> None:
        """End the connection as a broken one ends: with a reset, not with an end."""
        self.close_connection = True
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.connection.close()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Say nothing."""


@contextmanager
def serving(
    service: Service, contract: Contract | None = None, certificate: Path | None = None
) -> Iterator[TestServer]:
    """Run a service on a free port. Raises AssertionError at the end for what was not as described.

    A test that plants a violation empties ``violations`` after it has looked at them.
    """
    server = TestServer(service=service, contract=contract, certificate=certificate)
    server.start()
    try:
        yield server
    finally:
        server.closing.set()
        server.stop()
    assert not server.violations, "\n".join(server.violations)
