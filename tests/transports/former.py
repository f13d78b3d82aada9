"""A daemon that is killed, and what the command that it ran leaves behind."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path

import trio

from sortie.model import RunId

PROGRAMS = Path(__file__).parent / "programs"
ESCAPE = (sys.executable, str(PROGRAMS / "escape.py"))
PROJECT = Path(__file__).parent.parent.parent
_PR_SET_CHILD_SUBREAPER = 36


@asynccontextmanager
async def daemon_with(
    run_id: RunId, *argv: str, cwd: str = "/", mark: int | None = None, groups: str = ""
) -> AsyncIterator[list[int]]:
    """Have another daemon run a command; give the pids that it tells. Then the daemon is killed."""
    env = {**os.environ, "SORTIE_RUN_ID": run_id, "PYTHONPATH": str(PROJECT)}
    env["FORMER_GROUPS"] = groups
    if mark is not None:
        env["FORMER_MARK"] = str(mark)
    program = [sys.executable, str(PROGRAMS / "former_daemon.py"), *argv]
    daemon = await trio.lowlevel.open_process(program, env=env, cwd=cwd, stdout=subprocess.PIPE)
    assert daemon.stdout is not None
    said = b""
    while b"\n" not in said:
        said += await daemon.stdout.receive_some()
    try:
        yield [int(pid) for pid in said.split()]
    finally:
        daemon.kill()
        await daemon.wait()
        await daemon.stdout.aclose()


async def left_by(
    run_id: RunId, *argv: str, cwd: str = "/", mark: int | None = None, groups: str = ""
) -> list[int]:
    """Return the pids that a command told whose daemon was killed."""
    async with daemon_with(run_id, *argv, cwd=cwd, mark=mark, groups=groups) as pids:
        return pids


@contextmanager
def without_adoption() -> Iterator[None]:
    """Have orphans among our descendants become nobody's children here, as a new daemon sees them.

    Who is orphaned within the block stays so.
    """
    prctl = ctypes.CDLL(None, use_errno=True).prctl
    assert prctl(_PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0) == 0
    try:
        yield
    finally:
        assert prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0


@contextmanager
def killed_at_last(pids: list[int]) -> Iterator[list[int]]:
    """Kill what is left of some processes in the end."""
    try:
        yield pids
    finally:
        for pid in pids:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
