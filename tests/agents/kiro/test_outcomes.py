"""Every row of the outcome table, through real processes on this machine."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
import trio

from sortie.agents.kiro.settings import KiroSettings
from sortie.model import AgentError, ErrorKind, TurnOutcome, TurnResult
from sortie.model.turns import Usage
from sortie.transports.local import LocalTransport, become_subreaper
from tests.agents.kiro.simulated import Heard, Rig, is_alive, visit

LIMIT = 60  # seconds; a busy machine is slow, a hang is endless


@pytest.fixture
def rig(tmp_path: Path) -> Rig:
    become_subreaper()  # as the daemon does; without it orphans cannot be followed
    return Rig(tmp_path, LocalTransport())


def ending(result: TurnResult) -> tuple[str, str | None]:
    return result.outcome, result.error_kind


async def test_success(rig: Rig) -> None:
    """Trailer and exit 0 complete the turn, with its credits and its unterminated last line."""
    with trio.fail_after(LIMIT):
        result, heard = await rig.turn("Hello\nsim: credits=0.25")

    assert result == TurnResult(outcome=TurnOutcome.COMPLETED)
    assert heard.spent == [Usage(credits=0.25)]
    assert heard.lines == 2
    assert heard.messages[-1] == "I added a note to `SORTIE_DEMO.md`."
    assert "Hello" in (rig.workspace / "SORTIE_DEMO.md").read_text()


@pytest.mark.parametrize("tools", ["old", "new"])
async def test_success_in_every_style(rig: Rig, tools: str) -> None:
    """How a version prints tools makes no difference."""
    with trio.fail_after(LIMIT):
        result, heard = await rig.turn(f"Go\nsim: tools={tools} delay=0.3")

    assert result == TurnResult(outcome=TurnOutcome.COMPLETED)
    assert heard.spent == [Usage(credits=0.05)]


@pytest.mark.parametrize(
    ("directives", "kind"),
    [
        ("auth_failure=1", "response_error"),
        ("no_trailer=1", "turn_failed"),
        ("exit=1", "port_exit"),
        ("exit=2", "port_exit"),
        ("exit=3", "port_exit"),
        ("exit=4", "port_exit"),
        ("exit=255", "port_exit"),
        ("exit=127", "agent_not_found"),
        ("signal=SEGV", "port_exit"),
        ("signal=INT", "port_exit"),
        ("long_line=10485761", "port_exit"),
    ],
)
async def test_failures(rig: Rig, directives: str, kind: str) -> None:
    """Each failing row gives its kind, and the warnings of stderr."""
    with trio.fail_after(LIMIT):
        result, _ = await rig.turn(f"sim: {directives}")

    assert ending(result) == (TurnOutcome.FAILED, ErrorKind(kind))
    assert "Failed to retrieve MCP settings; MCP functionality disabled" in result.warnings


@pytest.mark.parametrize("directives", ["signal=TERM", "signal=KILL", "exit=143", "exit=137"])
async def test_ended_from_outside(rig: Rig, directives: str) -> None:
    """Death by SIGTERM or SIGKILL, also as a shell reports it, is a cancelled turn."""
    with trio.fail_after(LIMIT):
        result, _ = await rig.turn(f"sim: {directives}")

    assert ending(result) == (TurnOutcome.CANCELLED, ErrorKind.TURN_CANCELLED)


async def test_a_long_line_within_the_limit(rig: Rig) -> None:
    """Ten million bytes in one line are read, and shown as 500 characters or a few less."""
    with trio.fail_after(LIMIT):
        result, heard = await rig.turn("sim: long_line=10000000")

    assert result.outcome is TurnOutcome.COMPLETED
    assert heard.lines == 3
    assert 490 <= len(heard.messages[-1]) <= 500


async def test_a_flood_of_output(rig: Rig) -> None:
    """Twenty megabytes of lines are read without harm to the trailer behind them."""
    with trio.fail_after(LIMIT):
        result, heard = await rig.turn("sim: output=20000000")

    assert result.outcome is TurnOutcome.COMPLETED
    assert heard.lines > 100_000


@pytest.mark.parametrize(
    "kind", ["plain", "setsid", "double_fork", "hold_stdout", "cleared", "overwritten"]
)
async def test_children_are_gone_with_the_turn(rig: Rig, kind: str) -> None:
    """Whatever group or session a tool's process is in, the turn completes and leaves none."""
    with trio.fail_after(LIMIT):
        result, _ = await rig.turn(f"sim: child={kind} silence=0.3")

    assert result.outcome is TurnOutcome.COMPLETED
    lines = [json.loads(line) for line in rig.log.read_text().splitlines()]
    (child,) = (line["child_pid"] for line in lines if line["event"] == "child")
    assert not is_alive(child)


