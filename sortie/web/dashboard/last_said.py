"""The last lines of a run's transcript, as an issue's page shows them."""

from __future__ import annotations

from collections.abc import Sequence

from sortie.model import RunId
from sortie.resources import Shortage
from sortie.telemetry.transcripts import is_run_id
from sortie.web.dashboard.sources import SaidLine
from sortie.web.transcript_view import TranscriptSource

LINES = 200
"""Lines that a page shows at the most."""


async def last_said(source: TranscriptSource, run: str) -> Sequence[SaidLine] | str:
    """Return the lines, or a sentence where there are none."""
    missing = "no transcript is kept"
    if not is_run_id(run):
        return missing
    try:
        page = await source.last(RunId(run), LINES)
    except FileNotFoundError:
        return missing
    except (OSError, Shortage) as exc:
        return f"the transcript cannot be read: {getattr(exc, 'strerror', None) or exc}"
    return [
        SaidLine(
            number=line.number,
            at=line.at,
            turn=line.turn,
            kind=line.kind.value,
            text=line.text,
        )
        for line in page.lines
    ]
