"""One simulated turn as a conversation store keeps it, and random ids."""

from __future__ import annotations

import os
from collections.abc import Mapping

MADE_BY = "made_by"
"""The field of a stored conversation that marks it as the simulator's; Kiro has no such field."""

PROGRAM = "sortie-kiro-sim"
"""The value of that field."""

NEWEST = "newest"
"""In place of a session id: the conversation of the directory that was changed last."""


class SimulatedStoreError(Exception):
    """A conversation could not be stored or found."""


class SimulatedToolUse:
    """A use of a tool, with what that has said, and whether it failed."""

    def __init__(
        self, name: str, args: Mapping[str, object], said: str = "done", *, failed: bool = False
    ) -> None:
        self.id = new_id()
        self.name = name
        self.args = args
        self.said = said
        self.failed = failed


class Exchange:
    """What a turn adds to a conversation: a prompt, tool uses and an answer.

    ``session`` is "" for a new conversation, NEWEST, or an id. ``spent`` is in credits.
    """

    def __init__(
        self, *, directory: str, session: str, prompt: str, model: str, spent: float
    ) -> None:
        self.directory = directory
        self.session = session
        self.prompt = prompt
        self.model = model
        self.spent = spent
        self.answer = ""
        self.tools: list[SimulatedToolUse] = []


def new_id() -> str:
    """Return a random UUID; importing the module uuid would take a third of the start-up time."""
    digits = bytearray(os.urandom(16))
    digits[6] = digits[6] & 0x0F | 0x40
    digits[8] = digits[8] & 0x3F | 0x80
    text = digits.hex()
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"
