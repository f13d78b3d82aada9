"""Real agents under the conformance kit, asked in plain words; their model is scripted.

What words cannot make a program do is tried with stand-ins, in ``tests/contract/agent``.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import trio

from sortie.agents import ADAPTERS
from sortie.testing.agent import CHECKS, Conformance, Status, plain_scenarios, this_machine
from sortie.testing.agent.scenarios import DEFAULTS
from tests.live.acp_agents import PROGRAMS
from tests.live.claude import KEY, claude_program
from tests.live.codex import CODEX_KEY, SHELL, codex_program
from tests.live.model_answers import Answer, tool
from tests.live.model_server import ModelServer, model_server

pytestmark = [pytest.mark.full, pytest.mark.timeout(900)]

NAME = "kit"
QUESTION, TASK = DEFAULTS["recall"]["prompt"], DEFAULTS["tool"]["prompt"]
SETTINGS: dict[str, Any] = {
    "claude-code": {"permission_mode": "acceptEdits", "allowed_tools": "Bash"},
    "acp": {"permissions": {"inside": {"default": "allow"}}},
    "codex": {"model": "gpt-5", "sandbox": "danger-full-access"},
}
TRIED = (
    "turn.success",
    "turn.two-sessions",
    "end.signal-KILL",
    "stop.at-launch",
    "stop.in-a-tool",
    "stop.session-left",
    "stop.next-turn",
    "resume.next-turn",
    "resume.next-session",
    "resume.after-kill",
    "host.lost",
)
"""What stand-ins could get wrong; real agents take their time, and the rest is left to those."""


@pytest.fixture(scope="module")
def server() -> Iterator[ModelServer]:
    with model_server() as models:
        yield models


def answers(shell: str, body: Any) -> Answer:
    """Return what a model would answer that does what it is told."""
    said = json.dumps(body)
    if QUESTION in said:
        return Answer(text="PONG" if DEFAULTS["remember"]["prompt"] in said else "I do not know.")
    if TASK in said and said.rindex(TASK) > said.rfind(DEFAULTS["success"]["prompt"]):
        wait = "tail -f /dev/null"
        if shell == SHELL:
            return tool(shell, cmd=wait)
        return tool(shell, command=wait, description="wait")
    return Answer(text="OK")


@pytest.mark.parametrize("check", TRIED)
@pytest.mark.parametrize("agent", ["claude-code", "codex", "gemini", "opencode", "copilot"])
def test_a_real_agent_keeps_it(agent: str, check: str, server: ModelServer, tmp_path: Path) -> None:
    """On this machine."""
    kind = agent if agent in ("claude-code", "codex") else "acp"
    url, settings = server.url(NAME), SETTINGS[kind]
    environ = {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}
    if kind == "claude-code":
        shell, command = "Bash", [str(claude_program())]
        environ |= {"ANTHROPIC_BASE_URL": url, "ANTHROPIC_API_KEY": KEY}
        environ |= {"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "DISABLE_AUTOUPDATER": "1"}
    elif kind == "codex":
        shell, command = SHELL, [str(codex_program()), "app-server"]
        environ |= {"OPENAI_BASE_URL": f"{url}/v1", "OPENAI_API_KEY": CODEX_KEY}
    else:
        program = PROGRAMS[agent]
        shell, command = program.shell, program.command()
        environ |= program.environ(url)
        program.configure(tmp_path, url)
        settings = settings | program.settings
    server.rule(NAME, lambda body: answers(shell, body))
    subject = Conformance(
        adapter=ADAPTERS.load(kind),
        command=tuple(command),
        scenarios=plain_scenarios().model_copy(update={"settings": settings}),
        env=environ,
        patience=300.0,
    )

    verdict = trio.run(subject.verdict, CHECKS[check], this_machine())

    if verdict.status is Status.NOT_TRIED:
        pytest.skip(verdict.reason)
    assert verdict.status is Status.PASSED, verdict.reason
