"""The real Claude Code behind a daemon: on this machine, and on a host behind a real sshd.

Its model is scripted, so that no account is needed and nothing is paid.
"""

from __future__ import annotations

import os
import shutil
import signal
import time
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
import trio

from tests.agents.kiro.simulated import is_alive
from tests.e2e.conftest import Start
from tests.e2e.daemon import Daemon
from tests.e2e.place import PATIENCE, Place
from tests.e2e.remote import Fleet
from tests.live.claude import KEY, Claude, said_by_user, told_in
from tests.live.model_answers import Answer, ToolUse, tool
from tests.live.model_server import ModelServer, model_server
from tests.transports.ssh.sshd import requires_sshd

pytestmark = [pytest.mark.full, pytest.mark.timeout(1200)]

DONE = Answer(text="All is done.", output_tokens=44)


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with model_server() as models:
        yield models


@pytest.fixture(params=["local", pytest.param("ssh", marks=requires_sshd)])
def claude(request: pytest.FixtureRequest, place: Place, server: ModelServer) -> Claude:
    """Give Claude Code on this machine, and on a host."""
    is_remote = request.param == "ssh"
    fleet: Fleet | None = request.getfixturevalue("fleet") if is_remote else None
    return Claude.at(place, server, fleet)


def overloaded() -> Answer:
    return Answer(status=529, error="overloaded_error", message="Overloaded")


def limited(resets_at: int) -> Answer:
    """Return how the provider refuses a subscription whose limit is reached."""
    name = "anthropic-ratelimit-unified"
    headers = {
        f"{name}-status": "rejected",
        f"{name}-reset": str(resets_at),
        f"{name}-representative-claim": "five_hour",
    }
    return Answer(status=429, error="rate_limit_error", headers=headers)


def messages(daemon: Daemon) -> list[str]:
    """Return what the agent said, as far as it was not said in one breath."""
    return [line["message"] for line in daemon.lines("agent.spoke") if "message" in line]


async def only_run(place: Place) -> Any:
    (row,) = await place.history()
    return row


async def test_a_tool_really_writes_a_file(claude: Claude, start: Start) -> None:
    """Tools, tokens and costs are told, and the issue is handed over."""
    place = claude.place
    place.add_issue("A")
    write = ToolUse(
        name="Write",
        input={"file_path": str(claude.workspace("A") / "hello.txt"), "content": "Hello.\n"},
    )
    script = claude.script(Answer(text="I write it.", tools=(write,), output_tokens=33), DONE)

    async with start(**claude.environ()) as daemon:
        await daemon.line("issue.moved", issue="A", lifecycle="handoff")
        tools = daemon.lines("tool.ended")
        used = daemon.lines("agent.used")
        answers = daemon.lines("model.answered")
        (ended,) = daemon.lines("turn.completed")
        secret_shown = any(KEY in str(line) for line in daemon.log)
    row = await only_run(place)

    assert (claude.workspace("A") / "hello.txt").read_text() == "Hello.\n"
    assert [(line["tool"], line["kind"], line["failed"]) for line in tools] == [
        ("Write", "edit", False)
    ]
    assert (row["status"], ended["tokens"]) == ("succeeded", 200 + 33 + 44)
    assert sum(line.get("cost", 0) for line in used) > 0
    assert len(answers) == 2
    assert len(script.requests) == 2
    assert not secret_shown
    assert place.state_of("A") == "Human Review"


async def test_a_conversation_goes_on_over_turns(claude: Claude, start: Start) -> None:
    """The second turn sees what was said in the first, and costs what it costs alone."""
    claude.workflow("Turn {{ run.turn_number }} of the work.", agent={"max_turns": 2})
    claude.place.add_issue("A")
    script = claude.script(Answer(text="First answer."), DONE)

    async with start(**claude.environ()) as daemon:
        await daemon.line("issue.moved", issue="A", lifecycle="handoff")
        costs = [line["cost"] for line in daemon.lines("agent.used") if "cost" in line]

    first, second = (request.body for request in script.requests)
    assert [said[-1] for said in map(said_by_user, (first, second))] == [
        "Turn 1 of the work.",
        "Turn 2 of the work.",
    ]
    assert "Turn 1 of the work." in told_in(second)
    assert "First answer." in told_in(second)
    assert len(costs) == 2
    assert costs[1] < 2 * costs[0]


async def test_an_agent_that_is_done_is_asked_nothing_more(claude: Claude, start: Start) -> None:
    """Its prompt told it how to say so, and of five turns it takes one."""
    claude.workflow(agent={"max_turns": 5, "status_instructions": True})
    claude.place.add_issue("A")
    script = claude.script(tool("Bash", command="echo done > .sortie/status"), DONE)

    async with start(**claude.environ()) as daemon:
        await daemon.line("issue.moved", issue="A", lifecycle="handoff")
        (word,) = daemon.lines("agent.status")
    row = await only_run(claude.place)

    (asked,) = said_by_user(script.requests[0].body)
    assert "write the word done to the file .sortie/status" in asked
    assert (word["word"], row["status"], row["turns"]) == ("done", "succeeded", 1)
    assert len(script.requests) == 2


