"""The real Codex from npm, set up so that its model is a scripted one on loopback."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest
from msgspec.structs import replace

from sortie.agents import SessionParams
from sortie.agents.codex.agent import CodexAgent
from sortie.agents.codex.settings import CodexSettings
from sortie.model import RunId
from sortie.transports.local import LocalTransport
from tests.live.npm_programs import npm_program

CODEX_KEY = "sk-live-mock-key"
VERSIONS = ("0.166.0", "0.171.0")
SHELL = "exec_command"


def codex_program(version: str = VERSIONS[-1]) -> Path:
    """Return the native program of a version. Skips where it cannot be installed."""
    modules = npm_program("@openai/codex", version) / "node_modules" / "@openai"
    found = sorted(modules.glob("codex*/vendor/*/bin/codex"))
    if not found:
        pytest.skip(f"@openai/codex {version} brings no program for this machine")
    return found[0]


class RealCodex:
    """A repository as workspace, and Codex of a version with the model at an address.

    Its ``home`` lies outside of /tmp: below that, Codex makes no helper for its sandbox.
    """

    def __init__(self, folder: Path, home: Path, program: Path, url: str) -> None:
        self.home, self.workspace = home, folder / "workspace"
        self.program = program
        self.workspace.mkdir()
        subprocess.run(("git", "init", "-q", str(self.workspace)), check=True)
        self.params = SessionParams(
            run_id=RunId(f"run-{folder.name}"),
            workspace=str(self.workspace),
            transport=LocalTransport(os.environ["PATH"]),
            env={
                "PATH": os.environ["PATH"],
                "HOME": str(self.home),
                "SORTIE_RUN_ID": f"run-{folder.name}-{os.getpid()}",
                "OPENAI_API_KEY": CODEX_KEY,
                "OPENAI_BASE_URL": f"{url}/v1",
                "GIT_AUTHOR_NAME": "a",
                "GIT_AUTHOR_EMAIL": "a@example.org",
                "GIT_COMMITTER_NAME": "a",
                "GIT_COMMITTER_EMAIL": "a@example.org",
            },
            read_timeout=60.0,
            stop_grace=5.0,
        )

    def agent(self, settings: CodexSettings | None = None) -> CodexAgent:
        """Return the adapter for it."""
        given = settings or CodexSettings(model="gpt-5")
        return CodexAgent((str(self.program), "app-server"), given)

    def with_env(self, env: Mapping[str, str]) -> SessionParams:
        """Return the parameters of a session with another environment."""
        return replace(self.params, env=dict(env))
