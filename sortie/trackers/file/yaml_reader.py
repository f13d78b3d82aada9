"""YAML text to nodes, by the core schema of YAML 1.2: ``on`` and ``yes`` are strings.

Works on libyaml's events rather than on its documents: no recursion that a deeply nested file
could exhaust, and no alias is ever copied out.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import yaml

from sortie.trackers.file.nodes import DEPTH_LIMIT, Flaw, Node, Scalar, Sequence, mapping

ALIAS_LIMIT = 100_000
"""Characters that the aliases of one document may stand for, all together."""

_LOADER = getattr(yaml, "CLoader", yaml.SafeLoader)  # only its scanner and parser are used


def parse(text: str) -> Node | None:
    """Return the one document in a text, None for an empty text. Raises Flaw."""
    builder = _Builder()
    try:
        for event in yaml.parse(text, Loader=_LOADER):
            builder.take(event)
    except yaml.MarkedYAMLError as exc:
        mark = exc.problem_mark or exc.context_mark
        problem = exc.problem or exc.context or "not YAML"
        raise Flaw(mark.index if mark else 0, f"not valid YAML: {problem}") from exc
    except yaml.reader.ReaderError as exc:
        position = next((i for i, c in enumerate(text) if ord(c) == exc.character), 0)
        raise Flaw(position, "not valid YAML: control characters are not allowed") from exc
    return builder.root


@dataclass(slots=True, kw_only=True)
class _Open:
    """A collection whose end has not come yet."""

    event: yaml.CollectionStartEvent
    children: list[Node] = field(default_factory=list)
    weight: int = 1


class _Builder:
    """Puts events together.

    Rule 1: an anchor is known once its node is complete, so no node can hold itself.
    Rule 2: every node has a weight, its size with aliases written out; only weights multiply.
    """

    def __init__(self) -> None:
        self.root: Node | None = None
        self._documents = 0
        self._open: list[_Open] = []
        self._anchors: dict[str, tuple[Node, int]] = {}
        self._aliased = 0

    def take(self, event: yaml.Event) -> None:
        start, end = event.start_mark.index, event.end_mark.index
        match event:
            case yaml.ScalarEvent():
                text, plain = event.value, event.implicit[0]
                scalar = Scalar(text=text, plain=plain, start=start, end=end)
                self._add(scalar, len(text) + 1, event.anchor)
            case yaml.CollectionStartEvent():
                if len(self._open) == DEPTH_LIMIT:
                    raise Flaw(start, f"nested deeper than {DEPTH_LIMIT} levels")
                self._open.append(_Open(event=event))
            case yaml.CollectionEndEvent():
                done = self._open.pop()
                self._add(_closed(done, end), done.weight, done.event.anchor)
            case yaml.AliasEvent():
                self._add(*self._resolve(event.anchor, start, end), None)
            case yaml.DocumentStartEvent():
                self._documents += 1
                if self._documents > 1:
                    raise Flaw(start, "more than one YAML document")

    def _resolve(self, anchor: str, start: int, end: int) -> tuple[Node, int]:
        if anchor not in self._anchors:
            raise Flaw(start, f"alias *{anchor[:60]} has no anchor before it")
        node, weight = self._anchors[anchor]
        self._aliased += weight
        if self._aliased > ALIAS_LIMIT:
            raise Flaw(start, f"aliases stand for more than {ALIAS_LIMIT} characters")
        return replace(node, start=start, end=end), weight

    def _add(self, node: Node, weight: int, anchor: str | None) -> None:
        if anchor is not None:
            self._anchors[anchor] = (node, weight)
        if self._open:
            self._open[-1].children.append(node)
            self._open[-1].weight += weight
        else:
            self.root = node


def _closed(done: _Open, end: int) -> Node:
    flow, start = bool(done.event.flow_style), done.event.start_mark.index
    if isinstance(done.event, yaml.SequenceStartEvent):
        return Sequence(items=tuple(done.children), flow=flow, start=start, end=end)
    pairs: list[tuple[Scalar, Node]] = []
    for key, value in zip(done.children[::2], done.children[1::2], strict=True):
        if not isinstance(key, Scalar):
            raise Flaw(key.start, "a key must be a word, not a collection")
        pairs.append((key, value))
    return mapping(pairs, flow=flow, start=start, end=end)
