"""Bodies of requests: no route looks at one, and none may take memory, nor time without end."""

from __future__ import annotations

import trio
from starlette.types import Receive

from sortie.web.access import Refusal

LIMIT = 64 * 1024
"""Bytes that a body may have."""

SECONDS = 5.0
"""How long a body may take to arrive."""

_PATIENCE = 16 * LIMIT
"""Bytes thrown away before an oversized body is refused: a client that is still sending when the
connection is closed never reads the answer."""


async def discard(receive: Receive) -> Refusal | None:
    """Take in a body and forget it; return why it is refused, None where it is not."""
    size, whole = 0, False
    with trio.move_on_after(SECONDS):
        while not whole and size <= _PATIENCE:
            message = await receive()
            if message["type"] != "http.request":
                break  # the client is gone
            size += len(message.get("body", b""))
            whole = not message.get("more_body", False)
    if size > LIMIT:
        return Refusal(status=413, message=f"a body may have {LIMIT // 1024} KiB at most")
    if not whole:
        return Refusal(status=400, message=f"the body did not arrive within {SECONDS:g} s")
    return None
