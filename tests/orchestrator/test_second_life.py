"""A life that ends before it has done anything leaves to the next what it was left."""

from __future__ import annotations

from datetime import UTC, datetime

import trio
from msgspec.structs import replace
from trio.testing import MockClock

from sortie.model import (
    AgentSession,
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
from sortie.model.asked_questions import AskedQuestion
from sortie.model.questions import Question
from sortie.model.stages import PassedStage
from sortie.scheduler import Memory, Record
from sortie.scheduler import records as rec
from sortie.scheduler.claims import HandingOff, Held, Waiting
from sortie.scheduler.usage_limits import UsageLimit
from tests.orchestrator.test_recovery import Heir, begun
from tests.store.records import a_delivery, delivery
from tests.store.watches import a_watch
from tests.worker.rig import issue

TOLD_LATER = {"day", "spent_today", "taken_over"}
"""What is not recovered: the clock on the wall says which day it is."""

RESETS_AT = datetime(2023, 11, 14, 23, tzinfo=UTC)
STREAK = Streak(failures=2, continuations=1, interruptions=1)
WORKSPACE = KnownWorkspace(issue_id=IssueId("over"), identifier="O", host="local", path="/w/O")

ASKED = AskedQuestion(
    run_id=RunId("run-asks"), question=Question(text="Which one?", default="this"), said="hm"
)
LEFT: list[Record] = [
    begun("over"),
    rec.RecordWorkspace(run_id=RunId("run-over"), workspace=WORKSPACE),
    rec.RecordUnsaved(host="local", path="/w/O"),
    rec.RecordTurn(run_id=RunId("run-over"), issue_id=IssueId("over"), turn=2, sessions=3),
    rec.RecordSession(run_id=RunId("run-over"), session_id="s-1"),
    rec.RecordImage(run_id=RunId("run-over"), image="tools:7", digest="sha256:0"),
    delivery("run-over", issue("over"), a_delivery()),
    rec.RecordSpending(run_id=RunId("run-over"), spent=Spending(output_tokens=7, credits=0.5)),
    rec.RecordExit(run_id=RunId("run-over"), status=RunStatus.SUCCEEDED, turns=2),
    rec.RecordComment(
        run_id=RunId("run-over"), issue=issue("over"), lifecycle="completion", body="done"
    ),
    rec.RecordRetry(
        issue=issue("waits"),
        kind=WaitKind.RETRY,
        trigger=Trigger.ERROR,
        streak=STREAK,
        delay=40.0,
    ),
    rec.RecordRetry(
        issue=issue("moves"),
        kind=WaitKind.HANDOFF,
        trigger=Trigger.HANDOFF,
        streak=STREAK,
        delay=80.0,
        tries=3,
    ),
    rec.RecordHold(
        issue=issue("held"),
        reason=HoldReason.HANDOFF_FAILED,
        detail="no",
        baseline_final=False,
        handoff_state="Review",
    ),
    rec.RecordHold(
        issue=issue("kept"), reason=HoldReason.OPERATOR, detail="stop", baseline_final=True
    ),
    rec.RecordHold(
        issue=issue("kept"), reason=HoldReason.OPERATOR, detail="", baseline_final=False, again=True
    ),
    rec.RecordHold(issue=issue("asks"), reason=HoldReason.QUESTION, detail="Which one?"),
    rec.RecordQuestion(issue_id=IssueId("asks"), asked=ASKED, delay=60.0),
    rec.RecordQuestion(issue_id=IssueId("over"), asked=ASKED),
    rec.ForgetQuestion(issue_id=IssueId("over")),
    rec.RecordWatch(issue=issue("seen"), watch=a_watch()),
    rec.RecordWatch(issue=issue("unseen"), watch=a_watch()),
    rec.ForgetWatch(issue_id=IssueId("unseen")),
    rec.RecordRule(issue_id=IssueId("waits"), rule="docs"),
    rec.RecordRule(issue_id=IssueId("over"), rule="docs"),
    rec.ForgetRule(issue_id=IssueId("over")),
    rec.RecordStage(issue_id=IssueId("waits"), passed=PassedStage(rule="plan", state="To Build")),
    rec.RecordStage(issue_id=IssueId("over"), passed=PassedStage(rule="plan")),
    rec.ForgetStages(issue_id=IssueId("over")),
    rec.RecordCrash(issue=issue("crashed")),
    rec.RecordLimit(account="kiro x", message="enough", delay=600.0, resets_at=RESETS_AT, times=3),
    rec.RecordPause(paused=True),
    begun("cut", failures=1),
    rec.RecordProcess(
        run_id=RunId("run-cut"), process=ProcessIdentity(pid=1 << 22, started_at=1.0)
    ),
]


async def test_all_that_is_recorded_is_remembered(clock: MockClock) -> None:
    """Each with all that is known of it; nothing of a memory is left as a new daemon has it."""
    memory = await Heir().inherit(LEFT)

    default, now = Memory(), trio.current_time()
    assert {
        name for name in Memory.__struct_fields__ if getattr(memory, name) == getattr(default, name)
    } == TOLD_LATER
    claims = {claim.issue.id: claim for claim in memory.claims}
    assert claims[IssueId("waits")] == Waiting(
        issue=issue("waits"),
        kind=WaitKind.RETRY,
        trigger=Trigger.ERROR,
        streak=STREAK,
        due_at=now + 40.0,
    )
    assert claims[IssueId("moves")] == HandingOff(
        issue=issue("moves"), streak=STREAK, tries=3, token=None, due_at=now + 80.0
    )
    assert claims[IssueId("held")] == Held(
        issue=issue("held"),
        reason=HoldReason.HANDOFF_FAILED,
        detail="no",
        since=now,
        baseline_final=False,
        handoff_state="Review",
    )
    assert claims[IssueId("kept")] == Held(
        issue=issue("kept"),
        reason=HoldReason.OPERATOR,
        detail="stop",
        since=now,
        baseline_final=False,
    )
    assert claims[IssueId("asks")] == Held(
        issue=issue("asks"),
        reason=HoldReason.QUESTION,
        detail="Which one?",
        since=now,
        due_at=now + 60.0,
    )
    assert memory.questions == {IssueId("asks"): ASKED}
    assert memory.watches == ((issue("seen"), a_watch()),)
    assert memory.limits == (
        UsageLimit(
            account="kiro x",
            message="enough",
            since=now,
            until=now + 600.0,
            resets_at=RESETS_AT,
            times=3,
        ),
    )
    assert memory.sessions == {IssueId("over"): 3}
    assert memory.spent == {IssueId("over"): Spending(output_tokens=7, credits=0.5)}
    assert memory.agent_sessions == {
        IssueId("over"): AgentSession(
            host="local", agent="fake", workspace="/w/O", session_id="s-1"
        )
    }
    assert memory.deliveries == {IssueId("over"): a_delivery()}
    assert memory.crashed == {IssueId("crashed")}


async def test_each_further_life_remembers_the_same(clock: MockClock) -> None:
    """What a start itself records changes nothing more at the next one, however often."""
    heir = Heir()
    first = in_order(await heir.inherit(LEFT))

    assert [in_order(await heir.recover()) for _ in range(3)] == [first] * 3


def in_order(memory: Memory) -> Memory:
    """Return a memory with its claims by issue."""
    return replace(memory, claims=tuple(sorted(memory.claims, key=lambda claim: claim.issue.id)))
