"""What one rendering may use: time, memory, and the size of each value that it makes."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from jinja2.runtime import LoopContext

from sortie.workflow.value_sizes import PROMPT_LIMIT, TooLarge, text_size

MEMORY_LIMIT = 32 * PROMPT_LIMIT
"""Bytes that all values of a rendering together may take, those included that it has dropped."""

RENDER_SECONDS = 5.0

TOO_LONG = f"takes too long to render; it has {RENDER_SECONDS:g} s"
TOO_MUCH = f"makes too much text; a prompt may have {PROMPT_LIMIT >> 20} MiB"

ELEMENT = 64
"""Bytes that an element of a list takes where it is new: a short text, or a number."""


class Exhausted(Exception):
    """A rendering took too long or made too much text."""


class RenderBudget:
    """Ends at ``deadline`` of ``time.monotonic``, or where too much is made."""

    def __init__(self, deadline: float) -> None:
        self._deadline = deadline
        self._memory_left = MEMORY_LIMIT

    def check_time(self) -> None:
        """Raise Exhausted after the deadline."""
        if time.monotonic() > self._deadline:
            raise Exhausted(TOO_LONG)

    def expect(self, size: int) -> None:
        """Raise Exhausted before a value is made that has more characters or elements."""
        if size > PROMPT_LIMIT:
            raise Exhausted(TOO_MUCH)

    def expect_text(self, *values: Any) -> int:
        """Raise Exhausted where values become too much text. Return how much the others become."""
        values = tuple(value for value in values if not isinstance(value, str))
        return self.expect_from(text_size, values) if values else 0

    def charge(self, made: Any, element: int = 0) -> Any:
        """Take what was made from the memory; ``element`` is for each of its elements.

        What is made one by one is returned as an iterator that charges for each.
        """
        if isinstance(made, Iterator) and not isinstance(made, LoopContext):
            return self._each_charged(made)
        elements = len(made) if isinstance(made, list | tuple | set | dict) else 0
        self.take(sys.getsizeof(made) + element * elements)
        return made

    def _each_charged(self, made: Iterator[Any]) -> Iterator[Any]:
        for value in made:
            self.check_time()
            self.take(ELEMENT + 8 * (len(value) if isinstance(value, list | tuple) else 0))
            yield value

    def take(self, size: int) -> None:
        """Take bytes from the memory."""
        self._memory_left -= size
        if self._memory_left < 0:
            raise Exhausted(TOO_MUCH)

    def expect_from(self, size: Callable[..., int], *args: Any) -> int:
        """Expect what a function of ``value_sizes`` says, and return it."""
        try:
            found = size(*args)
        except TooLarge:
            raise Exhausted(TOO_MUCH) from None
        self.expect(found)
        return found

    def concatenated(self, pieces: Iterable[str]) -> str:
        """Return one text of many."""
        kept, size = [], 0
        for piece in pieces:
            size += len(piece)
            self.expect(size)
            kept.append(piece)
        text: str = self.charge("".join(kept))
        return text
