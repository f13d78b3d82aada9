"""Remembers for some time why something expensive was refused, and refuses it again at once."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Hashable
from typing import TypeVar

import trio

from sortie.model import TransportError

T = TypeVar("T")

REMEMBERED = 30.0
"""Seconds. Whether runs can begin is asked before each poll, which may be many times a second."""


class Refusals:
    """What was refused, by a word for it, until when, and with which error."""

    def __init__(self) -> None:
        self._refused: dict[Hashable, tuple[float, TransportError]] = {}

    async def or_repeat(self, word: Hashable, attempt: Callable[[], Awaitable[T]]) -> T:
        """Return what an attempt returns; raise the TransportError of the last one again."""
        until, error = self._refused.get(word, (0.0, None))
        if error is not None and trio.current_time() < until:
            await trio.lowlevel.checkpoint()
            raise type(error)(str(error)) from error
        try:
            return await attempt()
        except TransportError as exc:
            self._refused[word] = (trio.current_time() + REMEMBERED, exc)
            raise
