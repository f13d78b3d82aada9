"""The wiki markup of Jira Data Center as Markdown, in time that grows with the text alone.

Each line is looked at once, and within a line a pattern ends at the line's end. Known macros are
taken apart; an unknown one stays as it is written, as Jira itself shows it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from sortie.trackers.jira.markdown_text import (
    clean,
    code_fence,
    code_span,
    escaped,
    is_harmless_link,
    link,
)

_VERBATIM = re.compile(r"\{(code|noformat)((?:[:|][^}\n]*)?)\}")
_LANGUAGE = re.compile(r":([\w+#.-]{1,30})(?:\||$)")
_QUOTE = re.compile(r"\{(quote|panel)((?::[^}\n]*)?)\}")
_TITLE = re.compile(r"[:|]title=([^|}]*)")
_DROPPED = re.compile(r"\{(?:color(?::[^}\n]*)?|anchor:[^}\n]*)\}")
_HEADING = re.compile(r"\s*h([1-6])\.\s+(.*)")
_ITEM = re.compile(r"\s*([*#]+|-)\s+(.*)")
_RULE = re.compile(r"\s*-{4,}\s*$")

_INLINE = re.compile(
    r"""
      \\(?=_|[^\w\s\\]) (?P<escaped>.)
    | (?P<line>\\\\(?!\\))
    | \{\{(?P<mono>[^{}\n]+)\}\}
    | \[(?P<link>[^\[\]\n]+)\]
    | (?P<url>(?:https?|ftp)://[^\s|\]}]+)
    | !(?P<picture>[^\s!|][^!|\n]*\.\w{1,5}|https?://[^\s!|]+)(?:\|[^!\n]*)?!
    | (?<![^\W_]) (?:
          \*(?P<strong>[^\s*](?:[^*\n]*[^\s*])?)\*
        | _(?P<em>[^\s_](?:[^_\n]*[^\s_])?)_
        | -(?P<strike>[^\s-](?:[^\n-]*[^\s-])?)-
        | \+(?P<under>[^\s+](?:[^+\n]*[^\s+])?)\+
        | \?\?(?P<cite>[^\s?](?:[^?\n]*[^\s?])?)\?\?
      ) (?!\w)
    """,
    re.VERBOSE,
)


def to_markdown(value: object) -> str:
    """Return a field's value as Markdown; anything but a text is nothing."""
    if not isinstance(value, str):
        return ""
    blocks = [_code(kind, told, text) for kind, told, text in _pieces(clean(value))]
    return "\n\n".join(block for block in blocks if block).strip()


def _pieces(text: str) -> Iterator[tuple[str, str, str]]:
    """Yield (macro, its parameters, text): what is verbatim, and with no macro what is not."""
    start, missing = 0, set[str]()
    for found in _VERBATIM.finditer(text):
        kind = found[1]
        if found.start() < start or kind in missing:
            continue
        end = text.find(f"{{{kind}}}", found.end())
        if end < 0:
            missing.add(kind)
            continue
        yield "", "", text[start : found.start()]
        yield kind, found[2], text[found.end() : end]
        start = end + len(kind) + 2
    yield "", "", text[start:]


def _code(kind: str, told: str, text: str) -> str:
    if not kind:
        return "\n\n".join(_quoted_or_not(text))
    text = text.strip("\n")
    language = _LANGUAGE.match(told) if kind == "code" else None
    fence = code_fence(text)
    return f"{fence}{language[1] if language else ''}\n{text}\n{fence}"


def _quoted_or_not(text: str) -> Iterator[str]:
    """Yield the blocks of a text, those in quotes and panels with their prefix."""
    start, inside, title = 0, "", ""
    for found in _QUOTE.finditer(text):
        if inside not in ("", found[1]):
            continue
        yield from _enclosed(text[start : found.start()], inside, title)
        start = found.end()
        inside = "" if inside else found[1]
        told = _TITLE.search(found[2])
        title = told[1] if told and inside else ""
    yield from _enclosed(text[start:], inside, title)


def _enclosed(text: str, inside: str, title: str) -> Iterator[str]:
    blocks = [f"**{_inline(title.strip())}**"] if title.strip() else []
    blocks += _WikiBlocks().of(text.split("\n"))
    if not inside:
        yield from blocks
    elif blocks:
        lines = "\n\n".join(blocks).split("\n")
        yield "\n".join(f"> {line}".rstrip() for line in lines)


class _WikiBlocks:
    """Lines on their way to blocks; lines of one kind in a row make one block."""

    def __init__(self) -> None:
        self._blocks: list[str] = []
        self._open = ""  # the kind of the last block, which the next line may continue
        self._indents: list[int] = []  # widths of the markers of the list item's parents

    def of(self, lines: list[str]) -> list[str]:
        for line in lines:
            self._take(_DROPPED.sub("", line))
        return [block for block in self._blocks if block.strip()]

    def _take(self, line: str) -> None:
        if not line.strip():
            self._open = ""
        elif (found := _HEADING.match(line)) is not None:
            self._add("", f"{'#' * int(found[1])} {_inline(found[2].strip())}")
        elif _RULE.match(line):
            self._add("", "---")
        elif line.lstrip().startswith("bq. "):
            self._add("quote", f"> {_inline(line.lstrip()[4:].strip())}")
        elif line.lstrip().startswith("|"):
            self._row(line.strip())
        elif (found := _ITEM.match(line)) is not None:
            self._item(found[1], found[2])
        elif self._open == "list":
            self._add("list", " " * sum(self._indents) + _inline(line.strip(), starts_line=True))
        else:
            self._add("text", _inline(line.strip(), starts_line=True))

    def _add(self, kind: str, text: str) -> None:
        if kind and kind == self._open:
            self._blocks[-1] += f"\n{text}"
        else:
            self._blocks.append(text)
        self._open = kind

    def _item(self, markers: str, text: str) -> None:
        depth = min(len(markers), 20)
        marker = "1. " if markers[-1] == "#" else "- "
        if self._open != "list":
            self._indents = []
        parents = self._indents[: depth - 1]
        self._indents = [*parents, len(marker)]
        self._add("list", " " * sum(parents) + marker + _inline(text.strip(), starts_line=True))

    def _row(self, line: str) -> None:
        is_head = line.startswith("||")
        cells = _cells(line)
        row = f"| {' | '.join(cells)} |"
        if self._open == "table":
            self._add("table", row)
            return
        head = row if is_head else "|" + "  |" * len(cells)
        self._add("table", f"{head}\n|" + " --- |" * len(cells))
        if not is_head:
            self._add("table", row)


def _cells(line: str) -> list[str]:
    """Return the cells of a row; a bar in a link, or behind a backslash, ends none."""
    kept = re.sub(r"\[[^\[\]\n]*\]|\\\|", lambda found: found[0].replace("|", "\0"), line)
    parts = re.split(r"\|\|?", kept.strip("|"))
    return [_inline(part.replace("\0", "|").strip(), in_table=True) for part in parts]


def _inline(
    text: str, *, starts_line: bool = False, in_table: bool = False, marked: bool = False
) -> str:
    """Return the text of a line or a cell as Markdown; ``marked``: it stands between marks."""
    rendered, plain, start = "", "", 0
    for found in _INLINE.finditer(text):
        plain += text[start : found.start()]
        start = found.end()
        if found.lastgroup == "escaped":
            plain += found["escaped"]
            continue
        at_start = starts_line and not rendered
        rendered += escaped(plain, at_line_start=at_start, marked=marked) + _marked(found)
        plain = ""
    at_start = starts_line and not rendered
    rendered += escaped(plain + text[start:], at_line_start=at_start, marked=marked)
    return re.sub(r"(?<!\\)\|", r"\\|", rendered.replace("\n", "<br>")) if in_table else rendered


def _marked(found: re.Match[str]) -> str:
    kind = found.lastgroup or ""
    text = found[kind]
    match kind:
        case "line":
            return "\n"
        case "url":
            return text
        case "mono":
            return code_span(text)
        case "link":
            return _link(text)
        case "picture":
            name = escaped(text, at_line_start=False)
            return link(f"picture {name}", text) if "://" in text else f"(picture {name})"
    return _MARKS[kind](_inline(text, marked=True))


_MARKS: dict[str, Callable[[str], str]] = {
    "strong": lambda text: f"**{text}**",
    "em": lambda text: f"_{text}_",
    "strike": lambda text: f"~~{text}~~",
    "under": lambda text: text,
    "cite": lambda text: f"_{text}_",
}


def _link(told: str) -> str:
    """Return what stands in brackets: a person, a file, a link, or just words in brackets."""
    if told.startswith("~"):
        return "@" + escaped(told[1:].removeprefix("accountid:"), at_line_start=False)
    if told.startswith("^"):
        return f"(attachment {escaped(told[1:], at_line_start=False)})"
    content, bar, target = told.rpartition("|")
    target = target.strip()
    if "|" in content:  # the third part is a tip
        content, _, target = content.partition("|")
    is_target = re.match(r"(?:https?|ftp|mailto|tel):|[/#]", target) is not None
    if not is_target or not is_harmless_link(target):
        return escaped(f"[{told}]", at_line_start=False)
    return link(escaped(content, at_line_start=False), target) if bar else f"<{link('', target)}>"
