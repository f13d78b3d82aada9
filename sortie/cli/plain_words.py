"""Reads a command line that is plain, which most are, without the library that reads all others.

To load typer takes as long as the whole of some commands.

Rule 1: a line that is read here means the same to typer.
Rule 2: what is not certain of that is left to typer: help, mistakes, short options in one word.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import StrEnum
from functools import partial
from importlib import import_module
from inspect import Parameter, signature
from pathlib import Path
from types import NoneType
from typing import Any, get_args

from sortie.cli.arguments import grouped
from sortie.cli.commands import COMMANDS
from sortie.cli.parameters import Declaration, WrongUsage

_NUMBER = re.compile(r"[0-9]{1,15}", re.ASCII)
_UNDERSTOOD = {"metavar", "help", "show_default", "min", "max", "callback", "completes"}


class _NotPlain(Exception):
    """Typer has to read this line."""


def plain_command(words: Sequence[str]) -> Callable[[], object] | None:
    """Return the command that a line asks for, ready to be called; None where typer must read it.

    The command raises WrongUsage as it does itself.
    """
    if not words or words[0] not in COMMANDS:
        return None
    module, *_ = COMMANDS[words[0]]
    command = grouped(getattr(import_module(module), words[0]))
    try:
        return partial(command, **_given(signature(command).parameters, iter(words[1:])))
    except (_NotPlain, WrongUsage):
        return None


def _given(parameters: Mapping[str, Parameter], words: Iterator[str]) -> dict[str, object]:
    """Return a value for each parameter. Raises _NotPlain."""
    declared = {name: _declaration(parameter) for name, parameter in parameters.items()}
    options = {
        option: name for name, each in declared.items() for option in _option_names(name, each)
    }
    arguments = [name for name, each in declared.items() if each.kind == "argument"]
    given: dict[str, object] = {}
    for word in words:
        if word == "-" or not word.startswith("-"):
            if not arguments:
                raise _NotPlain
            name, text = arguments.pop(0), word
        else:
            option, equals, text = word.partition("=")
            name = options.get(option, "")
            if not name or (equals and not option.startswith("--")):
                raise _NotPlain
            if _type_of(parameters[name]) is bool:
                if equals:
                    raise _NotPlain
                given[name] = True
                continue
            text = text if equals else next(words, "-")
            if text.startswith("-"):
                raise _NotPlain
        given[name] = _value(_type_of(parameters[name]), text, declared[name].more)
    for name, parameter in parameters.items():
        if name not in given:
            if parameter.default is Parameter.empty:
                raise _NotPlain
            given[name] = parameter.default
    return given


def _declaration(parameter: Parameter) -> Declaration:
    for each in get_args(parameter.annotation)[1:]:
        if isinstance(each, Declaration) and each.more.keys() <= _UNDERSTOOD:
            return each
    raise _NotPlain


def _option_names(name: str, declared: Declaration) -> Sequence[str]:
    if declared.kind == "argument":
        return ()
    return declared.names or (f"--{name.replace('_', '-')}",)


def _type_of(parameter: Parameter) -> type:
    """Return the type of a parameter, which may be None besides. Raises _NotPlain."""
    annotated = get_args(parameter.annotation)[0]
    kinds = [kind for kind in get_args(annotated) or (annotated,) if kind is not NoneType]
    if len(kinds) == 1 and isinstance(kinds[0], type):
        return kinds[0]
    raise _NotPlain


def _value(kind: type, text: str, more: Mapping[str, Any]) -> object:
    """Return a word as what it stands for. Raises _NotPlain, and WrongUsage."""
    if not text:
        raise _NotPlain
    if kind is str or kind is Path:
        value = kind(text)
        return more["callback"](value) if "callback" in more else value
    if kind is int and _NUMBER.fullmatch(text):
        number = int(text)
        if more.get("min", number) <= number <= more.get("max", number):
            return number
    if issubclass(kind, StrEnum) and text in list(kind):
        return kind(text)
    raise _NotPlain
