"""The real Claude Code behind a daemon, on this machine or on a host, with a scripted model."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.e2e.place import PROMPT, Place
from tests.e2e.remote import Fleet
from tests.live.model_answers import Answer
from tests.live.model_server import ModelServer, Script
from tests.live.npm_programs import npm_program

PACKAGE = "@anthropic-ai/claude-code"
VERSION = "2.1.328"
KEY = "sk-ant-live-000000"
HERE = "here"
"""The name of the script."""

_QUIET = {
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    "DISABLE_AUTOUPDATER": "1",
    "IS_SANDBOX": "1",  # root may approve everything only in there
}


def claude_program() -> Path:
    """Return the installed program; skips where it cannot be installed."""
    folder = npm_program(PACKAGE, VERSION)
    found = sorted(folder.glob("node_modules/@anthropic-ai/claude-code-*/claude"))
    assert len(found) == 1, f"there are {len(found)} programs in {folder}"
    return found[0]


def quiet_environ(server: ModelServer) -> dict[str, str]:
    """Return the variables by which it asks the scripted model alone."""
    return {
        **_QUIET,
        "ANTHROPIC_BASE_URL": server.url(HERE),
        "ANTHROPIC_API_KEY": KEY,
        "CLAUDE_CODE_MAX_RETRIES": "2",
    }


@dataclass(frozen=True)
class Claude:
    """Claude Code as the agent of a place; on a host where there is a fleet."""

    place: Place
    server: ModelServer
    fleet: Fleet | None

    @classmethod
    def at(cls, place: Place, server: ModelServer, fleet: Fleet | None) -> Claude:
        """Install the program, start a host with it, and write a workflow."""
        program = claude_program()
        claude = cls(place, server, fleet)
        if fleet is not None:
            (host,) = fleet.add("far", has_program=False)
            (host.home / "bin" / "claude").symlink_to(program)
        claude.workflow()
        return claude

    @property
    def home(self) -> Path:
        """The home directory where it runs."""
        return self.place.home if self.fleet is None else self.fleet.hosts["far"].home

    def workflow(
        self,
        prompt: str = PROMPT,
        agent: Mapping[str, object] | None = None,
        blocks: Mapping[str, Mapping[str, object] | str] | None = None,
        **block: object,
    ) -> None:
        """Write the workflow, with further settings of ``agent`` and of ``claude-code``, and with
        further blocks."""
        command = str(claude_program()) if self.fleet is None else "claude"
        chosen: dict[str, object] = {"kind": "claude-code", "command": command, "max_turns": 1}
        written: dict[str, Any] = {
            "agent": chosen | dict(agent or {}),
            "claude-code": {"permission_mode": "bypassPermissions"} | block,
            "logging": {"level": "debug"},
            **(blocks or {}),
        }
        if self.fleet is None:
            self.place.write_workflow(prompt, **written)
        else:
            passed = sorted(_QUIET)
            self.fleet.write_workflow(prompt, worker={"ssh_pass_env": passed}, **written)

    def environ(self, **changed: str | None) -> dict[str, str | None]:
        """Return what a daemon's environment has for the agent."""
        return {**quiet_environ(self.server), **changed}

    def script(self, *answers: Answer) -> Script:
        """Set what the model answers."""
        return self.server.script(HERE, *answers)

    def workspace(self, issue: str) -> Path:
        """Return where an issue is worked on."""
        root = self.place.workspaces if self.fleet is None else self.home / "workspaces"
        return root / issue


def said_by_user(body: Any) -> list[str]:
    """Return what a request holds of the user's own words, oldest first."""
    found = []
    for message in body["messages"]:
        if message["role"] == "user":
            content = message["content"]
            blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
            texts = [block["text"] for block in blocks if block["type"] == "text"]
            found += [text for text in texts if not text.startswith("<system-reminder>")]
    return found


def told_in(body: Any) -> str:
    """Return a request as a text to look into."""
    return json.dumps(body["messages"], ensure_ascii=False)
