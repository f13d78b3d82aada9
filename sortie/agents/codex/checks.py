"""What ``sortie doctor`` asks of Codex: whether there is a login, and whether its sandbox works."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

import trio

from sortie.agents import AgentLook
from sortie.agents.codex import keeps
from sortie.agents.codex.failures import LOGIN
from sortie.agents.codex.opening_params import key_name
from sortie.agents.codex.settings import DEFAULT_COMMAND, FULL_ACCESS, CodexSettings
from sortie.agents.launch import resolve_command
from sortie.lines import clean_line
from sortie.model.checks import Check, CheckResult, passed, warned
from sortie.model.texts import start_of
from sortie.transports import Command

_SERVER = "app-server"
_PATIENCE = 30.0
_SHOWN = 300
WALLED = f"set codex.sandbox to {FULL_ACCESS}, as the wall of sandbox.kind is around Codex then"
_BARE = f"let the daemon's user make user namespaces; or have a wall of sandbox.kind, and {WALLED}"


def checks(look: AgentLook) -> Sequence[Check]:
    """Return the checks; only a turn, which costs, shows if the login is accepted."""
    settings = look.settings
    assert isinstance(settings, CodexSettings)

    async def credential() -> CheckResult:
        found = _credential(settings, look.params.env)
        if found is not None:
            return passed(f"{found}; whether it is accepted is told by the first turn")
        where = "here to be handed to the hosts" if look.remote else "in the environment or on disk"
        return warned(f"there is no login for Codex {where}", LOGIN)

    async def sandbox() -> CheckResult:
        if settings.sandbox == FULL_ACCESS:
            return passed(f"codex.sandbox is {FULL_ACCESS}: Codex has no sandbox of its own")
        broken = await sandbox_hindrance(look)
        return passed("Codex's own sandbox works") if broken is None else warned(broken, _BARE)

    own = () if look.remote else (Check(name="codex-sandbox", ask=sandbox),)
    return (Check(name="credential", ask=credential), *own)


def _credential(settings: CodexSettings, env: Mapping[str, str]) -> str | None:
    """Say what Codex would log in with, None where nothing is known."""
    if settings.provider is not None and settings.provider != "openai":
        return f"codex.provider is {settings.provider}, which its own configuration describes"
    if (name := key_name(settings, env)) is not None:
        return f"{name} is set"
    (directory,) = keeps(env, ())
    path = os.path.join(directory, "auth.json")
    return f"there is a login in {path}" if os.path.isfile(path) else None


async def sandbox_hindrance(look: AgentLook) -> str | None:
    """Run a program that does nothing in Codex's sandbox, and say why that could not be.

    None where it works, is not used, or cannot be tried as ``agent.command`` names no app-server.
    Raises AgentError and TransportError.
    """
    params, settings = look.params, look.settings
    assert isinstance(settings, CodexSettings)
    if settings.sandbox == FULL_ACCESS:
        return None
    path = params.env.get("PATH")
    argv = await resolve_command(look.command, DEFAULT_COMMAND, params.transport, path)
    if _SERVER not in argv:
        return None
    before = argv[: argv.index(_SERVER)]
    command = Command(
        argv=(
            *before,
            "sandbox",
            "-c",
            'sandbox_mode="workspace-write"',
            "--",
            "/bin/sh",
            "-c",
            ":",
        ),
        cwd=params.workspace,
        env=params.env,
        grace=params.stop_grace,
    )
    said = bytearray()
    status: int | None = None
    with trio.move_on_after(_PATIENCE):
        async with params.transport.process(command) as process:
            async for _, chunk in process.output():
                said += chunk[:4096]
            status = (await process.wait()).status
    if status == 0:
        return None
    lines = [line for line in said.decode(errors="replace").splitlines() if line.strip()]
    last = start_of(clean_line(lines[-1]), _SHOWN) if lines else f"it ended with {status}"
    return f"Codex's own sandbox does not work here, so that no command of Codex would: {last}"
