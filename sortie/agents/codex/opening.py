"""Open a thread in a process that has just started: greet, look at the login, resume or begin."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import trio
from msgspec import Struct

import sortie
from sortie.agents import SessionParams
from sortie.agents.codex.failures import LOGIN
from sortie.agents.codex.opening_params import thread_params
from sortie.agents.codex.process import CodexProcess
from sortie.agents.codex.settings import CodexSettings
from sortie.agents.protocol_process import Reply
from sortie.agents.protocol_session import Opened
from sortie.json_rpc import values
from sortie.json_rpc.events import Initialized, RequestAnswered, RequestFailed, SessionOpened
from sortie.model import AgentError, ErrorKind

_RETRY_PAUSE = 1.0
_ELSEWHERE = re.compile(r"active writer", re.IGNORECASE)


class ThreadOpening(Struct, frozen=True, kw_only=True):
    """What opening a thread depends on. ``has_key``: Codex is led to OpenAI with a key of the
    environment, so that it needs no login."""

    params: SessionParams
    settings: CodexSettings
    has_key: bool
    redacted: Callable[[str], str]

    @property
    def patience(self) -> float:
        """Seconds for the greeting, for an old thread and for a new one, each."""
        return max(self.settings.start_timeout_ms / 1000, self.params.read_timeout)


async def open_thread(process: CodexProcess, opening: ThreadOpening, resume: str | None) -> Opened:
    """Greet Codex and have a thread in its process. Raises AgentError and TransportError."""
    client = process.client
    greet = partial(client.initialize, "sortie", "Sortie", sortie.__version__)
    greeting = await _within(process, opening, greet)
    if not isinstance(greeting, Initialized):
        raise _refused(greeting, opening)
    if values.text(greeting.result, "userAgent") is None:
        message = "what agent.command starts is no app-server of Codex; set `codex app-server`"
        raise AgentError(ErrorKind.RESPONSE_ERROR, message)
    if not opening.has_key:
        await _require_login(process, opening)
    server = opening.params.mcp_server
    params = thread_params(opening.settings, opening.params.workspace, server)
    opened: SessionOpened | str | None = None
    if resume is not None:
        opened = await _resume(process, opening, params, resume)
    lost = opened if isinstance(opened, str) else None
    if not isinstance(opened, SessionOpened):
        reply = await _within(process, opening, partial(client.open, params))
        if not isinstance(reply, SessionOpened):
            raise _refused(reply, opening)
        opened = reply
        process.reader.usage.begun(opened.session_id)
    process.reader.usage.model = values.text(opened.result, "model") or opening.settings.model
    return Opened(session_id=opened.session_id, lost=lost)


async def _require_login(process: CodexProcess, opening: ThreadOpening) -> None:
    """Raise AgentError where Codex needs a login and has none: each turn would fail, slowly."""
    reply = await _within(process, opening, process.client.read_account)
    if not isinstance(reply, RequestAnswered):
        return  # a version without it; the turn will tell
    if reply.result.get("requiresOpenaiAuth") is True and reply.result.get("account") is None:
        raise AgentError(ErrorKind.RESPONSE_ERROR, f"codex is not logged in: {LOGIN}")


async def _resume(
    process: CodexProcess, opening: ThreadOpening, params: Mapping[str, Any], thread_id: str
) -> SessionOpened | str:
    """Go on with a thread; return why that is not possible, where it is not."""
    resume = partial(process.client.open, params, thread_id)
    reply = await _within(process, opening, resume)
    if isinstance(reply, RequestFailed) and _ELSEWHERE.search(reply.message):
        await trio.sleep(_RETRY_PAUSE)  # another process of this run may just have ended
        reply = await _within(process, opening, resume)
    if isinstance(reply, SessionOpened):
        return reply
    assert isinstance(reply, RequestFailed)
    return opening.redacted(f"{reply.message} (error {reply.code})")


async def _within(
    process: CodexProcess, opening: ThreadOpening, begin: Callable[[], None]
) -> Reply:
    return await process.request_within(begin, opening.patience, "codex.start_timeout_ms")


def _refused(reply: Reply, opening: ThreadOpening) -> AgentError:
    """Return the error that no thread begins with."""
    assert isinstance(reply, RequestFailed)
    said = f"codex refused {reply.method}: {reply.message} (error {reply.code})"
    return AgentError(ErrorKind.RESPONSE_ERROR, opening.redacted(said))