async def test_an_agent_is_asked_whether_anything_is_left(claude: Claude, start: Start) -> None:
    """One that has said nothing gets that question, and its answer ends the run."""
    prompt = "{% if not run.is_continuation %}Work.{% endif %}"
    claude.workflow(prompt, agent={"max_turns": 5})
    claude.place.add_issue("A")
    no = tool("Bash", command="echo done > .sortie/status")
    script = claude.script(DONE, no, Answer(text="Nothing is left."))

    async with start(**claude.environ()) as daemon:
        await daemon.line("issue.moved", issue="A", lifecycle="handoff")
    row = await only_run(claude.place)

    assert "Is anything left to do for it?" in said_by_user(script.requests[1].body)[-1]
    assert (row["status"], row["turns"], len(script.requests)) == ("succeeded", 2, 3)


async def test_a_conversation_goes_on_after_the_daemon_was_killed(
    claude: Claude, start: Start
) -> None:
    """``kill -9`` in the middle of an answer: nothing of that run is left, and the next one goes on
    with its conversation."""
    claude.workflow("Attempt {{ attempt }} of the work.")
    claude.place.add_issue("A")
    script = claude.script(Answer(hang=600), DONE)

    async with start(**claude.environ()) as daemon:
        pid = (await daemon.line("agent.launched"))["pid"]
        with trio.fail_after(PATIENCE):
            while not script.requests:
                await trio.sleep(0.05)
        daemon.signal(signal.SIGKILL)
        await daemon.exit_code()
    async with start(**claude.environ()) as daemon:
        await daemon.line("issue.moved", issue="A", lifecycle="handoff")
    rows = await claude.place.history()

    assert [row["status"] for row in rows] == ["interrupted", "succeeded"]
    assert not is_alive(pid)
    first, second = (request.body for request in script.requests)
    assert said_by_user(first)[-1] in told_in(second)
    assert len(said_by_user(second)) > len(said_by_user(first))


async def test_a_conversation_that_is_gone_begins_anew(claude: Claude, start: Start) -> None:
    """Whoever removes what Claude Code keeps loses its memory and nothing else."""
    claude.workflow(max_turns=1)
    claude.place.add_issue("A")
    claude.script(tool("Bash", command="true"))

    async with start(**claude.environ()) as daemon:
        await daemon.line("run.finished", status="failed")
        daemon.signal(signal.SIGTERM)
        await daemon.exit_code()
    shutil.rmtree(claude.home / ".claude" / "projects")
    script = claude.script(DONE)
    async with start(**claude.environ()) as daemon:
        await daemon.line("issue.moved", issue="A", lifecycle="handoff")
        told = messages(daemon)

    assert any("is gone; it begins anew" in message for message in told)
    assert len(said_by_user(script.requests[0].body)) == 1


async def test_an_api_that_recovers(claude: Claude, start: Start) -> None:
    """Its retries are told, and the turn succeeds."""
    claude.place.add_issue("A")
    claude.script(overloaded(), overloaded(), DONE)

    async with start(**claude.environ()) as daemon:
        await daemon.line("issue.moved", issue="A", lifecycle="handoff")
        told = messages(daemon)

    assert [m.partition(" in ")[0] for m in told if m.startswith("API retry")] == [
        "API retry 1 of 2",
        "API retry 2 of 2",
    ]


async def test_an_api_that_does_not_recover(claude: Claude, start: Start) -> None:
    """After its retries the turn has failed, although its result is called a success."""
    claude.place.add_issue("A")
    claude.script(overloaded())

    async with start(**claude.environ(CLAUDE_CODE_MAX_RETRIES="1")) as daemon:
        ended = await daemon.line("turn.completed")
        await daemon.line("retry.scheduled")

    assert (ended["outcome"], ended["error_kind"]) == ("failed", "turn_failed")
    assert "529 Overloaded" in ended["error"]


async def test_a_usage_limit(claude: Claude, start: Start) -> None:
    """Nothing is started before its end, also after a restart, and no attempt is burnt for it."""
    claude.place.add_issue("A")
    resets_at = int(time.time()) + 3600
    script = claude.script(limited(resets_at), DONE)
    subscribed = claude.environ(
        ANTHROPIC_API_KEY=None, CLAUDE_CODE_OAUTH_TOKEN="sk-ant-oat01-000000000000"
    )

    async with start(**subscribed) as daemon:
        await daemon.line("agent.limited")
        (ended,) = daemon.lines("turn.completed")
        shown = (await daemon.state())["usage_limit"]
    async with start(**subscribed) as daemon:
        still = (await daemon.state())["usage_limit"]
        asked = len(script.requests)
        ran = await claude.place.sortie("resume")
        await daemon.line("issue.moved", issue="A", lifecycle="handoff")
    rows = await claude.place.history()

    assert ended["error_kind"] == "usage_limit"
    assert "hit your 5-hour limit" in ended["error"]
    told = [datetime.fromisoformat(view["resets_at"]).timestamp() for view in (shown, still)]
    assert told == [resets_at, resets_at]
    assert (asked, ran.code) == (1, 0)
    assert [(row["status"], row["attempt"]) for row in rows] == [
        ("interrupted", 0),
        ("succeeded", 0),
    ]


