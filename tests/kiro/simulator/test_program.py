"""Commands, output bytes and exit statuses of the simulator."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from sortie.kiro.headless.arguments import ChatOptions, chat
from sortie.kiro.simulator.program import parse_chat
from tests.kiro.simulator.conftest import Simulator

MCP = "\x1b[33mFailed to retrieve MCP settings; MCP functionality disabled\x1b[0m\n"
TRAILER = "\n\x1b[38;5;244m ▸ Credits: 0.05 • Time: 0s\x1b[0m\x1b[?25h\n\n"


def test_a_plain_turn(simulator: Simulator) -> None:
    """Marker, answer without final line end, MCP warning and trailer are Kiro's bytes."""
    ran = simulator.chat("Hello", "--trust-tools=")

    assert ran.status == 0
    assert ran.stdout == (
        "\x1b[38;5;141m> \x1b[0mI have read \x1b[1mHello\x1b[22m.\n"
        "I added a note to `SORTIE_DEMO.md`."
    )
    assert ran.stderr == MCP + TRAILER


def test_the_prompt_may_come_from_stdin(simulator: Simulator) -> None:
    """Without a positional prompt all of stdin is the prompt, trimmed."""
    ran = simulator("chat", "--no-interactive", stdin=b"\n Hello \xff\n\n")

    assert "\x1b[1mHello \ufffd\x1b[22m" in ran.stdout


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (["chat", "--no-interactive"], 1, "Input must be supplied"),
        (["chat", "Hello"], 1, "the simulator has no interactive mode"),
        (["chat", "--nope"], 2, "--nope"),
        (["chat", "one", "two"], 2, "two"),
        (["chat", "--model"], 2, "--model: expected one argument"),
        (["chat", "--wrap", "nevr"], 2, "invalid choice: 'nevr'"),
        (["chat", "--resume", "--resume-id", "x"], 2, "not allowed with"),
        (["chat", "--resume-id", "../up"], 2, "it is no session id"),
        (["chat", "--no-interactive", "--resume-id", "x", "Hi"], 1, "no session with the id x"),
        (["whoami", "-x"], 2, "unexpected argument '-x' found"),
        (["mcp"], 2, "the simulator has no 'mcp'"),
        (["dance"], 2, "unrecognized subcommand 'dance'"),
        ([], 2, "a subcommand is required"),
        (["chat", "--no-interactive", "sim: dealy=1"], 2, "there is no directive 'dealy'"),
        (["chat", "--no-interactive", "--agent", "no", "Hi"], 4, "no agent with name no found"),
    ],
)
def test_errors(simulator: Simulator, arguments: list[str], status: int, message: str) -> None:
    """Each misuse has Kiro's exit status and a text on stderr only."""
    ran = simulator(*arguments)

    assert ran.status == status
    assert message in ran.stderr
    assert ran.stdout == ""


@pytest.mark.parametrize("arguments", [["--version"], ["-V"], ["version"]])
def test_the_version_says_simulator(simulator: Simulator, arguments: list[str]) -> None:
    """Nobody takes it for the real program."""
    ran = simulator(*arguments)

    assert ran.stdout.startswith("sortie-kiro-sim ")
    assert "simulator" in ran.stdout


@pytest.mark.parametrize("arguments", [["--help"], ["help"], ["chat", "--help"], ["chat", "-h"]])
def test_help_names_every_directive(simulator: Simulator, arguments: list[str]) -> None:
    """The help holds options, directives and an example."""
    ran = simulator(*arguments)

    assert ran.status == 0
    for word in ("--trust-tools=", "fail_first=N", "KIRO_SIM_NAME=VALUE", "Example:"):
        assert word in ran.stdout


@pytest.mark.parametrize(
    ("key", "status", "text"),
    [
        ("sk-1", 0, "Authenticated with API key"),
        ("invalid", 0, "Authentication failed."),
        ("bad-key", 1, "Authentication failed."),
        ("", 1, "Not logged in"),
    ],
)
def test_whoami(simulator: Simulator, key: str, status: int, text: str) -> None:
    """A good key is confirmed; bad ones fail in both ways that Kiro has."""
    simulator.environment["KIRO_API_KEY"] = key

    ran = simulator("whoami")

    assert ran.status == status
    assert text in ran.stdout + ran.stderr


