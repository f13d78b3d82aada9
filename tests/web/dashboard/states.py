"""Daemons as the dashboard may find them: busy, in trouble, or full of bad texts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from sortie.model import NOTHING, Spending
from sortie.model.times import rfc3339
from sortie.telemetry.transcripts import Kind, TranscriptLine
from sortie.web.dashboard.activity import (
    BUCKET,
    BUCKETS,
    ActivityView,
    Bucket,
    PollView,
    past_run,
)
from sortie.web.deliveries import (
    ChangedFileView,
    CommandView,
    DeliveryView,
    EvidenceView,
    FindingView,
    PullRequestView,
    ReviewView,
)
from sortie.web.issue import (
    BudgetView,
    CandidateView,
    ExplanationView,
    FailureView,
    HeldView,
    RunningView,
    WaitingView,
)
from sortie.web.runs import RunView
from sortie.web.state import (
    Counts,
    HostView,
    SlotsView,
    StateView,
    TodayView,
    TotalsView,
    TrackerView,
    UnnamedStateView,
    WorkflowView,
)
from sortie.web.watches import GateAnswer
from sortie.web.webhooks.views import ArrivalView, RejectionsView, WebhookView

NOW = datetime.now(UTC).replace(microsecond=0)

TITLES = (
    "Say which file could not be opened",
    "Add a setting for the time zone of reports",
    "Stop logging customers' addresses",
    "Answer the five most frequent questions",
    "Retry the upload when the connection is reset in the middle of a chunk",
    "Describe the time zone of reports in the manual",
)
LINES = (
    "Running tests: 214 passed, 3 failed in tests/upload",
    "I'll read src/reports/zone.py to see where the offset is lost",
    "▸ editing src/log/format.py",
    "All 318 tests pass now; writing the summary",
    "git diff --stat: 4 files changed, 61 insertions(+), 12 deletions(-)",
    "The flaky test waits for a port that is never released. Looking for who holds it",
)
HOSTS = ("local", "build-1", "build-2")
FAILED = FailureView(
    kind="turn_failed", message="the agent ended with exit code 1: tests fail", at=NOW, run_id="r0"
)


def begin_now() -> None:
    """Have what is made up from here on stand as it does now, and not when this was loaded."""
    global NOW
    NOW = datetime.now(UTC).replace(microsecond=0)


def ago(seconds: float) -> datetime:
    """Return a time before NOW."""
    return NOW - timedelta(seconds=seconds)


def running(number: int) -> RunningView:
    """Return a run under way."""
    return RunningView(
        issue_id=f"id-{number}",
        issue_identifier=f"SHOP-{number}",
        issue_url=f"https://tracker.example/browse/SHOP-{number}",
        title=TITLES[number % len(TITLES)],
        state="In Progress",
        run_id=f"run-{number}",
        session_id=None,
        attempt=number % 4 // 3,
        turn=1 + number % 5 if number % 7 else None,
        max_turns=8,
        phase="turn" if number % 7 else "workspace",
        host=HOSTS[number % len(HOSTS)],
        workspace=f"/srv/sortie/workspaces/SHOP-{number}",
        started_at=ago(2400 - (number * 37) % 2300),
        last_event_at=ago(number * 7 % 90),
        last_message=LINES[number % len(LINES)] if number % 7 else None,
        credits=round(0.13 * (number % 9), 2),
        tokens=None,
        note="I begin with the uploads" if number % 5 == 1 else None,
        tool="shell" if number % 5 == 1 else None,
        last_failure=FAILED if number % 4 == 3 else None,
    )


def waiting(number: int) -> WaitingView:
    """Return an issue that waits."""
    kind = ("retry", "continuation", "handoff")[number % 3]
    return WaitingView(
        issue_id=f"id-w{number}",
        issue_identifier=f"SHOP-{1000 + number}",
        title=TITLES[number % len(TITLES)],
        kind=kind,  # type: ignore[arg-type]
        attempt=number % 3,
        due_at=ago(-20 - number * 11),
        reason="after error" if kind == "retry" else "the handoff is under way",
        last_failure=FAILED if kind == "retry" else None,
    )


def kept(number: int, reason: str) -> CandidateView:
    """Return an issue that nothing is done about."""
    return CandidateView(
        issue_id=f"id-k{number}",
        issue_identifier=f"SHOP-{5000 + number}",
        title=TITLES[number % len(TITLES)],
        state="To Do",
        reason=reason,
    )


HELD = (
    HeldView(
        issue_id="id-h1",
        issue_identifier="SHOP-77",
        title=TITLES[0],
        reason="agent_blocked",
        detail="the agent says that it needs a person: which of the two price lists is right?",
        since=ago(5400),
        last_failure=None,
        rule="prices",
    ),
    HeldView(
        issue_id="id-h2",
        issue_identifier="SHOP-81",
        title=TITLES[4],
        reason="handoff_failed",
        detail="it could not be moved to Human Review: the transition is not allowed",
        since=ago(700),
        last_failure=FAILED,
    ),
)

HOOKED = WebhookView(
    kind="github",
    received=3,
    last_at=NOW,
    rejected=(RejectionsView(reason="signature", count=2, last_at=NOW),),
    arrivals=(
        ArrivalView(
            subject="pull_requests",
            counted_on=False,
            last_at=NOW,
            missed=1,
            missed_at=NOW,
            distrusted_until=NOW,
        ),
    ),
)
RESTING = HostView(
    host="build-2",
    up=False,
    used=2,
    slots=8,
    since=ago(130),
    rests_until=ago(-50),
    reason="it closed the connection: no route to host",
)


def state(runs: int = 7, waits: int = 12) -> StateView:
    """Return a daemon at work with so many runs and waits."""
    return StateView(
        generated_at=NOW,
        status="running",
        workflow=WorkflowView(path="/srv/sortie/WORKFLOW.md", valid=True),
        counts=Counts(running=runs, waiting=waits, held=len(HELD), queued=38, blocked=6),
        running=tuple(map(running, range(1, runs + 1))),
        waiting=tuple(map(waiting, range(waits))),
        held=HELD,
        slots=SlotsView(
            total=max(16, runs), free=max(0, 16 - runs), by_state={"review": 1}, by_host={}
        ),
        totals=TotalsView(runs=4312, turns=9120, credits=811.5, tokens=None, seconds_running=1e6),
        queued=tuple(kept(number, "no available orchestrator slots") for number in range(4)),
        blocked=(kept(9, "it is blocked by SHOP-12, which is in In Progress"),),
        hosts=(
            HostView(
                host="build-1", up=True, used=3, slots=8, since=None, rests_until=None, reason=None
            ),
            RESTING,
        ),
        tracker=TrackerView(
            unnamed_states=(
                UnnamedStateView(state="Todo", issues=3, first="SHOP-99", near="To Do"),
            ),
            budgets=(BudgetView(name="requests", remaining=4211, limit=5000, resets_at=NOW),),
            webhooks=(HOOKED,),
        ),
        today=TodayView(
            day="2026-11-22",
            timezone="UTC",
            tokens=None,
            credits=41.27,
            cost_usd=None,
            estimated_usd=None,
            daily_credits=60.0,
            daily_cost_usd=None,
            exhausted=None,
        ),
    )


def troubled(calm: StateView) -> StateView:
    """Return the same daemon paused, with a broken workflow and a tracker that wants peace."""
    errors = ("line 12, column 3: agent.max_turns: needs a number, not 'many'",)
    return replace(
        calm,
        status="paused",
        workflow=replace(calm.workflow, valid=False, errors=errors),
        tracker=replace(
            calm.tracker, rests_until=ago(-240), rests_because="it answered 429 Too Many Requests"
        ),
    )


def bucket(number: int) -> Bucket:
    """Return a quarter of an hour of a day with a quiet morning."""
    busy = max(0, (number * 13) % 17 - 4) if number > 9 else 0
    return Bucket(
        begins_at=int(NOW.timestamp()) // BUCKET * BUCKET - (BUCKETS - 1 - number) * BUCKET,
        succeeded=busy,
        failed=busy % 4 if number % 5 == 0 else number % 3 // 2 * (busy > 0),
        stopped=int(number % 11 == 0 and busy > 0),
        turns=busy * 2,
        turn_seconds=busy * 2 * (95.0 + (number * 29) % 160),
        spent=Spending(credits=round(busy * 0.31, 2)) if busy else NOTHING,
    )


STATUSES = ("succeeded", "succeeded", "failed", "succeeded", "timed_out", "cancelled")


def past_id(number: int) -> str:
    """Return the id of a run that is over."""
    return f"00000000-0000-0000-0000-{number:012}"


def ended(number: int, issue: str | None = None) -> RunView:
    """Return a run that is over."""
    status = STATUSES[number % len(STATUSES)]
    failed = status in ("failed", "timed_out")
    return RunView(
        run_id=past_id(number),
        issue=issue or f"SHOP-{200 + number}",
        issue_id=f"id-e{number}",
        attempt=0,
        status=status,
        error_kind="turn_failed" if failed else None,
        error="the agent ended with exit code 1" if failed else None,
        turns=1 + number % 4,
        credits=round(0.2 + number % 7 * 0.11, 2),
        tokens=None,
        input_tokens=None,
        output_tokens=None,
        cached_tokens=None,
        cost_usd=None,
        estimated_usd=None,
        model=None,
        files_modified=None,
        files_omitted=False,
        tool_uses=None,
        host=HOSTS[number % 3],
        workspace=None,
        agent="kiro",
        started_at=rfc3339(ago(900 + number * 400)),
        finished_at=rfc3339(ago(40 + number * 390)),
        rule="prices" if number % 5 == 2 else None,
        title=TITLES[number % len(TITLES)],
    )


def said(number: int, text: str) -> TranscriptLine:
    """Return a line of a transcript."""
    return TranscriptLine(number=number, at=ago(300 - number), turn=1, kind=Kind.OUTPUT, text=text)


def activity(runs: int = 12, poll: PollView | None = None) -> ActivityView:
    """Return the last hours of that daemon."""
    told = PollView(at=ago(9), result="success", error=None) if poll is None else poll
    return ActivityView(
        runs=tuple(past_run(ended(number)) for number in range(runs)),
        buckets=tuple(map(bucket, range(BUCKETS))),
        poll=told,
    )


GATES = (
    GateAnswer(gate="active state", open=True, reason=None),
    GateAnswer(gate="blockers", open=True, reason=None),
    GateAnswer(gate="claim", open=False, reason="it is held (agent_blocked)"),
    GateAnswer(gate="slots", open=False, reason="no available orchestrator slots"),
)


def explanation(name: str, title: str = TITLES[2]) -> ExplanationView:
    """Return how a held issue stands."""
    return ExplanationView(
        issue_id="id-h1",
        issue_identifier=name,
        title=title,
        state="In Progress",
        standing="held",
        detail="the agent says that it needs a person: which of the two price lists is right?",
        since=ago(5400),
        run_id=None,
        turn=None,
        attempt=1,
        gates=GATES,
        next_run_at=None,
        next_step="the issue changes, or somebody asks for a retry",
        ways_out=("answer in the issue", f"sortie retry {name}"),
        last_failure=FAILED,
        issue_url=f"https://tracker.example/browse/{name}",
        labels=("bug", "good first issue"),
        description="The log of <code>\nholds addresses.",
        rule="prices",
        passed_over=("urgent: it has no label urgent",),
    )


def history(issue: str | None, limit: int) -> Sequence[RunView]:
    """Return the newest runs, of one issue or of many."""
    known = 260 if issue is None else 5
    return tuple(ended(number, issue) for number in range(min(limit, known)))


DIFF = """\
 src/retry.py | 4 +++-
 1 file changed, 3 insertions(+), 1 deletion(-)

