"""One JSON file, a list of issues with the same field names as in front matter."""

from __future__ import annotations

import json
import sys
from hashlib import sha256

from msgspec.structs import replace

from sortie.documents import Fault, Node, Text
from sortie.documents.json_reader import ListItem, item_at, item_spans
from sortie.model import Issue, IssueId, TrackerError, TrackerErrorKind
from sortie.trackers.file.entries import (
    AUTHOR,
    AddComment,
    Change,
    Entry,
    IssueEntry,
    MalformedEntry,
    SetState,
    Splice,
    is_as_meant,
    spliced,
    stamp,
    text_of,
)
from sortie.trackers.file.fields import id_of, issue_of, one_line


class IssueList:
    """The format of a JSON file.

    An issue whose text is the same as at the last reading is not read again: a file may hold
    thousands, of which a change concerns one.
    """

    limit = sys.maxsize  # it is one file for all issues, however many there are

    def __init__(self) -> None:
        self._known: dict[str, IssueEntry] = {}  # by text; never changed, only replaced

    def read(self, name: str, raw: bytes, _known: IssueId | None) -> tuple[Entry, ...]:
        """Return the issues in their order. A file that is not a JSON list is UNAVAILABLE."""
        text, known, entries = self._text(name, raw), self._known, []
        read: dict[str, IssueEntry] = {}
        try:
            for start, end in item_spans(text):
                written = text.content[start:end]
                entry: Entry | None = known.get(written)
                if entry is None:
                    entry = _entry(text, item_at(text, start)[0])
                elif entry.where != (where := _where(text, start)):
                    entry = replace(entry, where=where)
                if isinstance(entry, IssueEntry):
                    read[written] = entry
                entries.append(entry)
        except Fault as fault:
            raise TrackerError(TrackerErrorKind.UNAVAILABLE, str(fault.problem)) from fault
        self._known = read
        return tuple(entries)

    def rewrite(
        self, name: str, raw: bytes, issue: Issue, change: Change
    ) -> tuple[bytes, IssueEntry]:
        """Change the characters of the issue's own values."""
        text, known = self._text(name, raw), self._known
        for start, end in item_spans(text):
            entry: Entry | None = known.get(text.content[start:end])
            if entry is None:
                entry = _entry(text, item_at(text, start)[0])
            if isinstance(entry, IssueEntry) and entry.issue.id == issue.id:
                root = item_at(text, start)[0].node
                new = spliced(text.content, _splices(text.content, root, change))
                made = _made(change, entry, root, text, Text(text.source, new))
                if made is not None:
                    return new.encode(), made
                break
        raise TrackerError(
            TrackerErrorKind.INVALID,
            f"{one_line(name)}: issue {issue.identifier} cannot be changed without changing more",
        )

    def _text(self, name: str, raw: bytes) -> Text:
        try:
            return text_of(one_line(name), raw)
        except Fault as fault:
            raise TrackerError(TrackerErrorKind.UNAVAILABLE, str(fault.problem)) from fault


def _where(text: Text, start: int) -> str:
    place = text.place(start)
    return f"{place.source}:{place.line}:{place.column}"


def _entry(text: Text, item: ListItem) -> Entry:
    where = _where(text, item.node.start)
    try:
        if item.fault is not None:
            raise item.fault
        issue = issue_of(item.node, stem=None, body=None)
    except Fault as fault:
        return MalformedEntry(id=id_of(item.node, None), where=where, message=str(fault.problem))
    written = text.content[item.node.start : item.node.end]
    return IssueEntry(issue=issue, digest=sha256(written.encode()).hexdigest(), where=where)


def _made(
    change: Change, before: IssueEntry, root: Node, text: Text, new: Text
) -> IssueEntry | None:
    """Return the changed issue; None where more than it was changed, or otherwise than asked."""
    try:
        item, end = item_at(new, root.start)
    except Fault:
        return None
    after = _entry(new, item)
    around = text.content[: root.start], text.content[root.end :]
    if around != (new.content[: root.start], new.content[end:]):
        return None
    if not isinstance(after, IssueEntry):
        return None
    meant = is_as_meant(change, (before.issue, root), (after.issue, item.node))
    return after if meant else None


def _splices(text: str, root: Node, change: Change) -> list[Splice]:
    match change:
        case SetState(state=state):
            splices = _set(text, root, "state", state)
        case AddComment():
            splices = [_add_comment(text, root, change)]
    return splices + _set(text, root, "updated_at", stamp(change.at))


def _set(text: str, root: Node, key: str, value: str) -> list[Splice]:
    node = root.get(key)
    if node is None:
        return []
    return [(node.start, node.end, json.dumps(value, ensure_ascii=text.isascii()))]


def _add_comment(text: str, root: Node, change: AddComment) -> Splice:
    """Lay the comment out as the issue is: one key a line, or all on one line."""
    said = {"author": AUTHOR, "body": change.body, "created_at": stamp(change.at)}
    members = root.children()
    first, last = members[0].key, members[-1]
    assert first is not None  # it has an id
    newline = "\r\n" if "\r\n" in text else "\n"
    if "\n" in text[root.start : first.start]:
        margin = _margin(text, first.start)
        unit = margin.removeprefix(_margin(text, root.start)) or "  "
        inner, outer = newline + margin + unit, newline + margin
        laid = json.dumps(said, ensure_ascii=text.isascii(), indent=unit)
        comment = laid.replace("\n", inner)
    else:
        inner = outer = ""
        comment = json.dumps(said, ensure_ascii=text.isascii())
    node = root.get("comments")
    if node is None:
        gap = outer or " "
        return last.end, last.end, f',{gap}"comments": [{inner}{comment}{outer}]'
    if node.value is None or node.value == ():
        return node.start, node.end, f"[{inner}{comment}{outer}]"
    end = node.start + len(text[node.start : node.end - 1].rstrip())
    return end, end, f",{inner or ' '}{comment}"


def _margin(text: str, offset: int) -> str:
    line = text[text.rfind("\n", 0, offset) + 1 : offset]
    return line[: len(line) - len(line.lstrip())]
