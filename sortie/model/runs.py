"""Runs, turns and what became of them."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import NewType

from msgspec import Struct

from sortie.model.errors import ErrorKind
from sortie.model.issues import IssueId
from sortie.model.questions import Question
from sortie.model.spending import NOTHING, Spending
from sortie.model.summaries import NO_SUMMARY, RunSummary

RunId = NewType("RunId", str)
"""A UUID; it also stands as SORTIE_RUN_ID in the environment of the run's processes."""

LOCAL = "local"
"""The name of this machine where a host is shown."""


LEASE = 30.0
"""Seconds after which a remote run that hears no heartbeat of the daemon ends itself."""


class RunStatus(StrEnum):
    """The life of a run, as history shows it."""

    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    TIMED_OUT = "timed_out"
    STALLED = "stalled"
    CANCELLED = "cancelled"
    INTERRUPTED = "interrupted"


class TurnOutcome(StrEnum):
    """How one turn ended."""

    COMPLETED = "completed"
    FAILED = "failed"
    TIMED_OUT = "timed_out"
    STALLED = "stalled"
    CANCELLED = "cancelled"


class StopReason(StrEnum):
    """Why the scheduler stopped a run."""

    TERMINAL = "terminal"
    INACTIVE = "inactive"
    MISSING = "missing"
    OPERATOR = "operator"
    BUDGET = "budget"
    SHUTDOWN = "shutdown"


class HoldReason(StrEnum):
    """Why an issue is parked."""

    AGENT_NOT_FOUND = "agent_not_found"
    INVALID_WORKSPACE_CWD = "invalid_workspace_cwd"
    ADAPTER_SETTINGS = "adapter_settings"
    SESSION_BUDGET_EXHAUSTED = "session_budget_exhausted"
    USAGE_BUDGET_EXHAUSTED = "usage_budget_exhausted"
    HANDOFF_FAILED = "handoff_failed"
    AGENT_BLOCKED = "agent_blocked"
    QUESTION = "question"
    VERIFICATION_FAILED = "verification_failed"
    NO_CHANGE = "no_change"
    REACTION_EXHAUSTED = "reaction_exhausted"
    TOO_MANY_STAGES = "too_many_stages"
    OPERATOR = "operator"
    INTERNAL_ERROR = "internal_error"


class WaitKind(StrEnum):
    """What a waiting issue waits for."""

    RETRY = "retry"
    CONTINUATION = "continuation"
    HANDOFF = "handoff"


class Trigger(StrEnum):
    """Why something is tried again."""

    ERROR = "error"
    CONTINUATION = "continuation"
    HANDOFF = "handoff"
    STALL = "stall"
    TIMEOUT = "timeout"
    INTERRUPTED = "interrupted"
    USAGE_LIMIT = "usage_limit"
    OPERATOR = "operator"
    REACTION = "reaction"
    ANSWER = "answer"


class Streak(Struct, frozen=True, kw_only=True):
    """What happened to an issue in a row, up to its next run.

    ``failures`` is the next run's attempt. ``continuations`` counts successes without a change
    of state, ``interruptions`` runs that were cut short by a crash of the daemon or the loss of
    their host.
    """

    failures: int = 0
    continuations: int = 0
    interruptions: int = 0


class ProcessIdentity(Struct, frozen=True, kw_only=True):
    """A process that cannot be mistaken for another on its host.

    ``started_at`` is in seconds since an epoch that its transport chooses, so that setting
    the clock does not move it; it orders the processes of one boot and tells boots apart.
    """

    pid: int
    started_at: float


class KnownWorkspace(Struct, frozen=True, kw_only=True):
    """A directory that Sortie made for an issue and has not removed yet; ``rule`` decided for the
    run that had it last."""

    issue_id: IssueId
    identifier: str
    host: str
    path: str
    rule: str = ""


class KeptWorkspace(Struct, frozen=True, kw_only=True):
    """A finished issue's directory that is not removed yet; ``reason`` says what would be lost."""

    workspace: KnownWorkspace
    reason: str


class AgentSession(Struct, frozen=True, kw_only=True):
    """A session that an issue's last run had, by the id that its agent gave it.

    Its agent can go on with it on that host and in that directory, ``workspace``, only. ``rule``
    decided for the run, "" is the top level.
    """

    host: str
    agent: str
    workspace: str
    session_id: str
    rule: str = ""


class Finish(StrEnum):
    """How a run came to its own end."""

    TURNS_USED = "turns_used"  # still active, no turn left
    LEFT_ACTIVE = "left_active"  # the issue left its active states
    GONE = "gone"  # the tracker no longer knows the issue
    UNREADABLE = "unreadable"  # the tracker could not say; continue when it answers
    DONE = "done"  # the agent says that nothing is left to do
    REVIEW = "review"  # the agent asked for a person's review
    BLOCKED = "blocked"  # the agent cannot go on without a person
    ASKED = "asked"  # the agent has a question


class Finished(Struct, frozen=True, kw_only=True, tag=True):
    """The run came to its own end; ``reason`` is why the agent asks for a person, "" where it has
    not said so in its status file. ``question`` is what it asks, None elsewhere, and
    ``comments_before`` how many comments the issue had then."""

    finish: Finish
    reason: str = ""
    question: Question | None = None
    comments_before: int = 0


class Failed(Struct, frozen=True, kw_only=True, tag=True):
    """The run failed; ``status`` is FAILED, TIMED_OUT, STALLED or CANCELLED.

    ``unreached``: its host could not be used before an agent had run there. ``adrift``: its
    host was lost, and what ran there goes on until its lease ends. ``disrupted``: its
    pod was evicted or deleted. ``occupied``: processes were in its workspace that could not be
    ended, so the run did not begin. ``shortage``: this machine ran out of something, or its
    workspace root cannot be written to, which is no fault of the run. ``resets_at``: when a usage
    limit ends, if known.
    """

    kind: ErrorKind
    message: str
    status: RunStatus = RunStatus.FAILED
    unreached: bool = False
    adrift: bool = False
    disrupted: bool = False
    occupied: bool = False
    shortage: bool = False
    resets_at: datetime | None = None


class Stopped(Struct, frozen=True, kw_only=True, tag=True):
    """The run was stopped because the scheduler asked for it; ``completed`` tells that its last
    turn had succeeded by then."""

    completed: bool = False


RunEnd = Finished | Failed | Stopped


class RunReport(Struct, frozen=True, kw_only=True):
    """What a worker says when it is gone; ``spent`` is what its run has used, ``summary`` what it
    has left, ``stage_result`` what it left for the next stage."""

    end: RunEnd
    turns: int = 0
    spent: Spending = NOTHING
    seconds: float = 0.0
    summary: RunSummary = NO_SUMMARY
    stage_result: str | None = None
