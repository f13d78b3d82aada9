"""Changes to the text of YAML front matter.

``edited`` touches only the characters of the value itself. It may misjudge an unusual text:
the caller reads what it made, and takes what ``dumped`` makes where it says something else.
"""

from __future__ import annotations

import io
import json
import re

from sortie.documents import Node
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


def edited(text: str, end: int, root: Node, change: Change) -> str | None:
    """Return the text with the change made in place, None where there is no place for it.

    ``end`` is where the front matter ends, whose fields are ``root``.
    """
    newline = "\r\n" if "\r\n" in text[:end] else "\n"
    match change:
        case SetState(state=state):
            splices = _set(text, root, "state", state)
        case AddComment():
            if root.flow:
                return None
            added = _add_comment(text, end, root, change, newline)
            if added is None:
                return None
            splices = added
    splices += _set(text, root, "updated_at", stamp(change.at))
    return spliced(text, splices)


def dumped(front: str, change: Change) -> str | None:
    """Return the front matter written anew with the change made; keeps keys and comments."""
    # Few texts need it, so few daemons load it.
    from ruamel.yaml import YAML
    from ruamel.yaml.error import YAMLError
    from ruamel.yaml.util import load_yaml_guess_indent

    yaml = YAML(typ="rt")
    yaml.preserve_quotes = True
    yaml.width = 2**20
    if "\r\n" in front:
        yaml.line_break = "\r\n"  # type: ignore[assignment]  # its annotation is too narrow
    out = io.StringIO()
    try:
        _, indent, offset = load_yaml_guess_indent(front)
        yaml.indent(mapping=2, sequence=indent or 2, offset=offset or 0)
        data = yaml.load(front)
        match change:
            case SetState(state=state):
                data["state"] = state
            case AddComment(body=body, at=at):
                said = {"author": AUTHOR, "body": body, "created_at": stamp(at)}
                data["comments"] = [*(data.get("comments") or ()), said]
        if "updated_at" in data:
            data["updated_at"] = stamp(change.at)
        yaml.dump(data, out)
    except YAMLError:
        return None
    return out.getvalue()


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
        last = node.start + len(text[node.start : node.end - 1].rstrip())
        return [(last, last, f", {_in_flow(change)}")]
    below = _next_line(text, _end(text, node))
    return [(below, below, _lines(change, _column(text, node.start), newline))]


def _in_flow(change: AddComment) -> str:
    said = {"author": AUTHOR, "body": change.body, "created_at": stamp(change.at)}
    return "{" + ", ".join(f"{key}: {_quoted(text)}" for key, text in said.items()) + "}"


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
