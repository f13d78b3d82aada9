"""One Markdown file, one issue: front matter between ``---`` lines, then the description."""

from __future__ import annotations

import re
from contextlib import suppress
from hashlib import sha256

from sortie.documents import (
    Fault,
    FrontMatter,
    Node,
    Text,
    YamlRules,
    read_yaml,
    split_front_matter,
)
from sortie.model import Issue, IssueId, TrackerError, TrackerErrorKind
from sortie.trackers.file import yaml_editor
from sortie.trackers.file.entries import (
    Change,
    Content,
    IgnoredFile,
    IssueEntry,
    MalformedEntry,
    is_as_meant,
    text_of,
)
from sortie.trackers.file.fields import id_of, is_name, issue_of, one_line

SUFFIX = ".md"

_ABOUT_THE_FOLDER = frozenset({"agents", "changelog", "contributing", "index", "license", "readme"})
"""Names of files that are no issues, unless they have front matter."""

_RULES = YamlRules(depth=64, values=2**20, strict=False)

_OPENING = re.compile(r"\ufeff?---[ \t]*\r?\n")
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
            return (IgnoredFile(where=where, message=message),)
        guess = known or IssueId(stem)
        try:
            text = text_of(where, raw)
            parts = _split(text)
            guess = _guess(text.content[parts.start : parts.end], guess)
            root = _root(text, parts)
            guess = id_of(root, stem) or guess
            return (_issue_entry(text, parts, root, stem),)
        except Fault as fault:
            return (MalformedEntry(id=guess, where=where, message=str(fault.problem)),)

    def rewrite(
        self, name: str, raw: bytes, issue: Issue, change: Change
    ) -> tuple[bytes, IssueEntry]:
        """Change the text of the front matter."""
        text = text_of(one_line(name), raw)
        parts = _split(text)
        root = _root(text, parts)
        new = yaml_editor.edited(text.content, parts, root, change)
        if new is not None:
            with suppress(Fault):
                again = Text(text.source, new)
                new_parts = _split(again)
                new_root = _root(again, new_parts)
                made = _issue_entry(again, new_parts, new_root, stem_of(name))
                meant = is_as_meant(change, (issue, root), (made.issue, new_root))
                if meant and new[new_parts.end :] == text.content[parts.end :]:
                    return new.encode(), made
        raise TrackerError(
            TrackerErrorKind.INVALID,
            f"{text.source}: the front matter is written in a way that cannot be changed "
            "without changing more than was asked; write its fields one to a line",
        )


def _issue_entry(text: Text, parts: FrontMatter, root: Node, stem: str) -> IssueEntry:
    """Return a file's issue. Raises Fault."""
    issue = issue_of(root, stem=stem, body=text.content[parts.body :])
    digest = sha256(text.content.encode()).hexdigest()
    return IssueEntry(issue=issue, digest=digest, where=text.source)


def _begins(raw: bytes) -> bool:
    return _OPENING.match(raw[:100].decode(errors="replace")) is not None


def _split(text: Text) -> FrontMatter:
    begin = 1 if text.content.startswith("\ufeff") else 0
    try:
        parts = split_front_matter(text.content, begin)
    except ValueError as exc:
        raise Fault(text.place(0), "the front matter is not closed by a line ---") from exc
    if parts is None:
        raise Fault(text.place(0), "no front matter: the first line must be ---")
    return parts


def _root(text: Text, parts: FrontMatter) -> Node:
    """Return the fields. Raises Fault."""
    read = read_yaml(text, parts.start, parts.end, _RULES)
    if read.root is None:
        raise read.faults[-1]
    if not isinstance(read.root.value, dict):
        raise Fault(read.root.place, "the front matter must be a mapping of fields to values")
    if read.faults:
        raise read.faults[0]
    return read.root


def _guess(front: str, otherwise: IssueId) -> IssueId:
    found = _ID_LINE.search(front)
    return IssueId(found.group(1).strip()) if found and is_name(found.group(1)) else otherwise