async def test_a_stop_in_the_middle_of_a_tool(claude: Claude, start: Start) -> None:
    """The tool runs in a session of its own and heeds no SIGTERM; it is gone with its run."""
    claude.place.add_issue("A")
    file = claude.workspace("A") / "pid"
    stubborn = f"trap '' TERM; echo $$ > {file}; while true; do read -t 600 < /dev/zero; done"
    claude.script(tool("Bash", command=f'bash -c "{stubborn.replace("$", chr(92) + "$")}"'), DONE)

    async with start(**claude.environ()) as daemon:
        pid = (await daemon.line("agent.launched"))["pid"]
        with trio.fail_after(PATIENCE):
            while not (file.exists() and file.read_text().strip()):
                await trio.sleep(0.05)
        stubborn_pid = int(file.read_text())
        assert os.getsid(stubborn_pid) != os.getsid(pid)
        claude.place.add_issue("A", state="Human Review")
        await daemon.line("run.finished")
        alive = [number for number in (pid, stubborn_pid) if is_alive(number)]
        tools = daemon.lines("tool.ended")
    row = await only_run(claude.place)

    assert alive == []
    assert row["status"] == "cancelled"
    assert [line["failed"] for line in tools] == [True]


async def test_too_few_steps(claude: Claude, start: Start) -> None:
    """Claude Code's own limit ends the turn as a failure that says so."""
    claude.workflow(max_turns=2)
    claude.place.add_issue("A")
    claude.script(tool("Bash", command="true"))

    async with start(**claude.environ()) as daemon:
        ended = await daemon.line("turn.completed")

    assert ended["error_kind"] == "turn_failed"
    assert "maximum number of turns (2)" in ended["error"]


async def test_what_nobody_may_do(claude: Claude, start: Start) -> None:
    """A refusal is logged, and the turn goes on without."""
    claude.workflow(permission_mode="default")
    claude.place.add_issue("A")
    path = str(claude.workspace("A") / "no.txt")
    claude.script(tool("Write", file_path=path, content="no"), DONE)

    async with start(**claude.environ()) as daemon:
        await daemon.line("issue.moved", issue="A", lifecycle="handoff")
        asked = daemon.lines("agent.permission")

    assert len(asked) == 1
    assert asked[0]["question"].startswith("Write: ")
    assert not Path(path).exists()


async def test_a_slow_answer_is_no_silence(claude: Claude, start: Start) -> None:
    """Each chunk of it is a sign of life."""
    claude.workflow(agent={"stall_timeout_ms": 4000})
    claude.place.add_issue("A")
    claude.script(Answer(text="one two three four five six", chunks=8, pause=1.0))

    async with start(**claude.environ()) as daemon:
        ended = await daemon.line("turn.completed", within=2 * PATIENCE)

    assert ended["outcome"] == "completed"
    assert ended["seconds"] > 7


async def test_a_prompt_that_looks_like_a_command(claude: Claude, start: Start) -> None:
    """The model sees it; Claude Code does not run a command of its own."""
    claude.workflow("/cost is what {{ issue.identifier }} is about.")
    claude.place.add_issue("A")
    script = claude.script(DONE)

    async with start(**claude.environ()) as daemon:
        await daemon.line("issue.moved", issue="A", lifecycle="handoff")

    assert said_by_user(script.requests[0].body)[-1].strip() == "/cost is what A is about."


async def test_every_setting_is_taken(claude: Claude, start: Start) -> None:
    """The real program knows all of the flags, and the model sees what they ask for."""
    (claude.home / "mcp.json").write_text('{"mcpServers": {}}')
    claude.workflow(
        model="claude-sonnet-4-5",
        fallback_model="claude-haiku-4-5",
        max_turns=9,
        max_budget_usd=2.5,
        effort="low",
        allowed_tools="Edit,Write",
        disallowed_tools="WebFetch",
        system_prompt="- Always be brief.",
        mcp_config=str(claude.home / "mcp.json"),
        session_persistence=False,
    )
    claude.place.add_issue("A")
    script = claude.script(DONE)

    async with start(**claude.environ()) as daemon:
        await daemon.line("issue.moved", issue="A", lifecycle="handoff")
        warnings = daemon.lines("agent.warned")

    body = script.requests[0].body
    assert body["model"] == "claude-sonnet-4-5"
    assert "- Always be brief." in str(body["system"])
    assert "WebFetch" not in {it["name"] for it in body["tools"]}
    assert warnings == []
    assert not list((claude.home / ".claude" / "projects").glob("*/*.jsonl"))
