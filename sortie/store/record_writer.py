"""Write records: each becomes the statements that stand for it."""

from __future__ import annotations

import sqlite3
import zlib
from base64 import b85encode
from collections.abc import Sequence
from typing import assert_never

from sortie.model import RunId, cut
from sortie.model.spending import AMOUNTS
from sortie.scheduler import records as rec
from sortie.store import RecordRefused
from sortie.store.database import Database, Value
from sortie.store.history_rows import activity_values, summary_values
from sortie.store.rows import (
    delivery_to_json,
    issue_to_json,
    stage_to_json,
    streak_values,
    watch_to_json,
)

_UNWRITABLE = (
    OverflowError,
    sqlite3.DataError,
    sqlite3.IntegrityError,
    sqlite3.InterfaceError,
    sqlite3.ProgrammingError,
)
"""What says that the record is at fault, and not the disk."""

_OfRun = (
    rec.RecordRun
    | rec.RecordWorkspace
    | rec.RecordTurn
    | rec.RecordSpending
    | rec.RecordActivity
    | rec.RecordProcess
    | rec.RecordSession
    | rec.RecordExit
    | rec.RecordDelivery
)
"""Records of one run."""

_OfIssue = (
    rec.RecordRetry
    | rec.ForgetRetry
    | rec.RecordHold
    | rec.ForgetHold
    | rec.RecordHandoff
    | rec.SettleDelivery
    | rec.RecordWatch
    | rec.ForgetWatch
    | rec.RecordRule
    | rec.ForgetRule
    | rec.RecordStage
    | rec.ForgetStages
    | rec.RecordComment
    | rec.ForgetComment
    | rec.RecordCrash
    | rec.ForgetCrashes
)
"""Records of what an issue waits for, or is known by."""


def write(database: Database, records: Sequence[rec.Record], at: float, inherited: int) -> None:
    """Write all records in one transaction, or none.

    Runs up to the seq ``inherited`` are an earlier daemon's: they ended when they were last heard
    of, not when their end was noticed. Raises RecordRefused for a record that contradicts the rows
    or that no row can hold.
    """
    with database.transaction():
        for record in records:
            try:
                _write_one(database, record, at, inherited)
            except _UNWRITABLE as error:
                what = f"cannot write {type(record).__name__}: {error}"
                raise RecordRefused(what, record) from error


def _write_one(database: Database, record: rec.Record, at: float, inherited: int) -> None:
    if isinstance(record, _OfRun):
        _write_of_run(database, record, at, inherited)
        return
    if isinstance(record, _OfIssue):
        _write_of_issue(database, record, at)
        return
    match record:
        case rec.RecordUnsaved(host=host, path=path):
            database.change("set_workspace_unsaved", host=host, path=path, at=at)
        case rec.ForgetWorkspace(host=host, path=path):
            database.change("forget_sessions", host=host, path=path)
            database.change("delete_workspace", host=host, path=path)
        case rec.ResetBudget(issue_id=issue_id):
            database.change("delete_sessions", issue_id=issue_id)
            database.change("delete_spent", issue_id=issue_id)
        case rec.RecordSessions(issue_id=issue_id, sessions=sessions):
            database.change("upsert_sessions", issue_id=issue_id, sessions=sessions)
        case rec.RecordLimit():
            _replace_limit(database, record, at)
        case rec.ForgetLimit(account=account):
            database.change("delete_limit", account=account)
        case rec.RecordDay(day=day):
            database.change("set_day", day=day)
        case rec.RecordPause(paused=paused):
            database.change("set_paused", paused=int(paused))
        case _:
            assert_never(record)


def _write_of_run(database: Database, record: _OfRun, at: float, inherited: int) -> None:
    match record:
        case rec.RecordRun():
            _insert_run(database, record, at)
        case rec.RecordWorkspace(run_id=run_id, workspace=known):
            _update_run(database, record, "set_run_workspace", run_id, workspace=known.path, at=at)
            database.change(
                "upsert_workspace",
                issue_id=known.issue_id,
                host=known.host,
                identifier=known.identifier,
                path=known.path,
                rule=known.rule,
            )
        case rec.RecordTurn(run_id=run_id, issue_id=issue_id, turn=turn, sessions=sessions):
            _update_run(database, record, "set_run_turns", run_id, turns=turn, at=at)
            database.change("upsert_sessions", issue_id=issue_id, sessions=sessions)
        case rec.RecordSpending(run_id=run_id, spent=spent):
            amounts = {name: getattr(spent, name) for name in (*AMOUNTS, "tokens")}
            _update_run(database, record, "set_run_spent", run_id, **amounts, at=at)
        case rec.RecordActivity(run_id=run_id, activity=activity):
            values = activity_values(activity)
            _update_run(database, record, "set_run_activity", run_id, **values, at=at)
        case rec.RecordProcess(run_id=run_id, process=process):
            started_at = process.started_at
            _update_run(
                database,
                record,
                "set_run_process",
                run_id,
                pid=process.pid,
                process_started_at=started_at,
                at=at,
            )
        case rec.RecordSession(run_id=run_id, session_id=session_id):
            _update_run(database, record, "set_run_session", run_id, session_id=session_id, at=at)
        case rec.RecordExit():
            _finish_run(database, record, at, inherited)
        case rec.RecordDelivery(run_id=run_id, delivery=delivery):
            _update_run(
                database,
                record,
                "set_run_delivery",
                run_id,
                delivery=delivery_to_json(delivery),
                pending=int(delivery.is_pending),
                at=at,
            )
            database.change("settle_deliveries", run_id=run_id, issue_id=record.issue_id)
            if record.diff is not None:
                packed = zlib.compress(record.diff.encode("utf-8", "surrogatepass"))
                database.change("replace_diff", run_id=run_id, diff=b85encode(packed).decode())
        case _:
            assert_never(record)


