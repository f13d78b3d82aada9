"""The processes of a host, as its /proc shows them to a shell there, which also signals them."""

from __future__ import annotations

import re
import signal
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import asynccontextmanager, suppress

from msgspec import Struct

from sortie.model import ProcessIdentity, TransportError
from sortie.resources.process_identity import started_at
from sortie.transports import COOKIE
from sortie.transports.rank import FIRST
from sortie.transports.remote.launch import nonsense
from sortie.transports.remote.protocol import numbers_in
from sortie.transports.remote.remote_script import RemoteScript
from sortie.transports.remote.scripts import processes_script
from sortie.transports.remote.shell import Shell

_SPEAKABLE = re.compile(r"[A-Za-z0-9._-]+", re.ASCII)
_HOST_BOOT_ID = re.compile(r"[0-9a-f][0-9a-f-]{0,63}", re.ASCII)
_PIDS_PER_LINE = 500  # processes or cookies in one line
_TABLE_LIMIT = 64 * 1024 * 1024  # what /proc says of a hundred thousand processes
_COOKIE = f"{COOKIE}=".encode()
# Among the fields of /proc/<pid>/stat behind the program's name, see proc(5).
_STATE, _PPID, _PGID, _SID, _THREADS, _STARTED = 0, 1, 2, 3, 17, 19


class Handle(Struct, frozen=True, kw_only=True):
    """What tells a process apart from every other of this boot."""

    pid: int
    ticks: int


class RemoteProcess(Struct, frozen=True, kw_only=True):
    """One process as it stood; ``cookie`` is None where there is none or it is unreadable."""

    handle: Handle
    identity: ProcessIdentity
    ppid: int
    pgid: int
    sid: int
    dead: bool
    stopped: bool
    cookie: str | None = None

    @property
    def pid(self) -> int:
        """Its number."""
        return self.handle.pid


def read_processes(boot_id: str, stats: bytes, environs: bytes) -> dict[int, RemoteProcess]:
    """Return all processes by pid, from their stat files and their cookies: ``<path>:<content>``,
    each with a NUL behind it.

    What is neither is passed over.
    """
    cookies: dict[int, str] = {}
    for pid, variable in _records(environs):
        if variable.startswith(_COOKIE):
            cookie = variable.removeprefix(_COOKIE).decode("utf-8", "replace")
            cookies.setdefault(pid, cookie)
    found = {}
    for pid, stat in _records(stats):
        with suppress(ValueError, OverflowError):
            process = _process(boot_id, pid, stat, cookies.get(pid))
            if process is not None:
                found[pid] = process
    return found


def _records(said: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield what was said of files below ``/proc/<pid>``, with the pid."""
    for record in said.split(b"\0"):
        path, _, content = record.partition(b":")
        parts = path.strip().split(b"/")
        if len(parts) > 2:
            for pid in numbers_in(parts[2].decode(errors="replace")):
                yield pid, content


def _process(boot_id: str, pid: int, stat: bytes, cookie: str | None) -> RemoteProcess | None:
    fields = stat.rpartition(b")")[2].split()  # the name may hold brackets and line ends, too
    if len(fields) <= _STARTED:
        return None  # it ended while it was read
    state = fields[_STATE]
    return RemoteProcess(
        handle=Handle(pid=pid, ticks=int(fields[_STARTED])),
        identity=ProcessIdentity(pid=pid, started_at=started_at(boot_id, stat)),
        ppid=int(fields[_PPID]),
        pgid=int(fields[_PGID]),
        sid=int(fields[_SID]),
        # A zombie with further threads is a program whose main thread has left the others.
        dead=state in b"ZXx" and int(fields[_THREADS]) <= 1,
        stopped=state in b"Tt",
        cookie=cookie,
    )


class RemoteProcessTable:
    """Sees and signals the processes of one host; ``me`` is the shell that does it there."""

    def __init__(self, host: str, script: RemoteScript) -> None:
        self.me = 0
        self._host = host
        self._script = script
        self._channel = script.channel
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
        if not (numbers_in(pid) and _HOST_BOOT_ID.fullmatch(self._boot_id)):
            raise nonsense(self._host)
        (self.me,) = numbers_in(pid)

    async def read(self) -> dict[int, RemoteProcess]:
        """Return how the processes stand now, with the cookie of every one of them."""
        self._channel.write(b"list\n")
        stats = (await self._expect("cookies"))[0]
        environs = (await self._expect("listed"))[0]
        return read_processes(self._boot_id, stats, environs)

    async def signal(
        self, processes: Iterable[RemoteProcess], number: signal.Signals
    ) -> frozenset[int]:
        """Signal these processes, in this order; return the pids of those that we may not signal.

        A later process with the pid of one of them gets nothing.
        """
        name = number.name.removeprefix("SIG")
        handles = [f"{one.pid} {one.handle.ticks}" for one in processes]
        return await self._each(f"signal {name}", handles, "signalled")

    async def kill_youngest(self, cookies: Iterable[str]) -> frozenset[int]:
        """Kill the processes with these cookies that came since the last ``read`` was begun; return
        the pids of those that were there.

        One that forks and exits at once stands in no list.
        """
        words = [cookie for cookie in cookies if _SPEAKABLE.fullmatch(cookie)]
        return await self._each("youngest", words, "killed")

    async def _each(self, order: str, words: list[str], answer: str) -> frozenset[int]:
        """Give an order for some words at a time; return the numbers that are answered."""
        numbers: set[int] = set()
        for at in range(0, len(words), _PIDS_PER_LINE):
            line = f"{order} {' '.join(words[at : at + _PIDS_PER_LINE])}\n"
            self._channel.write(line.encode())
            numbers.update(numbers_in((await self._expect(answer))[1]))
        return frozenset(numbers)

    async def _expect(self, expected: str) -> tuple[bytes, str]:
        said, word = await self._next()
        if word.partition(" ")[0] != expected:
            raise nonsense(self._host)
        return said, word

    async def _next(self) -> tuple[bytes, str]:
        """Return what the host says up to its next word, and that word."""
        word = await self._script.next(_TABLE_LIMIT)
        if word is None:
            raise self._script.silence()
        return word


@asynccontextmanager
async def open_process_table(shell: Shell) -> AsyncIterator[RemoteProcessTable]:
    """Begin to look at a host's processes.

    Raises TransportError where it cannot show any, and HostError.
    """
    attempt = "look for processes of earlier runs"
    async with shell.running(attempt, processes_script, at_rank=FIRST) as script:
        table = RemoteProcessTable(shell.host, script)
        await table.begin()
        yield table
