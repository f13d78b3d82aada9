"""How much time and text one rendering may use; asked at every step that can add up.

Rule 1: a loop pays for each round, a call for each call, text for each character made of it.
Rule 2: what could make a large value at once is paid for before it is made.
"""

from __future__ import annotations

import time

TEXT_LIMIT = 4 << 20
"""Bytes that a prompt may have."""

RENDER_SECONDS = 5.0

TOO_LONG = f"takes too long to render; it has {RENDER_SECONDS:g} s"
TOO_MUCH = f"makes too much text; a prompt may have {TEXT_LIMIT >> 20} MiB"

_WORK_LIMIT = 16 * TEXT_LIMIT  # characters in between: a prompt is made of parts


class Exhausted(Exception):
    """A rendering took too long or made too much text."""


class Budget:
    """What is left for one rendering; ``deadline`` is on the clock of ``time.monotonic``."""

    def __init__(self, deadline: float) -> None:
        self._deadline = deadline
        self._left = _WORK_LIMIT

    def pay(self, characters: int = 0) -> None:
        """Take a step that makes this much text. Raises Exhausted."""
        self._left -= characters
        if self._left < 0:
            raise Exhausted(TOO_MUCH)
        if time.monotonic() > self._deadline:
            raise Exhausted(TOO_LONG)

    def pay_for(self, value: object, times: int = 1) -> None:
        """Take a step that writes a value out so many times, whatever it holds."""
        stack = [value]
        while stack:
            match stack.pop():
                case str() as text:
                    self.pay((len(text) + 1) * times)
                case dict() as mapping:
                    stack += [*mapping.keys(), *mapping.values()]
                    self.pay((len(mapping) + 1) * times)
                case list() | tuple() | set() as items:
                    stack += items
                    self.pay((len(items) + 1) * times)
                case _:
                    self.pay(times)
