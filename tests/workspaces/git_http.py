"""Git's own HTTP server, ``git http-backend``, behind a password, with files of git LFS.

https://github.com/git-lfs/git-lfs/blob/main/docs/api/batch.md
"""

from __future__ import annotations

import base64
import json
import os
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any


@dataclass
class GitServer:
    """Where it is, and which requests it has got; ``files`` are those of LFS by their SHA-256.

    ``before`` and ``after`` are called with each request, before it is performed and before it is
    answered.
    """

    url: str
    files: dict[str, bytes] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    refused: int = 0
    before: Callable[[str], None] = lambda _asked: None
    after: Callable[[str], None] = lambda _asked: None


@contextmanager
def git_server(root: Path, password: str) -> Iterator[GitServer]:
    """Serve the bare repositories below a directory; who pushes or fetches needs the password."""
    told = GitServer("")

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.0"

        def log_message(self, *_: object) -> None:
            """Say nothing."""

        def do_GET(self) -> None:
            """Answer."""
            self._serve(b"")

        def do_POST(self) -> None:
            """Answer."""
            if self.headers.get("Transfer-Encoding") == "chunked":
                body = b""
                while size := int(self.rfile.readline().strip() or b"0", 16):
                    body += self.rfile.read(size)
                    self.rfile.readline()
                self.rfile.readline()
            else:
                body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
            self._serve(body)

        def do_PUT(self) -> None:
            """Answer."""
            self.do_POST()

        def _lfs(self, body: bytes) -> None:
            oid = self.path.rpartition("/")[2]
            if self.path.endswith("/info/lfs/objects/batch"):
                self._send(json.dumps(self._batch(json.loads(body))).encode())
            elif self.command == "PUT":
                told.files[oid] = body
                self._send(b"")
            elif oid in told.files:
                self._send(told.files[oid])
            else:
                self._send(b'{"message": "not found"}', 404)

        def _batch(self, asked: Any) -> object:
            operation = asked["operation"]
            answers = []
            for one in asked["objects"]:
                known = one["oid"] in told.files
                href = {
                    "href": f"{told.url}/info/lfs/objects/{one['oid']}",
                    "header": {"Authorization": self.headers["Authorization"]},
                }
                if operation == "download" and not known:
                    one["error"] = {"code": 404, "message": "Object does not exist"}
                elif operation == "download" or not known:
                    one["actions"] = {operation: href}
                answers.append(one)
            return {"transfer": "basic", "objects": answers}

        def _send(self, body: bytes, status: int = 200) -> None:
            self.send_response(status)
            self.send_header("Content-Type", "application/vnd.git-lfs+json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            with suppress(OSError):
                self.wfile.write(body)

        def _serve(self, body: bytes) -> None:
            told.asked.append(f"{self.command} {self.path}")
            given = self.headers.get("Authorization", "").removeprefix("Basic ")
            if not base64.b64decode(given).decode().endswith(f":{password}"):
                told.refused += 1
                self.send_response(401)
                self.send_header("WWW-Authenticate", 'Basic realm="git"')
                self.end_headers()
                return
            if "/info/lfs/" in self.path:
                self._lfs(body)
                return
            path, _, query = self.path.partition("?")
            told.before(f"{self.command} {path}")
            env = {
                "PATH": os.environ["PATH"],
                "GIT_PROJECT_ROOT": str(root),
                "GIT_HTTP_EXPORT_ALL": "1",
                "REMOTE_USER": "sortie",
                "PATH_INFO": path,
                "QUERY_STRING": query,
                "REQUEST_METHOD": self.command,
                "CONTENT_TYPE": self.headers.get("Content-Type", ""),
                "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding", ""),
                "CONTENT_LENGTH": str(len(body)),
            }
            done = subprocess.run(
                ["git", "http-backend"], input=body, capture_output=True, env=env, check=False
            )
            told.after(f"{self.command} {path}")
            head, _, content = done.stdout.partition(b"\r\n\r\n")
            headers = dict(line.split(": ", 1) for line in head.decode().split("\r\n") if line)
            self.send_response(int(headers.pop("Status", "200").split()[0]))
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()
            with suppress(OSError):  # a daemon was killed meanwhile
                self.wfile.write(content)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    told.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield told
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
