"""An agent whose prompts are shell scripts, and an adapter that does by hand what the engine for
turns does; it can be made to forget any of it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager

import trio
from pydantic import BaseModel, ConfigDict

from sortie.agents import AgentAdapter, AgentContext, OnEvents, SessionParams
from sortie.agents.launch import check_workspace, resolve_command
from sortie.model import ErrorKind, TurnOutcome, TurnResult
from sortie.model.turns import NOTIFICATION_LIMIT, Launched, Notification
from sortie.transports import Command, Exit

LIMIT = 10 * 1024 * 1024
CANCELLED = TurnResult(
    outcome=TurnOutcome.CANCELLED, error_kind=ErrorKind.TURN_CANCELLED, message="cancelled"
)

Forgets = Collection[str]


class ShellSession:
    """A session whose prompts are shell scripts; it does by hand what the engine would do."""

    id = ""

    def __init__(self, argv: tuple[str, ...], params: SessionParams, forgets: Forgets) -> None:
        self._argv = argv
        self._params = params
        self._forgets = forgets
        self._scope: trio.CancelScope | None = None
        self._idle = trio.Event()
        self._left = False
        self._rest = b""
        self._last = ""

    async def run_turn(self, prompt: str, on_events: OnEvents) -> TurnResult:
        if self._scope is not None and "one at a time" not in self._forgets:
            raise RuntimeError("a turn is running")
        if self._left and "leaving" not in self._forgets:
            return CANCELLED
        self._scope, self._idle = trio.CancelScope(), trio.Event()
        try:
            with self._scope:
                return await self._run(prompt, on_events)
            return CANCELLED
        finally:
            self._scope = None
            self._idle.set()

    async def leave(self) -> None:
        self._left = True
        if self._scope is not None:
            self._scope.cancel()
            await self._idle.wait()

    async def _run(self, prompt: str, on_events: OnEvents) -> TurnResult:
        params = self._params
        command = Command(
            argv=self._argv,
            cwd=params.workspace,
            env=params.env,
            stdin=prompt.encode(errors="replace"),
            grace=params.stop_grace,
        )
        self._rest, self._last = b"", ""
        async with params.transport.process(command) as process:
            on_events([Launched(process=process.identity)])
            async for source, chunk in process.output():
                if source == 1:
                    on_events(self._lines(chunk))
                elif "stderr" not in self._forgets:
                    on_events([])
                if len(self._rest) > LIMIT and "the limit" not in self._forgets:
                    return _failed(ErrorKind.PORT_EXIT)
            if self._rest and "the last line" not in self._forgets:
                on_events([self._notification(self._rest)])
            return self._result(await process.wait())

    def _lines(self, chunk: bytes) -> list[Notification]:
        *lines, self._rest = (self._rest + chunk).split(b"\n")
        return [self._notification(line) for line in lines if line.strip()]

    def _notification(self, line: bytes) -> Notification:
        self._last = line.decode(errors="replace")
        cut = "500 characters" not in self._forgets
        return Notification(message=self._last[:NOTIFICATION_LIMIT] if cut else self._last)

    def _result(self, end: Exit) -> TurnResult:
        if end.status == 0 and (self._last == "done" or "the proof" in self._forgets):
            return TurnResult(outcome=TurnOutcome.COMPLETED)
        if "the exits" not in self._forgets:
            if end.status in (137, 143) or end.signal in (9, 15):
                return CANCELLED
            if end.status == 127:
                return _failed(ErrorKind.AGENT_NOT_FOUND)
        return _failed(ErrorKind.PORT_EXIT)


class ShellAgent:
    """Runs shell scripts, and forgets some of what the port asks for."""

    def __init__(self, context: AgentContext, forgets: Forgets = ()) -> None:
        self._command = context.command
        self._forgets = forgets

    @asynccontextmanager
    async def session(self, params: SessionParams) -> AsyncIterator[ShellSession]:
        transport = params.transport
        if "the workspace" not in self._forgets:
            await check_workspace(transport, params.workspace)
        argv = await resolve_command(self._command, "/bin/sh", transport, params.env.get("PATH"))
        session = ShellSession(argv, params, self._forgets)
        try:
            yield session
        finally:
            await session.leave()


def _failed(kind: ErrorKind) -> TurnResult:
    return TurnResult(outcome=TurnOutcome.FAILED, error_kind=kind, message="it failed")


class ShellSettings(BaseModel):
    """The block of the shell agent: nothing."""

    model_config = ConfigDict(frozen=True, extra="forbid")


ADAPTER = AgentAdapter(
    kind="shell",
    block_name="shell",
    block=ShellSettings,
    default_command="/bin/sh",
    env_names=(),
    create=ShellAgent,
)
