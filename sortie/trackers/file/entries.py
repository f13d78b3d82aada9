"""What a file of issues is read into, and what may be changed in it."""

from __future__ import annotations

from collections.abc import Collection
from datetime import UTC, datetime

from msgspec import Struct

from sortie.documents import Fault, Node, Text
from sortie.model import Comment, Issue, IssueId, TrackerError, TrackerErrorKind
from sortie.model.times import rfc3339

AUTHOR = "sortie"
"""The author of comments that Sortie writes."""


class IssueEntry(Struct, frozen=True, kw_only=True):
    """An issue as it stands in a file; ``digest`` changes with its content."""

    issue: Issue
    digest: str
    where: str  # for people: the file's name, with the line in a file of several


class MalformedEntry(Struct, frozen=True, kw_only=True):
    """An issue that cannot be read; its id is a guess, None where nothing hints at one."""

    id: IssueId | None
    where: str
    message: str  # begins with the place
    kind: TrackerErrorKind = TrackerErrorKind.INVALID


class IgnoredFile(Struct, frozen=True, kw_only=True):
    """A file that stands among issues and is none."""

    where: str
    message: str  # begins with the place


Entry = IssueEntry | MalformedEntry

Content = tuple[Entry | IgnoredFile, ...]
"""What one file holds."""


class IssueFile(Struct, frozen=True, kw_only=True):
    """A file as last read; ``stamp`` is its status, None where it has to be read again.

    ``file`` is its device and inode, None where unknown. ``formerly`` are ids that its issue may
    have had before.
    """

    name: str
    stamp: tuple[int, ...] | None
    digest: str
    entries: Content
    file: tuple[int, int] | None = None
    formerly: tuple[IssueId, ...] = ()

    def known_id(self) -> IssueId | None:
        """Return the id of the one issue it holds, or a guess where that cannot be read."""
        match self.entries:
            case (IssueEntry(issue=issue),):
                return issue.id
            case (MalformedEntry(id=guess),):
                return guess
            case _:
                return None


class Complaint(Struct, frozen=True, kw_only=True):
    """Something that is logged once; ``token`` changes when it is to be logged again.

    ``names`` are those of the issues that cannot be given because of it.
    """

    subject: str
    token: str
    message: str
    names: frozenset[str] = frozenset()
    kind: TrackerErrorKind = TrackerErrorKind.INVALID

    def error(self) -> TrackerError:
        """Return the error about an issue that cannot be given."""
        return TrackerError(self.kind, self.message)


class SetState(Struct, frozen=True, kw_only=True):
    """Put an issue into a state."""

    state: str
    at: datetime


class AddComment(Struct, frozen=True, kw_only=True):
    """Append a comment; ``body`` has no control characters and no line ends at its end."""

    body: str
    at: datetime

    @property
    def comment(self) -> Comment:
        """Return the comment as it will be read back."""
        return Comment(
            author=AUTHOR,
            body=self.body,
            created_at=whole_second(self.at),
            author_id=AUTHOR,
        )


Change = SetState | AddComment


Splice = tuple[int, int, str]
"""A change of a text: from where, to where, and what stands there instead."""


def whole_second(at: datetime) -> datetime:
    """Return a time without its fraction, in UTC."""
    return at.astimezone(UTC).replace(microsecond=0)


def stamp(at: datetime) -> str:
    """Return a time as it is written into files."""
    return rfc3339(at, "seconds")


def text_of(where: str, raw: bytes) -> Text:
    """Return a file's text. Raises Fault where it is not UTF-8."""
    try:
        return Text(where, raw.decode())
    except UnicodeDecodeError as exc:
        before = raw[: exc.start].decode()
        raise Fault(Text(where, before).place(len(before)), "not UTF-8") from exc


def spliced(text: str, splices: Collection[Splice]) -> str:
    """Return a text with some of its parts replaced."""
    for start, end, new in sorted(splices, reverse=True):
        text = text[:start] + new + text[end:]
    return text


def is_as_meant(change: Change, before: tuple[Issue, Node], after: tuple[Issue, Node]) -> bool:
    """Tell whether the change, and nothing but the change, makes one content the other."""
    match change:
        case SetState(state=state):
            owned, made = "state", after[0].state == state
        case AddComment(comment=comment):
            owned, made = "comments", after[0].comments == (*before[0].comments, comment)
    rest = (owned, "updated_at")
    return made and content_of(before[1], rest) == content_of(after[1], rest)


def content_of(node: Node, without: Collection[str] = ()) -> object:
    """Return what a node says, however it is written, less some of its keys."""
    match node.value:
        case tuple() as items:
            return [content_of(item) for item in items]
        case dict() as entries:
            return [(key, content_of(v)) for key, v in entries.items() if key not in without]
        case str() as text:
            return text
        case None:
            return ("special", "")
        case _:
            return ("special", node.text.casefold())
