"""A scheduler that is told again what was recorded, from the beginning of a segment on."""

from __future__ import annotations

from sortie.scheduler import Scheduler
from sortie.telemetry.event_log.entries import (
    Incident,
    IssueDigests,
    SegmentHeader,
    decoded_checkpoint,
    digest,
)


class Replay:
    """The scheduler at ``now``; ``differs_at`` is when it first decided otherwise than recorded.

    Raises msgspec.DecodeError where the state at the beginning cannot be read.
    """

    def __init__(self, header: SegmentHeader) -> None:
        self.scheduler = Scheduler.restored(decoded_checkpoint(header))
        self.now = header.now
        self.differs_at: float | None = None
        self._issues = IssueDigests()

    def tell(self, incident: Incident) -> None:
        """Let an event happen again."""
        self.now = incident.now
        decisions = self.scheduler.handle(incident.event, incident.now)
        if self.differs_at is None and digest(decisions, self._issues) != incident.digest:
            self.differs_at = incident.now
