"""Starts ``sortie`` by forking a process that has loaded it already."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import weakref
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import trio

_PROGRAM = str(Path(__file__).parent / "programs" / "loaded.py")
_READ_AT_START = ("PYTHON", "LC_", "LANG", "LD_", "MALLOC", "TZ")
"""How the names of variables begin that a process reads before it runs any of our code."""
_PLAIN = {"LANG": "C.UTF-8"}
"""What these are in a place where a test changes none of them."""


class LoadedSortie:
    """A process that becomes ``sortie`` as often as asked; it is started when first asked.

    ``installed_starts`` is how many starts are left to the installed program before.
    """

    installed_starts = 1

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._socket: socket.socket | None = None

    def can_be(self, env: Mapping[str, str]) -> bool:
        """Tell whether a program with an environment can be had; it is started otherwise if not."""
        if {n: v for n, v in env.items() if n.startswith(_READ_AT_START)} != _PLAIN:
            return False
        if self._process is None:
            self._begin(env)
        return True

    def _begin(self, env: Mapping[str, str]) -> None:
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-P", _PROGRAM, str(theirs.fileno())],
                env=dict(env),
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
            )

    def start(
        self, argv: Sequence[str], *, cwd: Path, env: Mapping[str, str], streams: Sequence[int]
    ) -> ForkedSortie:
        """Start a program with these for stdin, stdout and stderr, which stay open here."""
        assert self._socket is not None
        told, tells = os.pipe()
        try:
            request = json.dumps([list(argv), str(cwd), dict(env)]).encode()
            socket.send_fds(self._socket, [request], [*streams, tells])
        finally:
            os.close(tells)
        return ForkedSortie(told)

    def close(self) -> None:
        """End it; the programs that it was go on."""
        if self._socket is not None:
            self._socket.close()
        if self._process is not None:
            self._process.wait(60)


class ForkedSortie:
    """A program that a ``LoadedSortie`` became, as much as needed like a ``trio.Process``."""

    def __init__(self, told: int) -> None:
        self._told = told  # open for as long as anybody may wait for it
        weakref.finalize(self, os.close, told)
        self._said = b""
        self._one_waits = trio.Lock()
        self._reading = threading.RLock()  # a thread may kill it, and wait, while others do
        self._line(1)
        self.pid = int(self._said.split()[0])

    def _line(self, number: int) -> None:
        with self._reading:
            while self._said.count(b"\n") < number:
                self._take(os.read(self._told, 64))

    def _take(self, said: bytes) -> None:
        assert said, "the process that has loaded sortie is gone"
        self._said += said

    @property
    def returncode(self) -> int | None:
        """The exit status once it has ended, negative for a signal."""
        with self._reading:
            if self._said.count(b"\n") < 2:
                os.set_blocking(self._told, False)
                with suppress(BlockingIOError):
                    self._take(os.read(self._told, 64))
                os.set_blocking(self._told, True)
            if self._said.count(b"\n") < 2:
                return None
            return int(self._said.split()[1])

    async def wait(self) -> int:
        """Wait for its end."""
        async with self._one_waits:
            while (code := self.returncode) is None:
                await trio.lowlevel.wait_readable(self._told)
        return code

    def wait_here(self) -> int:
        """Wait for its end, and let nothing else happen meanwhile."""
        self._line(2)
        code = self.returncode
        assert code is not None
        return code

    def send_signal(self, number: signal.Signals) -> None:
        """Send it a signal; its pid is its own as long as its end was not read here."""
        if self.returncode is None:
            with suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def kill(self) -> None:
        """Send it SIGKILL."""
        self.send_signal(signal.SIGKILL)
