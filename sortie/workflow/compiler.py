"""Compile a prompt, and find what is wrong with it before it is rendered."""

from __future__ import annotations

import re
import time
from collections.abc import Collection, Iterator
from functools import lru_cache
from itertools import islice
from types import CodeType

from jinja2 import TemplateSyntaxError, nodes

from sortie.config.messages import nearest
from sortie.documents import Place, Text
from sortie.model import Problem
from sortie.workflow.go_templates import go_actions
from sortie.workflow.prompts import Prompt
from sortie.workflow.render_budget import RENDER_SECONDS
from sortie.workflow.sandbox import PromptEnvironment
from sortie.workflow.variables import PROMPT_VARIABLES, VARIABLE_FIELDS

_GO_ACTIONS = 100  # as many are reported; a person needs no more to see the point

MAX_TOKENS = 20_000
"""Words and signs inside a prompt's braces; more take too long to compile."""

CRASHES = (RecursionError, MemoryError, SyntaxError, ValueError, OverflowError)
"""What Jinja and Python raise, besides their own errors, for templates beyond all measure."""


@lru_cache(maxsize=8)
def compile_prompt(prompt: Prompt) -> CodeType:
    """Return a prompt's code. Raises TemplateSyntaxError or one of CRASHES."""
    environment = PromptEnvironment(time.monotonic() + RENDER_SECONDS)
    tree = environment.parse(prompt.template, filename=prompt.name)
    code = environment.compile(tree, filename=prompt.name)
    assert isinstance(code, CodeType)
    return code


def check_prompt(prompt: Prompt) -> tuple[Problem, ...]:
    """Return every problem of a prompt, with its place in the file."""
    lines = _PromptLines(prompt)
    if not prompt.source.strip():
        message = "there is no prompt below the front matter; a built-in one is used"
        return (lines.of_line(1, message, "warning"),)
    if actions := tuple(islice(go_actions(prompt.source), _GO_ACTIONS)):
        return tuple(
            lines.at(a.index, f"{a.written} is Go's syntax; Jinja's is {a.jinja}") for a in actions
        )
    environment = PromptEnvironment(time.monotonic() + RENDER_SECONDS)
    try:
        if line := too_long(environment, prompt.source):
            return (lines.of_line(line, f"more than {MAX_TOKENS:,} template tokens"),)
        tree = environment.parse(prompt.source)
        included = {name for name, _ in prompt.parts}
        problems = tuple(dict.fromkeys(_problems(tree, environment, lines, included)))
        if not problems:
            compile_prompt(prompt)
    except TemplateSyntaxError as exc:
        return (lines.of_line(exc.lineno, f"not a valid template: {exc.message}"),)
    except CRASHES:
        message = "cannot be compiled: it nests too deeply or holds too large a number"
        return (lines.of_line(1, message),)
    return problems


def too_long(environment: PromptEnvironment, source: str) -> int:
    """Return the line on which the template becomes too long, 0 if it does not."""
    tokens = (
        line for line, kind, _ in environment.lex(source) if kind not in ("data", "whitespace")
    )
    try:
        return next(islice(tokens, MAX_TOKENS, None), 0)
    except TemplateSyntaxError:
        return 0


class _PromptLines:
    """Makes problems of a prompt from places in its template."""

    def __init__(self, prompt: Prompt) -> None:
        self._prompt = prompt
        self._text = Text(prompt.path, prompt.source)

    def at(self, index: int, message: str) -> Problem:
        """Return a problem of what stands at an index."""
        place = self._text.place(index)
        return self._problem(place.line, place.column, message)

    def of_word(self, line: int, word: str, message: str) -> Problem:
        """Return a problem of a word, of which Jinja knows the line: its first place there."""
        found = re.search(rf"\b{re.escape(word)}\b", self._prompt.source.split("\n")[line - 1])
        return self._problem(line, found.start() + 1 if found else 1, message)

    def of_line(self, line: int, message: str, severity: str = "error") -> Problem:
        """Return a problem of a line as a whole."""
        return self._problem(line, 1, message, severity)

    def _problem(self, line: int, column: int, message: str, severity: str = "error") -> Problem:
        if line == 1:
            column += self._prompt.column - 1
        place = Place(source=self._prompt.path, line=self._prompt.line + line - 1, column=column)
        return place.problem(self._prompt.key, message, severity)


def _problems(
    tree: nodes.Template,
    environment: PromptEnvironment,
    lines: _PromptLines,
    included: Collection[str],
) -> Iterator[Problem]:
    own = {node.name for node in tree.find_all(nodes.Name) if node.ctx != "load"}
    own |= {node.name for node in tree.find_all(nodes.Macro)}
    own |= {"loop", "caller", "varargs", "kwargs", "self"}
    known = {*PROMPT_VARIABLES, *own, *environment.globals}
    for node in tree.find_all(nodes.Node):
        match node:
            case nodes.Name(name=name, ctx="load") if name not in known:
                message = f'there is no "{name}"; {nearest(name, PROMPT_VARIABLES)}'
                yield lines.of_word(node.lineno, name, message)
            case (
                nodes.Getattr(node=nodes.Name(name=owner), attr=name)
                | nodes.Getitem(node=nodes.Name(name=owner), arg=nodes.Const(value=str() as name))
            ) if owner not in own and owner in VARIABLE_FIELDS:
                if name not in VARIABLE_FIELDS[owner] and not hasattr(dict, name):
                    message = f'{owner} has no "{name}"; {nearest(name, VARIABLE_FIELDS[owner])}'
                    yield lines.of_word(node.lineno, name, message)
            case nodes.Filter(name=str() as name) if name not in environment.filters:
                message = f'there is no filter "{name}"; {nearest(name, environment.filters)}'
                yield lines.of_word(node.lineno, name, message)
            case nodes.Test(name=name) if name not in environment.tests:
                message = f'there is no test "{name}"; {nearest(name, environment.tests)}'
                yield lines.of_word(node.lineno, name, message)
            case nodes.Include(template=nodes.Const(value=str() as name)):
                if name not in included:
                    message = f'"{name}" is neither a prompt of this file nor a file beside it'
                    yield lines.of_line(node.lineno, message)
            case nodes.Include() | nodes.Import() | nodes.FromImport() | nodes.Extends():
                message = "a prompt can only include another one, by its name in quotes"
                yield lines.of_line(node.lineno, message)
