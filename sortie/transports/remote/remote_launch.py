"""A command on its way to a remote host."""

from __future__ import annotations

import hashlib
import os
import re

from msgspec import Struct

from sortie.model import TransportError
from sortie.transports import COOKIE, Command
from sortie.transports.remote.fence import LeaderFence
from sortie.transports.remote.namespaces import Namespaces
from sortie.transports.remote.scripts import (
    encodable,
    shown,
)

STRING_LIMIT = 131072
"""Bytes that Linux gives to one argument or variable, its end included (MAX_ARG_STRLEN)."""

# Of a mark: nineteen digits, all of which fit in the 63 bits that a shell calculates with.
_FIRST_MARK, _MARKS = 41 * 10**17, 10**17
_VARIABLE_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)


class RemoteLaunch(Struct, frozen=True, kw_only=True):
    """A command on its way to a host. ``nonce`` is what the wrapper's words begin with.

    ``lease`` is how many seconds it may live without hearing from us. Where ``inline``, its
    first argument is a piece of shell, and its environment stands in the command line.
    ``namespaces`` is how it gets a PID namespace; None where it gets none. ``variables`` of a host
    are given to the program besides HOST_VARIABLES. ``fence`` refuses it where there is a newer
    leader; None where it is started without a lease.
    """

    command: Command
    nonce: str
    lease: float
    inline: bool = False
    namespaces: Namespaces | None = None
    variables: tuple[str, ...] = ()
    fence: LeaderFence | None = None

    @property
    def marker(self) -> int:
        """The limit on file locks, which no system enforces, that marks what descends from it."""
        digest = hashlib.sha256(self.nonce.encode()).digest()
        return _FIRST_MARK + int.from_bytes(digest[:8], "big") % _MARKS

    @staticmethod
    def is_marker(limit: int | None) -> bool:
        """Tell whether a limit on file locks is some launch's."""
        return limit is not None and _FIRST_MARK <= limit < _FIRST_MARK + _MARKS

    @property
    def centiseconds(self) -> int:
        """The grace time in 1/100 s, which is what a shell can count in."""
        return round(self.command.grace * 100)

    @property
    def cookie(self) -> str:
        """The run's id, or "" where the command has none."""
        return self.command.env.get(COOKIE, "")

    @property
    def ends_by(self) -> LeaderFence | None:
        """What refuses its end by a leader from which another one has taken it over; None where
        that is always its end."""
        return None if self.command.on_record is None else self.fence

    @property
    def stdin(self) -> bytes:
        """What the program is given on its stdin."""
        return self.command.stdin if isinstance(self.command.stdin, bytes) else b""


def check_speakable(command: Command, *, inline: bool) -> None:
    """Raise TransportError for what no remote program can be given, without repeating it."""
    argv = command.argv
    if not argv:
        raise TransportError("could not start a program: the command is empty")
    if not all(_fits(text) for text in (*argv, command.cwd)):
        raise TransportError(
            f"could not start {shown(argv[0])}: an argument or the directory is too long"
            " (128 KiB), holds a NUL character or is not valid Unicode"
        )
    for name, value in command.env.items():
        if not _VARIABLE_NAME.fullmatch(name) or not _fits(f"{name}={value}"):
            raise TransportError(
                f"could not start {shown(argv[0])}: the environment variable {shown(name)}"
                " cannot be passed on through a shell (an invalid name, more than 128 KiB, a NUL"
                " character or invalid Unicode)"
            )
    if not inline and not argv[0]:
        raise TransportError("could not start a program: its name is empty")


def _fits(value: str) -> bool:
    return encodable(value) and len(os.fsencode(value)) < STRING_LIMIT
