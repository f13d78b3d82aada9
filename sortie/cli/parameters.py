"""Arguments and options of commands, as they are declared where a command is written.

They say what typer's say, and can be read without it: to load it takes as long as many a command.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from msgspec import Struct, field


class Declaration(Struct, frozen=True):
    """What is said of a parameter beside its name, its type and its default.

    ``names`` are an option's; without any it is called like its parameter. ``more`` is what typer
    takes by these names.
    """

    kind: Literal["argument", "option"]
    names: tuple[str, ...] = ()
    more: Mapping[str, Any] = field(default_factory=dict)


class WrongUsage(Exception):
    """A command line that contradicts itself; ``parameter`` is what the complaint is about.

    A command raises it before it has done anything.
    """

    def __init__(self, message: str, *, parameter: str | None = None) -> None:
        super().__init__(message)
        self.parameter = parameter


def argument(**more: Any) -> Declaration:
    """Declare an argument, with what ``typer.Argument`` takes."""
    return Declaration("argument", (), more)


def option(*names: str, **more: Any) -> Declaration:
    """Declare an option, with what ``typer.Option`` takes."""
    return Declaration("option", names, more)
