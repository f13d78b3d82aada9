"""Programs that stand in for kiro-cli in tests with real processes."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import msgspec
import trio

import sortie
from sortie.agents import Agent, Session, SessionParams
from sortie.agents.kiro.agent import KiroAgent
from sortie.agents.kiro.settings import KiroSettings
from sortie.model import RunId, TurnResult
from sortie.model.turns import AgentEvent, Launched, Notification, Usage
from sortie.transports import Transport

LIBRARIES = str(Path(msgspec.__file__).parents[1])
_PROGRAM = """#!{python} -S
import sys
sys.path[:0] = [{root!r}, {libraries!r}]
from sortie.kiro.simulator import main
main()
"""


class Rig:
    """A directory with a workspace and a simulator, and an agent over a transport."""

    def __init__(self, folder: Path, transport: Transport) -> None:
        self.transport = transport
        self.workspace = folder / "workspace"
        self.workspace.mkdir()
        self.log = folder / "log.jsonl"
        self.command = folder / "kiro-cli"
        self.script(_PROGRAM.format(python=sys.executable, root=_root(), libraries=LIBRARIES))
        self.environment = {
            "PATH": os.defpath,
            "HOME": str(folder),
            "XDG_DATA_HOME": str(folder / "data"),
            "KIRO_API_KEY": "sk-very-secret",
            "SORTIE_RUN_ID": f"run-{folder.name}-{os.getpid()}",
            "KIRO_SIM_LOG": str(self.log),
        }

    def script(self, text: str) -> None:
        """Make another program of the command."""
        self.command.write_text(text)
        self.command.chmod(0o755)

    def agent(self, settings: KiroSettings | None = None) -> KiroAgent:
        return KiroAgent(
            (str(self.command),),
            settings or KiroSettings(trust_all_tools=True),
            trio.current_time,
        )

    def params(self, read_timeout: float = 20.0) -> SessionParams:
        return SessionParams(
            run_id=RunId(self.environment["SORTIE_RUN_ID"]),
            workspace=str(self.workspace),
            transport=self.transport,
            env=self.environment,
            read_timeout=read_timeout,
            stop_grace=0.5,
        )

    def session(self) -> AbstractAsyncContextManager[Session]:
        """Have a session of an agent of its own."""
        return self.agent().session(self.params())

    async def turn(self, prompt: str) -> tuple[TurnResult, Heard]:
        """Run one turn in a session of its own."""
        heard = Heard()
        async with self.session() as session:
            return await session.run_turn(prompt, heard), heard


async def visit(agent: Agent, params: SessionParams) -> None:
    """Enter a session and leave it."""
    async with agent.session(params):
        pass


class Heard:
    """What on_events got; ``spoke`` is set by the first notification."""

    def __init__(self) -> None:
        self.batches = 0
        self._more = trio.Event()
        self.events: list[AgentEvent] = []
        self.spoke = trio.Event()
        self.launched = trio.Event()

    def __call__(self, events: Sequence[AgentEvent]) -> None:
        self.batches += 1
        self._more.set()
        self._more = trio.Event()
        self.events += events
        for event in events:
            (self.launched if isinstance(event, Launched) else self.spoke).set()

    async def times(self, count: int) -> None:
        """Wait until so many batches were heard."""
        while self.batches < count:
            await self._more.wait()

    @property
    def messages(self) -> list[str]:
        return [event.message for event in self.events if isinstance(event, Notification)]

    @property
    def lines(self) -> int:
        return sum(event.lines for event in self.events if isinstance(event, Notification))

    @property
    def used(self) -> list[Usage]:
        return [event for event in self.events if isinstance(event, Usage)]

    @property
    def spent(self) -> list[Usage]:
        """What was used up; how full the model's context is is not."""
        return [event for event in self.used if event.context_share is None]

    @property
    def pid(self) -> int:
        (launched,) = (event for event in self.events if isinstance(event, Launched))
        return launched.process.pid


def is_alive(pid: int) -> bool:
    """Tell whether a process runs; a zombie does not."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except FileNotFoundError:
        return False
    return stat.rpartition(")")[2].split()[0] != "Z"


def _root() -> str:
    return str(Path(sortie.__file__).parent.parent)
