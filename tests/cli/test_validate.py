"""``sortie validate``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Cli
from tests.cli.world import FIVE_MISTAKES, WORKFLOW, Ran


def test_a_valid_file_says_so(cli: Cli, here: Path) -> None:
    """Without findings there is nothing on stdout and the exit code is 0."""
    (here / "WORKFLOW.md").write_text(WORKFLOW)

    assert cli("validate") == Ran(code=0, out="", err="WORKFLOW.md is valid\n")


def test_all_mistakes_are_found_at_once(cli: Cli, here: Path) -> None:
    """Five mistakes are five lines, each with its place and key, and the exit code is 1."""
    (here / "W.md").write_text(FIVE_MISTAKES)

    ran = cli("validate", "W.md")

    places = [line.split(": ")[:2] for line in ran.out.splitlines() if ": warning: " not in line]
    assert places == [
        ["W.md:4:18", "tracker.active_states"],
        ["W.md:5:3", "tracker.active_state"],
        ["W.md:9:16", "polling.interval_ms"],
        ["W.md:11:14", "agent.max_turns"],
        ["W.md:13:9", "server.port"],
    ]
    assert ran.code == 1
    assert ran.err.startswith("sortie: W.md is not valid: 5 errors")


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
    assert ran.out.count("\n") == 1


def test_a_key_cannot_act_on_the_terminal(cli: Cli, here: Path) -> None:
    """Escapes that stand in a key are shown, not sent."""
    (here / "WORKFLOW.md").write_text(WORKFLOW.replace("kiro:", '"\\e[2J": 1\nkiro:'))

    ran = cli("validate")

    assert ran.code == 0
    assert "[2J" in ran.out
    assert "\x1b" not in ran.out
