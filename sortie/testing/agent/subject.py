"""What is checked: an adapter with its program, in a workspace on a host."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import trio
from msgspec import Struct
from msgspec.structs import replace
from pydantic import BaseModel

from sortie.agents import Agent, AgentAdapter, AgentContext, Session, SessionParams
from sortie.model import LOCAL, AgentError, ErrorKind, RunId, TransportError, TurnResult
from sortie.model.hiding import repr_without
from sortie.testing.agent.scenarios import Scenario, Scenarios
from sortie.testing.agent.turn_record import TurnRecord
from sortie.testing.checks import NotKept, require
from sortie.transports import Command, Transport
from sortie.worker.outcome import sole_error

Program = str | tuple[str, ...] | None


class AgentRefusal(Struct, frozen=True):
    """A session or turn that could not be had; ``error`` is what the adapter raised."""

    error: AgentError | TransportError

    @property
    def kind(self) -> ErrorKind | None:
        """The kind of an agent's error."""
        return self.error.kind if isinstance(self.error, AgentError) else None


class Subject(Struct, frozen=True, kw_only=True):
    """An adapter, the program behind it and what that can be made to do.

    A subject is for one check: its workspace, run id and transport belong to it alone.
    ``slack`` is how many seconds a machine may take for what should take none.
    """

    adapter: AgentAdapter
    command: Program
    settings: BaseModel
    scenarios: Scenarios
    transport: Transport
    workspace: str
    run_id: RunId
    env: Mapping[str, str]
    slack: float = 10.0
    make: Callable[[AgentContext], Agent] | None = None

    __repr__ = repr_without("env")

    def scenario(self, *names: str) -> Scenario:
        """Return the first of these scenarios that there is. Raises NotTried."""
        return self.scenarios.find(*names)

    @property
    def has_stand_in(self) -> bool:
        """Whether a file says what the program can be made to do."""
        return bool(self.scenarios.command or self.scenarios.impossible) or (
            "hang" in self.scenarios.scenarios
        )

    @property
    def stop_bound(self) -> float:
        """Seconds within which a cancelled turn is over: polite, then with its process."""
        return 2 * self.scenarios.stop_grace + self.slack

    def agent(self, command: Program = None) -> Agent:
        """Make the adapter, for another program where one is given."""
        context = AgentContext(
            command=self.command if command is None else command,
            settings=self.settings,
            clock=trio.current_time,
        )
        return (self.make or self.adapter.create)(context)

    def params(self, scenario: Scenario | None = None, /, **changed: Any) -> SessionParams:
        """Return the parameters of a session, as one for a scenario, or with others."""
        params = SessionParams(
            run_id=self.run_id,
            workspace=self.workspace,
            transport=self.transport,
            env={**self.env, **(scenario.env if scenario else {})},
            read_timeout=self.scenarios.read_timeout,
            stop_grace=self.scenarios.stop_grace,
        )
        return replace(params, **changed)

    @asynccontextmanager
    async def session(
        self,
        scenario: Scenario | None = None,
        /,
        agent: Agent | None = None,
        **changed: Any,
    ) -> AsyncIterator[Session]:
        """Have a session, of an adapter of its own where none is given.

        What the block raises does not pass through the adapter, as the port promises it.
        """
        failure: Exception | None = None
        async with (agent or self.agent()).session(self.params(scenario, **changed)) as session:
            try:
                yield session
            except Exception as error:
                failure = error
        if failure is not None:
            raise failure

    async def turn(
        self, session: Session, prompt: str, record: TurnRecord | None = None
    ) -> tuple[TurnResult, TurnRecord]:
        """Run a turn to its end. Raises NotKept where what it tells is not well-formed."""
        record = record or TurnRecord()
        try:
            result = await session.run_turn(prompt, record)
        finally:
            record.over.set()
        return record.judge(result), record

    async def only_turn(self, *names: str) -> tuple[TurnResult, TurnRecord]:
        """Run the turn of a scenario in a session of its own."""
        scenario = self.scenario(*names)
        async with self.session(scenario) as session:
            return await self.turn(session, scenario.prompt)

    async def attempt(
        self,
        scenario: Scenario,
        agent: Agent | None = None,
        **changed: Any,
    ) -> TurnResult | AgentRefusal:
        """Have a session and one turn of it, or be refused. Raises NotKept for any other error."""
        try:
            async with self.session(scenario, agent=agent, **changed) as session:
                result, _ = await self.turn(session, scenario.prompt)
            return result
        except Exception as error:
            return refusal_of(error)

    @contextmanager
    def within(self, seconds: float, what: str) -> Iterator[None]:
        """Raise NotKept where the block, also once it is cancelled, takes longer than that."""
        began = trio.current_time()
        with trio.move_on_after(seconds) as scope:
            yield
        took = trio.current_time() - began
        if scope.cancelled_caught or took > seconds + self.slack:
            raise NotKept(f"{what} took longer than {seconds:g} s")

    async def occupants(self) -> list[int]:
        """Return the pids of the processes in the workspace."""
        return list(await self.transport.occupied(self.workspace))

    async def require_occupants(self, least: int, what: str) -> None:
        """Wait until at least so many processes are in the workspace. Raises NotKept."""
        found: list[int] = []
        with trio.move_on_after(20 + self.slack):
            while len(found) < least:
                await trio.sleep(0.02)
                found = await self.occupants()
        require(len(found) >= least, f"{what}: {len(found)} processes were seen in the workspace")

    async def require_no_process_left(self, when: str) -> None:
        """Raise NotKept where a process is left, in the workspace or with the run's id; end it."""
        left = await self.occupants()
        ended = await self.transport.sweep([self.run_id], grace=0)
        if left:
            await self.transport.clear(self.workspace, grace=0)
        require(not left and not ended, f"{max(len(left), ended)} processes were left {when}")

    async def signal(self, pid: int, name: str) -> None:
        """Send a signal to a process of the agent's on its host, as another program would."""
        argv = ("/bin/sh", "-c", f"kill -{name} {pid}")
        command = Command(argv=argv, cwd="/", env={"PATH": "/usr/bin:/bin"}, grace=1.0)
        async with self.transport.process(command) as process:
            async for _ in process.output():
                pass
            await process.wait()

    @property
    def is_remote(self) -> bool:
        """Whether it runs on another host."""
        return self.transport.host != LOCAL


def refusal_of(error: Exception) -> AgentRefusal:
    """Return the refusal that an error is. Raises NotKept for what no adapter may raise."""
    sole = sole_error(error)
    if isinstance(sole, AgentError | TransportError):
        return AgentRefusal(sole)
    if isinstance(sole, NotKept):
        raise sole
    seen = f"{type(sole).__name__}: {sole}"
    raise NotKept(f"an adapter may raise AgentError and TransportError, not {seen:.300}") from error


def ending_text(end: TurnResult | AgentRefusal) -> str:
    """Return how a session or a turn ended, to be shown."""
    if isinstance(end, AgentRefusal):
        kind = f" ({end.kind})" if end.kind else ""
        return f"{type(end.error).__name__}{kind}: {end.error!s:.200}"
    return f"{end.outcome} ({end.error_kind}): {end.message!s:.200}"
