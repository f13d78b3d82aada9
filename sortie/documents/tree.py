"""A tree in which every value knows where it was written."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from sortie.documents.places import Place, Text

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


# Not frozen, which would make reading a thousand issues a tenth slower; it is never changed.
class Node(Struct):
    """A value, and where it was written: from ``start`` to ``end`` of a text, or in an override.

    ``text`` is a single value as written, but for quotes and escapes. ``key`` is the key of an
    entry of a mapping, a node of its own. ``index`` is the position in the list where an item was
    written. ``flow`` tells whether a mapping or list is written in brackets.
    """

    value: Scalar | tuple[Node, ...] | dict[str, Node]
    origin: Text | Place
    start: int = 0
    end: int = 0
    text: str = ""
    flow: bool = False
    key: Node | None = None
    index: int | None = None

    @property
    def place(self) -> Place:
        """Return where the value was written."""
        return self.origin if isinstance(self.origin, Place) else self.origin.place(self.start)

    @property
    def where(self) -> Place:
        """Return where to point a person to: a mapping or list is known by its key."""
        named = self.key and not self.is_single
        return self.key.place if self.key and named else self.place

    @property
    def is_single(self) -> bool:
        """Tell whether this is neither a mapping nor a list."""
        return not isinstance(self.value, (dict, tuple))

    def get(self, key: str) -> Node | None:
        """Return an entry of a mapping, also a null one; None where there is none."""
        return self.value.get(key) if isinstance(self.value, dict) else None

    def entries(self) -> Mapping[str, Node]:
        """Return the entries of a mapping that are not null; nothing where it is none."""
        if not isinstance(self.value, dict):
            return {}
        return {key: node for key, node in self.value.items() if node.value is not None}

    def items(self) -> tuple[Node, ...]:
        """Return the items of a list; nothing where it is none."""
        return self.value if isinstance(self.value, tuple) else ()

    def children(self) -> tuple[Node, ...]:
        """Return the items of a list or the values of a mapping, also null ones."""
        return tuple(self.value.values()) if isinstance(self.value, dict) else self.items()

    def with_entry(self, key: str, node: Node) -> Node:
        """Return this mapping with an entry set."""
        old = self.value if isinstance(self.value, dict) else {}
        return replace(self, value={**old, key: node})

    def without_entry(self, key: str) -> Node:
        """Return this mapping without an entry."""
        old = self.value if isinstance(self.value, dict) else {}
        return replace(self, value={k: node for k, node in old.items() if k != key})

    def plain(self) -> Any:
        """Return the bare value, as JSON knows it; null entries of mappings are left out."""
        match self.value:
            case tuple() as items:
                return [item.plain() for item in items]
            case dict():
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
        """Return a path with the keys and the positions in lists that the file shows.

        Items and spellings that were dropped since are counted and named as written.
        """
        steps: list[str | int] = []
        for depth, step in enumerate(path, 1):
            node = self.at(path[:depth])
            if node is not None and isinstance(step, str) and node.key:
                step = node.key.text or step
            elif node is not None and node.index is not None:
                step = node.index
            steps.append(step)
        return tuple(steps)
