"""The table of the page: that it has each row, and is filled from what was measured."""

from __future__ import annotations

from tests.benchmarks.page import PAGE, filled
from tests.benchmarks.table import ROWS
from tests.docs.pages import table, word

MACHINE = {
    "cores": 2,
    "processor": "a processor",
    "architecture": "x86_64",
    "kernel": "Linux 6.1",
    "python": "3.11.2",
    "load": 0.25,
    "at": "2026-01-02T03:04:05+00:00",
}
RESULTS = {
    "short": False,
    "machine": MACHINE,
    "rows": [{"name": "turn.cpu", "ours": 4.5, "baseline": 0.3, "met": True}],
}


def rows(text: str) -> dict[str, dict[str, str]]:
    return {word(row["row"]): row for row in table(text, "row")}


def test_the_page_has_each_row() -> None:
    """Name, words, unit, bar and baseline of each row stand on the page as in the table here."""
    shown = rows(PAGE.read_text())

    assert list(shown) == [row.name for row in ROWS]
    for row in ROWS:
        told = shown[row.name]
        bar = "" if row.bar is None else f"{'≥ ' if row.more_is_better else ''}{row.bar:g}"
        assert (told["what"], told["unit"], told["bar"], told["beside"]) == (
            row.what,
            row.unit,
            bar,
            row.baseline,
        )


def test_results_go_into_their_rows_and_leave_others() -> None:
    """What was measured replaces what stood there, with the machine; other rows stay."""
    before = PAGE.read_text()

    after = filled(before, RESULTS)

    changed = rows(after)
    kept = rows(before)
    assert (changed["turn.cpu"]["ours"], changed["turn.cpu"]["met"]) == ("4.50", "yes")
    assert (changed["turn.cpu"]["baseline"], changed["turn.cpu"]["ratio"]) == ("0.30", "15.0")
    assert {n: r for n, r in changed.items() if n != "turn.cpu"} == {
        n: r for n, r in kept.items() if n != "turn.cpu"
    }
    assert (
        "Measured on 2 cores (a processor, x86_64), Linux 6.1, Python 3.11.2,"
        " with a load of 0.25 before, on 2026-01-02.\n" in after
    )
    assert filled(after, RESULTS) == after
