"""A session with the scripted agent, for tests with real processes."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import trio
from msgspec.structs import replace

from sortie.agents import Session, SessionParams
from sortie.agents.acp.agent import AcpAgent
from sortie.agents.acp.settings import AcpSettings
from sortie.agents.permissions import PermissionRules
from sortie.model import RunId, TurnResult
from sortie.model.asked_permissions import AskedPermissions
from sortie.transports import Transport
from sortie.transports.local import LocalTransport
from tests.agents.kiro.simulated import Heard

PROGRAM = Path(__file__).with_name("programs") / "scripted_agent.py"
KEY = "sk-scripted-secret"
TRUSTING = PermissionRules(inside={"default": "allow"})


class Stage:
    """A workspace, and agents in it; ``words`` are options of the program."""

    def __init__(self, folder: Path, transport: Transport | None = None) -> None:
        self.workspace = folder / "workspace"
        self.workspace.mkdir()
        self.params = SessionParams(
            run_id=RunId(f"run-{folder.name}"),
            workspace=str(self.workspace),
            transport=transport or LocalTransport(),
            env={
                "PATH": os.defpath,
                "HOME": str(folder),
                "SORTIE_RUN_ID": f"run-{folder.name}-{os.getpid()}",
                "SCRIPTED_API_KEY": KEY,
            },
            read_timeout=20.0,
            stop_grace=0.5,
        )

    def with_permissions(self, permissions: AskedPermissions) -> SessionParams:
        """Return what a session gets where people may be asked."""
        return replace(self.params, permissions=permissions)

    def agent(self, *words: str, settings: AcpSettings | None = None) -> AcpAgent:
        given = settings or AcpSettings(permissions=TRUSTING)
        return AcpAgent((sys.executable, "-S", str(PROGRAM), *words), given, trio.current_time)

    def session(
        self,
        *words: str,
        resume: str | None = None,
        settings: AcpSettings | None = None,
    ) -> AbstractAsyncContextManager[Session]:
        """Have a session of an agent of its own."""
        params = replace(self.params, resume_session_id=resume)
        return self.agent(*words, settings=settings).session(params)

    async def turns(
        self, prompts: Sequence[str], *words: str, settings: AcpSettings | None = None
    ) -> list[tuple[TurnResult, Heard]]:
        """Run turns in a session of their own."""
        ended = []
        with trio.fail_after(60):
            async with self.session(*words, settings=settings) as session:
                for prompt in prompts:
                    heard = Heard()
                    ended.append((await session.run_turn(prompt, heard), heard))
        return ended

    async def turn(
        self, prompt: str, *words: str, settings: AcpSettings | None = None
    ) -> tuple[TurnResult, Heard]:
        """Run one turn in a session of its own."""
        return (await self.turns([prompt], *words, settings=settings))[0]
