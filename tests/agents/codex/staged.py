"""A session with the scripted Codex, for tests with real processes."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any, TypeVar

import trio
from msgspec.structs import replace

from sortie.agents import McpServer, Session, SessionParams
from sortie.agents.codex.agent import CodexAgent
from sortie.agents.codex.settings import CodexSettings
from sortie.model import RunId, TurnResult
from sortie.model.turns import AnswerGiven
from sortie.transports.local import LocalTransport
from tests.agents.kiro.simulated import Heard as HeardBefore

PROGRAM = Path(__file__).with_name("programs") / "scripted_codex.py"
KEY = "sk-scripted-secret"


E = TypeVar("E")


class Heard(HeardBefore):
    """What on_events got."""

    def of(self, kind: type[E]) -> list[E]:
        """Return the events of a kind."""
        return [event for event in self.events if isinstance(event, kind)]


class CodexStage:
    """A workspace, and Codex in it; ``words`` are options of the program."""

    def __init__(self, folder: Path) -> None:
        self.workspace = folder / "workspace"
        self.workspace.mkdir()
        self.params = SessionParams(
            run_id=RunId(f"run-{folder.name}"),
            workspace=str(self.workspace),
            transport=LocalTransport(),
            env={
                "PATH": os.defpath,
                "HOME": str(folder),
                "SORTIE_RUN_ID": f"run-{folder.name}-{os.getpid()}",
                "SCRIPTED_API_KEY": KEY,
            },
            read_timeout=20.0,
            stop_grace=0.5,
        )

    def session(
        self,
        *words: str,
        resume: str | None = None,
        settings: CodexSettings | None = None,
        env: Mapping[str, str] | None = None,
        server: McpServer | None = None,
    ) -> AbstractAsyncContextManager[Session]:
        """Have a session of an agent of its own."""
        command = (sys.executable, "-S", str(PROGRAM), *words)
        params = replace(
            self.params,
            resume_session_id=resume,
            env={**self.params.env, **(env or {})},
            mcp_server=server,
        )
        return CodexAgent(command, settings or CodexSettings()).session(params)

    async def turns(
        self, prompts: Sequence[str], *words: str, settings: CodexSettings | None = None
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
        self, prompt: str, *words: str, settings: CodexSettings | None = None
    ) -> tuple[TurnResult, Heard]:
        """Run one turn in a session of its own."""
        return (await self.turns([prompt], *words, settings=settings))[0]

    async def shown(
        self, settings: CodexSettings | None = None, **given: Any
    ) -> tuple[list[str], dict[str, Any], dict[str, Any]]:
        """Return the arguments of the program, and how its thread and its turn were opened."""
        heard = Heard()
        with trio.fail_after(60):
            async with self.session(settings=settings, **given) as session:
                await session.run_turn("codex: show", heard)
        (answer,) = heard.of(AnswerGiven)
        shown = json.loads(answer.text)
        return shown["arguments"], shown["thread"], shown["turn"]
