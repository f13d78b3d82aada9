"""Finds the programs of a container from within; the python3 of its host runs this."""

from __future__ import annotations

import os

_LONGEST_LINE = 256


class NotStartable(Exception):
    """The program cannot be started; a word of launches, and the reason behind it."""


def look_for(program: str, path: str, cwd: str) -> None:
    """Raise NotStartable where a program cannot be started in a directory of the container."""
    try:
        os.chdir(cwd)
    except OSError as error:
        raise NotStartable("directory") from error
    found = next((one for one in candidates(program, path) if _may_run(one)), None)
    os.chdir("/")
    if found is None:
        raise NotStartable(f"missing could not start {program}: it does not exist in the container")
    with open(found, "rb") as file:
        line = file.readline(_LONGEST_LINE)
    words = line[2:].split() if line[:2] == b"#!" else []
    if words and not os.path.exists(words[0]):
        name = os.fsdecode(words[0])
        raise NotStartable(
            f"missing could not start {program}: its interpreter {name} does not exist"
        )
    if line[:2] != b"#!" and line[:4] != b"\x7fELF":
        raise NotStartable(f"missing could not start {program}: it is no program of this system")


def candidates(program: str, path: str) -> list[str]:
    """Return the files that a program may be, the first of them first."""
    if "/" in program:
        return [program]
    return [f"{entry}/{program}" for entry in path.split(":") if entry[:1] == "/"]


def _may_run(path: str) -> bool:
    return os.path.isfile(path) and os.access(path, os.X_OK)
