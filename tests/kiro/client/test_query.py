"""A single prompt: what comes back, and what is raised where a turn has failed."""

from __future__ import annotations

import os
import sqlite3
import sys
from typing import Any

import pytest

from sortie.kiro import (
    AssistantMessage,
    AuthenticationError,
    CLIConnectionError,
    CLINotFoundError,
    KiroAgentOptions,
    KiroSDKError,
    OptionError,
    ProcessError,
    ResultMessage,
    TextBlock,
    ToolPermissionError,
    ToolResultBlock,
    ToolResultMessage,
    ToolUseBlock,
    TurnTimeoutError,
    query,
    query_sync,
)
from sortie.kiro.client import process
from tests.kiro.client.rig import WAYS, Rig, run

PRINTED = """#!/bin/sh
cat > /dev/null
printf '{stdout}'
printf '{stderr}' >&2
exit {status}
"""
TRAILER = " ▸ Credits: 0.07 • Time: 4s\\n"


def printing(rig: Rig, stdout: str = "", stderr: str = TRAILER, status: int = 0) -> None:
    rig.script(PRINTED.format(stdout=stdout, stderr=stderr, status=status))


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("engine", ["v1", "v2"])
def test_a_turn_is_told_in_its_order(rig: Rig, way: str, engine: str) -> None:
    """Uses of tools, their results, the answer and the end come as the conversation has them."""
    messages = rig.ask(way, "What is 2 + 2?", KIRO_SIM_STORE=engine, trust_all_tools=True)

    use, result, answer, end = messages
    assert isinstance(use, AssistantMessage)
    (block,) = use.content
    assert isinstance(block, ToolUseBlock)
    assert block.name == "fs_write"
    assert block.input["path"] == "SORTIE_DEMO.md"
    assert isinstance(result, ToolResultMessage)
    assert result.block == ToolResultBlock(
        tool_use_id=block.id, content="\n".join(b.text for b in result.content)
    )
    assert isinstance(answer, AssistantMessage)
    assert answer.text.startswith("I have read **What is 2 + 2?**.")
    assert isinstance(end, ResultMessage)
    assert end.session_id
    assert (end.credits, end.files_modified) == (0.05, ("SORTIE_DEMO.md",))
    assert end.seconds is not None


@pytest.mark.parametrize("way", WAYS)
def test_without_a_store_the_transcript_tells(rig: Rig, way: str) -> None:
    """A recorded turn gives its answer to the last line, which has no end, and its credits."""
    printing(rig, stdout="> Red\\nBlue\\nYellow")

    messages = rig.ask(way, "Name three colours")

    assert messages == [
        AssistantMessage(content=[TextBlock(text="Red\nBlue\nYellow")]),
        ResultMessage(credits=0.07, seconds=4.0),
    ]


def test_a_broken_store_is_not_the_turns_outcome(rig: Rig) -> None:
    """Where the database is garbage, the transcript tells."""
    rig.database.parent.mkdir(parents=True)
    rig.database.write_bytes(b"garbage" * 1000)
    printing(rig, stdout="> PONG")

    messages = rig.ask("sync", "ping")

    assert messages[0] == AssistantMessage(content=[TextBlock(text="PONG")])


