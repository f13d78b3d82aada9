"""Commands around what an agent does, run as Kiro runs them."""

from __future__ import annotations

import json
import os
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.kiro.simulator.conftest import Ran, Simulator
from tests.kiro.simulator.test_agent_file import write_agent

RECORD = 'cat >>"$HEARD"; printf "%s" "|$USER_PROMPT" >>"$HEARD"; echo >>"$HEARD"'


@pytest.fixture
def hooked(simulator: Simulator, tmp_path: Path) -> Simulator:
    """A simulator whose hooks find a shell, and a file to write to."""
    simulator.environment |= {"PATH": os.environ["PATH"], "HEARD": str(tmp_path / "heard")}
    return simulator


def turn(simulator: Simulator, prompt: str, **hooks: list[dict[str, Any]]) -> Ran:
    """Run a turn of an agent that has these hooks and all tools."""
    write_agent({"name": "ops", "tools": ["*"], "hooks": hooks})
    return simulator.chat(prompt, "--agent", "ops")


def heard(simulator: Simulator) -> list[tuple[dict[str, Any], str]]:
    """Return what hooks got on stdin, and in USER_PROMPT."""
    lines = Path(simulator.environment["HEARD"]).read_text().splitlines()
    told = [line.rpartition("|") for line in lines]
    return [(json.loads(given), prompt) for given, _, prompt in told]


def test_each_event_has_its_place_and_its_payload(hooked: Simulator) -> None:
    """From the agent's beginning to the end of the turn, with what is known then."""
    every = ("agentSpawn", "userPromptSubmit", "preToolUse", "postToolUse", "stop")

    ran = turn(hooked, "Hello", **{event: [{"command": RECORD}] for event in every})

    here = {"cwd": os.getcwd()}
    prompt = {**here, "prompt": "Hello"}
    tool_input = {"command": "append", "path": "SORTIE_DEMO.md", "new_str": "Hello"}
    tool = {**prompt, "tool_name": "fs_write", "tool_input": tool_input}
    response = {"tool_response": {"success": True, "result": ["done"]}}
    assert ran.status == 0
    assert heard(hooked) == [
        ({"hook_event_name": "agentSpawn", **here}, ""),
        ({"hook_event_name": "userPromptSubmit", **prompt}, "Hello"),
        ({"hook_event_name": "preToolUse", **tool}, "Hello"),
        ({"hook_event_name": "postToolUse", **tool, **response}, "Hello"),
        ({"hook_event_name": "stop", **prompt}, "Hello"),
    ]


def test_hooks_run_with_the_agent_only(hooked: Simulator) -> None:
    """A turn without --agent runs none."""
    write_agent({"name": "ops", "tools": ["*"], "hooks": {"stop": [{"command": RECORD}]}})

    hooked.chat("Hello")

    assert not Path(hooked.environment["HEARD"]).exists()


def test_the_conversation_is_there_when_stop_hooks_run(hooked: Simulator) -> None:
    """And not before that, while the answer was still to come."""
    count = (
        "python3 -c \"import sqlite3,os;print(os.path.exists('$DB') and "
        "sqlite3.connect('$DB').execute('SELECT count(*) FROM conversations_v2').fetchone()[0])\""
    )
    hooked.environment["DB"] = str(hooked.database)
    see = [{"command": f'{count} >>"$HEARD"'}]

    turn(hooked, "Hello", userPromptSubmit=see, stop=see)

    assert Path(hooked.environment["HEARD"]).read_text().split() == ["False", "1"]


def test_output_before_a_prompt_is_added_to_the_context(hooked: Simulator) -> None:
    """Of a command that succeeds; it is kept with the prompt, and the answer knows it."""
    ran = turn(
        hooked,
        "Hello\nsim: recall=1",
        agentSpawn=[{"command": "echo on main"}],
        userPromptSubmit=[{"command": "echo be brief"}, {"command": "echo no; exit 1"}],
        postToolUse=[{"command": "echo unheard"}],
    )

    with closing(sqlite3.connect(hooked.database)) as database:
        (value,) = database.execute("SELECT value FROM conversations_v2").fetchone()
    entry = json.loads(value)["history"][0]
    assert entry["user"]["additional_context"] == "on main\nbe brief"
    assert ran.stdout.endswith("I remember:\non main\nbe brief")
    assert "userPromptSubmit hook exited with 1: echo no; exit 1" in ran.stderr


