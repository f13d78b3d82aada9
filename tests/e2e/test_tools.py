"""Tools for agents, through the whole program: here, on a host, and within walls."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.conftest import Start
from tests.e2e.place import Place
from tests.e2e.remote import Fleet
from tests.transports.containers import IMAGE, require_engine, seen_by_tests, variables_of_engines
from tests.transports.sandboxes import requires_bubblewrap
from tests.transports.ssh.sshd import requires_sshd

AGENT = Path(__file__).parent / "programs" / "tool_user.py"
SLOW = 180.0


def blocks(*tools: str) -> dict[str, Any]:
    """Return the settings with which the agent has tools."""
    return {
        "agent": {"kind": "acp", "command": [sys.executable, str(AGENT)], "max_turns": 3},
        "tools": list(tools) or "all",
        "logging": {"level": "debug"},
    }


def kiro_blocks(**kiro: object) -> dict[str, Any]:
    """Return the settings with which the simulator of Kiro has tools."""
    agent = {"kind": "kiro", "command": f"{sys.prefix}/bin/sortie-kiro-sim", "max_turns": 3}
    return {**blocks(), "agent": agent, "kiro": {"trust_all_tools": False, **kiro}}


def add(place: Place, name: str, *lines: str) -> None:
    """Add an issue whose text says what the agent does."""
    path = place.add_issue(name)
    text = path.read_text().replace("Nothing special.", "\n".join(lines))
    fresh = place.issues / f".{name}.new"
    fresh.write_text(text)
    fresh.rename(path)


def came_in(workspace: Path) -> list[Any]:
    """Return what came of the calls."""
    came: list[Any] = json.loads((workspace / "calls.json").read_text())
    return came


async def test_the_word_of_a_tool_ends_the_run_and_its_comment_is_made_once(
    place: Place, start: Start
) -> None:
    """It counts before what stands in the file; calls, notes and comments are seen where people
    look, and nothing is left in the workspace."""
    place.write_workflow(prompt="{{ issue.description }}", trust={"fences": False}, **blocks())
    add(
        place,
        "A",
        "shell echo blocked > .sortie/status",
        'call note {"text": "I begin with the tests"}',
        'call comment {"text": "It works.", "issue": "B"}',
        'call comment {"text": "It works."}',
        "call history {}",
        "shell cat .sortie/tools/token",
        "shell git init -q . && git add -A && git status --short",
        'call set_status {"status": "needs_review", "reason": "look at it"}',
    )

    async with start("--exit-when-idle") as daemon:
        await daemon.line("comment.made", within=SLOW, issue="A", lifecycle="agent")
        ended = await daemon.line("run.finished", within=SLOW, issue="A")
        assert await daemon.exit_code() == 0
        log = json.dumps(daemon.log)
    told = (await place.sortie("logs", "A")).out
    workspace = place.workspaces / "A"
    came = came_in(workspace)
    token = next(one for one in came if isinstance(one, str) and len(one.strip()) == 64).strip()

    assert (ended["status"], ended["turns"], place.state_of("A")) == (
        "succeeded", 1, "Human Review"
    )  # fmt: skip
    assert (place.issues / "A.md").read_text().count("> It works.") == 1
    assert "unknown field `issue`" in came[2][0]
    assert came[-1] == 0
    assert ".sortie" not in came[6]
    assert "the agent notes: I begin with the tests" in told
    assert "the agent called Sortie's tool comment: refused" in told
    assert token not in log + told
    assert not (workspace / ".sortie" / "tools").exists()


async def test_kiro_calls_tools_by_commands_of_its_shell(place: Place, start: Start) -> None:
    """Where its own settings trust that; each call is of the run, and no token is shown."""
    place.write_workflow(
        prompt="{{ issue.description }}",
        trust={"fences": False},
        **kiro_blocks(trust_tools=["read", "shell"]),
    )
    add(
        place,
        "A",
        """sim: call='note {"text": "I don\\u0027t know yet"}'""",
        """sim: call='comment {"text": "It works.", "issue": "B"}'""",
        """sim: call='comment {"text": "It works."}'""",
        """sim: call='set_status {"status": "needs_review", "reason": "look at it"}'""",
    )

    async with start("--exit-when-idle") as daemon:
        await daemon.line("comment.made", within=SLOW, issue="A", lifecycle="agent")
        ended = await daemon.line("run.finished", within=SLOW, issue="A")
        assert await daemon.exit_code() == 0
        called = [(line["tool"], line["result"]) for line in daemon.lines("tool.called")]
        noted = await daemon.line("agent.noted", issue="A")
    told = (await place.sortie("logs", "A")).out

    assert (ended["status"], ended["turns"], place.state_of("A")) == (
        "succeeded", 1, "Human Review"
    )  # fmt: skip
    assert called == [
        ("note", "ok"), ("comment", "refused"), ("comment", "ok"), ("set_status", "ok")
    ]  # fmt: skip
    assert noted["text"] == "I don't know yet"
    assert (place.issues / "A.md").read_text().count("> It works.") == 1
    assert "execute_bash (execute) failed" in told
    assert not (place.workspaces / "A" / ".sortie" / "tools").exists()


@pytest.mark.full
async def test_kiro_without_a_shell_has_no_tools(place: Place, start: Start) -> None:
    """That is said beforehand, with its place, and its prompt does not tell of any."""
    place.write_workflow(
        prompt="{{ issue.description }}",
        trust={"fences": False},
        **kiro_blocks(trust_tools=["read"]),
    )
    add(place, "A", "sim: call=issue")

    validated = await place.sortie("validate")
    async with start() as daemon:
        ended = await daemon.line("run.finished", within=SLOW, issue="A")

    (warned,) = [line for line in validated.out.splitlines() if "warning: tools:" in line]
    assert "add shell to kiro.trust_tools" in warned
    assert "no prompt tells of tools" in ended["error"]
    assert daemon.lines("tools.lost") == []


@pytest.mark.full
async def test_a_comment_is_made_once_over_a_crash(place: Place, start: Start) -> None:
    """It is on record when its call is answered; the next daemon makes it, or finds it made."""
    place.write_workflow(prompt="{{ issue.description }}", trust={"fences": False}, **blocks())
    add(place, "A", 'call comment {"text": "Before the crash."}', "stop")

    async with start() as daemon:
        await daemon.line("tool.called", within=SLOW, tool="comment", result="ok")
        daemon.kill()
    add_no_stop = (place.issues / "A.md").read_text().replace("stop\n", "")
    (place.issues / "A.md").write_text(
        add_no_stop.replace('call comment {"text": "Before the crash."}', "call budget {}")
    )
    async with start("--exit-when-idle") as daemon:
        await daemon.line("run.finished", within=SLOW, issue="A", status="succeeded")
        assert await daemon.exit_code() == 0

    assert (place.issues / "A.md").read_text().count("> Before the crash.") == 1


@pytest.fixture
def user() -> Mapping[str, Any]:
    """Give the settings of the agent that has tools."""
    return blocks()


@pytest.fixture(params=["bubblewrap", "podman", "host", "host that outlives its link"])
def walled(
    request: pytest.FixtureRequest, place: Place, user: Mapping[str, Any]
) -> Iterator[Mapping[str, str]]:
    """Write a workflow whose agents are behind a wall, or on a host; give what engines need."""
    place.agents_log.touch()
    sandbox: dict[str, Any] = {"read": list(seen_by_tests()), "write": [str(place.agents_log)]}
    prompt, more = "{{ issue.description }}", {"trust": {"fences": False}}
    match request.param:
        case "bubblewrap":
            place.write_workflow(prompt, sandbox={"kind": "bubblewrap", **sandbox}, **more, **user)
            yield {}
        case "podman":
            engine = require_engine("podman")
            sandbox |= {"kind": "container", "image": IMAGE, "engine": engine, "network": "none"}
            place.write_workflow(prompt, sandbox=sandbox, **more, **user)
            yield variables_of_engines(engine)
        case _:
            fleet: Fleet = request.getfixturevalue("fleet")
            fleet.add("far", has_program=False)
            outlives = request.param != "host"
            worker = {"worker": {"ssh_reattach": outlives}}
            fleet.write_workflow(prompt, **worker, **more, **user)
            yield {}


@pytest.mark.full
@requires_bubblewrap
@requires_sshd
async def test_tools_work_behind_walls_and_on_hosts(
    walled: Mapping[str, str], place: Place, start: Start, request: pytest.FixtureRequest
) -> None:
    """As they do here; behind a wall, another run's token is not to be seen."""
    add(place, "A", 'call note {"text": "waiting"}', "stop")
    async with start(**walled) as daemon:
        await daemon.line("agent.noted", within=SLOW, issue="A")
        tokens = list(place.root.rglob("workspaces/A/.sortie/tools/token"))
        add(
            place,
            "B",
            "call issue {}",
            *(f"shell cat {token}" for token in tokens),
            'call comment {"text": "From afar."}',
            'call set_status {"status": "done"}',
        )
        await daemon.line("run.finished", within=SLOW, issue="B", status="succeeded")
        called = [line["result"] for line in daemon.lines("tool.called")]
        lost = daemon.lines("tools.lost") + daemon.lines("tools.client_lost")
    (calls,) = place.root.rglob("workspaces/B/calls.json")
    came = came_in(calls.parent)

    assert (called, lost, came[-1]) == (["ok"] * 4, [], 0)
    assert len(tokens) == 1
    assert "> From afar." in (place.issues / "B.md").read_text()
    if "host" not in request.node.name:
        assert "No such file" in came[1]


