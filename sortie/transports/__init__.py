"""The port to the places where runs live: directories and processes, on one host.

Rule 1: a process started here is gone, with everything it started, when its block is left.
Rule 2: nothing above this package knows which kind of transport it has.
"""

from __future__ import annotations

import socket
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Collection,
    Coroutine,
    Mapping,
    Sequence,
)
from contextlib import AbstractAsyncContextManager
from enum import Enum, auto
from typing import Any, Protocol, TypeVar, runtime_checkable

import trio.abc
from msgspec import Struct

from sortie.model import ProcessIdentity, RunId
from sortie.model.hiding import repr_without
from sortie.transports.container_entrance import ContainerEntrance, HostEntrance

T = TypeVar("T")

COOKIE = "SORTIE_RUN_ID"
"""The environment variable that holds a run's id, and by which its processes are known."""

WRAPPED_STDIN = 3
"""The descriptor at which wrappers find the stdin of the program that they start."""

PROXY_PORT = 3128
"""The port on 127.0.0.1 of a network of its own at which a program finds a way out."""

HOST_VARIABLES = (
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "LANG",
    "LC_ALL",
    "LC_CTYPE",
    "TZ",
    "TMPDIR",
)
"""What a program on a remote host gets from its login there, where its command does not say."""


class Stdin(Enum):
    """What may stand in the place of a stdin that is known before the start."""

    PIPE = auto()
    """It is written while the program runs, see ``Process.stdin``."""


class Command(Struct, frozen=True, kw_only=True):
    """A program to start.

    ``argv[0]`` is an absolute path or is looked up on the PATH in ``env``; ``env`` is the whole
    environment (on a remote host, besides HOST_VARIABLES), and what no log may show. ``stdin`` is
    given to the program and closed; None gives an empty stdin, PIPE one that stays open.
    ``grace`` is the time in seconds between SIGTERM and SIGKILL. SIGTERM is for the program that is
    so many ``wrappers`` below the one that is started; these get the stdin as WRAPPED_STDIN, and an
    empty one for themselves. ``listener`` is given a socket that listens
    at PROXY_PORT of a network that the program has for itself; without it, it has the host's, or
    that of its ``container``. There ``argv[0]`` and ``cwd`` are looked up in that.
    ``on_record`` is awaited before the program starts, with the name by which another daemon can go
    on with it, where its transport keeps programs (see KeepsPrograms).
    """

    argv: tuple[str, ...]
    cwd: str
    env: Mapping[str, str]
    stdin: bytes | Stdin | None = None
    grace: float = 5.0
    wrappers: int = 0
    listener: Callable[[socket.socket], object] | None = None
    container: ContainerEntrance | HostEntrance | None = None
    on_record: Callable[[str], Awaitable[object]] | None = None

    __repr__ = repr_without("env", "stdin", "listener", "on_record")


class Script(Struct, frozen=True, kw_only=True):
    """A short script for a POSIX shell that only looks at something; ``purpose`` says what for.

    It sets no trap and does not become another program, or no answer comes. ``arguments`` are its
    $1 and so on. ``env`` it has for certain; it may have more variables of the host's, but none of
    a run. ``limit`` is how many bytes it may write to stdout.
    """

    purpose: str
    text: str
    arguments: tuple[str, ...] = ()
    cwd: str
    env: Mapping[str, str]
    limit: int
    bound: float = 60.0


class Exit(Struct, frozen=True, kw_only=True):
    """How a process ended: exactly one of ``status`` and ``signal`` is set, unless it was lost.

    ``by_us`` is True where Sortie had begun to end the process before it exited.
    """

    status: int | None = None
    signal: int | None = None
    by_us: bool = False


class Process(Protocol):
    """A running program and all that descends from it."""

    @property
    def identity(self) -> ProcessIdentity:
        """The root process."""
        ...

    @property
    def stdin(self) -> trio.abc.SendStream | None:
        """The program's stdin where its command asks for a PIPE, else None.

        ``send_all`` waits while the program does not read, and can be cancelled; then it is not
        known how much was sent. It raises BrokenResourceError where the program has closed its
        stdin or has exited, or its host was lost, ClosedResourceError after ``aclose``, and
        BusyResourceError where another task is sending. ``aclose`` is the end of the stdin for the
        program, and may be called again. Leaving the process's block closes it: what was not sent
        is not.
        """
        ...

    def output(self) -> AsyncIterator[tuple[int, bytes]]:
        """Yield ``(1, chunk)`` for stdout and ``(2, chunk)`` for stderr, as they come.

        Ends when both are closed, or shortly after the root process has exited, when only
        processes that it left behind still hold them open. May be iterated once.
        """
        ...

    async def wait(self) -> Exit:
        """Wait until the root process has exited; its output must be read at the same time.

        Raises HostError where the link to its host was lost first: how it ends is not known then.
        It and its tree end there by themselves, within the lease and the grace time.
        """
        ...

    async def end(self) -> Exit:
        """End the process and its whole tree for certain: SIGTERM, grace, SIGKILL, sweep, wait."""
        ...


