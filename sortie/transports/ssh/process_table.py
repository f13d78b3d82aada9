"""A conversation with a host's shell that shows its processes and signals them."""

from __future__ import annotations

import re
import signal
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager

from sortie.model import TransportError
from sortie.transports.rank import FIRST
from sortie.transports.ssh.launch import nonsense
from sortie.transports.ssh.ownership import Seen, read_census
from sortie.transports.ssh.scripts import looking_script
from sortie.transports.ssh.shell import Conversation, Shell
from sortie.transports.ssh.words import numbers_in

_COOKIE = re.compile(r"[A-Za-z0-9._-]+", re.ASCII)
_BOOT_ID = re.compile(r"[0-9a-f][0-9a-f-]{0,63}", re.ASCII)
_SIGNALLED = 500  # processes in one line
_MOST = 64 * 1024 * 1024  # bytes of one answer: what /proc says of a hundred thousand processes


class Lookout:
    """Sees and signals the processes of one host; ``me`` is the shell that does it there."""

    def __init__(self, host: str, conversation: Conversation) -> None:
        self.me = 0
        self._host = host
        self._conversation = conversation
        self._channel = conversation.channel
        self._boot_id = ""

    async def begin(self) -> None:
        """Wait until the host is ready. Raises TransportError where it cannot show anything."""
        _, word = await self._next()
        name, _, rest = word.partition(" ")
        if name != "ready":
            raise TransportError(
                f"could not look for processes of earlier runs on host {self._host}:"
                " it has no /proc; look with ps there"
            )
        pid, _, self._boot_id = rest.partition(" ")
        if not (numbers_in(pid) and _BOOT_ID.fullmatch(self._boot_id)):
            raise nonsense(self._host)
        (self.me,) = numbers_in(pid)

    async def census(self) -> dict[int, Seen]:
        """Return how the processes stand now, with the cookie of every one of them."""
        self._channel.write(b"look\n")
        stats = (await self._expect("cookies"))[0]
        environs = (await self._expect("looked"))[0]
        return read_census(self._boot_id, stats, environs)

    async def signal(self, seen: Iterable[Seen], number: signal.Signals) -> frozenset[int]:
        """Signal these processes; return the pids of those that we may not signal.

        The elder come first: a parent whose child is signalled before it may take that for the
        child's own exit, and exit by itself.
        """
        handles = sorted(
            (one.handle for one in seen), key=lambda handle: (handle.ticks, handle.pid)
        )
        refused: set[int] = set()
        for at in range(0, len(handles), _SIGNALLED):
            words = [f"{h.pid} {h.ticks}" for h in handles[at : at + _SIGNALLED]]
            line = f"signal {number.name.removeprefix('SIG')} {' '.join(words)}\n"
            self._channel.write(line.encode())
            _, word = await self._expect("signalled")
            refused.update(numbers_in(word))
        return frozenset(refused)

    async def chase(self, cookies: Iterable[str]) -> frozenset[int]:
        """Kill the youngest processes with these cookies; return the pids of those that were there.

        One that forks and exits at once is in no census.
        """
        words = [cookie for cookie in cookies if _COOKIE.fullmatch(cookie)]
        killed: set[int] = set()
        for at in range(0, len(words), _SIGNALLED):
            self._channel.write(f"chase {' '.join(words[at : at + _SIGNALLED])}\n".encode())
            _, word = await self._expect("chased")
            killed.update(numbers_in(word))
        return frozenset(killed)

    async def _expect(self, expected: str) -> tuple[bytes, str]:
        said, word = await self._next()
        if word.partition(" ")[0] != expected:
            raise nonsense(self._host)
        return said, word

    async def _next(self) -> tuple[bytes, str]:
        """Return what the host says up to its next word, and that word."""
        word = await self._conversation.next(_MOST)
        if word is None:
            raise self._conversation.silence()
        return word


@asynccontextmanager
async def open_lookout(shell: Shell) -> AsyncIterator[Lookout]:
    """Begin to look at a host's processes.

    Raises TransportError where it cannot show any, and HostError.
    """
    attempt = "look for processes of earlier runs"
    async with shell.converse(attempt, looking_script, at_rank=FIRST) as conversation:
        lookout = Lookout(shell.host, conversation)
        await lookout.begin()
        yield lookout
