"""The Claude Code adapter: one process per turn, outcome from its last result."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from uuid import uuid4

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from sortie.agents import McpServer, OnEvents, Session, SessionParams
from sortie.agents.claude_code.reader import ClaudeReader
from sortie.agents.claude_code.settings import (
    CLAUDE_SECRETS,
    DEFAULT_COMMAND,
    READING_TOOLS,
    ClaudeCodeSettings,
    ReadingSettings,
)
from sortie.agents.claude_code.tokens import TokenLedger
from sortie.agents.launch import check_workspace, resolve_command
from sortie.agents.turn_process import TurnCommand, turn_processes
from sortie.lines import RawLineSplitter
from sortie.model import TurnResult
from sortie.model.invocation import Invocation, prompt_invocation
from sortie.model.turns import AgentEvent, Notification, SessionKnown

_ALWAYS = ("-p", "--output-format", "stream-json", "--verbose", "--include-partial-messages")

_FLAGS = {
    "model": "--model",
    "fallback_model": "--fallback-model",
    "max_turns": "--max-turns",
    "max_budget_usd": "--max-budget-usd",
    "effort": "--effort",
    "allowed_tools": "--allowedTools",
    "disallowed_tools": "--disallowedTools",
    "system_prompt": "--append-system-prompt",
    "mcp_config": "--mcp-config",
}


def turn(
    settings: ClaudeCodeSettings,
    prompt: str,
    *,
    session_id: str,
    resume: bool,
    server: McpServer | None = None,
) -> Invocation:
    """Return how to run ``prompt`` as one turn of a conversation, a new one unless ``resume``.

    A prompt that begins with a slash gets a line feed before it, or Claude Code would take it for a
    command of its own. All tools of a ``server`` are allowed.
    """
    arguments = [*_ALWAYS, "--resume" if resume else "--session-id", session_id]
    arguments += _options(settings, server)
    # Some options take every argument that follows, up to the next option.
    prompt = f"\n{prompt}" if prompt.startswith("/") else prompt
    return prompt_invocation(arguments, prompt, separated=True)


def _options(settings: ClaudeCodeSettings, server: McpServer | None) -> Iterator[str]:
    if settings.permission_mode is None:
        yield "--dangerously-skip-permissions"
    else:
        yield from ("--permission-mode", settings.permission_mode)
    for name, flag in _FLAGS.items():
        value = getattr(settings, name)
        values = [] if value is None else [f"{value:.12g}" if isinstance(value, float) else value]
        if server is not None:
            values += _of_server(server, name)
        if values:
            yield from (flag, *map(str, values))
    if not settings.session_persistence:
        yield "--no-session-persistence"
    if isinstance(settings, ReadingSettings):
        yield from ("--tools", READING_TOOLS, "--setting-sources", "user", "--strict-mcp-config")


def _of_server(server: McpServer, option: str) -> Iterator[str]:
    """Yield what an option says about a server besides what the settings say: it has several
    values."""
    if option == "allowed_tools":
        yield f"mcp__{server.name}"
    elif option == "mcp_config":
        command, *arguments = server.argv
        told = {"type": "stdio", "command": command, "args": arguments, "env": dict(server.env)}
        yield json.dumps({"mcpServers": {server.name: told}})


class _TurnMemo(Struct, frozen=True):
    """What a reader of a turn's output needs to know."""

    session_id: str
    resume: bool


