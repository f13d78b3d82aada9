"""The body of a delivery, read with bounds on its bytes, its time, and what all together hold."""

from __future__ import annotations

from typing import Literal

import trio
from starlette.types import Receive

LARGEST_BODY = 5 * 1024 * 1024
"""Bytes of a delivery."""

BODY_SECONDS = 10.0
"""Seconds that a body may take to arrive."""

LARGEST_TOGETHER = 8 * LARGEST_BODY
"""Bytes that the bodies under way may hold together."""

_DRAINED = 32 * 1024 * 1024
"""Bytes that are thrown away of a body that is refused: a client that is still sending when the
connection is closed never reads the answer."""

BodyFault = Literal["too_large", "too_slow", "flood"]


async def drain(receive: Receive) -> None:
    """Throw a body away, as far as it comes soon."""
    size = 0
    with trio.move_on_after(BODY_SECONDS):
        while size <= _DRAINED:
            message = await receive()
            size += len(message.get("body", b""))
            if not message.get("more_body", False):
                return


class BodyReader:
    """Reads bodies; ``held`` are the bytes of those under way."""

    def __init__(self) -> None:
        self.held = 0

    async def read(self, receive: Receive) -> bytes | BodyFault:
        """Return a whole body, or why it is not read to its end."""
        parts: list[bytes] = []
        size, is_whole = 0, False
        try:
            with trio.move_on_after(BODY_SECONDS):
                while not is_whole:
                    message = await receive()
                    if message["type"] != "http.request":
                        return "too_slow"  # the client is gone
                    part = message.get("body", b"")
                    size, self.held = size + len(part), self.held + len(part)
                    if size > LARGEST_BODY or self.held > LARGEST_TOGETHER:
                        parts.clear()
                        fault: BodyFault = "too_large" if size > LARGEST_BODY else "flood"
                        if message.get("more_body", False):
                            await drain(receive)
                        return fault
                    parts.append(part)
                    is_whole = not message.get("more_body", False)
            return b"".join(parts) if is_whole else "too_slow"
        finally:
            self.held -= size
