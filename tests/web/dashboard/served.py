"""The dashboard on a socket, in a thread of its own, over a daemon that a test makes up."""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, replace

import trio

from sortie.model import StoreError
from sortie.telemetry.metrics.exposition import Exposition
from sortie.web.access import Access
from sortie.web.app import create_app
from sortie.web.broadcaster import Broadcaster
from sortie.web.controls import CommandAnswer, Controls, ExplanationView, GateView
from sortie.web.dashboard.activity import ActivityView
from sortie.web.dashboard.routes import Dashboard
from sortie.web.dashboard.sources import DashboardSources, SaidLine
from sortie.web.event_stream import StreamRoom
from sortie.web.health import Health
from sortie.web.issue import IssueView
from sortie.web.listener import Endpoint, listen
from sortie.web.live import Live
from sortie.web.records import HistoryQuery, Records
from sortie.web.redaction import Redaction
from sortie.web.runs import RunView
from sortie.web.server import serve
from sortie.web.sessions import Sessions
from sortie.web.sources import Sources
from sortie.web.state import StateView
from sortie.web.state_feed import StateFeed
from tests.telemetry.transcripts.fake import FakeTranscripts
from tests.web.dashboard import states

SECRET = "sk-very-secret-0123<&>'\""


@dataclass
class World:
    """What the dashboard shows, which a test may change at any time, and what it was told."""

    state: StateView = field(default_factory=states.state)
    health: Health = field(default_factory=lambda: Health(ready=True))
    activity: ActivityView = field(default_factory=states.activity)
    answer: CommandAnswer = field(default_factory=lambda: CommandAnswer(status=200, message="ok"))
    commands: list[str] = field(default_factory=list)
    said: list[SaidLine] = field(default_factory=list)
    title: str = states.TITLES[2]
    standing: str = "held"
    gates: tuple[GateView, ...] = states.GATES
    past: list[RunView] = field(default_factory=list)
    found: IssueView | None = None
    looks: int = 0

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

    def controls(self) -> Controls:
        """Return commands that are noted, and answers as they were made up."""
        return Controls(
            refresh=lambda: self._command("refresh"),
            pause=lambda: self._command("pause"),
            resume=lambda: self._command("resume"),
            stop=lambda issue: self._command(f"stop {issue}"),
            retry=lambda issue: self._command(f"retry {issue}"),
            explain=self._explain,
            days=self._days,
            records=Records(history=self._history, run=self._run, issue=self._issue),
            transcripts=FakeTranscripts().source(),
        )

    async def _command(self, command: str) -> CommandAnswer:
        self.commands.append(command)
        return self.answer

    async def _explain(self, issue: str) -> ExplanationView | str:
        if issue.startswith(("no", "over")):
            return f"{issue} is not known"
        told = states.explanation(issue, self.title)
        return replace(told, standing=self.standing, gates=self.gates)  # type: ignore[arg-type]

    async def _days(self, _limit: int) -> tuple[()]:
        return ()

    async def _history(self, query: HistoryQuery) -> Sequence[RunView]:
        if query.issue is not None and query.issue.startswith("no"):
            return ()
        if query.before == "unknown":
            raise StoreError("no run unknown is recorded")
        if not self.past:
            return states.history(query.issue, query.limit)
        ids = [run.run_id for run in self.past]
        first = 0 if query.before is None else ids.index(query.before) + 1
        return tuple(self.past[first : first + query.limit])

    async def _run(self, _run: str) -> None:
        return None

    async def _issue(self, issue: str) -> IssueView | str:
        return self.found or f"{issue} is not known"

    async def lines(self, _run: str) -> Sequence[SaidLine] | str:
        """Return what the agent wrote."""
        return tuple(self.said) or "no transcript is kept"


class Served:
    """A dashboard that answers; ``stir`` tells it that something may have changed."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.url = ""
        self._sessions = Sessions(time.monotonic)
        self._ready = threading.Event()
        self._token: trio.lowlevel.TrioToken
        self._scope = trio.CancelScope()
        redaction = self._redaction = Redaction(lambda: frozenset({SECRET}))
        self.dashboard = Dashboard(
            DashboardSources(
                state=world.look,
                overview=world.look,
                health=lambda: world.health,
                activity=lambda: world.activity,
                said=world.lines,
                redaction=redaction,
            ),
            world.controls(),
            secrets.token_hex(4),
        )
        self.live = Live(
            events=Broadcaster(StateFeed(world.look, redaction), "life"),
            room=StreamRoom(100),
            pages=self.dashboard.broadcasters,
        )

    def sign_in_path(self) -> str:
        """Return a link that signs a browser in once."""
        return f"/sign-in?code={self._sessions.make_code()}"

    def stir(self) -> None:
        """Have pages look for changes."""

        def stir() -> None:
            for broadcaster in self.live.broadcasters:
                broadcaster.stir()

        trio.from_thread.run_sync(stir, trio_token=self._token)

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
        listener = await listen(Endpoint(host="127.0.0.1", port=0))
        self.url = f"http://127.0.0.1:{listener.port}"
        sources = Sources(
            state=self.world.look,
            health=lambda: self.world.health,
            metrics=lambda _accept: Exposition(body=b"", content_type="text/plain"),
            live=self.live,
            pages=tuple(self.dashboard.routes(self.live.room)),
            redaction=self._redaction,
        )
        access = Access(host="127.0.0.1", loopback=True, token="right", sessions=self._sessions)
        app = create_app(sources, self.world.controls(), access, lambda _fact: None)
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