class Files(Protocol):
    """One host's directories and small files."""

    async def together(self, work: Callable[[Files], Coroutine[Any, Any, T]]) -> T:
        """Do several operations, of which each may depend on what the ones before found.

        ``work`` awaits operations of the files that it is given, and nothing else: on this machine
        all of them are done in one thread.
        """
        ...

    async def make_directory(self, root: str, name: str) -> tuple[str, bool]:
        """Make ``root/name`` (mode 0700) inside the real root; return its real path and whether
        it is new.

        Raises TransportError where it exists and is no directory, or lies outside the root.
        """
        ...

    async def remove_directory(self, root: str, name: str) -> bool:
        """Remove ``root/name`` with all it holds, following no link; return whether it was there.

        Raises TransportError where it lies outside the root or something in it stays. No mount is
        crossed: where something is mounted in it, or on it, that is named and nothing is removed.
        """
        ...

    async def contained(self, root: str, path: str) -> bool:
        """Tell whether ``path`` is a directory whose real path lies inside the real root."""
        ...

    async def read_file(self, directory: str, name: str, limit: int) -> bytes | None:
        """Return at most ``limit`` bytes of a regular file below a directory; None if absent.

        ``name`` may have several parts; none of them may be a link. Raises TransportError where
        it is a link, a FIFO or anything else that is no regular file.
        """
        ...

    async def read_file_inside(
        self, root: str, directory: str, name: str, limit: int
    ) -> bytes | None:
        """Do as ``read_file`` where ``contained`` is true of the directory, else raise
        TransportError."""
        ...

    async def write_file(self, directory: str, name: str, content: bytes) -> None:
        """Write a small file below a directory, making its parent directories; follows no link."""
        ...

    async def remove_file(self, directory: str, name: str) -> None:
        """Remove a file (a link or FIFO too, never what it points to) below a directory, if any."""
        ...


@runtime_checkable
class ForwardsSockets(Protocol):
    """A transport whose host can have a socket of this machine."""

    def forwarded(self, path: str, here: str) -> AbstractAsyncContextManager[None]:
        """Have a unix socket listen at a ``path`` on the host, whose connections come to the one at
        ``here``, while the block lasts. A link that is lost cancels it, unless programs there
        outlive theirs. Raises TransportError."""
        ...


class Transport(Protocol):
    """One host's files and processes; ``host`` is its name, ``local`` for this machine."""

    @property
    def host(self) -> str: ...
    @property
    def files(self) -> Files: ...

    def process(self, command: Command) -> AbstractAsyncContextManager[Process]:
        """Start a program; leaving the block, for whatever reason, ends its whole tree.

        Raises ProgramNotFound, or TransportError where it could not be started.
        """
        ...

    async def run_script(self, script: Script) -> bytes:
        """Return what a script writes to stdout. It is ended when the task that waits is cancelled.

        Raises TransportError where it fails, or writes more than it may.
        """
        ...

    async def resolve_program(self, name: str, path: str | None = None) -> str:
        """Return the absolute path of an executable; raise ProgramNotFound."""
        ...

    async def sweep(
        self,
        run_ids: Collection[RunId],
        *,
        grace: float,
        roots: Mapping[RunId, ProcessIdentity] | None = None,
    ) -> int:
        """End every process of these runs, also those of an earlier daemon; return how many.

        A run's are those whose environment holds its id, its recorded root process (which may
        have replaced its environment) with the session and the group that it leads, and
        all that descends from these. A process whose environment names another run is no root.
        With them goes whatever else an earlier life of this daemon left, where that can be told.

        Raises ProcessesLeft where some stay that can still do something, after all others were
        ended. One that got SIGKILL counts as ended even where the kernel holds it (state D): no
        program of its runs again, only a call to the kernel that is under way may be completed.
        """
        ...

    async def clear(self, path: str, *, grace: float) -> int:
        """End what runs that are over left living in a directory; return how many it were.

        To live in it is to have it, or what is below it, as working directory. Call it before a
        run begins in a directory that others had. Raises ProcessesLeft, after all others were
        ended, where another process lives there: a person's shell, say, or a run that is under
        way. That process is left alone.
        """
        ...

    async def occupied(self, path: str) -> Sequence[int]:
        """Return the pids of the processes that live in ``path``, see ``clear``; links on the way
        to it are resolved."""
        ...

    def hurry(self) -> None:
        """Give no process any more grace, from now on and whatever is being ended already."""
        ...
