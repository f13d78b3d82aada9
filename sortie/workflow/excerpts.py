"""Show the lines that problems are about, without the secrets that may stand in them.

A secret is known by its place in the front matter, and by its key where that cannot be read: then
rather too much is hidden than too little.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence

from msgspec.structs import replace

from sortie.documents import Node
from sortie.model import Excerpt, Problem
from sortie.model.secrets import SHORTEST_SECRET

_HIDDEN = "***"
_SECRET_PATHS = (("tracker", "api_key"), ("server", "auth_token"))

_SECRET_KEY = re.compile(
    r"""(?:api_?key|token|secret|password|passphrase)["']?[ \t]*:(?:[ \t]+|$)""",
    re.IGNORECASE,
)
_REFERENCE = re.compile(r"""["']?\$(?:\w+|\{\w+\})["']?[ \t]*(?:[,}#].*)?""")


def with_excerpts(
    problems: Iterable[Problem], text: str, source: str, document: Node | None
) -> tuple[Problem, ...]:
    """Give each problem of the file ``source``, whose text this is, the line it is about."""
    lines = text.split("\n")
    hidden = _Hidden(lines, frozenset(_literals(document)))
    return tuple(
        replace(problem, excerpt=hidden.excerpt(problem))
        if problem.path == source and 0 < problem.line <= len(lines)
        else problem
        for problem in problems
    )


def _literals(document: Node | None) -> Iterator[str]:
    """Yield the secrets that stand in a front matter as they are, line by line."""
    for path in _SECRET_PATHS:
        written = document.at(path) if document is not None else None
        for node in (written, *(written.items() if written else ())):
            if node is not None and isinstance(node.value, str | int | float):
                value = str(node.value)
                if not _REFERENCE.fullmatch(value):
                    yield from (line.strip() for line in [value, *value.splitlines()])


class _Hidden:
    """What of a file's lines is not shown."""

    def __init__(self, lines: Sequence[str], literals: Collection[str]) -> None:
        self._lines = lines
        worth = sorted((x for x in literals if len(x) >= SHORTEST_SECRET), key=len, reverse=True)
        self._literals = re.compile("|".join(map(re.escape, worth))) if worth else None
        self._whole = frozenset(_continued(lines))

    def excerpt(self, problem: Problem) -> Excerpt:
        line, column = self._lines[problem.line - 1], max(problem.column, 1)
        if problem.line - 1 in self._whole:
            margin = len(line) - len(line.lstrip())
            return Excerpt(text=f"{line[:margin]}{_HIDDEN}", column=min(column, margin + 1))
        for start, end in sorted(self._spans(line), reverse=True):
            line = f"{line[:start]}{_HIDDEN}{line[end:]}"
            if column > end:
                column += len(_HIDDEN) - (end - start)
            elif column > start:
                column = start + 1
        return Excerpt(text=line, column=column)

    def _spans(self, line: str) -> Iterator[tuple[int, int]]:
        """Yield what is hidden in a line, from and to; the parts do not overlap."""
        until = len(line)
        key = _SECRET_KEY.search(line)
        if key and key.end() < until and not _REFERENCE.fullmatch(line, key.end()):
            yield key.end(), until
            until = key.end()
        if self._literals:
            for found in self._literals.finditer(line, 0, until):
                yield found.span()


def _continued(lines: Sequence[str]) -> Iterator[int]:
    """Yield the lines, counted from 0, on which a secret that began further up may go on."""
    margin: int | None = None  # of the key whose value goes on for as long as lines are indented
    quote = ""  # that has not been closed yet
    begun = False  # a value that has to come on the next line
    for number, line in enumerate(lines):
        bare = line.strip()
        if not bare:
            continue
        if begun or quote or (margin is not None and _margin(line) > margin):
            yield number
            if begun:
                begun, quote = False, _open_quote(bare)
            elif quote and quote in line:
                quote = ""
            continue
        margin = None
        if key := _SECRET_KEY.search(line):
            value = line[key.end() :]
            margin = _margin(line)
            quote = _open_quote(value)
            begun = not value


def _margin(line: str) -> int:
    return len(line) - len(line.lstrip())


def _open_quote(value: str) -> str:
    """Return the quote with which a value begins and does not end, or nothing."""
    quote = value[:1]
    return quote if quote in ("'", '"') and quote not in value[1:] else ""
