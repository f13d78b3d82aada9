"""Findings about settings, and the report of all that is wrong with a WORKFLOW.md."""

from __future__ import annotations

from msgspec import Struct, field
from msgspec.structs import replace

from sortie.documents import Node, Path, dotted
from sortie.model import Problem


class Finding(Struct, frozen=True, kw_only=True):
    """Something wrong with the setting at ``path``; ``needs`` are others that it depends on.

    ``severity`` is ``error`` or ``warning``. ``because`` is the setting to point at instead, where
    ``path`` is missing and that one asks for it.
    """

    path: Path
    message: str
    severity: str = "error"
    needs: tuple[Path, ...] = ()
    because: Path | None = None


class Report(Struct):
    """All findings so far, and the front matter they are about.

    Rule 1: a setting with an error is in ``bad``, so no rule about several settings trusts it.
    Rule 2: ``document`` changes only by looking up references and dropping what is wrong.
    Rule 3: paths in problems and in ``bad`` count the items of lists as they were written.
    ``secret_variables`` are those that a secret was taken from.
    """

    document: Node
    problems: list[Problem] = field(default_factory=list)
    bad: set[Path] = field(default_factory=set)
    secret_variables: list[str] = field(default_factory=list)

    def error(self, node: Node, path: Path, message: str) -> None:
        """Add an error about the setting at ``path``, written at ``node``."""
        self.bad.add(path)
        self.problems.append(node.where.problem(dotted(path), message))

    def warning(self, node: Node, path: Path, message: str) -> None:
        """Add a warning about the setting at ``path``, written at ``node``."""
        self.problems.append(node.where.problem(dotted(path), message, "warning"))

    def nearest(self, path: Path) -> Node:
        """Return the node at a path or, where nothing stands there, the one above it."""
        return self.document.at(path) or self.nearest(path[:-1])

    def is_blamed(self, path: Path) -> bool:
        """Tell whether a setting or one above it has an error already."""
        return any(path[:end] in self.bad for end in range(1, len(path) + 1))

    def is_bad(self, path: Path) -> bool:
        """Tell whether a setting, one above it or one in it has an error."""
        return self.is_blamed(path) or any(bad[: len(path)] == path for bad in self.bad)

    def replace(self, path: Path, node: Node) -> None:
        """Put another node in the place of the one at ``path``, a path of keys."""
        self.document = _with(self.document, path, node)


def _with(document: Node, path: Path, node: Node) -> Node:
    if not path:
        return node
    key = str(path[0])
    below = document.entries().get(key) or replace(node, value={})
    return document.with_entry(key, _with(below, path[1:], node))
