"""How large a value becomes that a template is about to make, known before it is made.

A size is in characters of a text or elements of a list, and never too small but for a constant
factor: a character may be written as ``&#34;``, for example.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Set
from types import MethodType
from typing import Any

from jinja2 import Environment
from jinja2.filters import make_attrgetter, make_multi_attrgetter
from jinja2.utils import Namespace

PROMPT_LIMIT = 4 << 20
"""Bytes that a prompt may have; characters or elements of any value that a template makes."""

_OBJECT = 200
"""Characters of the text of an object that has no values in it."""

_CONVERSION = re.compile(
    r"%(?:\((?P<key>[^()]*)\))?[#0\- +]*(?P<width>\*|\d+)?(?:\.(?P<precision>\*|\d+))?.", re.DOTALL
)
_BRACKETS_IN_KEY = re.compile(r"%\([^)]*\(")
_NUMBER = re.compile(r"\d+")


class TooLarge(Exception):
    """A text becomes longer than the limit, by an unknown amount."""


def text_size(value: Any) -> int:
    """Return how long the text of a value is. Raises TooLarge.

    Lists that hold one list many times are counted as they are written: a few of them, each ten
    times in the next, make a text that no memory holds.
    """
    return _Texts().size(value)


class _Texts:
    """Remembers the sizes of what was met before, so that each object is looked at once."""

    def __init__(self) -> None:
        self._known: dict[int, int] = {}

    def size(self, value: Any) -> int:
        match value:
            case str():
                return len(value)
            case int():
                return value.bit_length() // 3 + 6
            case Mapping():
                return self._of_all(value, (part for item in value.items() for part in item))
            case list() | tuple() | Set():
                return self._of_all(value, value)
            case Namespace():
                values = object.__getattribute__(value, "_Namespace__attrs")
                return self.size(values) + _OBJECT
            case MethodType():
                return self.size(value.__self__) + _OBJECT
        if isinstance(value, type({}.values())):
            return self._of_all(value, value)
        return _OBJECT

    def _of_all(self, whole: object, parts: Iterable[Any]) -> int:
        known = self._known.get(id(whole))
        if known is not None:
            return known
        self._known[id(whole)] = total = 5  # what is written where it holds itself
        for part in parts:
            total += self.size(part) + 4
            if total > PROMPT_LIMIT:
                raise TooLarge
        self._known[id(whole)] = total
        return total


def percent_size(text: str, values: Any) -> int:
    """Return how long ``text % values`` becomes. Raises TooLarge."""
    if _BRACKETS_IN_KEY.search(text):
        raise TooLarge
    total = len(text) + (0 if isinstance(values, Mapping) else text_size(values))
    for found in _CONVERSION.finditer(text):
        total += _number(found["width"], values) + _number(found["precision"], values)
        if found["key"] is not None and isinstance(values, Mapping):
            total += text_size(values.get(found["key"]))
    return total


def largest_number(text: str) -> int:
    """Return the largest number that is written in a text, 0 if there is none."""
    return max((_number(found, ()) for found in _NUMBER.findall(text)), default=0)


def _number(written: str | None, values: Any) -> int:
    if written == "*":
        given = values if isinstance(values, tuple) else (values,)
        return max((abs(number) for number in given if isinstance(number, int)), default=0)
    return int(written[:10]) if written else 0


def replaced_size(text: str, old: str, new: str, count: int = -1) -> int:
    """Return how long a text becomes in which ``old`` is replaced."""
    found = text.count(old)
    if count >= 0:
        found = min(found, count)
    return len(text) + found * max(0, len(new) - len(old))


def joined_size(separator: str, items: Iterable[Any]) -> int:
    """Return how long the texts of items become with a separator between them. Raises TooLarge."""
    items = list(items)
    return text_size(items) + len(items) * len(separator)


def _width(_: str, width: int = 80, *_fill: Any) -> int:
    return width


def _expanded(text: str, tabsize: int = 8) -> int:
    return len(text) + text.count("\t") * max(0, tabsize)


METHODS: Mapping[str, Callable[..., int]] = {
    "center": _width,
    "ljust": _width,
    "rjust": _width,
    "zfill": _width,
    "expandtabs": _expanded,
    "join": joined_size,
    "replace": replaced_size,
}
"""Methods of texts, by name, that make much out of little."""


Arguments = Mapping[str, Any]
"""A filter's arguments by the names that they have in Jinja, with its defaults."""


def _centered(_: Environment, given: Arguments) -> int:
    return int(given["width"])


def _indented(_: Environment, given: Arguments) -> int:
    text, width = str(given["s"]), given["width"]
    each = len(width) if isinstance(width, str) else width
    return len(text) + each * (text.count("\n") + 1)


def _replaced(_: Environment, given: Arguments) -> int:
    count = -1 if given["count"] is None else given["count"]
    return replaced_size(str(given["s"]), str(given["old"]), str(given["new"]), count)


def _wrapped(_: Environment, given: Arguments) -> int:
    text = str(given["s"])
    # Two lines in a row are longer than the width, else they were one.
    lines = 2 * len(text) // max(1, given["width"]) + text.count("\n") + 2
    return int(len(text) + lines * len(given["wrapstring"] or "\n"))


def _batched(_: Environment, given: Arguments) -> int:
    return 0 if given["fill_with"] is None else int(given["linecount"])


def _rounded(_: Environment, given: Arguments) -> int:
    return abs(int(given["precision"])) << 12  # a power of ten, which takes long as well


def _keys_sorted(environment: Environment, given: Arguments) -> int:
    keys = make_multi_attrgetter(environment, given["attribute"])
    return _letters(key for item in given["value"] for key in keys(item))


def _keys_grouped(environment: Environment, given: Arguments) -> int:
    key = make_attrgetter(environment, given["attribute"], default=given["default"])
    return _letters(map(key, given["value"]))


def _dict_sorted(_: Environment, given: Arguments) -> int:
    return max(_letters(given["value"].keys()), _letters(given["value"].values()))


def _joined(environment: Environment, given: Arguments) -> int:
    items = given["value"]
    if given["attribute"] is not None:
        items = map(make_attrgetter(environment, given["attribute"]), items)
    return joined_size(str(given["d"]), items)


def _formatted(_: Environment, given: Arguments) -> int:
    return percent_size(str(given["value"]), given["kwargs"] or given["args"])


def _json(_: Environment, given: Arguments) -> int:
    return int(given["indent"] or 0)


def _letters(keys: Iterable[Any]) -> int:
    return sum(len(key) for key in keys if isinstance(key, str))


FILTERS: Mapping[str, Callable[[Environment, Arguments], int]] = {
    "batch": _batched,
    "center": _centered,
    "dictsort": _dict_sorted,
    "format": _formatted,
    "groupby": _keys_grouped,
    "indent": _indented,
    "join": _joined,
    "replace": _replaced,
    "round": _rounded,
    "sort": _keys_sorted,
    "tojson": _json,
    "wordwrap": _wrapped,
}
"""Filters, by name, that make much out of little; sorting makes a copy of each key."""
