"""The dashboard on a socket, in a thread of its own, over a daemon that a test makes up."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, replace

import trio

from sortie.model import RunId, StoreError
from sortie.telemetry.metrics import Exposition
from sortie.telemetry.transcripts import TranscriptLine, TranscriptPage
from sortie.web.access import Access
from sortie.web.app import Served as Parts
from sortie.web.app import create_app
from sortie.web.broadcaster import Broadcaster
from sortie.web.dashboard.activity import ActivityView
from sortie.web.dashboard.routes import Dashboard
from sortie.web.event_stream import LiveEvents, StreamRoom
from sortie.web.health import Health
from sortie.web.issue import ExplanationView, IssueView, QuestionView
from sortie.web.leases import LeadershipView
from sortie.web.listener import ListenAddress, listen
from sortie.web.runs import RunView
from sortie.web.server import serve
from sortie.web.sessions import BrowserSessions
from sortie.web.source import CommandAnswer
from sortie.web.state import StateView
from sortie.web.state_feed import StateFeed
from sortie.web.watches import GateAnswer, WatchedView
from tests.telemetry.transcripts.fake import FakeTranscripts
from tests.web.dashboard import states
from tests.web.dashboard import watched as watches
from tests.web.fixed_daemon import FixedDaemon

SECRET = "sk-very-secret-0123<&>'\""


class SaidTranscripts(FakeTranscripts):
    """The same lines for every run."""

    def __init__(self, said: tuple[TranscriptLine, ...]) -> None:
        super().__init__()
        self.said = said

    async def last(self, run_id: RunId, limit: int) -> TranscriptPage:
        if not self.said:
            raise FileNotFoundError(run_id)
        return TranscriptPage(lines=self.said[-limit:])


@dataclass
class World:
    """What the dashboard shows, which a test may change at any time, and what it was told."""

    state: StateView = field(default_factory=states.state)
    health: Health = field(default_factory=lambda: Health(ready=True))
    activity: ActivityView = field(default_factory=states.activity)
    answer: CommandAnswer = field(default_factory=lambda: CommandAnswer(status=200, message="ok"))
    commands: list[str] = field(default_factory=list)
    said: list[TranscriptLine] = field(default_factory=list)
    title: str = states.TITLES[2]
    standing: str = "held"
    gates: tuple[GateAnswer, ...] = states.GATES
    runs: list[RunView] = field(default_factory=list)
    found: IssueView | None = None
    watched: WatchedView | None = None
    question: QuestionView | None = None
    diff: str = states.DIFF
    undiffed: set[str] = field(default_factory=set)
    looks: int = 0
    secrets: Set[str] = frozenset({SECRET})
    leaders: Sequence[LeadershipView] = ()

    def begin_anew(self) -> None:
        """Make up everything as it was at first."""
        states.begin_now()
        fresh = World()
        for each in fields(self):
            setattr(self, each.name, getattr(fresh, each.name))

    def look(self) -> StateView:
        """Return the state, and count that somebody asked for it."""
        self.looks += 1
        return self.state

    def source(self) -> FakeTranscripts:
        """Return what the agent wrote, in whatever run."""
        return SaidTranscripts(tuple(self.said))

    async def command(self, command: str) -> CommandAnswer:
        """Note a command."""
        self.commands.append(command)
        return self.answer

    async def explain(self, issue: str) -> ExplanationView | str:
        """Explain an issue as it was made up."""
        if issue.startswith(("no", "over")):
            return f"{issue} is not known"
        told = states.explanation(issue, self.title)
        watch = None if self.watched is None else watches.watch(self.watched)
        changed = {"standing": self.standing, "gates": self.gates, "watch": watch}
        return replace(told, question=self.question, **changed)  # type: ignore[arg-type]

    async def used(self, _count: int) -> tuple[()]:
        """Tell of no day."""
        return ()

    async def past(
        self, issue: str | None, limit: int, before: str | None, rule: str | None = None
    ) -> Sequence[RunView]:
        """Return runs as they were made up."""
        if issue is not None and issue.startswith("no"):
            return ()
        if before == "unknown":
            raise StoreError("no run unknown is recorded")
        if not self.runs:
            return states.history(issue, limit)
        runs = [run for run in self.runs if rule is None or (run.rule or "") == rule]
        ids = [run.run_id for run in runs]
        first = 0 if before is None else ids.index(before) + 1
        return tuple(runs[first : first + limit])

    async def run(self, _run: str) -> None:
        """Find no run."""
        return

    @property
    def diffs(self) -> Mapping[str, str]:
        """Return what made-up runs change."""
        return {
            run.run_id: self.diff
            for run in self.runs
            if run.delivery is not None and run.run_id not in self.undiffed
        }

    async def find(self, issue: str) -> IssueView | str:
        """Return an issue as it was made up."""
        if self.found is not None:
            return self.found
        explanation, runs = await self.explain(issue), await self.past(issue, 20, None)
        if not runs:
            return f"{issue} is not known"
        known = None if isinstance(explanation, str) else explanation
        return IssueView(
            issue_id=None,
            issue_identifier=issue,
            title=None if known is None else known.title,
            state=None if known is None else known.state,
            standing=None if known is None else known.standing,
            detail="",
            since=None,
            running=None,
            waiting=None,
            held=None,
            last_failure=None,
            runs=tuple(runs),
        )


class Served:
    """A dashboard that answers; ``stir`` tells it that something may have changed."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.url = ""
        self._sessions = BrowserSessions(time.monotonic)
        self._ready = threading.Event()
        self._token: trio.lowlevel.TrioToken
        self._scope = trio.CancelScope()
        self.daemon = FixedDaemon(world)
        self.dashboard = Dashboard(self.daemon)
        feed = StateFeed(world.look, self.daemon.secrets)
        self.live = LiveEvents(
            events=Broadcaster(feed, "life"),
            room=StreamRoom(100),
            pages=self.dashboard.broadcasters,
        )

    def sign_in_path(self) -> str:
        """Return a link that signs a browser in once."""
        return f"/sign-in?code={self._sessions.make_code()}"

    def stir(self) -> None:
        """Have pages look for changes."""

        def notify() -> None:
            for broadcaster in self.live.broadcasters:
                broadcaster.notify()

        trio.from_thread.run_sync(notify, trio_token=self._token)

    def drop_all(self) -> None:
        """Cut everybody off who follows a page."""

        def drop() -> None:
            for broadcaster in self.live.broadcasters:
                broadcaster.drop_all()

        trio.from_thread.run_sync(drop, trio_token=self._token)

    def run(self) -> None:
        """Serve until stopped; for a thread."""
        trio.run(self._run)

    def wait(self) -> None:
        """Wait until it answers."""
        assert self._ready.wait(20), "the server did not start"

    def stop(self) -> None:
        """End the server."""
        trio.from_thread.run_sync(self._scope.cancel, trio_token=self._token)

    async def _run(self) -> None:
        self._token = trio.lowlevel.current_trio_token()
        listener = await listen(ListenAddress(host="127.0.0.1", port=0))
        self.url = f"http://127.0.0.1:{listener.port}"
        parts = Parts(
            daemon=self.daemon,
            metrics=lambda _accept: Exposition(body=b"", content_type="text/plain"),
            live=self.live,
            dashboard=self.dashboard,
        )
        access = Access(host="127.0.0.1", loopback=True, token="right", sessions=self._sessions)
        app = create_app(parts, access, lambda _fact: None)
        with self._scope:
            async with trio.open_nursery() as nursery:
                await nursery.start(serve, app, listener, lambda _fact: None)
                nursery.start_soon(self.live.run, lambda _fact: None)
                self._ready.set()


@contextmanager
def served(world: World | None = None) -> Iterator[Served]:
    """Serve a dashboard for the length of the block."""
    server = Served(world or World())
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    server.wait()
    try:
        yield server
    finally:
        server.stop()
        thread.join(20)
