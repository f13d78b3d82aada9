"""Bubblewrap: programs that see the system, their workspace and what they are given, and no more.

The programs start inside the PID namespace that each of a run has (``fork_server``), so the kernel
ends bubblewrap and all that is in it as it ends everything else.
"""

from __future__ import annotations

import os
import signal
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from functools import partial
from shutil import which

from msgspec import Struct
from msgspec.structs import replace

from sortie.model import ProgramNotFound, TransportError
from sortie.resources import run_in_thread
from sortie.transports import WRAPPED_STDIN, Command, Exit, Process, Transport
from sortie.transports.walls import GONE_VARIABLES, OF_USERS, SandboxedTransport
from sortie.transports.walls.run_network import RunNetwork

PROGRAM = "bwrap"
_WRAPPERS = 2
"""Bubblewrap and process 1 of the namespace that it makes stand above the program."""

SYSTEM = (
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/etc",
    "/opt",
    "/nix",
    "/snap",
    "/run/systemd/resolve",
    "/run/resolvconf",
)
"""What programs need of the system, where it is there. All else is not: /home, /srv, /var, /run."""

_SHARED = ("/.local", "/usr/local", "/home", "/root")
"""Whose ``bin`` holds programs that have nothing to do with each other."""
_LONGEST_LINE = 256
_ELF = b"\x7fELF"

_STARTED_BY = ("/bin/sh", "-c", f'exec setsid "$0" "$@" <&{WRAPPED_STDIN} {WRAPPED_STDIN}<&-')
"""Bubblewrap keeps its own stdin open for as long as the program runs, which may close it; and its
process 1 leads the session, which is not to be that of the program."""

_OF_SIGNALS = 128
_SIGNALS = frozenset(map(int, signal.Signals))

_OF_KERNEL = tuple(
    f"/proc/{name}"
    for name in ("sys", "sysrq-trigger", "irq", "bus", "fs", "acpi", "scsi", "mtrr", "pressure")
)
"""What the user root may write to without any capability, such as the core pattern. Others may not,
and a sandbox inside of this one could not mount /proc where a part of it is covered."""


class Enclosure(Struct, frozen=True, kw_only=True):
    """What programs find inside. ``write`` and ``read`` are paths, as far as they are there;
    ``own`` are directories that are made first, and may be written to. ``hide`` are taken away
    again. ``has_network`` is the host's network, or one that is made for
    it; without it there is none."""

    read: tuple[str, ...] = ()
    write: tuple[str, ...] = ()
    own: tuple[str, ...] = ()
    hide: tuple[str, ...] = ()
    has_network: bool = True


class BubblewrapTransport(SandboxedTransport):
    """This machine, whose programs start in bubblewrap, as the daemon's user."""

    def __init__(
        self, outside: Transport, enclosure: Enclosure, network: RunNetwork | None = None
    ) -> None:
        super().__init__(outside)
        self._enclosure = enclosure
        self._network = network
        self._works = False

    def process(self, command: Command) -> AbstractAsyncContextManager[Process]:
        """Start a program inside; see the port."""
        return self._process(command)

    @asynccontextmanager
    async def _process(self, command: Command) -> AsyncIterator[Process]:
        search_path = command.env.get("PATH", os.defpath)
        program = await self.outside.resolve_program(command.argv[0], search_path)
        await run_in_thread(partial(check_executable, program, search_path))
        found = replace(command, argv=(program, *command.argv[1:]))
        wrapped = await run_in_thread(partial(enclosed, found, self._enclosure))
        try:
            async with self._started(wrapped) as process:
                yield _ProcessInside(process)
        except ProgramNotFound as exc:
            raise TransportError(f"{exc}; install bubblewrap, or set sandbox.kind to none") from exc

    def _started(self, command: Command) -> AbstractAsyncContextManager[Process]:
        if self._network is None:
            return self.outside.process(command)
        return self._network.process(self.outside, command)

    async def check(self) -> None:
        """Start a program inside, once. Raises TransportError, and CredentialsError where the agent
        has no credential that could be put in."""
        if self._network is not None:
            self._network.check(os.environ)
        if self._works:
            return
        command = Command(
            argv=("/bin/sh", "-c", "exit 0"), cwd="/tmp", env=dict(os.environ), grace=0.0
        )
        async with self.process(command) as process:
            said = b"".join([chunk async for _, chunk in process.output()])
            exit_ = await process.wait()
        if exit_.status != 0:
            why = said.decode("utf-8", "replace").strip() or f"it ended with {exit_}"
            raise TransportError(
                f"bubblewrap cannot make a sandbox here: {why}; see docs/sandbox.md, or set"
                " sandbox.kind to none"
            )
        self._works = True


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


