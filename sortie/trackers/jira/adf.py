"""A document of Jira Cloud (ADF) as Markdown, whatever stands in it.

Nothing that a reader of Jira sees as words is lost: what Markdown has no form for (a mention, a
card, a picture, a node of tomorrow) is given as text. What was hostile stays text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence

from sortie.trackers.jira.adf_line import AdfLine, card, picture
from sortie.trackers.jira.adf_nodes import (
    attribute_of,
    children_of,
    is_inline,
    kind_of,
    name_of_unknown,
    raw_text_of,
    words_in,
)
from sortie.trackers.jira.markdown_text import clean, code_fence, escaped

DEEPEST = 40
"""Levels of nested blocks that are kept as such; what is deeper is given as its text."""

_LANGUAGE = re.compile(r"[\w+#.-]{1,30}")


def to_markdown(value: object) -> str:
    """Return a field's value as Markdown: a document, a text, or nothing."""
    if isinstance(value, str):
        return clean(value).strip()
    return _blocks(children_of(value), 0)


def _blocks(nodes: Iterable[object], depth: int) -> str:
    """Return nodes as blocks with a blank line between; inline ones in a row make a paragraph."""
    blocks: list[str] = []
    inline: list[object] = []
    for node in nodes:
        if is_inline(node):
            inline.append(node)
            continue
        if inline:
            blocks.append(_paragraph(inline))
            inline = []
        blocks.append(_block(node, depth))
    if inline:
        blocks.append(_paragraph(inline))
    return "\n\n".join(block for block in blocks if block.strip())


def _paragraph(nodes: Sequence[object]) -> str:
    return AdfLine(breaks="\n").of(nodes)


def _block(node: object, depth: int) -> str:
    if depth >= DEEPEST:
        return escaped(" ".join(words_in(node)), at_line_start=True)
    match kind_of(node):
        case "paragraph" | "caption":
            return _paragraph(children_of(node))
        case "heading":
            title = AdfLine(breaks=" ").of(children_of(node))
            return f"{'#' * _level(node)} {title}" if title.strip() else ""
        case "codeBlock":
            return _code_block(node)
        case "rule":
            return "---"
        case "blockquote" | "panel":
            return _prefixed(_blocks(children_of(node), depth + 1))
        case "expand" | "nestedExpand":
            title = escaped(attribute_of(node, "title"), at_line_start=False)
            return "\n\n".join(filter(None, (title and f"**{title}**", _inner(node, depth))))
        case "bulletList" | "decisionList":
            return _list(children_of(node), lambda _: "- ", depth)
        case "orderedList":
            start = _number(node, "order", 1)
            return _list(children_of(node), lambda n: f"{start + n}. ", depth)
        case "taskList":
            return _tasks(node, depth)
        case "table":
            return _table(node)
        case "media":
            return picture(node)
        case "blockCard" | "embedCard":
            return card(node)
    return _unknown(node, depth)


def _inner(node: object, depth: int) -> str:
    return _blocks(children_of(node), depth + 1)


def _unknown(node: object, depth: int) -> str:
    """Return the blocks in a node that only arranges them, or the words of one we do not know."""
    if inner := _inner(node, depth):
        return inner
    if kind_of(node) in ("mediaSingle", "mediaGroup", "layoutSection", "layoutColumn", ""):
        return ""
    return escaped(name_of_unknown(node), at_line_start=True)


def _level(node: object) -> int:
    return min(6, max(1, _number(node, "level", 1)))


def _number(node: object, name: str, default: int) -> int:
    try:
        return min(10**8, max(0, int(attribute_of(node, name))))
    except ValueError:
        return default


def _code_block(node: object) -> str:
    text = "".join("\n" if kind_of(n) == "hardBreak" else raw_text_of(n) for n in children_of(node))
    fence = code_fence(text)
    language = _LANGUAGE.fullmatch(attribute_of(node, "language"))
    return f"{fence}{language[0] if language else ''}\n{text.removesuffix(chr(10))}\n{fence}"


def _prefixed(text: str) -> str:
    return "\n".join(f"> {line}".rstrip() for line in text.split("\n")) if text else ""


def _list(items: Sequence[object], marker: Callable[[int], str], depth: int) -> str:
    lines = [
        _item(marker(n), _blocks(_item_nodes(item), depth + 1)) for n, item in enumerate(items)
    ]
    return "\n".join(lines)


def _item_nodes(item: object) -> list[object]:
    """Return what stands in an item of a list; what is no item stands there itself."""
    return children_of(item) if kind_of(item) in ("listItem", "decisionItem") else [item]


def _item(marker: str, text: str) -> str:
    """Return an item of a list: its blocks follow closely where each is a paragraph or a list."""
    if "\n\n" in text and "```" not in text and "~~~" not in text:
        text = re.sub(r"\n\n(?=(?:[-*+]|\d{1,9}[.)]) )", "\n", text)
    first, *rest = text.split("\n")
    indent = " " * len(marker)
    return "\n".join([f"{marker}{first}".rstrip(), *(f"{indent}{li}" if li else "" for li in rest)])


def _tasks(node: object, depth: int) -> str:
    lines = []
    for item in children_of(node):
        if kind_of(item) == "taskList":
            inner = _tasks(item, depth + 1) if depth < DEEPEST else " ".join(words_in(item))
            lines += [f"  {line}" for line in inner.split("\n")]
            continue
        done = "x" if attribute_of(item, "state") == "DONE" else " "
        lines.append(_item("- ", f"[{done}] {_blocks(children_of(item), depth + 1)}"))
    return "\n".join(lines)


def _table(node: object) -> str:
    """Return a table; a cell that spans others stands in the first of them."""
    rows = [children_of(row) for row in children_of(node) if kind_of(row) == "tableRow"]
    rendered: list[list[str]] = []
    taken: dict[tuple[int, int], str] = {}
    for y, row in enumerate(rows):
        line: list[str] = []
        for cell in row:
            while (y, len(line)) in taken:
                line.append("")
            columns = min(_number(cell, "colspan", 1) or 1, 100)
            for below in range(1, min(_number(cell, "rowspan", 1) or 1, len(rows) - y)):
                taken |= {(y + below, len(line) + x): "" for x in range(columns)}
            line += [_cell(cell), *[""] * (columns - 1)]
        rendered.append(line)
    width = max(map(len, rendered), default=0)
    if not width:
        return ""
    if any(kind_of(cell) != "tableHeader" for cell in rows[0]):
        rendered.insert(0, [])
    lines = [f"| {' | '.join([*line, *[''] * (width - len(line))])} |" for line in rendered]
    lines.insert(1, "|" + " --- |" * width)
    return "\n".join(lines)


def _cell(node: object) -> str:
    parts = [AdfLine(breaks="<br>", in_table=True).of(line) for line in _inline_lines(node, 0)]
    return "<br>".join(part for part in parts if part)


def _inline_lines(node: object, depth: int) -> Iterator[list[object]]:
    """Yield the inline content of a cell's blocks, one line each."""
    inline: list[object] = []
    for child in children_of(node):
        if is_inline(child):
            inline.append(child)
            continue
        if inline:
            yield inline
            inline = []
        if depth < DEEPEST and children_of(child):
            yield from _inline_lines(child, depth + 1)
        else:
            yield [{"type": "text", "text": text} for text in (_plain_block(child),) if text]
    if inline:
        yield inline


def _plain_block(node: object) -> str:
    if words := " ".join(words_in(node)):
        return words
    return "" if kind_of(node) in ("paragraph", "rule", "") else name_of_unknown(node)
