"""What history tells of runs and days: its rows become records here, and records columns."""

from __future__ import annotations

import json

from sortie.model import (
    Activity,
    ErrorKind,
    IssueId,
    RunId,
    RunStatus,
    RunSummary,
    StopReason,
    cut,
)
from sortie.store import DayRow, HistoryRow, RuleRow, Totals
from sortie.store.database import Row, Value
from sortie.store.rows import delivery_from_json, moment, spending


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
        rule=row.get("rule") or "",
        started_at=moment(row["started_at"]),
        finished_at=None if finished_at is None else moment(finished_at),
        stopped_for=None if stopped_for is None else StopReason(stopped_for),
        title=row.get("title"),
        description=row.get("description"),
        state=row.get("state"),
        summary=_summary(row),
        handed_off_at=None if handed_off_at is None else moment(handed_off_at),
        delivery=None if delivery is None else delivery_from_json(delivery),
        image=row.get("image"),
        image_digest=row.get("image_digest"),
        taken_over=row.get("taken_over"),
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


def rule_row(row: Row) -> RuleRow:
    """Read a row of rules."""
    return RuleRow(
        rule=row["rule"],
        runs=row["runs"],
        turns=row["turns"],
        seconds=row["seconds"],
        spent=spending(row),
    )


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
