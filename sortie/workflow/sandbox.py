"""The Jinja environment of prompts: Jinja's own sandbox, strict, and with an end.

Rule: every block of a template asks for the time when it begins, so neither loops nor macros that
call themselves go on beyond the deadline; Jinja has no other way to repeat something.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Any

from jinja2 import StrictUndefined, nodes
from jinja2.compiler import CodeGenerator, Frame
from jinja2.runtime import Context
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.utils import missing

from sortie.config.messages import nearest
from sortie.workflow.prompts import VARIABLES, Fields

TEXT_LIMIT = 4 << 20
"""Bytes that a prompt may have."""

RENDER_SECONDS = 5.0

TOO_LONG = f"takes too long to render; it has {RENDER_SECONDS:g} s"
TOO_MUCH = f"makes too much text; a prompt may have {TEXT_LIMIT >> 20} MiB"

_LARGEST_BITS = 10_000
_LEFT_OUT = frozenset({"attr", "random", "urlize", "xmlattr"})
_GLOBALS = ("range", "dict", "cycler", "joiner", "namespace")


class Exhausted(Exception):
    """A rendering took too long or made too much text."""


class _Missing(StrictUndefined):
    """A name that does not exist; says which do."""

    __slots__ = ()

    @property
    def _undefined_message(self) -> str:
        name, owner = self._undefined_name, self._undefined_obj
        if self._undefined_hint or not isinstance(name, str):
            return super()._undefined_message
        if owner is missing:
            return f'there is no "{name}"; {nearest(name, VARIABLES)}'
        if isinstance(owner, Fields):
            return f'{owner.called()} has no "{name}"; {nearest(name, owner)}'
        return super()._undefined_message


class _TimedCode(CodeGenerator):
    """Has every block of a template begin with a look at the clock."""

    def blockvisit(self, nodes: Iterable[nodes.Node], frame: Frame) -> None:
        """Write a block."""
        self.writeline("environment.check_time()")
        super().blockvisit(nodes, frame)


class PromptEnvironment(ImmutableSandboxedEnvironment):
    """Compiles prompts, and renders one of them until ``deadline`` of ``time.monotonic``."""

    code_generator_class = _TimedCode
    intercepted_binops = frozenset({"*", "**"})

    def __init__(self, deadline: float) -> None:
        super().__init__(undefined=_Missing, autoescape=False, optimized=False)
        self._deadline = deadline
        self.globals = {name: self.globals[name] for name in _GLOBALS}
        self.filters = {n: made for n, made in self.filters.items() if n not in _LEFT_OUT}

    def check_time(self) -> None:
        """Raise Exhausted after the deadline."""
        if time.monotonic() > self._deadline:
            raise Exhausted(TOO_LONG)

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        """Multiply or raise to a power on behalf of a template, unless much comes of it."""
        match operator, left, right:
            case "**", int(), int() if left.bit_length() * abs(right) > _LARGEST_BITS:
                raise Exhausted("a power is too large for a prompt")
            case "*", int(), int() if left.bit_length() + right.bit_length() > _LARGEST_BITS:
                raise Exhausted("a product is too large for a prompt")
            case "*", (str() | list() | tuple()), int() if len(left) * right > TEXT_LIMIT:
                raise Exhausted(TOO_MUCH)
            case "*", int(), (str() | list() | tuple()) if len(right) * left > TEXT_LIMIT:
                raise Exhausted(TOO_MUCH)
        return super().call_binop(context, operator, left, right)
