"""Find the line with which Kiro closes a turn that ran."""

from __future__ import annotations

import math
import re

from msgspec import Struct

from sortie.lines import strip_escapes

TRAILER_WINDOW = 4 * 1024
"""Bytes at the end of the cleaned stderr in which the trailer counts."""

TRAILER_PREFIX = "▸ Credits: "

_TRAILER = re.compile(re.escape(TRAILER_PREFIX) + r"[ \t]*([^\s•]*)([^\r\n]*)")
_TIME = re.compile(
    r"Time:[ \t]*(?:([0-9]{1,9})h[ \t]*)?(?:([0-9]{1,9})m[ \t]*)?(?:([0-9.]{1,12})s)?"
)
_NUMBER = re.compile(r"[0-9]+(?:\.[0-9]+)?")


class Trailer(Struct, frozen=True, kw_only=True):
    """Proof that a turn ran; a number is None where it cannot be read."""

    credits: float | None
    seconds: float | None = None


def find_trailer(stderr: str) -> Trailer | None:
    """Return the last trailer at the end of a stderr, with or without its escapes.

    Only the prefix is Kiro's contract: what follows (another number format, no ``Time:``) may
    leave the credits unknown, and still proves that the turn ran.
    """
    window = strip_escapes(stderr).encode(errors="replace")[-TRAILER_WINDOW:]
    found = _TRAILER.findall(window.decode(errors="ignore"))
    if not found:
        return None
    spent, rest = found[-1]
    return Trailer(credits=_number(spent), seconds=_seconds(rest))


def _seconds(text: str) -> float | None:
    """Return how long a turn took: ``4s``, ``1m 3s``; None where it is missing."""
    told = _TIME.search(text)
    if told is None or not any(told.groups()):
        return None
    hours, minutes, seconds = told.groups()
    rest = 0.0 if seconds is None else _number(seconds)
    return None if rest is None else int(hours or 0) * 3600 + int(minutes or 0) * 60 + rest


def _number(text: str) -> float | None:
    if not _NUMBER.fullmatch(text):
        return None
    value = float(text)
    return value if math.isfinite(value) else None
