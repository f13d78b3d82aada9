"""An agent in memory whose turns follow a script for each issue, on trio's clock.

Its verdicts are ``wrongs`` (two sessions of one issue at once, a turn without a session) and
``assert_over``: nothing that began is still open.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import trio

from sortie.agents import OnEvents, SessionParams
from sortie.model import AgentError, ErrorKind, ProcessIdentity, RunId, TurnOutcome, TurnResult
from sortie.model.turns import NOTIFICATION_LIMIT, Launched, Notification, SessionKnown, Usage

FIRST_PID = 1 << 24
"""Above every pid that a kernel gives out, so that no real process is meant by accident."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Completes:
    """The turn succeeds ``after`` seconds.

    ``status`` is left in ``.sortie/status``; ``does`` is what the agent does to the world at the
    end. ``shielded`` ignores a cancellation until then and returns the result all the same, as
    an agent does whose end was seen before it was told to stop.
    """

    after: float = 1.0
    credits: float | None = None
    tokens: int | None = None
    says: tuple[str, ...] = ("working",)
    status: str | None = None
    does: Callable[[], object] | None = None
    shielded: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Fails:
    """The turn fails ``after`` seconds; see Completes."""

    kind: ErrorKind = ErrorKind.TURN_FAILED
    after: float = 1.0
    outcome: TurnOutcome = TurnOutcome.FAILED
    credits: float | None = None
    status: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Raises:
    """The turn raises ``after`` seconds: AgentError as the port allows, or what it must not."""

    error: Exception
    after: float = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Silent:
    """The turn says nothing and never ends by itself.

    Once cancelled it clings to life for ``clings`` seconds, and mutters every second meanwhile.
    """

    clings: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Chats:
    """The turn says something every ``every`` seconds, and succeeds after ``times`` times."""

    every: float = 10.0
    times: int = 10
    credits: float | None = None


Step = Completes | Fails | Raises | Silent | Chats


@dataclass(slots=True, eq=False)
class FakeSession:
    """A session of the fake; see Session."""

    agent: FakeAgent
    params: SessionParams = field(repr=False)
    identifier: str
    turns: int = 0
    stopped: bool = False
    scope: trio.CancelScope | None = None
    done: trio.Event = field(default_factory=trio.Event)

    @property
    def id(self) -> str:
        return self.params.resume_session_id or ""

    async def run_turn(self, prompt: str, on_events: OnEvents) -> TurnResult:
        """Let the agent play the next step."""
        return await self.agent.play(self, prompt, on_events)


