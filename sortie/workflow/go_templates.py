"""Recognize the template syntax of Go and show how Jinja writes it."""

from __future__ import annotations

import re
from collections.abc import Iterator

from msgspec import Struct
from msgspec.structs import replace

from sortie.workflow.go_expressions import GoScope, expression
from sortie.workflow.go_functions import NotGo

_OPENING = re.compile(r"{{|{#|{%[-+]?\s*raw\s*-?%}")
_END_OF_RAW = re.compile(r"{%[-+]?\s*endraw\b")
_ACTION = re.compile(r"{{(-?)\s*(.*?)\s*(-?)}}\Z", re.DOTALL)
_COMMENT = re.compile(r"{{-?\s*/\*.*?\*/", re.DOTALL)
_SET = re.compile(r"\$(\w+)\s*:?=\s*(.+)", re.DOTALL)
_RANGE = re.compile(r"(?:\$(\w+)\s*(?:,\s*\$(\w+)\s*)?:=\s*)?(.+)", re.DOTALL)
_ITEM = "item"
_SHOWN = 120


class GoAction(Struct, frozen=True, kw_only=True):
    """A Go action at ``index`` of the template, and its like in Jinja."""

    index: int
    written: str
    jinja: str


def go_actions(template: str) -> Iterator[GoAction]:
    """Yield what is written as Go writes it."""
    end, blocks = 0, _OpenBlocks()
    while found := _OPENING.search(template, end):
        end = _end(template, found)
        if end < 0:
            return  # it never closes, which Jinja will say better
        written = template[found.start() : end]
        if found[0] == "{{" and (jinja := _jinja(written, blocks)):
            yield GoAction(index=found.start(), written=_shown(written), jinja=jinja)


def _shown(written: str) -> str:
    """Return an action, or a comment, on one line of a message."""
    line = " ".join(written.split())
    return line if len(line) <= _SHOWN else f"{line[: _SHOWN - 1]}…"


def _end(template: str, opening: re.Match[str]) -> int:
    """Return where what is opened has ended, -1 where it does not end."""
    if opening[0] in ("{{", "{#"):
        comment = _COMMENT.match(template, opening.start())
        begin = opening.end() if comment is None else comment.end()
        closing = template.find("}}" if opening[0] == "{{" else "#}", begin)
        return closing + 2 if closing >= 0 else -1
    found = _END_OF_RAW.search(template, opening.end())
    return found.end() if found else -1


def _jinja(written: str, blocks: _OpenBlocks) -> str | None:
    """Return an action as Jinja writes it, with its whitespace marks; None where it is not Go."""
    action = _ACTION.match(written)
    if action is None or not action[2]:
        return None
    left, content, right = action.groups()
    if content.startswith("/*") and content.endswith("*/"):
        text = _shown(content[2:-2].replace("#}", "# }"))
        return f"{{#{left} {text} {right}#}}"
    try:
        statement = blocks.statement(content)
        if statement is not None:
            return _marked(statement, left, right)
        found = expression(content, blocks.scope)
    except NotGo:
        return None
    return f"{{{{{left} {found.text} {right}}}}}" if found.is_go else None


def _marked(statements: str, left: str, right: str) -> str:
    """Return statements with whitespace marks before and behind them."""
    return f"{{%{left}{statements.removeprefix('{%').removesuffix('%}')}{right}%}}"


class _Block(Struct, frozen=True):
    """What is open: the scope in it, the one around it, and how Jinja ends it."""

    scope: GoScope
    around: GoScope
    end: str


class _OpenBlocks:
    """The blocks that are open at a place of a template."""

    def __init__(self) -> None:
        self._open: list[_Block] = []
        self._root = GoScope()

    @property
    def scope(self) -> GoScope:
        """What names mean here."""
        return self._open[-1].scope if self._open else self._root

    def statement(self, content: str) -> str | None:
        """Return what a statement is in Jinja; None for a pipeline. Raises NotGo."""
        word, _, rest = " ".join(content.split()).partition(" ")
        match word:
            case "end" if not rest:
                return self._close()
            case "else":
                return self._otherwise(rest)
            case "if" | "with" | "range" if rest and not (word == "range" and rest[0] == "("):
                return self._opened(word, rest)
        if content.startswith("$") and (found := _SET.fullmatch(content)):
            value = expression(found[2], self.scope)
            self._bind({found[1]: found[1]})
            return f"{{% set {found[1]} = {value.text} %}}"
        return None

    def _opened(self, word: str, rest: str) -> str:
        opens = {"if": self._branch, "with": self._with}
        try:
            return opens[word]("if", rest) if word in opens else self._loop(rest)
        except NotGo:  # its end will come all the same
            end = "endif" if word in opens else "endfor"
            self._open.append(_Block(self.scope, self.scope, end))
            raise

    def _close(self) -> str:
        if not self._open:
            return "{% endif %} or {% endfor %}"
        return f"{{% {self._open.pop().end} %}}"

    def _otherwise(self, rest: str) -> str:
        around = self._open[-1].around if self._open else self._root
        end = self._open.pop().end if self._open else "endif"
        self._open.append(_Block(around, around, end))
        word, _, pipeline = rest.partition(" ")
        if not rest:
            return "{% else %}"
        self._open.pop()
        if word == "if" and pipeline:
            return self._branch("elif", pipeline)
        if word == "with" and pipeline:
            return self._with("elif", pipeline)
        raise NotGo

    def _branch(self, word: str, pipeline: str) -> str:
        condition = expression(pipeline, self.scope)
        self._open.append(_Block(self.scope, self.scope, "endif"))
        return f"{{% {word} {condition.text} %}}"

    def _with(self, word: str, rest: str) -> str:
        """Return the condition that ``with`` is; inside, the dot is what it is about."""
        around, bound = self.scope, _SET.fullmatch(rest)
        about = expression(bound[2] if bound else rest, around)
        names = {**around.names, **({bound[1]: about.text} if bound else {})}
        self._open.append(_Block(GoScope(_whole(about.text), names), around, "endif"))
        return f"{{% {word} {about.text} %}}"

    def _loop(self, rest: str) -> str:
        around, parts = self.scope, _RANGE.fullmatch(rest)
        if parts is None:
            raise NotGo
        first, second, pipeline = parts.groups()
        items = expression(pipeline, around)
        item, index = (second, first) if second else (first, None)
        depth = sum(block.end == "endfor" for block in self._open)
        name = item if item and item != "_" else _ITEM + (str(depth + 1) if depth else "")
        given = [each for each in (item, index) if each]
        names = {**around.names, **dict(zip(given, given, strict=True))}
        self._open.append(_Block(GoScope(name, names), around, "endfor"))
        counted = "" if index in (None, "_") else f"{{% set {index} = loop.index0 %}}"
        return f"{{% for {name} in {items.text} %}}{counted}"

    def _bind(self, more: dict[str, str]) -> None:
        scope = replace(self.scope, names={**self.scope.names, **more})
        if self._open:
            self._open[-1] = replace(self._open[-1], scope=scope)
        else:
            self._root = scope


def _whole(text: str) -> str:
    """Return an expression of which fields can be asked."""
    return text if re.fullmatch(r"[\w.]+", text) else f"({text})"
