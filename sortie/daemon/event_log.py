"""The event log of a daemon: recorded, and written."""

from __future__ import annotations

import time

from sortie.config.settings import Settings
from sortie.telemetry import Publish
from sortie.telemetry.event_log import (
    EventLogLimits,
    EventLogWriter,
    EventRecorder,
    directory_of,
)


class DaemonEventLog:
    """The recorder and the writer of a daemon."""

    def __init__(self, settings: Settings, publish: Publish) -> None:
        self.recorder = EventRecorder(time.time)
        self.writer = EventLogWriter(
            directory_of(settings.db_path), self.recorder, publish, time.time
        )
        self.use(settings)

    def use(self, settings: Settings) -> None:
        """Go by these settings from now on."""
        journal = settings.journal
        self.writer.use(EventLogLimits(keep_days=journal.keep_days, max_bytes=journal.max_bytes))
