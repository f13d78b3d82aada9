"""The port to coding agents. ADAPTERS finds an adapter by its kind, and nothing imports one."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Any, Literal, Protocol

from msgspec import Struct, field
from pydantic import BaseModel

from sortie.adapters import Adapters
from sortie.model import RunId, TurnResult
from sortie.model.asked_permissions import AskedPermissions
from sortie.model.hiding import repr_without
from sortie.model.turns import AgentEvent

if TYPE_CHECKING:
    from sortie.config.report import Finding
    from sortie.config.settings import AgentSettings
    from sortie.model.checks import Check
    from sortie.model.model_endpoints import ModelEndpoint
    from sortie.transports import Command, Process, Transport

Spent = Literal["tokens", "credits", "cost"]
"""What an agent uses up. A cost is estimated where the agent reports only tokens and a model."""

OnEvents = Callable[[Sequence[AgentEvent]], None]
"""Takes a batch of events, one call for each chunk of output; an empty batch is a sign of life."""


class McpServer(Struct, frozen=True, kw_only=True):
    """A server of tools that the agent starts beside itself and speaks MCP with, over its stdin
    and stdout.

    ``name`` is a word of letters, ``argv[0]`` an absolute path where the agent runs. ``env`` are
    variables besides those that the agent hands on. Neither holds a secret: some agents are told
    of the server in their arguments. ``guide`` is what an agent that speaks no MCP is told in its
    prompt, so that it calls the same tools by commands of its shell.
    """

    name: str
    argv: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict)
    guide: str = ""


def no_trace() -> None:
    """Return None: nothing is traced."""


def told_to_none(_seconds: float, _reason: str) -> None:
    """Tell of a wait to none."""


class StartTurn(Protocol):
    """Starts the program of a turn in a way that lets another daemon go on with it, or goes on with
    one that another daemon has started."""

    def __call__(self, command: Command, memo: str) -> AbstractAsyncContextManager[Process]:
        """Start it as ``Transport.process`` does; ``memo`` is what the adapter needs to read the
        turn's output anew."""
        ...


class SessionParams(Struct, frozen=True, kw_only=True):
    """What a session needs; ``env`` is the whole environment of the agent.

    ``resume_session_id`` names an earlier session to go on with, where the agent can.
    ``read_timeout`` and ``stop_grace`` are seconds. ``mcp_server`` is there for the agent besides
    those of its own settings, and its tools need no further permission; None where there is none.
    ``traceparent`` returns the turn under way as W3C Trace Context has it, for agents that make
    spans of their own; None where nothing is traced.
    ``permissions`` are asked of people by it; None where they cannot be asked.
    ``on_wait`` is told for how many seconds the session waits until it can go on, and why.
    An adapter that is ``adoptable`` starts the programs of turns by ``start_turn``, where there is
    one. ``adopted`` is the memo of a turn that another daemon has begun: the first turn of the
    session goes on with that, whatever its prompt.
    """

    run_id: RunId
    workspace: str
    transport: Transport
    env: Mapping[str, str]
    resume_session_id: str | None = None
    read_timeout: float = 5.0
    stop_grace: float = 5.0
    mcp_server: McpServer | None = None
    traceparent: Callable[[], str | None] = no_trace
    permissions: AskedPermissions | None = None
    on_wait: Callable[[float, str], None] = told_to_none
    start_turn: StartTurn | None = None
    adopted: str | None = None

    __repr__ = repr_without("env", "traceparent", "on_wait", "start_turn")


class Session(Protocol):
    """A conversation with an agent while its block is open. Its turns are serial.

    ``id`` is "" where the agent has no session ids, or has not reported one yet.
    """

    @property
    def id(self) -> str: ...

    async def run_turn(self, prompt: str, on_events: OnEvents) -> TurnResult:
        """Run one prompt to its end and return how it ended; a failed turn is a result, too.

        Raises AgentError or TransportError where the agent could not be asked, RuntimeError while
        another turn of this session runs. A cancellation ends the turn and its processes before
        this returns; a turn whose end was seen earlier still returns its result.
        """
        ...


class Agent(Protocol):
    """An adapter; one serves all sessions at once."""

    def session(self, params: SessionParams) -> AbstractAsyncContextManager[Session]:
        """Check that a session can run, and have it while the block is open.

        Entering and leaving raise AgentError and TransportError, also wrapped by a nursery. A
        session may own processes and tasks while the block is open: the caller enters and leaves
        in one task, in the same cancel scopes, and passes no exception but a cancellation through
        the block. Stopping a run cancels its turn only; leaving the block ends all other processes
        of the session. A turn that still runs then returns ``turn_cancelled``, and later turns do
        so at once.
        """
        ...


