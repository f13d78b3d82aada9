"""Which workflow files a command line means, and the names of the workflows.

A workflow is named after the directory of its file, or after the file where several stand in one
directory.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from sortie.model import SortieError

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_FRONT_MATTER = b"---"


class UnnamedWorkflow(SortieError):
    """A set of workflow files that cannot be told apart by name, or one that is empty."""


def are_several(arguments: Sequence[Path]) -> bool:
    """Tell whether a command line means several workflows: more than one file, or a directory with
    such files."""
    return len(arguments) > 1 or any(path.is_dir() and any(_files([path])) for path in arguments)


def named_workflows(arguments: Iterable[Path]) -> dict[str, Path]:
    """Return the workflow files by the names of their workflows, in the order given.

    Raises UnnamedWorkflow.
    """
    files = list({path.resolve(): path for path in _files(arguments)}.items())
    if not files:
        raise UnnamedWorkflow("there is no workflow file here: neither a */WORKFLOW.md nor a *.md")
    beside = Counter(path.parent for path, _ in files)
    found: dict[str, Path] = {}
    for path, given in files:
        name = path.stem if beside[path.parent] > 1 else path.parent.name
        if not _NAME.fullmatch(name):
            raise UnnamedWorkflow(
                f"{given} has no name that can stand in an address: {name!r}; give its"
                f" {'file' if beside[path.parent] > 1 else 'directory'} a name of letters, digits,"
                " '.', '_' and '-'"
            )
        if name in found:
            raise UnnamedWorkflow(
                f"{found[name]} and {given} are both named {name}; rename the directory of one"
            )
        found[name] = given
    return found


def _files(arguments: Iterable[Path]) -> Iterator[Path]:
    for path in arguments:
        if not path.is_dir():
            yield path
            continue
        yield from sorted(path.glob("*/WORKFLOW.md"))
        yield from (file for file in sorted(path.glob("*.md")) if _has_front_matter(file))


def _has_front_matter(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return file.readline(16).rstrip() == _FRONT_MATTER
    except OSError:
        return False
