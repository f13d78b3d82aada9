"""What a start recovers: its rows become records here, and issues become JSON and back."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime

import msgspec

from sortie.model import (
    AgentSession,
    Delivery,
    HoldReason,
    Issue,
    IssueId,
    KnownWorkspace,
    ProcessIdentity,
    RunId,
    Sighting,
    Spending,
    StoreError,
    Streak,
    Trigger,
    WaitKind,
)
from sortie.model.asked_questions import AskedQuestion
from sortie.model.spending import AMOUNTS
from sortie.model.stages import PassedStage
from sortie.model.turns_under_way import TurnUnderWay
from sortie.model.watches import Watch
from sortie.scheduler.records import RecordComment
from sortie.store import (
    StoredCrash,
    StoredHold,
    StoredLimit,
    StoredQuestion,
    StoredRetry,
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


def turn_to_json(turn: TurnUnderWay) -> str:
    """Return a turn under way as JSON in ASCII."""
    return json.dumps(turn, default=_plain)


def turn_from_json(text: str) -> TurnUnderWay:
    """Read a turn under way back; fields of other versions are ignored. Raises ValueError."""
    return msgspec.convert(json.loads(text), TurnUnderWay)


def watch_to_json(watch: Watch) -> str:
    """Return a watch as JSON in ASCII."""
    return json.dumps(msgspec.to_builtins(watch))


def stored_watch(row: Row) -> tuple[Issue, Watch]:
    """Read a row of all_watches. Raises ValueError."""
    watch = msgspec.convert(json.loads(row["watch"]), Watch)
    return issue_from_json(row["issue"]), watch


def stage_to_json(passed: PassedStage) -> str:
    """Return what is known of stages as JSON in ASCII."""
    return json.dumps(msgspec.to_builtins(passed))


def stage_from_json(text: str) -> PassedStage:
    """Read what stage_to_json returned. Raises ValueError."""
    return msgspec.convert(json.loads(text), PassedStage)


def question_to_json(asked: AskedQuestion) -> str:
    """Return a question as JSON in ASCII."""
    return json.dumps(msgspec.to_builtins(asked))


def stored_question(row: Row) -> StoredQuestion:
    """Read a row of all_questions. Raises ValueError."""
    return StoredQuestion(
        asked=msgspec.convert(json.loads(row["asked"]), AskedQuestion),
        asked_at=row["asked_at"],
        delay=row["delay"],
        due_at=row["due_at"],
    )


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


@contextmanager
def rows_of(database: Database) -> Iterator[None]:
    """Raise StoreError where a row holds what this version does not know."""
    try:
        yield
    except ValueError as error:
        raise StoreError(
            f"cannot read the database {database.name}: a row holds what this version does not "
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
        began=row["started_at"],
        heard_of=row["seen_at"],
        turn=None if row.get("turn") is None else turn_from_json(row["turn"]),
        turn_at=row.get("turn_at") or 0.0,
        spent=spending(row),
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
        rule=row["rule"],
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
        rule=row["rule"],
    )


def spending(row: Row) -> Spending:
    """Read the amounts in a row; those of a file of an earlier version may be missing."""
    return Spending(**{name: row.get(name) for name in AMOUNTS})


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
