"""Translate the statements of Go's templates: conditions, loops and variables; pure."""

from __future__ import annotations

import re
from collections.abc import Iterator

from msgspec import Struct
from msgspec.structs import replace

from sortie.workflow.go_expressions import REACTIONS, GoScope, expression
from sortie.workflow.go_functions import Expression, GoKind, NotGo
from sortie.workflow.variables import PROMPT_VARIABLES, VARIABLE_FIELDS

_SET = re.compile(r"\$(\w+)\s*(:?=)\s*(.+)", re.DOTALL)
_RANGE = re.compile(r"(?:\$(\w+)\s*(?:,\s*\$(\w+)\s*)?:=\s*)?(.+)", re.DOTALL)
_ASSIGNED = re.compile(r"\$(\w+)\s*=(?!=)")
_WORDS = """and block call caller cycler dict elif else extends false False filter for from if
import in include is joiner kwargs loop macro namespace none None not or range raw recursive scoped
self set true True varargs with"""
_RESERVED = PROMPT_VARIABLES | frozenset(_WORDS.split())


class _Block(Struct, frozen=True):
    """What is open: the scope in it, the one around it, and how Jinja ends it."""

    scope: GoScope
    around: GoScope
    end: str
    has_else: bool = False


class GoBlocks:
    """The blocks that are open at a place of a template."""

    def __init__(self, template: str, is_go_alone: bool) -> None:
        self._open: list[_Block] = []
        self._root = GoScope(is_go_alone=is_go_alone, taken=_RESERVED)
        self._alone = is_go_alone
        self._assigned = frozenset(_ASSIGNED.findall(template))
        self._faults: list[str] = []

    def missing(self) -> Iterator[str]:
        """Yield what ends the blocks that are still open."""
        while self._open:
            yield f"{{% {self._open.pop().end} %}}"

    def understood(self, content: str) -> tuple[str | None, Expression | None, list[str]]:
        """Return the statement in Jinja that an action is, or its expression, and what it lacks.

        Returns neither where nothing can be made of it.
        """
        self._faults = []
        try:
            statement = self._statement(content)
            return statement, self._expression(content) if statement is None else None, self._faults
        except NotGo as error:
            return None, None, [*self._faults, str(error) or "is not understood"]

    @property
    def is_dead(self) -> bool:
        """Whether what stands here is never rendered."""
        return self._scope.is_dead

    @property
    def _scope(self) -> GoScope:
        return self._open[-1].scope if self._open else self._root

    def _expression(self, written: str, scope: GoScope | None = None) -> Expression:
        return expression(written, scope or self._scope, self._faults)

    def _statement(self, content: str) -> str | None:
        """Return what a statement is in Jinja; None for a pipeline. Raises NotGo."""
        word, rest = _first_word(content, self._alone)
        match word:
            case "end" if not rest:
                return self._close()
            case "else":
                return self._otherwise(rest)
            case "if" | "with" | "range" if rest and (
                self._alone or not (word == "range" and rest[0] == "(")
            ):
                return self._opened(word, "if", rest)
            case "define" | "block" if self._alone:
                return self._opened(word, "if", rest)
            case "break" | "continue" | "template" if self._alone:
                raise NotGo(f"{word} has no counterpart")
        found = _SET.fullmatch(content)
        return None if found is None else self._set(*found.groups())

    def _set(self, name: str, sign: str, pipeline: str) -> str:
        value = self._expression(pipeline).value()
        if sign == "=" and name in self._scope.names:
            return f"{{% set {self._scope.names[name].text} = {value.text} %}}"
        if self._faults and self._alone:
            raise NotGo(self._faults[0])
        scope, statement = self._declared(self._scope, name, value)
        if self._open:
            self._open[-1] = replace(self._open[-1], scope=scope)
        else:
            self._root = scope
        return statement

    def _declared(self, scope: GoScope, name: str, value: Expression) -> tuple[GoScope, str]:
        """Return a scope with one more variable, and what sets it.

        A variable that is assigned again, perhaps in a loop, is kept in a namespace.
        """
        jinja, text, kept = _fresh(name, scope.taken), value.text, value.path
        if name in self._assigned:
            text, kept = f"namespace(value={text})", None
        shown = f"{jinja}.value" if name in self._assigned else jinja
        bound = Expression(shown, is_go=True, kind=value.kind, path=kept)
        names = {**scope.names, name: bound}
        scope = replace(scope, names=names, taken=scope.taken | {jinja})
        return scope, f"{{% set {jinja} = {text} %}}"

    def _opened(self, word: str, jinja: str, rest: str, around: GoScope | None = None) -> str:
        """Open a block; one that cannot be had is there without ever being rendered."""
        around = around or self._scope
        made, scope, refusal = "", around, None
        try:
            if word in ("define", "block"):
                raise NotGo(f"{word} has no counterpart")
            made, scope = (
                self._loop(rest, around)
                if word == "range"
                else self._branch(jinja, rest, around, is_with=word == "with")
            )
        except NotGo as error:
            refusal = error
        end = "endfor" if word == "range" else "endif"
        if self._alone and (refusal or self._faults):
            self._faults += [str(refusal) or "is not understood"] if refusal else []
            made = "{% for item in [] %}" if word == "range" else f"{{% {jinja} false %}}"
            scope = replace(around, is_dead=True)
            refusal = None
        self._open.append(_Block(scope, around, end))
        if refusal:
            raise refusal
        return made

    def _close(self) -> str:
        if self._open:
            return f"{{% {self._open.pop().end} %}}"
        if self._alone:
            raise NotGo("ends nothing")
        return "{% endif %} or {% endfor %}"

    def _otherwise(self, rest: str) -> str:
        if self._alone and not (self._open and not self._open[-1].has_else):
            raise NotGo("stands in no block")
        block = self._open.pop() if self._open else _Block(self._root, self._root, "endif")
        word, pipeline = _first_word(rest, self._alone)
        if word in ("if", "with") and pipeline and block.end == "endif":
            return self._opened(word, "elif", pipeline, block.around)
        if rest:
            self._open.append(block)
            raise NotGo
        self._open.append(replace(block, scope=block.around, has_else=True))
        return "{% else %}"

    def _branch(
        self, jinja: str, rest: str, around: GoScope, *, is_with: bool
    ) -> tuple[str, GoScope]:
        """Return a condition; inside of ``with`` the dot is what it is about."""
        bound = _SET.fullmatch(rest)
        about = self._expression(bound[3] if bound else rest, around)
        scope, before = around, ""
        if bound and jinja == "elif":
            raise NotGo("a variable is declared in it")
        if bound:
            scope, before = self._declared(around, bound[1], about.value())
            about = scope.names[bound[1]]
        scope = replace(scope, true=scope.true | {about.text})
        if is_with:
            kind = GoKind.ANY if about.kind is GoKind.MAYBE_TEXT else about.kind
            scope = replace(scope, dot=replace(about, kind=kind, is_go=True))
        return f"{before}{{% {jinja} {about.text} %}}", scope

    def _loop(self, rest: str, around: GoScope) -> tuple[str, GoScope]:
        parts = _RANGE.fullmatch(rest)
        if parts is None:
            raise NotGo
        first, second, pipeline = parts.groups()
        items = self._expression(pipeline, around)
        if items.path in REACTIONS:
            raise NotGo(f".{items.path} is no list here; reaction.text says what has happened")
        if items.text in VARIABLE_FIELDS:
            raise NotGo("is no list here")
        item, index = (second, first) if second else (first, None)
        text = f"range({items.text})" if items.kind is GoKind.NUMBER else items.text
        is_kept = item in self._assigned
        name = _fresh(item if item and item != "_" and not is_kept else "item", around.taken)
        path = f"{items.path}[]" if items.path else None
        dot = Expression(name, is_go=True, kind=_kind_of(items), path=path)
        scope = replace(around, dot=dot, taken=around.taken | {name})
        made = f"{{% for {name} in {text} %}}"
        if is_kept and item:
            scope, statement = self._declared(scope, item, dot)
            made += statement
        elif item:
            scope = replace(scope, names={**scope.names, item: dot})
        if index and index != "_":
            counted = Expression("loop.index0", kind=GoKind.NUMBER)
            scope, statement = self._declared(scope, index, counted)
            made += statement
        return made, scope


def _kind_of(items: Expression) -> GoKind:
    return GoKind.NUMBER if items.kind is GoKind.NUMBER else GoKind.ANY


def _first_word(content: str, is_go_alone: bool) -> tuple[str, str]:
    word = re.match(r"\w*" if is_go_alone else r"\S*", content)
    first = word[0] if word else ""
    return first, content[len(first) :].strip()


def _fresh(name: str, taken: frozenset[str]) -> str:
    """Return a name that means nothing else."""
    return next(
        each
        for number in range(1, len(taken) + 2)
        if (each := name if number == 1 else f"{name}{number}") not in taken
    )
