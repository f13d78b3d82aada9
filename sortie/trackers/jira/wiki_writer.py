"""Markdown as the wiki markup of Jira Data Center; mistune reads it.

Text is escaped where it would be markup, so that nobody is called by it and nothing runs.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import mistune

from sortie.trackers.jira.markdown_text import clean, is_harmless_link

Token = dict[str, Any]

_PARSE = mistune.create_markdown(renderer="ast", plugins=["strikethrough", "table", "task_lists"])
_MARKUP = re.compile(
    r"""
      [{}\[|]                              # macros, links, people and cells
    | !(?=\S)
    | (?<![^\W_]) [*_+^~-] (?=\S)          # marks open at the edge of a word
    | (?<=\S) [*_+^~-] (?![^\W_])          # and close at one
    | \?(?=\?)
    """,
    re.VERBOSE,
)
_LINE_START = re.compile(r"\s*(?:(?P<mark>[#|*-])|(?P<word>h[1-6]|bq)(?=\.\s))")
_MARKS = {"strong": "*", "emphasis": "_", "strikethrough": "-"}
_LANGUAGE = re.compile(r"[\w+#.-]{1,30}")


def from_markdown(markdown: str) -> str:
    """Return Markdown as wiki markup, in which lines end where they are written to end."""
    tokens = _PARSE(clean(markdown))
    assert isinstance(tokens, list)  # as its renderer is none
    return _blocks(tokens, "")


def _blocks(tokens: Sequence[Token], markers: str) -> str:
    rendered = (_block(token, markers) for token in tokens)
    return "\n\n".join(text for text in rendered if text)


def _block(token: Token, markers: str) -> str:
    children = token.get("children", [])
    match token["type"]:
        case "paragraph" | "block_text":
            return _lines(children)
        case "heading" if markers:
            return _strong(children)  # Jira knows no heading behind the marker of an item
        case "heading":
            return f"h{token['attrs']['level']}. {_lines(children)}"
        case "block_code":
            return _code(token["raw"], token.get("attrs", {}).get("info") or "")
        case "block_quote":
            return "{quote}\n" + _blocks(children, "") + "\n{quote}"
        case "list":
            marker = "#" if token["attrs"].get("ordered") else "*"
            return "\n".join(_item(item, markers + marker) for item in children)
        case "table":
            return _table(children)
        case "thematic_break":
            return "----"
        case "blank_line":
            return ""
    return _text(token.get("raw") or "", at_line_start=True).strip("\n")


def _code(text: str, info: str) -> str:
    """Return a verbatim block; what would end it is broken by a blank."""
    words = info.split()
    language = words[0] if words and _LANGUAGE.fullmatch(words[0]) else ""
    macro = "code" if language else "noformat"
    text = text.removesuffix("\n").replace(f"{{{macro}", f"{{ {macro}")
    opening = f"{{code:{language}}}" if language else "{noformat}"
    return f"{opening}\n{text}\n{{{macro}}}"


def _item(item: Token, markers: str) -> str:
    """Return an item with what stands in it; its further blocks begin on lines of their own."""
    done = "" if item["type"] != "task_list_item" else _box(item["attrs"].get("checked"))
    children = [child for child in item.get("children", []) if child["type"] != "blank_line"]
    parts = [_block(child, markers) for child in children]
    first = parts.pop(0) if children and children[0]["type"] != "list" else ""
    return "\n".join([f"{markers} {done}{first}".rstrip(), *filter(None, parts)])


def _strong(tokens: Sequence[Token]) -> str:
    """Return a line in bold, in which nothing is bold by itself."""
    weak = [t for token in tokens for t in (token["children"] if _is_strong(token) else [token])]
    content = _inline(weak, False)
    return f"*{content}*" if content and content.strip() == content else content


def _is_strong(token: Token) -> bool:
    return bool(token["type"] == "strong")


def _box(checked: object) -> str:
    return "\\[x] " if checked else "\\[ ] "


def _table(parts: Sequence[Token]) -> str:
    lines = []
    for part in parts:
        rows = [part] if part["type"] == "table_head" else part.get("children", [])
        bar = "||" if part["type"] == "table_head" else "|"
        for row in rows:
            cells = (_inline(cell.get("children", []), False) or " " for cell in row["children"])
            lines.append(bar + bar.join(cell.replace("\n", " ") for cell in cells) + bar)
    return "\n".join(lines)


def _lines(children: Sequence[Token]) -> str:
    return _inline(children, True)


def _inline(tokens: Sequence[Token], at_line_start: bool) -> str:
    out = ""
    for token in tokens:
        starts = at_line_start and (not out or out.endswith("\n"))
        out += _span(token, starts)
    return out


def _span(token: Token, starts: bool) -> str:
    children = token.get("children", [])
    match token["type"]:
        case "text" | "inline_html":
            return _text(token["raw"], at_line_start=starts)
        case "linebreak" | "softbreak":
            return "\n"
        case "codespan":
            return _mono(token["raw"])
        case "strong" | "emphasis" | "strikethrough" as kind:
            mark, content = _MARKS[kind], _inline(children, False)
            return f"{mark}{content}{mark}" if content.strip() == content else content
        case "link":
            return _link(_inline(children, False), token["attrs"]["url"])
        case "image":
            name = "".join(child.get("raw", "") for child in children)
            return _link(_text(name, at_line_start=False), token["attrs"]["url"])
    return _inline(children, starts)


def _mono(text: str) -> str:
    """Return code within a line; braces would end it, so it is then plain text."""
    if "{" in text or "}" in text:
        return _text(text, at_line_start=False)
    return "{{" + text + "}}"


def _link(content: str, url: str) -> str:
    if not is_harmless_link(url) or re.search(r"[\s|\]\[{}]", url):
        return content
    name = re.sub(r"[\[\]|\\]+", " ", content).strip()
    return f"[{name}|{url}]" if name and name != url else f"[{url}]"


def _text(text: str, *, at_line_start: bool) -> str:
    lines = text.split("\n")
    starts = [at_line_start, *(True for _ in lines[1:])]
    return "\n".join(map(_line, lines, starts))


def _line(line: str, starts: bool) -> str:
    escape: Callable[[re.Match[str]], str] = lambda found: f"\\{found[0]}"  # noqa: E731
    line = line.replace("\\\\", "\\ \\")  # two of them end a line
    before = ""
    if starts and (found := _LINE_START.match(line)) is not None:
        before = "\\" + found["mark"] if found["mark"] else found["word"] + "\\"
        line = line[found.end() :]
    return before + _MARKUP.sub(escape, line)
