"""What a file of issues is read into, and what may be changed in it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Protocol

from sortie.model import Comment, Issue, IssueId, TrackerErrorKind
from sortie.trackers.file.nodes import Node, content

AUTHOR = "sortie"
"""Who signs the comments that are written here."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """An issue as it stands in a file; ``digest`` changes with its content."""

    issue: Issue
    state_key: str
    digest: str
    where: str  # for people: the file's name, with the line in a file of several


@dataclass(frozen=True, slots=True, kw_only=True)
class Spoiled:
    """An issue that cannot be read; its id is a guess, None where nothing hints at one."""

    id: IssueId | None
    where: str
    message: str  # begins with the place
    kind: TrackerErrorKind = TrackerErrorKind.INVALID


@dataclass(frozen=True, slots=True, kw_only=True)
class Ignored:
    """A file that stands among issues and is none."""

    where: str
    message: str  # begins with the place


Entry = Found | Spoiled

Content = tuple[Entry | Ignored, ...]
"""What one file holds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SetState:
    """Put an issue into a state."""

    state: str
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class AddComment:
    """Append a comment; ``body`` has no control characters and no line ends at its end."""

    body: str
    at: datetime

    @property
    def comment(self) -> Comment:
        """Return the comment as it will be read back."""
        return Comment(author=AUTHOR, body=self.body, created_at=whole_second(self.at))


Change = SetState | AddComment


class Format(Protocol):
    """A way to write issues in a file."""

    limit: int  # bytes of a file

    def read(self, name: str, raw: bytes, known: IssueId | None, /) -> Content:
        """Return a file's issues; ``known`` is the id of the one it held when last readable.

        Raises TrackerError (UNAVAILABLE) where nothing can be told about any of them.
        """
        ...

    def rewrite(self, name: str, raw: bytes, issue: Issue, change: Change, /) -> bytes:
        """Return the file's content with the change made to the issue, and to nothing else.

        Raises TrackerError (INVALID) where that cannot be done.
        """
        ...


def whole_second(at: datetime) -> datetime:
    """Return a time without its fraction, in UTC."""
    return at.astimezone(UTC).replace(microsecond=0)


def stamp(at: datetime) -> str:
    """Return a time as it is written into files."""
    return whole_second(at).isoformat().replace("+00:00", "Z")


def is_as_meant(change: Change, before: tuple[Issue, Node], after: tuple[Issue, Node]) -> bool:
    """Tell whether the change, and nothing but the change, makes one content the other."""
    match change:
        case SetState(state=state):
            owned, made = "state", after[0].state == state
        case AddComment(comment=comment):
            owned, made = "comments", after[0].comments == (*before[0].comments, comment)
    rest = (owned, "updated_at")
    return made and content(before[1], rest) == content(after[1], rest)
