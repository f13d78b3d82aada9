"""What commands print: results on stdout, everything about them on stderr.

Rule 1: a text from outside cannot act on the terminal, nor pass for markup.
Rule 2: output to a pipe is never cut to a width.
"""

from __future__ import annotations

import contextlib
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import RenderableType

    from sortie.model import Problem

Json = str | int | float | bool | None | Sequence["Json"] | Mapping[str, "Json"]

EXIT_FAILURE = 1

UNLIMITED = 100_000
"""Columns that no line needs."""

# Control characters, surrogates, and those that reorder the text around them.
_ACTING = re.compile(
    "[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)


class Format(StrEnum):
    """How a result is printed: for people or for programs."""

    TEXT = "text"
    JSON = "json"


class ReaderGone(Exception):
    """The reader of stdout has closed it."""


class OutputFailed(Exception):
    """Stdout cannot be written; the text says why."""


def ended(command: Callable[[], int]) -> int:
    """Run a command and return its exit code, or that of a failure where stdout fails."""
    try:
        code = command()
        finish_output()
    except ReaderGone:
        return EXIT_FAILURE
    except OutputFailed as error:
        complain(str(error))
        return EXIT_FAILURE
    return code


def visible(text: str, keep: str = "") -> str:
    """Return a text with every character that a terminal acts on as an escape, but for ``keep``."""

    def escaped(found: re.Match[str]) -> str:
        code = ord(found[0])
        if found[0] in keep:
            return found[0]
        return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"

    return _ACTING.sub(escaped, text)


def one_line(text: str) -> str:
    """Return a text as one visible line."""
    return visible(re.sub(r"[\t\r\n]+", " ", text)).strip()


def emit(text: str) -> None:
    """Write to stdout at once. Raises ReaderGone, and OutputFailed where it cannot be written."""
    if sys.stdout is not None:
        sys.stdout.write(text)
        sys.stdout.flush()


def finish_output() -> None:
    """Write what libraries left in the buffer; raises as ``emit`` does."""
    emit("")


def emit_line(text: str) -> None:
    """Write one line of a result."""
    emit(f"{one_line(text)}\n")


def emit_json(value: Json) -> None:
    """Write a result for programs, in ASCII."""
    import json

    emit(json.dumps(value, indent=2) + "\n")


def emit_rich(*parts: RenderableType) -> None:
    """Write what rich lays out; on a terminal as wide as that is."""
    emit(laid_out(*parts, width=columns()))


def columns() -> int:
    """Return how wide a line may be: as wide as the terminal, or without a limit."""
    import shutil

    return shutil.get_terminal_size().columns if is_terminal() else UNLIMITED


def laid_out(*parts: RenderableType, width: int) -> str:
    """Return what rich makes of something, with colours where stdout is a terminal."""
    from io import StringIO

    from rich.console import Console

    text = StringIO()
    console = Console(
        file=text,
        force_terminal=is_terminal(),
        width=width,
        markup=False,
        highlight=False,
        emoji=False,
    )
    for part in parts:
        console.print(part)
    return text.getvalue()


def is_terminal() -> bool:
    """Tell whether stdout is a terminal."""
    return sys.stdout is not None and sys.stdout.isatty()


def note(text: str) -> None:
    """Say something about a result, on stderr."""
    _write_error(f"{one_line(text)}\n")


def complain(text: str) -> None:
    """Say what failed, as one line on stderr."""
    note(f"sortie: {text}")


def tell_problem(problem: Problem) -> None:
    """Say what is wrong in a file, as one line on stderr."""
    note(str(problem))


def _write_error(text: str) -> None:
    with contextlib.suppress(OSError, ValueError):
        if sys.stderr is not None:
            sys.stderr.write(text)
            sys.stderr.flush()