class FakeAgent:
    """Serves all sessions; ``scripts`` maps an issue's identifier to its turns, over all runs.

    The last step of a script repeats, an issue without a script completes each turn. Switches:
    ``refusals`` are raised where the next sessions of an issue are entered, one each;
    ``stop_error`` is raised where a session is left, ``stop_hangs`` keeps it from being left.
    ``session_ids`` are told by the next turns, one each. ``before_launch`` is awaited before each
    turn's process is there. ``note`` is told what happens.
    """

    def __init__(
        self,
        scripts: Mapping[str, Sequence[Step]] | None = None,
        note: Callable[[str], object] | None = None,
    ) -> None:
        self.scripts = {name: list(steps) for name, steps in (scripts or {}).items()}
        self.refusals: dict[str, list[Exception]] = defaultdict(list)
        self.stop_error: Exception | None = None
        self.stop_hangs = False
        self.before_launch: Callable[[SessionParams], Awaitable[object]] | None = None
        self.start_seconds = 0.0
        self.session_ids: list[str] = []
        self.begun: list[tuple[str, RunId]] = []
        self.resumed: list[str | None] = []
        self.ended: list[tuple[str, RunId]] = []
        self.prompts: list[str] = []
        self.launched_at: list[float] = []
        self.envs: list[Mapping[str, str]] = []
        self.wrongs: list[str] = []
        self.most_at_once = 0
        self._note = note or (lambda _text: None)
        self._open: dict[int, FakeSession] = {}
        self._busy: set[int] = set()
        self._pid = FIRST_PID

    # The port

    @asynccontextmanager
    async def session(self, params: SessionParams) -> AsyncIterator[FakeSession]:
        """Have a session, or refuse it."""
        session = await self._begin(params)
        try:
            yield session
        finally:
            await self._end(session)

    async def _begin(self, params: SessionParams) -> FakeSession:
        identifier = params.env.get("SORTIE_ISSUE_IDENTIFIER", "")
        await trio.sleep(self.start_seconds)
        if self.refusals[identifier]:
            raise self.refusals[identifier].pop(0)
        if not params.workspace.startswith("/") or not await params.transport.files.contained(
            "/", params.workspace
        ):
            raise AgentError(ErrorKind.INVALID_WORKSPACE_CWD, f"no directory {params.workspace!r}")
        if any(handle.identifier == identifier for handle in self._open.values() if identifier):
            self.wrongs.append(f"two sessions of {identifier} at once")
        handle = FakeSession(self, params, identifier)
        self._open[id(handle)] = handle
        self.begun.append((identifier, params.run_id))
        self.resumed.append(params.resume_session_id)
        self.envs.append(params.env)
        self._note("session begins")
        return handle

    async def play(self, handle: FakeSession, prompt: str, on_event: OnEvents) -> TurnResult:
        """Play the next step of the issue's script."""
        if handle.stopped:
            self.wrongs.append(f"a turn of {handle.identifier} without a session")
            return _stopped()
        if id(handle) in self._busy:
            raise RuntimeError("a turn of this session is still running")
        self.prompts.append(prompt)
        step = self._next_step(handle.identifier)
        handle.turns += 1
        if self.before_launch is not None:
            await self.before_launch(handle.params)
        self._note(f"turn {handle.turns} begins")
        self._busy.add(id(handle))
        self.most_at_once = max(self.most_at_once, len(self._busy))
        handle.scope, handle.done = trio.CancelScope(), trio.Event()
        try:
            with handle.scope:
                return await self._play(step, handle, on_event)
            return _stopped()
        finally:
            self._busy.discard(id(handle))
            self._note(f"turn {handle.turns} ends")
            handle.done.set()

    async def _end(self, handle: FakeSession) -> None:
        handle.stopped = True
        self.ended.append((handle.identifier, handle.params.run_id))
        self._note("session ends")
        if id(handle) in self._busy and handle.scope is not None:
            handle.scope.cancel()
            await handle.done.wait()
        self._open.pop(id(handle), None)
        if self.stop_hangs:
            await trio.sleep_forever()
        if self.stop_error is not None:
            raise self.stop_error
        await trio.lowlevel.checkpoint()

    # Verdicts

    def assert_over(self) -> None:
        """Fail where something went wrong, or a session or turn is still open."""
        assert self.wrongs == []
        assert [handle.identifier for handle in self._open.values()] == []
        assert self._busy == set()
        assert self.ended == self.begun or sorted(self.ended) == sorted(self.begun)

    def runs_of(self, identifier: str) -> int:
        """Return how many sessions an issue had."""
        return sum(name == identifier for name, _ in self.begun)

    # How it plays

    def _next_step(self, identifier: str) -> Step:
        steps = self.scripts.get(identifier) or [Completes()]
        return steps.pop(0) if len(steps) > 1 else steps[0]

    async def _play(self, step: Step, handle: FakeSession, on_event: OnEvents) -> TurnResult:
        self._pid += 1
        now = trio.current_time()
        self.launched_at.append(now)
        on_event([Launched(process=ProcessIdentity(pid=self._pid, started_at=now))])
        if self.session_ids:
            on_event([SessionKnown(session_id=self.session_ids.pop(0))])
        match step:
            case Completes():
                return await _complete(step, handle, on_event)
            case Fails():
                await trio.sleep(step.after)
                await _leave_status(step.status, handle)
                _spend(step.credits, None, on_event)
                return TurnResult(
                    outcome=step.outcome,
                    error_kind=step.kind,
                    message=f"the fake agent fails: {step.kind}",
                )
            case Raises():
                await trio.sleep(step.after)
                raise step.error
            case Silent():
                try:
                    await trio.sleep_forever()
                finally:
                    with trio.move_on_after(step.clings, shield=True):
                        await _mutter(on_event)
            case Chats():
                for _ in range(step.times):
                    await trio.sleep(step.every)
                    on_event([Notification(message="still at it")])
                _spend(step.credits, None, on_event)
                return TurnResult(outcome=TurnOutcome.COMPLETED)


async def _complete(step: Completes, handle: FakeSession, on_event: OnEvents) -> TurnResult:
    with trio.CancelScope(shield=step.shielded):
        await trio.sleep(step.after)
        on_event([Notification(message=text[:NOTIFICATION_LIMIT]) for text in step.says])
        await _leave_status(step.status, handle)
        if step.does is not None:
            step.does()
    _spend(step.credits, step.tokens, on_event)
    return TurnResult(outcome=TurnOutcome.COMPLETED)


def _spend(credits_: float | None, tokens: int | None, on_event: OnEvents) -> None:
    if credits_ is not None or tokens is not None:
        on_event([Usage(credits=credits_, output_tokens=tokens)])


async def _leave_status(status: str | None, handle: FakeSession) -> None:
    if status is not None:
        params = handle.params
        await params.transport.files.write_file(params.workspace, ".sortie/status", status.encode())


async def _mutter(on_event: OnEvents) -> None:
    while True:
        await trio.sleep(1.0)
        on_event([Notification(message="not yet")])


def _stopped() -> TurnResult:
    return TurnResult(
        outcome=TurnOutcome.CANCELLED,
        error_kind=ErrorKind.TURN_CANCELLED,
        message="the session was stopped",
    )
