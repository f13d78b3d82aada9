"""The fields of an issue, read from nodes: what each accepts, and what it is without a value.

Issue text is untrusted: names are one line without control characters, and what is free text
loses its control characters, so that it is harmless in a log, a terminal and a command line.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime

from sortie.model import Blocker, Comment, Issue, IssueId
from sortie.trackers.file.nodes import Flaw, Mapping, Node, Scalar, Sequence, is_null

NAME_LIMIT = 255
"""Characters of an id, identifier, state, label and other name."""

LINE_LIMIT = 4096
"""Characters of a title and a URL."""

_PRIORITIES = range(-(2**31), 2**31)
_WHOLE = re.compile(r"[-+]?[0-9]{1,12}")
_TIME = re.compile(
    r"(\d{4}-\d{2}-\d{2})"
    r"(?:(?:[Tt]|[ \t]+)(\d{2}:\d{2}(?::\d{2}(?:\.\d{1,9})?)?)[ \t]*([Zz]|[-+]\d{2}(?::?\d{2})?)?)?"
)
_BREAK = re.compile(r"\r\n?")
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")
_NOT_IN_A_NAME = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")


def issue_of(root: Node, *, stem: str | None, body: str | None) -> Issue:
    """Read an issue, its blockers by identifier only and its times None where it has none.

    ``stem`` stands in for a missing id. ``body`` is the description, where it does not stand in
    a field. Raises Flaw for the first field that is not as it should be.
    """
    if not isinstance(root, Mapping):
        raise Flaw(root.start, "an issue must be a mapping of fields to values")
    identity, identifier = _identities(root, stem)
    described = body if body is not None else _text(root, "description")
    return Issue(
        id=IssueId(identity),
        identifier=identifier,
        title=_title(root),
        state=_required(root, "state", _name(root, "state")),
        description=harmless(described or "").strip("\n"),
        priority=_priority(root),
        url=_name(root, "url", LINE_LIMIT),
        labels=_names(root, "labels"),
        assignee=_name(root, "assignee"),
        issue_type=_name(root, "issue_type"),
        branch_name=_name(root, "branch_name"),
        parent=_name(root, "parent"),
        comments=_comments(root),
        blocked_by=tuple(Blocker(identifier=name) for name in _names(root, "blocked_by")),
        created_at=_time(root, "created_at"),
        updated_at=_time(root, "updated_at"),
    )


def id_of(root: Node, stem: str | None) -> IssueId | None:
    """Return the id of an issue whose other fields may be wrong, None where none is readable."""
    if not isinstance(root, Mapping):
        return None
    try:
        identity = _name(root, "id") or stem or _name(root, "identifier")
    except Flaw:
        return None
    return None if identity is None else IssueId(identity)


def harmless(text: str) -> str:
    """Return a text with LF line ends, control characters other than tabs made visible."""
    return _CONTROL.sub("\ufffd", _BREAK.sub("\n", text))


def one_line(text: str) -> str:
    """Return a text on one line, control characters and line ends made visible."""
    return _NOT_IN_A_NAME.sub("\ufffd", text)


def is_name(text: str) -> bool:
    """Tell whether a text can be the name of a state."""
    return bool(text.strip()) and len(text) <= NAME_LIMIT and not _NOT_IN_A_NAME.search(text)


def _identities(root: Mapping, stem: str | None) -> tuple[str, str]:
    identity, identifier = _name(root, "id"), _name(root, "identifier")
    if identity is None and stem is not None:
        if not is_name(stem):
            raise Flaw(root.start, "id: missing, and the file's name cannot stand in for it")
        identity = stem.strip()
    identity = _required(root, "id", identity or identifier)
    return identity, identifier or identity


def _required(root: Mapping, key: str, value: str | None) -> str:
    if value is None:
        node = root.get(key)
        raise Flaw(root.start if node is None else node.start, f"{key}: required, but missing")
    return value


def _title(root: Mapping) -> str:
    title = " ".join(harmless(_text(root, "title") or "").split())
    if len(title) > LINE_LIMIT:
        raise Flaw(_start(root, "title"), f"title: longer than {LINE_LIMIT} characters")
    return _required(root, "title", title or None)


def _text(root: Mapping, key: str) -> str | None:
    node = root.get(key)
    if node is None or is_null(node):
        return None
    if not isinstance(node, Scalar):
        raise Flaw(_start(root, key), f"{key}: must be text")
    return node.text


def _name(root: Mapping, key: str, limit: int = NAME_LIMIT) -> str | None:
    text = _text(root, key)
    return None if text is None else _checked(text, key, _start(root, key), limit)


def _checked(text: str, key: str, offset: int, limit: int = NAME_LIMIT) -> str | None:
    name = text.strip()
    if len(name) > limit:
        raise Flaw(offset, f"{key}: longer than {limit} characters")
    found = _NOT_IN_A_NAME.search(name)
    if found:
        code = f"U+{ord(found.group()):04X}"
        raise Flaw(offset, f"{key}: must be one line without control characters, found {code}")
    return name or None


def _names(root: Mapping, key: str) -> tuple[str, ...]:
    node = root.get(key)
    if node is None or is_null(node):
        return ()
    if isinstance(node, Scalar):
        parts = (_checked(part, key, node.start) for part in node.text.split(","))
        return tuple(part for part in parts if part is not None)
    names: list[str] = []
    for item in node.items if isinstance(node, Sequence) else (node,):
        if not isinstance(item, Scalar) or is_null(item):
            raise Flaw(item.start, f"{key}: must be text or a list of texts")
        name = _checked(item.text, key, item.start)
        if name is not None:
            names.append(name)
    return tuple(names)


def _priority(root: Mapping) -> int | None:
    node = root.get("priority")
    if is_null(node):
        return None
    if isinstance(node, Scalar) and node.plain and _WHOLE.fullmatch(node.text):
        priority = int(node.text)
        if priority in _PRIORITIES:
            return priority
    raise Flaw(_start(root, "priority"), "priority: must be a whole number, or nothing")


def _comments(root: Mapping) -> tuple[Comment, ...]:
    node = root.get("comments")
    if node is None or is_null(node):
        return ()
    if not isinstance(node, Sequence):
        raise Flaw(node.start, "comments: must be a list")
    return tuple(_comment(item) for item in node.items)


def _comment(item: Node) -> Comment:
    if not isinstance(item, Mapping):
        raise Flaw(item.start, "comments: each must have author, body and created_at")
    try:
        body = _text(item, "body")
        if body is None:
            raise Flaw(item.start, "body: required, but missing")
        author = _name(item, "author") or "unknown"
        return Comment(author=author, body=harmless(body), created_at=_time(item, "created_at"))
    except Flaw as flaw:
        raise Flaw(flaw.offset, f"comments: {flaw.message}") from flaw


def _time(root: Mapping, key: str) -> datetime | None:
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
    offset = _start(root, key)
    raise Flaw(offset, f"{key}: must be a time such as 2026-05-01T12:00:00Z, or a date")


def _start(root: Mapping, key: str) -> int:
    node = root.get(key)
    return root.start if node is None else node.start