async def test_a_prompt_arrives_whole(rig: Rig) -> None:
    """Quotes, line ends, a leading dash and shell characters reach the agent as they are."""
    prompt = "--resume 'a' \"b\" $(c) `d` \\\n\ttab ü🛠️\x01\x7f\nlast"

    with trio.fail_after(LIMIT):
        result, _ = await rig.turn(prompt)

    assert result.outcome is TurnOutcome.COMPLETED
    assert prompts(rig) == [prompt]


async def test_a_prompt_over_96_kib_arrives_through_stdin(rig: Rig) -> None:
    """A prompt of 4 MiB, with NUL in it, arrives; Linux would refuse it as an argument."""
    prompt = "Begin\0" + "ü" * (2 * 1024 * 1024) + "end"

    with trio.fail_after(LIMIT):
        result, _ = await rig.turn(prompt)

    assert result.outcome is TurnOutcome.COMPLETED
    assert prompts(rig) == [prompt.replace("\0", "\ufffd")]


async def test_an_agent_that_does_not_read_stdin(rig: Rig) -> None:
    """A program that exits without reading a long prompt is no crash of the adapter."""
    rig.script("#!/bin/sh\n[ $1 = whoami ] && echo Authenticated with API key\nexit 0\n")

    with trio.fail_after(LIMIT):
        result, _ = await rig.turn("x" * 1_000_000)

    assert ending(result) == (TurnOutcome.FAILED, ErrorKind.TURN_FAILED)


async def test_the_conversation_goes_on(rig: Rig) -> None:
    """The second turn of a session resumes: both prompts are one conversation."""
    with trio.fail_after(LIMIT):
        async with rig.session() as session:
            for prompt in ("one\nsim: note=0", "two\nsim: note=0"):
                await session.run_turn(prompt, Heard())

    assert prompts(rig) == ["one\nsim: note=0", "two\nsim: note=0"]


async def test_cancelling_leaves_no_process(rig: Rig) -> None:
    """A deadline ends an agent that ignores SIGTERM, and its child, before it returns."""
    heard = Heard()

    with trio.fail_after(LIMIT):
        async with rig.session() as session, trio.open_nursery() as nursery:
            prompt = "sim: ignore_sigterm=1 child=setsid delay=600"
            nursery.start_soon(session.run_turn, prompt, heard)
            await heard.launched.wait()
            await heard.times(4)
            nursery.cancel_scope.cancel()

    pids = {json.loads(line).get("child_pid") for line in rig.log.read_text().splitlines()}
    assert not any(is_alive(pid) for pid in [heard.pid, *(pids - {None})])


async def test_stopping_a_hanging_turn(rig: Rig) -> None:
    """Leaving the session ends the process; the turn returns ``turn_cancelled``."""
    heard, results = Heard(), list[TurnResult]()

    async def turn() -> None:
        results.append(await session.run_turn("sim: hang=1", heard))

    with trio.fail_after(LIMIT):
        async with trio.open_nursery() as nursery:
            async with rig.session() as session:
                nursery.start_soon(turn)
                await heard.launched.wait()
            alive = is_alive(heard.pid)

    assert not alive
    assert [ending(result) for result in results] == [
        (TurnOutcome.CANCELLED, ErrorKind.TURN_CANCELLED)
    ]


