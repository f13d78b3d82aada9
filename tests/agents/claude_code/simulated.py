"""A program that stands in for Claude Code, in tests with real processes."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import trio
from msgspec.structs import replace

from sortie.agents import SessionParams
from sortie.agents.claude_code.agent import ClaudeCodeAgent
from sortie.agents.claude_code.settings import ClaudeCodeSettings
from sortie.model import RunId, TurnResult
from sortie.transports import Transport
from tests.agents.kiro.simulated import Heard

PROGRAM = Path(__file__).with_name("programs") / "claude.py"
KEY = "sk-ant-very-secret"


class Rig:
    """A directory with a workspace and a home, and an agent over a transport."""

    def __init__(self, folder: Path, transport: Transport) -> None:
        self.transport = transport
        self.home = folder
        self.workspace = folder / "workspace"
        self.workspace.mkdir()
        self.environment = {
            "PATH": os.defpath,
            "HOME": str(folder),
            "ANTHROPIC_API_KEY": KEY,
            "SORTIE_RUN_ID": f"run-{folder.name}-{os.getpid()}",
        }

    def agent(self, **settings: Any) -> ClaudeCodeAgent:
        block = ClaudeCodeSettings(**{"permission_mode": "bypassPermissions"} | settings)
        return ClaudeCodeAgent((sys.executable, "-S", str(PROGRAM)), block, trio.current_time)

    def params(self, resume: str | None = None) -> SessionParams:
        return SessionParams(
            run_id=RunId(self.environment["SORTIE_RUN_ID"]),
            workspace=str(self.workspace),
            transport=self.transport,
            env=self.environment,
            read_timeout=20.0,
            stop_grace=0.5,
            resume_session_id=resume,
        )

    async def turn(self, prompt: str, resume: str | None = None) -> tuple[TurnResult, Heard]:
        """Run one turn in a session of its own."""
        heard = Heard()
        async with self.agent().session(replace(self.params(), resume_session_id=resume)) as it:
            return await it.run_turn(prompt, heard), heard

    def launches(self) -> list[list[str]]:
        """Return the arguments of each process that was started."""
        log = self.home / "log.jsonl"
        lines = log.read_text().splitlines() if log.exists() else []
        return [json.loads(line)["arguments"] for line in lines]
