"""The floor of a run: what nobody can do without who runs agents on issues and keeps records.

A program of its own: ``bare_runs.py AGENT DIRECTORY COUNT AT_ONCE``. For each issue it reads the
issue's file twice and rewrites it once, makes a workspace, commits three records, runs the agent
and reads what that says, looks for a word that it left, and prints a line for each record. What
may block is done in threads. Nothing is checked, decided, limited, watched or cleaned up, and
nothing is done about failures. It prints its seconds of processor time and of time.
"""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import trio


@dataclass(frozen=True, slots=True)
class Runs:
    """The runs of one agent below a directory, so many at once."""

    agent: str
    root: Path
    database: sqlite3.Connection
    slots: trio.CapacityLimiter
    to_database: trio.CapacityLimiter

    async def run(self, issue: str) -> None:
        """Run the agent on an issue."""
        async with self.slots:
            await trio.to_thread.run_sync(self._issue(issue).read_text)
            await self._record(issue, "started")
            workspace = await trio.to_thread.run_sync(self._make_workspace, issue)
            await self._run_agent(workspace)
            await self._record(issue, "completed")
            await trio.to_thread.run_sync((workspace / ".sortie/status").exists)
            text = await trio.to_thread.run_sync(self._issue(issue).read_text)
            await self._record(issue, "succeeded")
            await trio.to_thread.run_sync(self._rewrite, issue, text.replace("Todo", "Review"))

    def _issue(self, issue: str) -> Path:
        return self.root / f"bare-{issue}.md"

    def _make_workspace(self, issue: str) -> Path:
        workspace = self.root / "bare" / issue
        (workspace / ".sortie").mkdir(parents=True)
        (workspace / ".sortie/.gitignore").write_text("*\n")
        return workspace

    async def _run_agent(self, workspace: Path) -> None:
        process = await trio.to_thread.run_sync(self._start, workspace)
        assert process.stdout is not None
        assert process.stderr is not None
        pidfd = os.pidfd_open(process.pid)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_read, os.dup(process.stdout.fileno()))
            nursery.start_soon(_read, os.dup(process.stderr.fileno()))
            await trio.lowlevel.wait_readable(pidfd)
        trio.lowlevel.notify_closing(pidfd)
        os.close(pidfd)
        with process:  # closes the pipes
            process.wait()

    def _start(self, workspace: Path) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [self.agent, "chat"],
            cwd=workspace,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )

    async def _record(self, issue: str, status: str) -> None:
        await trio.to_thread.run_sync(self._commit, issue, status, limiter=self.to_database)
        sys.stderr.write(f"run.{status} issue={issue}\n")

    def _commit(self, issue: str, status: str) -> None:
        self.database.execute("BEGIN IMMEDIATE")
        self.database.execute("INSERT OR REPLACE INTO runs VALUES (?, ?)", (issue, status))
        self.database.execute("COMMIT")

    def _rewrite(self, issue: str, text: str) -> None:
        new = self.root / f"bare-{issue}.new"
        with open(new, "w") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.replace(new, self._issue(issue))
        directory = os.open(self.root, os.O_RDONLY)
        os.fsync(directory)
        os.close(directory)


async def _read(pipe: int) -> None:
    async with trio.lowlevel.FdStream(pipe) as stream:
        async for chunk in stream:
            chunk.splitlines()


def _open_database(path: Path) -> sqlite3.Connection:
    database = sqlite3.connect(path, check_same_thread=False, isolation_level=None)
    database.execute("PRAGMA journal_mode = wal")
    database.execute("PRAGMA synchronous = FULL")
    database.execute("CREATE TABLE runs (id TEXT PRIMARY KEY, status TEXT)")
    return database


async def _run_all(agent: str, root: Path, count: int, at_once: int) -> tuple[float, float]:
    database = _open_database(root / "bare.db")
    limiter = trio.CapacityLimiter
    runs = Runs(agent, root, database, limiter(at_once), limiter(1))
    issues = [f"N-{number}" for number in range(count)]
    for issue in issues:
        (root / f"bare-{issue}.md").write_text(f"---\ntitle: {issue}\nstate: Todo\n---\n")
    spent, began = time.process_time(), time.perf_counter()
    async with trio.open_nursery() as nursery:
        for issue in issues:
            nursery.start_soon(runs.run, issue)
    return time.process_time() - spent, time.perf_counter() - began


if __name__ == "__main__":
    agent, root, count, at_once = sys.argv[1:]
    json.dump(trio.run(_run_all, agent, Path(root), int(count), int(at_once)), sys.stdout)
