"""A database of the first schema, as its version wrote it into ``schema_1.sql``, and what it says.

The text is evidence: it is never made anew.
"""

from __future__ import annotations

import sqlite3
from pathlib import Path

from msgspec.structs import replace

from sortie.model import (
    ErrorKind,
    HoldReason,
    IssueId,
    KnownWorkspace,
    ProcessIdentity,
    RunId,
    RunStatus,
    Spending,
    Streak,
    Trigger,
    WaitKind,
)
from sortie.store import (
    HistoryRow,
    Recovered,
    StoredHold,
    StoredRetry,
    Totals,
    UnfinishedRun,
)
from tests.store.records import FULL_ISSUE, T0, A, B, C, an_issue, moment

DUMP = Path(__file__).with_name("schema_1.sql")

AGAIN = an_issue("A-1", id=IssueId("0-A-1"), title="Made anew")
"""An issue that was given the identifier of another, and with it the other's directory."""

ODD = an_issue(
    "O-\ud800",
    id=IssueId("id-O-\ud800"),
    title="ünï 🧵 \ud800 '; DROP TABLE runs; --\nline",
)
UNDER_WAY = an_issue(
    "R-1",
    description="{{ 7*7 }} ../x \x00\x1b[31m",
    priority=2,
    url="https://tracker.example/R-1",
    labels=("one", "Two"),
    assignee="someone",
    comments=FULL_ISSUE.comments,
    blocked_by=FULL_ISSUE.blocked_by,
    created_at=FULL_ISSUE.created_at,
    updated_at=FULL_ISSUE.updated_at,
)
WAITING = an_issue("W-1", priority=1)


def first_schema(place: Path) -> None:
    """Make the database."""
    connection = sqlite3.connect(place)
    connection.executescript(DUMP.read_text(encoding="utf-8"))
    connection.execute("PRAGMA journal_mode = WAL")
    connection.close()


def _row(number: int, **values: object) -> HistoryRow:
    started_at = T0 + 20 * (number - 1)
    usual: dict[str, object] = {
        "run_id": RunId(f"r{number}"),
        "attempt": 0,
        "error_kind": None,
        "error": None,
        "turns": 1,
        "host": "local",
        "agent": "kiro",
        "started_at": moment(started_at),
        "finished_at": moment(started_at + 10),
    }
    return HistoryRow(**(usual | values))  # type: ignore[arg-type]


_OF_A = {"issue": "A-1", "issue_id": A.id}
_OF_B = {"issue": "B-2", "issue_id": B.id, "workspace": "/w/B-2"}
_OF_C = {"issue": "C-3", "issue_id": C.id}

HISTORY = (
    _row(
        9,
        issue="R-1",
        issue_id=UNDER_WAY.id,
        attempt=2,
        status=RunStatus.RUNNING,
        turns=3,
        host="me@box:22",
        workspace="/srv/R-1",
        finished_at=None,
    ),
    _row(8, issue="A-1", issue_id=AGAIN.id, status=RunStatus.SUCCEEDED, workspace="/w/A-1"),
    _row(7, issue="O-\ud800", issue_id=ODD.id, status=RunStatus.SUCCEEDED, workspace="/w/O-\udcff"),
    _row(6, **_OF_C, status=RunStatus.INTERRUPTED, workspace="/w/C-3"),
    _row(
        5,
        **_OF_C,
        status=RunStatus.CANCELLED,
        error_kind=ErrorKind.TURN_CANCELLED,
        turns=0,
        workspace=None,
    ),
    _row(4, **_OF_B, attempt=2, status=RunStatus.STALLED, error_kind=ErrorKind.TURN_STALLED),
    _row(
        3,
        **_OF_B,
        status=RunStatus.TIMED_OUT,
        error_kind=ErrorKind.TURN_TIMEOUT,
        error="too long",
        spent=Spending(credits=1.5),
    ),
    _row(
        2,
        **_OF_A,
        attempt=1,
        status=RunStatus.FAILED,
        error_kind=ErrorKind.PORT_EXIT,
        error="exit 3: \ud800",
        tokens=1234,
        host="me@box:22",
        workspace="/srv/A-1",
    ),
    _row(
        1,
        **_OF_A,
        status=RunStatus.SUCCEEDED,
        turns=2,
        spent=Spending(credits=0.1 + 0.2),
        workspace="/w/A-1",
    ),
)

TOTALS = Totals(runs=9, turns=11, credits=1.8, tokens=1234, seconds_running=80.0)

RECOVERED = Recovered(
    unfinished=(
        UnfinishedRun(
            run_id=RunId("r9"),
            issue=UNDER_WAY,
            streak=Streak(failures=2, continuations=1, interruptions=1),
            host="me@box:22",
            process=ProcessIdentity(pid=4711, started_at=1_699_999_999.123456),
            workspace="/srv/R-1",
            turns=3,
            began=T0 + 160,
            heard_of=T0 + 170,
        ),
    ),
    retries=(
        StoredRetry(
            issue=B,
            kind=WaitKind.CONTINUATION,
            trigger=Trigger.CONTINUATION,
            streak=Streak(continuations=2),
            delay=1.0,
            due_at=T0 + 181,
            tries=0,
        ),
        StoredRetry(
            issue=ODD,
            kind=WaitKind.HANDOFF,
            trigger=Trigger.HANDOFF,
            streak=Streak(),
            delay=20.0,
            due_at=T0 + 200,
            tries=3,
        ),
        StoredRetry(
            issue=WAITING,
            kind=WaitKind.RETRY,
            trigger=Trigger.ERROR,
            streak=Streak(failures=3),
            delay=40.5,
            due_at=T0 + 220.5,
            tries=0,
        ),
    ),
    holds=(
        StoredHold(issue=C, reason=HoldReason.OPERATOR, detail="someone asked", since=T0 + 181),
        StoredHold(issue=A, reason=HoldReason.AGENT_BLOCKED, detail="\ud800", since=T0 + 182),
    ),
    paused=True,
    sessions={A.id: 2, B.id: 4, C.id: 6, ODD.id: 7, AGAIN.id: 8, UNDER_WAY.id: 9},
    workspaces=(
        KnownWorkspace(issue_id=AGAIN.id, identifier="A-1", host="local", path="/w/A-1"),
        KnownWorkspace(issue_id=A.id, identifier="A-1", host="local", path="/w/A-1"),
        KnownWorkspace(issue_id=A.id, identifier="A-1", host="me@box:22", path="/srv/A-1"),
        KnownWorkspace(issue_id=B.id, identifier="B-2", host="local", path="/w/B-2"),
        KnownWorkspace(issue_id=C.id, identifier="C-3", host="local", path="/w/C-3"),
        KnownWorkspace(issue_id=UNDER_WAY.id, identifier="R-1", host="me@box:22", path="/srv/R-1"),
        KnownWorkspace(issue_id=ODD.id, identifier="O-\ud800", host="local", path="/w/O-\udcff"),
    ),
)
"""What the first version recovered; there a directory could be two issues'."""

MIGRATED = replace(
    RECOVERED,
    spent={A.id: Spending(credits=0.1 + 0.2), B.id: Spending(credits=1.5)},
    days={"2023-11-14": Spending(credits=0.1 + 0.2 + 1.5)},
    workspaces=tuple(
        known
        for known in RECOVERED.workspaces
        if (known.issue_id, known.path) != (A.id, "/w/A-1")  # AGAIN had it last
    ),
)
