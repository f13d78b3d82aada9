"""The checks of sandboxes on a remote host: each is entered, and programs in it try to get out."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager

import trio
from msgspec import Struct

from sortie import agents
from sortie.config.settings import Settings
from sortie.daemon.doctor.sandbox import (
    NOT_TRIED,
    SANDBOX_REMEDY,
    TRIES,
    sandbox_result,
    wanted_sandboxes,
    words_of,
)
from sortie.daemon.sandboxes import sandboxed_on_host
from sortie.model import RunId, SortieError, TransportError
from sortie.model.checks import Check, CheckResult, failed, passed
from sortie.transports import COOKIE, Command, Script, Transport
from sortie.transports.walls import SandboxedTransport

_RUN = RunId("doctor")
_LIMIT = 60.0
"""Seconds for all that is tried in one sandbox."""

_PULL_LIMIT = 600.0
"""The same, where an image may have to be pulled first."""

_SET_UP = """\
umask 077
place=$(mktemp -d -- "${HOME:-/tmp}/.sortie-doctor-XXXXXXXX") || exit 1
mkdir -- "$place/workspace" "$place/outside" && echo x >"$place/outside/canary" || exit 1
set -- $SSH_CONNECTION
printf '%s\\0' "$place" "$PPID" "${3:--}" "${4:-0}"
"""
"""Makes what a program is to stay away from; the servers are that of SSH, and what leads the login
is the process."""

_TAKE_AWAY = 'rm -rf -- "$1"'


class _Outside(Struct, frozen=True, kw_only=True):
    """What there is on a host: a directory, a process, and a server by its address and port."""

    place: str
    process: str
    address: str
    port: str


def host_sandbox_checks(
    settings: Settings, environ: Mapping[str, str], transport: Callable[[], Transport]
) -> Sequence[Check]:
    """Return a check for each sandbox that the top level and rules want, on one host; its
    ``transport`` is there once a login was."""
    return [_check(one, environ, transport) for one in wanted_sandboxes(settings)]


def _check(
    settings: Settings, environ: Mapping[str, str], transport: Callable[[], Transport]
) -> Check:
    limit = _PULL_LIMIT if settings.sandbox.kind == "container" else _LIMIT

    async def ask() -> CheckResult:
        with trio.move_on_after(limit):
            return await _tried(settings, environ, transport())
        return failed(f"{settings.sandbox.kind} did not answer in {limit:.0f} s", SANDBOX_REMEDY)

    rule = f".{settings.rule}" if settings.rule else ""
    return Check(name=f"sandbox{rule}", ask=ask, needs=("login",), remedy=SANDBOX_REMEDY)


async def _tried(
    settings: Settings, environ: Mapping[str, str], transport: Transport
) -> CheckResult:
    adapter = agents.ADAPTERS.load(settings.agent.kind)
    names = (*adapter.env_names, *settings.worker.ssh_pass_env)
    handed_over = {name: environ[name] for name in names if name in environ}
    wall = sandboxed_on_host(
        settings, transport, environ, handed_over, mirror=None, tell=lambda _: None
    )
    assert wall is not None
    try:
        if wall.wants_image:
            await wall.check()
            return passed(NOT_TRIED)
        async with _outside(transport) as found:
            said = await _tries(wall, found)
    except SortieError as exc:
        return failed(str(exc), SANDBOX_REMEDY)
    return sandbox_result(settings, said)


@asynccontextmanager
async def _outside(transport: Transport) -> AsyncIterator[_Outside]:
    """Make what a program is to stay away from, and remove it in the end."""
    made = await transport.run_script(
        Script(purpose="try a sandbox", text=_SET_UP, cwd="/", env={}, limit=4096)
    )
    words = [os.fsdecode(word) for word in made.split(b"\0")]
    if len(words) <= len(_Outside.__struct_fields__):
        raise TransportError(f"host {transport.host} did not say where a sandbox could be tried")
    place, process, address, port = words[:4]
    try:
        yield _Outside(place=place, process=process, address=address, port=port)
    finally:
        with trio.move_on_after(_LIMIT, shield=True):
            await transport.run_script(
                Script(
                    purpose="remove what a sandbox was tried with",
                    text=_TAKE_AWAY,
                    arguments=(place,),
                    cwd="/",
                    env={},
                    limit=0,
                )
            )


async def _tries(wall: SandboxedTransport, found: _Outside) -> set[str]:
    """Return a word for each thing that a program could do inside."""
    await wall.check()
    outside = f"{found.place}/outside"
    told = (f"{outside}/canary", f"{outside}/made", found.process, found.address, found.port)
    command = Command(
        argv=("/bin/sh", "-c", TRIES, "sh", *told),
        cwd=f"{found.place}/workspace",
        env={COOKIE: _RUN},
        grace=0.0,
    )
    async with wall.around(_RUN, command.cwd), wall.process(command) as process:
        output = b"".join([chunk async for number, chunk in process.output() if number == 1])
        await process.wait()
    return words_of(output)
