"""Issues and records to write into stores."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

from sortie.model import (
    Activity,
    Blocker,
    ChangedFile,
    CommandResult,
    Comment,
    Delivery,
    Finish,
    Issue,
    IssueId,
    KnownWorkspace,
    PullRequest,
    RunId,
    RunStatus,
    Spending,
    Stage,
    Streak,
    Trigger,
    VerificationResult,
    WaitKind,
)
from sortie.scheduler.outcome_records import RecordDelivery
from sortie.scheduler.records import (
    RecordActivity,
    RecordExit,
    RecordImage,
    RecordRetry,
    RecordRun,
    RecordSession,
    RecordSpending,
    RecordTurn,
    RecordWorkspace,
)


def a_delivery(stage: Stage = Stage.PROVEN, **changes: object) -> Delivery:
    """What became of some work."""
    values: dict[str, object] = {
        "branch": "sortie/A",
        "base": "main",
        "host": "local",
        "stage": stage,
        "finish": Finish.DONE,
        "began_at": "a" * 40,
        "head": "b" * 40,
        "tree": "c" * 40,
        "files_changed": 1,
        "added": 2,
        "removed": 1,
        "files": (ChangedFile(path="a.py", added=2, removed=1), ChangedFile(path="b.png")),
        "evidence": VerificationResult(
            commit="b" * 40,
            where="clean",
            commands=(CommandResult(command="make", ok=True, status="exit 0", seconds=0.5),),
        ),
        "pull_request": PullRequest(
            id="PR_7",
            number=7,
            url="https://forge.example/team/thing/pulls/7",
            state="open",
            branch="sortie/A",
            base="main",
            title="A: do it",
        ),
    }
    return Delivery(**(values | changes))  # type: ignore[arg-type]


def delivery(run: str, issue: Issue, work: Delivery, diff: str | None = None) -> RecordDelivery:
    """Record how far the work of a run has come."""
    return RecordDelivery(run_id=RunId(run), issue_id=issue.id, delivery=work, diff=diff)


T0 = 1_700_000_000.25
"""A time of the wall clock, in Unix seconds."""


def an_issue(name: str, **changes: object) -> Issue:
    """An issue with little in it."""
    values: dict[str, object] = {
        "id": IssueId(f"id-{name}"),
        "identifier": name,
        "title": f"Title of {name}",
        "state": "Todo",
    }
    return Issue(**(values | changes))  # type: ignore[arg-type]


A, B, C = an_issue("A-1"), an_issue("B-2"), an_issue("C-3")

FULL_ISSUE = an_issue(
    "F-1",
    title="{{ 7*7 }} ../x \x00\x1b[31m ünï 🧵 \ud800 '; DROP TABLE runs; --",
    description="x" * 1_000_000,
    priority=10**30,
    url="https://tracker.example/F-1",
    labels=("one", "Two"),
    assignee="someone",
    issue_type="Bug",
    branch_name="f-1",
    parent="E-1",
    comments=(
        Comment(author="a", body="b"),
        Comment(author="c", body="", created_at=datetime(2024, 2, 29, 1, 2, 3, 4, UTC)),
    ),
    blocked_by=(
        Blocker(identifier="A-1"),
        Blocker(identifier="B-2", id=IssueId("id-B-2"), state="Done"),
    ),
    created_at=datetime(2024, 1, 1, tzinfo=timezone(timedelta(hours=5, minutes=30))),
    updated_at=datetime(2024, 1, 1),
)


def begin(run_id: str, issue: Issue = A, **changes: object) -> RecordRun:
    """The record of a run that begins."""
    values: dict[str, object] = {
        "run_id": RunId(run_id),
        "issue": issue,
        "streak": Streak(),
        "host": "local",
        "agent": "kiro",
    }
    return RecordRun(**(values | changes))  # type: ignore[arg-type]


def end(run_id: str, status: RunStatus = RunStatus.SUCCEEDED, **changes: object) -> RecordExit:
    """The record of a run that is over."""
    return RecordExit(run_id=RunId(run_id), status=status, **changes)  # type: ignore[arg-type]


def spending(run_id: str, spent: Spending) -> RecordSpending:
    """The record of what a run has used."""
    return RecordSpending(run_id=RunId(run_id), spent=spent)


def activity(run_id: str, known: Activity) -> RecordActivity:
    """The record of what a run's agent has done."""
    return RecordActivity(run_id=RunId(run_id), activity=known)


def turn(run_id: str, number: int, issue: Issue = A, sessions: int = 1) -> RecordTurn:
    """The record of a turn that begins."""
    return RecordTurn(run_id=RunId(run_id), issue_id=issue.id, turn=number, sessions=sessions)


def session(run_id: str, session_id: str) -> RecordSession:
    """The record of a run's session."""
    return RecordSession(run_id=RunId(run_id), session_id=session_id)


def image(run_id: str, name: str, digest: str) -> RecordImage:
    """The record of the image of a run's container."""
    return RecordImage(run_id=RunId(run_id), image=name, digest=digest)


def workspace(
    run_id: str, issue: Issue = A, host: str = "local", path: str | None = None
) -> RecordWorkspace:
    """The record of a run's workspace, by default the directory of the issue's identifier."""
    return RecordWorkspace(
        run_id=RunId(run_id),
        workspace=KnownWorkspace(
            issue_id=issue.id,
            identifier=issue.identifier,
            host=host,
            path=f"/w/{issue.identifier}" if path is None else path,
        ),
    )


def retry(issue: Issue = A, **changes: object) -> RecordRetry:
    """The record of a wait."""
    values: dict[str, object] = {
        "issue": issue,
        "kind": WaitKind.RETRY,
        "trigger": Trigger.ERROR,
        "streak": Streak(failures=1),
        "delay": 10.0,
    }
    return RecordRetry(**(values | changes))  # type: ignore[arg-type]


def moment(seconds: float) -> datetime:
    """Unix seconds as an aware time."""
    return datetime.fromtimestamp(seconds, UTC)
