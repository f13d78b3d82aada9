"""Reading an issue again after a turn, with patience."""

from __future__ import annotations

import trio
from msgspec import Struct

from sortie.model import Issue, TrackerError
from sortie.trackers import Tracker

REREAD_LIMIT = 60.0
"""Seconds for which a failing re-read is tried."""

REREAD_PAUSE = 5.0
"""Seconds between two tries, and between the two reads that must both miss an issue."""


class Reread(Struct, frozen=True):
    """The issue as it is now."""

    issue: Issue


class Gone(Struct, frozen=True):
    """The tracker does not know the issue any more; two reads agree."""


class Unreadable(Struct, frozen=True):
    """The tracker did not answer in time; ``error`` is what it last said."""

    error: str


async def reread(issue: Issue, tracker: Tracker) -> Reread | Gone | Unreadable:
    """Read an issue again; try a failing read for REREAD_LIMIT seconds."""
    missed, error = False, "it did not answer"
    with trio.move_on_after(REREAD_LIMIT):
        while True:
            pause = REREAD_PAUSE
            try:
                answer = await tracker.fetch_by_ids({issue.id})
            except TrackerError as exc:
                error, pause = str(exc), max(REREAD_PAUSE, exc.retry_after or 0.0)
            else:
                if answer.issues:
                    return Reread(answer.issues[0])
                if issue.id in answer.failed:
                    error = str(answer.failed[issue.id])
                elif missed:
                    return Gone()
                else:
                    missed = True
            await trio.sleep(pause)
    return Unreadable(error)
