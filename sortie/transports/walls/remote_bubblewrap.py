"""Bubblewrap on a remote host: what a program is shown there is found out by two short scripts.

The programs start inside the PID namespace that each of a run has there, as on this machine.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager, nullcontext

from msgspec.structs import replace

from sortie.model import ProgramNotFound, TransportError
from sortie.transports import Command, Script, Transport
from sortie.transports.remote.scripts import assignment, text
from sortie.transports.walls import GONE_VARIABLES
from sortie.transports.walls.bubblewrap import BubblewrapTransport
from sortie.transports.walls.enclosure import (
    STARTED_BY,
    Enclosure,
    FoundPath,
    InsideView,
    Surroundings,
    enclosed,
    view_of,
)
from sortie.transports.walls.run_network import RunNetwork
from sortie.transports.walls.way_back import WayBack, open_way_back

_LIMIT = 1 << 20
_ELF = assignment("ELF", "\x7fELF")


class RemoteBubblewrapTransport(BubblewrapTransport):
    """A remote host, whose programs start in bubblewrap, as the user of its login.

    ``handed_over`` is what agents there have of the daemon's environment."""

    def __init__(
        self,
        outside: Transport,
        enclosure: Enclosure,
        network: RunNetwork | None = None,
        handed_over: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(outside, enclosure, network)
        self._handed_over = handed_over or {}

    def way_back(self) -> AbstractAsyncContextManager[WayBack | None]:
        """Have a way to the proxy, which is on this machine."""
        return nullcontext() if self.network is None else open_way_back(self.outside)

    async def wrapped(self, command: Command, way: WayBack | None = None) -> Command:
        """Return the command that starts another inside. Raises ProgramNotFound."""
        found = await self._surroundings(command)
        view = view_of(self.enclosure, found)
        paths = await self._find_paths(view)
        named = replace(command, argv=(found.started[0], *command.argv[1:]))
        if way is not None:
            view = replace(view, read=(*view.read, way.directory))
        wrapped = enclosed(
            named,
            found,
            view,
            paths,
            has_network=self.enclosure.has_network,
            started_by=STARTED_BY if way is None else way.started_by,
        )
        # What a command does not name it may have from its login.
        gone = [word for name in GONE_VARIABLES for word in ("--unsetenv", name)]
        return replace(wrapped, argv=(wrapped.argv[0], *gone, *wrapped.argv[1:]))

    @property
    def environ(self) -> Mapping[str, str]:
        """The environment of a program that is tried: that of the login."""
        return {}

    @property
    def credentials(self) -> Mapping[str, str]:
        """The environment in which an agent's credentials are."""
        return self._handed_over

    @property
    def place(self) -> str:
        """Where programs start, in a sentence."""
        return f"on host {self.host}"

    async def _surroundings(self, command: Command) -> Surroundings:
        search_path = command.env.get("PATH", "")
        told = await self._told(
            f"look for the program {command.argv[0][:80]!r}",
            _script("find_program", "surroundings"),
            (command.argv[0], search_path, command.cwd),
            {name: command.env[name] for name in ("HOME",) if name in command.env},
        )
        if len(told) < _FACTS:
            raise self._nonsense()
        user, home, real_home, workspace, flaw, *started = told
        if flaw or not started:
            raise ProgramNotFound(f"{flaw or 'there is no program'} (on host {self.host})")
        if not all(path.startswith("/") for path in (home, real_home, workspace)):
            raise TransportError(
                f"could not start {command.argv[0][:80]} in {command.cwd} on host {self.host}: the"
                " directory has to exist and to be accessible"
            )
        return Surroundings(
            workspace=workspace,
            home=home,
            real_home=real_home,
            is_root=user == "0",
            started=tuple(path for path in started if path.startswith("/")),
        )

    async def _find_paths(self, view: InsideView) -> Mapping[str, FoundPath]:
        told = await self._told(
            "look for what a sandbox shows",
            _script("found_paths"),
            (str(len(view.own)), str(len(view.hide)), *view.own, *view.hide, *view.shown),
            {},
        )
        if len(told) % 3:
            raise self._nonsense()
        return {
            name: FoundPath(path=real, is_directory=kind == "d")
            for name, real, kind in zip(told[::3], told[1::3], told[2::3], strict=True)
        }

    async def _told(
        self, purpose: str, script: str, arguments: tuple[str, ...], env: Mapping[str, str]
    ) -> list[str]:
        """Return the words that a script tells, each of which ends with a NUL."""
        said = await self.outside.run_script(
            Script(
                purpose=purpose, text=script, arguments=arguments, cwd="/", env=env, limit=_LIMIT
            )
        )
        return [os.fsdecode(word) for word in said.split(b"\0")[:-1]]

    def _nonsense(self) -> TransportError:
        return TransportError(
            f"host {self.host} did not say what its sandbox has to show; look at its /bin/sh"
        )


_FACTS = 5


def _script(*names: str) -> str:
    return b"\n".join([_ELF, *map(text, names)]).decode()