def enclosed(command: Command, enclosure: Enclosure) -> Command:
    """Return the command that starts another in bubblewrap; makes its own directories."""
    env = {name: value for name, value in command.env.items() if name not in GONE_VARIABLES}
    argv = (PROGRAM, *arguments(command, enclosure), "--", *_STARTED_BY, *command.argv)
    return replace(command, argv=argv, env=env, wrappers=command.wrappers + _WRAPPERS)


def arguments(command: Command, enclosure: Enclosure) -> Iterator[str]:
    """Yield bubblewrap's arguments; what comes later lies over what was named before."""
    workspace = os.path.realpath(command.cwd)
    home = os.path.realpath(command.env.get("HOME") or os.path.expanduser("~"))
    yield from ("--unshare-user-try", "--unshare-pid", "--unshare-ipc", "--unshare-uts")
    yield from ("--unshare-cgroup-try", "--die-with-parent", "--new-session", "--cap-drop", "ALL")
    if not enclosure.has_network:
        yield "--unshare-net"
    for path in SYSTEM:
        yield from ("--ro-bind-try", path, path)
    yield from ("--dev", "/dev", "--proc", "/proc")
    for path in _OF_KERNEL if os.geteuid() == 0 else ():
        yield from ("--ro-bind-try", path, path)
    for path in ("/tmp", "/var/tmp", *(() if home == "/" else (home,))):
        yield from ("--tmpfs", path)
    of_home = (os.path.join(home, name) for name in OF_USERS)
    read = (*of_home, *installation_of(command), *enclosure.read)
    write = (*enclosure.write, *enclosure.own)
    for path in enclosure.own:
        os.makedirs(path, mode=0o700, exist_ok=True)
    for path in read:
        yield from ("--ro-bind-try", path, path)
    for path in write:
        yield from ("--bind-try", path, path)
    for path in _seen(enclosure.hide, (*SYSTEM, *read, *write), workspace):
        yield from ("--tmpfs", path) if os.path.isdir(path) else ("--ro-bind", "/dev/null", path)
    yield from ("--bind", workspace, workspace, "--remount-ro", "/", "--chdir", workspace)


def installation_of(command: Command) -> Iterator[str]:
    """Yield the directories, outside of the system's, that a program needs to be started: those of
    its file, of what that links to, and of the interpreter of a script."""
    search_path = command.env.get("PATH", os.defpath)
    program = which(command.argv[0], path=search_path)
    while program is not None:
        for path in dict.fromkeys((os.path.abspath(program), os.path.realpath(program))):
            if not any(_lies_in(path, system) for system in SYSTEM):
                yield _installed_in(path)
        program = _interpreter(program, search_path)


def _installed_in(path: str) -> str:
    """Return the directory of an installation with the program at this path: the one that holds it,
    or all around a ``bin`` of its own."""
    before, found, _ = path.partition("/lib/node_modules/")
    if found:
        return before
    directory = os.path.dirname(path)
    above = os.path.dirname(directory)
    has_own = os.path.basename(directory) == "bin" and not above.endswith(_SHARED)
    return above if has_own and above != "/" else directory


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


def _seen(paths: Iterable[str], visible: Iterable[str], workspace: str) -> Iterator[str]:
    """Yield those that are there to be seen and do not hold the workspace, which would be hidden
    with them."""
    roots = [os.path.realpath(path) for path in visible]
    for path in dict.fromkeys(map(os.path.realpath, paths)):
        is_seen = os.path.lexists(path) and any(_lies_in(path, root) for root in roots)
        if is_seen and not _lies_in(workspace, path):
            yield path


def _lies_in(path: str, directory: str) -> bool:
    return path == directory or path.startswith(directory.rstrip("/") + "/")
