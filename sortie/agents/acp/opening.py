"""Open a session in a process that has just started: initialize, resume or begin, set options."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterator, Mapping
from datetime import datetime
from functools import partial
from typing import Any, Literal

import trio
from msgspec import Struct

import sortie
from sortie.agents import SessionParams
from sortie.agents.acp.asking import Asking
from sortie.agents.acp.conversations import Conversations
from sortie.agents.acp.failures import failure_of
from sortie.agents.acp.mcp_servers import session_servers
from sortie.agents.acp.process import AgentProcess
from sortie.agents.acp.reader import ReaderContext, UpdateReader
from sortie.agents.acp.settings import ALLOW_ALL, AcpSettings
from sortie.agents.acp.usage import model_of
from sortie.agents.protocol_process import Reply
from sortie.agents.protocol_session import NotResumed, Opened
from sortie.json_rpc import values
from sortie.json_rpc.events import Initialized, RequestAnswered, RequestFailed, SessionOpened
from sortie.model import AgentError, ErrorKind

_SHOWN = 10
_RETRY_PAUSE = 1.0
_ELSEWHERE = re.compile(r"active (?:writer|in another)", re.IGNORECASE)
_DIRECTORY = re.compile(r"\b(?:cwd|directory)\b", re.IGNORECASE)
_WRONG = (-32602, -32603)


class Opening(Struct, frozen=True, kw_only=True):
    """What opening a session depends on; ``now`` returns the time, with a zone."""

    params: SessionParams
    settings: AcpSettings
    conversations: Conversations
    redacted: Callable[[str], str]
    now: Callable[[], datetime]

    @property
    def patience(self) -> float:
        """Seconds for the greeting, for an old session and for a new one, each."""
        return max(self.settings.start_timeout_ms / 1000, self.params.read_timeout)


Wait = Callable[[float], Awaitable[None]]
"""Waits so many seconds, until the agent can go on with a session."""


async def open_session(
    process: AgentProcess, opening: Opening, resume: str | None, wait: Wait
) -> Opened:
    """Greet the agent and have a session in its process.

    Raises AgentError and TransportError, and NotResumed where the agent does not answer to
    ``resume``: then another process is needed.
    """
    greeting = await _greet(process, opening)
    agent = values.text(greeting.result, "agentInfo", "name") or ""
    context = ReaderContext(
        agent=agent,
        workspace=opening.params.workspace,
        settings=opening.settings,
        now=opening.now,
        redacted=opening.redacted,
        server=None if opening.params.mcp_server is None else opening.params.mcp_server.name,
        permissions=opening.params.permissions,
    )
    process.reader = UpdateReader(context)
    opened: SessionOpened | str = ""
    if resume is not None:
        if seconds := opening.conversations.wait_before(agent, resume):
            await wait(seconds)
        opened = await _resume(process, opening, greeting, resume)
    lost = opened if isinstance(opened, str) and resume is not None else None
    if not isinstance(opened, SessionOpened):
        opened = await _begin(process, opening)
    id_ = opened.session_id
    process.reader.usage.model = opening.settings.model or model_of(opened.result)
    cost = opening.conversations.opened(id_, resumed=id_ == resume)
    if process.reader.usage.cost is None:  # else it was told as the session was loaded
        process.reader.usage.cost = cost
    mode = await _choose(process, process.reader.asking, opening, opened.result)
    told = f"[mode] {mode} was set: acp.permissions denies what it asks about" if mode else None
    return Opened(session_id=id_, lost=lost, told=told)


async def _greet(process: AgentProcess, opening: Opening) -> Initialized:
    greet = partial(process.client.initialize, "sortie", "Sortie", sortie.__version__)
    reply = await _within(process, opening, greet)
    if isinstance(reply, Initialized):
        return reply
    raise _refused(reply, opening)


async def _begin(process: AgentProcess, opening: Opening) -> SessionOpened:
    servers = session_servers(opening.params.mcp_server)
    begin = partial(process.client.open, opening.params.workspace, servers=servers)
    reply = await _within(process, opening, begin)
    if isinstance(reply, SessionOpened):
        return reply
    raise _refused(reply, opening)


async def _resume(
    process: AgentProcess, opening: Opening, greeting: Initialized, session_id: str
) -> SessionOpened | str:
    """Go on with a session; return why that is not possible, where it is not."""
    able = values.mapping(greeting.result, "agentCapabilities")
    how: Literal["session/resume", "session/load"]
    if isinstance(values.mapping(able, "sessionCapabilities").get("resume"), dict):
        how = "session/resume"
    elif able.get("loadSession") is True:
        how = "session/load"
    else:
        return "the agent cannot go on with earlier sessions"
    servers, reply = session_servers(opening.params.mcp_server), None
    begin = partial(process.client.open, opening.params.workspace, how, session_id, servers)
    for attempt in range(2):
        with trio.move_on_after(opening.patience):
            reply = await process.request(begin)
        if reply is None:
            raise NotResumed
        if isinstance(reply, SessionOpened):
            return reply
        said = reply.message if isinstance(reply, RequestFailed) else ""
        if attempt == 0 and _ELSEWHERE.search(said):
            await trio.sleep(_RETRY_PAUSE)  # another process of this run may just have ended
            continue
        break
    assert isinstance(reply, RequestFailed)
    failure = failure_of(reply, ErrorKind.TURN_FAILED)
    if failure.kind is ErrorKind.RESPONSE_ERROR:  # without a login a new one would fail, too
        raise AgentError(failure.kind, opening.redacted(failure.message))
    return opening.redacted(failure.message)


async def _choose(
    process: AgentProcess, asking: Asking, opening: Opening, session: Mapping[str, Any]
) -> str | None:
    """Set what the settings name, and have the agent ask about what they deny.

    Return the mode that was set for that. Raises AgentError where the agent does not ask.
    """
    asking.take(session)
    settings, mode = opening.settings, asking.mode_to_set()
    chosen = list(_settings(settings, settings.mode or mode, session))
    if asking.must_not_allow_all() and ALLOW_ALL not in settings.options:
        chosen.append(_option(ALLOW_ALL, "off"))
    for method, params in chosen:
        reply = await _within(process, opening, partial(process.client.set, method, params))
        if isinstance(reply, RequestFailed):
            raise _refused(reply, opening)
        assert isinstance(reply, RequestAnswered)
        if method == "session/set_mode":  # the answer is empty
            asking.take({"currentModeId": params["modeId"]})
        asking.take(reply.result)
    if (failure := asking.refusal()) is not None:
        raise AgentError(failure.kind, opening.redacted(failure.message))
    return mode


async def _within(process: AgentProcess, opening: Opening, begin: Callable[[], None]) -> Reply:
    return await process.request_within(begin, opening.patience, "acp.start_timeout_ms")


def _refused(reply: Reply, opening: Opening) -> AgentError:
    """Return the error that no session begins with."""
    assert isinstance(reply, RequestFailed)
    failure = failure_of(reply, ErrorKind.RESPONSE_ERROR)
    kind = failure.kind
    opens = reply.method in ("session/new", "session/load", "session/resume")
    if opens and reply.code in _WRONG and _DIRECTORY.search(reply.message):
        kind = ErrorKind.INVALID_WORKSPACE_CWD
    return AgentError(kind, opening.redacted(failure.message))


def _settings(
    settings: AcpSettings, mode: str | None, session: Mapping[str, Any]
) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the requests that set what the settings name. Raises AgentError where one cannot be."""
    options = {o["id"]: o for o in values.items(session, "configOptions") if values.text(o, "id")}
    for category, value in (("model", settings.model), ("mode", mode)):
        if value is None:
            continue
        found = [id_ for id_, o in options.items() if o.get("category") == category]
        if found:  # before the mode of old: its answer tells what the agent has made of it
            if options[found[0]].get("currentValue") != value:
                yield _option(found[0], value)
        elif category == "mode" and values.items(session, "modes", "availableModes"):
            yield "session/set_mode", {"modeId": value}
        elif category == "model" and values.items(session, "models", "availableModels"):
            yield "session/set_model", {"modelId": value}
        else:
            raise _lacks(f"acp.{category}", f"no choice of a {category}", sorted(options))
    for id_, chosen in settings.options.items():
        if id_ not in options:
            raise _lacks(f"acp.options.{id_}", "no such option", sorted(options))
        yield _option(id_, chosen)


def _option(id_: str, value: object) -> tuple[str, Mapping[str, Any]]:
    return "session/set_config_option", {"configId": id_, "value": value}


def _lacks(key: str, what: str, offered: list[str]) -> AgentError:
    shown = ", ".join(offered[:_SHOWN]) or "none"
    return AgentError(
        ErrorKind.RESPONSE_ERROR,
        f"{key} is set, but the agent offers {what}; its options: {shown}; leave the key out, or"
        " say it on the agent's command line",
    )
