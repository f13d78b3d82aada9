"""Bodies of requests: no route looks at one, and none may take memory, nor time without end."""

from __future__ import annotations

from collections.abc import Iterable

import trio
from starlette.types import Receive

from sortie.web.access import Refusal

LIMIT = 64 * 1024
"""Bytes that a body may have."""

SECONDS = 5.0
"""How long a body may take to arrive."""

_DISCARD_LIMIT = 16 * LIMIT
"""Bytes thrown away before an oversized body is refused: a client that is still sending when the
connection is closed never reads the answer."""


def ambiguous_length(headers: Iterable[tuple[bytes, bytes]]) -> Refusal | None:
    """Return why a request is refused of which nobody can say where it ends, None for any other.

    Who counts and who looks for the last chunk see different ends (RFC 9112, 6.1): what one takes
    for the rest of the body is another request to the other.
    """
    names = {name.lower() for name, _ in headers}
    if not {b"content-length", b"transfer-encoding"} <= names:
        return None
    message = "send Content-Length or Transfer-Encoding, not both"
    return Refusal(status=400, message=message, headers={"connection": "close"})


async def discard(receive: Receive) -> Refusal | None:
    """Take in a body and forget it; return why it is refused, None where it is not."""
    size, whole = 0, False
    with trio.move_on_after(SECONDS):
        while not whole and size <= _DISCARD_LIMIT:
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
