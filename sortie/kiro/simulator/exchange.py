"""What one turn said and did, and ids for it."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

SUCCESS, ERROR, CANCELLED = "success", "error", "cancelled"
"""What may come of a tool use."""


class ToolUse:
    """A tool that the turn used; ``status`` is one of SUCCESS, ERROR and CANCELLED."""

    def __init__(self, name: str, args: Mapping[str, object]) -> None:
        self.id = new_id()
        self.name = name
        self.args = args
        self.result = ""
        self.status = SUCCESS


class Exchange:
    """What one turn said; ``added`` is what hooks have put into the model's context.

    ``spent`` is in credits, ``context_share`` in percent.
    """

    def __init__(self, *, prompt: str, answer: str, model: str, spent: float) -> None:
        self.prompt = prompt
        self.answer = answer
        self.model = model
        self.spent = spent
        self.context_share = 1.0
        self.added = ""
        self.agent: str | None = None
        self.tools: Sequence[ToolUse] = ()


def new_id() -> str:
    """Return a random UUID; the module uuid would take a third of the start-up time."""
    digits = bytearray(os.urandom(16))
    digits[6] = digits[6] & 0x0F | 0x40
    digits[8] = digits[8] & 0x3F | 0x80
    text = digits.hex()
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"
