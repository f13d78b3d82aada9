"""The start of a command's first process, in a session of its own, or why it could not start.

Rule: all of a start is done in one thread, and every descriptor that it must have is open before
there is a process: one that runs is known, whatever is short then.
"""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterable
from contextlib import ExitStack, suppress
from functools import partial

import trio

from sortie.model import ProcessIdentity, ProgramNotFound, TransportError
from sortie.resources import (
    FIRST_PAUSE,
    LONGEST_PAUSE,
    Shortage,
    note,
    patiently,
    run_in_thread,
    shortage_behind,
)
from sortie.resources.descriptors import inherited_limit, released_reserve
from sortie.resources.process_identity import identity_of
from sortie.resources.shortages import of_fork
from sortie.transports import Command
from sortie.transports.container_entrance import HostEntrance
from sortie.transports.local.cgroups import RunGroup
from sortie.transports.local.child_process import ChildProcess
from sortie.transports.local.fork_client import (
    ForkServer,
    NoNamespace,
    NotEntered,
    Started,
    no_namespace,
)
from sortie.transports.local.pipes import Pipes
from sortie.transports.local.programs import find_program

_NOT_EXECUTABLE = {
    errno.EACCES: "it may not be executed (permissions, or a file system mounted noexec)",
    errno.EPERM: "this system forbids to execute it",
    errno.ENOEXEC: "it is neither a program of this machine nor a script that begins with #!",
    errno.ENOTDIR: "a part of its path is no directory",
    errno.ELOOP: "its path holds a loop of links",
    errno.ELIBBAD: "its loader is damaged",
}
_TRANSIENT = {
    errno.E2BIG: "its arguments and environment are too long for this system",
    errno.ETXTBSY: "the file is being written",
}
_MAX_SHEBANG = 256
_LOOKS, _LOOK_PAUSE = 2000, 0.001  # for a child that is not visible yet; 37 ms was the longest seen


async def spawn(
    command: Command,
    *,
    server: ForkServer | None = None,
    group: RunGroup | None = None,
    located: Callable[[str], object] = lambda _: None,
    started: Callable[[int], object] = lambda _: None,
) -> tuple[ChildProcess, Pipes]:
    """Start a program, its output in pipes; nothing runs where this raises.

    The fork server starts it, where there is one, and in a cgroup of its own where there is a
    ``group``. ``located`` is told the real path of the directory before there is a process, and
    ``started`` its pid right after the start, both in the thread that starts it. Where ``started``
    raises, the process is ended.
    Raises ProgramNotFound where trying again cannot help, and TransportError; where a shortage
    stands in the way, only after it has lasted for some time.
    """
    fork = _fork if server is None else partial(_fork_by_server, server, group)
    start = partial(run_in_thread, _start, command, fork, located, started)
    try:
        process, pipes, identity = await patiently(start)
    except Shortage as exc:
        raise TransportError(f"could not start {command.argv[0]}: {exc}") from exc
    if isinstance(identity, Shortage):
        identity = await _identified(process.pid, identity)
    return ChildProcess(process, identity), pipes


Fork = Callable[[Command, str, tuple[int, int, int]], "subprocess.Popen[bytes] | Started"]
"""Starts a program by its command, its path and the descriptors of stdin, stdout and stderr."""


def _start(
    command: Command,
    fork: Fork,
    located: Callable[[str], object],
    started: Callable[[int], object],
) -> tuple[subprocess.Popen[bytes] | Started, Pipes, ProcessIdentity | Shortage]:
    """Start a program; a shortage may keep its identity from being read."""
    located(os.path.realpath(command.cwd))
    program = command.argv[0]
    if command.container is None:
        program = find_program(program, command.env.get("PATH", os.defpath))
    with Pipes.opened(command) as (pipes, given):
        try:
            process = fork(command, program, given)
        except OSError as exc:
            shortage = of_fork(exc)
            if shortage is not None:
                raise shortage from exc
            raise _translated(exc, command, program) from exc
        told = False
        try:
            started(process.pid)
            told = True
        finally:
            if not told:
                os.kill(process.pid, signal.SIGKILL)
                os.waitpid(process.pid, 0)
    return process, pipes, _identity_once_seen(process.pid)


def _fork(command: Command, program: str, given: tuple[int, int, int]) -> subprocess.Popen[bytes]:
    stdin, stdout, stderr = given
    with inherited_limit():
        return subprocess.Popen(
            command.argv,
            executable=program,
            cwd=command.cwd,
            env=command.env,
            stdin=stdin,
            stdout=stdout,
            stderr=stderr,
            start_new_session=True,
        )


