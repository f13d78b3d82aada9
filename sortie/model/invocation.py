"""How a prompt reaches an agent's program: as its last argument, or through stdin if too long."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from sortie.model.hiding import repr_without
from sortie.model.texts import UNUSABLE

PROMPT_ARGUMENT_LIMIT = 96 * 1024
"""Bytes of UTF-8 that a prompt on the command line may have; Linux refuses 128 KiB and more."""


class Invocation(Struct, frozen=True, kw_only=True):
    """The arguments behind the program's name, and its stdin; None is an empty stdin."""

    arguments: tuple[str, ...]
    stdin: bytes | None = None

    __repr__ = repr_without("arguments", "stdin")


def prompt_invocation(arguments: Iterable[str], prompt: str, *, separated: bool) -> Invocation:
    """Return how to hand over a prompt behind other arguments.

    ``--`` stands before it where it begins with a dash, or always where ``separated``. What no
    argument can hold (NUL, lone surrogates) is replaced.
    """
    encoded = UNUSABLE.sub("\ufffd", prompt).encode()
    if len(encoded) > PROMPT_ARGUMENT_LIMIT:
        return Invocation(arguments=tuple(arguments), stdin=encoded)
    separator = ("--",) if separated or encoded.startswith(b"-") else ()
    return Invocation(arguments=(*arguments, *separator, encoded.decode()))
