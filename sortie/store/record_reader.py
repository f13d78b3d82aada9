"""Read what is recorded: for recovery, for history, for the totals."""

from __future__ import annotations

import math
import zlib
from base64 import b85decode

from sortie.model import NOTHING, IssueId, RunId, Spending
from sortie.store import DayRow, HistoryRow, Recovered, RuleRow, Totals, UnknownRun
from sortie.store.database import Database
from sortie.store.history_rows import day_row, history_row, rule_row, totals
from sortie.store.rows import (
    agent_session,
    delivery_from_json,
    due_comment,
    known_workspace,
    rows_of,
    spending,
    stage_from_json,
    stored_crash,
    stored_hold,
    stored_limit,
    stored_question,
    stored_retry,
    stored_watch,
    unfinished_run,
)

_LAST_SEQ = 2**63 - 1


def read_recovered(database: Database) -> Recovered:
    """Read what a scheduler needs to go on."""
    with rows_of(database):
        workspaces = database.rows("all_workspaces")
        return Recovered(
            unfinished=tuple(map(unfinished_run, database.rows("unfinished_runs"))),
            retries=tuple(map(stored_retry, database.rows("all_retries"))),
            holds=tuple(map(stored_hold, database.rows("all_holds"))),
            paused=bool(database.row("paused")["paused"]),
            sessions={
                IssueId(row["issue_id"]): row["sessions"] for row in database.rows("all_sessions")
            },
            spent={IssueId(row["issue_id"]): spending(row) for row in database.rows("all_spent")},
            days={
                row["day"]: spent
                for row in database.rows("last_days")
                if (spent := spending(row)) != NOTHING
            },
            limits=tuple(map(stored_limit, database.rows("all_limits"))),
            workspaces=tuple(map(known_workspace, workspaces)),
            unsaved={
                (row["host"], row["path"]): row["unsaved_since"]
                for row in workspaces
                if row["unsaved_since"] is not None
            },
            agent_sessions={
                IssueId(row["issue_id"]): agent_session(row)
                for row in database.rows("agent_sessions")
            },
            deliveries={
                IssueId(row["issue_id"]): delivery_from_json(row["delivery"])
                for row in database.rows("pending_deliveries")
            },
            rules={IssueId(row["issue_id"]): row["rule"] for row in database.rows("all_rules")},
            stages={
                IssueId(row["issue_id"]): stage_from_json(row["passed"])
                for row in database.rows("all_stages")
            },
            questions={
                IssueId(row["issue_id"]): stored_question(row)
                for row in database.rows("all_questions")
            },
            watches=tuple(map(stored_watch, database.rows("all_watches"))),
            crashes=tuple(map(stored_crash, database.rows("all_crashes"))),
            comments=tuple(map(due_comment, database.rows("all_comments"))),
        )


def read_runs(
    database: Database,
    issue: str | None,
    limit: int,
    before: RunId | None,
    rule: str | None = None,
) -> tuple[HistoryRow, ...]:
    """Read a page of history, newest first, of one rule where that is given. Raises UnknownRun."""
    position = {"started_at": math.inf, "seq": _LAST_SEQ}
    if before is not None:
        found = database.rows("run_position", run_id=before)
        if not found:
            raise UnknownRun(before)
        position = found[0]
    page = {**position, "limit": max(0, limit)}
    if rule is not None:
        rows = database.rows("history_of_rule", rule=rule, identifier=issue, **page)
    elif issue is None:
        rows = database.rows("history", **page)
    else:
        rows = database.rows("history_of_issue", identifier=issue, **page)
    with rows_of(database):
        return tuple(map(history_row, rows))


def read_run(database: Database, run_id: RunId) -> HistoryRow | None:
    """Read one run."""
    found = database.rows("run_by_id", run_id=run_id)
    with rows_of(database):
        return history_row(found[0]) if found else None


def read_newest_run(database: Database, issue: str) -> HistoryRow | None:
    """Read the newest run of an issue, given by its identifier or else by its id."""
    found = read_runs(database, issue, 1, None)
    if found:
        return found[0]
    rows = database.rows("newest_run_of_id", issue_id=issue)
    with rows_of(database):
        return history_row(rows[0]) if rows else None


def read_totals(database: Database) -> Totals:
    """Read the totals."""
    return totals(database.row("totals"))


def read_day(database: Database, day: str) -> Spending:
    """Read what was used on a day."""
    return spending(database.row("spent_on_day", day=day))


def read_days(database: Database, limit: int) -> tuple[DayRow, ...]:
    """Read what each agent did and used on the last days on which anything was."""
    return tuple(map(day_row, database.rows("days", limit=limit)))


def read_rules(database: Database, since: float) -> tuple[RuleRow, ...]:
    """Read what the runs of each rule used that have ended since a moment in Unix seconds."""
    return tuple(map(rule_row, database.rows("spent_by_rule", since=since)))


def read_diff(database: Database, run_id: RunId) -> str | None:
    """Read what a run's work changed, None where it is not recorded."""
    for row in database.rows("diff_of_run", run_id=run_id):
        return zlib.decompress(b85decode(row["diff"])).decode("utf-8", "surrogatepass")
    return None
