"""A container engine of a remote host, podman or docker, and what else the host has for that."""

from __future__ import annotations

import os
from collections.abc import Sequence

from msgspec import Struct

from sortie.model import ProgramNotFound, TransportError
from sortie.transports import Script, Transport
from sortie.transports.remote.scripts import text
from sortie.transports.walls.container_engine import CAP_SYS_RESOURCE, ENGINES, ContainerEngine

_LIMIT = 4 << 20
"""Bytes of an answer, such as all that an engine knows of an image."""

_FACTS = 6

_STALE = "10m"
"""How old a container that has ended, or never began, has to be to be removed."""


class ContainerHost(Struct, frozen=True, kw_only=True):
    """What a host has for containers: the ``home`` of its user, its kind of ``machine``, the path
    of a ``python`` that starts programs in them, and an ``engine``."""

    home: str
    machine: str
    python: str
    engine: HostEngine


class HostEngine(ContainerEngine, frozen=True, kw_only=True):
    """An engine that is asked in the login's shell of a host, ``outside``."""

    outside: Transport

    async def _run(self, arguments: Sequence[str], bound: float) -> tuple[int, str, str]:
        said = await self.outside.run_script(
            Script(
                purpose=f"run {self.name} {arguments[0]}",
                text=text("engine").decode(),
                arguments=(self.program, *arguments),
                cwd="/",
                env={},
                limit=_LIMIT,
                bound=bound,
            )
        )
        answer, status, complaint = said.decode(errors="replace").rsplit("\0", 2)
        return int(status), answer, complaint.strip().rpartition("\n")[2]

    async def remove_ended(self, label: str) -> None:
        """Remove the containers with a label that have ended, some minutes after they were made."""
        ended = ("--filter", f"label={label}", "--filter", f"until={_STALE}")
        await self.ask("container", "prune", "--force", *ended)


async def find_container_host(outside: Transport, wanted: str | None) -> ContainerHost:
    """Return what a host has for containers, with the engine of this name or path, or the first
    that is installed.

    Raises ProgramNotFound, and TransportError where no container would be a wall.
    """
    names = ENGINES if wanted is None else (wanted,)
    said = await outside.run_script(
        Script(
            purpose="look for a container engine",
            text=text("container_host").decode(),
            arguments=names,
            cwd="/",
            env={},
            limit=_LIMIT,
        )
    )
    user, home, machine, capabilities, python, program = [
        *map(os.fsdecode, said.split(b"\0")),
        *("",) * 6,
    ][:6]
    if not program.startswith("/"):
        raise ProgramNotFound(
            f"sandbox.kind is container, but host {outside.host} has no {' and no '.join(names)};"
            " install podman there, or choose another kind"
        )
    if not python:
        raise ProgramNotFound(
            f"host {outside.host} has no python3 of 3.9 or newer in /usr/bin or /usr/local/bin,"
            " which enters containers there; install it, or choose another kind"
        )
    engine = HostEngine(program=program, environ={}, outside=outside)
    rootless = await engine.is_rootless()
    if user != "0" and not rootless:
        raise TransportError(
            f"{engine.name} of host {outside.host} runs its containers as root, and the login is"
            f" user {user}: a container would be no wall, as whoever may ask that engine is root in"
            " effect; use podman, or docker in its rootless mode"
        )
    bound = user == "0" and not int(capabilities, 16) >> CAP_SYS_RESOURCE & 1
    engine = HostEngine(
        program=program, environ={}, outside=outside, rootless=user != "0", limits_are_bound=bound
    )
    return ContainerHost(home=home, machine=machine, python=python, engine=engine)
