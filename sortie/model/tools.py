"""The tools that Sortie has for agents, and the limits of what is said by them."""

from __future__ import annotations

from enum import StrEnum


class ToolName(StrEnum):
    """A tool by its name, as settings and agents have it."""

    ISSUE = "issue"
    COMMENT = "comment"
    SET_STATUS = "set_status"
    ASK = "ask"
    NOTE = "note"
    BUDGET = "budget"
    HISTORY = "history"
    PULL_REQUEST = "pull_request"


COMMENT_LIMIT = 30_000
"""Characters of a comment that an agent makes; trackers take no more than some 65,000."""

COMMENTS_LIMIT = 10
"""Comments that an agent makes in one run."""

NOTE_LIMIT = 500
"""Characters of a note."""

NOTES_LIMIT = 100
"""Notes that an agent leaves in one run."""

CALLS_LIMIT = 1000
"""Calls that are answered in one run."""
