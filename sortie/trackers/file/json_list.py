"""One JSON file, a list of issues with the same field names as in front matter."""

from __future__ import annotations

import json
from hashlib import sha256

from sortie.documents import Fault, Node, Text
from sortie.documents.json_reader import Item, item_at, read_items
from sortie.model import Issue, IssueId, TrackerError, TrackerErrorKind, state_key
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
    """The format of a JSON file."""

    limit = 2**24

    def read(self, name: str, raw: bytes, _known: IssueId | None) -> tuple[Entry, ...]:
        """Return the issues in their order. A file that is not a JSON list is UNAVAILABLE."""
        text, listed = _listed(one_line(name), raw)
        return tuple(_entry(text, item) for item in listed)

    def rewrite(self, name: str, raw: bytes, issue: Issue, change: Change) -> bytes:
        """Change the characters of the issue's own values."""
        where = one_line(name)
        text, listed = _listed(where, raw)
        roots = (item.node for item in listed if id_of(item.node, None) == issue.id)
        root = next(roots, None)
        if root is not None:
            new = spliced(text.content, _splices(text.content, root, change))
            if _is_as_meant(change, issue, root, text.content, new):
                return new.encode()
        raise TrackerError(
            TrackerErrorKind.INVALID,
            f"{where}: issue {issue.identifier} cannot be changed without changing more",
        )


def _listed(where: str, raw: bytes) -> tuple[Text, list[Item]]:
    try:
        text = text_of(where, raw)
        return text, list(read_items(text))
    except Fault as fault:
        raise TrackerError(TrackerErrorKind.UNAVAILABLE, str(fault.problem)) from fault


def _entry(text: Text, item: Item) -> Entry:
    place = item.node.place
    where = f"{place.source}:{place.line}:{place.column}"
    try:
        if item.fault is not None:
            raise item.fault
        issue = issue_of(item.node, stem=None, body=None)
    except Fault as fault:
        return MalformedEntry(id=id_of(item.node, None), where=where, message=str(fault.problem))
    written = text.content[item.node.start : item.node.end]
    digest = sha256(written.encode()).hexdigest()
    return IssueEntry(issue=issue, state_key=state_key(issue.state), digest=digest, where=where)


def _is_as_meant(change: Change, issue: Issue, root: Node, text: str, new: str) -> bool:
    """Tell whether the item alone was changed, and as was asked."""
    try:
        item, end = item_at(Text("", new), root.start)
        now = issue_of(item.node, stem=None, body=None)
    except Fault:
        return False
    around = text[: root.start], text[root.end :]
    kept = item.fault is None and around == (new[: root.start], new[end:])
    return kept and is_as_meant(change, (issue, root), (now, item.node))


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
