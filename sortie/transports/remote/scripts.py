"""Writes shell scripts and questions for remote hosts; pure but for the texts in ``sh/``.

Rule 1: every byte but NUL arrives as it is, whatever it means to a shell.
Rule 2: a script goes to ``/bin/sh`` on its stdin, so the login shell sees SHELL and nothing else,
and nobody sees anything in a list of processes; unless secrets are delivered inline.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from functools import cache
from importlib.resources import files

from sortie.model import TransportError

SHELL = "exec /bin/sh"
"""The command of every channel but the inline ones: it means the same to every login shell."""

_PRINTED = 256  # bytes in a line


def quoted(text: str) -> bytes:
    """Return text as one word of a POSIX shell."""
    return b"'" + os.fsencode(text).replace(b"'", b"'\\''") + b"'"


def quoted_anywhere(script: bytes) -> bytes:
    """Return a script as one word of a login shell, also of fish.

    There a backslash means something within quotes as well, so none stands there.
    """
    return b"'" + re.sub(rb"['\\]", rb"'\\\g<0>'", script) + b"'"


def assignment(name: str, value: str) -> bytes:
    """Return the line that gives a shell's variable a value. Raises TransportError."""
    return b"%s=%s" % (name.encode(), word(value))


def assignments(given: Mapping[str, str]) -> list[bytes]:
    """Return the lines that give a shell's variables their values. Raises TransportError."""
    return [assignment(name, value) for name, value in given.items()]


def word(value: str) -> bytes:
    """Return text as one word of a POSIX shell. Raises TransportError for what cannot be one."""
    if not encodable(value):
        raise TransportError(f"{shown(value)} holds a NUL character or is not valid Unicode")
    return quoted(value)


def printing(content: bytes) -> bytes:
    """Return the lines that print some bytes, whatever they are."""
    lines = [content[at : at + _PRINTED] for at in range(0, len(content), _PRINTED)]
    return b"\n".join(
        [b"printf '%s'" % b"".join(b"\\%03o" % byte for byte in line) for line in lines] or [b":"]
    )


def words(given: Iterable[str]) -> bytes:
    """Return texts as words of a POSIX shell. Raises TransportError for what cannot be one."""
    return b" ".join(map(word, given))


LEAVE = b"trap - EXIT\n"
"""What a shell that answers questions is told before its stdin ends, where it works on none."""


def shell_script(nonce: str) -> bytes:
    """Return the script that begins a shell which answers questions, until its stdin ends."""
    return block(assignment("nonce", nonce), text("paths"), text("question"))


def question_script(body: Iterable[bytes]) -> bytes:
    """Return what such a shell is asked: some lines that say yes or no."""
    told = b'trap \'printf "\\001%s end %s\\n" "$nonce" $?\' EXIT'
    lines = b"\n".join([told, *body])
    # The one before has ended, and is a zombie until it is waited for.
    return b"wait $!\n(\n%s\n) </dev/null 9>&- &\n" % lines


def lent_script(script: bytes) -> bytes:
    """Return what such a shell is told to run a script, which has the shell's streams until it says
    its end. Where the script fails, the shell ends instead: it may have lost output."""
    told = b"{ printf '\\001%s end 0\\n' \"$nonce\"; } || exit"
    return b"wait $!\n(\n%s\n%s) && %s\n" % (text("lent"), script, told)


def standing_question(nonce: str, body: Iterable[bytes]) -> bytes:
    """Return a script that answers yes, and goes on as long as its session lives, or no."""
    return block(assignment("nonce", nonce), text("standing_question"), *body)


def processes_script(nonce: str) -> bytes:
    """Return the script that shows processes and signals them."""
    return block(assignment("nonce", nonce), *texts("stat_of", "newest", "processes"))


@cache
def text(name: str) -> bytes:
    """Return one of the texts in ``sh/``, without its comments and indentation.

    So no text may hold a word of several lines.
    """
    lines = files(__package__).joinpath("sh", f"{name}.sh").read_bytes().splitlines()
    stripped = (line.strip() for line in lines)
    return b"\n".join(line for line in stripped if line and not line.startswith(b"#"))


def texts(*names: str) -> list[bytes]:
    """Return some of the texts in ``sh/``."""
    return [text(name) for name in names]


def block(*lines: bytes) -> bytes:
    """Make one command of a script, so that the shell has read it all when it begins."""
    return b"{\n" + b"\n".join(line for line in lines if line) + b"\n}\n"


def encodable(value: str) -> bool:
    """Tell whether a text can be handed to a program."""
    try:
        return b"\0" not in os.fsencode(value)
    except UnicodeEncodeError:
        return False


def shown(word: str) -> str:
    """Return the beginning of a text for a message."""
    return repr(word[:80])
