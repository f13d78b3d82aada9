"""Commands that a transport is given, and what they write."""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import trio

from sortie.model import RunId
from sortie.transports import Command, Process, Stdin

PROGRAMS = Path(__file__).parent.parent.parent / "transports" / "programs"
CHAIN = (sys.executable, str(PROGRAMS / "chain.py"))
ESCAPE = (sys.executable, str(PROGRAMS / "escape.py"))


class Launch:
    """Makes commands of one run in one place."""

    def __init__(self, cookie: RunId, place: str) -> None:
        self._env = {"PATH": os.environ["PATH"], "SORTIE_RUN_ID": cookie}
        self._place = place

    def __call__(
        self,
        *argv: str,
        stdin: bytes | Stdin | None = None,
        grace: float = 5.0,
        cwd: str | None = None,
    ) -> Command:
        return Command(argv=argv, cwd=cwd or self._place, env=self._env, stdin=stdin, grace=grace)

    def sh(self, script: str, stdin: bytes | Stdin | None = None, grace: float = 5.0) -> Command:
        return self("sh", "-c", script, stdin=stdin, grace=grace)


async def everything(process: Process) -> dict[int, bytes]:
    """Read a process's output to its end."""
    read = {1: b"", 2: b""}
    async for number, chunk in process.output():
        read[number] += chunk
    return read


async def pids_from(output: AsyncIterator[tuple[int, bytes]]) -> tuple[list[int], bytes]:
    """Read what an escape program says: the pids of those that escaped, and what follows."""
    said = b""
    while b"\n" not in said:
        said += (await anext(output))[1]
    line, _, rest = said.partition(b"\n")
    return [int(pid) for pid in line.split()], rest


_WRAPPERS = ("sortie-init", "nsenter", "bwrap")


async def program_of(process: Process) -> int:
    """Return the pid of a process's program on this machine: its own, or the first descendant of
    its init, or of what waits for it, that is no wrapper."""
    pid = process.identity.pid
    while (await trio.Path(f"/proc/{pid}/comm").read_text()).strip() in _WRAPPERS:
        children = await trio.Path(f"/proc/{pid}/task/{pid}/children").read_text()
        if children:
            pid = int(children.split()[0])
        await trio.sleep(0)
    return pid
