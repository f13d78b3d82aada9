"""Tools from their start to their end, and the texts of those that failed."""

from __future__ import annotations

from typing import Any

import pytest

from sortie.agents.claude_code.tools import ERROR_LIMIT, ClaudeToolCalls, error_text
from sortie.model.turns import ToolEnded, ToolStarted
from tests.agents.claude_code.reading import Clock


def use(name: str, call: str = "1", **given: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": call, "name": name, "input": given}


def done(call: str = "1", **values: Any) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": call} | values


def test_a_result_belongs_to_its_call() -> None:
    """Calls that overlap have each their own duration."""
    clock = Clock()
    calls = ClaudeToolCalls(clock)

    started = [calls.started(use("Read", "1", file_path="/w/a.py"))]
    clock.now = 2.0
    started.append(calls.started(use("Bash", "2", command="ls")))
    clock.now = 5.0
    ended = [calls.ended(done("1")), calls.ended(done("2", is_error=True, content="no"))]

    assert started == [
        ToolStarted(id="1", name="Read", kind="read", locations=("/w/a.py",)),
        ToolStarted(id="2", name="Bash", kind="execute", about="ls"),
    ]
    assert ended == [
        ToolEnded(id="1", duration=5.0),
        ToolEnded(id="2", failed=True, duration=3.0, error="no"),
    ]


def test_what_belongs_to_no_call_is_not_told() -> None:
    """A call counts once, a result of nobody's call not at all."""
    calls = ClaudeToolCalls(Clock())

    assert calls.started(use("mcp__docs__search")) == ToolStarted(id="1", name="mcp__docs__search")
    assert calls.started(use("Bash")) is None
    assert calls.ended(done("2")) is None
    assert calls.ended(done("1")) == ToolEnded(id="1", duration=0.0)
    assert calls.ended(done("1")) is None


def test_an_ended_turn_ends_its_tools() -> None:
    """What was told to have started is told to have ended, and no more than once."""
    clock = Clock()
    calls = ClaudeToolCalls(clock)
    calls.started(use("Bash"))
    clock.now = 7.0

    assert calls.close() == [
        ToolEnded(id="1", failed=True, duration=7.0, error="the turn ended before the tool did")
    ]
    assert calls.close() == []


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("plain", "plain"),
        ("<tool_use_error>String not found</tool_use_error>", "String not found"),
        (" <tool_use_error>two\nlines</tool_use_error>\n", "two\nlines"),
        (
            "it said <tool_use_error>x</tool_use_error>",
            "it said <tool_use_error>x</tool_use_error>",
        ),
        ("Exit code 1\n\x1b[31mred\x1b[0m and \x1b[1;4mbold\x1b[m", "Exit code 1\nred and bold"),
        ([{"type": "text", "text": "a"}, {"type": "image"}, {"type": "text", "text": "b"}], "a\nb"),
        (None, ""),
        ([1, {"text": 2}], ""),
    ],
)
def test_the_text_of_an_error(content: object, text: str) -> None:
    """Without its envelope and its colours, from a text or from blocks."""
    assert error_text(content) == text


def test_a_long_error_keeps_its_first_line_and_its_end() -> None:
    """The exit status and what the program said last; the limit is in bytes."""
    lines = "".join(f"line {number} ü\n" for number in range(2000))

    text = error_text(f"Exit code 2\n{lines}the reason")

    assert text.startswith("Exit code 2\n")
    assert text.endswith("line 1999 ü\nthe reason")
    assert ERROR_LIMIT - 4 <= len(text.encode()) <= ERROR_LIMIT
    assert error_text("x" * ERROR_LIMIT) == "x" * ERROR_LIMIT
    assert len(error_text("ü" * ERROR_LIMIT).encode()) <= ERROR_LIMIT
