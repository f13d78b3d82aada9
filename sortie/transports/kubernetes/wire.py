"""The libraries that speak to an API server; loaded in a thread, as that takes a second or more."""

from __future__ import annotations

import warnings

import httpx
import httpx_ws
import kr8s
import trio
from kr8s.asyncio import api as open_api

__all__ = ["BoundedSocket", "httpx", "httpx_ws", "kr8s", "open_api"]

# A server that is newer than kr8s is no fault of anybody's.
warnings.filterwarnings("ignore", message="Kubernetes version", category=UserWarning)

_GOODBYE_BOUND = 1.0  # seconds


class BoundedSocket(httpx_ws.AsyncWebSocketSession):
    """A WebSocket that is closed in a moment, also where the server takes nothing any more."""

    async def close(self, code: int = 1000, reason: str | None = None) -> None:
        """Say goodbye, and close the connection."""
        with trio.move_on_after(_GOODBYE_BOUND):
            await super().close(code, reason)
            return
        await self.stream.aclose()
