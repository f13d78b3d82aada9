"""Starts a program in a session of its own and says exactly why it could not."""

from __future__ import annotations

import errno
import os
import subprocess
from collections.abc import Iterable
from functools import partial

import trio

from sortie.model import ProgramNotFound, TransportError
from sortie.resources import Shortage, patiently, run_in_thread
from sortie.resources.descriptors import give_back_limit, inherited_limit
from sortie.resources.shortages import of_fork
from sortie.transports import Command
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


async def start(command: Command) -> trio.Process:
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
    return process


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