diff --git a/src/retry.py b/src/retry.py
--- a/src/retry.py
+++ b/src/retry.py
@@ -1,4 +1,5 @@
 def pause(tries):
-    return 10
+    # <script>alert(1)</script>
+    return 10 * 2**tries
+@@ no place
---- no header
"""
"""What the work of a made-up run changes."""


def delivered(stage: str = "delivered") -> DeliveryView:
    """Return what became of the work of a made-up run."""
    return DeliveryView(
        stage=stage,
        branch="sortie/DEMO-1",
        base="main",
        head="0123456789abcdef0123456789abcdef01234567",
        base_commit="f" * 40,
        commits=2,
        behind=1,
        files_changed=2,
        added=12,
        removed=3,
        files=(
            ChangedFileView(path="src/retry.py", added=12, removed=3),
            ChangedFileView(path="logo.png", added=None, removed=None),
        ),
        evidence=EvidenceView(
            commit="0123456789abcdef0123456789abcdef01234567",
            where="clean",
            ok=True,
            commands=(
                CommandView(command="make test", ok=True, status="exit 0", seconds=12.3, tail=""),
            ),
        ),
        review=ReviewView(
            commit="0123456789abcdef0123456789abcdef01234567",
            verdict="request_changes",
            agent="claude-code",
            model="<i>model</i>",
            rounds=2,
            findings=(
                FindingView(
                    severity="must",
                    path="src/<b>retry</b>.py",
                    line=3,
                    text="<script>alert(2)</script> is left over",
                ),
            ),
            omitted=1,
            reason="",
        ),
        pull_request=PullRequestView(
            number=7,
            url="https://forge.example/team/thing/pulls/7",
            state="open",
            title="DEMO-1: Wait longer with each try",
            draft=False,
        ),
    )
