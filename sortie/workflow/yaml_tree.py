"""Read YAML 1.2 into a tree of located values, within limits and without tags or merge keys.

It builds from the parser's events with a stack of its own, so neither depth nor aliases can make
it crash or grow.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.events import (
    AliasEvent,
    CollectionEndEvent,
    CollectionStartEvent,
    DocumentStartEvent,
    Event,
    MappingStartEvent,
    ScalarEvent,
)

from sortie.config import Node, Place
from sortie.config.tree import Scalar
from sortie.model import Problem
from sortie.workflow.places import Lines
from sortie.workflow.scalars import resolve_scalar
from sortie.workflow.yaml_faults import explained, out_of_range

MAX_NODES = 10_000
"""Keys, values and items that a front matter may hold, those behind aliases counted each time."""

MAX_DEPTH = 40

_UNUSABLE = re.compile("[\x00\ud800-\udfff]")


class YamlRefused(Exception):
    """A YAML text cannot be used beyond this point."""

    def __init__(self, place: Place, message: str) -> None:
        super().__init__(message)
        self.problem = place.problem("", message)


@dataclass(slots=True, kw_only=True)
class _Open:
    """A mapping or list that has not ended yet."""

    place: Place
    anchor: str | None
    nodes_before: int
    entries: dict[str, Node] | None = None
    items: list[Node] = field(default_factory=list)
    pending: tuple[str, Place] | None = None
    height: int = 1


@dataclass(frozen=True, slots=True)
class _Anchored:
    node: Node
    nodes: int
    height: int


class TreeReader:
    """Reads one YAML document; ``offset`` is where it starts in the text of ``lines``.

    ``problems`` are those that did not keep it from reading on.
    """

    def __init__(self, lines: Lines, offset: int) -> None:
        self.problems: list[Problem] = []
        self._lines = lines
        self._offset = offset
        self._open: list[_Open] = []
        self._anchors: dict[str, _Anchored | None] = {}  # None while the value is still open
        self._nodes = 0
        self._root: Node | None = None

    def read(self, text: str) -> Node:
        """Return the document; an empty one is null. Raises YamlRefused."""
        documents = 0
        for event in self._events(text):
            if isinstance(event, DocumentStartEvent):
                documents += 1
                if documents > 1:
                    raise YamlRefused(self._place(event), "a second YAML document begins here")
            else:
                self._take(event)
        start = self._lines.place(self._offset)
        return self._root or Node(value=None, place=start)

    def _events(self, text: str) -> Iterator[Event]:
        try:
            yield from YAML(typ="safe", pure=True).parse(text)
        except MarkedYAMLError as exc:
            index, message = explained(exc, text)
            place = self._lines.place(self._offset + index)
            raise YamlRefused(place, f"invalid YAML: {message}") from exc
        except YAMLError as exc:
            index = getattr(exc, "position", 0)
            place = self._lines.place(self._offset + index)
            raise YamlRefused(place, "invalid YAML: a character that it does not allow") from exc
        except (ValueError, OverflowError) as exc:  # from an escape beyond Unicode
            index, message = out_of_range(text) or (0, str(exc))
            place = self._lines.place(self._offset + index)
            raise YamlRefused(place, f"invalid YAML: {message}") from exc

    def _place(self, event: Event) -> Place:
        return self._lines.place(self._offset + event.start_mark.index)

    def _take(self, event: Event) -> None:
        match event:
            case AliasEvent():
                self._alias(event)
            case ScalarEvent():
                self._scalar(event)
            case CollectionStartEvent():
                self._start(event)
            case CollectionEndEvent():
                self._end()
            case _:
                pass

    def _count(self, event: Event, nodes: int, height: int) -> None:
        self._nodes += nodes
        if self._nodes > MAX_NODES:
            message = f"more than {MAX_NODES:,} values, those behind aliases counted each time"
            raise YamlRefused(self._place(event), message)
        if len(self._open) + height > MAX_DEPTH:
            raise YamlRefused(self._place(event), f"nested deeper than {MAX_DEPTH} levels")

    def _refuse_tag(self, event: Any) -> None:
        if event.tag is not None:
            message = f"tags such as {event.tag} are not accepted; write a plain value"
            self._problem(self._place(event), message)

    def _wants_key(self) -> bool:
        return (
            bool(self._open) and self._open[-1].entries is not None and not self._open[-1].pending
        )

    def _alias(self, event: AliasEvent) -> None:
        place, name = self._place(event), str(event.anchor)
        if self._wants_key():
            raise YamlRefused(place, "a key must be a text, not an alias")
        if name not in self._anchors:
            raise YamlRefused(place, f"the alias *{name} has no anchor above it")
        known = self._anchors[name]
        if known is None:
            raise YamlRefused(place, f"the alias *{name} stands inside its own value")
        self._count(event, known.nodes, known.height)
        self._add(replace(known.node, place=place), known.height)

    def _scalar(self, event: Any) -> None:
        self._count(event, 1, 0)
        self._refuse_tag(event)
        place, text = self._place(event), event.value
        if _UNUSABLE.search(text):
            message = "holds an escape for a character that no text may hold"
            self._problem(place, message)
            text = ""
        plain = event.implicit[0] and event.tag is None
        if self._wants_key():
            if plain and text == "<<":
                raise YamlRefused(place, "merge keys (<<) are not part of YAML 1.2; write the keys")
            self._open[-1].pending = (text, place)
            return
        value: Scalar = resolve_scalar(text) if plain else text
        node = Node(value=value, place=place)
        if event.anchor:
            self._anchors[event.anchor] = _Anchored(node, 1, 0)
        self._add(node, 0)

    def _start(self, event: Any) -> None:
        place = self._place(event)
        if self._wants_key():
            raise YamlRefused(place, "a key must be a text, not a mapping or a list")
        self._count(event, 1, 1)
        self._refuse_tag(event)
        if event.anchor:
            self._anchors[event.anchor] = None
        entries: dict[str, Node] | None = {} if isinstance(event, MappingStartEvent) else None
        self._open.append(
            _Open(place=place, anchor=event.anchor, nodes_before=self._nodes - 1, entries=entries)
        )

    def _end(self) -> None:
        done = self._open.pop()
        value = tuple(done.items) if done.entries is None else done.entries
        node = Node(value=value, place=done.place)
        if done.anchor:
            nodes = self._nodes - done.nodes_before
            self._anchors[done.anchor] = _Anchored(node, nodes, done.height)
        self._add(node, done.height)

    def _add(self, node: Node, height: int) -> None:
        if not self._open:
            self._root = node
            return
        parent = self._open[-1]
        parent.height = max(parent.height, height + 1)
        if parent.entries is None:
            parent.items.append(replace(node, index=len(parent.items)))
            return
        assert parent.pending is not None
        name, place = parent.pending
        if first := parent.entries.get(name):
            line = first.key.line if first.key else 0
            self._problem(place, f"stands twice; first on line {line}")
        else:
            parent.entries[name] = replace(node, key=place)
        parent.pending = None

    def _problem(self, place: Place, message: str) -> None:
        self.problems.append(place.problem(self._dotted(), message))

    def _dotted(self) -> str:
        """Return the dotted key of what is being read."""
        name = ""
        for opened in self._open:
            if opened.entries is None:
                name += f"[{len(opened.items)}]"
            elif opened.pending:
                name += f".{opened.pending[0]}" if name else opened.pending[0]
        return name