class _Conversation:
    """The conversation of a session, and the turns in it.

    Rule 1: the first turn begins the conversation with its id, later turns resume it, also after a
    killed first turn: Claude Code refuses to begin a conversation with a used id. Rule 2: without
    persistence each turn has an id of its own.
    """

    def __init__(
        self,
        argv: tuple[str, ...],
        settings: ClaudeCodeSettings,
        clock: Callable[[], float],
        resume: str | None,
        server: McpServer | None = None,
    ) -> None:
        self._argv = argv
        self._server = server
        self._settings = settings
        self._clock = clock
        self._ledger = TokenLedger()
        self._kept = settings.session_persistence
        self._begun = self._kept and resume is not None
        self._id = resume if self._begun and resume is not None else str(uuid4())
        self._last: ClaudeReader | None = None
        self._adopts = False

    @property
    def id(self) -> str:
        """The id by which it can be resumed, "" where it cannot."""
        self._follow()
        return self._id if self._kept else ""

    def _follow(self) -> None:
        """Take over the last turn's id: old versions give a resumed conversation a new id."""
        if self._kept and self._last is not None:
            self._id = self._last.session_id

    def command(self, prompt: str) -> TurnCommand:
        """Return how the next prompt is run."""
        self._follow()
        invocation = turn(
            self._settings, prompt, session_id=self._id, resume=self._begun, server=self._server
        )
        self._adopts = False
        return replace(
            self._read_by(_TurnMemo(session_id=self._id, resume=self._begun)),
            argv=(*self._argv, *invocation.arguments),
            stdin=invocation.stdin,
        )

    def adopt(self, memo: str) -> TurnCommand:
        """Return what a turn was run by that another daemon has begun."""
        self._adopts = True
        return self._read_by(msgspec.json.decode(memo, type=_TurnMemo))

    def _read_by(self, memo: _TurnMemo) -> TurnCommand:
        self._last = ClaudeReader(memo.session_id, self._ledger, self._clock, memo.resume)
        if self._kept:
            self._id, self._begun = memo.session_id, True
        else:
            self._id = str(uuid4())
        return TurnCommand(
            argv=self._argv,
            reader=self._last,
            splitter=RawLineSplitter,
            memo=msgspec.json.encode(memo).decode(),
        )

    def begin_anew(self) -> list[AgentEvent]:
        """Where the last turn could not begin because of its id, make the next one able to, and
        return what is to be told of that; empty where the id was not to blame, and for a turn that
        another daemon began, whose prompt is not known."""
        last = self._last
        if last is None or not self._kept or self._adopts:
            return []
        self._last = None
        if last.conversation_lost:
            self._begun = False
            return [Notification(message=f"conversation {self._id} is gone; it begins anew")]
        if last.id_taken:
            self._id, self._begun = str(uuid4()), False
            message = f"another directory's conversation has the id; this one is {self._id}"
            return [SessionKnown(session_id=self._id), Notification(message=message)]
        return []


class _ClaudeSession:
    """A session whose turn is run again where its conversation's id kept it from beginning."""

    def __init__(self, conversation: _Conversation, processes: Session) -> None:
        self._conversation = conversation
        self._processes = processes

    @property
    def id(self) -> str:
        return self._conversation.id

    async def run_turn(self, prompt: str, on_events: OnEvents) -> TurnResult:
        """Run one prompt in a process of its own, or in a second or third."""
        result = await self._processes.run_turn(prompt, on_events)
        for _ in range(2):
            if result.error_kind is None or not (told := self._conversation.begin_anew()):
                break
            on_events(told)
            result = await self._processes.run_turn(prompt, on_events)
        return result


class ClaudeCodeAgent:
    """Runs claude on a transport, for all sessions at once."""

    def __init__(
        self,
        command: str | tuple[str, ...] | None,
        settings: ClaudeCodeSettings,
        clock: Callable[[], float],
    ) -> None:
        self._command = command
        self._settings = settings
        self._clock = clock

    @asynccontextmanager
    async def session(self, params: SessionParams) -> AsyncIterator[Session]:
        """Check workspace and program, in this order; start no process.

        The id is known before the first launch, so that it can be stored before. Entering raises
        AgentError and TransportError.
        """
        await check_workspace(params.transport, params.workspace)
        argv = await resolve_command(
            self._command, DEFAULT_COMMAND, params.transport, params.env.get("PATH")
        )
        resume = params.resume_session_id
        if params.adopted is not None:
            resume = msgspec.json.decode(params.adopted, type=_TurnMemo).session_id
        conversation = _Conversation(argv, self._settings, self._clock, resume, params.mcp_server)
        secrets = [params.env.get(name, "").strip() for name in CLAUDE_SECRETS]
        async with turn_processes(
            "claude-code", params, conversation.command, secrets, conversation.adopt
        ) as processes:
            yield _ClaudeSession(conversation, processes)
