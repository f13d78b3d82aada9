"""Write the reference of the client into its page, from the docstrings.

``python -m tests.docs.kiro_reference`` does it; a test holds that it has been done.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from dataclasses import MISSING, fields, is_dataclass
from types import FunctionType
from typing import Any

import sortie.kiro
from tests.docs.pages import ROOT, page

PAGE = "kiro-client.md"
TITLE = "## Reference\n"

_SENTENCE = re.compile(r"(?<=[\w`)*]\.) (?=[A-Z`])")
_INTRODUCTION = (
    "This part is made from the docstrings, by `python -m tests.docs.kiro_reference`.\n"
    "All names are imported from `sortie.kiro`.\n"
)


def with_reference(text: str) -> str:
    """Return a page with the reference as the docstrings have it now."""
    before, title, _ = text.partition(TITLE)
    assert title, f"the page has no {TITLE!r}"
    return before + title + "\n" + _INTRODUCTION + "".join(_entries())


def _entries() -> Iterator[str]:
    for name in sorted(sortie.kiro.__all__, key=_rank):
        thing = getattr(sortie.kiro, name)
        if isinstance(thing, FunctionType):
            yield _heading(3, name) + _code(_signature(name, thing)) + _prose(thing)
        elif isinstance(thing, type):
            yield from _class(name, thing)
        else:
            yield _heading(3, name) + _code(f"{name} = {_union(thing)}")


def _rank(name: str) -> tuple[int, str]:
    thing = getattr(sortie.kiro, name)
    if isinstance(thing, FunctionType):
        return 0, name
    if not isinstance(thing, type):
        return 3, name
    if issubclass(thing, Exception):
        return 4, name
    return (1 if name.startswith("Kiro") else 2), name


def _class(name: str, thing: type) -> Iterator[str]:
    bases = ", ".join(base.__name__ for base in thing.__bases__ if base is not object)
    yield _heading(3, name)
    if is_dataclass(thing):
        yield _code(f"{name}(*, {', '.join(_fields(thing))})")
    elif issubclass(thing, Exception):
        yield _code(f"class {name}({bases})")
    else:
        yield _code(_signature(name, thing))
    yield _prose(thing)
    for member, value in vars(thing).items():
        if member.startswith("_") or not (isinstance(value, FunctionType | property)):
            continue
        shown = f"{name}.{member}"
        signature = shown if isinstance(value, property) else _signature(shown, value)
        yield _heading(4, shown) + _code(signature) + _prose(value)


def _fields(thing: type) -> Iterator[str]:
    for part in fields(thing):
        kind = str(part.type)
        if part.default is not MISSING:
            yield f"{part.name}: {kind} = {part.default!r}"
        elif part.default_factory is not MISSING:
            yield f"{part.name}: {kind} = {part.default_factory()!r}"
        else:
            yield f"{part.name}: {kind}"


def _signature(name: str, thing: Any) -> str:
    begin = "async def " if inspect.iscoroutinefunction(thing) else ""
    text = str(inspect.signature(thing)).replace("'", "").replace("(self, ", "(")
    return f"{begin}{name}{text.replace('(self)', '()')}"


def _union(thing: Any) -> str:
    return " | ".join(each.__name__ for each in thing.__args__)


def _heading(level: int, name: str) -> str:
    return f"\n{'#' * level} {name}\n\n"


def _code(text: str) -> str:
    return f"```python\n{text}\n```\n\n"


def _prose(thing: object) -> str:
    paragraphs = (inspect.getdoc(thing) or "").split("\n\n")
    joined = (" ".join(paragraph.split()).replace("``", "`") for paragraph in paragraphs)
    return "\n\n".join(_SENTENCE.sub("\n", paragraph) for paragraph in joined) + "\n"


if __name__ == "__main__":
    path = ROOT / "docs" / PAGE
    path.write_text(with_reference(page(PAGE)), encoding="utf-8")