@pytest.mark.parametrize("way", ["key", "directive"])
def test_a_bad_key_exits_0_without_a_word(simulator: Simulator, way: str) -> None:
    """Empty stdout, the failure on stderr, no trailer, nothing written: Kiro's silent failure."""
    if way == "key":
        simulator.environment["KIRO_API_KEY"] = "bad"

    ran = simulator.chat("sim: auth_failure=1" if way == "directive" else "Hello")

    assert (ran.status, ran.stdout) == (0, "")
    assert "Authentication failed. Your API key may be invalid or expired." in ran.stderr
    assert "Credits" not in ran.stderr
    assert os.listdir() == []


def test_output_of_a_size(simulator: Simulator) -> None:
    """output= and long_line= give exactly so many bytes, in lines and in one line."""
    plain = simulator.chat("Hi").stdout
    lines = simulator.chat("Hi\nsim: output=200000").stdout
    line = simulator.chat("Hi\nsim: long_line=200000").stdout

    assert len(lines) - len(plain) - 1 == 200_000
    assert max(map(len, lines.splitlines())) < 200
    assert len(line.splitlines()[-1]) == 200_000


def test_tools_are_shown_in_both_styles(simulator: Simulator) -> None:
    """Old versions show a tool on stdout, new ones on stderr."""
    old, new = simulator.chat("sim: tools=old"), simulator.chat("sim: tools=new")

    assert ("🛠️  Using tool: fs_write" in old.stdout, "🛠️" in old.stderr) == (True, False)
    assert ("🛠️" in new.stdout, "Completed in 0.2s" in new.stderr) == (False, True)


def test_trailers(simulator: Simulator) -> None:
    """The trailer has the credits that were asked for, or is missing."""
    told = simulator.chat("sim: credits=1.5").stderr
    missing = simulator.chat("sim: no_trailer=1").stderr

    assert (told, missing) == (MCP + TRAILER.replace("0.05", "1.5"), MCP)


def test_a_delay_shows_progress(simulator: Simulator) -> None:
    """While it works it redraws a line; while it is silent it prints nothing."""
    delayed = simulator.chat("sim: delay=0.01").stdout
    silent = simulator.chat("sim: silence=0.01 stderr=done").stdout

    assert delayed.startswith("\r\x1b[?25l\x1b[38;5;244m⠋ Thinking...\x1b[0m")
    assert "\r\x1b[2K\x1b[?25h\x1b[38;5;141m> " in delayed
    assert silent.startswith("\x1b[38;5;141m> ")


def test_the_log(simulator: Simulator, tmp_path: Path) -> None:
    """Start and stop are lines with pid, directory, run and time; the key is not in them."""
    path = tmp_path / "log.jsonl"
    simulator.environment |= {"KIRO_SIM_LOG": str(path), "SORTIE_RUN_ID": "run-1"}

    simulator("whoami")
    simulator.chat("Hello\nsim: exit=1", "--resume")

    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert [(line["command"], line["event"]) for line in lines] == [
        ("whoami", "start"),
        ("whoami", "stop"),
        ("chat", "start"),
        ("chat", "stop"),
    ]
    assert {(line["pid"], line["cwd"], line["run_id"]) for line in lines} == {
        (os.getpid(), os.getcwd(), "run-1")
    }
    assert (lines[2]["resume"], lines[2]["prompt_bytes"]) == (True, 17)
    assert lines[3]["status"] == 1
    assert "sk-1" not in path.read_text()


def test_it_reads_what_the_adapter_builds() -> None:
    """Every option of the adapter's command line arrives where it belongs."""
    options = ChatOptions(model="m-1", agent="ops", trust_tools=("read", "write"), verbose=2)
    invocation = chat(options, "-v is a prompt", resume=True)

    parsed = parse_chat(invocation.arguments[1:])

    assert {name: value for name, value in vars(parsed).items() if value} == {
        "no_interactive": True,
        "verbose": 2,
        "wrap": "never",
        "resume": True,
        "model": "m-1",
        "agent": "ops",
        "trust_tools": "read,write",
        "prompt": "-v is a prompt",
    }
