"""The line that proves that a turn ran."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sortie.kiro.headless.trailer import TRAILER_PREFIX, Trailer, find_trailer


@pytest.mark.parametrize(
    ("stderr", "credits_spent", "seconds"),
    [
        (" ▸ Credits: 0.07 • Time: 4s", 0.07, 4.0),
        ("▸ Credits: 12 • Time: 1m 3s\n", 12.0, 63.0),
        ("▸ Credits: 12 • Time: 2h 1m 3.5s\n", 12.0, 7263.5),
        ("\x1b[38;5;244m ▸ Credits: \x1b[1m0.05\x1b[0m • Time: 1s\x1b[0m\n\n", 0.05, 1.0),
        ("all tools done ▸ Credits: 1.5", 1.5, None),
        ("▸ Credits: 1.5 • Time: soon", 1.5, None),
        ("▸ Credits: 1.5 • Time: 1.2.3s", 1.5, None),
        ("progress\r ▸ Credits: 0.2 • Time: 4s\r", 0.2, 4.0),
        (" ▸ Credits: 1 • Time: 1s\n ▸ Credits: 2 • Time: 5s\n", 2.0, 5.0),
        ("▸ Credits: 0", 0.0, None),
    ],
)
def test_the_last_trailer_counts(stderr: str, credits_spent: float, seconds: float | None) -> None:
    """Escapes, text around it and a missing time make no difference."""
    assert find_trailer(stderr) == Trailer(credits=credits_spent, seconds=seconds)


@pytest.mark.parametrize(
    "number", ["0,07", "1,234.5", "1.2.3", "-1", "nan", "inf", "1e5", "<0.01", "", "٣", "9" * 400]
)
def test_a_number_that_cannot_be_read_is_unknown(number: str) -> None:
    """The prefix alone proves the turn; no wrong number is made of another format."""
    assert find_trailer(f"▸ Credits: {number} • Time: 4s") == Trailer(credits=None, seconds=4)


@pytest.mark.parametrize(
    "stderr", ["", "Credits: 0.07 • Time: 4s", "▸ Time: 4s", "▸ credits: 1", "▸ Credits"]
)
def test_anything_else_is_no_trailer(stderr: str) -> None:
    """Only the exact prefix counts."""
    assert find_trailer(stderr) is None


@pytest.mark.parametrize(
    ("after", "found"),
    [(4096 - len(TRAILER_PREFIX.encode()), True), (4097 - len(TRAILER_PREFIX.encode()), False)],
)
def test_only_the_end_of_stderr_counts(after: int, found: bool) -> None:
    """A trailer further than 4 KiB from the end, escapes not counted, is none."""
    stderr = TRAILER_PREFIX + "\x1b[0m" * 5000 + "x" * after

    assert (find_trailer(stderr) is not None) is found


@given(st.text(max_size=50), st.text(max_size=50))
def test_no_text_breaks_the_search(before: str, after: str) -> None:
    """Whatever stands around it, a trailer of its own line is found."""
    assert find_trailer(f"{before}\n▸ Credits: 0.07\n{after}") is not None
