"""One Markdown file, one issue: front matter between ``---`` lines, then the description."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256

from sortie.model import Issue, IssueId, TrackerError, TrackerErrorKind, state_key
from sortie.trackers.file import yaml_editor, yaml_reader
from sortie.trackers.file.documents import (
    Change,
    Content,
    Found,
    Ignored,
    Spoiled,
    is_as_meant,
)
from sortie.trackers.file.fields import id_of, is_name, issue_of, one_line
from sortie.trackers.file.nodes import Flaw, Locator, Mapping, decoded

SUFFIX = ".md"

_ABOUT_THE_FOLDER = frozenset({"agents", "changelog", "contributing", "index", "license", "readme"})
"""Names of files that are no issues, unless they have front matter."""

_OPENING = re.compile(r"\ufeff?---[ \t]*\r?\n")
_CLOSING = re.compile(r"^---[ \t]*\r?(?:\n|\Z)", re.MULTILINE)
_ID_LINE = re.compile(
    r"^id:[ \t]+[\"']?([^\s\[{&*!|>].*?)[\"']?[ \t]*(?:[ \t]#.*)?\r?$", re.MULTILINE
)


def is_issue_name(name: str) -> bool:
    """Tell whether a file of this name is read; hidden ones, and so editors' own, are not."""
    return name.lower().endswith(SUFFIX) and name[0] not in ".#"


def stem_of(name: str) -> str:
    """Return a file's name without its suffix, however that is capitalized."""
    return name[: -len(SUFFIX)] if name.lower().endswith(SUFFIX) else name


class Markdown:
    """The format of a directory's files."""

    limit = 2**20

    def read(self, name: str, raw: bytes, known: IssueId | None) -> Content:
        """Return the file's one issue."""
        where, stem = one_line(name), stem_of(name)
        if known is None and stem.casefold() in _ABOUT_THE_FOLDER and not _begins(raw):
            message = f"{where}: is no issue, since it does not begin with a line ---; left alone"
            return (Ignored(where=where, message=message),)
        guess = known or IssueId(stem)
        try:
            parts = _split(decoded(raw))
            guess = _guess(parts.front, guess)
            root = _root(parts)
            guess = id_of(root, stem) or guess
            issue = _issue(parts, root, stem)
        except Flaw as flaw:
            message = Locator(where, raw.decode(errors="replace")).describe(flaw)
            return (Spoiled(id=guess, where=where, message=message),)
        digest = sha256(raw).hexdigest()
        return (Found(issue=issue, state_key=state_key(issue.state), digest=digest, where=where),)

    def rewrite(self, name: str, raw: bytes, issue: Issue, change: Change) -> bytes:
        """Change the front matter: its text where that is enough, else all of it anew."""
        stem = stem_of(name)
        parts = _split(decoded(raw))
        root = _root(parts)
        for front in _fronts(parts.front, root, change):
            text = parts.head + front + parts.tail
            try:
                again = _split(text)
                new_root = _root(again)
                new_issue = _issue(again, new_root, stem)
            except Flaw:
                continue
            meant = is_as_meant(change, (issue, root), (new_issue, new_root))
            if meant and again.tail == parts.tail:
                return text.encode()
        raise TrackerError(
            TrackerErrorKind.INVALID,
            f"{one_line(name)}: the front matter is written in a way that cannot be changed "
            "without changing more than was asked; write its fields one to a line",
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Parts:
    """A file's text: ``head + front + tail``; the tail begins with the closing line."""

    head: str
    front: str
    tail: str
    body: str


def _begins(raw: bytes) -> bool:
    return _OPENING.match(raw[:100].decode(errors="replace")) is not None


def _split(text: str) -> _Parts:
    opening = _OPENING.match(text)
    if opening is None:
        raise Flaw(0, "no front matter: the first line must be ---")
    closing = _CLOSING.search(text, opening.end())
    if closing is None:
        raise Flaw(0, "the front matter is not closed by a line ---")
    return _Parts(
        head=text[: opening.end()],
        front=text[opening.end() : closing.start()],
        tail=text[closing.start() :],
        body=text[closing.end() :],
    )


def _root(parts: _Parts) -> Mapping:
    """Return the fields. Raises Flaw with an offset in the whole text."""
    with _shifted(parts):
        root = yaml_reader.parse(parts.front)
        if not isinstance(root, Mapping):
            raise Flaw(0, "the front matter must be a mapping of fields to values")
        return root


def _issue(parts: _Parts, root: Mapping, stem: str) -> Issue:
    with _shifted(parts):
        return issue_of(root, stem=stem, body=parts.body)


@contextmanager
def _shifted(parts: _Parts) -> Iterator[None]:
    """Give a flaw of the front matter its offset in the whole text."""
    try:
        yield
    except Flaw as flaw:
        raise Flaw(len(parts.head) + flaw.offset, flaw.message) from flaw


def _guess(front: str, otherwise: IssueId) -> IssueId:
    found = _ID_LINE.search(front)
    return IssueId(found.group(1).strip()) if found and is_name(found.group(1)) else otherwise


def _fronts(front: str, root: Mapping, change: Change) -> Iterator[str]:
    """Yield the changed front matter, most careful first."""
    spliced = yaml_editor.spliced(front, root, change)
    if spliced is not None:
        yield spliced
    dumped = yaml_editor.dumped(front, change)
    if dumped is not None:
        yield dumped
