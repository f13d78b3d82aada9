"""Facts about the tools that Sortie has for agents."""

from __future__ import annotations

from typing import Literal

from sortie.facts.fact import RunFact, fact

ToolResult = Literal["ok", "refused", "failed"]
"""What became of a call: it was answered, it may not be answered, or something did not work."""


@fact("tool.called", "info")
class ToolCalled(RunFact, frozen=True, kw_only=True):
    """The agent has called a tool of Sortie's; ``error`` is what it was told where the call was not
    answered."""

    tool: str
    result: ToolResult
    seconds: float
    error: str | None = None


@fact("agent.noted", "info")
class AgentNoted(RunFact, frozen=True, kw_only=True):
    """The agent has left a note for the people who watch."""

    text: str


@fact("tools.client_lost", "warning")
class ToolClientLost(RunFact, frozen=True, kw_only=True):
    """A program that uses the tools of a run was sent away, or lost."""

    reason: str


@fact("tools.lost", "warning")
class ToolsLost(RunFact, frozen=True, kw_only=True):
    """A run has no tools of Sortie's, and goes on without them; the next turn may have them."""

    error: str
