"""What has happened in the last hours, as the dashboard shows it."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from msgspec import Struct

from sortie.model import NOTHING, Spending
from sortie.model.numbers import counted
from sortie.web.runs import RunView

BUCKET = 15 * 60
"""Seconds that one bar of a chart stands for."""

BUCKETS = 48
"""Bars of a chart, which is twelve hours."""


class PastRun(Struct, frozen=True, kw_only=True):
    """A run as lists show it; ``finished_at`` is None while it is under way, ``rule`` where the top
    level of the settings decided."""

    run_id: str
    issue_identifier: str
    title: str | None
    status: str
    error_kind: str | None
    error: str | None
    host: str
    turns: int
    credits: float | None
    cost_usd: float | None
    tokens: int | None
    started_at: datetime
    finished_at: datetime | None
    answer: str | None = None
    rule: str | None = None


class HandedOff(Struct, frozen=True, kw_only=True):
    """An issue that was handed off; ``run_id`` is its last run, where that is known, and
    ``answer`` what the agent said last in it. ``pull_request`` is the address of the one that waits
    for review, ``branch`` where the work is, and the numbers say how much it changes."""

    issue_identifier: str
    at: datetime
    title: str | None = None
    state: str | None = None
    run_id: str | None = None
    answer: str | None = None
    branch: str | None = None
    files_changed: int | None = None
    added: int | None = None
    removed: int | None = None
    pull_request: str | None = None

    @property
    def changed(self) -> str | None:
        """How much the work changes, in words; None where nothing was delivered."""
        if self.files_changed is None:
            return None
        return f"{counted(self.files_changed, 'file')}, +{self.added} -{self.removed}"


class Bucket(Struct, frozen=True, kw_only=True):
    """What ended in the quarter of an hour that began at ``begins_at``, in Unix seconds.

    ``turn_seconds`` is how long all ``turns`` took together. Unknown is None, never 0.
    """

    begins_at: int
    succeeded: int = 0
    failed: int = 0
    stopped: int = 0
    turns: int = 0
    turn_seconds: float = 0.0
    spent: Spending = NOTHING


class PollView(Struct, frozen=True, kw_only=True):
    """The last poll that ended."""

    at: datetime
    result: Literal["success", "error", "skipped"]
    error: str | None


class ActivityView(Struct, frozen=True, kw_only=True):
    """The last runs and handoffs, newest first, and all ``BUCKETS`` buckets up to now, oldest
    first."""

    runs: tuple[PastRun, ...] = ()
    buckets: tuple[Bucket, ...] = ()
    poll: PollView | None = None
    handed_off: tuple[HandedOff, ...] = ()


def past_run(view: RunView) -> PastRun:
    """Return a run as lists show it."""
    ended = view.finished_at
    return PastRun(
        run_id=view.run_id,
        issue_identifier=view.issue,
        title=view.title,
        status=view.status,
        error_kind=view.error_kind,
        error=view.error,
        host=view.host,
        turns=view.turns,
        credits=view.credits,
        cost_usd=view.cost_usd,
        tokens=view.tokens,
        started_at=datetime.fromisoformat(view.started_at),
        finished_at=None if ended is None else datetime.fromisoformat(ended),
        answer=view.answer,
        rule=view.rule,
    )
