"""Tools that agents are to have and do not get."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import BaseModel

from sortie.config.findings import tools_findings
from sortie.config.questions import QuestionsSettings
from sortie.config.schemas import AgentSchema
from sortie.model.tools import ToolName
from tests.config.sample import GOOD, settings_of


class Robot(BaseModel):
    """The block of an agent."""


@pytest.mark.parametrize(
    ("tools", "hindrance", "count"),
    [(("note",), "which is deaf", 1), (("note",), None, 0), ((), "which is deaf", 0)],
)
def test_tools_that_an_agent_cannot_call_are_warned_of(
    tools: Any, hindrance: str | None, count: int
) -> None:
    """Only where there are some, with the reason."""
    agent = AgentSchema(block_name="robot", model=Robot, tools_hindrance=lambda _block: hindrance)
    named = tuple(map(ToolName, tools))

    found = list(tools_findings(named, agent, {"robot": Robot()}, None))

    assert [(one.path, one.severity, one.message) for one in found] == [
        (("tools",), "warning", "means nothing to the agent, which is deaf")
    ] * count


@pytest.mark.parametrize(
    ("tools", "questions", "count"),
    [
        (("ask",), None, 1),
        (("ask",), QuestionsSettings(), 0),
        (tuple(ToolName), None, 0),
        (("note",), None, 0),
    ],
)
def test_ask_is_warned_of_where_nobody_is_asked(
    tools: Any, questions: QuestionsSettings | None, count: int
) -> None:
    """Unless all tools are meant, whatever they are."""
    agent = AgentSchema(block_name="robot", model=Robot)

    found = list(tools_findings(tuple(map(ToolName, tools)), agent, {}, questions))

    assert [(one.path, one.severity) for one in found] == [(("tools",), "warning")] * count


@pytest.mark.parametrize(
    ("questions", "usable"), [("", {"note"}), ("questions: {}\n", {"note", "ask"})]
)
def test_agents_have_ask_where_people_are_asked(questions: str, usable: set[str]) -> None:
    """Elsewhere it could only be refused."""
    settings = settings_of(f"{GOOD}tools: [note, ask]\n{questions}")

    assert set(settings.usable_tools) == usable
