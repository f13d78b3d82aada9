"""The bare baselines: the same agents, started and read with nothing around them."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from subprocess import DEVNULL, PIPE, Popen, run

import psutil

from tests.benchmarks import bare_runs
from tests.benchmarks.spending import Spending, Spent, clock_of, counted

_READERS = """
import os, subprocess, sys, trio
agent, root, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
async def read(number):
    cwd = f"{root}/{sys.argv[4]}{number}"
    os.makedirs(cwd, exist_ok=True)
    pipe = subprocess.PIPE
    process = await trio.lowlevel.open_process([agent, "chat"], cwd=cwd, stdin=subprocess.DEVNULL,
        stdout=pipe, stderr=subprocess.DEVNULL)
    async for chunk in process.stdout:
        for line in chunk.splitlines():
            pass
async def main():
    async with trio.open_nursery() as nursery:
        for number in range(count):
            nursery.start_soon(read, number)
        await trio.sleep_forever()
trio.run(main)
"""
"""A trio program that starts agents in directories of their own, and reads the lines of all."""


@dataclass(frozen=True, slots=True)
class Readers:
    """The program above, while it runs."""

    pid: int

    def spending(self) -> AbstractContextManager[Spending]:
        """Count what it spends within the block."""
        return counted(lambda: Spent(own=clock_of(self.pid), children=0.0))

    def memory(self) -> int:
        """Return its resident memory in bytes."""
        return psutil.Process(self.pid).memory_info().rss


@contextmanager
def readers(agent: Path, root: Path, count: int, prefix: str) -> Iterator[Readers]:
    """Run so many agents below the program; they end with the block."""
    argv = [sys.executable, "-c", _READERS, str(agent), str(root), str(count), prefix]
    program = Popen(argv)
    try:
        yield Readers(program.pid)
    finally:
        agents = psutil.Process(program.pid).children()
        program.kill()
        program.wait()
        for process in agents:
            process.kill()


@contextmanager
def to_nowhere() -> Iterator[list[tuple[int, int, int]]]:
    """Give the file actions of posix_spawn for a program that nobody talks to."""
    nothing = os.open(os.devnull, os.O_RDWR)
    try:
        yield [(os.POSIX_SPAWN_DUP2, nothing, number) for number in range(3)]
    finally:
        os.close(nothing)


@dataclass(frozen=True, slots=True, kw_only=True)
class Crowd:
    """What it took to run some agents, some of them at once: seconds of processor time of one
    start and its wait, and how many a second were run."""

    cpu: float
    rate: float


def spawn_all(agent: Path, environ: Mapping[str, str], count: int, at_once: int) -> Crowd:
    """Run agents to their ends with posix_spawn and waitpid."""
    running: set[int] = set()
    began, before = time.perf_counter(), time.thread_time()
    with to_nowhere() as onto:
        for _ in range(count):
            if len(running) == at_once:
                running.discard(os.wait()[0])
            argv = [str(agent), "chat"]
            running.add(os.posix_spawn(agent, argv, environ, file_actions=onto))
        while running:
            running.discard(os.wait()[0])
    spent = time.thread_time() - before
    return Crowd(cpu=spent / count, rate=count / (time.perf_counter() - began))


def run_all_bare(agent: Path, environ: Mapping[str, str], count: int, at_once: int) -> Crowd:
    """Run agents to their ends, with what else no keeper of records can do without.

    It happens beside the agent, in a program of its own: see ``bare_runs.py``.
    """
    argv = [
        sys.executable,
        bare_runs.__file__,
        str(agent),
        str(agent.parent),
        str(count),
        str(at_once),
    ]
    done = run(argv, env=environ, stdout=PIPE, stderr=DEVNULL, check=True)
    cpu, seconds = json.loads(done.stdout)
    return Crowd(cpu=cpu / count, rate=count / seconds)