@pytest.mark.parametrize("key", [None, "", "invalid", "bad-key"])
async def test_a_missing_or_bad_key(rig: Rig, key: str | None) -> None:
    """No session starts, so chat never waits for a device login; no key in the error."""
    del rig.environment["KIRO_API_KEY"]
    if key is not None:
        rig.environment["KIRO_API_KEY"] = key

    with trio.fail_after(LIMIT), pytest.raises(AgentError, match="KIRO_API_KEY is") as caught:
        await visit(rig.agent(), rig.params())

    assert caught.value.kind is ErrorKind.RESPONSE_ERROR
    assert "bad-key" not in str(caught.value)


async def test_a_canary_that_takes_too_long(rig: Rig) -> None:
    """whoami is ended at the read timeout, and the session is a ``response_error``."""
    rig.environment["KIRO_SIM_WHOAMI_DELAY"] = "600"

    with trio.fail_after(LIMIT), pytest.raises(AgentError, match="did not answer") as caught:
        await visit(rig.agent(), rig.params(read_timeout=0.3))

    assert caught.value.kind is ErrorKind.RESPONSE_ERROR


async def test_a_burst_of_sessions_asks_once(rig: Rig) -> None:
    """Fifty real sessions at once run whoami once."""
    agent = rig.agent()

    with trio.fail_after(LIMIT):
        async with trio.open_nursery() as nursery:
            for _ in range(50):
                nursery.start_soon(visit, agent, rig.params())

    events = [json.loads(line)["event"] for line in rig.log.read_text().splitlines()]
    assert events == ["start", "stop"]


@pytest.mark.parametrize("trouble", ["missing", "a directory", "not executable"])
async def test_a_program_that_cannot_run(rig: Rig, trouble: str) -> None:
    """Each is ``agent_not_found`` at session start, with what to do."""
    rig.command.unlink()
    if trouble == "a directory":
        rig.command.mkdir()
    elif trouble == "not executable":
        rig.command.write_text("#!/bin/sh\n")

    with trio.fail_after(LIMIT), pytest.raises(AgentError, match=r"set agent\.command") as caught:
        await visit(rig.agent(), rig.params())

    assert caught.value.kind is ErrorKind.AGENT_NOT_FOUND


@pytest.mark.parametrize("trouble", ["missing", "a file"])
async def test_a_workspace_that_is_no_directory(rig: Rig, trouble: str) -> None:
    """Both are ``invalid_workspace_cwd``."""
    rig.workspace.rmdir()
    if trouble == "a file":
        rig.workspace.write_text("")

    with trio.fail_after(LIMIT), pytest.raises(AgentError) as caught:
        await visit(rig.agent(), rig.params())

    assert caught.value.kind is ErrorKind.INVALID_WORKSPACE_CWD


async def test_a_named_agent_that_does_not_exist(rig: Rig) -> None:
    """kiro.agent reaches the program, whose exit 4 is explained."""
    agent = rig.agent(KiroSettings(agent="nobody"))

    with trio.fail_after(LIMIT):
        async with agent.session(rig.params()) as session:
            result = await session.run_turn("Hello", Heard())

    assert ending(result) == (TurnOutcome.FAILED, ErrorKind.PORT_EXIT)
    assert "the agent named by kiro.agent does not exist" in (result.message or "")
    assert "error: no agent with name nobody found" in result.warnings


def prompts(rig: Rig) -> list[str]:
    """Return the prompts of the only conversation that was kept."""
    database = Path(rig.environment["XDG_DATA_HOME"]) / "kiro-cli" / "data.sqlite3"
    with closing(sqlite3.connect(database)) as connection:
        ((value,),) = connection.execute("SELECT value FROM conversations_v2").fetchall()
    contents = [entry["user"]["content"] for entry in json.loads(value)["history"]]
    return [content["Prompt"]["prompt"] for content in contents if "Prompt" in content]
