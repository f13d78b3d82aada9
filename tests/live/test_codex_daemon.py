"""The real Codex behind a daemon, here and on a host over SSH, and behind walls."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
import trio
from msgspec.structs import replace

from sortie.agents import ADAPTERS
from sortie.agents.codex.settings import CodexSettings
from sortie.model import TurnOutcome
from sortie.model.turns import ToolEnded
from sortie.transports.local import LocalTransport, become_subreaper
from sortie.transports.local.fork_client import ForkServer
from sortie.transports.walls.bubblewrap import BubblewrapTransport
from sortie.transports.walls.enclosure import Enclosure
from sortie.transports.walls.filter_proxy import proxy_variables
from sortie.transports.walls.proxied_credentials import proxied_credentials
from tests.agents.codex.staged import Heard
from tests.e2e.conftest import Start
from tests.e2e.place import Place
from tests.e2e.remote import Fleet
from tests.live.codex import CODEX_KEY, SHELL, RealCodex, codex_program
from tests.live.model_answers import Answer, tool
from tests.live.model_server import ModelServer, model_server
from tests.transports.sandboxes import requires_bubblewrap
from tests.transports.ssh.sshd import requires_sshd
from tests.transports.walls.network import MadeUpNetwork

pytestmark = [pytest.mark.full, pytest.mark.timeout(600)]

LIMIT = 200.0
DONE = Answer(text="All is done.")


@pytest.fixture(scope="module")
def server() -> Iterator[ModelServer]:
    with model_server() as models:
        yield models


@pytest.fixture
def codex(server: ModelServer, tmp_path: Path) -> Iterator[RealCodex]:
    become_subreaper()
    program = codex_program()
    with TemporaryDirectory(dir="/var/tmp", ignore_cleanup_errors=True) as home:
        yield RealCodex(tmp_path, Path(home), program, server.url("codex"))


@pytest.mark.parametrize("where", ["here", pytest.param("host", marks=requires_sshd)])
async def test_a_daemon_runs_it(
    where: str,
    place: Place,
    server: ModelServer,
    start: Start,
    request: pytest.FixtureRequest,
) -> None:
    """Two turns of one thread, a tool and tokens; the key is seen nowhere."""
    program, workspaces = codex_program(), place.workspaces
    blocks: dict[str, dict[str, object]] = {
        "agent": {"kind": "codex", "command": [str(program), "app-server"], "max_turns": 2},
        "codex": {"model": "gpt-5", "sandbox": "danger-full-access"},
        "logging": {"level": "debug"},
    }
    if where == "host":
        fleet = request.getfixturevalue("fleet")
        assert isinstance(fleet, Fleet)
        (host,) = fleet.add("far", has_program=False)
        workspaces = host.home / "workspaces"
        fleet.write_workflow("Do it.", **blocks)
    else:
        place.write_workflow("Do it.", **blocks)
    place.add_issue("A")
    script = server.script("daemon", tool(SHELL, cmd="echo made > made; sleep 1"), DONE)
    environ = {"OPENAI_API_KEY": CODEX_KEY, "OPENAI_BASE_URL": f"{server.url('daemon')}/v1"}

    async with start(**environ) as daemon:
        await daemon.line("issue.moved", issue="A", lifecycle="handoff")
        (ended,) = daemon.lines("tool.ended")
        turns = daemon.lines("turn.completed")
        is_shown = any(CODEX_KEY in str(line) for line in daemon.log)

    assert (workspaces / "A" / "made").read_text() == "made\n"
    assert (ended["tool"], ended["failed"]) == (SHELL, False)
    assert [(line["outcome"], line["tokens"]) for line in turns] == [
        ("completed", 240),
        ("completed", 120),
    ]
    assert "All is done." in json.dumps(script.requests[-1].body)
    assert not is_shown


@requires_bubblewrap
async def test_it_works_in_bubblewrap(codex: RealCodex, server: ModelServer) -> None:
    """With the wall around it in the place of its own sandbox; its address is asked for inside."""
    server.script("codex", tool(SHELL, cmd="echo made > made; ls /home; sleep 1"), DONE)
    forks = ForkServer(namespaces=True, cgroup="")
    heard = Heard()
    try:
        outside = LocalTransport(os.environ["PATH"], server=forks)
        wall = BubblewrapTransport(outside, Enclosure(own=(str(codex.home / ".codex"),)))
        settings = CodexSettings(model="gpt-5", sandbox="danger-full-access")
        params = replace(codex.params, transport=wall)
        with trio.fail_after(LIMIT):
            async with codex.agent(settings).session(params) as session:
                result = await session.run_turn("go", heard)
    finally:
        forks.close()

    assert result.outcome is TurnOutcome.COMPLETED
    assert (codex.workspace / "made").read_text() == "made\n"
    (ended,) = heard.of(ToolEnded)
    assert "/home" in (ended.output or "")  # ls: cannot access


async def test_it_works_with_a_placeholder_of_its_key(
    codex: RealCodex, server: ModelServer
) -> None:
    """The model gets the key, and neither Codex nor what it runs ever has it."""
    key = "sk-proj-" + "R3al" * 20
    script = server.script("codex", tool(SHELL, cmd="echo $OPENAI_API_KEY > key; sleep 1"), DONE)
    net = MadeUpNetwork()
    env = {**codex.params.env, "OPENAI_API_KEY": key}
    credentials = proxied_credentials(ADAPTERS.load("codex").model_endpoints(None), env)
    for route in credentials.routes.values():
        net.ports[route.host, route.port] = route.port
    settings = CodexSettings(model="gpt-5", sandbox="danger-full-access")

    async with net.proxy(credentials=credentials) as url:
        led = credentials.agent_env(env | proxy_variables(url), url)
        with trio.fail_after(LIMIT):
            async with codex.agent(settings).session(codex.with_env(led)) as session:
                result = await session.run_turn("go", Heard())

    assert result.outcome is TurnOutcome.COMPLETED
    assert (codex.workspace / "key").read_text().strip() == led["OPENAI_API_KEY"] != key
    assert all(key in " ".join(one.headers.values()) for one in script.requests)
    assert key not in json.dumps([one.body for one in script.requests])
