"""Calls: checked, bounded, told of, and answered without secrets."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import trio
import trio.testing

from sortie.model import TrackerError, TrackerErrorKind
from sortie.model.tools import CALLS_LIMIT, COMMENT_LIMIT, ToolName
from sortie.telemetry import facts
from sortie.tools.arguments import DESCRIBED, Ask, SetStatus, WorkStatus
from sortie.tools.calls import ANSWER_LIMIT, ToolAnswer, ToolCalls
from tests.tools.rig import RUN, NotedTools, ToolRig


@pytest.fixture
def rig(tmp_path: Path) -> ToolRig:
    return ToolRig(tmp_path)


@pytest.mark.parametrize("name", list(ToolName))
def test_every_tool_has_a_schema_that_an_agent_understands(name: ToolName) -> None:
    """An object whose properties are described, without references and without further ones."""
    described = DESCRIBED[name]
    schema = described.schema

    assert schema["type"] == "object"
    assert schema["additionalProperties"] is False
    assert all(shape["description"] for shape in schema["properties"].values())
    assert "$ref" not in json.dumps(schema)
    assert described.description.endswith(".")


async def test_arguments_become_what_the_run_is_asked(rig: ToolRig) -> None:
    """As they are described."""
    await rig.calls.call("set_status", {"status": "blocked", "reason": "no key"})
    await rig.calls.call("ask", {"question": "Which?", "options": ["a", "b"]})

    assert rig.tools.said == [
        SetStatus(WorkStatus.BLOCKED, "no key"),
        Ask("Which?", options=["a", "b"]),
    ]


@pytest.mark.parametrize(
    ("name", "arguments", "said"),
    [
        ("comment", {"text": "x", "issue": "B-2"}, "unknown field `issue`"),
        ("issue", {"id": "B-2"}, "unknown field `id`"),
        ("history", {"issue_id": "B-2"}, "unknown field `issue_id`"),
        ("comment", {}, "missing required field `text`"),
        ("comment", {"text": "x" * (COMMENT_LIMIT + 1)}, "length <= 30000"),
        ("comment", {"text": 5}, "Expected `str`"),
        ("note", {"text": ""}, "length >= 1"),
        ("set_status", {"status": "finished"}, "Invalid enum value"),
        ("ask", {"question": "q", "options": ["a"] * 11}, "length <= 10"),
        ("delete", {}, "There is no such tool here"),
    ],
)
async def test_what_is_not_described_is_refused(
    rig: ToolRig, name: str, arguments: dict[str, object], said: str
) -> None:
    """A forged issue among them; the answer says what is wrong, and nothing is done."""
    answer = await rig.calls.call(name, arguments)

    assert answer.is_error
    assert said in answer.text
    assert rig.tools.said == []
    (told,) = rig.of(facts.ToolCalled)
    assert (told.result, told.error) == ("refused", answer.text)


async def test_a_run_has_so_many_calls(rig: ToolRig) -> None:
    """Those behind them are refused, and told of once."""
    for _ in range(CALLS_LIMIT):
        await rig.calls.call("issue", {})
    more = [await rig.calls.call("issue", {}) for _ in range(3)]

    limited = ToolAnswer(f"Sortie answers at most {CALLS_LIMIT} calls in a run.", is_error=True)
    assert more == [limited] * 3
    assert len(rig.of(facts.ToolCalled)) == CALLS_LIMIT + 1


async def test_what_fails_is_an_error_without_secrets(rig: ToolRig) -> None:
    """Neither in what the agent is told nor in the log; answers have none either."""
    calls = ToolCalls(
        RUN, tuple(ToolName), rig.tools, rig.facts.append, lambda text: text.replace("hush", "***")
    )
    rig.tools.answer = {"description": "it says hush", "of": {"labels": ["hush"]}, "none": None}
    shown = await calls.call("issue", {})
    rig.tools.error = TrackerError(TrackerErrorKind.INVALID, "hush does not answer")
    failed = await calls.call("issue", {})
    await calls.call("comment", {"text": "the key is hush"})

    assert json.loads(shown.text) == {"description": "it says ***", "of": {"labels": ["***"]}}
    assert failed == ToolAnswer("That did not work: *** does not answer", is_error=True)
    assert rig.tools.said == ["the key is ***"]
    assert "hush" not in str(rig.facts)


async def test_an_answer_is_bounded(rig: ToolRig) -> None:
    """Whatever a tracker has."""
    rig.tools.answer = {"description": "d" * (2 * ANSWER_LIMIT)}

    assert len((await rig.calls.call("issue", {})).text) <= ANSWER_LIMIT


async def test_a_call_that_takes_too_long_is_given_up(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """The agent goes on with its work."""
    tools = NotedTools()
    tools.hold = trio.Event()
    told: list[object] = []
    calls = ToolCalls(RUN, tuple(ToolName), tools, told.append, str)

    answer = await calls.call("issue", {})

    assert answer.is_error
    assert "longer than 60 seconds" in answer.text
    assert tools.open == 0
