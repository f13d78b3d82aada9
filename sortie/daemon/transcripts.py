"""The transcripts of a daemon's runs: collected, written, and read over HTTP."""

from __future__ import annotations

import time
from collections.abc import Mapping

from sortie.config.settings import Settings
from sortie.daemon.run_contexts import known_secrets
from sortie.telemetry import Publish
from sortie.telemetry.transcripts.files import directory_of
from sortie.telemetry.transcripts.sink import TranscriptSink
from sortie.telemetry.transcripts.writer import TranscriptLimits, TranscriptWriter


class RunTranscripts:
    """The sink and the writer of a daemon; no secret of the daemon, or that agents are given in
    its environment, is written: these are ``secrets``."""

    def __init__(
        self, settings: Settings, token: str, environ: Mapping[str, str], publish: Publish
    ) -> None:
        self._token = token
        self._environ = environ
        self.secrets: frozenset[str] = frozenset()
        self.sink = TranscriptSink(time.time)
        self.writer = TranscriptWriter(
            directory_of(settings.db_path), self.sink, publish, time.time
        )
        self.use(settings)

    def use(self, settings: Settings) -> None:
        """Go by these settings from now on."""
        history = settings.history
        limits = TranscriptLimits(keep_days=history.keep_days, max_bytes=history.max_bytes)
        self.secrets = known_secrets(settings, self._environ, self._token)
        self.writer.use(limits, self.secrets)
