"""Plain text as Markdown, with as few backslashes as it needs, and what is harmless in it."""

from __future__ import annotations

import re

_UNCLEAN = re.compile(
    "[\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f\ufdd0-\ufdef\ufffe\uffff\ud800-\udfff]"
)
_LINE_ENDS = re.compile("\r\n?|[\x0b\x0c\x85\u2028\u2029]")

_INLINE = re.compile(
    r"""
      \\(?=[!-/:-@\[-`{-~\n]|$)        # a backslash that would escape, or break a line
    | `
    | \*(?!(?<=\s\*)(?=\s))            # a star, but one between blanks
    | (?<![^\W_])_ | _(?![^\W_])       # an underscore at the edge of a word
    | ~(?=~) | (?<=~)~
    | \[(?=[^\[\]\n]*\][(\[:]) | !(?=\[)
    | <(?=[A-Za-z/!?])
    | &(?=\#?\w{1,40};)
    """,
    re.VERBOSE,
)
_LINE_START = re.compile(
    r"""
      (?P<before>\d{1,9})(?P<after>[.)](?=\s|$))
    | (?P<mark> \#(?=\#{0,5}(\s|$)) | [-+*](?=\s|$) | > | [-*_=](?=[-*_=\s]*$)
        | ~(?=~~) | \[(?=[\ xX]\](\s|$)) | \|(?=[-:|\s]*$) )
    """,
    re.VERBOSE,
)
_HARMLESS = re.compile(r"(?:https?|ftp|mailto|tel):|[/#?.]|[^:]*$", re.IGNORECASE)


def clean(text: str) -> str:
    """Return a text without control characters and with plain line ends."""
    return _UNCLEAN.sub("", _LINE_ENDS.sub("\n", text))


def escaped(text: str, *, at_line_start: bool, marked: bool = False) -> str:
    """Return plain text as Markdown that means it, line by line.

    ``marked``: there may be stars around it, in which its own would find their counterpart.

    Blanks at the start of a line are dropped, as Markdown has no use for them.
    """
    lone = not marked and text.count("*") == 1
    first, *rest = text.split("\n")
    lines = [_escaped_line(first, at_line_start, lone)]
    return "\n".join(lines + [_escaped_line(line, True, lone) for line in rest])


def _escaped_line(line: str, starts_line: bool, lone: bool) -> str:
    first = ""
    if starts_line:
        line = line.lstrip(" \t")
        if (found := _LINE_START.match(line)) is not None:
            first = (found["before"] or "") + "\\" + (found["after"] or found["mark"])
            line = line[found.end() :]

    def escape(found: re.Match[str]) -> str:
        return found[0] if lone and not first and found[0] == "*" else "\\" + found[0]

    return first + _INLINE.sub(escape, line)


def code_span(text: str) -> str:
    """Return a text as code within a line."""
    text = text.replace("\n", " ")
    longest = max(map(len, re.findall("`+", text)), default=0)
    fence = "`" * (longest + 1)
    pad = " " if text[:1] == "`" or text[-1:] == "`" or (text[:1] == text[-1:] == " ") else ""
    return f"{fence}{pad}{text}{pad}{fence}" if text.strip() else text


def code_fence(text: str) -> str:
    """Return a fence that no line of a text closes."""
    longest = max(map(len, re.findall("`{3,}", text)), default=2)
    return "`" * (longest + 1)


def link(content: str, target: str) -> str:
    """Return Markdown as a link; without content the target alone, as it may stand in one."""
    for character, code in (("(", "%28"), (")", "%29"), ("<", "%3C"), (">", "%3E"), ("\\", "%5C")):
        target = target.replace(character, code)
    target = re.sub(r"\s", "%20", target)
    return f"[{content}]({target})" if content else target


def is_harmless_link(target: object) -> bool:
    """Tell whether a link leads to a page, a file or an address, and runs nothing."""
    if not isinstance(target, str):
        return False
    told = "".join(c for c in target if c.isprintable() and not c.isspace())
    return bool(told) and _HARMLESS.match(told) is not None
