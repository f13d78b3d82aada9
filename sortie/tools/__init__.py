"""Tools for agents over MCP: an issue, comments, the word of the agent, budgets, history.

The server is in the daemon, one for each client that an agent starts. A client is ``connect.sh`` in
the workspace, which carries lines through two FIFOs to ``accept.sh``, a program of the run within
its wall, whose stdin and stdout the daemon has.

Rule 1: a channel belongs to one run, and what a call says cannot make it another issue's.
Rule 2: whatever comes from a client is bounded before it is kept: lines, calls, and what is open.
Rule 3: without tools a run goes on.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from sortie.tools.arguments import Ask, SetStatus


class ToolRefused(Exception):
    """A call is not answered; the message is a sentence for the agent."""


Answer = Mapping[str, Any]
"""What a tool answers, of what JSON can hold; its texts may hold secrets still."""


class RunTools(Protocol):
    """What the tools of one run do. Each raises ToolRefused and SortieError."""

    async def issue(self) -> Answer:
        """Return the issue as it stands, with its comments."""
        ...

    async def comment(self, text: str) -> Answer:
        """Have a comment made on the issue, once; return when that is on record."""
        ...

    async def set_status(self, status: SetStatus) -> Answer:
        """Take how the agent says that its work stands."""
        ...

    async def ask(self, question: Ask) -> Answer:
        """Take a question to people."""
        ...

    async def note(self, text: str) -> Answer:
        """Show a note to people."""
        ...

    async def budget(self) -> Answer:
        """Return what the run, its issue and the day have used and may use, and what is left."""
        ...

    async def history(self) -> Answer:
        """Return the earlier runs of the issue, newest first."""
        ...

    async def pull_request(self) -> Answer:
        """Return how the pull request of the issue stands."""
        ...
