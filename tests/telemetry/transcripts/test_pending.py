"""What waits to be written is bounded, and says what had to go."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from sortie.model import cut
from sortie.telemetry.transcripts import Kind
from sortie.telemetry.transcripts.entries import Entry
from sortie.telemetry.transcripts.pending import LIMIT, Pending, bounded


def said(text: str) -> Entry:
    return Entry(0.0, Kind.OUTPUT, 1, text)


@given(st.lists(st.text("ab\n", max_size=20), max_size=20))
def test_what_fits_is_kept_as_it_came(texts: list[str]) -> None:
    """Nothing is left out, and the order is that of the lines."""
    pending = Pending()
    for text in texts:
        pending.add(said(text))

    assert [entry.text for entry in pending.entries()] == texts


def test_of_too_much_the_middle_is_left_out() -> None:
    """The first and the last entries stay, a gap between them counts the lines that went, and what
    waits stays within the limit."""
    pending, size = Pending(), LIMIT // 20
    for number in range(100):
        pending.add(said(f"{number}\n{'x' * size}"))
        assert pending.size <= LIMIT

    entries = pending.entries()
    numbers = [entry.text.split("\n")[0] for entry in entries if entry.kind is Kind.OUTPUT]
    (gap,) = (entry for entry in entries if entry.kind is Kind.GAP)
    head = entries.index(gap)

    assert numbers[:head] == [str(number) for number in range(head)]
    assert numbers[head:] == [str(number) for number in range(100 - len(numbers) + head, 100)]
    assert head > 0
    assert len(numbers) > head
    assert gap.text.startswith(f"{2 * (100 - len(numbers))} lines are left out")


def test_empty_lines_count() -> None:
    """A flood of entries without text is bounded, too."""
    pending = Pending()
    for _ in range(LIMIT // 10):
        pending.add(said(""))

    assert len(pending) < LIMIT // 32


def test_what_nobody_had_room_for_is_a_gap() -> None:
    """Entries that were not taken at all are told where they would be."""
    pending = Pending()
    pending.add(said("before"))
    pending.leave_out(said("a\nb"))
    pending.add(said("behind"))

    texts = [entry.text.split(" are")[0] for entry in pending.entries()]
    assert texts == ["before", "2 lines", "behind"]


def test_a_huge_text_is_cut_in_its_middle() -> None:
    """One entry is never longer than a quarter of what may wait."""
    huge = "word " * LIMIT

    assert bounded("short") == "short"
    assert bounded(huge) == cut(huge, LIMIT // 4)
