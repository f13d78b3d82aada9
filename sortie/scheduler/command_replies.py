"""What becomes of a command of an operator."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct


class Reply(Struct, frozen=True):
    """What becomes of a command; see AnswerCommand."""

    verdict: Literal["done", "unknown", "conflict"]
    message: str
