"""Read a text file that a person named, whatever it turns out to be."""

from __future__ import annotations

import os
import re
import stat
from pathlib import Path

from sortie.documents import Place, Text
from sortie.model import Problem
from sortie.resources import shortage_behind
from sortie.resources.descriptors import own

MAX_BYTES = 1 << 20
"""No more than this is read of a WORKFLOW.md or an env file."""

_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f]")


class FileRefused(Exception):
    """A file cannot be read, or is no text that can be used."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(str(problem))
        self.problem = problem


def read_text(path: Path, source: str, content: bytes | None = None) -> str:
    """Return a file's text with ``\\n`` as its only line end and without a byte order mark.

    ``source`` names the file in problems; ``content`` is its content where it was read already.
    Raises FileRefused for what is no regular file, cannot
    be read, is larger than MAX_BYTES, is not UTF-8 or holds control characters; raises Shortage.
    """
    raw = _read(path, source) if content is None else content
    if len(raw) > MAX_BYTES:
        raise _refused(source, "is larger than 1 MiB")
    raw = raw.removeprefix(b"\xef\xbb\xbf")
    try:
        text = raw.decode()
    except UnicodeDecodeError as exc:
        message = f"is not UTF-8: byte 0x{raw[exc.start]:02x}"
        raise _refused(source, message, raw[: exc.start].decode()) from exc
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    if found := _CONTROL.search(text):
        message = f"holds the control character U+{ord(found[0]):04X}"
        raise _refused(source, message, text[: found.start()])
    return text


def _refused(source: str, message: str, before: str | None = None) -> FileRefused:
    """Return the refusal at the end of the text ``before``, or of the file as a whole."""
    if before is None:
        return FileRefused(Place(source=source).problem("", message))
    return FileRefused(Text(source, before).place(len(before)).problem("", message))


def _read(path: Path, source: str) -> bytes:
    # O_NONBLOCK: opening a FIFO must not wait for a writer.
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
    try:
        with own(os.open(path, flags), "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise _refused(source, "is not a regular file")
            raw = file.read(MAX_BYTES + 1)
    except FileNotFoundError as exc:
        raise _refused(source, "there is no such file") from exc
    except IsADirectoryError as exc:
        raise _refused(source, "is a directory, not a file") from exc
    except OSError as exc:
        shortage = shortage_behind(exc)
        if shortage is not None:
            raise shortage from exc
        raise _refused(source, f"cannot be read: {exc.strerror or exc}") from exc
    return raw
