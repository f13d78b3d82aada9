"""Read a JSON list into a tree of located values: each item, and what is wrong with it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from json import JSONDecodeError, JSONDecoder

from msgspec import Struct
from msgspec.structs import replace

from sortie.documents.places import Duplicate, Fault, Text
from sortie.documents.scalars import resolve_scalar
from sortie.documents.tree import Node, Scalar

DEPTH_LIMIT = 64
"""Lists and mappings that may stand inside one another, the outermost included."""

_SPACE = re.compile(r"[ \t\r\n]*")


class ListItem(Struct, frozen=True, kw_only=True):
    """One item of the list; with a fault, ``node`` is what could be made of it."""

    node: Node
    fault: Fault | None = None


class _Number(str):
    """A number, kept as it is written: it is read as one only where a field wants one."""

    __slots__ = ()


_DECODER = JSONDecoder(parse_int=_Number, parse_float=_Number, parse_constant=_Number)


def item_spans(text: Text) -> Iterator[tuple[int, int]]:
    """Yield where each item begins and ends in the list that a text is.

    Raises Fault where the text is not a JSON list, which may be after some items.
    """
    content = text.content
    at = _skip(content, 1 if content.startswith("\ufeff") else 0)
    if content[at : at + 1] != "[":
        raise Fault(text.place(at), "not a JSON list of issues")
    at = _skip(content, at + 1)
    more = content[at : at + 1] != "]"
    while more:
        try:
            _, end = _value(text, at)
        except Fault:
            item_at(text, at)  # which says better where it is no JSON
            raise
        yield at, end
        more, at = _more(text, end, "]")
    at = _skip(content, at + 1)
    if at < len(content):
        raise _invalid(text, at, "text after the list")


def item_at(text: Text, start: int) -> tuple[ListItem, int]:
    """Return the item that starts here, and where it ends. Raises Fault where it is not JSON."""
    content = text.content
    if content[start : start + 1] != "{":
        return _item(text, start, None)
    entries: dict[str, Node] = {}
    fault: Fault | None = None
    at = _skip(content, start + 1)
    more = content[at : at + 1] != "}"
    while more:
        key, at = _key(text, at)
        member, at = _item(text, at, key)
        fault = fault or member.fault
        first = entries.setdefault(key.text, member.node).key
        if first is not key and first is not None:
            fault = fault or Duplicate(key.place, first.place, key.text[:60])
        more, at = _more(text, at, "}")
    node = Node(value=entries, origin=text, start=start, end=at + 1, flow=True)
    return ListItem(node=node, fault=fault), at + 1


def _key(text: Text, start: int) -> tuple[Node, int]:
    """Return a key, and where its value starts."""
    key, end = _value(text, start)
    if not isinstance(key, str) or isinstance(key, _Number):
        raise _invalid(text, start, "a key must be a string")
    at = _skip(text.content, end)
    if text.content[at : at + 1] != ":":
        raise _invalid(text, at, "expected ':'")
    node = Node(value=key, origin=text, start=start, end=end, text=key)
    return node, _skip(text.content, at + 1)


def _more(text: Text, at: int, closing: str) -> tuple[bool, int]:
    """Tell whether another element follows, and where it, or the closing bracket, stands."""
    at = _skip(text.content, at)
    match text.content[at : at + 1]:
        case ",":
            return True, _skip(text.content, at + 1)
        case mark if mark == closing:
            return False, at
        case _:
            raise _invalid(text, at, f"expected ',' or {closing!r}")


def _item(text: Text, start: int, key: Node | None) -> tuple[ListItem, int]:
    """Return the value that starts here, all of whose parts stand where it stands."""
    value, end = _value(text, start)
    whole = Node(value=None, origin=text, start=start, end=end, flow=True, key=key)
    try:
        return ListItem(node=_filled(whole, value, 2)), end
    except Fault as exc:
        return ListItem(node=whole, fault=exc), end


def _filled(node: Node, value: object, depth: int) -> Node:
    """Return a node with a value, where another one stands that has none."""
    if depth > DEPTH_LIMIT:
        raise Fault(node.place, f"nested deeper than {DEPTH_LIMIT} levels")
    read: Scalar | tuple[Node, ...] | dict[str, Node]
    text = ""
    match value:
        case _Number():
            read, text = resolve_scalar(value), str(value)
        case str():
            read = text = value
        case list():
            inner = replace(node, key=None)
            read = tuple([_filled(inner, item, depth + 1) for item in value])
        case dict():
            inner = replace(node, key=None)
            read = {name: _filled(inner, item, depth + 1) for name, item in value.items()}
        case _:
            assert value is None or isinstance(value, bool)
            read, text = value, "null" if value is None else str(value).lower()
    return Node(read, node.origin, node.start, node.end, text, flow=True, key=node.key)


def _value(text: Text, at: int) -> tuple[object, int]:
    try:
        return _DECODER.raw_decode(text.content, at)
    except JSONDecodeError as exc:
        raise _invalid(text, exc.pos, exc.msg) from exc
    except RecursionError as exc:
        raise _invalid(text, at, "nested too deeply") from exc


def _invalid(text: Text, at: int, message: str) -> Fault:
    return Fault(text.place(at), f"not valid JSON: {message}")


def _skip(content: str, at: int) -> int:
    found = _SPACE.match(content, at)
    return found.end() if found else at
