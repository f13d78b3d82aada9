"""Where the database of a workflow file is, whatever else stands in the file.

Commands find a daemon by it. They need no other setting, and a file that is not valid, or that is
away for a moment, hides no daemon.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct

from sortie.config.context import DecodeContext
from sortie.config.references import Lookup, resolve
from sortie.documents import Node, Place
from sortie.model import Problem
from sortie.workflow.env_file import read_env_file
from sortie.workflow.files import FileRefused, read_text
from sortie.workflow.front_matter import split_workflow
from sortie.workflow.surroundings import surroundings

_VARIABLE = "SORTIE_DB_PATH"
_LINE = re.compile(r"^db_path:.*$", re.MULTILINE)


class DatabasePath(Struct, frozen=True, kw_only=True):
    """The absolute path of a database; ``problem`` is why the file could not be read whole."""

    path: str
    problem: Problem | None = None


def database_path(path: Path, env: Mapping[str, str], env_file: Path | None) -> DatabasePath:
    """Return the database by override, front matter or default; it reads files.

    A value that means nothing counts as none. Raises WorkflowError for an env file that cannot be
    read.
    """
    lines = read_env_file(env_file).lines if env_file else {}
    context = surroundings(path, env, lines, {})
    node, problem = _written(path)
    node = _override(context) or node
    found = None if node is None else resolve(node, Lookup.PATH, context).node
    if found is None or not isinstance(found.value, str):
        return DatabasePath(path=str(context.directory / ".sortie.db"), problem=problem)
    return DatabasePath(path=found.value, problem=problem)


def _override(context: DecodeContext) -> Node | None:
    """Return what the environment says, else the env file; blank overrides nothing."""
    place = Place(source="environment", name=_VARIABLE)
    text = context.env.get(_VARIABLE)
    if not text and _VARIABLE in context.env_file:
        text, place = context.env_file[_VARIABLE].text, context.env_file[_VARIABLE].place
    return Node(value=text.strip(), origin=place) if text and text.strip() else None


def _written(path: Path) -> tuple[Node | None, Problem | None]:
    """Return ``db_path`` as it stands in the file, also beside front matter that is no YAML."""
    source = str(path)
    try:
        text = read_text(path, source)
    except FileRefused as error:
        return None, error.problem
    parts = split_workflow(text, source)
    if parts.document is not None:
        return parts.document.at(("db_path",)), None
    line = _LINE.search(text.lstrip().split("\n---", 1)[0])
    alone = split_workflow(f"---\n{line[0]}\n---\n", source).document if line else None
    return alone.at(("db_path",)) if alone else None, parts.problems[0]
