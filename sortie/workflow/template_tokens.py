"""Where the words of a template stand: Jinja itself knows only their lines."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from itertools import pairwise

from jinja2 import Environment, TemplateSyntaxError
from jinja2.lexer import ignored_tokens
from jinja2.parser import Parser

from sortie.dataclass import dataclass
from sortie.documents import Text

_SKIPPED = ignored_tokens | {"raw_begin", "raw_end"}
"""Tokens that a parser does not get to see."""

_INNERMOST = re.compile(r"block that needs to be closed is '(\w+)'")
_OFFSET = re.compile(r" at \d+$")  # counted from the template's begin, of use to nobody


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacedToken:
    """A token of the lexer, and the index of its first character."""

    index: int
    kind: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class WordUse:
    """How a word is used: as ``name``, ``filter`` or ``test``, or as ``field`` of an ``owner``."""

    line: int
    role: str
    word: str
    owner: str = ""


class TemplateTokens:
    """The tokens of a template, as far as it can be read; ``end`` is where reading ended."""

    def __init__(self, environment: Environment, source: str) -> None:
        self._environment = environment
        self._source = source
        self._tokens: list[PlacedToken] = []
        self._broken: TemplateSyntaxError | None = None
        self.end = 0
        try:
            for _, kind, text in environment.lex(source):
                self._place(kind, text)
        except TemplateSyntaxError as exc:
            self._broken = exc

    def _place(self, kind: str, text: str) -> None:
        # Between two tokens nothing is left out but white space, and no token begins with any
        # that is not its own.
        index = self._source.find(text, self.end)
        if index >= 0:
            self._tokens.append(PlacedToken(index=index, kind=kind, text=text))
            self.end = index + len(text)

    def uses(self) -> dict[WordUse, list[int]]:
        """Return the indices of each word by its use, in order; the lists may be consumed."""
        uses: dict[WordUse, list[int]] = defaultdict(list)
        text = Text("", self._source)
        for use, index in _uses([t for t in self._tokens if t.kind not in _SKIPPED], text):
            uses[use].append(index)
        return uses

    def syntax_error(self) -> tuple[int, str] | None:
        """Return the index and message of the first syntax error, None where there is none."""
        parser = None
        try:
            parser = Parser(self._environment, self._source)
            parser.parse()
        except TemplateSyntaxError as exc:
            message = exc.message or "syntax error"
            if self._broken is not None and message == self._broken.message:
                return self._where_broken(), _OFFSET.sub("", message)
            assert parser is not None
            return self._blamed(parser, message)
        return None

    def _where_broken(self) -> int:
        last = self._tokens[-1] if self._tokens else None
        if last is not None and last.kind in ("comment_begin", "raw_begin"):
            return last.index
        return self.end

    def _blamed(self, parser: Parser, message: str) -> tuple[int, str]:
        stream = parser.stream
        if stream.current.type == "eof":
            named = _INNERMOST.search(message)
            opened = self._unclosed(named[1]) if named else None
            if opened is None:
                return len(self._source), message
            return opened.index, f"{{% {opened.text} %}} is not closed by {{% end{opened.text} %}}"
        seen = [token for token in self._tokens if token.kind not in _SKIPPED]
        ahead = len(stream._pushed) + _count(stream._iter)
        index = len(seen) - ahead - 1
        return (seen[index].index if 0 <= index < len(seen) else self.end), message

    def _unclosed(self, tag: str) -> PlacedToken | None:
        """Return the last tag of a name that is not closed."""
        opened: list[PlacedToken] = []
        words = [token for token in self._tokens if token.kind not in _SKIPPED]
        for before, token in pairwise(words):
            if before.kind == "block_begin" and token.text == tag:
                opened.append(token)
            elif before.kind == "block_begin" and token.text == f"end{tag}" and opened:
                opened.pop()
        return opened[-1] if opened else None


def _count(tokens: Iterator[object]) -> int:
    count = 0
    try:
        for _ in tokens:
            count += 1
    except TemplateSyntaxError:
        pass  # no more were placed either
    return count


def _uses(tokens: list[PlacedToken], source: Text) -> Iterator[tuple[WordUse, int]]:
    padding = [PlacedToken(index=0, kind="", text="")] * 2
    padded = [*padding, *tokens]
    for owner, before, token in zip(padded, padded[1:], padded[2:], strict=False):
        line = source.place(token.index).line
        if token.kind == "string" and before.text == "[":
            word = token.text[1:-1]
            yield WordUse(line=line, role="field", word=word, owner=owner.text), token.index + 1
        elif token.kind == "name":
            role = {".": "field", "|": "filter", "is": "test"}.get(before.text, "name")
            if before.text == "not" and owner.text == "is":
                role = "test"
            of = owner.text if role == "field" else ""
            yield WordUse(line=line, role=role, word=token.text, owner=of), token.index
