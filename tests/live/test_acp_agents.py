"""Real agents that speak ACP, through the whole daemon, here and on a host over SSH.

Their model is scripted; what is real is everything else. Each is installed from npm once.
"""

from __future__ import annotations

import json
import signal
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

import pytest
import trio
from psutil import process_iter

from tests.e2e.conftest import Start, fleet, loaded, place, start
from tests.e2e.place import Json, Place
from tests.e2e.remote import Fleet
from tests.live.acp_agents import ASKING, KEY, PROGRAMS, Program
from tests.live.model_answers import Answer
from tests.live.model_server import ModelServer, Script, model_server
from tests.transports.ssh.sshd import requires_sshd

__all__ = ["fleet", "loaded", "place", "start"]

pytestmark = [pytest.mark.full, pytest.mark.timeout(900)]

SLOW = 240.0
"""Seconds for what a real agent may take on a machine that has much else to do."""

TRUSTING = {"permissions": {"inside": {"default": "allow"}}}


@dataclass(frozen=True, kw_only=True)
class Stage:
    """A place in which an agent works on an issue, and the script of its model."""

    program: Program
    command: list[str]
    place: Place
    server: ModelServer
    environ: dict[str, str]
    fleet: Fleet | None

    def write_workflow(self, acp: Mapping[str, object], **agent: object) -> None:
        """Write a workflow for the agent; its permissions are in ``acp``."""
        given = {"kind": "acp", "command": self.command, "read_timeout_ms": 60_000}
        blocks: dict[str, dict[str, object]] = {
            "agent": given | {"stop_grace_ms": 5000} | agent,
            "acp": {**self.program.settings, **acp},
        }
        prompt = "Do the work of {{ issue.identifier }}."
        if self.fleet is None:
            self.place.write_workflow(prompt, **blocks)
        else:
            worker = {"ssh_pass_env": sorted(self.environ)}
            self.fleet.write_workflow(prompt, worker=worker, **blocks)
        self.place.add_issue("LIVE-1")

    def script(self, *answers: Answer) -> Script:
        """Say what the model answers."""
        return self.server.script("live", *answers)

    def made(self, name: str) -> Path:
        """Return where a file of the workspace stands."""
        if self.fleet is None:
            return self.place.workspaces / "LIVE-1" / name
        (host,) = self.fleet.hosts.values()
        return host.home / "workspaces" / "LIVE-1" / name

    async def run(self) -> dict[str, list[Json]]:
        """Run the daemon until it is idle; return its log lines by event."""
        options = ("--exit-when-idle", "--log-level", "debug", "--log-format", "json")
        ran = await self.place.sortie("run", *options, within=SLOW, **self.environ)
        assert ran.code == 0, ran.err
        assert KEY not in ran.err
        lines: dict[str, list[Json]] = defaultdict(list)
        for line in map(json.loads, ran.err.splitlines()):
            lines[line["event"]].append(line)
        return lines


@pytest.fixture(scope="module")
def server() -> Iterator[ModelServer]:
    with model_server() as running:
        yield running


@pytest.fixture(params=list(PROGRAMS.values()), ids=list(PROGRAMS))
def program(request: pytest.FixtureRequest) -> Program:
    found: Program = request.param
    return found


@pytest.fixture(params=["here", pytest.param("host", marks=requires_sshd)])
def stage(
    request: pytest.FixtureRequest, program: Program, place: Place, server: ModelServer
) -> Stage:
    """Give an agent's stage, here or on a host."""
    command = program.command()  # not in a test's task: a skip out of that loses its reason
    url = server.url("live")
    environ, home, hosts = dict(program.environ(url)), place.home, None
    if request.param == "host":
        hosts = request.getfixturevalue("fleet")
        assert isinstance(hosts, Fleet)
        (host,) = hosts.add("far", has_program=False)
        home = host.home
    program.configure(home, url)
    return Stage(
        program=program, command=command, place=place, server=server, environ=environ, fleet=hosts
    )


async def test_it_uses_tools_over_two_turns(stage: Stage) -> None:
    """A tool that is allowed writes a file, and the second turn is of the same conversation."""
    program = stage.program
    script = stage.script(
        program.run("echo made > by-the-tool"),
        Answer(text="first done"),
        Answer(text="second done"),
    )
    stage.write_workflow(TRUSTING, max_turns=2)

    lines = await stage.run()

    assert stage.place.state_of("LIVE-1") == "Human Review"
    assert stage.made("by-the-tool").read_text() == "made\n"
    assert [line["outcome"] for line in lines["turn.completed"]] == ["completed"] * 2
    said = [line["message"] for line in lines["agent.spoke"] if line.get("message")]
    assert [text for text in said if text in ("first done", "second done")] == [
        "first done",
        "second done",
    ]
    (tool,) = lines["tool.ended"]
    assert (tool["kind"], tool["failed"]) == ("execute", False)
    assert all(line["answer"].startswith("allowed") for line in lines["agent.permission"])
    assert "first done" in json.dumps(script.requests[-1].body)
    told = [line["tokens"] for line in lines["turn.completed"] if "tokens" in line]
    # Two calls of the model in the first turn, one in the other; 100 tokens in and 20 out each.
    assert told == ([240, 120] if program.reports_tokens else [])
    (row,) = await stage.place.history()
    assert (row["status"], row["turns"], row["agent"]) == ("succeeded", 2, "acp")


