"""A directory in which the client talks to the simulator, or to a script in its place."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar

import anyio
import msgspec
import psutil

import sortie
from sortie.kiro import KiroAgentOptions, Message, query, query_sync

T = TypeVar("T")

BACKENDS = ("asyncio", "trio")
WAYS = (*BACKENDS, "sync")

LIBRARIES = str(Path(msgspec.__file__).parents[1])
_SIMULATOR = """#!{python} -S
import sys
sys.path[:0] = [{root!r}, {libraries!r}]
from sortie.kiro.simulator import main
main()
"""


class Rig:
    """A home, a workspace, a program, and a log of what the simulator does."""

    def __init__(self, folder: Path) -> None:
        self.home = folder / "home"
        self.workspace = folder / "workspace"
        self.program = folder / "bin" / "kiro-cli"
        self.log = folder / "log.jsonl"
        for each in (self.home, self.workspace, self.program.parent):
            each.mkdir()
        root = str(Path(sortie.__file__).parents[1])
        self.script(_SIMULATOR.format(python=sys.executable, root=root, libraries=LIBRARIES))
        self.env = {
            "HOME": str(self.home),
            "XDG_DATA_HOME": str(folder / "data"),
            "KIRO_HOME": str(self.home / ".kiro"),
            "KIRO_API_KEY": "sk-1",
            "KIRO_SIM_LOG": str(self.log),
            "PATH": f"{self.program.parent}{os.pathsep}{os.environ['PATH']}",
        }
        self.database = folder / "data" / "kiro-cli" / "data.sqlite3"

    def script(self, text: str) -> None:
        """Have another program take the place of kiro-cli."""
        self.program.write_text(text)
        self.program.chmod(0o755)

    def options(self, **more: Any) -> KiroAgentOptions:
        """Return options for this directory; names in capitals are variables of the environment."""
        env = {**self.env, **{name: more.pop(name) for name in [*more] if name.isupper()}}
        return KiroAgentOptions(**{"cwd": self.workspace, "env": env, "stop_grace": 1.0, **more})

    def ask(self, way: str, prompt: str, **more: Any) -> list[Message]:
        """Put a prompt under asyncio, trio, or neither."""
        options = self.options(**more)
        if way == "sync":
            return query_sync(prompt=prompt, options=options)

        async def collect() -> list[Message]:
            return [message async for message in query(prompt=prompt, options=options)]

        return run(way, collect)

    def events(self, name: str) -> list[dict[str, Any]]:
        """Return what the simulator has logged of one kind."""
        if not self.log.exists():
            return []
        lines = self.log.read_text().splitlines()
        return [told for line in lines if (told := json.loads(line))["event"] == name]

    def alive(self) -> list[int]:
        """Return which processes of the simulator are alive."""
        pids = [event["pid"] for event in self.events("start")]
        pids += [event["child_pid"] for event in self.events("child")]
        return [pid for pid in pids if _is_alive(pid)]

    def agent_files(self) -> list[Path]:
        """Return the agents' files in the user's folder."""
        return sorted((self.home / ".kiro" / "agents").glob("*"))


def run(backend: str, main: Callable[[], Awaitable[T]]) -> T:
    """Run it in an event loop, and no longer than a test may take."""

    async def limited() -> T:
        with anyio.fail_after(30):
            return await main()

    return anyio.run(limited, backend=backend)


def _is_alive(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
