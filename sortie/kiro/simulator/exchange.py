"""What one turn said, and ids for it."""

from __future__ import annotations

import os


class Exchange:
    """What one turn said; ``file`` is the path that a tool wrote, or None."""

    def __init__(
        self, *, prompt: str, answer: str, model: str, spent: float, file: str | None
    ) -> None:
        self.prompt = prompt
        self.answer = answer
        self.model = model
        self.spent = spent
        self.file = file


def new_id() -> str:
    """Return a random UUID; the module uuid would take a third of the start-up time."""
    digits = bytearray(os.urandom(16))
    digits[6] = digits[6] & 0x0F | 0x40
    digits[8] = digits[8] & 0x3F | 0x80
    text = digits.hex()
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"
