"""``deploy/probe.py``: what a container's health check says."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread

import pytest

from tests.docs.pages import ROOT


class Daemon(BaseHTTPRequestHandler):
    """Answers ``/livez`` to whoever has the token."""

    def do_GET(self) -> None:
        """Answer by path and token."""
        known = self.headers["Authorization"] == "Bearer right"
        self.send_response(401 if not known else 200 if self.path == "/livez" else 503)
        self.end_headers()
        self.wfile.write(b"not polled yet")

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Say nothing."""


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    """The port of a daemon."""
    server = HTTPServer(("127.0.0.1", 0), Daemon)
    Thread(target=server.serve_forever, daemon=True).start()
    yield server.server_port
    server.shutdown()
    server.server_close()


def probe(route: str, **environ: str) -> tuple[int, str]:
    done = subprocess.run(
        [sys.executable, str(ROOT / "deploy/probe.py"), route],
        env=environ,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return done.returncode, done.stderr.strip()


def test_the_answer_is_the_exit_code(port: int) -> None:
    """Only 200 is well; a proxy of the environment is not asked."""
    well = {"SORTIE_SERVER_PORT": str(port), "SORTIE_SERVER_AUTH_TOKEN": "right"}

    assert probe("livez", **well, http_proxy="http://127.0.0.1:9") == (0, "")
    assert probe("readyz", **well) == (1, "503: not polled yet")
    assert probe("livez", SORTIE_SERVER_PORT=str(port))[0] == 1
    assert probe("livez", SORTIE_SERVER_PORT="1")[1].startswith("no answer: ")
