"""Changes to the text of YAML front matter.

``spliced`` touches only the characters of the value itself. It may misjudge an unusual text:
the caller reads what it made, and takes what ``dumped`` makes where it says something else.
"""

from __future__ import annotations

import io
import json
import re

from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError
from ruamel.yaml.util import load_yaml_guess_indent

from sortie.trackers.file.documents import AUTHOR, AddComment, Change, SetState, stamp
from sortie.trackers.file.nodes import Mapping, Node, Scalar, Sequence, is_null, is_special

_Splice = tuple[int, int, str]  # from, to, what stands there instead

_PROPERTIES = re.compile(r"(?:[&!]\S*\s+)*")  # an anchor, a tag
_WORDS = re.compile(r"[^\W\d_](?:[\w ./()+-]*[\w).])?")
_YAML_1_1 = re.compile(r"y|n|yes|no|on|off|true|false|null", re.IGNORECASE)
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")
_UNPRINTABLE = re.compile(
    "[^\t\n\x20-\x7e\xa0-\u2027\u202a-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]"
)


def spliced(front: str, root: Mapping, change: Change) -> str | None:
    """Return the text with the change made in place, None where there is no place for it."""
    newline = "\r\n" if "\r\n" in front else "\n"
    match change:
        case SetState(state=state):
            splices = _set(front, root, "state", state)
        case AddComment():
            if root.flow:
                return None
            added = _add_comment(front, root, change, newline)
            if added is None:
                return None
            splices = added
    splices += _set(front, root, "updated_at", stamp(change.at))
    for start, end, text in sorted(splices, reverse=True):
        front = front[:start] + text + front[end:]
    return front


def dumped(front: str, change: Change) -> str | None:
    """Return the front matter written anew with the change made; keeps keys and comments."""
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


def _set(front: str, root: Mapping, key: str, text: str) -> list[_Splice]:
    node = root.get(key)
    if not isinstance(node, Scalar):
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
    plain = _WORDS.fullmatch(text) and not is_special(text) and not _YAML_1_1.fullmatch(text)
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
    front: str, root: Mapping, change: AddComment, newline: str
) -> list[_Splice] | None:
    node = root.get("comments")
    margin = _column(front, root.pairs[0][0].start)
    lines = _lines(change, margin + 2, newline)
    if node is None:
        return [(len(front), len(front), f"{' ' * margin}comments:{newline}{lines}")]
    if is_null(node) or (isinstance(node, Sequence) and not node.items):
        start = len(front[: node.start].rstrip(" \t"))
        below = _next_line(front, node.end)
        return [(start, node.end, ""), (below, below, lines)]
    if isinstance(node, Sequence) and not node.flow:
        below = _next_line(front, _end(front, node))
        return [(below, below, _lines(change, _column(front, node.start), newline))]
    if isinstance(node, Sequence):
        end = node.start + len(front[node.start : node.end - 1].rstrip())
        return [(end, end, f", {_in_flow(change)}")]
    return None


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
    while isinstance(node, Sequence | Mapping) and not node.flow:
        node = node.items[-1] if isinstance(node, Sequence) else node.pairs[-1][1]
    return node.start + len(front[node.start : node.end].rstrip())


def _next_line(front: str, offset: int) -> int:
    return front.index("\n", offset) + 1


def _column(front: str, offset: int) -> int:
    return offset - (front.rfind("\n", 0, offset) + 1)
