"""What exchanges with the stand-in are held to: the description that a real API server serves."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from starlette.requests import HTTPConnection

from tests.kubernetes_api.sandbox_controller import VERSION
from tests.kubernetes_api.sandbox_description import describe_sandboxes
from tests.trackers.server.contract import OpenApiContract, Violation
from tests.trackers.server.exchange import Received, Reply, received

_DESCRIPTION = Path(__file__).with_name("kubernetes.openapi.json.gz")
_APART = ("/version", f"/apis/{VERSION}/")
"""They are described apart from the objects, in documents of their own."""


class KubernetesContract:
    """Notes exchanges that are not as described."""

    def __init__(self) -> None:
        self._rest = OpenApiContract(_DESCRIPTION, extend=describe_sandboxes)
        self.violations: list[str] = []

    def check_request(self, request: Received) -> None:
        """Raise Violation where a request is not as described."""
        if request.path not in _APART:
            self._rest.check_request(request)

    def check_answer(self, request: Received, status: int, content: bytes) -> None:
        """Note where an answer is not as described."""
        if request.path not in _APART:
            reply = Reply(status=status, body=content, content_type="application/json")
            self._note(request, reply)

    def check_change(self, request: Received, change: Mapping[str, Any]) -> None:
        """Note where the object of a watch's change is not as described."""
        told = json.dumps(change["object"]).encode()
        if change["type"] == "ERROR":
            self._note(request, Reply(status=410, body=told))
        else:
            name = change["object"]["metadata"]["name"]
            one = replace(request, path=f"{request.path}/{name}", pairs=())
            self._note(one, Reply(body=told))

    def _note(self, request: Received, reply: Reply) -> None:
        try:
            self._rest.check_answer(request, reply)
        except Violation as exc:
            self.violations.append(str(exc))


def received_by(connection: HTTPConnection, method: str, body: bytes = b"") -> Received:
    """Return what came to an application, as contracts see it."""
    url = connection.url
    return received(
        0, method, f"{url.path}?{url.query}", dict(connection.headers.items()), body, ""
    )
