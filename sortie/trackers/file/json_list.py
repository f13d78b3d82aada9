"""One JSON file, a list of issues with the same field names as in front matter."""

from __future__ import annotations

import json
from hashlib import sha256

from sortie.model import Issue, IssueId, TrackerError, TrackerErrorKind, state_key
from sortie.trackers.file.documents import (
    AUTHOR,
    AddComment,
    Change,
    Entry,
    Found,
    SetState,
    Spoiled,
    is_as_meant,
    stamp,
)
from sortie.trackers.file.fields import id_of, issue_of, one_line
from sortie.trackers.file.json_reader import Item, item_at, items
from sortie.trackers.file.nodes import (
    Flaw,
    Locator,
    Mapping,
    Sequence,
    decoded,
    is_null,
)

_Splice = tuple[int, int, str]  # from, to, what stands there instead


class IssueList:
    """The format of a JSON file."""

    limit = 2**24

    def read(self, name: str, raw: bytes, _known: IssueId | None) -> tuple[Entry, ...]:
        """Return the issues in their order. A file that is not a JSON list is UNAVAILABLE."""
        where = one_line(name)
        text, listed = _listed(where, raw)
        locator = Locator(where, text)
        return tuple(_entry(text, item, locator) for item in listed)

    def rewrite(self, name: str, raw: bytes, issue: Issue, change: Change) -> bytes:
        """Change the characters of the issue's own values."""
        where = one_line(name)
        text, listed = _listed(where, raw)
        roots = (item.node for item in listed if id_of(item.node, None) == issue.id)
        root = next(roots, None)
        if isinstance(root, Mapping):
            new = _spliced(text, root, change)
            if _is_as_meant(change, issue, root, text, new):
                return new.encode()
        raise TrackerError(
            TrackerErrorKind.INVALID,
            f"{where}: issue {issue.identifier} cannot be changed without changing more",
        )


def _listed(where: str, raw: bytes) -> tuple[str, list[Item]]:
    try:
        text = decoded(raw)
        return text, list(items(text))
    except Flaw as flaw:
        message = Locator(where, raw.decode(errors="replace")).describe(flaw)
        raise TrackerError(TrackerErrorKind.UNAVAILABLE, message) from flaw


def _entry(text: str, item: Item, locator: Locator) -> Entry:
    spot = locator.place(item.node.start)
    try:
        if item.flaw is not None:
            raise item.flaw
        issue = issue_of(item.node, stem=None, body=None)
    except Flaw as flaw:
        return Spoiled(id=id_of(item.node, None), where=spot, message=locator.describe(flaw))
    written = text[item.node.start : item.node.end]
    digest = sha256(written.encode()).hexdigest()
    return Found(issue=issue, state_key=state_key(issue.state), digest=digest, where=spot)


def _is_as_meant(change: Change, issue: Issue, root: Mapping, text: str, new: str) -> bool:
    """Tell whether the item alone was changed, and as was asked."""
    try:
        item, end = item_at(new, root.start)
        now = issue_of(item.node, stem=None, body=None)
    except Flaw:
        return False
    around = text[: root.start], text[root.end :]
    kept = item.flaw is None and around == (new[: root.start], new[end:])
    return kept and is_as_meant(change, (issue, root), (now, item.node))


def _spliced(text: str, root: Mapping, change: Change) -> str:
    match change:
        case SetState(state=state):
            splices = _set(text, root, "state", state)
        case AddComment():
            splices = [_add_comment(text, root, change)]
    splices += _set(text, root, "updated_at", stamp(change.at))
    for start, end, new in sorted(splices, reverse=True):
        text = text[:start] + new + text[end:]
    return text


def _set(text: str, root: Mapping, key: str, value: str) -> list[_Splice]:
    node = root.get(key)
    if node is None:
        return []
    return [(node.start, node.end, json.dumps(value, ensure_ascii=text.isascii()))]


def _add_comment(text: str, root: Mapping, change: AddComment) -> _Splice:
    """Lay the comment out as the issue is: one key a line, or all on one line."""
    said = {"author": AUTHOR, "body": change.body, "created_at": stamp(change.at)}
    first, (_, last) = root.pairs[0][0].start, root.pairs[-1]
    newline = "\r\n" if "\r\n" in text else "\n"
    if "\n" in text[root.start : first]:
        margin = _margin(text, first)
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
    if is_null(node) or (isinstance(node, Sequence) and not node.items):
        return node.start, node.end, f"[{inner}{comment}{outer}]"
    end = node.start + len(text[node.start : node.end - 1].rstrip())
    return end, end, f",{inner or ' '}{comment}"


def _margin(text: str, offset: int) -> str:
    line = text[text.rfind("\n", 0, offset) + 1 : offset]
    return line[: len(line) - len(line.lstrip())]
