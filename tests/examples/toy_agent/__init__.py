"""An example of an agent whose process lives for the whole session and speaks JSON lines.

The agent itself is ``program.py`` beside this module.
"""

from __future__ import annotations

import json
import math
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from typing import Any

import trio
from msgspec.structs import replace
from pydantic import BaseModel, ConfigDict, StrictStr

from sortie.agents import AgentAdapter, AgentContext, OnEvents, SessionParams
from sortie.agents.exits import Failure, exit_failure
from sortie.agents.launch import check_workspace, resolve_command
from sortie.agents.output import AgentOutput
from sortie.model import AgentError, ErrorKind, TransportError, TurnOutcome, TurnResult
from sortie.model.turns import (
    NOTIFICATION_LIMIT,
    AgentEvent,
    Launched,
    Notification,
    PermissionAsked,
    SessionKnown,
    ToolEnded,
    ToolStarted,
    Usage,
)
from sortie.transports import Command, Process, Stdin

COMMAND = "toy-agent"
KEY = "TOY_KEY"


class ToySettings(BaseModel):
    """The ``toy`` block: the tools that the agent may use."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    allow: tuple[StrictStr, ...] = ()


class ToyAgent:
    """Runs the toy on a transport; each session has a process of its own."""

    def __init__(self, command: str | tuple[str, ...] | None, settings: ToySettings) -> None:
        self._command = command
        self._settings = settings

    @asynccontextmanager
    async def session(self, params: SessionParams) -> AsyncIterator[ToySession]:
        """Start the agent and greet it; end it with the block."""
        await check_workspace(params.transport, params.workspace)
        path = params.env.get("PATH")
        command = Command(
            argv=await resolve_command(self._command, COMMAND, params.transport, path),
            cwd=params.workspace,
            env=params.env,
            stdin=Stdin.PIPE,
            grace=params.stop_grace,
        )
        async with params.transport.process(command) as process, trio.open_nursery() as nursery:
            session = ToySession(process, self._settings, params)
            nursery.start_soon(session.read)
            nursery.start_soon(session.write)
            try:
                await session.greet()
                yield session
            finally:
                session.leave()
                nursery.cancel_scope.cancel()


class ToySession:
    """A session; see Session. One task reads all output, another one writes all input.

    Rule 1: a turn ends by the agent's answer or by the end of its process, whichever is first.
    Rule 2: an agent that does not answer a cancellation is ended, so that no turn runs on.
    """

    def __init__(self, process: Process, settings: ToySettings, params: SessionParams) -> None:
        self.id = ""
        self._process = process
        self._settings = settings
        self._params = params
        self._output = AgentOutput(self, [params.env.get(KEY, "")])
        # Without a bound: the reader answers questions and must not wait for the agent to read.
        self._send, self._outgoing = trio.open_memory_channel[bytes](math.inf)
        self._ready = trio.Event()
        self._on_events: OnEvents | None = None
        self._answered = trio.Event()
        self._result: TurnResult | None = None
        self._end: Failure | TransportError | None = None
        self._tools: set[str] = set()

    async def greet(self) -> None:
        """Wait until the agent is there. Raises AgentError and TransportError."""
        self._say("hello", resume=self._params.resume_session_id)
        with trio.move_on_after(self._params.read_timeout) as limit:
            await self._ready.wait()
        if limit.cancelled_caught:
            message = "the toy agent did not answer within agent.read_timeout_ms"
            raise AgentError(ErrorKind.RESPONSE_TIMEOUT, message, timed_out=True)
        if self._end is not None:
            failure = self._failure()
            raise AgentError(failure.kind, failure.message)

    async def run_turn(self, prompt: str, on_events: OnEvents) -> TurnResult:
        """Give the agent a prompt, and wait for what becomes of it."""
        if self._on_events is not None:
            raise RuntimeError("a turn of this session is still running; turns are serial")
        if self._end is not None:
            return self._failure().result(self._output.warnings)
        self._on_events, self._result, self._answered = on_events, None, trio.Event()
        try:
            on_events([Launched(process=self._process.identity)])
            self._say("prompt", text=prompt)
            await self._answered.wait()
        finally:
            if not self._answered.is_set():
                await self._cancel()
            self._on_events = None
        return self._result or self._failure().result(self._output.warnings)

    def leave(self) -> None:
        """Let no turn begin any more, and end the one that runs."""
        self._over(Failure(ErrorKind.TURN_CANCELLED, "the session was left"))

    async def _cancel(self) -> None:
        """Have the agent end a turn politely; where it does not, end the agent."""
        with trio.move_on_after(self._params.stop_grace, shield=True):
            self._say("cancel")
            await self._answered.wait()
        if not self._answered.is_set():
            with trio.CancelScope(shield=True):  # bounded by the transport
                await self._process.end()

    def _failure(self) -> Failure:
        """Return why no turn can go on. Raises TransportError where the host is to blame."""
        if isinstance(self._end, TransportError):
            raise self._end
        assert self._end is not None
        return self._end

    def _over(self, end: Failure | TransportError) -> None:
        """Note the first reason for which no turn can go on, and release whoever waits."""
        if self._end is None:
            self._end = end
        self._ready.set()
        self._answered.set()

    def _say(self, what: str, **values: object) -> None:
        self._send.send_nowait(json.dumps({"do": what} | values).encode() + b"\n")

    # The session's two tasks

    async def write(self) -> None:
        """Write what was said, as fast as the agent reads; its end is seen by the other task."""
        assert self._process.stdin is not None
        try:
            async for line in self._outgoing:
                await self._process.stdin.send_all(line)
        except trio.BrokenResourceError:
            return

    async def read(self) -> None:
        """Read until the agent's end; nobody waits for it any longer than this."""
        try:
            self._over(await self._read())
        except TransportError as error:
            self._over(error)
        finally:
            self.leave()

    async def _read(self) -> Failure:
        async for source, chunk in self._process.output():
            self._tell(self._output.take(source, chunk))
            if self._output.line_too_long:
                return Failure(ErrorKind.PORT_EXIT, "the toy agent wrote a line over 10 MiB")
        self._tell(self._output.close())
        end = await self._process.wait()
        failure = exit_failure("the toy agent", end)
        return failure or Failure(ErrorKind.PORT_EXIT, f"the toy agent exited with {end.status}")

    def _tell(self, events: Sequence[AgentEvent]) -> None:
        if self._on_events is not None:
            self._on_events(events)

    # What the lines mean: see OutputReader

    def stdout(self, line: str) -> Sequence[AgentEvent]:
        """Obey a message of the agent's; whatever else it prints is only a sign of life."""
        try:
            return self._obey(json.loads(line))
        except (ValueError, KeyError, TypeError, RecursionError):
            return []

    def stderr(self, line: str) -> bool:
        """Show all of it."""
        return True

    def close(self, stderr: str) -> Sequence[AgentEvent]:
        """Tell nothing: all that counts is on stdout."""
        return []

    def _obey(self, message: dict[str, Any]) -> Sequence[AgentEvent]:
        match message["is"]:
            case "ready":
                self._ready.set()
            case "session":
                self.id = str(message["id"])
                return [SessionKnown(session_id=self.id)]
            case "say" if message["text"]:
                return [Notification(message=str(message["text"])[:NOTIFICATION_LIMIT])]
            case "tool":
                files = tuple(map(str, message["files"]))
                name, kind = str(message["name"]), str(message["kind"])
                self._tools.add(str(message["id"]))
                return [ToolStarted(id=str(message["id"]), name=name, kind=kind, locations=files)]
            case "tool_done" if message["id"] in self._tools:
                self._tools.remove(message["id"])
                return [ToolEnded(id=message["id"], failed=bool(message["failed"]))]
            case "ask":
                return [self._answer(message)]
            case "usage":
                tokens, cost = int(message["input"]), float(message["cost"])
                return [Usage(input_tokens=tokens, cost=cost, currency="USD", cumulative=True)]
            case "done":
                self._done(message)
        return []

    def _answer(self, message: dict[str, Any]) -> PermissionAsked:
        answer = "yes" if message["tool"] in self._settings.allow else "no"
        self._say("answer", answer=answer)
        return PermissionAsked(question=str(message["what"]), answer=answer)

    def _done(self, message: dict[str, Any]) -> None:
        self._result = TurnResult(outcome=TurnOutcome.COMPLETED)
        if not message["ok"]:
            resets = message["resets"]
            kind = ErrorKind.USAGE_LIMIT if resets else ErrorKind.TURN_FAILED
            result = Failure(kind, str(message["why"])).result(self._output.warnings)
            until = datetime.fromisoformat(resets) if resets else None
            self._result = replace(result, resets_at=until)
        self._answered.set()


def create(context: AgentContext) -> ToyAgent:
    """Make the adapter."""
    assert isinstance(context.settings, ToySettings)
    return ToyAgent(context.command, context.settings)


ADAPTER = AgentAdapter(
    kind="toy",
    block_name="toy_agent",
    block=ToySettings,
    default_command=COMMAND,
    env_names=(KEY,),
    create=create,
    resumes=True,
    reports=frozenset({"tokens", "cost"}),
)
