"""The adapter for Codex: a process of its app-server for each session."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import trio

from sortie.agents import SessionParams
from sortie.agents.codex.opening import ThreadOpening
from sortie.agents.codex.opening_params import key_name, sandbox_policy, start_arguments
from sortie.agents.codex.process import CodexProcess
from sortie.agents.codex.reader import CodexContext, CodexReader
from sortie.agents.codex.session import CodexSession
from sortie.agents.codex.settings import BASE_URL, DEFAULT_COMMAND, CodexSettings
from sortie.agents.launch import AgentLaunch, check_workspace, resolve_command
from sortie.agents.protocol_session import started
from sortie.model import AgentError, ErrorKind
from sortie.model.secrets import credentials_of, redactor
from sortie.transports import Command, Stdin
from sortie.transports.walls import SandboxedTransport


class CodexAgent:
    """Runs Codex on a transport; each session has a process of its own."""

    def __init__(self, command: str | tuple[str, ...] | None, settings: CodexSettings) -> None:
        self._command = command
        self._settings = settings

    @asynccontextmanager
    async def session(self, params: SessionParams) -> AsyncIterator[CodexSession]:
        """Check workspace and program, start Codex and have a session; end it with the block.

        Entering raises AgentError and TransportError.
        """
        await check_workspace(params.transport, params.workspace)
        path = params.env.get("PATH")
        argv = await resolve_command(self._command, DEFAULT_COMMAND, params.transport, path)
        settings, key = self._settings, key_name(self._settings, params.env)
        base_url = None if key is None else await _base_url(params)
        redacted = redactor(credentials_of(params.env))
        launch = AgentLaunch(
            agent="codex",
            command=Command(
                argv=(*argv, *start_arguments(settings, key, base_url)),
                cwd=params.workspace,
                env=params.env,
                stdin=Stdin.PIPE,
                grace=params.stop_grace,
            ),
            transport=params.transport,
            redacted=redacted,
        )
        context = CodexContext(
            workspace=params.workspace,
            settings=settings,
            redacted=redacted,
            permissions=params.permissions,
        )
        policy = sandbox_policy(settings, params.workspace)
        opening = ThreadOpening(
            params=params, settings=settings, has_key=key is not None, redacted=redacted
        )

        def new_process() -> CodexProcess:
            return CodexProcess(launch, CodexReader(context), policy)

        async with started(lambda nursery: CodexSession(opening, nursery, new_process)) as session:
            yield session


async def _base_url(params: SessionParams) -> str | None:
    """Return where OpenAI's API is, by the variable; None where it is not set.

    Codex does not read it. Behind a wall the variable may have another value than outside, as it
    leads to the proxy that puts credentials in: a program is asked there. Raises AgentError.
    """
    given = params.env.get(BASE_URL, "").strip()
    if isinstance(params.transport, SandboxedTransport):
        given = await _inside(params)
    if "@" in given:
        message = (
            f"{BASE_URL} holds a name or a password; it would be seen by all users of the host"
        )
        raise AgentError(ErrorKind.ADAPTER_SETTINGS, message)
    return given or None


async def _inside(params: SessionParams) -> str:
    """Return the variable's value behind the wall."""
    command = Command(
        argv=("/bin/sh", "-c", f'printf %s "${{{BASE_URL}-}}"'),
        cwd=params.workspace,
        env=params.env,
        grace=params.stop_grace,
    )
    said = bytearray()
    with trio.move_on_after(max(params.read_timeout, 30.0)):
        async with params.transport.process(command) as process:
            async for source, chunk in process.output():
                if source == 1:
                    said += chunk[:4096]
            end = await process.wait()
        if end.status == 0:
            return said.decode(errors="replace").strip()
    message = f"behind the sandbox {BASE_URL} could not be asked for"
    raise AgentError(ErrorKind.RESPONSE_ERROR, message)
