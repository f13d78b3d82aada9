"""Write the records of runs."""

from __future__ import annotations

import zlib
from base64 import b85encode
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
    streak_values,
    turn_to_json,
)

OfRun = (
    rec.RecordRun
    | rec.RecordWorkspace
    | rec.RecordTurn
    | rec.RecordTurnUnderWay
    | rec.RecordTakeOver
    | rec.RecordSpending
    | rec.RecordActivity
    | rec.RecordProcess
    | rec.RecordSession
    | rec.RecordImage
    | rec.RecordExit
    | rec.RecordDelivery
)
"""Records of one run."""


def write_of_run(database: Database, record: OfRun, at: float, inherited: int) -> None:
    """Write one record of a run; see ``record_writer.write``."""
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
        case rec.RecordTurnUnderWay(run_id=run_id, turn=under_way):
            told = None if under_way is None else turn_to_json(under_way)
            _update_run(database, record, "set_run_turn", run_id, turn=told, at=at)
        case rec.RecordTakeOver(run_id=run_id, daemon=daemon, turn=turn):
            text = f"from {daemon} in turn {turn}"
            _update_run(database, record, "note_take_over", run_id, text=text)
        case rec.RecordSpending(run_id=run_id, spent=spent):
            amounts = {name: getattr(spent, name) for name in (*AMOUNTS, "tokens")}
            _update_run(database, record, "set_run_spent", run_id, **amounts, at=at)
        case rec.RecordActivity(run_id=run_id, activity=activity):
            values = activity_values(activity)
            _update_run(database, record, "set_run_activity", run_id, **values, at=at)
        case rec.RecordProcess(run_id=run_id, process=process):
            pid, born = process.pid, process.started_at
            _update_run(
                database, record, "set_run_process", run_id, pid=pid, process_started_at=born, at=at
            )
        case rec.RecordSession(run_id=run_id, session_id=session_id):
            _update_run(database, record, "set_run_session", run_id, session_id=session_id, at=at)
        case rec.RecordImage(run_id=run_id, image=image, digest=digest):
            values = {"image": cut(image), "image_digest": cut(digest)}
            _update_run(database, record, "set_run_image", run_id, **values, at=at)
        case rec.RecordExit():
            _finish_run(database, record, at, inherited)
        case rec.RecordDelivery():
            _write_delivery(database, record, at)
        case _:
            assert_never(record)


def _write_delivery(database: Database, record: rec.RecordDelivery, at: float) -> None:
    run_id, delivery = record.run_id, record.delivery
    text, pending = delivery_to_json(delivery), int(delivery.is_pending)
    _update_run(database, record, "set_run_delivery", run_id, delivery=text, pending=pending, at=at)
    database.change("settle_deliveries", run_id=run_id, issue_id=record.issue_id)
    if record.diff is not None:
        packed = zlib.compress(record.diff.encode("utf-8", "surrogatepass"))
        database.change("replace_diff", run_id=run_id, diff=b85encode(packed).decode())


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
    except database.CONTRADICTIONS as error:
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
        # One that was taken over has ended now, as its worker says.
        inherited=inherited if record.turns is None else 0,
    )


def _update_run(
    database: Database, record: rec.Record, query: str, run_id: RunId, **values: Value
) -> None:
    if not database.change(query, run_id=run_id, **values):
        raise RecordRefused(
            f"cannot write {type(record).__name__}: no run {run_id} is recorded as under way",
            record,
        )
