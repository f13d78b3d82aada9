"""Agents from npm that speak ACP, set up so that their model is a scripted one on loopback."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from tests.live.model_answers import Answer, tool
from tests.live.npm_programs import npm_program

KEY = "sk-live-mock-key"


@dataclass(frozen=True, kw_only=True)
class Program:
    """A real agent: its package and command, how it finds its model, and its words for tools.

    ``environ`` makes variables of the model's address, ``configure`` files in a home.
    ``outside`` is a tool that it asks about and that names a path outside of the workspace.
    ``ends_when_denied``: it ends its turn then. ``edit`` is the model's wish to write a file at a
    path.
    """

    package: str
    version: str
    arguments: tuple[str, ...]
    program: str
    shell: str
    environ: Callable[[str], Mapping[str, str]]
    outside: Answer
    edit: Callable[[str], Answer]
    configure: Callable[[Path, str], None] = lambda _home, _url: None
    reports_tokens: bool = True
    ends_when_denied: bool = True
    settings: Mapping[str, object] = field(default_factory=dict)

    def command(self) -> list[str]:
        """Return its command line. Skips where it cannot be installed."""
        folder = npm_program(self.package, self.version) / "node_modules" / self.program
        node = shutil.which("node")
        if folder.suffix != ".js":
            return [str(folder), *self.arguments]
        if node is None:
            pytest.skip(f"{self.package} cannot run: node is not on PATH")
        return [node, str(folder), *self.arguments]

    def run(self, command: str) -> Answer:
        """Return the model's wish to run a command."""
        return tool(self.shell, command=command, description="d")


def _configure_opencode(home: Path, url: str) -> None:
    model = {"name": "scripted", "tool_call": True, "limit": {"context": 128000, "output": 8000}}
    provider = {
        "npm": "@ai-sdk/openai-compatible",
        "name": "Scripted",
        "options": {"baseURL": f"{url}/v1", "apiKey": KEY},
        "models": {"model": model | {"cost": {"input": 3, "output": 15}}},
    }
    config = {
        "provider": {"scripted": provider},
        "model": "scripted/model",
        "small_model": "scripted/model",
        "autoupdate": False,
        "share": "disabled",
    }
    folder = home / ".config" / "opencode"
    folder.mkdir(parents=True)
    (folder / "opencode.json").write_text(json.dumps(config), encoding="utf-8")


def _configure_gemini(home: Path, _url: str) -> None:
    settings = {
        "security": {"auth": {"selectedType": "gemini-api-key"}},
        "privacy": {"usageStatisticsEnabled": False},
        "general": {"disableAutoUpdate": True},
    }
    (home / ".gemini").mkdir()
    (home / ".gemini" / "settings.json").write_text(json.dumps(settings), encoding="utf-8")


def _patch(path: str) -> Answer:
    patch = f"*** Begin Patch\n*** Add File: {path}\n+made\n*** End Patch"
    return tool("exec_command", cmd=f"apply_patch <<'EOF'\n{patch}\nEOF")


def _configure_codex(home: Path, url: str) -> None:
    (home / ".codex").mkdir()
    (home / ".codex" / "config.toml").write_text(
        f"""\
model = "gpt-5"
model_provider = "scripted"
check_for_update_on_startup = false
[model_providers.scripted]
name = "Scripted"
base_url = "{url}/v1"
wire_api = "responses"
env_key = "SCRIPTED_API_KEY"
request_max_retries = 1
stream_max_retries = 1
""",
        encoding="utf-8",
    )


PROGRAMS = {
    "opencode": Program(
        package="opencode-ai",
        version="1.18.33",
        program="opencode-ai/bin/opencode.exe",
        arguments=("acp",),
        shell="bash",
        environ=lambda _url: {"OPENCODE_DISABLE_MODELS_FETCH": "1"},
        configure=_configure_opencode,
        outside=tool("read", filePath="/etc/hostname"),
        edit=lambda path: tool("write", filePath=path, content="made"),
        reports_tokens=False,
        settings={"model": "scripted/model"},
    ),
    "gemini": Program(
        package="@google/gemini-cli",
        version="0.61.0",
        program="@google/gemini-cli/bundle/gemini.js",
        arguments=("--acp", "-m", "gemini-2.5-flash"),
        shell="run_shell_command",
        environ=lambda url: {
            "GEMINI_API_KEY": KEY,
            "GOOGLE_GEMINI_BASE_URL": url,
            "GEMINI_CLI_TRUST_WORKSPACE": "true",
        },
        configure=_configure_gemini,
        outside=tool("run_shell_command", command="touch refused", description="d"),
        edit=lambda path: tool("write_file", file_path=path, content="made"),
        ends_when_denied=False,
    ),
    "copilot": Program(
        package="@github/copilot",
        version="1.0.102",
        program="@github/copilot-linux-x64/copilot",
        arguments=("--acp",),
        shell="bash",
        environ=lambda url: {
            "COPILOT_OFFLINE": "true",
            "COPILOT_PROVIDER_BASE_URL": f"{url}/v1",
            "COPILOT_PROVIDER_TYPE": "openai",
            "COPILOT_PROVIDER_API_KEY": KEY,
            "COPILOT_MODEL": "gpt-5",
        },
        outside=tool("bash", command="touch refused", description="d"),
        edit=lambda path: tool("create", path=path, file_text="made"),
    ),
}

_CODEX = Program(
    package="@agentclientprotocol/codex-acp",
    version="2.6.0",
    program="@agentclientprotocol/codex-acp/dist/index.js",
    arguments=(),
    shell="exec_command",
    environ=lambda _url: {"SCRIPTED_API_KEY": KEY},
    configure=_configure_codex,
    outside=tool("exec_command", cmd="touch refused"),
    edit=_patch,
)

ASKING = PROGRAMS | {
    "claude": Program(
        package="@agentclientprotocol/claude-agent-acp",
        version="0.101.0",
        program="@agentclientprotocol/claude-agent-acp/dist/index.js",
        arguments=(),
        shell="Bash",
        environ=lambda url: {
            "ANTHROPIC_BASE_URL": url,
            "ANTHROPIC_API_KEY": KEY,
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "IS_SANDBOX": "1",
        },
        outside=tool("Read", file_path="/etc/hostname"),
        edit=lambda path: tool("Write", file_path=path, content="made"),
        ends_when_denied=False,
    ),
    "codex": _CODEX,
    "codex-0.16.0": replace(
        _CODEX,
        package="@zed-industries/codex-acp",
        version="0.16.0",
        program="@zed-industries/codex-acp-linux-x64/bin/codex-acp",
    ),
}
"""The programs, and bridges to Claude Code and Codex."""
