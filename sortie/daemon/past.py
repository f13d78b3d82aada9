"""How an issue stood at a moment of the past, found in the event log."""

from __future__ import annotations

from datetime import UTC, datetime

from msgspec import Struct
from msgspec.structs import replace

from sortie.daemon.issue_views import explanation_view
from sortie.daemon.locks import database_lock_path, holder_of
from sortie.daemon.wall_time import times_of_day
from sortie.model.times import rfc3339
from sortie.telemetry.event_log import Past, directory_of, past_at
from sortie.telemetry.event_log.entries import without_digests
from sortie.telemetry.event_log.reader import EventLogError
from sortie.web.issue import ExplanationView, WorkspaceView


class PastExplanation(Struct, frozen=True, kw_only=True):
    """How an issue stood at ``at``; the event before that came at ``last_event_at``.

    ``warning`` says that the answer may not be what was so then, None where it is exact.
    """

    at: datetime
    last_event_at: datetime
    view: ExplanationView
    warning: str | None


def explain_past(db_path: str, issue: str, at: datetime) -> PastExplanation:
    """Explain an issue at a time, whether or not a daemon runs. Raises EventLogError."""
    alive = holder_of(database_lock_path(db_path)) is not None
    past = past_at(directory_of(db_path), at.timestamp(), alive=alive)
    scheduler = past.replay.scheduler
    found = scheduler.explain_issue(issue, past.now)
    if isinstance(found, str):
        raise EventLogError(f"at {rfc3339(at, 'seconds')}: {found}")
    known = scheduler.workspaces_of(found.issue.id)
    place = WorkspaceView(host=known[-1].host, path=known[-1].path) if known else None
    with times_of_day(past.offset):
        view = explanation_view(replace(found, issue=without_digests(found.issue)), None, (), place)
    return PastExplanation(
        at=at,
        last_event_at=datetime.fromtimestamp(past.last_event_at, UTC),
        view=view,
        warning=_warning(past),
    )


def _warning(past: Past) -> str | None:
    if past.replay.differs_at is None:
        return None
    since = datetime.fromtimestamp(past.replay.differs_at + past.offset, UTC)
    return (
        f"what was decided at {rfc3339(since, 'seconds')} is decided otherwise by this version of"
        " Sortie, so this may not be how it was"
    )