@pytest.mark.full
@requires_bubblewrap
@requires_sshd
@pytest.mark.parametrize("user", [kiro_blocks(trust_tools=["shell"])], ids=["kiro"])
async def test_kiro_calls_tools_behind_walls_and_on_hosts(
    walled: Mapping[str, str], place: Place, start: Start
) -> None:
    """As it does here."""
    add(
        place,
        "A",
        "sim: call=issue",
        """sim: call='comment {"text": "From afar."}'""",
        """sim: call='set_status {"status": "done"}'""",
    )
    async with start(**walled) as daemon:
        await daemon.line("run.finished", within=SLOW, issue="A", status="succeeded")
        called = [line["result"] for line in daemon.lines("tool.called")]
        lost = daemon.lines("tools.lost") + daemon.lines("tools.client_lost")
        await daemon.line("comment.made", within=SLOW, issue="A", lifecycle="agent")

    assert (called, lost) == (["ok"] * 3, [])
    assert "> From afar." in (place.issues / "A.md").read_text()


@pytest.mark.full
@requires_sshd
async def test_a_client_outlives_a_link_that_is_cut(
    place: Place, start: Start, fleet: Fleet
) -> None:
    """Calls before and after are of one client, and each is answered once."""
    (host,) = fleet.add("far", has_program=False)
    worker = {"ssh_reattach": True, "ssh_reattach_ms": 120_000}
    fleet.write_workflow(
        "{{ issue.description }}", worker=worker, trust={"fences": False}, **blocks()
    )
    notes = [f'call note {{"text": "note {number}"}}' for number in range(40)]
    add(place, "A", *(line for note in notes for line in (note, "shell sleep 0.2")),
        'call set_status {"status": "done"}')  # fmt: skip

    async with start() as daemon:
        await daemon.line("agent.noted", within=SLOW, issue="A", text="note 3")
        host.kill_links()
        await daemon.line("host.link_restored", within=SLOW, host="far")
        await daemon.line("run.finished", within=SLOW, issue="A", status="succeeded")
        noted = [line["text"] for line in daemon.lines("agent.noted")]
        lost = daemon.lines("tools.lost") + daemon.lines("tools.client_lost")
        runs = daemon.lines("run.started")

    assert noted == [f"note {number}" for number in range(40)]
    assert (lost, len(runs)) == ([], 1)
