"""``sortie validate``."""

from __future__ import annotations

import json
from io import BytesIO, TextIOWrapper
from pathlib import Path

import pytest

from tests.cli.conftest import Cli
from tests.cli.world import FIVE_MISTAKES, WORKFLOW, Ran


def test_a_valid_file_says_so(cli: Cli, here: Path) -> None:
    """Without findings there is nothing on stdout and the exit code is 0."""
    (here / "WORKFLOW.md").write_text(WORKFLOW)

    assert cli("validate") == Ran(code=0, out="", err="WORKFLOW.md is valid\n")


def test_all_mistakes_are_found_at_once(cli: Cli, here: Path) -> None:
    """Five mistakes have five places and keys, each with its line shown, and the exit code is 1."""
    (here / "W.md").write_text(FIVE_MISTAKES)

    ran = cli("validate", "W.md")

    lines = [line for line in ran.out.splitlines() if ": warning: " not in line]
    places = [line.split(": ")[:2] for line in lines if line.startswith("W.md:")]
    assert places == [
        ["W.md:4:18", "tracker.active_states"],
        ["W.md:5:3", "tracker.active_state"],
        ["W.md:9:16", "polling.interval_ms"],
        ["W.md:11:14", "agent.max_turns"],
        ["W.md:13:9", "server.port"],
    ]
    assert lines[-3:] == [
        "W.md:13:9: server.port: needs a whole number from 0 to 65535, not 70000",
        "   13 |   port: 70000",
        "      |         ^^^^^",
    ]
    assert ran.code == 1
    assert ran.err.startswith("sortie: W.md is not valid: 5 errors")


@pytest.mark.parametrize(
    ("kind", "command"),
    [
        ("codex-acp", "codex-acp"),
        ("opencode", "opencode acp"),
        ("copilot-cli", "copilot --acp"),
        ("copilot", "copilot --acp"),
        ("gemini", "gemini --acp -m MODEL"),
    ],
)
def test_an_agent_that_acp_runs_is_no_kind_of_its_own(
    cli: Cli, here: Path, kind: str, command: str
) -> None:
    """One error at its place says which kind and command to set."""
    text = WORKFLOW.replace("---\n", f"---\nagent: {{kind: {kind}}}\n", 1)
    (here / "WORKFLOW.md").write_text(text)

    ran = cli("validate")

    (told,) = (line for line in ran.out.splitlines() if line.startswith("WORKFLOW.md:"))
    assert told == (
        f'WORKFLOW.md:2:15: agent.kind: needs a known kind, not the text "{kind}";'
        f" set kind: acp and command: {command}"
    )
    assert ran.code == 1


LONG = "{{ issue.title }} " * 8

