"""Where the database of a workflow file is, whatever else stands in the file.

Commands find a daemon by it. They need no other setting, and a file that is not valid, or that is
away for a moment, hides no daemon.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from sortie.config.context import DecodeContext
from sortie.config.references import Lookup, resolve
from sortie.documents import Node, Place
from sortie.model import Problem
from sortie.workflow.env_file import read_env_file
from sortie.workflow.files import FileRefused, read_text
from sortie.workflow.front_matter import split_workflow
from sortie.workflow.surroundings import surroundings

if TYPE_CHECKING:
    from sortie.config.store import StoreSettings

_VARIABLE = "SORTIE_DB_PATH"
_LINE = re.compile(r"^db_path:.*$", re.MULTILINE)


class DatabasePath(Struct, frozen=True, kw_only=True):
    """The absolute path of a database; ``problem`` is why the file could not be read whole.

    ``store`` is the server that has the rows, None where they are in the file.
    """

    path: str
    store: StoreSettings | None = None
    problem: Problem | None = None


def database_path(path: Path, env: Mapping[str, str], env_file: Path | None) -> DatabasePath:
    """Return the database by override, front matter or default; it reads files.

    A value that means nothing counts as none. Raises WorkflowError for an env file that cannot be
    read.
    """
    lines = read_env_file(env_file).lines if env_file else {}
    context = surroundings(path, env, lines, {})
    document, problem = _written(path)
    node = _override(context) or (document and document.at(("db_path",)))
    found = None if node is None else resolve(node, Lookup.PATH, context).node
    store = None if document is None else _store(document, context)
    if found is None or not isinstance(found.value, str):
        default = str(context.directory / ".sortie.db")
        return DatabasePath(path=default, store=store, problem=problem)
    return DatabasePath(path=found.value, store=store, problem=problem)


def _store(document: Node, context: DecodeContext) -> StoreSettings | None:
    """Return the server that a front matter names, None where it names none."""
    node = document.at(("store",))
    if node is None or not isinstance(node.value, Mapping):
        return None
    # Most files have no such block, and what decodes one is slow to load.
    from sortie.config.blocks import decode_block
    from sortie.config.report import Report
    from sortie.config.store import StoreSettings

    report = Report(document)
    decoded = decode_block(("store",), StoreSettings, context, report)
    store = decoded if isinstance(decoded, StoreSettings) else StoreSettings()
    return None if store.url is None else store


def _override(context: DecodeContext) -> Node | None:
    """Return what the environment says, else the env file; blank overrides nothing."""
    place = Place(source="environment", name=_VARIABLE)
    text = context.env.get(_VARIABLE)
    if not text and _VARIABLE in context.env_file:
        text, place = context.env_file[_VARIABLE].text, context.env_file[_VARIABLE].place
    return Node(value=text.strip(), origin=place) if text and text.strip() else None


def _written(path: Path) -> tuple[Node | None, Problem | None]:
    """Return the front matter; of one that is no YAML, ``db_path`` alone."""
    source = str(path)
    try:
        text = read_text(path, source)
    except FileRefused as error:
        return None, error.problem
    parts = split_workflow(text, source)
    if parts.document is not None:
        return parts.document, None
    line = _LINE.search(text.lstrip().split("\n---", 1)[0])
    alone = split_workflow(f"---\n{line[0]}\n---\n", source).document if line else None
    return alone, parts.problems[0]
