"""Rows become records here, and issues become JSON and back."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime

import msgspec

from sortie.model import (
    Activity,
    AgentSession,
    Delivery,
    ErrorKind,
    HoldReason,
    Issue,
    IssueId,
    KnownWorkspace,
    ProcessIdentity,
    RunId,
    RunStatus,
    RunSummary,
    Sighting,
    Spending,
    StopReason,
    StoreError,
    Streak,
    Trigger,
    WaitKind,
    cut,
)
from sortie.model.spending import AMOUNTS
from sortie.scheduler.records import RecordComment
from sortie.store import (
    DayRow,
    HistoryRow,
    StoredCrash,
    StoredHold,
    StoredLimit,
    StoredRetry,
    Totals,
    UnfinishedRun,
)
from sortie.store.database import Database, Row, Value


def issue_to_json(issue: Issue) -> str:
    """Return an issue as JSON in ASCII, which holds lone surrogates too."""
    return json.dumps(issue, default=_plain)


def issue_from_json(text: str) -> Issue:
    """Read an issue back; fields of other versions are ignored. Raises ValueError."""
    return msgspec.convert(json.loads(text), Issue)


def delivery_to_json(delivery: Delivery) -> str:
    """Return a delivery as JSON in ASCII."""
    return json.dumps(delivery, default=_plain)


def delivery_from_json(text: str) -> Delivery:
    """Read a delivery back; fields of other versions are ignored. Raises ValueError."""
    return msgspec.convert(json.loads(text), Delivery)


def _plain(value: object) -> object:
    match value:
        case datetime():
            return value.isoformat()
        case msgspec.Struct():
            return msgspec.structs.asdict(value)
    raise TypeError(f"{type(value).__name__} has no place in an issue")


def streak_values(streak: Streak) -> dict[str, Value]:
    """Return a streak's columns."""
    return {
        "failures": streak.failures,
        "continuations": streak.continuations,
        "interruptions": streak.interruptions,
    }


def activity_values(activity: Activity) -> dict[str, Value]:
    """Return the columns of what an agent has done."""
    files, uses = activity.files_modified, activity.tool_uses
    return {
        "model": activity.model,
        "files_modified": None if files is None else json.dumps(files),
        "files_omitted": int(activity.files_omitted),
        "tool_uses": None if uses is None else json.dumps(uses),
    }


def summary_values(summary: RunSummary) -> dict[str, Value]:
    """Return the columns of what a run has left."""
    return {
        "answer": None if summary.answer is None else cut(summary.answer),
        "branch": None if summary.branch is None else cut(summary.branch),
        "head_commit": summary.head_commit,
        "commits": summary.commits,
        "files_changed": summary.files_changed,
        "uncommitted": summary.uncommitted,
    }


@contextmanager
def rows_of(database: Database) -> Iterator[None]:
    """Raise StoreError where a row holds what this version does not know."""
    try:
        yield
    except ValueError as error:
        raise StoreError(
            f"cannot read the database {database.path}: a row holds what this version does not "
            "know; install the version that wrote it"
        ) from error


def unfinished_run(row: Row) -> UnfinishedRun:
    """Read a row of unfinished_runs."""
    process = None
    if row["pid"] is not None:
        process = ProcessIdentity(pid=row["pid"], started_at=row["process_started_at"])
    return UnfinishedRun(
        run_id=RunId(row["run_id"]),
        issue=issue_from_json(row["issue"]),
        streak=_streak(row),
        host=row["host"],
        process=process,
        workspace=row["workspace"],
        turns=row["turns"],
    )


def stored_retry(row: Row) -> StoredRetry:
    """Read a row of all_retries."""
    return StoredRetry(
        issue=issue_from_json(row["issue"]),
        kind=WaitKind(row["kind"]),
        trigger=Trigger(row["triggered_by"]),
        streak=_streak(row),
        delay=row["delay"],
        due_at=row["due_at"],
        tries=row["tries"],
    )


def stored_hold(row: Row) -> StoredHold:
    """Read a row of all_holds."""
    return StoredHold(
        issue=issue_from_json(row["issue"]),
        reason=HoldReason(row["reason"]),
        detail=row["detail"],
        since=row["since"],
        baseline_final=bool(row["settled"]),
        handoff_state=row["handoff_state"],
    )


def stored_crash(row: Row) -> StoredCrash:
    """Read a row of all_crashes."""
    return StoredCrash(issue=issue_from_json(row["issue"]), times=row["times"])


