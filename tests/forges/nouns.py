"""What is on a forge: requests, and what people and programs have said and made of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeVar

ThingT = TypeVar("ThingT")


class Absent(Exception):
    """What was asked for is not there."""


def there(things: Mapping[int, ThingT], number: int | str) -> ThingT:
    """Return the thing of a number. Raises Absent."""
    if int(number) not in things:
        raise Absent(number)
    return things[int(number)]


@dataclass
class Remark:
    """What somebody has written; ``reactions`` are those of the account of the token, ``at`` is the
    count of changes at which it was written."""

    id: int
    author: str
    body: str
    bot: bool = False
    reactions: list[str] = field(default_factory=list)
    at: int = 0


@dataclass
class Conversation:
    """Remarks about a place of a diff, at the commit that was seen; ``removed``: it is a line of
    the old version."""

    id: int
    path: str
    line: int
    head: str
    notes: list[Remark] = field(default_factory=list)
    resolved: bool = False
    removed: bool = False


@dataclass
class Opinion:
    """A review: ``approved``, ``changes_requested``, ``commented`` or ``dismissed``."""

    id: int
    author: str
    state: str
    body: str
    head: str
    bot: bool = False


@dataclass
class MadeCheck:
    """A check of a commit: ``pending``, or what GitHub calls its conclusion.

    ``app`` is who makes it. ``status``: it is a commit status and no check run or job.
    """

    id: int
    commit: str
    name: str
    state: str
    app: str = "github-actions"
    status: bool = False
    log: bytes = b""
    annotations: tuple[tuple[str, int, str], ...] = ()
    allow_failure: bool = False


@dataclass
class Request:
    """A pull request. ``seen`` is the head that it had at last, ``updated`` counts its changes.

    ``computing``: the forge does not know yet whether it can be merged. ``lagging``: its checks
    are still shown for the head before. ``fork``: its branch is in another repository, of a
    stranger. ``queued`` is how the forge itself is to merge it.
    """

    number: int
    title: str
    body: str
    branch: str
    base: str
    draft: bool = False
    state: str = "open"
    labels: list[str] = field(default_factory=list)
    reviewers: list[str] = field(default_factory=list)
    assignees: list[str] = field(default_factory=list)
    comments: list[Remark] = field(default_factory=list)
    opinions: list[Opinion] = field(default_factory=list)
    threads: list[Conversation] = field(default_factory=list)
    seen: str | None = None
    seen_before: str | None = None
    updated: int = 0
    computing: bool = False
    lagging: bool = False
    fork: bool = False
    queued: str | None = None
    merge_error: str | None = None
    timeline: list[tuple[int, str]] = field(default_factory=list)
    merged_as: str | None = None