def test_a_database_that_is_being_written_is_asked_again(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A lock does not block the event loop; what cannot be had in a second is left out."""
    rig.ask("sync", "first")
    monkeypatch.setattr("sortie.kiro.client.sessions._DATABASE_TIMEOUT", 0.1)
    writer = sqlite3.connect(rig.database)
    writer.execute("BEGIN EXCLUSIVE")
    printing(rig, stdout="> PONG")

    messages = rig.ask("trio", "second")

    writer.rollback()
    writer.close()
    assert messages[0] == AssistantMessage(content=[TextBlock(text="PONG")])


@pytest.mark.parametrize("way", WAYS)
def test_a_prompt_too_long_for_an_argument_goes_through_stdin(rig: Rig, way: str) -> None:
    """A megabyte arrives whole, however slowly it is read."""
    prompt = "begin " + "x" * 1_000_000 + " end"

    messages = rig.ask(way, prompt)

    assert rig.events("start")[0]["prompt_bytes"] == len(prompt)
    assert isinstance(messages[-1], ResultMessage)
    assert messages[-1].session_id is not None


def test_a_program_that_reads_no_stdin_is_no_trouble(rig: Rig) -> None:
    """A pipe that is closed at the other end is the program's business."""
    rig.script(f"#!/bin/sh\nexec <&-\nprintf '> PONG'\nprintf '{TRAILER}' >&2\n")

    messages = rig.ask("asyncio", "x" * 1_000_000)

    assert messages[0] == AssistantMessage(content=[TextBlock(text="PONG")])


@pytest.mark.parametrize("way", WAYS)
def test_a_missing_program_is_said_to_be_missing(rig: Rig, way: str) -> None:
    """Neither PATH nor a named place has one."""
    with pytest.raises(CLINotFoundError, match="there is no kiro-cli on PATH"):
        rig.ask(way, "x", PATH="/nowhere")
    with pytest.raises(CLINotFoundError, match="cli_path: '/no/kiro' does not exist"):
        rig.ask(way, "x", cli_path="/no/kiro")
    with pytest.raises(CLINotFoundError, match="cli_path: 'kiro-nope' is not on PATH"):
        rig.ask(way, "x", cli_path="kiro-nope")
    rig.program.chmod(0o644)
    with pytest.raises(CLINotFoundError, match="is not executable"):
        rig.ask(way, "x", cli_path=rig.program)


def test_a_program_that_cannot_run_is_no_missing_one(rig: Rig) -> None:
    """A file of another format, and a script whose interpreter is gone."""
    rig.program.write_bytes(b"\0no program")
    with pytest.raises(CLIConnectionError, match="could not be started"):
        rig.ask("sync", "x")
    rig.script("#!/no/interpreter\n")
    with pytest.raises(CLINotFoundError, match="could not be started"):
        rig.ask("sync", "x")


@pytest.mark.parametrize("way", WAYS)
def test_a_bad_key_is_told_though_the_status_is_0(rig: Rig, way: str) -> None:
    """The message names no key."""
    with pytest.raises(AuthenticationError, match="invalid or has expired") as caught:
        rig.ask(way, "x", KIRO_API_KEY="bad-secret")

    assert caught.value.exit_code == 0
    assert "bad-secret" not in str(caught.value)


@pytest.mark.parametrize("way", WAYS)
def test_without_any_credential_nobody_waits_for_a_login(rig: Rig, way: str) -> None:
    """Without a key kiro-cli is asked who is logged in before it is given a prompt."""
    with pytest.raises(AuthenticationError, match=r"nobody is logged in .*: Not logged in"):
        rig.ask(way, "x", KIRO_API_KEY="")

    assert [event["command"] for event in rig.events("start")] == ["whoami"]


@pytest.mark.parametrize(
    ("sim", "error", "message", "code"),
    [
        ({"KIRO_SIM_NO_TRAILER": "1"}, ProcessError, "without the line of credits", 0),
        ({"KIRO_SIM_EXIT": "1"}, ProcessError, "status 1: .*exit status 1 was asked for", 1),
        ({"KIRO_SIM_EXIT": "2"}, ProcessError, r"status 2 \(it did not accept its arg", 2),
        ({"KIRO_SIM_EXIT": "3"}, ProcessError, r"status 3 \(a required MCP server did", 3),
        ({"KIRO_SIM_SIGNAL": "SEGV"}, ProcessError, "ended by SIGSEGV", -11),
    ],
)
def test_a_turn_that_failed_says_how(
    rig: Rig, sim: dict[str, str], error: type[ProcessError], message: str, code: int
) -> None:
    """The exit status and what was said on stderr are in the error."""
    with pytest.raises(error, match=message) as caught:
        rig.ask("sync", "x", **sim)

    assert caught.value.exit_code == code


def test_what_is_said_on_stderr_is_told_without_secrets(rig: Rig) -> None:
    """Neither the key nor what MCP servers are given stands in an error."""
    printing(rig, stderr="sk-secret and gh-token failed\\n", status=1)
    servers = {"git": {"command": "git-mcp", "env": {"TOKEN": "gh-token"}}}

    with pytest.raises(ProcessError) as caught:
        rig.ask("sync", "x", KIRO_API_KEY="sk-secret", mcp_servers=servers)

    assert str(caught.value) == "kiro-cli exited with status 1: *** and *** failed"


def test_a_tool_that_is_not_trusted_may_end_the_turn(rig: Rig) -> None:
    """One version exits with 1; how to trust it is in the message."""
    said = "Tool approval required but --no-interactive was specified"
    printing(rig, stderr=f"{said}\\n", status=1)

    with pytest.raises(ToolPermissionError, match=f"name it in allowed_tools.*{said}"):
        rig.ask("sync", "x")


@pytest.mark.parametrize("way", WAYS)
def test_too_much_output_is_refused(rig: Rig, way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A program that prints without end is ended."""
    monkeypatch.setattr(process, "STDOUT_LIMIT", 300_000)

    with pytest.raises(CLIConnectionError, match="printed more than 300000 bytes"):
        rig.ask(way, "x", KIRO_SIM_OUTPUT="100000000")

    assert rig.alive() == []


@pytest.mark.parametrize("way", WAYS)
def test_a_turn_that_takes_too_long_is_ended(rig: Rig, way: str) -> None:
    """It is a TimeoutError too, and nothing of the turn is left."""
    with pytest.raises(TurnTimeoutError, match=r"after 0\.5 s") as caught:
        rig.ask(way, "x", KIRO_SIM_HANG="1", timeout=0.5)

    assert isinstance(caught.value, TimeoutError)
    assert isinstance(caught.value, CLIConnectionError)
    assert rig.alive() == []


@pytest.mark.parametrize("way", WAYS)
def test_output_that_is_left_when_it_ends_is_read(
    rig: Rig, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What still stands in the pipe counts."""
    monkeypatch.setattr(process, "_CHUNK", 1000)
    printing(rig, stdout="> " + "x" * 50_000)

    (answer, _) = rig.ask(way, "x")

    assert isinstance(answer, AssistantMessage)
    assert len(answer.text) == 50_000


def test_it_is_out_of_reach_of_the_terminal(rig: Rig) -> None:
    """Ctrl-C is the business of the program that asked; kiro-cli has a session of its own."""
    rig.script(
        f"#!{sys.executable}\nimport os, sys\nprint(os.getsid(0), os.getpid())\n"
        f"sys.stderr.write('{TRAILER}')\n"
    )

    (answer, _) = rig.ask("sync", "x")

    assert isinstance(answer, AssistantMessage)
    session, pid = answer.text.split()
    assert session == pid


def test_mcp_that_is_off_is_refused_at_once(rig: Rig) -> None:
    """Kiro says so on stderr when it starts; no turn runs without the servers asked for."""
    servers = {"git": {"command": "sh"}}

    with pytest.raises(OptionError, match="kiro-cli has turned MCP off") as caught:
        rig.ask("sync", "x", mcp_servers=servers, KIRO_SIM_DELAY="60")

    assert caught.value.option == "mcp_servers"
    assert (rig.alive(), rig.agent_files()) == ([], [])


def test_an_exit_status_that_another_took_is_no_failure(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A program may reap all children; then the trailer alone tells."""

    def gone(*_: object) -> None:
        raise ChildProcessError

    monkeypatch.setattr(os, "waitid", gone)
    monkeypatch.setattr(os, "waitpid", gone)

    assert isinstance(rig.ask("sync", "x")[-1], ResultMessage)


@pytest.mark.parametrize("missing", [["pidfd_open"], ["pidfd_open", "waitid"]])
@pytest.mark.parametrize("way", WAYS)
def test_without_a_descriptor_that_tells_the_end_it_is_looked_at(
    rig: Rig, way: str, missing: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Systems without pidfd, and without a way to wait that reaps nothing, work as well."""
    for name in missing:
        monkeypatch.delattr(os, name, raising=False)

    assert isinstance(rig.ask(way, "x")[-1], ResultMessage)
    with pytest.raises(ProcessError) as caught:
        rig.ask(way, "x", KIRO_SIM_SIGNAL="SEGV")
    assert caught.value.exit_code == -11


@pytest.mark.parametrize("wrong", [{"temperature": 0.1}, {"max_turns": 1}, {"verbose": 4}])
def test_what_kiro_cannot_do_is_refused_before_anything(rig: Rig, wrong: dict[str, Any]) -> None:
    """The call itself raises; nothing is started."""
    with pytest.raises(OptionError) as caught:
        query(prompt="x", options=rig.options(**wrong))
    with pytest.raises(KiroSDKError):
        query_sync(prompt="x", options=rig.options(**wrong))

    assert caught.value.option in wrong
    assert rig.events("start") == []


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_messages_may_be_left_before_the_last(
    rig: Rig, backend: str, recwarn: pytest.WarningsRecorder
) -> None:
    """Who breaks off a loop leaves nothing behind that would have to be closed."""

    async def first() -> object:
        async for message in query(prompt="x", options=rig.options()):
            return message
        return None

    assert isinstance(run(backend, first), AssistantMessage)
    assert [str(warning.message) for warning in recwarn] == []


def test_it_runs_where_the_caller_stands_by_default(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without options the environment and the directory are those of the program."""
    for name, value in rig.env.items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(rig.workspace)

    messages = query_sync(prompt="x")

    assert isinstance(messages[-1], ResultMessage)
    assert rig.events("start")[0]["cwd"] == str(rig.workspace)
    assert KiroAgentOptions() == KiroAgentOptions()
