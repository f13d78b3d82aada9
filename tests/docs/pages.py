"""Read the documentation as data: its tables, its code and its links."""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path

from sortie import agents, trackers
from sortie.config.schemas import Schemas
from sortie.daemon.workflow_file import schemas

ROOT = Path(__file__).parents[2]
PAGES = (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")))

_SEPARATOR = re.compile(r"\|(?:\s*:?-+:?\s*\|)+")
_BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)

Row = dict[str, str]


def page(name: str) -> str:
    """Return the text of a page below ``docs``."""
    return (ROOT / "docs" / name).read_text(encoding="utf-8")


def tables(text: str) -> list[list[Row]]:
    """Return every table, its rows by the heading of each column."""
    found: list[list[Row]] = []
    lines = [*without_code(text).splitlines(), ""]
    for above, line in pairwise(lines):
        if _SEPARATOR.fullmatch(line.strip()):
            found.append([])
            headings = _cells(above)
        elif found and line.startswith("|") and above.startswith("|"):
            found[-1].append(dict(zip(headings, _cells(line), strict=True)))
    return found


def table(text: str, heading: str) -> list[Row]:
    """Return the rows of all tables whose first column has this heading."""
    rows = [row for rows in tables(text) for row in rows if next(iter(row)) == heading]
    assert rows, f"no table begins with the column {heading!r}"
    return rows


def words(cell: str) -> list[str]:
    """Return what stands in backquotes in a cell."""
    return re.findall(r"`([^`]+)`", cell)


def word(cell: str) -> str:
    """Return the one thing that stands in backquotes in a cell."""
    (found,) = words(cell)
    return found


def section(text: str, title: str) -> str:
    """Return what stands below a heading, to the next heading of the same or a higher level."""
    marks = re.search(rf"^(#+) {re.escape(title)}$", text, re.MULTILINE)
    assert marks, f"no heading {title!r}"
    below = text[marks.end() :]
    end = re.search(rf"^#{{1,{len(marks[1])}}} ", below, re.MULTILINE)
    return below[: end.start()] if end else below


def code_blocks(text: str) -> list[tuple[str, str]]:
    """Return the language and the content of every fenced block."""
    return [(language, content) for language, content in _BLOCK.findall(text)]


def without_code(text: str) -> str:
    """Return a page without its fenced blocks."""
    return _BLOCK.sub("", text)


def _cells(line: str) -> list[str]:
    cells = re.split(r"(?<!\\)\|", line.strip().strip("|"))
    return [cell.strip().replace(r"\|", "|") for cell in cells]


def built_in_schemas() -> Schemas:
    """Return the blocks of the adapters that the pages are about, without the examples'."""
    every = schemas()
    return Schemas(
        agents={kind: every.agents[kind] for kind in agents.ADAPTERS.built_in},
        trackers={kind: every.trackers[kind] for kind in trackers.ADAPTERS.built_in},
    )
