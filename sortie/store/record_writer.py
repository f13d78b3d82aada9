"""Write records: each becomes the statements that stand for it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import assert_never

from sortie.model import cut
from sortie.scheduler import records as rec
from sortie.store import RecordRefused
from sortie.store.database import Database
from sortie.store.outbox import add_notification
from sortie.store.rows import (
    issue_to_json,
    question_to_json,
    stage_to_json,
    streak_values,
    watch_to_json,
)
from sortie.store.run_writer import OfRun, write_of_run

_OfIssue = (
    rec.RecordRetry
    | rec.ForgetRetry
    | rec.RecordHold
    | rec.ForgetHold
    | rec.RecordQuestion
    | rec.ForgetQuestion
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
            except database.REFUSALS as error:
                what = f"cannot write {type(record).__name__}: {error}"
                raise RecordRefused(what, record) from error


def _write_one(database: Database, record: rec.Record, at: float, inherited: int) -> None:
    if isinstance(record, OfRun):
        write_of_run(database, record, at, inherited)
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
        case rec.RecordNotification():
            add_notification(database, record.notification, record.targets, at)
        case rec.RecordPause(paused=paused):
            database.change("set_paused", paused=int(paused))
        case _:
            assert_never(record)


def _write_of_issue(database: Database, record: _OfIssue, at: float) -> None:
    match record:
        case rec.RecordRetry():
            _replace_retry(database, record, at)
        case rec.ForgetRetry(issue_id=issue_id):
            database.change("delete_retry", issue_id=issue_id)
        case rec.RecordHold():
            _write_hold(database, record, at)
        case rec.ForgetHold(issue_id=issue_id):
            database.change("delete_hold", issue_id=issue_id)
        case rec.RecordQuestion():
            _write_question(database, record, at)
        case rec.ForgetQuestion(issue_id=issue_id):
            database.change("delete_question", issue_id=issue_id)
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


def _write_hold(database: Database, record: rec.RecordHold, at: float) -> None:
    values = {"issue_id": record.issue.id, "issue": issue_to_json(record.issue)}
    settled = int(record.baseline_final)
    if record.again:
        database.change("rebase_hold", **values, settled=settled)
        return
    database.change(
        "replace_hold",
        **values,
        reason=record.reason.value,
        detail=cut(record.detail),
        since=at,
        settled=settled,
        handoff_state=record.handoff_state,
    )


def _write_question(database: Database, record: rec.RecordQuestion, at: float) -> None:
    values = {"issue_id": record.issue_id, "asked": question_to_json(record.asked)}
    if record.again:
        database.change("update_question", **values)
        return
    delay = record.delay
    due_at = None if delay is None else at + delay
    database.change("replace_question", **values, asked_at=at, delay=delay, due_at=due_at)


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
