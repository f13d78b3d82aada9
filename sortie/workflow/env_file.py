"""Read the ``SORTIE_*`` lines of an env file; all others are for other programs."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct

from sortie.config.context import Override
from sortie.documents import Place
from sortie.model import Problem
from sortie.workflow.files import FileRefused, read_text

_LINE = re.compile(r"(?:export\s+)?(SORTIE_[^=\s]*)\s*(=?)(.*)")
_NAME = re.compile(r"SORTIE_[A-Za-z0-9_]+", re.ASCII)


class EnvFile(Struct, frozen=True, kw_only=True):
    """The lines of an env file by name, the last one of each, and what is wrong with others."""

    lines: Mapping[str, Override]
    problems: tuple[Problem, ...]


def read_env_file(path: Path) -> EnvFile:
    """Read ``NAME=value`` lines; quotes around a value are removed, nothing in it is expanded."""
    source = str(path)
    try:
        text = read_text(path, source)
    except FileRefused as exc:
        return EnvFile(lines={}, problems=(exc.problem,))
    lines: dict[str, Override] = {}
    problems: list[Problem] = []
    for number, line in enumerate(text.split("\n"), 1):
        found = _LINE.fullmatch(line.strip())
        if found is None:
            continue
        name, sign, value = found.groups()
        place = Place(source=source, line=number, column=1, name=name)
        if not sign or not _NAME.fullmatch(name):
            problems.append(place.problem("", "needs to be NAME=value"))
            continue
        lines[name] = Override(text=_unquoted(value.strip()), place=place)
    return EnvFile(lines=lines, problems=tuple(problems))


def _unquoted(value: str) -> str:
    quoted = len(value) >= 2 and value[0] == value[-1] and value[0] in "\"'"
    return value[1:-1] if quoted else value