def stored_limit(row: Row) -> StoredLimit:
    """Read a row of all_limits."""
    resets_at = row["resets_at"]
    return StoredLimit(
        account=row["account"],
        message=row["message"],
        since=row["since"],
        until=row["until"],
        delay=row["delay"],
        resets_at=None if resets_at is None else moment(resets_at),
        times=row["times"],
    )


def due_comment(row: Row) -> RecordComment:
    """Read a row of all_comments."""
    return RecordComment(
        run_id=RunId(row["run_id"]),
        issue=issue_from_json(row["issue"]),
        lifecycle=row["lifecycle"],
        body=row["body"],
    )


def agent_session(row: Row) -> AgentSession:
    """Read a row of agent_sessions."""
    return AgentSession(
        host=row["host"],
        agent=row["agent"],
        workspace=row["workspace"],
        session_id=row["session_id"],
    )


def known_workspace(row: Row) -> KnownWorkspace:
    """Read a row of all_workspaces."""
    return KnownWorkspace(
        issue_id=IssueId(row["issue_id"]),
        identifier=row["identifier"],
        host=row["host"],
        path=row["path"],
    )


def history_row(row: Row) -> HistoryRow:
    """Read a row of history."""
    error_kind, finished_at = row["error_kind"], row["finished_at"]
    handed_off_at = row.get("handed_off_at")
    stopped_for, delivery = row.get("stopped_for"), row.get("delivery")
    return HistoryRow(
        run_id=RunId(row["run_id"]),
        issue=row["identifier"],
        issue_id=IssueId(row["issue_id"]),
        attempt=row["failures"],
        status=RunStatus(row["status"]),
        error_kind=None if error_kind is None else ErrorKind(error_kind),
        error=row["error"],
        turns=row["turns"],
        spent=spending(row),
        activity=_activity(row),
        tokens=row["tokens"],
        host=row["host"],
        workspace=row["workspace"],
        agent=row["agent"],
        started_at=moment(row["started_at"]),
        finished_at=None if finished_at is None else moment(finished_at),
        stopped_for=None if stopped_for is None else StopReason(stopped_for),
        title=row.get("title"),
        state=row.get("state"),
        summary=_summary(row),
        handed_off_at=None if handed_off_at is None else moment(handed_off_at),
        delivery=None if delivery is None else delivery_from_json(delivery),
    )


def _activity(row: Row) -> Activity:
    """Read what an agent has done; a file of an earlier version does not tell."""
    files, uses = row.get("files_modified"), row.get("tool_uses")
    return Activity(
        model=row.get("model"),
        files_modified=None if files is None else tuple(json.loads(files)),
        files_omitted=bool(row.get("files_omitted")),
        tool_uses=None if uses is None else json.loads(uses),
    )


def _summary(row: Row) -> RunSummary:
    """Read what a run has left; a file of an earlier version does not tell."""
    return RunSummary(
        answer=row.get("answer"),
        branch=row.get("branch"),
        head_commit=row.get("head_commit"),
        commits=row.get("commits"),
        files_changed=row.get("files_changed"),
        uncommitted=row.get("uncommitted"),
    )


def day_row(row: Row) -> DayRow:
    """Read a row of days."""
    return DayRow(
        day=row["day"],
        agent=row["agent"],
        runs=row["runs"],
        turns=row["turns"],
        seconds=row["seconds"],
        spent=spending(row),
    )


def spending(row: Row) -> Spending:
    """Read the amounts in a row; those of a file of an earlier version may be missing."""
    return Spending(**{name: row.get(name) for name in AMOUNTS})


def totals(row: Row) -> Totals:
    """Read the row of totals."""
    return Totals(
        runs=row["runs"],
        turns=row["turns"],
        credits=row["credits"],
        tokens=row["tokens"],
        seconds_running=row["seconds"],
        cost_usd=row["cost_usd"],
        estimated_usd=row["estimated_usd"],
    )


def sighting(row: Row) -> Sighting:
    """Read a row of sighting."""
    return Sighting(first_seen=moment(row["first_seen"]), changed_at=moment(row["changed_at"]))


def moment(seconds: float) -> datetime:
    """Return Unix seconds as an aware time in UTC."""
    return datetime.fromtimestamp(seconds, UTC)


def _streak(row: Row) -> Streak:
    return Streak(
        failures=row["failures"],
        continuations=row["continuations"],
        interruptions=row["interruptions"],
    )
