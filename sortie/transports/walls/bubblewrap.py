"""Bubblewrap: programs that see the system, their workspace and what they are given, and no more.

The programs start inside the PID namespace that each of a run has (``fork_server``), so the kernel
ends bubblewrap and all that is in it as it ends everything else.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from shutil import which

from msgspec import Struct
from msgspec.structs import replace

from sortie.model import ProgramNotFound, TransportError
from sortie.resources import run_in_thread
from sortie.transports import Command, Process, Transport
from sortie.transports.walls import SandboxedTransport

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

_OF_USERS = (".gitconfig", ".config/git")
"""What of a home directory everybody sees: who commits."""

_SHARED = ("/.local", "/usr/local", "/home", "/root")
"""Whose ``bin`` holds programs that have nothing to do with each other."""
_LONGEST_LINE = 256

_GONE_VARIABLES = ("SSH_AUTH_SOCK", "DBUS_SESSION_BUS_ADDRESS", "XDG_RUNTIME_DIR", "TMPDIR")
"""They name sockets and directories that are not there."""


class Enclosure(Struct, frozen=True, kw_only=True):
    """What programs find inside. ``write`` and ``read`` are paths, as far as they are there;
    ``own`` are directories that are made first, and may be written to. ``hide`` are taken away
    again. ``has_network`` is the host's network."""

    read: tuple[str, ...] = ()
    write: tuple[str, ...] = ()
    own: tuple[str, ...] = ()
    hide: tuple[str, ...] = ()
    has_network: bool = True


class BubblewrapTransport(SandboxedTransport):
    """This machine, whose programs start in bubblewrap, as the daemon's user."""

    def __init__(self, outside: Transport, enclosure: Enclosure) -> None:
        super().__init__(outside)
        self._enclosure = enclosure
        self._works = False

    def process(self, command: Command) -> AbstractAsyncContextManager[Process]:
        """Start a program inside; see the port. The exit status of a program that a signal has
        killed is 128 and the signal's number."""
        return self._process(command)

    @asynccontextmanager
    async def _process(self, command: Command) -> AsyncIterator[Process]:
        wrapped = await run_in_thread(partial(enclosed, command, self._enclosure))
        try:
            async with self.outside.process(wrapped) as process:
                yield process
        except ProgramNotFound as exc:
            raise TransportError(f"{exc}; install bubblewrap, or set sandbox.kind to none") from exc

    async def check(self) -> None:
        """Start ``true`` inside, once. Raises TransportError."""
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


def enclosed(command: Command, enclosure: Enclosure) -> Command:
    """Return the command that starts another in bubblewrap; makes its own directories."""
    env = {name: value for name, value in command.env.items() if name not in _GONE_VARIABLES}
    argv = (PROGRAM, *arguments(command, enclosure), "--", *command.argv)
    return replace(command, argv=argv, env=env, wrappers=command.wrappers + _WRAPPERS)


def arguments(command: Command, enclosure: Enclosure) -> Iterator[str]:
    """Yield bubblewrap's arguments; what comes later lies over what was named before."""
    workspace = os.path.realpath(command.cwd)
    home = os.path.realpath(command.env.get("HOME") or os.path.expanduser("~"))
    yield from ("--unshare-user-try", "--unshare-pid", "--unshare-ipc", "--unshare-uts")
    yield from ("--unshare-cgroup-try", "--die-with-parent", "--new-session", "--cap-drop", "ALL")
    if not enclosure.has_network and command.listener is None:
        yield "--unshare-net"
    for path in SYSTEM:
        yield from ("--ro-bind-try", path, path)
    yield from ("--dev", "/dev", "--proc", "/proc")
    for path in ("/tmp", "/var/tmp", *(() if home == "/" else (home,))):
        yield from ("--tmpfs", path)
    of_home = (os.path.join(home, name) for name in _OF_USERS)
    installed = installation_of(command.argv[0], command.env.get("PATH", os.defpath))
    for path in (*of_home, *installed, *enclosure.read):
        yield from ("--ro-bind-try", path, path)
    for path in enclosure.own:
        os.makedirs(path, mode=0o700, exist_ok=True)
    for path in (*enclosure.write, *enclosure.own):
        yield from ("--bind-try", path, path)
    for path in _there(enclosure.hide, workspace):
        yield from ("--tmpfs", path) if os.path.isdir(path) else ("--ro-bind", "/dev/null", path)
    yield from ("--bind", workspace, workspace, "--remount-ro", "/", "--chdir", workspace)


def installation_of(program: str, search_path: str) -> Iterator[str]:
    """Yield the directories, outside of the system's, that a program needs to be started: those of
    its file, of what that links to, and of the interpreter of a script."""
    for path in dict.fromkeys((os.path.abspath(program), os.path.realpath(program))):
        if any(_lies_in(path, system) for system in SYSTEM):
            continue
        before, found, _ = path.partition("/lib/node_modules/")
        directory = os.path.dirname(path)
        above = os.path.dirname(directory)
        has_own = os.path.basename(directory) == "bin" and not above.endswith(_SHARED)
        yield before if found else above if has_own else directory
    interpreter = _interpreter(program, search_path)
    if interpreter is not None:
        yield from installation_of(interpreter, search_path)


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


def _there(paths: Iterable[str], workspace: str) -> Iterator[str]:
    """Yield those that exist and do not hold the workspace, which would be hidden with them."""
    for path in paths:
        real = os.path.realpath(path)
        if os.path.lexists(real) and not _lies_in(workspace, real):
            yield real


def _lies_in(path: str, directory: str) -> bool:
    return path == directory or path.startswith(directory.rstrip("/") + "/")
