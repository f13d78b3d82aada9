"""Several questions at a time, of which the first error ends the others."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import TypeVar

import trio

from sortie.model import TrackerError

ArgumentT = TypeVar("ArgumentT")

READS_AT_ONCE = 8
"""Tasks that read at a time; the client makes fewer requests at a time."""


async def each(
    work: Callable[[ArgumentT], Awaitable[None]],
    arguments: Iterable[ArgumentT],
    at_once: int = READS_AT_ONCE,
) -> None:
    """Do it for each of these, some at a time. Raises the first TrackerError, alone."""
    errors: list[TrackerError] = []
    limit = trio.CapacityLimiter(at_once)

    async def one(argument: ArgumentT) -> None:
        async with limit:
            try:
                await work(argument)
            except TrackerError as exc:
                errors.append(exc)
                nursery.cancel_scope.cancel()

    async with trio.open_nursery() as nursery:
        for argument in arguments:
            nursery.start_soon(one, argument)
    if errors:
        raise errors[0]
