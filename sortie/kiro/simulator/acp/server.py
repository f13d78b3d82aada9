"""What a client may ask the simulator for, one request after the other."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from typing import Any

from sortie import __version__
from sortie.acp import values, wire
from sortie.acp.wire import Notice, Request, Result
from sortie.kiro.simulator.acp.engines import (
    capabilities,
    tell_context,
    tell_missing_agent,
    tell_opened,
)
from sortie.kiro.simulator.acp.link import ClientGone, Link
from sortie.kiro.simulator.acp.replay import replay
from sortie.kiro.simulator.acp.session import Session, agent_named
from sortie.kiro.simulator.acp.turn import PromptFailed, Surroundings, Turn
from sortie.kiro.simulator.actions import ActionError
from sortie.kiro.simulator.agent_file import Agent
from sortie.kiro.simulator.arguments import Acp, is_session_id
from sortie.kiro.simulator.console import Console
from sortie.kiro.simulator.directives import DirectiveError, Directives, read_directives
from sortie.kiro.simulator.keeping import StoreTrouble
from sortie.kiro.simulator.sessions import Sessions

PROTOCOL_VERSION = 1
_MOST_SESSIONS = 100


class Refused(Exception):
    """A request is answered with an error."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


class Server:
    """Answers the requests of one client; its sessions last as long as the process."""

    def __init__(
        self, options: Acp, do: Directives, around: Surroundings, console: Console
    ) -> None:
        self._options = options
        self._do = do
        self._around = around
        self._link = around.link
        self._console = console
        self._sessions: dict[str, Session] = {}
        self._later: list[Callable[[], None]] = []
        self._methods: dict[str, Callable[[Mapping[str, Any]], Any]] = {
            "initialize": self._initialize,
            "session/new": self._new,
            "session/load": self._load,
            "session/prompt": self._prompt,
        }
        if options.agent_engine == "v2":
            self._methods |= {
                "session/set_mode": self._set_agent,
                "session/set_model": self._set_model,
            }
        else:
            self._methods |= {
                "session/set_config_option": self._set_option,
                "session/list": self._list,
                "session/close": self._close,
                "session/delete": self._delete,
            }

    def serve(self) -> None:
        """Answer until nothing comes any more."""
        try:
            while (message := self._link.next()) is not None:
                if isinstance(message, Request):
                    self._link.write(self._answer(message))
                    later, self._later = self._later, []
                    for each in later:
                        each()
                elif isinstance(message, wire.BadRequest):
                    self._link.write(wire.error(None, wire.INVALID_REQUEST, "the id is none"))
                elif isinstance(message, Notice | Result | wire.ErrorAnswer):
                    pass  # a cancellation of no turn, or an answer that nobody waits for any more
        except ClientGone:
            pass

    def _answer(self, request: Request) -> bytes:
        method = self._methods.get(request.method)
        try:
            if method is None:
                raise Refused(wire.METHOD_NOT_FOUND, f"Method not found: {request.method}")
            return wire.result(request.id, method(request.params))
        except Refused as refused:
            return wire.error(request.id, refused.code, str(refused))
        except DirectiveError as error:
            message = f"simulator directive: {error}"
            return wire.error(request.id, wire.INVALID_PARAMS, message)
        except (PromptFailed, ActionError, StoreTrouble, OSError) as error:
            return wire.error(request.id, wire.INTERNAL_ERROR, str(error))

    def _initialize(self, _params: Mapping[str, Any]) -> Any:
        return {
            "protocolVersion": PROTOCOL_VERSION,
            "agentCapabilities": capabilities(self._options.agent_engine),
            "authMethods": [],
            "agentInfo": {
                "name": "sortie-kiro-sim",
                "title": "A simulator, not Kiro CLI",
                "version": __version__,
            },
        }

    # Sessions

    def _new(self, params: Mapping[str, Any]) -> Any:
        session = self._opened(params)
        return {"sessionId": session.id, **session.offers(self._around.environment)}

    def _load(self, params: Mapping[str, Any]) -> Any:
        identity = values.text(params, "sessionId")
        if identity is None or not is_session_id(identity):
            raise Refused(wire.INVALID_PARAMS, "sessionId is none")
        if self._do.acp_load == "active":
            message = f"Session is active in another process (PID {os.getppid()})"
            raise Refused(wire.INTERNAL_ERROR, message)
        sessions = Sessions(self._around.environment)
        try:
            summary = sessions.own(identity)
        except StoreTrouble as error:
            if self._do.acp_load == "hang":
                while True:
                    time.sleep(3600)
            if self._do.acp_load == "exit":
                raise ClientGone(str(error)) from error
            if self._options.agent_engine == "v3":  # it makes what is not there
                return self._opened(params, identity).offers(self._around.environment)
            raise Refused(wire.INTERNAL_ERROR, str(error)) from error
        session = self._opened(params, identity)
        try:
            replay(self._link, identity, sessions.records_of(summary))
        except StoreTrouble as error:
            raise Refused(wire.INTERNAL_ERROR, str(error)) from error
        return session.offers(self._around.environment)

    def _opened(self, params: Mapping[str, Any], identity: str = "") -> Session:
        """Return a session that is open in the directory that was named."""
        directory = values.text(params, "cwd")
        if directory is None or not os.path.isabs(directory) or not os.path.isdir(directory):
            raise Refused(wire.INVALID_PARAMS, f"cwd is no absolute directory: {directory}")
        if not isinstance(params.get("mcpServers"), list):
            raise Refused(wire.INVALID_PARAMS, "mcpServers is missing")
        if len(self._sessions) >= _MOST_SESSIONS:
            raise Refused(wire.INTERNAL_ERROR, "too many sessions are open")
        self._authenticate()
        real, name = os.path.realpath(directory), self._options.agent
        agent = None if name is None else agent_named(name, real, self._around.environment)
        session = Session(self._options.agent_engine, real, agent or Agent(), identity)
        session.model = self._options.model
        self._sessions[session.id] = session
        if name is not None and agent is None:
            self._later.append(lambda: tell_missing_agent(self._link, session, name))
        self._later.append(lambda: tell_opened(self._link, session, self._around.environment))
        session.added = session.hooks(self._around.environment, self._console.warn).spawned()
        return session

    def _authenticate(self) -> None:
        """Have engine v3 ask the client for a token, unless it has one of its own."""
        if self._options.agent_engine == "v3" and not self._options.auth_method:
            answer = self._link.ask("_kiro/auth/getAccessToken", {})
            if not isinstance(answer, Result) or not values.text(answer.value, "accessToken"):
                raise Refused(wire.AUTH_REQUIRED, "the client has given no access token")

    def _session(self, params: Mapping[str, Any]) -> Session:
        session = self._sessions.get(values.text(params, "sessionId") or "")
        if session is None:
            raise Refused(wire.INVALID_PARAMS, "there is no such session")
        return session

    def _set_agent(self, params: Mapping[str, Any]) -> Any:
        session, name = self._session(params), values.text(params, "modeId") or ""
        agent = agent_named(name, session.directory, self._around.environment)
        if agent is None:
            raise Refused(wire.INVALID_PARAMS, f"there is no agent {name}")
        session.agent = agent
        return {}

    def _set_model(self, params: Mapping[str, Any]) -> Any:
        session, model = self._session(params), values.text(params, "modelId")
        if model is None or self._options.model is not None:
            raise Refused(wire.INVALID_PARAMS, "the model cannot be set: --model was given")
        session.model = model
        return {}

    def _set_option(self, params: Mapping[str, Any]) -> Any:
        session, value = self._session(params), params.get("value")
        match params.get("configId"):
            case "mode" if value in ("vibe", "spec", "plan"):
                session.mode = str(value)
            case "model" if isinstance(value, str) and value:
                session.model = value
            case "autopilot" if isinstance(value, bool):
                session.autopilot = value
            case other:
                raise Refused(wire.INVALID_PARAMS, f"{other} cannot be {value}")
        return {"configOptions": session.options()}

    def _list(self, params: Mapping[str, Any]) -> Any:
        directory = values.text(params, "cwd")
        return {"sessions": Sessions(self._around.environment).of_clients(directory)}

    def _close(self, params: Mapping[str, Any]) -> Any:
        del self._sessions[self._session(params).id]
        return {}

    def _delete(self, params: Mapping[str, Any]) -> Any:
        identity = values.text(params, "sessionId") or ""
        Sessions(self._around.environment).delete(identity)
        self._sessions.pop(identity, None)
        return {}

    # Turns

    def _prompt(self, params: Mapping[str, Any]) -> Any:
        session = self._session(params)
        texts = [
            values.text(block, "text") or values.text(block, "uri") or ""
            for block in values.items(params, "prompt")
        ]
        prompt = "\n".join(text for text in texts if text)
        if not prompt.strip():
            raise Refused(wire.INVALID_PARAMS, "the prompt is empty")
        turn = Turn(self._around, session, prompt.encode(errors="replace").decode())
        answer = turn.run()
        if (share := turn.context_share) is not None:
            self._later.append(lambda: tell_context(self._link, session, share))
        return answer


def serve(options: Acp, environment: Mapping[str, str], console: Console) -> None:
    """Be an agent for the client on stdin and stdout, until it leaves."""
    link = Link(0, 1)
    trusted = ("*",) if options.trust_all_tools else (options.trust_tools or "").split(",")
    around = Surroundings(
        link=link, console=console, environment=environment, trusted=tuple(filter(None, trusted))
    )
    Server(options, read_directives("", environment), around, console).serve()
