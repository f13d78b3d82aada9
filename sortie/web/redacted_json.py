"""The last gate for answers of the API: JSON leaves without secrets, wherever they came from.

What a page or a stream of events says is redacted where it is made: once for all who look.
"""

from __future__ import annotations

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from sortie.web.redaction import Redaction

_JSON = "application/json"


class RedactedJson:
    """An ASGI application around another."""

    def __init__(self, app: ASGIApp, redaction: Redaction) -> None:
        self._app = app
        self._redaction = redaction

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request; a body of JSON is sent at once, so it is looked at whole."""
        held: list[Message] = []

        async def send_redacted(message: Message) -> None:
            if message["type"] == "http.response.start" and _is_json(message):
                held.append(message)
                return
            if held:
                start = held.pop()
                body = self._redaction.json(message["body"]) if message.get("body") else b""
                message = {**message, "body": body}
                headers = MutableHeaders(raw=start["headers"])
                if body and "content-length" in headers:
                    headers["content-length"] = str(len(body))
                await send({**start, "headers": headers.raw})
            await send(message)

        await self._app(scope, receive, send_redacted)


def _is_json(start: Message) -> bool:
    return MutableHeaders(raw=start["headers"]).get("content-type", "").startswith(_JSON)
