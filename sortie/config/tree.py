"""Front matter as a tree in which every value knows where it was written."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

from sortie.model import Problem

Scalar: TypeAlias = str | int | float | bool | None

Path: TypeAlias = tuple[str | int, ...]
"""Keys and list positions that lead to a value."""


def dotted(path: Path) -> str:
    """Return a path as people write it: ``tracker.kind``, ``tracker.active_states[2]``."""
    name = ""
    for step in path:
        if isinstance(step, int):
            name += f"[{step}]"
        else:
            name += f".{step}" if name else step
    return name


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where something was written; ``line`` and ``column`` count from 1, 0 when unknown.

    ``name`` is what an override is called, such as ``SORTIE_POLLING_INTERVAL_MS``; it stands in
    problems instead of the dotted key. None is a place in WORKFLOW.md.
    """

    source: str
    line: int = 0
    column: int = 0
    name: str | None = None

    @property
    def is_override(self) -> bool:
        """Tell whether this is outside WORKFLOW.md, where values are literal."""
        return self.name is not None

    def problem(self, key: str, message: str, severity: str = "error") -> Problem:
        """Return the finding that ``message`` is wrong with ``key`` here."""
        return Problem(
            path=self.source,
            line=self.line,
            column=self.column,
            key=self.name or key,
            message=message,
            severity=severity,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A value with its place, and that of its key where it has one.

    ``index`` is the position in the list where it was written.
    """

    value: Scalar | tuple[Node, ...] | Mapping[str, Node]
    place: Place
    key: Place | None = None
    index: int | None = field(default=None, compare=False)

    @property
    def where(self) -> Place:
        """Return where to point a person to: a mapping or list is known by its key."""
        return self.key if self.key and isinstance(self.value, tuple | Mapping) else self.place

    def entries(self) -> Mapping[str, Node]:
        """Return the entries of a mapping that are not null; nothing where it is none."""
        if not isinstance(self.value, Mapping):
            return {}
        return {key: node for key, node in self.value.items() if node.value is not None}

    def items(self) -> tuple[Node, ...]:
        """Return the items of a list; nothing where it is none."""
        return self.value if isinstance(self.value, tuple) else ()

    def with_entry(self, key: str, node: Node) -> Node:
        """Return this mapping with an entry set."""
        old = self.value if isinstance(self.value, Mapping) else {}
        return replace(self, value={**old, key: node})

    def without_entry(self, key: str) -> Node:
        """Return this mapping without an entry."""
        old = self.value if isinstance(self.value, Mapping) else {}
        return replace(self, value={k: node for k, node in old.items() if k != key})

    def plain(self) -> Any:
        """Return the bare value, as JSON knows it; null entries of mappings are left out."""
        match self.value:
            case tuple() as items:
                return [item.plain() for item in items]
            case Mapping():
                return {key: node.plain() for key, node in self.entries().items()}
            case scalar:
                return scalar

    def at(self, path: Path) -> Node | None:
        """Return the node that a path of keys and positions leads to, None where it ends."""
        node: Node | None = self
        for step in path:
            if node is None:
                return None
            items = node.items()
            if isinstance(step, int):
                node = items[step] if step < len(items) else None
            else:
                node = node.entries().get(step)
        return node

    def as_written(self, path: Path) -> Path:
        """Return a path with the positions in lists that the file shows, missing items counted."""
        steps: list[str | int] = []
        for depth, step in enumerate(path, 1):
            node = self.at(path[:depth])
            steps.append(step if node is None or node.index is None else node.index)
        return tuple(steps)
