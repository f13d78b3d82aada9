"""An application over fixed views, and the facts that it published."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field
from datetime import UTC, datetime
from urllib.parse import unquote

import pytest
from starlette.types import ASGIApp, Message

from sortie.facts import Fact
from sortie.model import RunId, StoreError
from sortie.store import DayRow, UnknownRun
from sortie.telemetry.metrics import Exposition
from sortie.web.app import Served
from sortie.web.broadcaster import Broadcaster, Pace
from sortie.web.dashboard.activity import ActivityView
from sortie.web.event_stream import LiveEvents, StreamRoom
from sortie.web.health import Health
from sortie.web.issue import (
    ExplanationView,
    FailureView,
    HeldView,
    IssueView,
    RunningView,
    WaitingView,
)
from sortie.web.leases import LeadershipView
from sortie.web.runs import RunView
from sortie.web.source import CommandAnswer
from sortie.web.state import (
    Counts,
    SlotsView,
    StateView,
    TotalsView,
    WorkflowView,
)
from sortie.web.state_feed import StateFeed
from sortie.web.watches import GateAnswer
from tests.telemetry.transcripts.fake import EXAMPLE, FakeTranscripts, some_lines
from tests.web.fixed_daemon import FixedDaemon

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)

STATE = StateView(
    generated_at=NOON,
    status="running",
    workflow=WorkflowView(path="/p/WORKFLOW.md", valid=True),
    counts=Counts(running=1, waiting=1, held=1),
    running=(
        RunningView(
            issue_id="1",
            issue_identifier="DEMO-1",
            issue_url=None,
            title="Mend the fence",
            state="To Do",
            run_id="r-1",
            session_id=None,
            attempt=0,
            turn=None,
            max_turns=3,
            phase="workspace",
            host="local",
            workspace="/w/DEMO-1",
            started_at=NOON,
            last_event_at=NOON,
            last_message=None,
            credits=None,
            tokens=None,
        ),
    ),
    waiting=(
        WaitingView(
            issue_id="2",
            issue_identifier="DEMO-2",
            kind="retry",
            attempt=2,
            due_at=NOON,
            reason="no available orchestrator slots",
            last_failure=FailureView(
                kind="turn_failed", message="it said no", at=NOON, run_id="r-0"
            ),
        ),
    ),
    held=(
        HeldView(
            issue_id="3",
            issue_identifier="DEMO-3",
            reason="agent_blocked",
            detail="needs a person",
            since=NOON,
        ),
    ),
    slots=SlotsView(total=10, free=9, by_state={"to do": 1}, by_host={}),
    totals=TotalsView(runs=4, turns=9, credits=0.75, tokens=None, seconds_running=61.5),
)

EXPLANATION = ExplanationView(
    issue_id="3",
    issue_identifier="DEMO-3",
    title="Paint the fence",
    state="To Do",
    standing="held",
    detail="an operator stopped it",
    since=NOON,
    run_id=None,
    turn=None,
    attempt=2,
    gates=(
        GateAnswer(gate="blockers", open=True, reason=None),
        GateAnswer(gate="claim", open=False, reason="it is held (operator)"),
    ),
    next_run_at=None,
    next_step="somebody asks for a retry",
    ways_out=("sortie retry DEMO-3",),
)


RUN = RunView(
    run_id="r-1",
    issue="DEMO-1",
    issue_id="1",
    attempt=0,
    status="succeeded",
    error_kind=None,
    error=None,
    turns=2,
    credits=0.5,
    tokens=None,
    input_tokens=None,
    output_tokens=None,
    cached_tokens=None,
    cost_usd=None,
    estimated_usd=None,
    model="large",
    files_modified=("a.py",),
    files_omitted=False,
    tool_uses={"edit": 2},
    host="local",
    workspace="/w/DEMO-1",
    agent="kiro",
    started_at="2026-01-01T11:00:00.000000Z",
    finished_at="2026-01-01T12:00:00.000000Z",
)

ISSUE = IssueView(
    issue_id="3",
    issue_identifier="DEMO-3",
    title="Paint the fence",
    state="To Do",
    standing="held",
    detail="an operator stopped it",
    since=NOON,
    running=None,
    waiting=None,
    held=STATE.held[0],
    last_failure=None,
    runs=(RUN,),
)


@dataclass
class World:
    """What the application is told, and what it told; ``answer`` is that to every command."""

    state: StateView = STATE
    health: Health = field(default_factory=lambda: Health(ready=True))
    accepted: list[str] = field(default_factory=list)
    facts: list[Fact] = field(default_factory=list)
    broken: bool = False
    answer: CommandAnswer = field(default_factory=lambda: CommandAnswer(status=200, message="ok"))
    explanation: ExplanationView | str = EXPLANATION
    commands: list[str] = field(default_factory=list)
    days: tuple[DayRow, ...] = ()
    diffs: Mapping[str, str] = field(default_factory=dict)
    runs: tuple[RunView, ...] = (RUN,)
    queries: list[tuple[str | None, int, str | None]] = field(default_factory=list)
    rules_asked: list[str | None] = field(default_factory=list)
    issue: IssueView | str = ISSUE
    transcripts: FakeTranscripts = field(
        default_factory=lambda: FakeTranscripts(lines={EXAMPLE: some_lines(["one", "two"])})
    )
    activity: ActivityView = field(default_factory=ActivityView)
    secrets: Set[str] = frozenset()
    leaders: Sequence[LeadershipView] = ()
    live: LiveEvents = field(init=False)

    def __post_init__(self) -> None:
        feed = StateFeed(self.look)
        broadcaster = Broadcaster(feed, "life", Pace(shortest=0.0, longest=0.1))
        self.live = LiveEvents(events=broadcaster, room=StreamRoom(8))

    def served(self) -> Served:
        return Served(daemon=FixedDaemon(self), metrics=self.metrics, live=self.live)

    def source(self) -> FakeTranscripts:
        return self.transcripts

    def look(self) -> StateView:
        if self.broken:
            raise RuntimeError("a detail that no client may see")
        return self.state

    def metrics(self, accept: str) -> Exposition:
        self.accepted.append(accept)
        return Exposition(body=b"sortie_up 1\n", content_type="text/plain; version=0.0.4")

    async def command(self, command: str) -> CommandAnswer:
        self.commands.append(command)
        return self.answer

    async def explain(self, issue: str) -> ExplanationView | str:
        self.commands.append(f"explain {issue}")
        return self.explanation

    async def find(self, issue: str) -> IssueView | str:
        self._read()
        self.commands.append(f"issue {issue}")
        return self.issue

    async def past(
        self, issue: str | None, limit: int, before: str | None, rule: str | None = None
    ) -> tuple[RunView, ...]:
        self._read()
        self.queries.append((issue, limit, before))
        self.rules_asked.append(rule)
        if before == "unknown":
            raise UnknownRun(RunId("unknown"))
        return self.runs[:limit]

    async def run(self, run_id: str) -> RunView | None:
        self._read()
        return next((run for run in self.runs if run.run_id == run_id), None)

    async def used(self, count: int) -> tuple[DayRow, ...]:
        self._read()
        return self.days[:count]

    def _read(self) -> None:
        if self.broken:
            raise StoreError("the disk is away")


@pytest.fixture
def world() -> World:
    return World()


@dataclass
class Answered:
    """What an application answered."""

    status: int = 0
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""


async def ask_raw(app: ASGIApp, raw_path: str) -> Answered:
    """GET a path exactly as it is written, which no client library does."""
    answered = Answered()

    async def receive() -> Message:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Message) -> None:
        if message["type"] == "http.response.start":
            answered.status = message["status"]
            answered.headers = {k.decode(): v.decode() for k, v in message["headers"]}
        else:
            answered.body += message.get("body", b"")

    scope = {
        "type": "http",
        "method": "GET",
        "scheme": "http",
        "path": unquote(raw_path),
        "raw_path": raw_path.encode(),
        "query_string": b"",
        "headers": [(b"host", b"localhost")],
        "server": ("127.0.0.1", 7678),
        "client": ("127.0.0.1", 1),
    }
    await app(scope, receive, send)
    return answered