def test_exit_2_before_a_tool_blocks_it(hooked: Simulator) -> None:
    """The file stays as it is, the model hears why, and no hook after it runs."""
    ran = turn(
        hooked,
        "Hello",
        preToolUse=[{"command": "echo not today >&2; exit 2"}],
        postToolUse=[{"command": RECORD}],
    )

    with closing(sqlite3.connect(hooked.database)) as database:
        (value,) = database.execute("SELECT value FROM conversations_v2").fetchone()
    told = json.loads(value)["history"][1]["user"]["content"]["ToolUseResults"]
    (result,) = told["tool_use_results"]
    assert (ran.status, "I changed nothing" in ran.stdout) == (0, True)
    assert not Path("SORTIE_DEMO.md").exists()
    assert result["status"] == "Error"
    assert result["content"] == [{"Text": "a hook has blocked the tool: not today"}]
    assert not Path(hooked.environment["HEARD"]).exists()


@pytest.mark.parametrize("event", ["agentSpawn", "userPromptSubmit", "preToolUse", "stop"])
def test_any_other_failure_is_a_warning(hooked: Simulator, event: str) -> None:
    """It says which hook and what it wrote; the turn goes on. Elsewhere 2 is such a failure."""
    status = 3 if event == "preToolUse" else 2

    ran = turn(hooked, "Hello", **{event: [{"command": f"echo broken >&2; exit {status}"}]})

    warning = f"{event} hook exited with {status}: echo broken >&2; exit {status}: broken"
    assert (ran.status, "I added a note" in ran.stdout) == (0, True)
    assert warning in ran.stderr


def test_a_hook_that_takes_too_long_is_killed_with_what_it_has_started(hooked: Simulator) -> None:
    """And changes nothing, not even before a tool."""
    command = 'sleep 600 & echo $! >"$HEARD"; wait; exit 2'

    ran = turn(hooked, "Hello", preToolUse=[{"command": command, "timeout_ms": 300}])

    pid = int(Path(hooked.environment["HEARD"]).read_text())
    assert ran.status == 0
    assert f"preToolUse hook timed out after 0.3 s: {command}" in ran.stderr
    assert Path("SORTIE_DEMO.md").exists()
    assert not _lives(pid)


def test_a_hook_may_ignore_its_input_and_leave_something_behind(hooked: Simulator) -> None:
    """Neither kills the turn nor holds it up."""
    hooked.environment["LEFT"] = f"{hooked.environment['HEARD']}.pid"

    ran = turn(
        hooked,
        "Hello " + "x" * 200_000,
        userPromptSubmit=[{"command": "exec true"}],
        stop=[{"command": 'sleep 600 & echo $! >"$LEFT"'}],
    )

    os.kill(int(Path(hooked.environment["LEFT"]).read_text()), 9)
    assert (ran.status, "hook" in ran.stderr) == (0, False)


@pytest.mark.parametrize(
    ("matcher", "runs"),
    [
        (None, True),
        ("*", True),
        ("@builtin", True),
        ("fs_write", True),
        ("write", True),
        ("fs_*", True),
        ("fs_read", False),
        ("@git", False),
        ("@git/status", False),
    ],
)
def test_a_matcher_says_which_tools_are_meant(
    hooked: Simulator, matcher: str | None, runs: bool
) -> None:
    """By name, as people call it, or by a pattern; without one all are."""
    hook = {"command": RECORD} if matcher is None else {"command": RECORD, "matcher": matcher}

    turn(hooked, "Hello", preToolUse=[hook])

    assert Path(hooked.environment["HEARD"]).exists() == runs


def test_the_prompt_in_the_environment_is_cut(hooked: Simulator) -> None:
    """At 4,096 bytes, and at no half of a character."""
    prompt = "ä" * 3000

    turn(hooked, prompt, userPromptSubmit=[{"command": RECORD}])

    ((told, shown),) = heard(hooked)
    assert told["prompt"] == prompt
    assert shown == "ä" * 2048


def test_output_without_end_is_cut(hooked: Simulator) -> None:
    """10 KiB are taken, unless the hook says otherwise."""
    long = "head -c 200000 /dev/zero | tr '\\0' x"

    default = turn(hooked, "sim: recall=1", agentSpawn=[{"command": long}])
    own = turn(hooked, "sim: recall=1", agentSpawn=[{"command": long, "max_output_size": 7}])

    assert default.stdout.count("x") == 10 * 1024
    assert own.stdout.count("x") == 7


def test_a_failed_tool_is_told_as_an_error(hooked: Simulator) -> None:
    """In place of its result."""
    turn(hooked, "sim: tool_status=error", postToolUse=[{"command": RECORD}])

    ((told, _),) = heard(hooked)
    response = {"success": False, "error": "the tool use ended as error, as it was asked for"}
    assert told["tool_response"] == response


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    status = Path(f"/proc/{pid}/stat")  # a killed orphan that nobody has reaped yet
    return not status.exists() or status.read_text().rpartition(")")[2].split()[0] != "Z"
