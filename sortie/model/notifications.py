"""What people and other systems are told of, when it happens."""

from __future__ import annotations

from msgspec import Struct

RUN_FAILED = "run_failed"
HELD = "held"
QUESTION = "question"
BUDGET_WARNING = "budget_warning"
USAGE_LIMIT = "usage_limit"
PULL_REQUEST_OPENED = "pull_request_opened"
REACTION_EXHAUSTED = "reaction_exhausted"
DAEMON_TROUBLE = "daemon_trouble"
DAILY_DIGEST = "daily_digest"

NOTIFIED_EVENTS = (
    RUN_FAILED,
    HELD,
    QUESTION,
    BUDGET_WARNING,
    USAGE_LIMIT,
    PULL_REQUEST_OPENED,
    REACTION_EXHAUSTED,
    DAEMON_TROUBLE,
    DAILY_DIGEST,
)
"""What there are notifications of, by the words of the settings."""

TEST = "test"
"""The event of a message that only tries a target."""


class NotifiedIssue(Struct, frozen=True, kw_only=True):
    """The issue that a notification is about; its title has nothing that could call people."""

    id: str
    identifier: str
    title: str
    url: str | None = None


class Notice(Struct, frozen=True, kw_only=True):
    """Something to tell, in plain text without secrets.

    ``key`` is the same however often it is sent, and no other notification has it. ``text`` says
    what happened and what can be done. ``links`` are addresses by what they lead to.
    """

    key: str
    event: str
    title: str
    text: str
    issue: NotifiedIssue | None = None
    rule: str = ""
    run_id: str | None = None
    links: tuple[tuple[str, str], ...] = ()
