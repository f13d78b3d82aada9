"""What stands before all other routes, and knows which requests are deliveries."""

from __future__ import annotations

from starlette.types import ASGIApp, Receive, Scope, Send

from sortie.web.middleware import read_body
from sortie.web.responses import error_response
from sortie.web.webhooks.receiver import BELOW, WebhookReceiver


class WebhookGate:
    """An ASGI application that has a receiver answer what is below BELOW, once any kind is set up,
    and another application all else. The access rules are behind it: a delivery has no token."""

    def __init__(self, receiver: WebhookReceiver, app: ASGIApp) -> None:
        self._receiver = receiver
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        is_delivery = scope["type"] == "http" and str(scope["path"]).startswith(BELOW)
        if is_delivery and self._receiver.is_set_up:
            await self._receiver(scope, receive, send)
        else:
            await self._app(scope, receive, send)


async def nothing_else(scope: Scope, receive: Receive, send: Send) -> None:
    """Answer on a port that has nothing but webhooks."""
    if scope["type"] == "websocket":
        await send({"type": "websocket.close", "code": 1000})
    elif scope["type"] == "http":
        await read_body(receive)
        await error_response(404, "there is nothing at this path")(scope, receive, send)
