"""Tables are laid out for the width there is, and nothing in them is cut."""

from __future__ import annotations

import pytest

from sortie.cli.output import UNLIMITED
from sortie.cli.tables import Row, table

NAMES = ("issue", "kind", "attempt")
ROWS = (
    Row(("DEMO-1", "retry", "1"), "the agent said that the connection to the model was refused"),
    Row(("DEMO-22", "continuation", "0")),
)

WIDE = """\
issue    kind          attempt  reason
DEMO-1   retry               1  the agent said that the connection to the model was refused
DEMO-22  continuation        0
"""
BESIDE = """\
issue    kind          attempt  reason
DEMO-1   retry               1  the agent said that the connection to the
                                model was refused
DEMO-22  continuation        0
"""
BELOW = """\
issue    kind          attempt
DEMO-1   retry               1
    the agent said that the connection to the
    model was refused
DEMO-22  continuation        0
"""
LISTS = """\
DEMO-1
  kind     retry
  attempt  1
  the agent said that the
  connection to the model
  was refused
DEMO-22
  kind     continuation
  attempt  0
"""


@pytest.mark.parametrize(
    ("width", "expected"),
    [(UNLIMITED, WIDE), (92, WIDE), (75, BESIDE), (50, BELOW), (25, LISTS)],
)
def test_the_text_of_a_row_stands_where_it_can_be_read(width: int, expected: str) -> None:
    """Beside the cells, wrapped there, below them, or in a list: whole at each width."""
    assert table(NAMES, ROWS, width, text="reason") == expected


@pytest.mark.parametrize("width", [*range(3, 60), 100])
def test_no_width_costs_a_word(width: int) -> None:
    """Every character is there and no line is longer than the width, however narrow it is."""
    written = table(NAMES, ROWS, width, text="reason")

    plain = "".join(written.split())
    for row in ROWS:
        for text in (*row.cells, row.text):
            assert width < 15 or "".join(text.split()) in plain
    assert width < 15 or max(map(len, written.splitlines())) <= width


def test_a_text_can_always_stand_below() -> None:
    """Without a column of its own the text follows its row at any width."""
    rows = (Row(("A", "b", "0"), "why"),)

    assert table(NAMES, rows, UNLIMITED) == (
        "issue  kind  attempt\nA      b           0\n    why\n"
    )


def test_wide_characters_count_as_wide() -> None:
    """A name in double-width characters moves no column, and cannot act on the terminal."""
    rows = (Row(("件-1\x1b[2J", "x", "0")), Row(("A-1", "x", "0")))

    first, second = table(NAMES, rows, UNLIMITED).splitlines()[1:]

    assert "\x1b" not in first
    assert first.index("x", 12) + 1 == second.index("x")
