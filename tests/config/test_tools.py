"""Which agents are to have tools that they cannot take."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import BaseModel

from sortie.config.findings import tools_findings
from sortie.config.schemas import AgentSchema
from sortie.model.tools import ToolName


@pytest.mark.parametrize(
    ("tools", "takes", "count"), [(("note",), False, 1), (("note",), True, 0), ((), False, 0)]
)
def test_tools_for_an_agent_without_mcp_are_warned_of(tools: Any, takes: bool, count: int) -> None:
    """Only where both are so."""
    agent = AgentSchema(block_name="robot", model=BaseModel, takes_tools=takes)

    found = list(tools_findings(tuple(map(ToolName, tools)), agent))

    assert [(one.path, one.severity) for one in found] == [(("tools",), "warning")] * count
