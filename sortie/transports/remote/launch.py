"""What a host says while it starts a program, and what that means."""

from __future__ import annotations

import os

from msgspec import Struct

from sortie.model import (
    LEASE,
    HostError,
    HostTrouble,
    ProcessIdentity,
    ProgramNotFound,
    TransportError,
)
from sortie.model.secrets import spellings
from sortie.model.texts import end_of, start_of
from sortie.resources.lease import LeaseLost
from sortie.resources.process_identity import started_at
from sortie.transports import Command
from sortie.transports.remote.fence import LOST, UNLED, refused_leader
from sortie.transports.remote.remote_launch import RemoteLaunch
from sortie.transports.remote.scripts import quoted

_SECRET = 6  # characters of a value that is worth to be hidden
_STARTED = 19  # the start time, among the fields of /proc/<pid>/stat behind the program's name

_LOGIN_OUTPUT_SHOWN = 500  # bytes of what a login says before our script
HOST_REASON_LIMIT = 2000
"""Characters of a reason of the host that are shown."""

_NO_DIRECTORY = "the directory has to exist and to be accessible"
_TROUBLES = {
    "stdin": "its stdin could not be stored; look at the space in TMPDIR",
    "unpiped": "no FIFO for its stdin could be made; look at TMPDIR and for mkfifo",
    "unwatched": "no watchdog could be started; look at the limit of processes",
    "unkept": "no place for its output could be made; look at the space in TMPDIR",
}


class Bounds(Struct, frozen=True, kw_only=True):
    """Seconds: until the host's shell answers, then until the program has started, between our
    signs of life, and without them; and for which a program lives without a link, 0 where it does
    not."""

    handshake: float = 5.0
    start: float = 30.0
    beat: float = 10.0
    lease: float = LEASE
    reattach: float = 0.0


class RootProcess(Struct, frozen=True, kw_only=True):
    """The root process, as the host's /proc shows it; ``ticks`` is 0 where there is no /proc."""

    identity: ProcessIdentity
    ticks: int = 0


def root_process_of(said: str) -> RootProcess:
    """Read ``<pid> <boot id> <stat>``, where ``-`` and "" stand for what the host does not have.

    Raises ValueError for anything else.
    """
    pid, boot_id, stat = [*said.split(" ", 2), "", ""][:3]
    if boot_id == "-" or not stat:
        return RootProcess(identity=ProcessIdentity(pid=int(pid), started_at=0.0))
    fields = stat.rpartition(")")[2].split()
    if len(fields) <= _STARTED:
        raise ValueError("the stat of a process is cut")
    ticks = int(fields[_STARTED])
    at = started_at(boot_id, stat.encode())
    return RootProcess(identity=ProcessIdentity(pid=int(pid), started_at=at), ticks=ticks)


class HostGone(HostError):
    """What a program ran on is no more, and so is the program: no link leads there again."""

    def __init__(self, message: str) -> None:
        super().__init__(HostTrouble.DISRUPTED, message)


class NoRoomForNamespace(HostError):
    """A host has made namespaces before, and could make none for this program, which was not
    started."""

    def __init__(self, message: str) -> None:
        super().__init__(HostTrouble.UNREACHABLE, message)


def silent_shell(host: str, seconds: float) -> HostError:
    """Return the error for a login that let us in and did not begin our script in time."""
    return HostError(
        HostTrouble.UNREACHABLE,
        f"the shell of host {host} did not answer in {seconds:g} s; look at its load and at what"
        " its login files (.bashrc and the like) wait for, or raise agent.read_timeout_ms",
    )


def slow_shell(host: str, seconds: float) -> HostError:
    """Return the error for a shell that does not go on in time."""
    return HostError(
        HostTrouble.UNREACHABLE,
        f"the shell of host {host} did not start the program in {seconds:g} s; look at its load",
    )


def lapsed(host: str, lease: float) -> HostError:
    """Return the error for a program that its host ended, as it heard nothing from us."""
    return HostError(
        HostTrouble.DROPPED,
        f"host {host} heard nothing of the daemon for {lease:g} s, and ended what ran there; look"
        " at the network in between",
    )


def no_start(host: str, launch: RemoteLaunch, noise: bytes, status: int | None) -> HostError:
    """Return the error for a login that ended with this status and ``noise`` instead."""
    text = struck(noise, launch.command).decode("utf-8", "replace").strip()
    said = end_of(text, _LOGIN_OUTPUT_SHOWN) or "nothing"
    return HostError(
        HostTrouble.UNREACHABLE,
        f"could not start {launch.command.argv[0][:80]}: the login on host {host} ended without"
        f" starting it (exit {status}), and said: {said}",
    )


def struck(said: bytes, command: Command) -> bytes:
    """Return what a host said without the values of a command's variables, however written."""
    values = {value for value in command.env.values() if len(value) >= _SECRET}
    found = {quoted(value) for value in values}
    for value in values:
        found |= {os.fsencode(spelling) for spelling in spellings(value)}
    # The longer first: a value may be the beginning of another one.
    for spelling in sorted(found, key=len, reverse=True):
        said = said.replace(spelling, b"[...]")
    return said


def nonsense(host: str) -> HostError:
    """Return the error for a host that says what our script never says."""
    return HostError(
        HostTrouble.UNREACHABLE,
        f"host {host} answered what its shell cannot have said; look at its login shell, at"
        " ForceCommand, and at whether it is the host that you mean",
    )


def refusal(host: str, command: Command, word: str, reason: str) -> TransportError | LeaseLost:
    """Return the error for a program that a host did not start, before anything of it ran."""
    if word in (LOST, UNLED):
        return refused_leader(host, word)
    word, reason = word[:HOST_REASON_LIMIT], start_of(reason, HOST_REASON_LIMIT)
    if word == "missing":
        return ProgramNotFound(f"{reason} (on host {host})")
    attempt = f"could not start {command.argv[0][:80]} in {command.cwd} on host {host}"
    if word == "unspaced":
        return NoRoomForNamespace(
            f"{attempt}: no PID namespace could be made ({reason}); look at user.max_pid_namespaces"
            " and at the limit of processes there"
        )
    if word == "uncontained":
        return TransportError(f"{attempt}: its container cannot be entered: {reason}")
    if word == "unsupervised":
        return HostError(
            HostTrouble.UNREACHABLE,
            f"{attempt}: {reason}, which worker.ssh_reattach needs; install it there, or set"
            " worker.ssh_reattach to false",
        )
    if word in _TROUBLES:  # whatever it is to start
        return HostError(HostTrouble.UNREACHABLE, f"{attempt}: {_TROUBLES[word]}")
    return TransportError(f"{attempt}: {_NO_DIRECTORY if word == 'directory' else word}")
