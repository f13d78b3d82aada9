"""Read YAML 1.2 into a tree of located values, within limits.

It builds from a parser's events with a stack of its own, so neither depth nor aliases can make it
crash or grow. The parser is libyaml's where PyYAML was built with it; what libyaml refuses is
parsed once more by PyYAML's own, slower one, whose errors can be explained in plain words.

Rule 1: an anchor is known once its value is complete, so no value can hold itself.
Rule 2: what aliases stand for is counted, never copied.
"""

from __future__ import annotations

import re
from contextlib import suppress
from itertools import count
from typing import Any

import yaml
from msgspec import Struct, field
from msgspec.structs import replace

from sortie.documents.places import Duplicate, Fault, Place, Text
from sortie.documents.scalars import resolve_scalar
from sortie.documents.tree import Node, Scalar, dotted
from sortie.documents.yaml_errors import explained, out_of_range
from sortie.model.texts import UNUSABLE

ALIASED_CHARACTERS = 100_000
"""Characters that the aliases of one document may stand for, all together."""

_FAST_PARSER = yaml.cyaml.CParser if yaml.__with_libyaml__ else yaml.SafeLoader
_NOT_ALLOWED = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_OLD_BREAKS = "\x85\u2028\u2029"  # line ends in YAML 1.1, which both parsers are of; not in 1.2


class YamlRules(Struct, frozen=True, kw_only=True):
    """What a document may hold: so many levels, and values, those behind aliases counted too.

    ``strict`` refuses tags, merge keys, aliases as keys and characters that no program can be
    handed; otherwise tags say nothing, and ``<<`` is a key like others.
    """

    depth: int
    values: int
    strict: bool


class Yaml(Struct, frozen=True, kw_only=True):
    """A document, and what is wrong with it; ``root`` is None where it cannot be read.

    Then the last fault says why. An empty document is null.
    """

    root: Node | None
    faults: tuple[Fault, ...]


def read_yaml(text: Text, start: int, end: int, rules: YamlRules) -> Yaml:
    """Read the one document between two positions of a text."""
    content = text.content[start:end]
    unused = (character for character in map(chr, count(0xF0000)) if character not in content)
    breaks = {ord(old): next(unused) for old in _OLD_BREAKS if old in content}
    originals = {ord(used): chr(old) for old, used in breaks.items()}
    parsed = content.translate(breaks) if breaks else content
    with suppress(yaml.YAMLError, ValueError, OverflowError):
        return _Builder(text, start, rules, originals).build(_FAST_PARSER(parsed))
    builder = _Builder(text, start, rules, originals)
    try:
        return builder.build(yaml.SafeLoader(parsed))
    except yaml.MarkedYAMLError as exc:
        index, message = explained(exc, content)
    except yaml.YAMLError:
        found = _NOT_ALLOWED.search(content)
        index, message = found.start() if found else 0, "a character that it does not allow"
    except (ValueError, OverflowError) as exc:
        index, message = out_of_range(content) or (0, str(exc))
    fault = Fault(text.place(start + index), f"invalid YAML: {message}")
    return Yaml(root=None, faults=(*builder.faults, fault))


_Size = tuple[int, int, int]
"""Of a value: the values in it, itself included, the levels in it, and characters."""


class _Open(Struct, kw_only=True):
    """A mapping or list that has not ended yet; ``key`` is the one whose value comes next."""

    event: Any
    nodes_before: int
    entries: dict[str, Node] | None
    items: list[Node] = field(default_factory=list)
    key: Node | None = None
    height: int = 1
    characters: int = 1

    @property
    def wants_key(self) -> bool:
        return self.entries is not None and self.key is None


