"""Real agents that have placeholders of their keys: the proxy leads them to a scripted model."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest
import trio

from sortie.agents import ADAPTERS, AgentCommand
from sortie.transports.walls.filter_proxy import proxy_variables
from sortie.transports.walls.proxied_credentials import proxied_credentials
from tests.live.acp_agents import PROGRAMS
from tests.live.claude import claude_program
from tests.live.model_answers import Answer, tool
from tests.live.model_server import model_server
from tests.transports.walls.network import MadeUpNetwork

pytestmark = [pytest.mark.full, pytest.mark.timeout(600)]

KEY = "sk-ant-api03-" + "R3al" * 20
DONE = "All is really done."


@dataclass(frozen=True, kw_only=True)
class LedAgent:
    """A real agent for one prompt; ``base`` follows the address of the model's server."""

    kind: str
    command: AgentCommand
    argv: Callable[[], list[str]]
    key: str
    base_url: str
    base: str = ""
    environ: Mapping[str, str]
    shell: str


def _program(name: str, *arguments: str) -> Callable[[], list[str]]:
    used = len(PROGRAMS[name].arguments)
    return lambda: [*PROGRAMS[name].command()[:-used], *arguments]


LED = {
    "claude": LedAgent(
        kind="claude-code",
        command=None,
        argv=lambda: [str(claude_program()), "-p", "go", "--dangerously-skip-permissions"],
        key="ANTHROPIC_API_KEY",
        base_url="ANTHROPIC_BASE_URL",
        environ={"IS_SANDBOX": "1", "DISABLE_AUTOUPDATER": "1"},
        shell="Bash",
    ),
    "gemini": LedAgent(
        kind="acp",
        command="gemini --acp",
        argv=_program("gemini", "-m", "gemini-2.5-flash", "--approval-mode", "yolo", "-p", "go"),
        key="GEMINI_API_KEY",
        base_url="GOOGLE_GEMINI_BASE_URL",
        environ={"GEMINI_CLI_TRUST_WORKSPACE": "true", "GEMINI_CLI_NO_RELAUNCH": "true"},
        shell="run_shell_command",
    ),
    "opencode": LedAgent(
        kind="acp",
        command="opencode acp",
        argv=_program("opencode", "run", "-m", "anthropic/claude-sonnet-4-5", "go"),
        key="ANTHROPIC_API_KEY",
        base_url="ANTHROPIC_BASE_URL",
        base="/v1",
        environ={"OPENCODE_DISABLE_MODELS_FETCH": "1", "OPENCODE_DISABLE_AUTOUPDATE": "1"},
        shell="bash",
    ),
}


@pytest.mark.parametrize("name", LED)
async def test_a_real_agent_works_with_a_placeholder(name: str, tmp_path: Path) -> None:
    """The model gets the key, and neither the agent nor what it runs ever has it."""
    agent = LED[name]
    argv = agent.argv()
    PROGRAMS["gemini"].configure(tmp_path, "")
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    look = tool(agent.shell, command=f"echo ${agent.key} > key", description="d")
    net = MadeUpNetwork()

    with model_server() as models:
        script = models.script("here", look, Answer(text=DONE))
        env = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), **agent.environ}
        env |= {agent.key: KEY, agent.base_url: models.url("here") + agent.base}
        endpoints = ADAPTERS.load(agent.kind).model_endpoints(agent.command)
        credentials = proxied_credentials(endpoints, env)
        for route in credentials.routes.values():
            net.ports[route.host, route.port] = route.port
        async with net.proxy(credentials=credentials) as url:
            led = credentials.agent_env(env | proxy_variables(url), url)
            done = await trio.run_process(
                argv, env=led, cwd=workspace, capture_stdout=True, capture_stderr=True, check=False
            )

    assert done.returncode == 0, done.stderr[-2000:]
    assert DONE.encode() in done.stdout
    assert (workspace / "key").read_text().strip() == led[agent.key] != KEY
    assert KEY.encode() not in done.stdout + done.stderr
    assert script.requests
    assert all(KEY in " ".join(one.headers.values()) for one in script.requests)
    assert KEY not in json.dumps([request.body for request in script.requests])
