"""A ProxyCommand: a program of this machine that is the way to the first hop."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
from collections.abc import Mapping
from contextlib import ExitStack, suppress

from sortie.model.texts import end_of

_TAIL = 500


class Proxy:
    """A running ProxyCommand. It is in our session, so that no sweep takes it for a stray."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self._said = bytearray()
        self._listening = asyncio.create_task(self._listen())

    @classmethod
    async def start(
        cls, command: str, environ: Mapping[str, str] | None
    ) -> tuple[Proxy, socket.socket]:
        """Start it; return it with the socket that leads through it. Raises OSError."""
        ours, theirs = socket.socketpair()
        with theirs, ExitStack() as undo:
            undo.callback(ours.close)
            process = await asyncio.create_subprocess_exec(
                "/bin/sh",
                "-c",
                f"exec {command}",
                stdin=theirs.fileno(),
                stdout=theirs.fileno(),
                stderr=asyncio.subprocess.PIPE,
                process_group=0,
                env=environ,
            )
            undo.pop_all()
        ours.setblocking(False)
        return cls(process), ours

    @property
    def said(self) -> str:
        """The end of what it wrote to stderr."""
        return end_of(self._said.decode(errors="replace"), _TAIL).strip()

    async def end(self) -> None:
        """Kill it with its group; it holds nothing that could be lost."""
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        await self._process.wait()
        self._listening.cancel()

    async def _listen(self) -> None:
        assert self._process.stderr is not None
        while chunk := await self._process.stderr.read(4096):
            self._said += chunk
            del self._said[: -2 * _TAIL]
