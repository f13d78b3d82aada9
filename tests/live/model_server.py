"""A model server on loopback whose answers are scripted, for agents that are real programs.

It speaks Anthropic's Messages, OpenAI's Responses and Chat Completions, and Gemini's API.
"""

from __future__ import annotations

import gzip
import json
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.live.model_answers import (
    Answer,
    Message,
    anthropic,
    chat_completions,
    gemini,
    responses,
)

Json = Any
Format = Callable[[Json, Answer], Message]

ASIDE = Answer(text="scripted aside")
"""The answer to a request without tools: a title, a probe of the quota, a topic."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A request for an answer that counts."""

    at: float
    path: str
    headers: dict[str, str] = field(repr=False)
    body: Json
    answer: Answer


class Script:
    """The answers to one client's requests: in order, the last one ever after, or what a function
    makes of each request."""

    def __init__(self, answers: Sequence[Answer] | Callable[[Json], Answer]) -> None:
        self._answers = answers
        self._lock = threading.Lock()
        self.requests: list[Request] = []

    def answer(self, path: str, headers: dict[str, str], body: Json) -> Answer:
        """Return the next answer, and remember who asked for it."""
        with self._lock:
            answer = self._next(body)
            self.requests.append(
                Request(at=time.time(), path=path, headers=headers, body=body, answer=answer)
            )
            return answer

    def _next(self, body: Json) -> Answer:
        if callable(self._answers):
            return self._answers(body)
        return self._answers[min(len(self.requests), len(self._answers) - 1)]


class ModelServer:
    """Serves one script for each name; ``url(name)`` is the base address of its client.

    A request is a script's where it carries tools, else an aside.
    """

    def __init__(self) -> None:
        self.scripts: dict[str, Script] = {}
        self.closing = threading.Event()
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._http.daemon_threads = True
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.05,), daemon=True)

    def start(self) -> None:
        """Serve in a thread."""
        self._thread.start()

    def close(self) -> None:
        """Serve nobody any more."""
        self.closing.set()
        self._http.shutdown()
        self._thread.join()
        self._http.server_close()

    def script(self, name: str, *answers: Answer) -> Script:
        """Set the answers for a name; they begin anew."""
        self.scripts[name] = Script(answers)
        return self.scripts[name]

    def rule(self, name: str, answer: Callable[[Json], Answer]) -> Script:
        """Have a function answer for a name, by the bodies of requests."""
        self.scripts[name] = Script(answer)
        return self.scripts[name]

    def url(self, name: str) -> str:
        """Return the base address for the client of a script."""
        return f"http://127.0.0.1:{self._http.server_address[1]}/s/{name}"


@contextmanager
def model_server() -> Iterator[ModelServer]:
    """Have a server while the block is open."""
    server = ModelServer()
    server.start()
    try:
        yield server
    finally:
        server.close()


def _format(path: str) -> Format | None:
    if "enerateContent" in path:
        return gemini
    found = {
        "/messages": anthropic,
        "/responses": responses,
        "/chat/completions": chat_completions,
    }
    return next((make for end, make in found.items() if path.endswith(end)), None)


def _handler(server: ModelServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: object) -> None:
            """Say nothing."""

        def do_GET(self) -> None:
            self._serve()

        def do_HEAD(self) -> None:
            self._serve()

        def do_POST(self) -> None:
            self._serve()

        def _serve(self) -> None:
            with suppress(BrokenPipeError, ConnectionResetError):
                self._answer(self.path.partition("?")[0], self._body())
                return
            self.close_connection = True

        def _answer(self, path: str, body: Json) -> None:
            make = _format(path)
            if make is not None and isinstance(body, dict):
                self._model(path, body, make)
            elif path.endswith(("count_tokens", ":countTokens")):
                count = len(json.dumps(body)) // 4
                self._send(200, {"input_tokens": count, "totalTokens": count})
            elif path.endswith("/models"):
                model = {"id": "scripted", "type": "model", "object": "model"}
                self._send(200, {"object": "list", "data": [model], "has_more": False})
            elif self.command == "HEAD" or path.count("/") <= 3:
                self._send(200, {})
            else:
                self._send(404, {"error": {"type": "not_found_error", "message": path}})

        def _model(self, path: str, body: Json, make: Format) -> None:
            answer = ASIDE
            if _has_tools(body):
                script = server.scripts[path.split("/")[2]]
                answer = script.answer(path, dict(self.headers), body)
            if answer.hang is not None:
                server.closing.wait(answer.hang)
                self.close_connection = True
                return
            server.closing.wait(answer.delay)
            if answer.status is not None:
                self._send(answer.status, _error(answer, make), dict(answer.headers))
            elif body.get("stream") or "streamGenerateContent" in path:
                self._stream(make(body, answer), answer)
            else:
                self._send(200, make(body, answer).whole, dict(answer.headers))

        def _stream(self, message: Message, answer: Answer) -> None:
            self.send_response(200)
            self.send_header("content-type", "text/event-stream")
            self.send_header("transfer-encoding", "chunked")
            for name, value in answer.headers.items():
                self.send_header(name, value)
            self.end_headers()
            texts = 0
            for event in message.events:
                if event.is_text and texts == answer.cut_after:
                    self.close_connection = True
                    return
                texts += event.is_text
                data = event.data if isinstance(event.data, str) else json.dumps(event.data)
                name = f"event: {event.name}\n" if event.name else ""
                self._chunk(f"{name}data: {data}\n\n".encode())
                if event.is_text:
                    server.closing.wait(answer.pause)
            self._chunk(b"")

        def _chunk(self, data: bytes) -> None:
            self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
            self.wfile.flush()

        def _send(self, status: int, value: Json, headers: dict[str, str] | None = None) -> None:
            data = json.dumps(value).encode()
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(data)))
            for name, text in (headers or {}).items():
                self.send_header(name, text)
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(data)

        def _body(self) -> Json:
            data = self.rfile.read(int(self.headers.get("content-length") or 0))
            if self.headers.get("transfer-encoding", "").lower() == "chunked":
                data = b"".join(self._chunks())
            if self.headers.get("content-encoding") == "gzip":
                data = gzip.decompress(data)
            return json.loads(data) if data else None

        def _chunks(self) -> Iterator[bytes]:
            while size := int(self.rfile.readline().partition(b";")[0], 16):
                yield self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()

    return Handler


def _has_tools(body: Json) -> bool:
    """Tell whether a request carries tools, which may stand in its input for some models."""
    given = body.get("input")
    items = given if isinstance(given, list) else []
    return bool(body.get("tools")) or any(i.get("type") == "additional_tools" for i in items)


def _error(answer: Answer, make: Format) -> Json:
    code: Json = answer.status if make is gemini else answer.error
    error = {"type": answer.error, "message": answer.message, "code": code}
    return {"type": "error", "error": error | {"status": "UNAVAILABLE"}}