SHOWN = {
    "wide characters": (
        "agent: {command: [日本, 5]}",
        "agent.command[1]: ",
        ("agent: {command: [日本, 5]}", "                        ^"),
    ),
    "a long line": (
        f"hooks: {{after_run: '{LONG}', timeout_ms: soon}}",
        "hooks.timeout_ms: ",
        (
            "…title }} {{ issue.title }} {{ issue.title }} ', timeout_ms: soon}",
            " " * 61 + "^^^^",
        ),
    ),
    "what acts on the terminal": (
        'agent: {command: ["\u202eab", 5]}'.replace("\\u202e", "\u202e"),
        "agent.command[1]: ",
        ('agent: {command: ["\\u202eab", 5]}', "                              ^"),
    ),
    "a tab": (
        "agent:\n\tmax_turns: 1",
        "invalid YAML: ",
        (" max_turns: 1", "^"),
    ),
    "a secret": (
        "tracker: {api_key: hunter2hunter2, knid: file}",
        "tracker.knid: ",
        ("tracker: {api_key: ***", "                   ^"),
    ),
    "a secret elsewhere": (
        "tracker: {api_key: hunter2hunter2}\nagent: {command: [hunter2hunter2, 5]}",
        "agent.command[1]: ",
        ("agent: {command: [***, 5]}", "                       ^"),
    ),
    "an anchored secret": (
        "hooks: {after_run: &k hunter2hunter2, timeout_ms: soon}\ntracker: {api_key: *k}",
        "hooks.timeout_ms: ",
        ("hooks: {after_run: &k ***, timeout_ms: soon}", " " * 39 + "^^^^"),
    ),
    "a secret that cannot be read": (
        'tracker:\n  api_key: "hunter2\n  kind: file',
        "invalid YAML: ",
        ("  api_key: ***", "           ^"),
    ),
    "a secret on lines of its own": (
        "server:\n  auth_token: |\n    hunter2hunter2\n    \tx\n  port: - x",
        "invalid YAML: ",
        ("  port: - x", "        ^"),
    ),
    "what goes on with a secret": (
        "server:\n  auth_token: hunter2\n     hunter2: x",
        "invalid YAML: ",
        ("     ***", "     ^"),
    ),
    "a reference": (
        'tracker: {api_key: "${TOKEN}", knid: file}',
        "tracker.knid: ",
        ('tracker: {api_key: "${TOKEN}", knid: file}', " " * 31 + "^^^^"),
    ),
}


@pytest.mark.parametrize("name", SHOWN)
def test_the_line_is_shown_with_a_mark_and_without_secrets(cli: Cli, here: Path, name: str) -> None:
    """The mark stands below the place, however wide its line is; a secret is never shown."""
    written, about, (line, mark) = SHOWN[name]
    (here / "W.md").write_text(f"---\n{written}\n---\nx\n")

    out = cli("validate", "W.md").out

    said = [found for found in out.split("W.md:") if about in found]
    assert len(said) == 1, out
    shown = said[0].splitlines()[1:]
    assert [text.partition("| ")[2] for text in shown] == [line, mark]
    assert "hunter2" not in out


def test_the_env_file_is_not_shown(cli: Cli, here: Path) -> None:
    """Its lines are secrets as often as not."""
    (here / "W.md").write_text(WORKFLOW)
    (here / "env").write_text("SORTIE_AGENT_MAX_TURNS=hunter2\n")

    assert " | " not in cli("validate", "W.md", "--env-file", "env").out


def test_findings_are_data(cli: Cli, here: Path) -> None:
    """JSON holds a verdict and every finding, field by field, and the code is the same."""
    (here / "W.md").write_text(WORKFLOW.replace("  handoff_state: Review\n", "  project: 7\n"))

    ran = cli("validate", "W.md", "--format", "json")
    found = json.loads(ran.out)

    fields = ("path", "line", "column", "key", "severity")
    assert (ran.code, found["valid"]) == (1, False)
    assert [tuple(problem[name] for name in fields) for problem in found["problems"]] == [
        ("W.md", 2, 1, "tracker.handoff_state", "warning"),
        ("W.md", 6, 12, "tracker.project", "error"),
    ]
    assert {frozenset(problem) for problem in found["problems"]} == {
        frozenset((*fields, "message"))
    }


def test_warnings_do_not_fail(cli: Cli, here: Path) -> None:
    """A file with warnings only is valid; they are printed."""
    (here / "WORKFLOW.md").write_text(WORKFLOW.replace("  trust_all_tools: true", "  model: fast"))

    ran = cli("validate")

    assert (ran.code, ran.err) == (0, "WORKFLOW.md is valid: 1 warning\n")
    assert ran.out.startswith("WORKFLOW.md:")
    assert ": warning: kiro.trust_tools: " in ran.out


def test_what_has_no_place_has_null(cli: Cli) -> None:
    """A finding about a whole file has neither line nor key, and that is null."""
    found = json.loads(cli("validate", "--format", "json").out)

    assert found == {
        "valid": False,
        "problems": [
            {
                "path": "WORKFLOW.md",
                "line": None,
                "column": None,
                "key": None,
                "message": "there is no such file",
                "severity": "error",
            }
        ],
    }