class _Builder:
    """Puts events together."""

    def __init__(
        self, text: Text, offset: int, rules: YamlRules, originals: dict[int, str]
    ) -> None:
        self.faults: list[Fault] = []
        self._text = text
        self._offset = offset
        self._rules = rules
        self._originals = originals
        self._open: list[_Open] = []
        self._anchors: dict[str, tuple[Node, _Size] | None] = {}  # None while it is still open
        self._nodes = 0
        self._aliased = 0
        self._root: Node | None = None

    def build(self, parser: Any) -> Yaml:
        """Return what a parser's events make. Raises what the parser raises."""
        takers = {
            yaml.ScalarEvent: self._scalar,
            yaml.MappingStartEvent: self._start,
            yaml.SequenceStartEvent: self._start,
            yaml.MappingEndEvent: self._end,
            yaml.SequenceEndEvent: self._end,
            yaml.AliasEvent: self._alias,
            yaml.DocumentStartEvent: self._document,
        }
        try:
            for event in iter(parser.get_event, None):
                if taker := takers.get(type(event)):
                    taker(event)
        except Fault as fault:
            return Yaml(root=None, faults=(*self.faults, fault))
        root = self._root or Node(value=None, origin=self._text, start=self._offset)
        return Yaml(root=root, faults=tuple(self.faults))

    def _place(self, event: Any) -> Place:
        return self._text.place(self._offset + event.start_mark.index)

    def _document(self, event: Any) -> None:
        if self._root is not None:
            raise Fault(self._place(event), "a second YAML document begins here")

    def _count(self, event: Any, nodes: int, height: int) -> None:
        self._nodes += nodes
        if self._nodes > self._rules.values:
            limit = f"{self._rules.values:,} values, those behind aliases counted each time"
            raise Fault(self._place(event), f"more than {limit}")
        if len(self._open) + height > self._rules.depth:
            raise Fault(self._place(event), f"nested deeper than {self._rules.depth} levels")

    def _refuse(self, event: Any, message: str) -> None:
        """Add a fault that does not keep the rest from being read."""
        self.faults.append(Fault(self._place(event), message, self._dotted()))

    def _check_tag(self, event: Any) -> None:
        if event.tag is not None:
            self._refuse(event, f"tags such as {event.tag} are not accepted; write a plain value")

    def _alias(self, event: Any) -> None:
        name = str(event.anchor)[:60]
        if self._rules.strict and self._open and self._open[-1].wants_key:
            raise Fault(self._place(event), "a key must be a text, not an alias")
        if event.anchor not in self._anchors:
            raise Fault(self._place(event), f"the alias *{name} has no anchor above it")
        known = self._anchors[event.anchor]
        if known is None:
            raise Fault(self._place(event), f"the alias *{name} stands inside its own value")
        node, size = known
        self._count(event, size[0], size[1])
        self._aliased += size[2]
        if self._aliased > ALIASED_CHARACTERS:
            message = f"aliases stand for more than {ALIASED_CHARACTERS} characters"
            raise Fault(self._place(event), message)
        start, end = self._span(event, event)
        key, index = self._position()
        self._add(replace(node, start=start, end=end, key=key, index=index), size, None)

    def _scalar(self, event: Any) -> None:
        self._count(event, 1, 0)
        text = event.value.translate(self._originals) if self._originals else event.value
        if self._rules.strict:
            self._check_tag(event)
            if UNUSABLE.search(text):
                self._refuse(event, "holds an escape for a character that no text may hold")
                text = ""
        start = self._offset + event.start_mark.index
        end = self._offset + event.end_mark.index
        if start == end:  # libyaml places an empty value in brackets behind the blanks that follow
            start = end = len(self._text.content[:start].rstrip(" \t\r\n"))
        key, index = self._position()
        value: Scalar = text
        if event.implicit[0] and event.tag is None:  # neither quoted nor tagged
            if key is not None or not self._open or self._open[-1].entries is None:
                value = resolve_scalar(text)
            elif text == "<<" and self._rules.strict:
                message = "merge keys (<<) are not part of YAML 1.2; write the keys"
                raise Fault(self._place(event), message)
        node = Node(value, self._text, start, end, text, key=key, index=index)
        self._add(node, (1, 0, len(text) + 1), event.anchor)

    def _start(self, event: Any) -> None:
        if self._open and self._open[-1].wants_key:
            raise Fault(self._place(event), "a key must be a text, not a mapping or a list")
        self._count(event, 1, 1)
        if self._rules.strict:
            self._check_tag(event)
        if event.anchor:
            self._anchors[event.anchor] = None
        entries: dict[str, Node] | None = {} if isinstance(event, yaml.MappingStartEvent) else None
        self._open.append(_Open(event=event, nodes_before=self._nodes - 1, entries=entries))

    def _end(self, event: Any) -> None:
        done = self._open.pop()
        start, end = self._span(done.event, event)
        key, index = self._position()
        value = tuple(done.items) if done.entries is None else done.entries
        flow = bool(done.event.flow_style)
        node = Node(value, self._text, start, end, flow=flow, key=key, index=index)
        size = (self._nodes - done.nodes_before, done.height, done.characters)
        self._add(node, size, done.event.anchor)

    def _span(self, first: Any, last: Any) -> tuple[int, int]:
        return self._offset + first.start_mark.index, self._offset + last.end_mark.index

    def _position(self) -> tuple[Node | None, int | None]:
        """Return the key, or the index, of the value that comes next."""
        if not self._open:
            return None, None
        parent = self._open[-1]
        return parent.key, len(parent.items) if parent.entries is None else None

    def _add(self, node: Node, size: _Size, anchor: str | None) -> None:
        if anchor:
            self._anchors[anchor] = (node, size)
        if not self._open:
            self._root = node
            return
        parent = self._open[-1]
        parent.height = max(parent.height, size[1] + 1)
        parent.characters += size[2]
        if parent.entries is None:
            parent.items.append(node)
        elif parent.key is None:
            if not isinstance(node.value, str):
                raise Fault(node.place, "a key must be a text, not a mapping or a list")
            parent.key = node
        else:
            first = parent.entries.setdefault(parent.key.text, node).key
            if first is not parent.key and first is not None:
                self.faults.append(Duplicate(parent.key.place, first.place, self._dotted()))
            parent.key = None

    def _dotted(self) -> str:
        """Return the dotted key of what is being read."""
        path: list[str | int] = []
        for opened in self._open:
            if opened.entries is None:
                path.append(len(opened.items))
            elif opened.key:
                path.append(opened.key.text)
        return dotted(tuple(path))
