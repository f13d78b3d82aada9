"""The fields of an issue, read from a tree: what each accepts, and what it is without a value.

Issue text is untrusted: names are one line without control characters, and what is free text
loses its control characters, so that it is harmless in a log, a terminal and a command line.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime

from sortie.documents import Fault, Node
from sortie.model import Blocker, Comment, Issue, IssueId
from sortie.model.texts import CONTROL, NOT_ON_A_LINE

FIELD_NAME_LIMIT = 255
"""Characters of an id, identifier, state, label and other name."""

FIELD_LINE_LIMIT = 4096
"""Characters of a title and a URL."""

_PRIORITIES = range(-(2**31), 2**31)
_WHOLE = re.compile(r"[-+]?[0-9]{1,12}")
_TIME = re.compile(
    r"(\d{4}-\d{2}-\d{2})"
    r"(?:(?:[Tt]|[ \t]+)(\d{2}:\d{2}(?::\d{2}(?:\.\d{1,9})?)?)[ \t]*([Zz]|[-+]\d{2}(?::?\d{2})?)?)?"
)
_BREAK = re.compile(r"\r\n?")


def issue_of(root: Node, *, stem: str | None, body: str | None) -> Issue:
    """Read an issue, its blockers by identifier only and its times None where it has none.

    ``stem`` stands in for a missing id. ``body`` is the description, where it does not stand in
    a field. Raises Fault for the first field that is not as it should be.
    """
    if not isinstance(root.value, dict):
        raise Fault(root.place, "an issue must be a mapping of fields to values")
    identity, identifier = _identities(root, stem)
    described = body if body is not None else _text(root, "description")
    return Issue(
        id=IssueId(identity),
        identifier=identifier,
        title=_title(root),
        state=_required(root, "state", _name(root, "state")),
        description=harmless(described or "").strip("\n"),
        priority=_priority(root),
        url=_name(root, "url", FIELD_LINE_LIMIT),
        labels=_names(root, "labels"),
        author=_name(root, "author"),
        author_id=_name(root, "author"),
        assignee=_name(root, "assignee"),
        issue_type=_name(root, "issue_type"),
        branch_name=_name(root, "branch_name"),
        parent=_name(root, "parent"),
        comments=_comments(root),
        blocked_by=tuple(Blocker(identifier=name) for name in _names(root, "blocked_by")),
        created_at=_time(root, "created_at"),
        updated_at=_time(root, "updated_at"),
    )


def id_of(root: Node | None, stem: str | None) -> IssueId | None:
    """Return the id of an issue whose other fields may be wrong, None where none is readable."""
    if root is None or not isinstance(root.value, dict):
        return None
    try:
        identity = _name(root, "id") or stem or _name(root, "identifier")
    except Fault:
        return None
    return None if identity is None else IssueId(identity)


def harmless(text: str) -> str:
    """Return a text with LF line ends, control characters other than tabs made visible."""
    return CONTROL.sub("\ufffd", _BREAK.sub("\n", text))


def one_line(text: str) -> str:
    """Return a text on one line, control characters and line ends made visible."""
    return NOT_ON_A_LINE.sub("\ufffd", text)


def is_name(text: str) -> bool:
    """Tell whether a text can be the name of a state."""
    return bool(text.strip()) and len(text) <= FIELD_NAME_LIMIT and not NOT_ON_A_LINE.search(text)


def _identities(root: Node, stem: str | None) -> tuple[str, str]:
    identity, identifier = _name(root, "id"), _name(root, "identifier")
    if identity is None and stem is not None:
        if not is_name(stem):
            raise Fault(root.place, "missing, and the file's name cannot stand in for it", "id")
        identity = stem.strip()
    identity = _required(root, "id", identity or identifier)
    return identity, identifier or identity


def _wrong(root: Node, key: str, message: str) -> Fault:
    """Return a fault of a field, at its value or, where it has none, at the whole issue."""
    return Fault((root.get(key) or root).place, message, key)


def _required(root: Node, key: str, value: str | None) -> str:
    if value is None:
        raise _wrong(root, key, "required, but missing")
    return value


def _title(root: Node) -> str:
    title = " ".join(harmless(_text(root, "title") or "").split())
    if len(title) > FIELD_LINE_LIMIT:
        raise _wrong(root, "title", f"longer than {FIELD_LINE_LIMIT} characters")
    return _required(root, "title", title or None)


def _text(root: Node, key: str) -> str | None:
    node = root.get(key)
    if node is None or node.value is None:
        return None
    if not node.is_single:
        raise Fault(node.place, "must be text", key)
    return node.text


def _name(root: Node, key: str, limit: int = FIELD_NAME_LIMIT) -> str | None:
    text = _text(root, key)
    return None if text is None else _checked(text, root.get(key) or root, key, limit)


def _checked(text: str, node: Node, key: str, limit: int = FIELD_NAME_LIMIT) -> str | None:
    name = text.strip()
    if len(name) > limit:
        raise Fault(node.place, f"longer than {limit} characters", key)
    found = NOT_ON_A_LINE.search(name)
    if found:
        code = f"U+{ord(found.group()):04X}"
        raise Fault(node.place, f"must be one line without control characters, found {code}", key)
    return name or None


def _names(root: Node, key: str) -> tuple[str, ...]:
    node = root.get(key)
    if node is None or node.value is None:
        return ()
    names = (_checked(text, item, key) for text, item in _parts(node, key))
    return tuple(name for name in names if name is not None)


def _parts(node: Node, key: str) -> Iterator[tuple[str, Node]]:
    """Yield the items of a list, or what stands between the commas of one text."""
    if node.is_single:
        yield from ((part, node) for part in node.text.split(","))
        return
    for item in node.value if isinstance(node.value, tuple) else (node,):
        if item.value is None or not item.is_single:
            raise Fault(item.place, "must be text or a list of texts", key)
        yield item.text, item


def _priority(root: Node) -> int | None:
    node = root.get("priority")
    if node is None or node.value is None:
        return None
    if not isinstance(node.value, str) and _WHOLE.fullmatch(node.text):
        priority = int(node.text)
        if priority in _PRIORITIES:
            return priority
    raise Fault(node.place, "must be a whole number, or nothing", "priority")


def _comments(root: Node) -> tuple[Comment, ...]:
    node = root.get("comments")
    if node is None or node.value is None:
        return ()
    if not isinstance(node.value, tuple):
        raise Fault(node.place, "must be a list", "comments")
    return tuple(_comment(item) for item in node.value)


def _comment(item: Node) -> Comment:
    if not isinstance(item.value, dict):
        raise Fault(item.place, "each must have author, body and created_at", "comments")
    try:
        body = _text(item, "body")
        if body is None:
            raise Fault(item.place, "required, but missing", "body")
        author = _name(item, "author")
        return Comment(
            author=author or "unknown",
            body=harmless(body),
            created_at=_time(item, "created_at"),
            author_id=author,
        )
    except Fault as fault:
        raise Fault(fault.place, f"{fault.key}: {fault.message}", "comments") from fault


def _time(root: Node, key: str) -> datetime | None:
    text = _text(root, key)
    if text is None:
        return None
    found = _TIME.fullmatch(text.strip())
    try:
        if found:
            day, clock, zone = found.groups()
            stamp = f"{day}T{clock or '00:00'}{(zone or 'Z').upper()}"
            return datetime.fromisoformat(stamp).astimezone(UTC)
    except (ValueError, OverflowError):
        pass
    raise _wrong(root, key, "must be a time such as 2026-05-01T12:00:00Z, or a date")
