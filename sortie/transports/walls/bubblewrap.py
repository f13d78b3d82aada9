"""Bubblewrap: programs that see the system, their workspace and what they are given, and no more.

The programs start inside the PID namespace that each of a run has (``fork_server``), so the kernel
ends bubblewrap and all that is in it as it ends everything else.
"""

from __future__ import annotations

import os
import signal
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext, suppress
from shutil import which

from msgspec.structs import replace

from sortie.model import ProgramNotFound, TransportError
from sortie.resources import run_in_thread
from sortie.transports import Command, Exit, Process, Transport
from sortie.transports.walls import SandboxedTransport
from sortie.transports.walls.enclosure import (
    Enclosure,
    FoundPath,
    InsideView,
    Surroundings,
    enclosed,
    view_of,
)
from sortie.transports.walls.run_network import RunNetwork
from sortie.transports.walls.way_back import WayBack

_LONGEST_LINE = 256
_ELF = b"\x7fELF"

_OF_SIGNALS = 128
_SIGNALS = frozenset(map(int, signal.Signals))


class BubblewrapTransport(SandboxedTransport):
    """This machine, whose programs start in bubblewrap, as the daemon's user."""

    def __init__(
        self, outside: Transport, enclosure: Enclosure, network: RunNetwork | None = None
    ) -> None:
        super().__init__(outside)
        self.enclosure = enclosure
        self.network = network
        self._works = False

    def process(self, command: Command) -> AbstractAsyncContextManager[Process]:
        """Start a program inside; see the port."""
        return self._process(command)

    @asynccontextmanager
    async def _process(self, command: Command) -> AsyncIterator[Process]:
        async with self.way_back() as way:
            wrapped = await self.wrapped(command, way)
            try:
                async with self._started(wrapped, way) as process:
                    yield _ProcessInside(process)
            except ProgramNotFound as exc:
                message = f"{exc}; install bubblewrap, or set sandbox.kind to none"
                raise TransportError(message) from exc

    def way_back(self) -> AbstractAsyncContextManager[WayBack | None]:
        """Have a way to the proxy of a program, None where its transport makes one."""
        return nullcontext()

    async def wrapped(
        self,
        command: Command,
        way: WayBack | None = None,  # noqa: ARG002
    ) -> Command:
        """Return the command that starts another inside. Raises ProgramNotFound where that cannot
        be started anywhere."""
        search_path = command.env.get("PATH", os.defpath)
        program = await self.outside.resolve_program(command.argv[0], search_path)
        named = replace(command, argv=(program, *command.argv[1:]))
        return await run_in_thread(lambda: self._wrapped(named, search_path))

    def _wrapped(self, command: Command, search_path: str) -> Command:
        check_executable(command.argv[0], search_path)
        found = surroundings(command)
        view = view_of(self.enclosure, found)
        paths = find_paths(view)
        return enclosed(command, found, view, paths, has_network=self.enclosure.has_network)

    def _started(
        self, command: Command, way: WayBack | None
    ) -> AbstractAsyncContextManager[Process]:
        if self.network is None:
            return self.outside.process(command)
        listener = None if way is None else way.listener
        return self.network.process(self.outside, command, listener)

    async def check(self) -> None:
        """Start a program inside, once. Raises TransportError, and CredentialsError where the agent
        has no credential that could be put in."""
        if self.network is not None:
            self.network.check(self.credentials)
        if self._works:
            return
        command = Command(argv=("/bin/sh", "-c", "exit 0"), cwd="/tmp", env=self.environ, grace=0.0)
        async with self.process(command) as process:
            said = b"".join([chunk async for _, chunk in process.output()])
            exit_ = await process.wait()
        if exit_.status != 0:
            why = said.decode("utf-8", "replace").strip() or f"it ended with {exit_}"
            raise TransportError(
                f"bubblewrap cannot make a sandbox {self.place}: {why}; see docs/sandbox.md, or set"
                " sandbox.kind to none"
            )
        self._works = True

    @property
    def environ(self) -> Mapping[str, str]:
        """The environment of a program that is tried."""
        return dict(os.environ)

    @property
    def credentials(self) -> Mapping[str, str]:
        """The environment in which an agent's credentials are."""
        return os.environ

    @property
    def place(self) -> str:
        """Where programs start, in a sentence."""
        return "here"


class _ProcessInside:
    """A program in bubblewrap, which tells a death by a signal as a shell does: as 128 and its
    number. A program that exits with such a status looks as if it had been killed."""

    def __init__(self, outside: Process) -> None:
        self._outside = outside
        self.identity = outside.identity
        self.stdin = outside.stdin
        self.output = outside.output

    async def wait(self) -> Exit:
        return _as_of_program(await self._outside.wait())

    async def end(self) -> Exit:
        return _as_of_program(await self._outside.end())


def _as_of_program(told: Exit) -> Exit:
    number = (told.status or 0) - _OF_SIGNALS
    if number not in _SIGNALS:
        return told
    return Exit(signal=number, by_us=told.by_us)


def surroundings(command: Command) -> Surroundings:
    """Return what this machine has of what a program needs."""
    home = os.path.abspath(command.env.get("HOME") or os.path.expanduser("~"))
    return Surroundings(
        workspace=os.path.realpath(command.cwd),
        home=home,
        real_home=os.path.realpath(home),
        is_root=os.geteuid() == 0,
        started=tuple(_started(command)),
    )


def find_paths(view: InsideView) -> Mapping[str, FoundPath]:
    """Make a program's own directories, and return what is there of what it is shown, by name; of
    nothing where nothing is hidden."""
    for path in view.own:
        os.makedirs(path, mode=0o700, exist_ok=True)
    hidden = dict(_found(view.hide))
    return hidden and hidden | dict(_found(view.shown))


def _found(paths: Iterable[str]) -> Iterator[tuple[str, FoundPath]]:
    for path in paths:
        real = os.path.realpath(path)
        if os.path.lexists(real):
            yield path, FoundPath(path=real, is_directory=os.path.isdir(real))


def _started(command: Command) -> Iterator[str]:
    """Yield the files by which a program is started."""
    search_path = command.env.get("PATH", os.defpath)
    program = which(command.argv[0], path=search_path)
    while program is not None:
        yield from (os.path.abspath(program), os.path.realpath(program))
        program = _interpreter(program, search_path)


def check_executable(program: str, search_path: str) -> None:
    """Raise ProgramNotFound for a file that the kernel starts nowhere: bubblewrap runs already when
    it finds that out."""
    interpreter = _interpreter(program, search_path)
    if interpreter is not None and not os.path.exists(interpreter):
        raise ProgramNotFound(
            f"could not start {program}: its interpreter {interpreter} does not exist"
        )
    with suppress(OSError), open(program, "rb") as file:
        if not file.read(len(_ELF)).startswith((_ELF, b"#!")):
            raise ProgramNotFound(
                f"could not start {program}: it is neither a program of this machine nor a script"
                " that begins with #!"
            )


def _interpreter(program: str, search_path: str) -> str | None:
    """Return the program that a script is run by, None where it is no script."""
    try:
        with open(program, "rb") as file:
            line = file.readline(_LONGEST_LINE)
    except OSError:
        return None
    words = line[2:].split() if line.startswith(b"#!") else []
    if len(words) > 1 and os.path.basename(words[0]) == b"env":
        return which(os.fsdecode(words[-1]), path=search_path)
    return os.fsdecode(words[0]) if words else None