def _write_of_issue(database: Database, record: _OfIssue, at: float) -> None:
    match record:
        case rec.RecordRetry():
            _replace_retry(database, record, at)
        case rec.ForgetRetry(issue_id=issue_id):
            database.change("delete_retry", issue_id=issue_id)
        case rec.RecordHold(issue=issue, again=True):
            database.change(
                "rebase_hold",
                issue_id=issue.id,
                issue=issue_to_json(issue),
                settled=int(record.baseline_final),
            )
        case rec.RecordHold(issue=issue, reason=reason, detail=detail):
            database.change(
                "replace_hold",
                issue_id=issue.id,
                issue=issue_to_json(issue),
                reason=reason.value,
                detail=cut(detail),
                since=at,
                settled=int(record.baseline_final),
                handoff_state=record.handoff_state,
            )
        case rec.ForgetHold(issue_id=issue_id):
            database.change("delete_hold", issue_id=issue_id)
        case rec.RecordHandoff(issue=issue, state=state):
            database.change(
                "set_handed_off",
                issue_id=issue.id,
                identifier=issue.identifier,
                state=state,
                at=at,
            )
        case rec.SettleDelivery(issue_id=issue_id):
            database.change("settle_deliveries", run_id="", issue_id=issue_id)
        case rec.RecordWatch(issue=issue, watch=watch):
            values = {"issue": issue_to_json(issue), "watch": watch_to_json(watch)}
            database.change("replace_watch", issue_id=issue.id, **values)
        case rec.ForgetWatch(issue_id=issue_id):
            database.change("delete_watch", issue_id=issue_id)
        case rec.RecordRule(issue_id=issue_id, rule=rule):
            database.change("replace_rule", issue_id=issue_id, rule=rule)
        case rec.ForgetRule(issue_id=issue_id):
            database.change("delete_rule", issue_id=issue_id)
        case rec.RecordStage(issue_id=issue_id, passed=passed):
            database.change("replace_stage", issue_id=issue_id, passed=stage_to_json(passed))
        case rec.ForgetStages(issue_id=issue_id):
            database.change("delete_stage", issue_id=issue_id)
        case rec.RecordComment(run_id=run_id, issue=issue, lifecycle=lifecycle, body=body):
            database.change(
                "replace_comment",
                run_id=run_id,
                lifecycle=lifecycle,
                issue=issue_to_json(issue),
                body=body,
            )
        case rec.ForgetComment(run_id=run_id, lifecycle=lifecycle):
            database.change("delete_comment", run_id=run_id, lifecycle=lifecycle)
        case rec.RecordCrash(issue=issue):
            database.change("count_crash", issue_id=issue.id, issue=issue_to_json(issue))
        case rec.ForgetCrashes(issue_id=issue_id):
            database.change("delete_crashes", issue_id=issue_id)
        case _:
            assert_never(record)


def _replace_limit(database: Database, record: rec.RecordLimit, at: float) -> None:
    resets_at = record.resets_at
    database.change(
        "replace_limit",
        account=record.account,
        message=cut(record.message),
        delay=record.delay,
        resets_at=None if resets_at is None else resets_at.timestamp(),
        times=record.times,
        at=at,
    )


def _insert_run(database: Database, record: rec.RecordRun, at: float) -> None:
    try:
        database.change(
            "insert_run",
            run_id=record.run_id,
            issue_id=record.issue.id,
            identifier=record.issue.identifier,
            issue=issue_to_json(record.issue),
            title=record.issue.shown_title,
            description=record.issue.shown_description,
            state=record.issue.state,
            host=record.host,
            agent=record.agent,
            rule=record.rule,
            at=at,
            **streak_values(record.streak),
        )
    except sqlite3.IntegrityError as error:
        raise RecordRefused(
            f"cannot record run {record.run_id}: it is recorded already, or its issue "
            f"{record.issue.id} has another run under way",
            record,
        ) from error


def _finish_run(database: Database, record: rec.RecordExit, at: float, inherited: int) -> None:
    _update_run(
        database,
        record,
        "finish_run",
        record.run_id,
        status=record.status.value,
        error_kind=None if record.error_kind is None else record.error_kind.value,
        error=None if record.error is None else cut(record.error),
        turns=record.turns,
        stopped_for=None if record.stopped_for is None else record.stopped_for.value,
        state=record.state,
        **summary_values(record.summary),
        at=at,
        inherited=inherited,
    )


def _replace_retry(database: Database, record: rec.RecordRetry, at: float) -> None:
    database.change(
        "replace_retry",
        issue_id=record.issue.id,
        issue=issue_to_json(record.issue),
        kind=record.kind.value,
        triggered_by=record.trigger.value,
        delay=record.delay,
        due_at=at + record.delay,
        tries=record.tries,
        **streak_values(record.streak),
    )


def _update_run(
    database: Database, record: rec.Record, query: str, run_id: RunId, **values: Value
) -> None:
    if not database.change(query, run_id=run_id, **values):
        raise RecordRefused(
            f"cannot write {type(record).__name__}: no run {run_id} is recorded as under way",
            record,
        )
