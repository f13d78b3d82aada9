"""Changes to the text of YAML front matter.

``edited`` replaces only the characters of the value itself. It may misjudge an unusual text: the
caller reads the result, and refuses the change where that says something else.
"""

from __future__ import annotations

import json
import re

from sortie.documents import FrontMatter, Node
from sortie.documents.scalars import resolve_scalar
from sortie.trackers.file.entries import (
    AUTHOR,
    AddComment,
    Change,
    SetState,
    Splice,
    spliced,
    stamp,
)

_PROPERTIES = re.compile(r"(?:[&!]\S*\s+)*")  # an anchor, a tag
_WORDS = re.compile(r"[^\W\d_](?:[\w ./()+-]*[\w).])?")
_YAML_1_1 = re.compile(r"y|n|yes|no|on|off|true|false|null", re.IGNORECASE)
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")
_UNPRINTABLE = re.compile(
    "[^\t\n\x20-\x7e\xa0-\u2027\u202a-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]"
)


def edited(text: str, front: FrontMatter, root: Node, change: Change) -> str | None:
    """Return the text with the change made in place, None where there is no place for it.

    ``root`` are the fields of the front matter.
    """
    match change:
        case SetState(state=state):
            splices = _set(text, root, "state", state)
        case AddComment():
            newline = "\r\n" if "\r\n" in text[: front.end] else "\n"
            added = _add_comment(text, front.end, root, change, newline)
            if added is None:
                return None
            splices = added
    splices += _set(text, root, "updated_at", stamp(change.at))
    return spliced(text, splices)


def _set(front: str, root: Node, key: str, text: str) -> list[Splice]:
    node = root.get(key)
    if node is None or not node.is_single:
        return []
    if node.start == node.end:
        gap = "" if front[node.start - 1 : node.start].isspace() else " "
        return [(node.start, node.end, gap + _styled(text, ""))]
    written = front[node.start : node.end]
    properties = _PROPERTIES.match(written)
    start = node.start + (properties.end() if properties else 0)
    end = node.start + len(written.rstrip())
    return [(start, end, _styled(text, front[start:end]))]


def _styled(text: str, like: str) -> str:
    """Return a scalar that reads as the text, quoted as another one is where it can be."""
    plain = (
        _WORDS.fullmatch(text)
        and isinstance(resolve_scalar(text), str)
        and not _YAML_1_1.fullmatch(text)
    )
    match like[:1]:
        case "'" if not _UNPRINTABLE.search(text):
            return "'" + text.replace("'", "''") + "'"
        case '"':
            return _quoted(text)
        case _ if plain or _TIME.fullmatch(text):
            return text
        case _:
            return _quoted(text)


def _quoted(text: str) -> str:
    quoted = json.dumps(text, ensure_ascii=False)
    return _UNPRINTABLE.sub(lambda found: f"\\u{ord(found.group()):04x}", quoted)


def _add_comment(
    text: str, end: int, root: Node, change: AddComment, newline: str
) -> list[Splice] | None:
    node = root.get("comments")
    if root.flow:
        return _add_in_flow(text, root, node, change)
    first = root.children()[0].key
    assert first is not None
    margin = _column(text, first.start)
    lines = _lines(change, margin + 2, newline)
    if node is None:
        return [(end, end, f"{' ' * margin}comments:{newline}{lines}")]
    if node.value is None or node.value == ():
        start = len(text[: node.start].rstrip(" \t"))
        below = _next_line(text, node.end)
        return [(start, node.end, ""), (below, below, lines)]
    if not isinstance(node.value, tuple):
        return None
    if node.flow:
        return _add_in_flow(text, root, node, change)
    below = _next_line(text, _end(text, node))
    return [(below, below, _lines(change, _column(text, node.start), newline))]


def _add_in_flow(
    text: str, root: Node, node: Node | None, change: AddComment
) -> list[Splice] | None:
    """Add a comment in brackets; ``node`` are the comments that there are."""
    said = {"author": AUTHOR, "body": change.body, "created_at": stamp(change.at)}
    comment = "{" + ", ".join(f"{key}: {_quoted(text)}" for key, text in said.items()) + "}"
    if node is not None and (node.value is None or node.value == ()):
        gap = "" if text[node.start - 1 : node.start].isspace() else " "
        return [(node.start, node.end, f"{gap}[{comment}]")]
    if node is not None and not isinstance(node.value, tuple):
        return None
    whole, added = (root, f"comments: [{comment}]") if node is None else (node, comment)
    inside = text[whole.start : whole.end - 1].rstrip()
    gap = " " if inside.endswith(",") else ", "
    last = whole.start + len(inside)
    return [(last, last, f"{gap}{added}")]


def _lines(change: AddComment, margin: int, newline: str) -> str:
    pad = " " * margin
    lines = [
        f"{pad}- author: {AUTHOR}",
        *_body_lines(change.body, pad + "  "),
        f"{pad}  created_at: {stamp(change.at)}",
    ]
    return "".join(line + newline for line in lines)


def _body_lines(body: str, pad: str) -> list[str]:
    if "\n" not in body or _UNPRINTABLE.search(body):
        return [f"{pad}body: {_styled(body, '')}"]
    indicator = "2" if body[0].isspace() else ""
    lines = [f"{pad}  {line}" if line else "" for line in body.split("\n")]
    return [f"{pad}body: |{indicator}-", *lines]


def _end(front: str, node: Node) -> int:
    """Return where the last characters of a block collection end."""
    while not (node.is_single or node.flow):
        node = node.children()[-1]
    return node.start + len(front[node.start : node.end].rstrip())


def _next_line(front: str, offset: int) -> int:
    return front.index("\n", offset) + 1


def _column(front: str, offset: int) -> int:
    return offset - (front.rfind("\n", 0, offset) + 1)
