"""The port to coding agents. Nobody imports an adapter by name: ADAPTERS finds it by its kind."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from pydantic import BaseModel

from sortie.adapters import Adapters
from sortie.model import AgentEvent, RunId, TurnResult
from sortie.transports import Transport

OnEvents = Callable[[Sequence[AgentEvent]], None]
"""Takes a batch of events, one call a chunk of output; an empty batch is a sign of life."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionParams:
    """What a session needs; ``env`` is the whole environment of the agent.

    ``resume_session_id`` names an earlier session to go on with, where the agent can.
    ``read_timeout`` and ``stop_grace`` are seconds.
    """

    run_id: RunId
    workspace: str
    transport: Transport
    env: Mapping[str, str] = field(repr=False)
    resume_session_id: str | None = None
    read_timeout: float = 5.0
    stop_grace: float = 5.0


@dataclass(frozen=True, slots=True)
class Session:
    """An agent's session; ``internal`` belongs to the adapter that made it.

    ``id`` is "" where the agent has no session ids.
    """

    id: str
    internal: object = field(repr=False)


class Agent(Protocol):
    """An adapter: one serves all sessions at once; the turns of one session are serial."""

    def event_stream(self) -> AsyncIterator[AgentEvent] | None:
        """Return the adapter's own stream of events, or None where ``on_event`` gets them."""
        ...

    async def start_session(self, params: SessionParams) -> Session:
        """Check that a session can run here, and begin it. Raises AgentError."""
        ...

    async def run_turn(
        self, session: Session, prompt: str, on_event: OnEvents | None
    ) -> TurnResult:
        """Run one prompt to its end and return how it ended; failures are results, not errors.

        Raises TypeError where ``on_event`` is None and AgentError for a foreign session. Being
        cancelled ends the turn's processes before it returns; a turn whose end was seen before
        that still returns its result.
        """
        ...

    async def stop_session(self, session: Session) -> None:
        """End what the session still runs; safe at any time, and more than once."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentContext:
    """What an adapter is made from. ``clock`` gives monotonic seconds.

    ``command`` is None where the workflow gives none; a list is an argv; a string is one program
    where it resolves as a whole, else it is split like a POSIX shell does.
    """

    command: str | tuple[str, ...] | None
    settings: BaseModel
    clock: Callable[[], float]


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentAdapter:
    """What an adapter's folder offers.

    ``block`` is the schema of the adapter's block in WORKFLOW.md, named ``block_name``; its
    validators raise ValueError. ``env_names`` are the variables that a remote agent is handed.
    ``warn`` returns warnings about settings as ``(dotted key, message)``. ``simulators``
    are words of a command, by their last path component, that only stand in for the agent.
    """

    kind: str
    block_name: str
    block: type[BaseModel]
    default_command: str
    env_names: tuple[str, ...]
    create: Callable[[AgentContext], Agent]
    warn: Callable[[Any], Sequence[tuple[str, str]]] = lambda _settings: ()
    simulators: frozenset[str] = frozenset()


ADAPTERS = Adapters(__name__, AgentAdapter)
