"""``sortie demo --agent``: real agents on the five issues, as somebody sees it who tries them.

Their model is scripted; what is real is everything else.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from tests.e2e.place import Place
from tests.live.acp_agents import PROGRAMS
from tests.live.claude import HERE, Claude, claude_program
from tests.live.codex import CODEX_KEY, SHELL, codex_program
from tests.live.model_answers import Answer, tool
from tests.live.model_server import ModelServer, model_server
from tests.ports import free_port

pytestmark = [pytest.mark.full, pytest.mark.timeout(900)]

SLOW = 600.0
ISSUES = [f"DEMO-{number}" for number in range(1, 6)]
WRITE = "echo done > DONE.md"
CLOSE = "sed -i 's/^state: .*/state: Done/' ../../issues/DEMO-3.md"


@dataclass(frozen=True)
class RealAgent:
    """An installed agent: how the demo is told of it, and how its model asks for a shell."""

    kind: str
    command: str
    shell: str
    environ: dict[str, str | None]


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with model_server() as models:
        yield models


@pytest.fixture(params=["claude-code", "codex", *PROGRAMS])
def agent(request: pytest.FixtureRequest, place: Place, server: ModelServer) -> RealAgent:
    """Install an agent and set it up for the scripted model; not in a task: it may skip."""
    if request.param == "claude-code":
        environ = Claude(place, server, None).environ(IS_SANDBOX=None)
        return RealAgent("claude-code", str(claude_program()), "Bash", environ)
    if request.param == "codex":
        (place.home / ".codex").mkdir()
        (place.home / ".codex" / "config.toml").write_text('model = "gpt-5"\n')
        keys = {"OPENAI_API_KEY": CODEX_KEY, "OPENAI_BASE_URL": f"{server.url(HERE)}/v1"}
        return RealAgent("codex", f"{codex_program()} app-server", SHELL, {**keys})
    program, url = PROGRAMS[request.param], server.url(HERE)
    command = " ".join(program.command())
    program.configure(place.home, url)
    return RealAgent("acp", command, program.shell, {**program.environ(url)})


async def test_an_agent_works_on_the_demo(
    agent: RealAgent, place: Place, server: ModelServer
) -> None:
    """All come where they belong; DEMO-3's agent closes its issue, which lets DEMO-4 go."""

    def work(body: Any) -> Answer:
        text = json.dumps(body)
        if WRITE in text:  # it was asked for already
            return Answer(text="All is done.")
        (issue,) = set(re.findall(r"# (DEMO-\d): ", text))
        command = f"{WRITE} && {CLOSE}" if issue == "DEMO-3" else WRITE
        if agent.shell == SHELL:
            return tool(SHELL, cmd=command)
        return tool(agent.shell, command=command, description="work")

    server.rule(HERE, work)
    ran = await place.sortie(
        *("demo", "demo", "--agent", agent.kind, "--agent-command", agent.command),
        *("--exit-when-idle", "--port", str(free_port())),
        within=SLOW,
        **agent.environ,
        SORTIE_AGENT_READ_TIMEOUT_MS="60000",
    )
    demo = place.root / "demo"
    texts = [(demo / "issues" / f"{name}.md").read_text() for name in ISSUES]
    states = [re.findall(r"^state: (.*)$", text, re.MULTILINE)[0] for text in texts]
    written = sorted(path.parent.name for path in (demo / "workspaces").glob("*/DONE.md"))

    assert ran.code == 0, ran.err
    assert f"({agent.kind}) asks its model, and its provider charges for that" in ran.out
    assert states == ["Human Review", "Human Review", "Done", "Human Review", "Human Review"]
    assert written == [name for name in ISSUES if name != "DEMO-3"]  # whose workspace is gone
