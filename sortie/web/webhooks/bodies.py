"""The body of a delivery, read with bounds on its bytes, its time, and what all together hold.

Rule: a body of SMALL bytes is read however many others are under way, so that no flood of strangers
keeps one out; its number is bounded by that of the connections.
"""

from __future__ import annotations

from typing import Literal

import trio
from starlette.types import Receive

LARGEST_BODY = 5 * 1024 * 1024
"""Bytes of a delivery."""

BODY_SECONDS = 10.0
"""Seconds that a body may take to arrive."""

SMALL = 64 * 1024
"""Bytes of a body to which the bounds on all together do not apply."""

LARGEST_TOGETHER = 8 * LARGEST_BODY
"""Bytes that the bodies under way may hold together."""

LARGEST_OF_SENDER = LARGEST_TOGETHER // 2
"""Bytes that those from one address may hold together."""

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
    """Reads bodies; ``held`` are the bytes of those under way, by the address of their sender."""

    def __init__(self) -> None:
        self.held: dict[str, int] = {}

    async def read(self, sender: str, receive: Receive) -> bytes | BodyFault:
        """Return a whole body, or why it is not read to its end."""
        parts: list[bytes] = []
        size, is_whole = 0, False
        fault: BodyFault | None = None
        try:
            with trio.move_on_after(BODY_SECONDS):
                while not is_whole and fault is None:
                    message = await receive()
                    if message["type"] != "http.request":
                        return "too_slow"  # the client is gone
                    part = message.get("body", b"")
                    parts.append(part)
                    size += len(part)
                    self.held[sender] = self.held.get(sender, 0) + len(part)
                    is_whole = not message.get("more_body", False)
                    fault = self._fault(sender, size)
        finally:
            self.held[sender] = self.held.get(sender, 0) - size
            if not self.held[sender]:
                del self.held[sender]
        if fault is None:
            return b"".join(parts) if is_whole else "too_slow"
        parts.clear()
        if not is_whole:
            await drain(receive)
        return fault

    def _fault(self, sender: str, size: int) -> BodyFault | None:
        """Return why a body of so many bytes as yet is not read on."""
        if size > LARGEST_BODY:
            return "too_large"
        together = sum(self.held.values())
        is_much = together > LARGEST_TOGETHER or self.held[sender] > LARGEST_OF_SENDER
        return "flood" if size > SMALL and is_much else None