@pytest.mark.parametrize("stage", ["here"], indirect=True)
async def test_a_permission_is_refused(stage: Stage, start: Start) -> None:
    """What the rules deny is not done; the agent goes on, or its turn has failed."""
    stage.script(stage.program.outside, Answer(text="went on without it"))
    rules = {"permissions": {"inside": {"execute": "deny"}, "outside": {"default": "deny"}}}
    stage.write_workflow(rules, max_turns=1)

    async with start("--log-level", "debug", **stage.environ) as daemon:
        await daemon.line("turn.completed", within=SLOW)
    lines: dict[str, list[Json]] = defaultdict(list)
    for line in daemon.log:
        lines[line["event"]].append(line)

    (asked,) = lines["agent.permission"][:1]
    assert asked["answer"].startswith("denied")
    assert not stage.made("refused").exists()
    turn = lines["turn.completed"][0]
    if stage.program.ends_when_denied:
        assert turn["outcome"] == "failed"
        assert "after a permission was denied" in turn["error"]
    else:
        assert turn["outcome"] == "completed"


@pytest.mark.parametrize("program", list(ASKING.values()), ids=list(ASKING), indirect=True)
@pytest.mark.parametrize("stage", ["here"], indirect=True)
async def test_rules_that_deny_are_kept(stage: Stage, start: Start) -> None:
    """Also by an agent that begins in a mode in which it asks nothing."""
    made = str(stage.made("denied"))
    stage.script(stage.program.edit(made), Answer(text="went on without it"))
    stage.write_workflow({"permissions": {"inside": {"default": "allow", "edit": "deny"}}})

    async with start("--log-level", "debug", **stage.environ) as daemon:
        turn = await daemon.line("turn.completed", within=SLOW)
    asked = daemon.lines("agent.permission")

    assert asked[0]["answer"].startswith("denied by permissions.inside for edit")
    assert not stage.made("denied").exists()
    if stage.program.ends_when_denied:
        assert "after a permission was denied" in turn["error"]


@pytest.mark.parametrize("program", list(ASKING.values()), ids=list(ASKING), indirect=True)
@pytest.mark.parametrize("stage", ["here"], indirect=True)
async def test_rules_that_allow_let_it_work(stage: Stage) -> None:
    """In the mode that is chosen for what they deny elsewhere."""
    stage.script(stage.program.edit(str(stage.made("allowed"))), Answer(text="done"))
    stage.write_workflow(TRUSTING, max_turns=1)

    lines = await stage.run()

    assert stage.made("allowed").read_text().strip() == "made"
    assert stage.place.state_of("LIVE-1") == "Human Review"
    assert [line["outcome"] for line in lines["turn.completed"]] == ["completed"]


@pytest.mark.parametrize(
    "program", [ASKING["codex"], ASKING["codex-0.16.0"]], ids=["2.6.0", "0.16.0"], indirect=True
)
@pytest.mark.parametrize("stage", ["here"], indirect=True)
async def test_a_usage_limit_of_codex_is_known(stage: Stage, start: Start) -> None:
    """Its bridges call it an internal error, and tell in the data what it is."""
    stage.script(Answer(status=429, error="usage_limit_reached", message="m"))
    stage.write_workflow(TRUSTING, max_turns=1)

    async with start("--log-level", "debug", **stage.environ) as daemon:
        turn = await daemon.line("turn.completed", within=SLOW)

    assert turn["error_kind"] == "usage_limit"
    assert "hit your usage limit" in turn["error"]


async def test_it_is_stopped_in_a_tool_and_goes_on_later(stage: Stage, start: Start) -> None:
    """A stop in mid-tool leaves nothing alive; the next daemon's run knows what was said."""
    program = stage.program
    seconds = f"600.{uuid4().int}"
    stage.script(
        Answer(text="remember ALPHA"),
        program.run(f"echo begun > tool-began; exec sleep {seconds}"),
        Answer(text="it was stopped"),
    )
    stage.write_workflow(TRUSTING, max_turns=2)

    async with start("--log-level", "debug", **stage.environ) as daemon:
        await daemon.line("turn.completed", within=SLOW)
        await _there(stage.made("tool-began"))
        daemon.signal(signal.SIGTERM)
        assert await daemon.exit_code(within=SLOW) == 0
        begun = daemon.lines("session.started")[0]["session"]
    # Its pid is of another namespace.
    assert ["sleep", seconds] not in [each.info["cmdline"] for each in process_iter(["cmdline"])]
    again = stage.script(Answer(text="went on"))
    lines = await stage.run()

    assert [line["session"] for line in lines["session.started"]][:1] == [begun]
    assert lines["turn.completed"][0]["outcome"] == "completed"
    assert "remember ALPHA" in json.dumps(again.requests[0].body)
    assert not lines["tool.ended"]  # the tool that was stopped is the earlier run's
    assert stage.place.state_of("LIVE-1") == "Human Review"


async def _there(path: Path) -> None:
    with trio.fail_after(SLOW):
        while not (path.exists() and path.read_text().strip()):
            await trio.sleep(0.1)
