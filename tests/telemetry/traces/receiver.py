"""A receiver of OTLP over HTTP, for one test: it answers as it is told to, and reads the spans."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class Sent:
    """A span as it was sent; ids are in hex, ``parent_id`` is "" for a root."""

    name: str
    trace_id: str
    span_id: str
    parent_id: str
    seconds: float
    error: str
    attributes: Mapping[str, Any]
    events: tuple[str, ...]
    links: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a request is answered; one that ``hangs`` is not answered before the receiver ends."""

    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    hangs: bool = False


class Receiver:
    """Takes requests; ``answers`` are given one after another, the last one again and again."""

    def __init__(self, answers: list[Answer]) -> None:
        self.answers = answers
        self.requests: list[Mapping[str, str]] = []
        self.spans: list[Sent] = []
        self.resources: list[Mapping[str, Any]] = []
        self.schemas: set[str] = set()
        self.came = threading.Semaphore(0)
        self.over = threading.Event()
        self.url = ""

    def take(self, headers: Mapping[str, str], body: bytes) -> Answer:
        """Read a request and return what it is answered."""
        self.requests.append(headers)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if answer.status == 200 and not answer.hangs:
            self._read(ExportTraceServiceRequest.FromString(body))
        self.came.release()
        return answer

    def _read(self, request: ExportTraceServiceRequest) -> None:
        for group in request.resource_spans:
            self.resources.append(_plain(group.resource.attributes))
            for scope in group.scope_spans:
                self.schemas.add(scope.schema_url)
                self.spans += map(_sent, scope.spans)


def _plain(attributes: Any) -> Mapping[str, Any]:
    return {one.key: _value(one.value) for one in attributes}


def _value(value: Any) -> Any:
    kind = value.WhichOneof("value")
    if kind == "array_value":
        return [_value(item) for item in value.array_value.values]
    return getattr(value, kind)


def _sent(span: Any) -> Sent:
    return Sent(
        name=span.name,
        trace_id=span.trace_id.hex(),
        span_id=span.span_id.hex(),
        parent_id=span.parent_span_id.hex(),
        seconds=(span.end_time_unix_nano - span.start_time_unix_nano) / 1e9,
        error=span.status.message if span.status.code == 2 else "",
        attributes=_plain(span.attributes),
        events=tuple(event.name for event in span.events),
        links=tuple((link.trace_id.hex(), link.span_id.hex()) for link in span.links),
    )


@contextmanager
def receiving(*answers: Answer) -> Iterator[Receiver]:
    """Have a receiver for the length of a block; it answers 200 where nothing else is said."""
    receiver = Receiver(list(answers) or [Answer()])

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            headers = {name.lower(): text for name, text in self.headers.items()}
            answer = receiver.take({**headers, "path": self.path}, body)
            if answer.hangs:
                receiver.over.wait()
                return
            self.send_response(answer.status)
            for name, text in answer.headers.items():
                self.send_header(name, text)
            self.send_header("Content-Length", str(len(answer.body)))
            self.end_headers()
            self.wfile.write(answer.body)

        def log_message(self, *_args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    receiver.url = f"http://127.0.0.1:{server.server_port}/v1/traces"
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    try:
        yield receiver
    finally:
        receiver.over.set()
        server.shutdown()
        server.server_close()
        thread.join()
