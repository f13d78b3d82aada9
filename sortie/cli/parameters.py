"""Arguments and options, as commands declare them beside their parameters."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

from msgspec import Struct

Completed = Literal["issue", "host", "topic"]
"""Kinds of names that a shell is offered."""


class Declaration(Struct, frozen=True, kw_only=True):
    """What the command line says of a parameter beside its name, its type and its default.

    ``names`` are an option's, the long one first; None is an argument's. ``check`` makes the value
    of a text, and raises WrongUsage. ``default`` is shown in the help where the parameter's own
    default does not say what holds.
    """

    names: tuple[str, ...] | None
    help: str = ""
    metavar: str | None = None
    least: int | None = None
    most: int | None = None
    check: Callable[[str], Any] | None = None
    completes: Completed | None = None
    default: str | None = None


class WrongUsage(Exception):
    """A command line that cannot be followed; ``parameter`` is what the complaint is about.

    A command raises it before it has done anything.
    """

    def __init__(self, message: str, *, parameter: str | None = None) -> None:
        super().__init__(f"argument {parameter}: {message}" if parameter else message)


def argument(**more: Any) -> Declaration:
    """Declare an argument, with fields of a Declaration."""
    return Declaration(names=None, **more)


def option(*names: str, **more: Any) -> Declaration:
    """Declare an option, with fields of a Declaration; without a name it is its parameter's."""
    return Declaration(names=names, **more)
