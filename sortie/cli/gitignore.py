"""Keep what a daemon writes beside its workflow file out of git."""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence
from pathlib import Path

from sortie.model import SortieError

IGNORED = (".sortie.db*", ".sortie-tracker-*", "sortie.env")
"""The database with its token file and locks, the locks of the file tracker, and secrets."""

_HEADING = "# What Sortie keeps here"


def ignore_in_git(directory: Path, patterns: Sequence[str]) -> bool:
    """Have a directory's ``.gitignore`` hold these lines; return whether any was missing.

    Makes the file or appends to it; what stands in it stays. Raises SortieError.
    """
    path = directory / ".gitignore"
    try:
        added = _append_missing(path, patterns)
    except OSError as error:
        raise SortieError(
            f"cannot extend {path}: {error.strerror}; have git ignore {', '.join(patterns)} there"
        ) from error
    return added


def _append_missing(path: Path, patterns: Sequence[str]) -> bool:
    # A link is not followed: git follows none of this name either.
    flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    with open(os.open(path, flags, 0o666), "r+b", buffering=0) as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise OSError(0, "it is not a regular file")
        present = file.readall()
        known = {line.strip() for line in present.decode(errors="replace").splitlines()}
        missing = [pattern for pattern in patterns if pattern not in known]
        if missing:
            before = [""] if present and not present.endswith(b"\n") else []
            added = "\n".join([*before, _HEADING, *missing, ""])
            file.write(added.encode())
        return bool(missing)
