"""The transcripts of a daemon's runs: collected, written, and read over HTTP."""

from __future__ import annotations

import time

from sortie.config.settings import Settings
from sortie.telemetry import Publish
from sortie.telemetry.transcripts.files import directory_of
from sortie.telemetry.transcripts.sink import TranscriptSink
from sortie.telemetry.transcripts.writer import TranscriptLimits, TranscriptWriter


class RunTranscripts:
    """The sink and the writer of a daemon."""

    def __init__(self, settings: Settings, publish: Publish) -> None:
        self.sink = TranscriptSink(time.time)
        self.writer = TranscriptWriter(
            directory_of(settings.db_path), self.sink, publish, time.time
        )
        self.use(settings)

    def use(self, settings: Settings) -> None:
        """Go by these settings from now on."""
        history = settings.history
        self.writer.use(TranscriptLimits(keep_days=history.keep_days, max_bytes=history.max_bytes))
