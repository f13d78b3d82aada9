"""Tables for people, at any width: what is long is wrapped, and nothing is cut.

A row has short cells and one text, which is what its reader came for. The text stands beside the
cells where there is room, else below them; where not even the cells fit, the row becomes a list.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct
from rich.cells import cell_len
from rich.console import RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from sortie.cli.output import laid_out, one_line

_GAP = 2
_INDENT = 4
_READABLE = 40
"""Columns in which a wrapped text can be read."""

_NUMBERS = frozenset(
    {"turn", "turns", "attempt", "for", "due", "took", "credits", "tokens", "cost", "runs", "files"}
)


class Row(Struct, frozen=True):
    """A row of a table; ``text`` may be long, and "" is none."""

    cells: Sequence[str]
    text: str = ""


def fits(names: Sequence[str], rows: Sequence[Row], width: int) -> bool:
    """Tell whether the cells of all rows stand beside each other in ``width`` columns."""
    return _width(names, [_visible(row) for row in rows]) <= width


def table(names: Sequence[str], rows: Sequence[Row], width: int, *, text: str | None = None) -> str:
    """Return rows under the names of their cells, in ``width`` columns.

    ``text`` is the name of the text's column; None has it always below its row.
    """
    rows = [_visible(row) for row in rows]
    texts = [cell_len(row.text) for row in rows]
    cells = _width(names, rows)
    if cells > width:
        return _lists(names, rows, width)
    if text is not None and width - cells - _GAP >= min(max((*texts, cell_len(text))), _READABLE):
        return _beside([*names, text], rows, width)
    return _below(names, rows, width)


def _visible(row: Row) -> Row:
    return Row([one_line(cell) for cell in row.cells], one_line(row.text))


def _width(names: Sequence[str], rows: Sequence[Row]) -> int:
    return _GAP * (len(names) - 1) + sum(
        max(cell_len(name), *(cell_len(row.cells[index]) for row in rows))
        for index, name in enumerate(names)
    )


def _beside(names: Sequence[str], rows: Sequence[Row], width: int) -> str:
    found = _cells(names)
    for row in rows:
        found.add_row(*map(Text, row.cells), Text(row.text, overflow="fold"))
    return _tidy(laid_out(found, width=width))


def _below(names: Sequence[str], rows: Sequence[Row], width: int) -> str:
    found = _cells(names)
    for row in rows:
        found.add_row(*map(Text, row.cells))
    heading, *lines = laid_out(found, width=width).splitlines()
    listing = [heading]
    for row, line in zip(rows, lines, strict=True):
        listing.append(line)
        if row.text:
            below = Padding(Text(row.text, overflow="fold"), (0, 0, 0, _INDENT), expand=False)
            listing += laid_out(below, width=width).splitlines()
    return _tidy("\n".join(listing))


def _cells(names: Sequence[str]) -> Table:
    found = Table(box=None, pad_edge=False, padding=(0, _GAP, 0, 0))
    for name in names:
        found.add_column(
            name,
            no_wrap=name != names[-1],
            overflow="fold",
            justify="right" if name in _NUMBERS else "left",
        )
    return found


def _lists(names: Sequence[str], rows: Sequence[Row], width: int) -> str:
    parts: list[RenderableType] = []
    for row in rows:
        head, *cells = row.cells
        found = Table.grid(padding=(0, _GAP, 0, 0))
        found.add_column(no_wrap=True)
        found.add_column(overflow="fold")
        for name, cell in zip(names[1:], cells, strict=True):
            if cell:
                found.add_row(Text(f"  {name}"), Text(cell))
        parts += [Text(head, "bold", overflow="fold"), found]
        if row.text:
            parts.append(Padding(Text(row.text, overflow="fold"), (0, 0, 0, 2), expand=False))
    return _tidy(laid_out(*parts, width=width))


def _tidy(text: str) -> str:
    return "".join(f"{line.rstrip()}\n" for line in text.splitlines())
