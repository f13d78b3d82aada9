"""Where transcripts come from, and the shape in which programs get them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import cache

from pydantic import TypeAdapter

from sortie.dataclass import dataclass
from sortie.model import RunId
from sortie.telemetry.transcripts import Kind, TranscriptPage
from sortie.web.state import Time


@dataclass(frozen=True, slots=True, kw_only=True)
class TranscriptSource:
    """Where transcripts come from.

    ``page`` returns lines behind a number, so many at most, ``last`` the last lines; both raise
    OSError and Shortage. ``is_live`` tells whether more may follow.
    """

    page: Callable[[RunId, int, int], Awaitable[TranscriptPage]]
    last: Callable[[RunId, int], Awaitable[TranscriptPage]]
    is_live: Callable[[RunId], bool]


@dataclass(frozen=True, slots=True, kw_only=True)
class LineView:
    """One line: its number, when it came, in which turn (null: outside of one), and what it is."""

    line: int
    at: Time
    turn: int | None
    kind: Kind
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TranscriptView:
    """Some lines of a run.

    ``next`` is what to pass as ``after`` for those that follow, null where none will. ``live``:
    the run was going on. ``ended``: the line that tells of its end is among these or was before.
    ``damage`` says why what follows cannot be read.
    """

    run_id: str
    lines: tuple[LineView, ...]
    next: int | None
    live: bool
    ended: bool
    damage: str | None


def to_json(page: TranscriptPage, run_id: str, next_: int | None, *, live: bool) -> bytes:
    """Write a page as JSON in UTF-8."""
    view = TranscriptView(
        run_id=run_id,
        lines=tuple(
            LineView(line=each.number, at=each.at, turn=each.turn, kind=each.kind, text=each.text)
            for each in page.lines
        ),
        next=next_,
        live=live,
        ended=page.ended,
        damage=page.damage,
    )
    return _adapter().dump_json(view)


@cache
def _adapter() -> TypeAdapter[TranscriptView]:
    return TypeAdapter(TranscriptView)
