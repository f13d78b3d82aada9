"""JSON text to nodes: the issues of a list, each with the place of every key."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from json import JSONDecodeError, JSONDecoder

from sortie.trackers.file.nodes import DEPTH_LIMIT, Flaw, Mapping, Node, Scalar, Sequence, mapping

_SPACE = re.compile(r"[ \t\r\n]*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """One item of the list; with a flaw, ``node`` is what could be made of it."""

    node: Node
    flaw: Flaw | None = None


class _Number(str):
    """A number, kept as it is written: it is read as one only where a field wants one."""

    __slots__ = ()


_DECODER = JSONDecoder(parse_int=_Number, parse_float=_Number, parse_constant=_Number)


def items(text: str) -> Iterator[Item]:
    """Yield what stands in the list that a text is.

    Raises Flaw where the text is not a JSON list, which may be after some items.
    """
    at = _skip(text, 1 if text.startswith("\ufeff") else 0)
    if text[at : at + 1] != "[":
        raise Flaw(at, "not a JSON list of issues")
    at = _skip(text, at + 1)
    more = text[at : at + 1] != "]"
    while more:
        item, at = item_at(text, at)
        yield item
        more, at = _more(text, at, "]")
    at = _skip(text, at + 1)
    if at < len(text):
        raise Flaw(at, "not valid JSON: text after the list")


def item_at(text: str, start: int) -> tuple[Item, int]:
    """Return the item that starts here, and where it ends. Raises Flaw where it is not JSON."""
    if text[start : start + 1] != "{":
        value, end = _value(text, start)
        return _converted(value, start, end), end
    pairs: list[tuple[Scalar, Node]] = []
    flaw: Flaw | None = None
    at = _skip(text, start + 1)
    more = text[at : at + 1] != "}"
    while more:
        key, member, at = _member(text, at)
        flaw = flaw or member.flaw
        pairs.append((key, member.node))
        more, at = _more(text, at, "}")
    try:
        whole = mapping(pairs, flow=True, start=start, end=at + 1)
    except Flaw as exc:
        flaw = flaw or exc
        whole = Mapping(pairs=tuple(pairs), flow=True, start=start, end=at + 1)
    return Item(node=whole, flaw=flaw), at + 1


def _member(text: str, start: int) -> tuple[Scalar, Item, int]:
    key, end = _value(text, start)
    if not isinstance(key, str) or isinstance(key, _Number):
        raise Flaw(start, "not valid JSON: a key must be a string")
    at = _skip(text, end)
    if text[at : at + 1] != ":":
        raise Flaw(at, "not valid JSON: expected ':'")
    value_at = _skip(text, at + 1)
    value, value_end = _value(text, value_at)
    name = Scalar(text=key, plain=False, start=start, end=end)
    return name, _converted(value, value_at, value_end), value_end


def _more(text: str, at: int, closing: str) -> tuple[bool, int]:
    """Tell whether another element follows, and where it, or the closing bracket, stands."""
    at = _skip(text, at)
    match text[at : at + 1]:
        case ",":
            return True, _skip(text, at + 1)
        case mark if mark == closing:
            return False, at
        case _:
            raise Flaw(at, f"not valid JSON: expected ',' or {closing!r}")


def _converted(value: object, start: int, end: int) -> Item:
    try:
        return Item(node=_node(value, start, end, 2))
    except Flaw as exc:
        return Item(node=Scalar(text="null", plain=True, start=start, end=end), flaw=exc)


def _node(value: object, start: int, end: int, depth: int) -> Node:
    """Return a decoded value as nodes, which all stand where the value stands."""
    if depth > DEPTH_LIMIT:
        raise Flaw(start, f"nested deeper than {DEPTH_LIMIT} levels")
    match value:
        case _Number():
            return Scalar(text=str(value), plain=True, start=start, end=end)
        case str():
            return Scalar(text=value, plain=False, start=start, end=end)
        case list():
            nodes = tuple(_node(item, start, end, depth + 1) for item in value)
            return Sequence(items=nodes, flow=True, start=start, end=end)
        case dict():
            pairs = tuple(
                (
                    Scalar(text=key, plain=False, start=start, end=end),
                    _node(item, start, end, depth + 1),
                )
                for key, item in value.items()
            )
            return Mapping(pairs=pairs, flow=True, start=start, end=end)
        case _:
            word = "null" if value is None else str(value).lower()
            return Scalar(text=word, plain=True, start=start, end=end)


def _value(text: str, at: int) -> tuple[object, int]:
    try:
        return _DECODER.raw_decode(text, at)
    except JSONDecodeError as exc:
        raise Flaw(exc.pos, f"not valid JSON: {exc.msg}") from exc
    except RecursionError as exc:
        raise Flaw(at, "not valid JSON: nested too deeply") from exc


def _skip(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    return found.end() if found else at
