"""The block: what it accepts, what it warns about, and what it may not be beside other keys."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sortie.agents.claude_code import ADAPTER
from sortie.agents.claude_code.settings import ClaudeCodeSettings
from sortie.daemon.workflow_file import schemas
from sortie.model import WorkflowError
from sortie.workflow.loader import Workflow, load

BYPASS = {"permission_mode": "bypassPermissions"}


def loaded(folder: Path, block: object, agent: dict[str, object] | None = None) -> Workflow:
    """Load a workflow with this block, on line 3, and these settings of ``agent``, on line 2."""
    lines = [
        "---",
        f"agent: {json.dumps({'kind': 'claude-code'} | (agent or {}))}",
        f"claude-code: {json.dumps(block)}",
        "tracker: {kind: file, active_states: [A], handoff_state: B}",
        "file: {path: issues}",
        "---",
        "Work.",
    ]
    path = folder / "WORKFLOW.md"
    path.write_text("\n".join(lines))
    return load(path, schemas=schemas(), env={"HOME": "/home/me"})


def errors(folder: Path, block: object, agent: dict[str, object] | None = None) -> list[str]:
    """Return what is wrong, without the folder."""
    with pytest.raises(WorkflowError) as caught:
        loaded(folder, block, agent)
    return [str(problem).replace(f"{folder}/", "") for problem in caught.value.problems]


def test_everything_can_be_set(tmp_path: Path) -> None:
    """Each key reaches the block; a path is one beside the workflow file."""
    given = {
        "permission_mode": "acceptEdits",
        "model": "opus",
        "fallback_model": "sonnet",
        "max_turns": 50,
        "max_budget_usd": 2.5,
        "effort": "low",
        "allowed_tools": "Edit,Write",
        "disallowed_tools": "Bash",
        "system_prompt": "Be brief.",
        "mcp_config": "mcp.json",
        "session_persistence": False,
    }

    workflow = loaded(tmp_path, given, {"max_turns": 1})

    block = workflow.settings.block(ADAPTER.block_name)
    expected = given | {"mcp_config": str(tmp_path / "mcp.json")}
    assert workflow.warnings == ()
    assert block == ClaudeCodeSettings(**expected)


@pytest.mark.parametrize(
    ("block", "problem"),
    [
        ({"permission_mode": "yolo"}, "permission_mode: needs acceptEdits, auto, "),
        ({"effort": "huge"}, "effort: needs low, medium, high, xhigh or max"),
        ({"max_turns": 0}, "max_turns: needs a whole number of at least 1"),
        ({"max_budget_usd": 0}, "max_budget_usd: needs a number above 0"),
        ({"max_budget_usd": "5"}, "max_budget_usd: needs a number above 0"),
        ({"max_budget_usd": True}, "max_budget_usd: needs a number above 0"),
        ({"model": "-x"}, "model: must not begin with '-'"),
        ({"allowed_tools": "--x"}, "allowed_tools: must not begin with '-'"),
        ({"model": ""}, "model: must not be blank"),
        ({"system_prompt": " "}, "system_prompt: must not be blank"),
        ({"session_persistence": "no"}, "session_persistence: "),
        ({"modle": "x"}, 'modle: unknown key; did you mean "model"?'),
    ],
)
def test_what_cannot_be(block: dict[str, object], problem: str, tmp_path: Path) -> None:
    """Each mistake is told at its place."""
    (found,) = errors(tmp_path, BYPASS | block)

    assert found.startswith("WORKFLOW.md:3:")
    assert f": claude-code.{problem}" in found


def test_only_a_single_turn_does_without_its_conversation(tmp_path: Path) -> None:
    """Further turns would have nothing to go on with."""
    block = BYPASS | {"session_persistence": False}

    (found,) = errors(tmp_path, block, {"max_turns": 2})

    assert found == (
        "WORKFLOW.md:3:78: claude-code.session_persistence: is false, so that no turn could go on"
        " with the one before it; it needs agent.max_turns: 1, not 2"
    )
    assert loaded(tmp_path, block, {"max_turns": 1}).warnings == ()


@pytest.mark.parametrize(
    ("mode", "word"),
    [
        (None, "deprecated"),
        ("default", "nobody is there to answer"),
        ("manual", "nobody is there to answer"),
        ("plan", "nobody is there to answer"),
        ("acceptEdits", None),
        ("auto", None),
        ("dontAsk", None),
        ("bypassPermissions", None),
    ],
)
def test_modes_that_do_not_fit_an_unattended_run(
    mode: str | None, word: str | None, tmp_path: Path
) -> None:
    """They are warned about where the mode stands, or should stand."""
    told = loaded(tmp_path, {"permission_mode": mode} if mode else {}).warnings

    assert [problem.key for problem in told] == ["claude-code.permission_mode"][: len(told)]
    assert [word in problem.message for problem in told if word] == ([True] if word else [])
