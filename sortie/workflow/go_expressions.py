"""Translate the pipelines of Go's templates into expressions of Jinja; pure."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence

from msgspec import Struct, field

from sortie.workflow.go_functions import Expression, GoKind, Level, NotGo, called, is_known
from sortie.workflow.variables import PROMPT_VARIABLES, VARIABLE_FIELDS

_TOKEN = re.compile(
    r"""(?P<space>\s+)
      | (?P<text>"(?:[^"\\\n]|\\.)*")
      | (?P<raw>`[^`]*`)
      | (?P<number>-?(?:0|[1-9]\d*)(?:\.\d+)?)(?![\w.])
      | (?P<variable>\$\w*(?:\.[A-Za-z_]\w*)*)
      | (?P<field>(?:\.[A-Za-z_]\w*)+)
      | (?P<dot>\.)(?![\w.])
      | (?P<word>[A-Za-z_]\w*)
      | (?P<mark>:=|[=()|,])
    """,
    re.VERBOSE | re.DOTALL,
)
_CONSTANTS = {"true": "true", "false": "false", "nil": "none"}
_DEEPEST = 50
_WHOLE = "issue"
"""What stands for all that Go's template is given, as a whole."""

REACTIONS = {
    "ci_failure": "checks",
    "review_comments": "review",
    "bot_review_comments": "review",
    "merge_conflict": "conflicts",
    "label_fix": "commands",
}
"""What Go's program gives a run that answers something, and the kind that the reaction has here."""

_FIELDS: Mapping[str, frozenset[str]] = {
    "": frozenset({"issue", "attempt", "run", *REACTIONS}),
    "issue": VARIABLE_FIELDS["issue"],
    "issue.comments[]": frozenset({"author", "body", "created_at"}),
    "issue.blocked_by[]": frozenset({"identifier", "id", "state"}),
    "issue.parent": frozenset({"identifier"}),
    "run": frozenset({"turn_number", "max_turns", "is_continuation"}),
}
"""What has fields that there are here, too."""

_MAYBE = ("assignee", "branch_name", "created_at", "issue_type", "updated_at", "url")
KINDS = {
    **dict.fromkeys(("attempt", "run.turn_number", "run.max_turns"), GoKind.NUMBER),
    "run.is_continuation": GoKind.BOOLEAN,
    **dict.fromkeys((f"issue.{name}" for name in _MAYBE), GoKind.MAYBE_TEXT),
    **dict.fromkeys(("issue.blocked_by[].state", "issue.comments[].created_at"), GoKind.MAYBE_TEXT),
}


class GoScope(Struct):
    """What names mean at a place; ``dot`` is None for all that the template is given.

    ``taken`` are names that mean something else, ``true`` texts of expressions that are not empty
    here. ``is_go_alone``: nothing is Jinja, and what Go does not know is no name.
    ``is_dead``: what stands here is never rendered.
    """

    dot: Expression | None = None
    names: Mapping[str, Expression] = field(default_factory=dict)
    taken: frozenset[str] = frozenset()
    true: frozenset[str] = frozenset()
    is_go_alone: bool = False
    is_dead: bool = False

    def field(self, base: Expression | None, chain: str, faults: list[str]) -> Expression:
        """Return what a chain of fields, such as ``.issue.title``, of something is."""
        found = base
        for name in filter(None, chain.split(".")):
            found = self._one(found, name, faults)
        found = found or Expression(_WHOLE)
        is_there = found.kind is GoKind.MAYBE_TEXT and found.text in self.true
        kind = GoKind.ANY if is_there else found.kind
        return Expression(found.text, found.level, is_go=True, kind=kind, path=found.path)

    def _one(self, base: Expression | None, name: str, faults: list[str]) -> Expression:
        if base is not None and base.path is None:
            return Expression(f"{base.within(Level.ATOM)}.{name}")
        path = name if base is None else f"{base.path}.{name}"
        around = "" if base is None else str(base.path)
        if name not in _FIELDS.get(around, ()):
            faults.append(f".{path} has no counterpart{_instead(path)}")
            return Expression(name if base is None else f"{base.within(Level.ATOM)}.{name}")
        if base is None and name in REACTIONS:
            text = f'"{REACTIONS[name]}" in reaction.kinds and not run.is_continuation'
            return Expression(text, Level.LOGIC, kind=GoKind.BOOLEAN, path=path)
        if path == "issue.parent.identifier":
            return Expression("issue.parent", path=path)
        text = name if base is None else f"{base.within(Level.ATOM)}.{name}"
        return Expression(text, kind=KINDS.get(path, GoKind.ANY), path=path)

    def variable(self, written: str, faults: list[str]) -> Expression:
        """Return what a variable and its fields are in Jinja."""
        name, _, chain = written[1:].partition(".")
        if name and name not in self.names and self.is_go_alone:
            raise NotGo(f"${name} is not declared here")
        base = (self.names.get(name) or Expression(name)) if name else None
        return self.field(base, chain, faults)


def _instead(path: str) -> str:
    root = path.partition(".")[0]
    return "; reaction.text says what has happened" if root in REACTIONS else ""


class _Token(Struct, frozen=True):
    kind: str
    text: str
    is_apart: bool


def expression(written: str, scope: GoScope, faults: list[str]) -> Expression:
    """Return a pipeline of Go as Jinja writes it, and add what it lacks here. Raises NotGo."""
    parser = _PipelineParser(_tokens(written), scope, faults)
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
    def __init__(self, tokens: Sequence[_Token], scope: GoScope, faults: list[str]) -> None:
        self._tokens = tokens
        self._scope = scope
        self._faults = faults
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
        is_variable = name in PROMPT_VARIABLES and not self._scope.is_go_alone
        if not arguments or is_variable:
            raise NotGo
        if not is_known(name):
            self._faults.append(f"there is no function {name} here")
        made = called(name, arguments)
        # A filter behind a bar, and "not", are written in Jinja as in Go.
        is_go = any(each.is_go for each in arguments) or (
            bool(operands) and _is_prefix(name, given)
        )
        return Expression(made.text, made.level, is_go, made.kind, made.path)

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
            case "text":
                return Expression(token.text)
            case "number":
                return Expression(token.text, kind=GoKind.NUMBER)
            case "raw":
                return Expression(json.dumps(token.text[1:-1], ensure_ascii=False), is_go=True)
            case "field" | "dot":
                return self._scope.field(self._scope.dot, token.text, self._faults)
            case "variable":
                return self._scope.variable(token.text, self._faults)
            case _ if token.text in _CONSTANTS:
                kind = GoKind.ANY if token.text == "nil" else GoKind.BOOLEAN
                return Expression(_CONSTANTS[token.text], kind=kind)
            case _:
                raise NotGo  # a function has no place there, and a name would be Jinja's

    def _of_fields(self, inner: Expression) -> Expression:
        """Return what is in parentheses, with the fields that are asked of it."""
        token = self._next()
        if token is None or token.kind != "field" or token.is_apart:
            return inner
        self._at += 1
        found = self._scope.field(inner, token.text, self._faults)
        return Expression(found.text, found.level, inner.is_go, found.kind, found.path)

    def _next(self) -> _Token | None:
        return self._tokens[self._at] if self._at < len(self._tokens) else None

    def _take(self, mark: str) -> bool:
        token = self._next()
        found = token is not None and token.kind == "mark" and token.text == mark
        self._at += found
        return found


def _is_prefix(name: str, given: Expression | None) -> bool:
    return given is None and name != "not"
