"""One fact of every kind, and an issue for them to be about."""

from __future__ import annotations

from datetime import UTC, datetime

from sortie.model import (
    Activity,
    ErrorKind,
    HoldReason,
    Issue,
    IssueId,
    ProcessIdentity,
    RunId,
    RunStatus,
    Spending,
    Stage,
    StopReason,
    Trigger,
    TurnOutcome,
    WaitKind,
)
from sortie.model.questions import AnswerWay
from sortie.model.reviews import ReviewVerdict
from sortie.telemetry import facts as f

RUN = RunId("11111111-2222-3333-4444-555555555555")
PULL_REQUEST = "https://forge.example/team/thing/pulls/7"
ISSUE = Issue(id=IssueId("1"), identifier="DEMO-1", title="Mend the fence", state="To Do")

RUN_STARTED = f.RunStarted(
    run_id=RUN, issue=ISSUE, attempt=0, host="local", agent="kiro", max_turns=3
)
RUN_TAKEN_OVER = f.RunTakenOver(
    run_id=RUN,
    issue=ISSUE,
    attempt=0,
    host="build-1",
    agent="kiro",
    max_turns=3,
    daemon="alpha:17",
    turn=2,
    seconds=60.0,
)
AGENT_USED = f.AgentUsed(
    run_id=RUN,
    input_tokens=10,
    output_tokens=5,
    cached_tokens=None,
    credits=0.25,
    cost=0.01,
    currency="USD",
    model="m-1",
    context_share=0.5,
    spent=Spending(input_tokens=10, output_tokens=5, credits=0.25, cost_usd=0.01),
)
AGENT_FILES = f.AgentFilesRestored(run_id=RUN, count=1, paths=("CLAUDE.md",))
TURN_FAILED = f.TurnCompleted(
    run_id=RUN,
    agent="kiro",
    turn=1,
    outcome=TurnOutcome.FAILED,
    seconds=2.34567,
    error_kind=ErrorKind.TURN_FAILED,
    error="exit status 1",
    warnings=("no such tool", "giving up"),
)
RUN_FINISHED = f.RunFinished(
    run_id=RUN,
    issue=ISSUE,
    status=RunStatus.SUCCEEDED,
    turns=1,
    seconds=5.5,
    spent=Spending(credits=0.25),
)