class AgentContext(Struct, frozen=True, kw_only=True):
    """What an adapter is made from. ``clock`` gives monotonic seconds.

    ``command`` is None where the workflow gives none; a list is an argv; a string is one program
    where it resolves as a whole, else it is split like a POSIX shell does.
    """

    command: str | tuple[str, ...] | None
    settings: BaseModel
    clock: Callable[[], float]


class AgentLook(Struct, frozen=True, kw_only=True):
    """What an adapter's checks are given.

    ``params`` are those of a session on this machine; no session is opened. Where runs are
    ``remote``, the program need not be installed here, and the checks do not run it.
    """

    command: str | tuple[str, ...] | None
    settings: BaseModel
    params: SessionParams
    remote: bool = False


AgentCommand = str | tuple[str, ...] | None
"""``agent.command`` as the workflow has it: a program, an argv, or nothing."""


class AgentAdapter(Struct, frozen=True, kw_only=True):
    """What an adapter's folder offers.

    ``block`` is the schema of the adapter's block in WORKFLOW.md, named ``block_name``; its
    validators raise ValueError. ``env_names`` are the variables that a remote agent is handed.
    ``warn`` returns warnings about settings as ``(dotted key, message)``, ``check`` what is wrong
    with them beside those of ``agent``, which it is given first. ``simulators``
    are words of a command, by their last path component, that only stand in for the agent.
    ``resumes``: a session can go on with an earlier one of the same host and workspace, by its id.
    ``tools_hindrance`` says why a session with a block could not call the tools of its
    ``mcp_server``, None where it can.
    ``reports`` is what its agents may tell to have used: only that can be limited. ``demo`` is the
    block with which ``sortie demo`` lets the agent work on its issues. ``checks`` are what ``sortie
    doctor`` looks at besides the program, such as the credential: they cost nothing and change
    nothing. ``commands`` are words that people take for a kind of their own, such as the name of an
    agent's program, each with the command to set. ``leaves_to_people`` returns the key of its block
    that leaves something to people, who are asked then. ``read_only`` returns a block with which a
    session can only read, made of the one in WORKFLOW.md; None where there is none. ``keeps``
    returns the directories in which the agent keeps its own settings, login and sessions, by its
    environment and the words of its command. ``model_endpoints``
    are the services that an agent with some command can be led to, so that it works with
    placeholders of keys; empty where it cannot. ``provider`` is whose models the agent asks, by the
    names of OpenTelemetry, "" where that is not known. ``hindrance`` says why the agent could not
    work behind a wall of ``sandbox``, which is the look's transport; None where it can. It raises
    SortieError. ``adoptable``: each turn is one program, which is given nothing after its start, so
    that another daemon can go on with it.
    """

    kind: str
    block_name: str
    block: type[BaseModel]
    default_command: str
    env_names: tuple[str, ...]
    create: Callable[[AgentContext], Agent]
    warn: Callable[[Any], Iterable[tuple[str, str]]] = lambda _settings: ()
    check: Callable[[AgentSettings, Any], Iterable[Finding]] = lambda _agent, _settings: ()
    simulators: frozenset[str] = frozenset()
    resumes: bool = False
    adoptable: bool = False
    reports: frozenset[Spent] = frozenset({"tokens", "credits", "cost"})
    demo: Mapping[str, object] = field(default_factory=dict)
    commands: Mapping[str, str] = field(default_factory=dict)
    checks: Callable[[AgentLook], Sequence[Check]] = lambda _look: ()
    tools_hindrance: Callable[[Any], str | None] = lambda _settings: None
    read_only: Callable[[Any], BaseModel] | None = None
    leaves_to_people: Callable[[Any], str | None] = lambda _settings: None
    keeps: Callable[[Mapping[str, str], Sequence[str]], Sequence[str]] = lambda _env, _argv: ()
    model_endpoints: Callable[[AgentCommand], Sequence[ModelEndpoint]] = lambda _command: ()
    provider: str = ""
    hindrance: Callable[[AgentLook], Awaitable[str | None]] | None = None


class AgentAdapters(Adapters[AgentAdapter]):
    """The adapters of agents; an unknown kind that another adapter can run names its command."""

    def load(self, kind: str) -> AgentAdapter:
        """Return the adapter of a kind. Raises LookupError for an unknown one, BrokenAdapter."""
        for known in self.kinds():
            adapter = super().load(known)
            if kind not in self.found and (command := adapter.commands.get(kind)):
                told = f"{known} runs it, with the command {command}"
                raise LookupError(f"no adapter of kind {kind!r}; {told}")
        return super().load(kind)


ADAPTERS = AgentAdapters(__name__, AgentAdapter)