def _fork_by_server(
    server: ForkServer,
    group: RunGroup | None,
    command: Command,
    program: str,
    given: tuple[int, int, int],
) -> Started:
    stdin, stdout, stderr = given
    assert not isinstance(command.container, HostEntrance)
    with ExitStack() as opened:
        if stdin == subprocess.DEVNULL:
            stdin = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
            opened.callback(os.close, stdin)
        started = server.start(
            command.argv,
            program=program,
            cwd=command.cwd,
            env=command.env,
            stdio=(stdin, stdout, stderr),
            cgroup="" if group is None else group.make(),
            wrappers=command.wrappers,
            listener=command.listener,
            container=command.container,
        )
    if group is not None:
        group.entered = started.in_cgroup
    return started


def _translated(exc: OSError, command: Command, program: str) -> TransportError:
    if exc.filename == command.cwd and command.cwd != program:
        return TransportError(
            f"could not start {program} in {command.cwd}: {exc.strerror};"
            " the directory has to exist and to be accessible"
        )
    number = exc.errno or 0
    if isinstance(exc, NotEntered):
        return TransportError(
            f"could not start {program} in its container: {exc.strerror}; the container may have"
            " been removed, or this process may not enter it"
        )
    if isinstance(exc, NoNamespace):
        return TransportError(f"could not start {program}: {no_namespace(exc)}")
    if number == errno.ENOENT:
        if command.container is None:
            missing = _missing_part(program)
        else:
            what = "it" if exc.filename2 is None else f"its interpreter {exc.filename2}"
            missing = f"{what} does not exist in the container"
        return ProgramNotFound(f"could not start {program}: {missing}")
    if number in _NOT_EXECUTABLE:
        return ProgramNotFound(f"could not start {program}: {_NOT_EXECUTABLE[number]}")
    return TransportError(f"could not start {program}: {_TRANSIENT.get(number, exc.strerror)}")


def _missing_part(program: str) -> str:
    """Say what is missing where a program is there and yet cannot be found."""
    try:
        with open(program, "rb") as file:
            first_line = file.read(_MAX_SHEBANG).split(b"\n", 1)[0]
    except OSError:
        return "it does not exist"
    if first_line.startswith(b"#!") and first_line[2:].strip():
        interpreter = os.fsdecode(first_line[2:].split()[0])
        return f"its interpreter {interpreter} does not exist"
    return "its loader does not exist; it was built for another system"


def check_speakable(command: Command) -> None:
    """Raise TransportError for what no program can be given, without repeating it."""
    if not command.argv:
        raise TransportError("could not start a program: the command is empty")
    if not _speakable((*command.argv, command.cwd)):
        raise TransportError(
            f"could not start {command.argv[0]!r}: an argument or the directory holds a NUL"
            " character or text that is not valid Unicode"
        )
    all_are = _speakable((*command.env, *command.env.values()))
    for name, value in command.env.items():
        if not name or "=" in name or not (all_are or _speakable((name, value))):
            raise TransportError(
                f"could not start {command.argv[0]!r}: the environment variable {name!r} cannot"
                " be passed on (a NUL character, an invalid name or invalid Unicode)"
            )


def _speakable(texts: Iterable[str]) -> bool:
    try:
        return b"\0" not in os.fsencode("".join(texts))
    except UnicodeEncodeError:
        return False


async def _identified(pid: int, shortage: Shortage) -> ProcessIdentity:
    """Return the identity of a process that was started, whatever stands in the way of it."""
    pause = FIRST_PAUSE
    while True:
        note(shortage)
        with released_reserve():
            identity = _try_identity(pid)
        if not isinstance(identity, Shortage):
            return identity
        shortage = identity
        # Cancelling this would leave a process without an owner.
        with trio.CancelScope(shield=True):
            await trio.sleep(pause)
        pause = min(pause * 2, LONGEST_PAUSE)


def _identity_once_seen(pid: int) -> ProcessIdentity | Shortage:
    """Return the identity of a child that was not waited for, so that it cannot be gone.

    A /proc that hides what one may not trace (``ProtectProc=invisible`` of a unit) hides a child,
    too, for some milliseconds: until it is wholly another program it may not be traced, since the
    daemon may not. Blocks.
    """
    for _ in range(_LOOKS):
        with suppress(FileNotFoundError):
            return _try_identity(pid)
        time.sleep(_LOOK_PAUSE)
    return _try_identity(pid)


def _try_identity(pid: int) -> ProcessIdentity | Shortage:
    try:
        return identity_of(pid)
    except OSError as exc:
        shortage = shortage_behind(exc)
        if shortage is None:
            raise
        return shortage
