"""Issues as every tracker presents them: normalized, frozen, with opaque ids."""

from __future__ import annotations

import re
from datetime import datetime
from functools import lru_cache
from typing import NewType

from msgspec import Struct

from sortie.model.texts import cut
from sortie.model.trust import Trust

_DIGITS = re.compile(r"([0-9]+)")

NaturalKey = tuple[tuple[str | tuple[int, str], ...], str]


@lru_cache(maxsize=16_384)  # the queue is put in order with each poll
def natural_key(name: str) -> NaturalKey:
    """Return what sorts a name by its numbers as numbers: ``TASK-2`` comes before ``TASK-10``."""
    # Texts and numbers take turns, so that a text is never compared with a number. A number is
    # compared by its length first, since one of thousands of digits would be slow to read.
    parts = _DIGITS.split(name)
    numbers = (part.lstrip("0") for part in parts[1::2])
    keys: list[str | tuple[int, str]] = list(parts)
    keys[1::2] = [(len(number), number) for number in numbers]
    return tuple(keys), name


IssueId = NewType("IssueId", str)

TITLE_LIMIT = 300
"""Characters of a title that are shown."""

DESCRIPTION_LIMIT = 8192
"""Characters of a description that are shown and kept with a run."""


class Blocker(Struct, frozen=True, kw_only=True):
    """An issue that must be finished first; an unknown ``state`` is None and blocks."""

    identifier: str
    id: IssueId | None = None
    state: str | None = None


class Comment(Struct, frozen=True, kw_only=True):
    """A remark on an issue; ``author_id`` is as that of an issue."""

    author: str
    body: str
    created_at: datetime | None = None
    author_id: str | None = None


class Issue(Struct, frozen=True, kw_only=True):
    """A tracker issue; ``id`` is opaque, ``identifier`` is for people.

    ``state`` is spelled as the tracker spells it: compare it with ``same_state`` or
    ``state_key``. Times are aware. ``formerly`` are ids that this issue may have had before,
    where the tracker noticed that they are gone. ``author`` is the name of who wrote it, and
    ``author_id`` by what the tracker itself tells people apart, which nobody can choose to look
    like somebody else; None where nobody is known. ``trust`` is what the settings make of that;
    None where everybody's words count.
    """

    id: IssueId
    identifier: str
    title: str
    state: str
    description: str = ""
    priority: int | None = None
    url: str | None = None
    labels: tuple[str, ...] = ()
    author: str | None = None
    author_id: str | None = None
    assignee: str | None = None
    issue_type: str | None = None
    branch_name: str | None = None
    parent: str | None = None
    comments: tuple[Comment, ...] = ()
    blocked_by: tuple[Blocker, ...] = ()
    created_at: datetime | None = None
    updated_at: datetime | None = None
    formerly: tuple[IssueId, ...] = ()
    trust: Trust | None = None

    @property
    def shown_title(self) -> str:
        """The title as pages, answers, log and records have it: not longer than TITLE_LIMIT."""
        return cut(self.title, TITLE_LIMIT)

    @property
    def shown_description(self) -> str:
        """The description as pages, answers and records have it: not longer than
        DESCRIPTION_LIMIT."""
        return cut(self.description, DESCRIPTION_LIMIT)


class Sighting(Struct, frozen=True, kw_only=True):
    """When an issue was first seen, and when its content last changed; aware times."""

    first_seen: datetime
    changed_at: datetime


def state_key(state: str) -> str:
    """Return the form in which states (and labels) are compared: trimmed and case-folded."""
    return state.strip().casefold()


def same_state(one: str, other: str) -> bool:
    """Tell whether two spellings name one state."""
    return state_key(one) == state_key(other)


def content_of(issue: Issue) -> tuple[object, ...]:
    """Return what a person edits: all of an issue but its state, comments and times.

    Two issues with equal content differ at most by what trackers and Sortie itself write.
    """
    return (
        issue.identifier,
        issue.title,
        issue.description,
        issue.priority,
        tuple(sorted(state_key(label) for label in issue.labels)),
        issue.assignee,
        issue.issue_type,
        issue.branch_name,
        issue.parent,
        tuple(sorted(blocker.identifier for blocker in issue.blocked_by)),
    )
