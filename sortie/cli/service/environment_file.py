"""The file from which systemd takes a daemon's secrets.

Rule 1: nobody but its owner can read it.
Rule 2: one that is there is never changed, and only one that is as it was made here goes with the
unit.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from sortie.cli.service.unit import is_ours, marked
from sortie.model import SortieError

_ASSIGNMENT = re.compile(r"^\s*([A-Za-z_][A-Za-z0-9_]*)=(.*)$", re.MULTILINE)
_TAKEN = re.compile(r'[\\"`$]')  # as in a shell


def values_in(path: Path) -> Mapping[str, str]:
    """Return the variables that have a value in the file, which may not be there.

    Raises SortieError where it cannot be read, or others can.
    """
    try:
        status = path.lstat()
        if not stat.S_ISREG(status.st_mode):
            raise SortieError(f"{path} is no plain file; secrets are read from one only")
        if status.st_mode & 0o077:
            mode = stat.S_IMODE(status.st_mode)
            raise SortieError(
                f"{path} has mode {mode:04o}, so that others can read the secrets in it; say:"
                f" chmod 600 {path}"
            )
        text = path.read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        return {}
    except OSError as exc:
        raise SortieError(f"cannot read {path}: {exc.strerror}") from exc
    found = {name: _plain(value.strip()) for name, value in _ASSIGNMENT.findall(text)}
    return {name: value for name, value in found.items() if value}


def _plain(value: str) -> str:
    """Return a value without its quotes, see EnvironmentFile= in systemd.exec(5)."""
    if len(value) > 1 and value[0] == value[-1] == "'":
        return value[1:-1]
    if len(value) > 1 and value[0] == value[-1] == '"':
        value = value[1:-1]
    return re.sub(r"\\(.)", r"\1", value)


def make(path: Path, names: Sequence[str], known: Mapping[str, str]) -> tuple[str, ...]:
    """Make the file with a line for each name, and return the names whose values were known.

    A value that a line cannot hold is left out. Raises SortieError where it cannot be made.
    """
    lines = ["# Read by systemd, not by a shell: one NAME=value a line, nothing is expanded."]
    taken = []
    for name in names:
        value = known.get(name, "")
        if value and value.isprintable():
            escaped = _TAKEN.sub(lambda found: f"\\{found[0]}", value)
            lines.append(f'{name}="{escaped}"')
            taken.append(name)
        else:
            lines.append(f"#{name}=")
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
        with open(fd, "w", encoding="utf-8") as file:
            file.write(marked("\n".join(lines) + "\n"))
    except OSError as exc:
        raise SortieError(f"cannot write {path}: {exc.strerror}") from exc
    return tuple(taken)


def remove_untouched(path: Path) -> bool:
    """Remove the file where it is as it was made, and its directory where that is empty then.

    Return whether it is gone, as it is where it was never there.
    """
    try:
        if not is_ours(path.read_text(encoding="utf-8", errors="replace")):
            return False
        path.unlink()
    except FileNotFoundError:
        return True
    except OSError:
        return False
    with suppress(OSError):
        path.parent.rmdir()
    return True
