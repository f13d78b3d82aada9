"""Translate the pipelines of Go's templates into expressions of Jinja; pure."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence

from msgspec import Struct, field

from sortie.workflow.go_functions import Expression, Level, NotGo, called
from sortie.workflow.prompts import PROMPT_VARIABLES

_TOKEN = re.compile(
    r"""(?P<space>\s+)
      | (?P<text>"(?:[^"\\]|\\.)*")
      | (?P<raw>`[^`]*`)
      | (?P<number>-?\d+(?:\.\d+)?)(?![\w.])
      | (?P<variable>\$\w*(?:\.[A-Za-z_]\w*)*)
      | (?P<field>(?:\.[A-Za-z_]\w*)+)
      | (?P<dot>\.)(?![\w.])
      | (?P<word>[A-Za-z_]\w*)
      | (?P<mark>:=|[=()|,])
    """,
    re.VERBOSE | re.DOTALL,
)
_CONSTANTS = {"true": "true", "false": "false", "nil": "none"}
_RENAMED = {"issue.parent.identifier": "issue.parent"}
_DEEPEST = 50
_WHOLE = "issue"
"""What stands for all that Go's template is given, as a whole."""


class GoScope(Struct):
    """What names mean at a place; ``dot`` is None for all that the template is given."""

    dot: str | None = None
    names: Mapping[str, str] = field(default_factory=dict)

    def field(self, chain: str) -> str:
        """Return what a chain of fields, such as ``.issue.title``, is in Jinja."""
        path = f"{self.dot or ''}{chain}".removeprefix(".")
        return _RENAMED.get(path, path)

    def variable(self, written: str) -> str:
        """Return what a variable and its fields are in Jinja."""
        name, dot, rest = written[1:].partition(".")
        if not name:
            return _RENAMED.get(rest, rest) or _WHOLE
        return f"{self.names.get(name, name)}{dot}{rest}"


class _Token(Struct, frozen=True):
    kind: str
    text: str
    is_apart: bool


def expression(written: str, scope: GoScope) -> Expression:
    """Return a pipeline of Go as Jinja writes it. Raises NotGo."""
    parser = _PipelineParser(_tokens(written), scope)
    found = parser.pipeline()
    parser.end()
    return found


def _tokens(written: str) -> list[_Token]:
    found: list[_Token] = []
    at, is_apart = 0, True
    while at < len(written):
        match = _TOKEN.match(written, at)
        if match is None:
            raise NotGo
        at, kind = match.end(), match.lastgroup or ""
        if kind != "space":
            found.append(_Token(kind, match[0], is_apart))
        is_apart = kind == "space"
    return found


class _PipelineParser:
    def __init__(self, tokens: Sequence[_Token], scope: GoScope) -> None:
        self._tokens = tokens
        self._scope = scope
        self._at = 0
        self._depth = 0

    def end(self) -> None:
        if self._at < len(self._tokens):
            raise NotGo

    def pipeline(self) -> Expression:
        """Read commands; what each gives is the last argument of the next one."""
        found = self._command(None)
        while self._take("|"):
            found = self._command(found)
        return found

    def _command(self, given: Expression | None) -> Expression:
        name = self._word()
        operands: list[Expression] = []
        while (operand := self._operand()) is not None:
            operands.append(operand)
        if name is None:
            if given is not None or len(operands) != 1:
                raise NotGo
            return operands[0]
        arguments = [*operands, *([] if given is None else [given])]
        if not arguments or (name in PROMPT_VARIABLES and name not in _CONSTANTS):
            raise NotGo
        made = called(name, arguments)
        # A filter behind a bar, and "not", are written in Jinja as in Go.
        is_go = any(each.is_go for each in arguments) or (
            bool(operands) and _is_prefix(name, given)
        )
        return Expression(made.text, made.level, is_go)

    def _word(self) -> str | None:
        """Take the name of a function, where one comes."""
        token = self._next()
        if token is None or token.kind != "word" or token.text in _CONSTANTS:
            return None
        self._at += 1
        return token.text

    def _operand(self) -> Expression | None:
        token = self._next()
        if token is None or (token.kind == "mark" and token.text != "("):
            return None
        self._at += 1
        before = self._tokens[self._at - 2] if self._at > 1 else None
        if not token.is_apart and before is not None and before.text not in ("(", "|"):
            raise NotGo  # as in issue.title and range(3), which are Jinja's
        if token.kind == "mark":
            self._depth += 1
            if self._depth > _DEEPEST:
                raise NotGo
            inner = self.pipeline()
            self._depth -= 1
            if not self._take(")"):
                raise NotGo
            return self._of_fields(inner)
        return self._simple(token)

    def _simple(self, token: _Token) -> Expression:
        match token.kind:
            case "text" | "number":
                return Expression(token.text)
            case "raw":
                return Expression(json.dumps(token.text[1:-1], ensure_ascii=False), is_go=True)
            case "field":
                return Expression(self._scope.field(token.text), is_go=True)
            case "dot":
                return Expression(self._scope.dot or _WHOLE, is_go=True)
            case "variable":
                return Expression(self._scope.variable(token.text), is_go=True)
            case _ if token.text in _CONSTANTS:
                return Expression(_CONSTANTS[token.text])
            case _:
                raise NotGo  # a function has no place there, and a name would be Jinja's

    def _of_fields(self, inner: Expression) -> Expression:
        """Return what is in parentheses, with the fields that are asked of it."""
        token = self._next()
        if token is None or token.kind != "field" or token.is_apart:
            return inner
        self._at += 1
        return Expression(f"{inner.within(Level.ATOM)}{token.text}", is_go=inner.is_go)

    def _next(self) -> _Token | None:
        return self._tokens[self._at] if self._at < len(self._tokens) else None

    def _take(self, mark: str) -> bool:
        token = self._next()
        found = token is not None and token.kind == "mark" and token.text == mark
        self._at += found
        return found


def _is_prefix(name: str, given: Expression | None) -> bool:
    return given is None and name != "not"
