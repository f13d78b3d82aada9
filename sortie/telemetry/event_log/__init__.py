"""Every event of the scheduler in order, kept in files, and decided over again.

The files are segments: each begins with a picture of the scheduler's state, and holds the events
that came then with their times and with digests of what was decided. So the state at any recorded
moment is found by deciding over again from the beginning of its segment.

``EventRecorder`` stands between the loop and the scheduler, ``EventLogWriter`` is the task that
writes, and ``past_at`` finds a moment, beside a daemon that writes or without one. Decisions that
wait for their records are something else: the journal of ``sortie/orchestrator/journal.py``.
"""

from sortie.telemetry.event_log.reader import Past, past_at
from sortie.telemetry.event_log.recorder import EventRecorder
from sortie.telemetry.event_log.segments import directory_of
from sortie.telemetry.event_log.writer import EventLogLimits, EventLogWriter

__all__ = [
    "EventLogLimits",
    "EventLogWriter",
    "EventRecorder",
    "Past",
    "directory_of",
    "past_at",
]