def test_an_env_file_is_checked_too(cli: Cli, here: Path) -> None:
    """Overrides of an env file count, and so do mistakes in them."""
    (here / "WORKFLOW.md").write_text(WORKFLOW)
    (here / "good.env").write_text("SORTIE_AGENT_MAX_TURNS=3\n")
    (here / "bad.env").write_text("\nSORTIE_AGENT_MAX_TURNS=many\n")

    assert cli("validate", "--env-file", "good.env").code == 0
    ran = cli("validate", "--env-file", "bad.env")
    assert ran.code == 1
    assert ran.out.startswith("bad.env:2:1: SORTIE_AGENT_MAX_TURNS: ")


@pytest.mark.parametrize("content", [b"\xff\xfe", b"--- \n" + b"a: b\n" * 300_000, b"---\nx: 1\n"])
def test_hostile_files_are_findings(cli: Cli, here: Path, content: bytes) -> None:
    """What is no text, too large or never closed is one located line, and no traceback."""
    (here / "WORKFLOW.md").write_bytes(content)

    ran = cli("validate")

    assert ran.code == 1
    assert ran.out.startswith("WORKFLOW.md")
    assert ran.out.count("WORKFLOW.md") == 1
    assert ran.out.count("\n") in (1, 3)


def test_a_key_cannot_act_on_the_terminal(cli: Cli, here: Path) -> None:
    """Escapes that stand in a key are shown, not sent."""
    (here / "WORKFLOW.md").write_text(WORKFLOW.replace("kiro:", '"\\e[2J": 1\nkiro:'))

    ran = cli("validate")

    assert ran.code == 0
    assert "[2J" in ran.out
    assert "\x1b" not in ran.out


@pytest.mark.parametrize(
    ("text", "code", "out", "err"),
    [
        (WORKFLOW, 0, "", "stdin is valid\n"),
        (FIVE_MISTAKES, 1, "stdin:2:1: warning: ", "sortie: stdin is not valid: 5 errors"),
        ("x" * (3 << 20), 1, "stdin: is larger than 1 MiB\n", "sortie: stdin is not valid"),
        ("\x00", 1, "stdin:1:1: ", "sortie: stdin is not valid"),
    ],
)
def test_a_file_can_come_through_a_pipe(
    cli: Cli,
    here: Path,
    monkeypatch: pytest.MonkeyPatch,
    text: str,
    code: int,
    out: str,
    err: str,
) -> None:
    """With - what comes on stdin is checked as a file of this directory would be."""
    monkeypatch.setattr("sys.stdin", TextIOWrapper(BytesIO(text.encode())))

    ran = cli("validate", "-")

    assert ran.code == code
    assert ran.out.startswith(out)
    assert ran.err.startswith(err)
    assert list(here.iterdir()) == []


@pytest.mark.parametrize(
    ("settings", "key"),
    [
        ("db_path: there", "db_path"),
        ("workspace:\n  root: file", "workspace.root"),
        ("agent:\n  command: kiro-cli 'chat", "agent.command"),
    ],
)
def test_what_cannot_be_used_on_this_machine_is_found(
    cli: Cli, here: Path, settings: str, key: str
) -> None:
    """A database that is a directory, a root that is a file and an open quote are errors."""
    (here / "there").mkdir()
    (here / "file").write_text("")
    (here / "WORKFLOW.md").write_text(
        "---\ntracker:\n  kind: file\n  active_states: [Todo]\nfile:\n  path: there\n"
        f"{settings}\n---\nWork.\n"
    )

    ran = cli("validate")

    assert ran.code == 1
    assert f"\nWORKFLOW.md: {key}: " in f"\n{ran.out}"
    assert [path.name for path in sorted(here.iterdir())] == ["WORKFLOW.md", "file", "there"]
