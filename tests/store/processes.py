"""Other processes that use a store, for tests of crashes and limits."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from subprocess import PIPE

import trio

ROOT = Path(__file__).resolve().parents[2]


@asynccontextmanager
async def python(
    code: str, *arguments: str, within: Sequence[str] = ()
) -> AsyncIterator[trio.Process]:
    """Run code in another interpreter with its output piped; it is killed at the end.

    ``within`` is a command that takes the interpreter's command line as further arguments.
    """
    process = await trio.lowlevel.open_process(
        [*within, sys.executable, "-c", code, *arguments], stdout=PIPE, cwd=ROOT
    )
    try:
        yield process
    finally:
        process.kill()
        with trio.CancelScope(shield=True):
            await process.wait()
        assert process.stdout is not None
        await process.stdout.aclose()


async def output_line(process: trio.Process) -> str:
    """Return the next line of a process's output. Fails where it ends before."""
    assert process.stdout is not None
    line = b""
    while not line.endswith(b"\n"):
        byte = await process.stdout.receive_some(1)
        assert byte, f"the process ended after {line!r}"
        line += byte
    return line.decode().rstrip("\n")
