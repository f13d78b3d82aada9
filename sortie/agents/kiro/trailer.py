"""Find the line with which Kiro closes a turn that ran."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from sortie.agents.lines import strip_escapes

TRAILER_WINDOW = 4 * 1024
"""Bytes at the end of the cleaned stderr in which the trailer counts."""

TRAILER_PREFIX = "▸ Credits: "

_TRAILER = re.compile(re.escape(TRAILER_PREFIX) + r"[ \t]*([^\s•]*)")
_NUMBER = re.compile(r"[0-9]+(?:\.[0-9]+)?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Trailer:
    """Proof that a turn ran; ``credits`` is None where the number cannot be read."""

    credits: float | None


def find_trailer(stderr: str) -> Trailer | None:
    """Return the last trailer at the end of a stderr, with or without its escapes.

    Only the prefix is Kiro's contract: what follows (another number format, no ``Time:``) may
    leave the credits unknown, and still proves that the turn ran.
    """
    window = strip_escapes(stderr).encode(errors="replace")[-TRAILER_WINDOW:]
    found = _TRAILER.findall(window.decode(errors="ignore"))
    return Trailer(credits=_credits(found[-1])) if found else None


def _credits(text: str) -> float | None:
    if not _NUMBER.fullmatch(text):
        return None
    value = float(text)
    return value if math.isfinite(value) else None
