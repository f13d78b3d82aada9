"""The checks of sandboxes: each is entered, and programs in it try to get out."""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import trio

from sortie import agents
from sortie.agents import AgentLook, SessionParams
from sortie.agents.launch import resolve_command
from sortie.config.settings import Settings
from sortie.daemon.sandboxes import sandboxed
from sortie.model import RunId, SortieError
from sortie.model.checks import Check, CheckOutcome, CheckResult, failed, passed, warned
from sortie.resources import run_in_thread
from sortie.transports import COOKIE, Command
from sortie.transports.local import (
    LocalTransport,
    become_subreaper,
    establish_isolation,
    mark_of_database,
)
from sortie.transports.walls import SandboxedTransport

_RUN = RunId("doctor")
_LIMIT = 120.0
"""Seconds for all that is tried in one sandbox; an image may have to be fetched first."""

TRIES = """\
(echo x > inside) 2>/dev/null && echo works
cat "$1" >/dev/null 2>&1 && echo read
(echo x > "$2") 2>/dev/null && [ -s "$2" ] && echo wrote
[ -d "/proc/$3" ] && kill -0 "$3" 2>/dev/null && echo reached
command -v bash >/dev/null || { echo untried; exit; }
timeout 5 bash -c "exec 3<>/dev/tcp/$4/$5" 2>/dev/null && echo connected
:
"""
"""$1 is a file outside, $2 one that could be made there, $3 a process, $4 and $5 are the address
and the port of a server."""

NOT_TRIED = (
    "the engine answers; the image is what the base of the repository names, and is tried when a"
    " run begins"
)

SANDBOX_REMEDY = "see docs/sandbox.md for what each kind needs"


def sandbox_checks(settings: Settings, environ: Mapping[str, str]) -> Sequence[Check]:
    """Return a check for each sandbox that the top level and rules want, for runs here."""
    if settings.worker.hosts:
        return ()
    return [_check(one, environ) for one in wanted_sandboxes(settings)]


def wanted_sandboxes(settings: Settings) -> Sequence[Settings]:
    """Return the settings with each sandbox that the top level and rules want."""
    wanted = {one.sandbox: one for one in reversed(settings.every()) if one.sandbox.kind != "none"}
    return list(reversed(wanted.values()))


def _check(settings: Settings, environ: Mapping[str, str]) -> Check:
    async def ask() -> CheckResult:
        with trio.move_on_after(_LIMIT):
            return await _tried(settings, environ)
        late = f"{settings.sandbox.kind} did not answer in {_LIMIT:.0f} s"
        return failed(late, SANDBOX_REMEDY)

    rule = f".{settings.rule}" if settings.rule else ""
    return Check(name=f"sandbox{rule}", ask=ask, remedy=SANDBOX_REMEDY)


async def _tried(settings: Settings, environ: Mapping[str, str]) -> CheckResult:
    become_subreaper()
    isolation = await run_in_thread(
        establish_isolation, settings.isolation, mark_of_database(settings.db_path)
    )
    transport = LocalTransport(environ.get("PATH", ""), server=isolation.server)
    home = environ.get("HOME", "")
    place = home if os.access(home, os.W_OK) else None
    try:
        with TemporaryDirectory(prefix=".sortie-doctor-", dir=place) as directory:
            wall = sandboxed(
                settings, transport, environ, mirror=None, secret_files=(), tell=lambda _: None
            )
            assert wall is not None
            try:
                if wall.wants_image:
                    await wall.check()
                    return passed(NOT_TRIED)
                said = await _tries(wall, Path(directory), environ)
                if settings.sandbox.kind == "container":
                    await _find_agent(settings, wall, environ)
                hindrance = await _hindrance(settings, wall, Path(directory), environ)
            except SortieError as exc:
                return failed(str(exc), SANDBOX_REMEDY)
    finally:
        await transport.close()
    result = sandbox_result(settings, said)
    if result.outcome is CheckOutcome.OK and hindrance is not None:
        return warned(f"{settings.sandbox.kind}: {hindrance}", SANDBOX_REMEDY)
    return result


async def _hindrance(
    settings: Settings, wall: SandboxedTransport, place: Path, environ: Mapping[str, str]
) -> str | None:
    """Ask the agent's adapter what would keep the agent from its work inside."""
    adapter = agents.ADAPTERS.load(settings.agent.kind)
    if adapter.hindrance is None:
        return None
    workspace = str(place / "workspace")
    look = AgentLook(
        command=settings.agent.command,
        settings=settings.block(adapter.block_name),
        params=SessionParams(
            run_id=_RUN, workspace=workspace, transport=wall, env={**environ, COOKIE: _RUN}
        ),
    )
    async with wall.around(_RUN, workspace):
        return await adapter.hindrance(look)


async def _find_agent(
    settings: Settings, wall: SandboxedTransport, environ: Mapping[str, str]
) -> None:
    """Look for the agent's program inside. Raises AgentError."""
    default = agents.ADAPTERS.load(settings.agent.kind).default_command
    await resolve_command(settings.agent.command, default, wall, environ.get("PATH"))


async def _tries(wall: SandboxedTransport, place: Path, environ: Mapping[str, str]) -> set[str]:
    """Return a word for each thing that a program could do inside."""
    await wall.check()
    workspace, outside = place / "workspace", place / "outside"
    workspace.mkdir()
    outside.mkdir()
    (outside / "canary").write_text("x")
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        found = (outside / "canary", outside / "made", os.getpid(), "127.0.0.1", port)
        command = Command(
            argv=("/bin/sh", "-c", TRIES, "sh", *map(str, found)),
            cwd=str(workspace),
            env={**environ, COOKIE: _RUN},
            grace=0.0,
        )
        async with (
            wall.around(_RUN, str(workspace)),
            wall.process(command) as process,
        ):
            output = b"".join([chunk async for number, chunk in process.output() if number == 1])
            await process.wait()
    return words_of(output)


def words_of(output: bytes) -> set[str]:
    """Return the words that a program has said."""
    return set(output.decode("utf-8", "replace").split())


def sandbox_result(settings: Settings, said: set[str]) -> CheckResult:
    """Return what follows from the words that a program has said inside."""
    sandbox = settings.sandbox
    if "works" not in said:
        return failed(
            f"{sandbox.kind}: nothing can be written to a workspace inside", SANDBOX_REMEDY
        )
    open_to = {
        "read": "files outside can be read",
        "wrote": "files outside can be changed",
        "reached": "processes outside can be ended",
    }
    if sandbox.network != "full":
        open_to["connected"] = "servers of this machine can be reached"
    broken = [sentence for word, sentence in open_to.items() if word in said]
    if broken:
        told = f"{sandbox.kind}: " + ", ".join(broken)
        return (
            warned(told, SANDBOX_REMEDY)
            if sandbox.kind == "command"
            else failed(told, SANDBOX_REMEDY)
        )
    if sandbox.network == "full":
        network = "the network is the host's"
    elif "untried" in said:
        network = "whether it reaches servers was not tried, as there is no bash inside"
    else:
        network = "it reaches no server of this machine"
    wall = "a container" if sandbox.kind == "container" else sandbox.kind
    return passed(f"a program in {wall} reads, changes and ends nothing outside; {network}")
