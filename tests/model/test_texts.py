"""Texts from outside, cut to what a person reads."""

from __future__ import annotations

import pytest

from sortie.model import TEXT_LIMIT, HostError, HostTrouble, SortieError, cut


def test_a_short_text_stays_as_it_is() -> None:
    """Up to the limit nothing is left out."""
    assert cut("x" * TEXT_LIMIT) == "x" * TEXT_LIMIT


def test_a_long_text_keeps_its_ends_and_says_so() -> None:
    """The beginning, how long it was, the end; and no more than the limit."""
    short = cut("begin" + "x" * 1_000_000 + "end")

    assert len(short) == TEXT_LIMIT
    assert short.startswith("begin")
    assert short.endswith("end")
    assert " [1000008 characters, cut] " in short


@pytest.mark.parametrize("shift", range(0, 40, 3))
def test_no_half_of_a_word_stays_at_the_cut(shift: int) -> None:
    """A secret in two halves would be recognised by nobody who strikes it out later."""
    text = " " * shift + "sk-0123456789abcdefgh " * 1000

    short = cut(text)

    assert set(short.replace("[", " ").split()) - {"characters,", "cut]", str(len(text))} == {
        "sk-0123456789abcdefgh"
    }


def test_every_expected_failure_is_bounded() -> None:
    """Whatever a host, a tracker or an agent has said in it."""
    errors = [SortieError("x" * 10**6), HostError(HostTrouble.DROPPED, "x" * 10**6)]

    assert [len(str(error)) for error in errors] == [TEXT_LIMIT] * 2
