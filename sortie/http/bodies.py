"""The bodies of answers, of which no more is read than there is room for."""

from __future__ import annotations

import httpx2

LARGEST_BODY = 32 * 1024 * 1024
"""Bytes of an answer, unpacked; a larger one is an error."""

LONGEST_TEXT = 4 * LARGEST_BODY
"""Bytes of a text that are read for the sake of its end."""


class LargeBody(Exception):
    """A body is larger than LARGEST_BODY."""


async def whole_body(reply: httpx2.Response) -> bytes:
    """Return a body. Raises LargeBody."""
    parts, size = [], 0
    async for part in reply.aiter_bytes():
        parts.append(part)
        size += len(part)
        if size > LARGEST_BODY:
            raise LargeBody(f"the answer is larger than {LARGEST_BODY} bytes")
    return b"".join(parts)


async def end_of_body(reply: httpx2.Response, kept: int) -> bytes:
    """Return the last bytes of a body, of which no more than LONGEST_TEXT are read."""
    found, size = bytearray(), 0
    async for part in reply.aiter_bytes():
        found += part
        size += len(part)
        if len(found) > 2 * kept:
            del found[:-kept]
        if size > LONGEST_TEXT:
            break
    return bytes(found[-kept:])
