"""Finds programs the way a shell does, and then beside the running interpreter."""

from __future__ import annotations

import os
import stat
import sys

from sortie.model import ProgramNotFound, TransportError
from sortie.resources import shortage_behind


def find_program(name: str, path: str) -> str:
    """Return the absolute path of an executable, looked up on ``path`` unless it has a slash.

    Raises ProgramNotFound saying what was looked for and where. Relative entries of ``path`` are
    passed over, so that no workspace can put its own program in another's place.
    Raises TransportError where a shortage leaves it unknown.
    """
    return _find(name, _directories(path))


def resolve_program(name: str, path: str) -> str:
    """Do as ``find_program``; a plain name may also stand beside the running interpreter.

    That is where an installation that is not on the PATH keeps its own console scripts.
    """
    return _find(name, [*_directories(path), os.path.dirname(sys.executable)])


def _directories(path: str) -> list[str]:
    return [entry for entry in path.split(os.pathsep) if os.path.isabs(entry)]


def _find(name: str, directories: list[str]) -> str:
    if not name or "\0" in name:
        raise ProgramNotFound(f"there is no program with the name {name!r}")
    if os.sep in name:
        program = os.path.abspath(name)
        flaw = _flaw(program)
        if flaw is not None:
            raise ProgramNotFound(f"could not use the program {program}: {flaw}")
        return program
    flaws: list[str] = []
    for directory in directories:
        program = os.path.join(directory, name)
        flaw = _flaw(program)
        if flaw is None:
            return program
        if flaw != _MISSING:
            flaws.append(f"{program}: {flaw}")
    seen = f" ({'; '.join(flaws)})" if flaws else ""
    raise ProgramNotFound(
        f"could not find the program {name!r}{seen};"
        f" looked in {', '.join(dict.fromkeys(directories)) or 'no directory'}"
    )


_MISSING = "it does not exist"


def _flaw(program: str) -> str | None:
    """Say why a file cannot be executed, or None."""
    try:
        mode = os.stat(program).st_mode
    except (FileNotFoundError, NotADirectoryError):
        return _MISSING
    except (OSError, ValueError) as exc:
        shortage = shortage_behind(exc)
        if shortage is not None:
            raise TransportError(f"could not look at {program}: {shortage}") from exc
        return getattr(exc, "strerror", None) or "its name is not valid"
    if not stat.S_ISREG(mode):
        return "it is no regular file"
    if not os.access(program, os.X_OK):
        return "it may not be executed"
    return None
