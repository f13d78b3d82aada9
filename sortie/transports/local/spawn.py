"""The start of a command's first process, in a session of its own, or why it could not start.

Rule 1: that process is not reaped until ``reap`` is called, so that meanwhile no other process or
group can have its number (on Linux).
"""

from __future__ import annotations

import errno
import os
import subprocess
from collections.abc import Iterable
from contextlib import suppress
from functools import partial

import trio

from sortie.model import ProgramNotFound, TransportError
from sortie.resources import (
    FIRST_PAUSE,
    LONGEST_PAUSE,
    Shortage,
    note,
    patiently,
    run_in_thread,
    shortage_behind,
)
from sortie.resources.descriptors import give_back_limit, inherited_limit, released_reserve
from sortie.resources.shortages import of_fork
from sortie.transports import Command, Exit
from sortie.transports.identity import identity_of
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
_LOOK_AGAIN = 0.1  # seconds between looks at a child while there is no descriptor to wait on


async def spawn(command: Command) -> ChildProcess:
    """Start a program, its output in pipes; nothing runs where this raises.

    Raises ProgramNotFound where trying again cannot help, and TransportError; where a shortage
    stands in the way, only after it has lasted for some time.
    """
    search_path = command.env.get("PATH", os.defpath)
    program = await run_in_thread(find_program, command.argv[0], search_path)
    try:
        process = await patiently(partial(_open, command, program))
    except Shortage as exc:
        raise TransportError(f"could not start {program}: {exc}") from exc
    except OSError as exc:
        raise _translated(exc, command, program) from exc
    give_back_limit(process.pid)
    return await _rooted(process)


async def _open(command: Command, program: str) -> trio.Process:
    try:
        with inherited_limit():
            return await trio.lowlevel.open_process(
                command.argv,
                executable=program,
                cwd=command.cwd,
                env=command.env,
                stdin=subprocess.DEVNULL if command.stdin is None else subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,
            )
    except OSError as exc:
        shortage = of_fork(exc)
        if shortage is not None:
            raise shortage from exc
        raise


def _translated(exc: OSError, command: Command, program: str) -> TransportError:
    if exc.filename == command.cwd:
        return TransportError(
            f"could not start {program} in {command.cwd}: {exc.strerror};"
            " the directory has to exist and to be accessible"
        )
    number = exc.errno or 0
    if number == errno.ENOENT:
        return ProgramNotFound(f"could not start {program}: {_missing_part(program)}")
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
    for name, value in command.env.items():
        if not name or "=" in name or not _speakable((name, value)):
            raise TransportError(
                f"could not start {command.argv[0]!r}: the environment variable {name!r} cannot"
                " be passed on (a NUL character, an invalid name or invalid Unicode)"
            )


def _speakable(texts: Iterable[str]) -> bool:
    try:
        return not any(b"\0" in os.fsencode(text) for text in texts)
    except UnicodeEncodeError:
        return False


class ChildProcess:
    """A child of this process; it has its own session and process group.

    ``pinned`` tells whether its number is still its own.
    """

    def __init__(self, process: trio.Process) -> None:
        self._process = process
        self._exit: Exit | None = None
        self.pid = process.pid
        self.pinned = True
        self.identity = identity_of(process.pid)
        self.stdin, self.stdout, self.stderr = process.stdin, process.stdout, process.stderr

    def exit(self) -> Exit | None:
        """Return how the process ended, or None while it runs; does not reap it."""
        if self._exit is None and self.pinned:
            try:
                state = os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOWAIT | os.WNOHANG)
            except ChildProcessError:
                self._exit, self.pinned = Exit(), False
            else:
                if state is not None:
                    by_signal = state.si_code != os.CLD_EXITED
                    self._exit = (
                        Exit(signal=state.si_status) if by_signal else Exit(status=state.si_status)
                    )
        return self._exit

    async def exited(self) -> Exit:
        """Wait until the process has exited; several tasks may wait at once."""
        while True:
            exit_ = self.exit()
            if exit_ is not None:
                await trio.lowlevel.checkpoint()
                return exit_
            await self._wait()

    async def reap(self) -> None:
        """Give the pid back, if the process has exited; does nothing while it runs."""
        if self.exit() is not None and self.pinned:
            self.pinned = False
            await self._process.wait()

    async def _wait(self) -> None:
        try:
            pidfd = os.pidfd_open(self.pid)
        except (AttributeError, OSError) as exc:
            shortage = shortage_behind(exc)
            if shortage is not None:
                note(shortage)
                await trio.sleep(_LOOK_AGAIN)
                return
            code = await self._process.wait()
            self.pinned = False
            self._exit = Exit(status=code) if code >= 0 else Exit(signal=-code)
            return
        try:
            await trio.lowlevel.wait_readable(pidfd)
        finally:
            with suppress(OSError):
                os.close(pidfd)


async def _rooted(process: trio.Process) -> ChildProcess:
    """Return the root of a command that was started, whatever stands in the way of knowing it."""
    pause = FIRST_PAUSE
    root = _try_root(process)
    while root is None:
        # Cancelling this would leave a process that nobody knows.
        with trio.CancelScope(shield=True):
            await trio.sleep(pause)
        pause = min(pause * 2, LONGEST_PAUSE)
        root = _try_root(process)
    return root


def _try_root(process: trio.Process) -> ChildProcess | None:
    """Return the root, None where a shortage stands in the way."""
    try:
        return ChildProcess(process)
    except OSError as exc:
        shortage = shortage_behind(exc)
        if shortage is None:
            raise
        note(shortage)
    with released_reserve(), suppress(OSError):
        return ChildProcess(process)
    return None
