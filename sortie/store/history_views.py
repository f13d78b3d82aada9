"""What the store tells of runs that are recorded, for people."""

from __future__ import annotations

from datetime import datetime

from msgspec import Struct

from sortie.model import (
    NO_SUMMARY,
    NOTHING,
    UNKNOWN,
    Activity,
    Delivery,
    ErrorKind,
    IssueId,
    RunId,
    RunStatus,
    RunSummary,
    Spending,
    StopReason,
)


class HistoryRow(Struct, frozen=True, kw_only=True):
    """One run as history shows it; unknown is None, never 0. See RecordExit for ``stopped_for``;
    it is None for all runs of a file that has not been migrated. ``tokens`` are known of some runs
    whose ``spent`` does not tell input from output. ``title`` and ``description`` are the issue's,
    as they were when the run began, the description cut to DESCRIPTION_LIMIT; ``state`` is the
    issue's, as it was last known, and ``handed_off_at`` is when it was moved after this run.
    ``rule`` is the rule that decided, "" for the top level. ``image`` is what the container of the
    run was made of, and ``image_digest`` that image's; both are None without a container.
    ``taken_over`` says from which daemons the run was taken over, and in which turns."""

    run_id: RunId
    issue: str
    issue_id: IssueId
    attempt: int
    status: RunStatus
    error_kind: ErrorKind | None
    error: str | None
    turns: int
    host: str
    workspace: str | None
    agent: str
    started_at: datetime
    finished_at: datetime | None
    stopped_for: StopReason | None = None
    spent: Spending = NOTHING
    tokens: int | None = None
    activity: Activity = UNKNOWN
    title: str | None = None
    description: str | None = None
    state: str | None = None
    summary: RunSummary = NO_SUMMARY
    handed_off_at: datetime | None = None
    delivery: Delivery | None = None
    rule: str = ""
    image: str | None = None
    image_digest: str | None = None
    taken_over: str | None = None


class DayRow(Struct, frozen=True, kw_only=True):
    """What the runs of one agent used on one day, as 2026-11-22, and how many of them ended on it,
    with their turns and seconds."""

    day: str
    agent: str
    runs: int
    turns: int
    seconds: float
    spent: Spending


class RuleRow(Struct, frozen=True, kw_only=True):
    """What the runs of one rule used, "" for the top level, with their turns and seconds."""

    rule: str
    runs: int
    turns: int
    seconds: float
    spent: Spending


class Totals(Struct, frozen=True, kw_only=True):
    """Sums over all recorded runs; amounts are None until an agent reported some. ``cost_usd`` and
    ``estimated_usd`` are as in Spending.

    ``seconds_running`` counts runs that are over. Runs of an earlier daemon that were cut short
    count until they were last heard of.
    """

    runs: int
    turns: int
    credits: float | None
    tokens: int | None
    seconds_running: float
    cost_usd: float | None = None
    estimated_usd: float | None = None
