"""A workflow of ours while it is made of one of another program, and what became of each key."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import Any

from msgspec import Struct

from sortie.documents import Node, Path, Place, dotted


class KeyOutcome(StrEnum):
    """What became of a key."""

    KEPT = "kept"
    CHANGED = "changed"
    ADDED = "added"
    LOST = "lost"


class Told(Struct, frozen=True, kw_only=True):
    """What became of one key, and where it stood; no message holds a value of the file's.

    ``to`` is its key here, "" where it has none.
    """

    outcome: KeyOutcome
    place: Place
    key: str
    to: str = ""
    message: str = ""

    def __str__(self) -> str:
        place = self.place
        where = f"{place.source}:{place.line}:{place.column}" if place.line else place.source
        is_other = self.outcome is KeyOutcome.CHANGED and self.to != self.key
        became = f" to {self.to}" if is_other else ""
        why = f": {self.message}" if self.message else ""
        return f"{where}: {self.key}: {self.outcome}{became}{why}"


class Draft:
    """The settings that are made, ``new``, of those that are read; each key is told once."""

    def __init__(self, old: Node, above: Draft | None = None, at: Path = ()) -> None:
        self.new: dict[str, Any] = {}
        self.told: list[Told] = above.told if above else []
        self._old = old
        self._seen: set[Path] = set()
        self._above, self._at = above, at

    @classmethod
    def of(cls, above: Draft, at: Path) -> Draft:
        """Return a draft of a part; what it tells stands among what the whole tells."""
        node = above._old.at(at)
        assert node is not None
        return cls(node, above, at)

    def old(self, *path: str | int) -> Any:
        """Return a value as it was written, None where there is none."""
        node = self._old.at(path)
        return None if node is None else node.plain()

    def block(self, *path: str | int) -> Mapping[str, Any]:
        """Return a mapping, an empty one where there is none."""
        found = self.old(*path)
        return found if isinstance(found, dict) else {}

    def put(self, path: Path, value: Any) -> None:
        """Set what the new settings say, and tell nothing."""
        at = self.new
        for step in path[:-1]:
            at = at.setdefault(str(step), {})
        at[str(path[-1])] = value

    def keep(self, *path: str) -> None:
        """Take a key as it is, where it is set."""
        value = self.old(*path)
        if value is not None:
            self.put(path, value)
            self._tell(KeyOutcome.KEPT, path, dotted(path), "")

    def change(self, path: Path, to: Path, value: Any, why: str) -> None:
        """Write a key as another one, or with another value."""
        self.put(to, value)
        if path == to and value == self.old(*path):
            self._tell(KeyOutcome.KEPT, path, dotted(to), why)
        else:
            self.tell_change(path, dotted(to), why)

    def tell_change(self, path: Path, to: str, why: str) -> None:
        """Tell that a key has become another one, or several."""
        if path and self.old(*path) is not None:
            self._tell(KeyOutcome.CHANGED, path, to, why)

    def lose(self, path: Path, why: str) -> None:
        """Leave out a key, where it is set."""
        if path and self.old(*path) is not None:
            self._tell(KeyOutcome.LOST, path, "", why)

    def lack(self, key: str, why: str) -> None:
        """Tell what the new settings need and the old ones do not say."""
        place = Place(source=self._old.place.source)
        key = ".".join(filter(None, (dotted(self._at), key)))
        self.told.append(Told(outcome=KeyOutcome.LOST, place=place, key=key, message=why))

    def add(self, to: Path, value: Any, why: str) -> None:
        """Write what the file did not say."""
        self.put(to, value)
        place = Place(source=self._old.place.source)
        key = dotted((*self._at, *to))
        self.told.append(Told(outcome=KeyOutcome.ADDED, place=place, key=key, to=key, message=why))

    def lose_the_rest(self) -> None:
        """Tell of every key that was not known."""
        for path in [*self._leaves(self._old, ())]:
            if not any(path[:length] in self._seen for length in range(1, len(path) + 1)):
                self.lose(path, "is not known")

    def _leaves(self, node: Node, path: Path) -> Iterator[Path]:
        inner: list[tuple[str | int, Node]] = [*node.entries().items()]
        if any(not item.is_single for item in node.items()):
            inner += enumerate(node.items())
        for key, child in inner:
            yield from self._leaves(child, (*path, key))
        if not inner and path:
            yield path

    def _tell(self, outcome: KeyOutcome, path: Path, to: str, why: str) -> None:
        node = self._old.at(path)
        named = node and (node.key or node)
        place = named.place if named else self._old.place
        self._seen.add(path)
        if self._above:
            self._above._seen.add((*self._at, *path))
        key = dotted((*self._at, *path))
        self.told[:] = [t for t in self.told if (t.key, t.outcome) != (key, KeyOutcome.KEPT)]
        self.told.append(Told(outcome=outcome, place=place, key=key, to=to, message=why))
