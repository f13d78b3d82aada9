"""The last lines of a run on an issue's page."""

from __future__ import annotations

from sortie.web.dashboard.last_said import LINES, last_said
from sortie.web.dashboard.sources import SaidLine
from tests.telemetry.transcripts.fake import NOON, RUN, FakeTranscripts, some_lines


async def test_a_page_shows_the_last_lines() -> None:
    """So many at the most, with their numbers, times and turns."""
    transcripts = FakeTranscripts(lines={RUN: some_lines(str(n) for n in range(LINES + 5))})

    lines = await last_said(transcripts.source(), RUN)

    assert len(lines) == LINES
    assert lines[-1] == SaidLine(
        number=LINES + 5, at=NOON, turn=1, kind="output", text=str(LINES + 4)
    )


async def test_where_there_are_none_it_says_why() -> None:
    """A run without a transcript, what is no run, and a file that cannot be read."""
    transcripts = FakeTranscripts()
    missing = [await last_said(transcripts.source(), run) for run in (RUN, "../x")]
    transcripts.trouble = PermissionError(13, "Permission denied")
    refused = await last_said(transcripts.source(), RUN)

    assert missing == ["no transcript is kept"] * 2
    assert refused == "the transcript cannot be read: Permission denied"
