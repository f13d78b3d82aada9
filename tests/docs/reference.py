"""Write the tables of pages that are made from the code: ``python -m tests.docs.reference``.

``docs/state.md`` has the fields of ``/api/v1/state``, from the views and their docstrings, and
``docs/log-events.md`` the events of facts, from their classes.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from typing import Any, get_args, get_origin, get_type_hints

from sortie import facts
from sortie.web.state import StateView
from tests.docs.pages import ROOT

_TABLE = re.compile(r"^\| (\w+) \|.*\n\|[-|]+\|\n(?:\|.*\n)+", re.MULTILINE)


def with_table(page: str, first: str, rows: Iterator[tuple[str, ...]]) -> str:
    """Return a page with other rows in its first table whose first column has this heading."""
    found = next(match for match in _TABLE.finditer(page) if match[1] == first)
    head = "".join(f"{line}\n" for line in found[0].splitlines()[:2])
    return page.replace(found[0], head + "".join(f"| {' | '.join(row)} |\n" for row in rows))


def state_rows() -> Iterator[tuple[str, str, str]]:
    """Yield a row for each kind of object in the state: its places, fields and docstring."""
    places: dict[Any, list[str]] = {}
    _visit(StateView, "", places)
    for view, found in places.items():
        where = ", ".join(f"`{place}`" for place in found if place)
        fields = ", ".join(f"`{name}`" for name in get_type_hints(view))
        yield where or "the answer", fields, told(view)


def _visit(view: Any, place: str, places: dict[Any, list[str]]) -> None:
    places.setdefault(view, []).append(place)
    for name, kind in get_type_hints(view).items():
        many = "[]" if get_origin(kind) is tuple else ""
        for item in (kind, *get_args(kind)):
            if inspect.isclass(item) and item.__module__.startswith("sortie.web"):
                _visit(item, f"{place}.{name}{many}".lstrip("."), places)


def told(kind: Any) -> str:
    """Return a docstring as one line of Markdown."""
    text = " ".join(inspect.getdoc(kind).split())  # type: ignore[union-attr]
    return text.replace("``", "`").replace("|", r"\|")


def event_rows() -> Iterator[tuple[str, str, str]]:
    """Yield a row for each kind of fact, by the names of their events."""
    kinds = {kind.EVENT: kind for kind in vars(facts).values() if hasattr(kind, "EVENT")}
    for event, kind in sorted(kinds.items()):
        yield f"`{event}`", kind.LEVEL, told(kind).split(". ")[0].split("; ")[0].rstrip(".")


PAGES = {"log-events.md": ("event", event_rows), "state.md": ("where", state_rows)}


def main() -> None:
    """Write each page anew."""
    for name, (first, rows) in PAGES.items():
        path = ROOT / "docs" / name
        path.write_text(with_table(path.read_text(encoding="utf-8"), first, rows()), "utf-8")


if __name__ == "__main__":
    main()
