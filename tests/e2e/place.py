"""A directory to run Sortie in: a workflow, issues, and what its agents left behind."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from subprocess import DEVNULL
from tempfile import TemporaryFile
from typing import IO, Any

import psutil
import trio

from tests.e2e.loaded import ForkedSortie, LoadedSortie
from tests.transports.leftovers import seen_from_here

SORTIE = str(Path(sys.executable).parent / "sortie")
"""The console script of the environment that the tests run in."""

PATIENCE = 120.0
"""Seconds after which something awaited has gone wrong, on a machine that has much to do."""

PROMPT = "{{ issue.identifier }}: {{ issue.title }}\n\n{{ issue.description }}\n"

STUBBORN_HOOK = """
[ -e ../../asked ] && exit
exec >/dev/null 2>&1
trap 'touch ../../asked' TERM
touch ../../ready
while :; do sleep 0.05; done
"""
"""A hook that notes its first SIGTERM and stays, also when nobody reads its output any more."""

Json = Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """What a command left."""

    code: int
    out: str
    err: str
    seconds: float


class Place:
    """Where one test's daemons run, one after another, with a home of their own.

    What is started in it is the installed program: the first ``installed_starts`` times where there
    is a ``loaded`` one, which is forked then, and always where there is none.
    """

    loaded: LoadedSortie | None = None
    installed_starts = 0

    def __init__(self, root: Path) -> None:
        self.root = root
        self.workflow = root / "WORKFLOW.md"
        self.issues = root / "issues"
        self.workspaces = root / "workspaces"
        self.agents_log = root / "agents.jsonl"
        self.home = root / "home"
        self.issues.mkdir(exist_ok=True)
        self.home.mkdir(exist_ok=True)
        self.write_workflow()

    def write_workflow(
        self, prompt: str = PROMPT, **blocks: Mapping[str, object] | str | list[object]
    ) -> None:
        """Write WORKFLOW.md: quick settings for the simulator, and what ``blocks`` change."""
        settings: dict[str, Mapping[str, object] | str | list[object]] = {
            "tracker": {
                "kind": "file",
                "active_states": ["Todo", "In Progress"],
                "terminal_states": ["Done"],
                "in_progress_state": "In Progress",
                "handoff_state": "Human Review",
            },
            "file": {"path": "issues"},
            "polling": {"interval_ms": 200},
            "workspace": {"root": "workspaces"},
            "agent": {
                "command": "sortie-kiro-sim",
                "max_turns": 1,
                "stop_grace_ms": 500,
                "inactive_grace_ms": 1000,
                "read_timeout_ms": 20_000,
                "status_instructions": False,
            },
            "kiro": {"trust_all_tools": True},
        }
        for name, block in blocks.items():
            known = settings.get(name, {})
            if isinstance(block, str | list) or isinstance(known, str | list):
                settings[name] = block
            else:
                settings[name] = {**known, **block}
        self.write_text(f"---\n{json.dumps(settings, indent=2)}\n---\n{prompt}")

    def write_text(self, text: str) -> None:
        """Replace WORKFLOW.md as editors do, by a rename."""
        fresh = self.root / ".WORKFLOW.md.new"
        fresh.write_text(text)
        fresh.rename(self.workflow)

    def add_issue(self, name: str, directives: str = "", **fields: object) -> Path:
        """Write a Markdown issue in state Todo whose text holds directives to the simulator."""
        values = {"title": f"Title of {name}", "state": "Todo"} | fields
        front = "".join(f"{key}: {json.dumps(value)}\n" for key, value in values.items())
        text = f"sim: {directives}" if directives else "Nothing special."
        path = self.issues / f"{name}.md"
        fresh = self.issues / f".{name}.new"
        fresh.write_text(f"---\n{front}---\n{text}\n")
        return fresh.rename(path)

    def state_of(self, name: str) -> str:
        """Return the state that an issue's file shows."""
        for line in (self.issues / f"{name}.md").read_text().splitlines():
            if line.startswith("state:"):
                return line.removeprefix("state:").strip().strip("\"'")
        raise AssertionError(f"{name} has no state")

    def agents(self, event: str = "start", command: str = "chat") -> list[Json]:
        """Return what the simulated agents wrote down themselves, oldest first."""
        if not self.agents_log.exists():
            return []
        lines = map(json.loads, self.agents_log.read_text().splitlines())
        return [line for line in lines if (line["event"], line["command"]) == (event, command)]

    def first_agent(self) -> int:
        """Return the pid, as seen from here, of the agent that was started first."""
        line = self.agents()[0]
        return seen_from_here(line["run_id"], line["pid"])

    def environ(self, more: Mapping[str, str | None]) -> dict[str, str]:
        """Return a clean environment with a key for the simulator, changed by ``more``."""
        plain = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.home),
            "LANG": "C.UTF-8",
            "KIRO_API_KEY": "simulated",
            "KIRO_SIM_LOG": str(self.agents_log),
        }
        return {name: value for name, value in (plain | dict(more)).items() if value is not None}

    async def open(
        self, command: Sequence[str], env: dict[str, str], stdout: int, stderr: int
    ) -> trio.Process | ForkedSortie:
        """Start a program with nothing to read, which writes to these descriptors."""
        loaded = self.loaded if command[0] == SORTIE and not self.installed_starts else None
        if loaded is None or not loaded.can_be(env):
            self.installed_starts = max(0, self.installed_starts - 1)
            return await trio.lowlevel.open_process(
                command, cwd=self.root, env=env, stdin=DEVNULL, stdout=stdout, stderr=stderr
            )
        with open(os.devnull) as nothing:
            streams = (nothing.fileno(), stdout, stderr)
            return loaded.start(command, cwd=self.root, env=env, streams=streams)

    async def sortie(self, *arguments: str, within: float = PATIENCE, **environ: str | None) -> Ran:
        """Run a command to its end."""
        began = trio.current_time()
        with TemporaryFile() as out, TemporaryFile() as err:
            env = self.environ(environ)
            process = await self.open([SORTIE, *arguments], env, out.fileno(), err.fileno())
            try:
                with trio.move_on_after(within) as limit:
                    await process.wait()
            finally:
                process.kill()
            told = _content(err)
            assert not limit.cancelled_caught, f"not over within {within} s, but said:\n{told}"
            return Ran(
                code=await process.wait(),
                out=_content(out),
                err=told,
                seconds=trio.current_time() - began,
            )

    async def history(self, issue: str | None = None) -> list[Json]:
        """Return the recorded runs, of one issue or of all, oldest first."""
        chosen = () if issue is None else ("--issue", issue)
        ran = await self.sortie("history", "--format", "json", "--limit", "1000", *chosen)
        assert (ran.code, ran.err) == (0, "")
        rows = json.loads(ran.out)
        assert isinstance(rows, list)
        return rows[::-1]

    async def until_there(self, name: str) -> None:
        """Wait until a program has made a file."""
        with trio.fail_after(PATIENCE):
            while not (self.root / name).exists():
                await trio.sleep(0.02)

    def processes(self) -> list[psutil.Process]:
        """Return the live processes of runs whose workspace is here: agents, hooks, children.

        One that has hidden its environment is known by living in a workspace.
        """
        found = []
        for process in psutil.process_iter():
            with suppress(psutil.Error, OSError):
                environ = process.environ()
                workspace = environ.get("SORTIE_WORKSPACE", "")
                is_named = "SORTIE_RUN_ID" in environ and workspace.startswith(
                    f"{self.root}{os.sep}"
                )
                if is_named or process.cwd().startswith(f"{self.workspaces}{os.sep}"):
                    found.append(process)
        return found

    def programs(self) -> list[str]:
        """Return the names of the programs that ``processes`` run."""
        found = []
        for process in self.processes():
            with suppress(psutil.Error):  # it has ended meanwhile
                found.append(process.name())
        return found

    def require_no_process(self) -> None:
        """Fail, and end them, if processes of runs are left."""
        left = self.kill_processes()
        assert not left, f"processes of runs were left: {left}"

    def kill_processes(self) -> list[str]:
        """Kill the processes of runs until none starts another; return what they were."""
        killed = []
        while found := self.processes():
            for process in found:
                with suppress(psutil.Error):
                    killed.append(f"{process.pid} {process.cmdline()}")
                    process.kill()
            psutil.wait_procs(found, timeout=1)
        return killed


def _content(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode()
