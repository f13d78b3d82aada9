"""What an agent that speaks the protocol writes beside it."""

from __future__ import annotations

from collections.abc import Sequence

from sortie.model.turns import AgentEvent


class StderrLines:
    """Shows all that the agent writes to its stderr, where a turn fails."""

    def stdout(self, _line: str) -> Sequence[AgentEvent]:
        """Take nothing: stdout is read elsewhere."""
        return []

    def stderr(self, _line: str) -> bool:
        """Show it."""
        return True

    def close(self, _stderr: str) -> Sequence[AgentEvent]:
        """Tell nothing."""
        return []
