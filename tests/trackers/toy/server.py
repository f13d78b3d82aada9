"""The service behind the toy tracker: one project in memory, asked over HTTP."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar
from urllib.parse import parse_qs, urlsplit

API_KEY = "toy-key-7c0ffee"
PROJECT = "demo"
HOLD = 10.0
"""Seconds for which a request for changes is held."""

Json = Any


class Refusal(Exception):
    """An answer that is no success."""

    def __init__(self, status: int) -> None:
        super().__init__(status)
        self.status = status


@dataclass
class ToyServer:
    """The project, and switches for what goes wrong.

    ``down`` answers 503 to all. ``retry_after`` answers 429 to all, with so many seconds.
    The next request of a method in ``lost_answers`` is performed, and its answer is lost.
    ``limits`` answers 429 to the next so many requests, one second each. ``asked`` are the times
    (monotonic) and names of the requests so far, and ``limited`` the times at which one met 429.
    """

    items: dict[str, dict[str, Json]] = field(default_factory=dict)
    comments: dict[str, list[Json]] = field(default_factory=dict)
    version: int = 0
    down: bool = False
    retry_after: int | None = None
    limits: int = 0
    lost_answers: set[str] = field(default_factory=set)
    asked: list[tuple[float, str]] = field(default_factory=list)
    limited: list[float] = field(default_factory=list)
    closing: bool = False
    changed: threading.Condition = field(default_factory=threading.Condition)
    url: str = ""

    def put(self, issue_id: str, comments: list[Json] | None = None, **fields: Json) -> None:
        """Add an issue, or change it as a person would."""
        with self.changed:
            now = datetime.now(UTC).isoformat()
            plain: dict[str, Json] = {
                "id": issue_id,
                "key": issue_id,
                "title": f"Title of {issue_id}",
                "body": "",
                "url": None,
                "author": "ann",
                "assignee": None,
                "labels": [],
                "open": True,
                "created_at": now,
                "updated_at": now,
            }
            self.version += 1
            known = self.items.get(issue_id, plain)
            self.items[issue_id] = {**known, **fields, "version": self.version}
            self.comments.setdefault(issue_id, [])
            if comments is not None:
                self.comments[issue_id] = comments
            self.changed.notify_all()

    def answer(
        self, method: str, path: str, query: Mapping[str, str], headers: Json, body: Json
    ) -> Json:
        """Return what a request is answered. Raises Refusal."""
        with self.changed:
            self.asked.append((time.monotonic(), f"{method} {path}"))
            self._refuse(headers)
            name, wanted = query.get("name", ""), path.removeprefix(f"/{PROJECT}/")
            match method, wanted:
                case "GET", "issues":
                    return self._page(int(query["page"]), int(query["size"]))
                case "GET", "changes":
                    since = int(query["since"])
                    self.changed.wait_for(lambda: self.closing or self.version != since, HOLD)
                    return {"version": self.version}
                case "GET", "issue":
                    return self._item(name)
                case "GET", "comments":
                    return {"comments": self.comments[self._item(name)["id"]]}
                case "POST", "comments":
                    return self._comment(self._item(name), body["body"])
                case "PATCH", "issue":
                    return self._change(self._item(name), headers["If-Match"], body)
                case _:
                    raise Refusal(404)

    def _refuse(self, headers: Json) -> None:
        if headers["Authorization"] != f"Bearer {API_KEY}":
            raise Refusal(401)
        if self.down:
            raise Refusal(503)
        if self.retry_after is not None or self.limits:
            self.limits = max(0, self.limits - 1)
            self.limited.append(time.monotonic())
            raise Refusal(429)

    def _page(self, page: int, size: int) -> Json:
        every = list(self.items.values())
        shown = every[(page - 1) * size : page * size]
        return {"issues": shown, "next": page + 1 if page * size < len(every) else None}

    def _item(self, name: str) -> Json:
        by_key = (item for item in self.items.values() if item["key"] == name)
        item = self.items.get(name) or next(by_key, None)
        if item is None:
            raise Refusal(404)
        return item

    def _comment(self, item: Json, body: str) -> Json:
        made = {"author": "sortie", "body": body, "created_at": datetime.now(UTC).isoformat()}
        self.comments[item["id"]].append(made)
        return made

    def _change(self, item: Json, version: str, change: Json) -> Json:
        if version != str(item["version"]):
            raise Refusal(412)
        self.put(item["id"], **change, updated_at=datetime.now(UTC).isoformat())
        return self.items[item["id"]]


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    service: ClassVar[ToyServer]

    def _serve(self) -> None:
        parts = urlsplit(self.path)
        query = {name: values[-1] for name, values in parse_qs(parts.query).items()}
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        status, retry_after = 200, self.service.retry_after
        try:
            answer = self.service.answer(
                self.command, parts.path, query, self.headers, json.loads(body or b"null")
            )
        except Refusal as exc:
            status, answer = exc.status, {"error": exc.status}
        if self.command in self.service.lost_answers:
            self.service.lost_answers.remove(self.command)
            self.close_connection = True
            return
        content = json.dumps(answer).encode()
        self.send_response(status)
        if status == 429:
            self.send_header("Retry-After", str(1 if retry_after is None else retry_after))
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    do_GET = do_POST = do_PATCH = _serve

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Say nothing."""


@contextmanager
def serving() -> Iterator[ToyServer]:
    """Run the service on a free port, in threads of its own."""
    service = ToyServer()
    handler = type("Handler", (_Handler,), {"service": service})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        server.daemon_threads = True
        service.url = f"http://127.0.0.1:{server.server_address[1]}"
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield service
        finally:
            with service.changed:
                service.closing = True
                service.changed.notify_all()
            server.shutdown()
            thread.join()