FACTS: tuple[f.Fact, ...] = (
    f.DaemonStarted(
        version="1.2.3",
        python_version="3.11.7",
        workflow="WORKFLOW.md",
        agent="kiro",
        tracker="file",
    ),
    f.DaemonStopping(running=2),
    f.DaemonStopped(reason="asked to"),
    f.PollCompleted(result="success", seconds=0.5, candidates=3),
    f.TrackerAsked(operation="fetch_by_ids", result="success", seconds=0.25),
    f.IssueReconciled(action="stop", issue=ISSUE, reason="inactive"),
    f.DispatchDropped(issue=ISSUE, outcome="dropped", reason="no longer active"),
    RUN_STARTED,
    f.RunPhaseChanged(run_id=RUN, phase=f.Phase.WORKSPACE),
    f.IssueRead(run_id=RUN, issue=ISSUE),
    f.WorkspaceReady(run_id=RUN, path="/w/DEMO-1", created=True),
    f.DevcontainerRestricted(
        run_id=RUN, file=".devcontainer.json", ignored=("mounts", "remoteEnv.TOKEN")
    ),
    f.ContainerStarted(
        run_id=RUN, container="sortie-1-2", image="example.com/tools:3", digest="ab" * 32
    ),
    f.SessionStarted(run_id=RUN, session_id="s-1"),
    f.AgentWroteErrors(run_id=RUN, message="no MCP", text="no MCP"),
    f.TranscriptsFailed(path="/p/.sortie.db.transcripts", error="No space left on device"),
    f.TranscriptsRecovered(),
    f.EventLogGap(events=40),
    f.EventLogFailed(path="/p/.sortie.db.events", error="No space left on device"),
    f.EventLogRecovered(),
    f.EventLogForgotten(count=2, bytes=1000),
    f.TranscriptsForgotten(count=2, bytes=1000),
    f.SessionRefused(
        run_id=RUN, error_kind=ErrorKind.RESPONSE_ERROR, error="no answer", timed_out=True
    ),
    f.TurnBegan(run_id=RUN, turn=1, max_turns=3),
    f.AgentLaunched(
        run_id=RUN,
        turn=1,
        process=ProcessIdentity(pid=7, started_at=1.0),
        seconds_since_fetch=0.75,
    ),
    f.AgentAnswered(run_id=RUN, agent="kiro", seconds=0.5),
    f.AgentSpoke(run_id=RUN, agent="kiro", lines=4, message="reading"),
    f.SessionNamed(run_id=RUN, session_id="s-2"),
    f.SessionWaiting(run_id=RUN, seconds=42.5, reason="the agent cannot load it yet"),
    f.ToolCallStarted(run_id=RUN, tool="shell", kind="execute", locations=("a.py",)),
    f.ToolCallEnded(
        run_id=RUN, tool="shell", kind="execute", locations=("a.py",), seconds=0.5, failed=False
    ),
    f.ModelAnswerTimed(run_id=RUN, agent="kiro", model="large", seconds=3.5),
    AGENT_USED,
    f.ToolsTraced(run_id=RUN, model="large", answer="done"),
    f.ToolsUntraced(run_id=RUN, reason="locked"),
    f.ActivityChanged(run_id=RUN, activity=Activity(files_modified=("a.py",), tool_uses={"x": 2})),
    f.PermissionAnswered(run_id=RUN, question="run ls?", answer="yes"),
    AGENT_FILES,
    TURN_FAILED,
    f.RunStopping(run_id=RUN, issue=ISSUE, reason=StopReason.OPERATOR),
    RUN_FINISHED,
    f.RetryScheduled(
        issue=ISSUE, kind=WaitKind.RETRY, trigger=Trigger.ERROR, attempt=1, delay=10.0
    ),
    f.WaitEnded(issue=ISSUE, reason="terminal"),
    f.BudgetRunsLow(key="agent.max_tokens", used="80 tokens", limit="100 tokens", issue=ISSUE),
    f.BudgetSpent(key="budget.daily_credits", used="5 credits", limit="5 credits"),
    f.AgentLimited(agent="kiro", error="limit reached", seconds=60.0, resets_at=None),
    f.AgentLimitEnded(agent="kiro", reason="a run works"),
    f.IssueHeld(issue=ISSUE, reason=HoldReason.AGENT_BLOCKED, detail="needs a person"),
    f.HoldRestored(
        issue=ISSUE,
        reason=HoldReason.AGENT_NOT_FOUND,
        detail="no kiro-cli",
        ways_out=("sortie retry DEMO-1",),
    ),
    f.HoldEnded(issue=ISSUE, reason="state changed"),
    f.QuestionAsked(
        issue=ISSUE,
        question_id=RUN,
        run_id=RUN,
        text="Which one?",
        options=("this", "that"),
        default="this",
        deadline=datetime(2026, 11, 29, 12, 0, tzinfo=UTC),
    ),
    f.QuestionAnswered(issue=ISSUE, question_id=RUN, by="kim", answer="that", way=AnswerWay.TICKET),
    f.QuestionWithdrawn(issue=ISSUE, question_id=RUN, reason="its content changed"),
    f.HookCompleted(
        hook="before_run", result="failed", seconds=1.5, issue_identifier="DEMO-1", status="exit 2"
    ),
    f.DeliveryAdvanced(
        run_id=RUN,
        stage=Stage.DELIVERED,
        branch="sortie/DEMO-1",
        head="0123abc",
        files_changed=2,
        added=5,
        removed=1,
        pull_request=PULL_REQUEST,
    ),
    f.CommandVerified(run_id=RUN, command="make test", ok=True, status="exit 0", seconds=2.5),
    f.ReviewFinished(
        run_id=RUN,
        verdict=ReviewVerdict.NONE,
        commit="0123abc",
        agent="claude-code",
        model="opus",
        round=1,
        findings=0,
        seconds=12.5,
        reason="its answer is not in the form",
    ),
    f.WatchBegan(issue=ISSUE, pull_request=PULL_REQUEST),
    f.WatchEnded(issue=ISSUE, pull_request=PULL_REQUEST, result="merged", reason="it was merged"),
    f.PullRequestsLookedAt(count=2, seconds=0.25, error=None),
    f.ReactionPlanned(
        issue=ISSUE, pull_request=PULL_REQUEST, kinds=("checks", "review"), head="0123abc"
    ),
    f.ReactionEnded(
        issue=ISSUE, pull_request=PULL_REQUEST, kinds=("checks", "review"), result="unchanged"
    ),
    f.MergeAttempted(
        issue=ISSUE, pull_request=PULL_REQUEST, result="refused", error="a rule forbids it"
    ),
    f.ErrandFailed(issue=ISSUE, pull_request=PULL_REQUEST, errand="reply", error="no such thread"),
    f.WebhookReceived(kind="github"),
    f.WebhookRejected(kind="github", reason="signature", count=4),
    f.WebhookLost(kind="github", error="no daemon leads this workflow now"),
    f.WebhookFollowed(kind="github", subject="issues", seconds=2.0),
    f.WebhooksArriving(kind="github", subject="issues"),
    f.WebhooksSilent(kind="github", subject="pull_requests"),
    f.WebhooksMissed(kind="github", subject="pull_requests", changes=2, seconds=3600.0),
    f.WorkRescued(issue_identifier="DEMO-1", refs=("refs/sortie/rescue/DEMO-1/run",)),
    f.TransitionCompleted(issue=ISSUE, lifecycle="handoff", state="Review", result="success"),
    f.IssueHandedOff(issue=ISSUE, state="Review"),
    f.CommentCompleted(issue=ISSUE, lifecycle="dispatch", result="error", error="read-only"),
    f.StatusFileRead(run_id=RUN, word="blocked", known=True),
    f.ToolCalled(run_id=RUN, tool="comment", result="ok", seconds=0.1),
    f.ToolCalled(run_id=RUN, tool="unknown", result="refused", seconds=0.0, error="no such tool"),
    f.AgentNoted(run_id=RUN, text="I begin with the tests"),
    f.ToolClientLost(run_id=RUN, reason="it did not say the token of the run"),
    f.ToolsLost(run_id=RUN, error="mkfifo: not found"),
    f.WorkspaceKept(
        issue_id=ISSUE.id,
        issue_identifier="DEMO-1",
        path="/w/DEMO-1",
        host="local",
        reason="2 unpushed commits",
        seconds=1209600.0,
    ),
    f.WorkspaceRemoved(issue_id=ISSUE.id, issue_identifier="DEMO-1", path="/w/DEMO-1"),
    f.WorkflowReloaded(),
    f.PauseChanged(paused=True),
    f.StoreFailed(error="the database is full"),
    f.StoreRecovered(),
    f.OrphansReaped(where="local", count=2),
    f.OrphansLeft(where="local", error="pid 7 stays"),
    f.OrphansSought(host="h1", runs=2),
    f.StateRestored(interrupted=1, waiting=2, held=3, paused=True),
    f.RunRecovered(run_id=RUN, issue=ISSUE),
    RUN_TAKEN_OVER,
    f.RunHandedOver(run_id=RUN, issue=ISSUE),
    f.AgentSimulated(program="/bin/sortie-kiro-sim"),
    f.HostPaused(host="box", error="refused", seconds=10.0),
    f.HostNoticed(host="box", message="its login leaves something running"),
    f.HostIsolation(host="box", detail="each program has a PID namespace"),
    f.HostLinkLost(host="box", run_id=RUN, error="reset", seconds=300.0),
    f.HostLinkRestored(host="box", run_id=RUN, seconds=2.5),
    f.PodReady(host="east", pod="sortie-demo-1", origin="warm", seconds=0.2),
    f.WarmPodsCounted(host="east", ready=1, wanted=2),
    f.WarmPodsCounted(host="east", ready=1, wanted=2, error="exceeded quota"),
    f.HostGivenUp(host="box"),
    f.NotificationRecorded(about="held", targets=("slack",)),
    f.NotificationFailed(target="slack", error="it answered 500", delay=2.0),
    f.NotificationsSent(target="slack", count=2, repeated=1, seconds=0.2),
    f.NotificationsGivenUp(target="slack", count=2, error="it answered 404"),
    f.HostBack(host="box"),
    f.HttpListening(url="http://127.0.0.1:7678/"),
    f.HttpPortTaken(port=7678),
    f.ControlUnavailable(path="/p/.sortie.db.daemon", error="Permission denied"),
    f.AgentsLimited(memory_bytes=8 << 30, tasks=4096),
    f.ServiceManagerUnreachable(socket="/run/systemd/notify", error="Connection refused"),
    f.HttpAnswered(route="/livez", status=200),
    f.SpansExported(exported=7, dropped=2, failed=1, error="the collector answers 503"),
    f.DaemonWasPaused(seconds=12.0),
    f.DaemonCrashed(traceback="Traceback:\n  boom"),
    f.TrackerPauseBegan(seconds=3600.0, asked=86400.0, error="too many requests"),
    f.ShortageBegan(resource="files", error="the limit of open files is reached"),
    f.ShortageEnded(resource="files"),
    f.AdapterCrashed(where="tracker", traceback="Traceback:\n  boom"),
    f.WorkflowBroken(error="the database is in use", seconds=10.0),
    f.SlotsOvercommitted(guaranteed=12, slots=10),
    f.CommonSlotsUnknown(error="the server cannot be reached"),
    f.CommonSlotsKnown(),
    f.ConnectionEnded(run_id=RUN, host="models.example", port=443, sent=1200, received=64000),
    f.ConnectionRefused(
        run_id=RUN, host="elsewhere.example", port=443, reason="not listed", connections=2
    ),
    f.LeaseAwaited(leader="one.example:7"),
    f.LeaseAwaited(leader=None, error="connection refused"),
    f.LeaseAcquired(token=3),
    f.LeaseAcquired(token=4, former="one.example:7"),
    f.LeaseEnded(token=4, reason="its lease could not be renewed in time"),
    f.HandOverBegan(reason="drained", running=2),
    f.HandOverEnded(),
)

KINDS: frozenset[type[f.Fact]] = frozenset(
    kind
    for kind in vars(f).values()
    if isinstance(kind, type) and issubclass(kind, f.Fact) and hasattr(kind, "EVENT")
)
"""Every kind of fact that there is."""
