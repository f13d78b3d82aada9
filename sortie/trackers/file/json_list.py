"""One JSON file, a list of issues with the same field names as in front matter."""

from __future__ import annotations

import json
import sys
from bisect import bisect_left
from dataclasses import dataclass, replace
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


@dataclass(frozen=True, slots=True, kw_only=True)
class _Listed:
    """A list as it was read: the items in their order, each from its start to its end."""

    text: Text
    starts: list[int]
    ends: list[int]
    entries: list[Entry]


class IssueList:
    """The format of a JSON file.

    What was read last is kept: of a list that was changed only the items between the first change
    and the last one are read again, which is no more than a shortcut.
    """

    limit = sys.maxsize  # it is one file for all issues, however many there are

    def __init__(self) -> None:
        self._last: _Listed | None = None  # never changed, only replaced, by whatever thread

    def read(self, name: str, raw: bytes, _known: IssueId | None) -> tuple[Entry, ...]:
        """Return the issues in their order. A file that is not a JSON list is UNAVAILABLE."""
        return tuple(self._listed(name, raw).entries)

    def rewrite(self, name: str, raw: bytes, issue: Issue, change: Change) -> bytes:
        """Change the characters of the issue's own values."""
        listed = self._listed(name, raw)
        for start, entry in zip(listed.starts, listed.entries, strict=True):
            if isinstance(entry, IssueEntry) and entry.issue.id == issue.id:
                root, text = item_at(listed.text, start)[0].node, listed.text.content
                new = spliced(text, _splices(text, root, change))
                if _is_as_meant(change, issue, root, text, new):
                    return new.encode()
                break
        raise TrackerError(
            TrackerErrorKind.INVALID,
            f"{one_line(name)}: issue {issue.identifier} cannot be changed without changing more",
        )

    def _listed(self, name: str, raw: bytes) -> _Listed:
        last = self._last
        try:
            text = text_of(one_line(name), raw)
            if last is None or last.text.source != text.source:
                listed = _read(text, _Listed(text=Text("", ""), starts=[], ends=[], entries=[]))
            elif last.text.content == text.content:
                return last
            else:
                listed = _read(text, last)
        except Fault as fault:
            raise TrackerError(TrackerErrorKind.UNAVAILABLE, str(fault.problem)) from fault
        self._last = listed
        return listed


def _read(text: Text, last: _Listed) -> _Listed:
    """Read a list, but for the items that stand where both texts are the same. Raises Fault.

    How an item is read depends on nothing before its start, and on no more than one character
    behind its end.
    """
    new, old = text.content, last.text.content
    same_before = _same_before(new, old)
    same_after = _same_after(new, old)
    longer = len(new) - len(old)
    kept = bisect_left(last.ends, same_before)
    listed = _Listed(
        text=text, starts=last.starts[:kept], ends=last.ends[:kept], entries=last.entries[:kept]
    )
    places = _Places(text)
    for item in read_items(text, listed.ends[-1] if kept else None):
        start = item.node.start
        if start >= len(new) - same_after:
            rest = bisect_left(last.starts, start - longer)
            if rest < len(last.starts) and last.starts[rest] == start - longer:
                _add_moved(listed, last, rest, places)
                break
        listed.starts.append(start)
        listed.ends.append(item.node.end)
        listed.entries.append(_entry(text, item, places.of(start)))
    return listed


def _add_moved(listed: _Listed, last: _Listed, first: int, places: _Places) -> None:
    """Add the items from one on, which have only moved."""
    longer = len(listed.text.content) - len(last.text.content)
    starts = [start + longer for start in last.starts[first:]]
    entries = last.entries[first:]
    for number, (start, entry) in enumerate(zip(starts, entries, strict=True)):
        where = places.of(start)
        if entry.where == where:
            break  # from here on each stands where it stood
        if isinstance(entry, IssueEntry):
            entries[number] = replace(entry, where=where)
        else:
            entries[number] = _entry(listed.text, item_at(listed.text, start)[0], where)
    listed.starts.extend(starts)
    listed.ends.extend(end + longer for end in last.ends[first:])
    listed.entries.extend(entries)


def _same_before(one: str, other: str) -> int:
    """Return with how many same characters two texts begin."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def _same_after(one: str, other: str) -> int:
    """Return with how many same characters two texts end."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[len(one) - middle : len(one) - low] == other[len(other) - middle : len(other) - low]:
            low = middle
        else:
            high = middle - 1
    return low


class _Places:
    """Line and column of places in a text, asked for from its beginning to its end."""

    def __init__(self, text: Text) -> None:
        self._text = text
        self._at, self._line, self._begins = 0, 1, 0

    def of(self, index: int) -> str:
        """Return where the character at ``index`` stands, for people."""
        content = self._text.content
        if lines := content.count("\n", self._at, index):
            self._line += lines
            self._begins = content.rindex("\n", self._at, index) + 1
        self._at = index
        return f"{self._text.source}:{self._line}:{index - self._begins + 1}"


def _entry(text: Text, item: Item, where: str) -> Entry:
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
