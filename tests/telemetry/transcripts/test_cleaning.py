"""Texts are clean when they are written: no secret, no control character, no endless line."""

from __future__ import annotations

import json
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sortie.telemetry.transcripts.cleaning import LINE_LIMIT, PIECE, Cleaner, pieces

SECRET = 'tok"en/5f1c0de'
KEY = "-----BEGIN KEY-----\nMIIEpAIBAAKCAQEA5f1c0de\nabc\n-----END KEY-----\n"


@pytest.mark.parametrize("spelled", [SECRET, json.dumps(SECRET), quote(SECRET, safe="")])
def test_a_secret_is_taken_out_however_it_is_spelled(spelled: str) -> None:
    """Also in the middle of a line, and as often as it is there."""
    clean = Cleaner([SECRET])

    assert clean(f"a{spelled}b\n{spelled}") == f"a{spelled}b\n{spelled}".replace(
        spelled.strip('"') if spelled != SECRET else SECRET, "***"
    )


def test_lines_of_a_secret_are_secret() -> None:
    """Of a key of several lines each long one gives it away, and is taken out by itself."""
    clean = Cleaner([KEY])

    assert clean("MIIEpAIBAAKCAQEA5f1c0de") == "***"
    assert clean("abc is a word") == "abc is a word"


def test_what_is_too_short_is_no_secret() -> None:
    """Else it would be found in every other word."""
    assert Cleaner(["abc", "", " "])("abc") == "abc"


def test_what_steers_a_terminal_is_replaced() -> None:
    """Control characters and what no file can hold; tabs stay."""
    assert Cleaner([])("a\x1b[31m\tb\x00\ud800\x9bc") == "a\ufffd[31m\tb\ufffd\ufffd\ufffdc"


def test_a_long_line_keeps_its_ends() -> None:
    """Its middle is left out, and the lines beside it stay."""
    text = "first\n" + "long " * LINE_LIMIT + "\nlast"

    first, long, last = Cleaner([])(text).split("\n")

    assert (first, last) == ("first", "last")
    assert len(long) <= LINE_LIMIT
    assert "characters, cut" in long


def test_no_half_of_a_secret_stays_where_a_line_is_cut() -> None:
    """Secrets are taken out before."""
    line = "x" * (LINE_LIMIT // 2 - 30) + SECRET + "y" * LINE_LIMIT

    assert "5f1c" not in Cleaner([SECRET])(line)


@given(st.lists(st.integers(0, PIECE // 3), max_size=20))
def test_pieces_are_whole_lines(lengths: list[int]) -> None:
    """Put together again they are the text, and none is much longer than it may be."""
    text = "\n".join("x" * length for length in lengths)

    parts = list(pieces(text))

    assert "\n".join(parts) == text
    assert all(len(part) <= PIECE for part in parts)
