"""Escapes, redraws and lines."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sortie.lines import (
    LINE_LIMIT,
    LineSplitter,
    LineTooLong,
    RawLineSplitter,
    clean_line,
    clean_lines,
    strip_escapes,
)

Found = list[str | LineTooLong]

PIECES = st.sampled_from(
    [b"a", b"\n", b"\r", b"\r\n", b"\x1b[1m", b"\x1b", b"[", b"\xe2\x96\xb8", b"\xff", b"long" * 5]
)
REDRAWN = [
    b"a",
    b"\n",
    b"\x1b[2K",
    b"\x1b[1m",
    b"\x1b",
    b"[",
    b"\xe2\x96",
    b"\xb8",
    b"\xff",
    b"\x07",
]
STREAMS = st.lists(PIECES, max_size=30).map(b"".join)


def split(chunks: list[bytes], limit: int = LINE_LIMIT) -> Found:
    splitter = LineSplitter(limit)
    found: Found = [line for chunk in chunks for line in splitter.feed(chunk)]
    return found + splitter.close()


@pytest.mark.parametrize(
    ("raw", "clean"),
    [
        ("plain", "plain"),
        ("\x1b[38;5;141m> \x1b[0mPONG", "> PONG"),
        ("\x1b[?25lbusy\x1b[?25h", "busy"),
        ("a\x1b[2Kb\x1b[0Kc\x1b[Kd", "abcd"),
        ("\x1b[1 qcursor\x1b[>4;2m", "cursor"),
        ("\x1b]0;a title\x07text", "text"),
        ("\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x1b]0;never ended", "0;never ended"),
        ("\x1b]0;never ended\n▸ Credits", "0;never ended\n▸ Credits"),
        ("\x1bPdcs\x1b\\x\x1b_apc\x1b\\y\x1b^pm\x07z", "xyz"),
        ("\x1b(Bset\x1b=\x1b>\x1bM", "set"),
        ("lone\x1b", "lone"),
        ("cut\x1b[38;5", "cut"),
        ("cut\x1b[38;5é", "cuté"),
        ("\x9b1mC1\x9b0m\x9d0;t\x9c", "C1"),
        ("bell\x07 back\x08 nul\x00 del\x7f", "bell back nul del"),
        ("tab\tstays", "tab\tstays"),
        ("\x1b\x1b[1mtwice", "twice"),
    ],
)
def test_strip_escapes(raw: str, clean: str) -> None:
    """Every kind of escape goes, whole or cut short, and nothing of the text with it."""
    assert strip_escapes(raw) == clean


@given(st.text(alphabet="\x1b[]0;m\x07\\PX^_ \x9b\x9d\x9ca", max_size=40))
def test_stripped_text_holds_no_escape(raw: str) -> None:
    """Whatever the input, no control character survives."""
    assert not set(strip_escapes(raw)) & set("\x1b\x07\x9b\x9d\x9c")


def test_stripping_takes_linear_time() -> None:
    """A megabyte of introducers that never end does not stall the reader."""
    assert strip_escapes("\x1b]" * 500_000) == ""
    assert strip_escapes("\x1b[" + "0;" * 500_000) == ""


@pytest.mark.parametrize(
    ("raw", "clean"),
    [
        ("10%\r50%\rdone", "done"),
        ("line\r", "line"),
        ("line\r\r", "line"),
        ("⠋ Thinking...\x1b[2K> answer", "> answer"),
        ("⠋ Thinking...\r\x1b[K", ""),
        ("half\x1b[1Krest", "rest"),
    ],
)
def test_only_the_last_redraw_counts(raw: str, clean: str) -> None:
    """What was drawn over does not count; a carriage return at the end draws over nothing."""
    assert clean_line(raw) == clean


@pytest.mark.parametrize(
    ("stream", "lines"),
    [
        (b"", []),
        (b"one\ntwo\n", ["one", "two"]),
        (b"> Red\nBlue\nYellow", ["> Red", "Blue", "Yellow"]),
        (b"dos\r\n\r\nend", ["dos", "", "end"]),
        (b"spin\rspin\r> answer\nx", ["> answer", "x"]),
        (b"kept\r", ["kept"]),
        (b"\xff\xe2\x96\n\xe2\x96\xb8", ["\ufffd\ufffd", "▸"]),
    ],
)
def test_lines(stream: bytes, lines: list[str]) -> None:
    """Lines end at line feeds, the unterminated last one counts, bad UTF-8 is replaced."""
    assert split([stream]) == lines


@given(st.lists(st.sampled_from([*REDRAWN, b"\xc2\x9b1m", b"\x1b]0;t", b"\xc2"])).map(b"".join))
def test_lines_that_are_cleaned_at_once_are_as_clean(block: bytes) -> None:
    """What is done to a whole block gives what each of its lines gives by itself."""
    each = [clean_line(line.decode(errors="replace")) for line in block.split(b"\n")]

    assert clean_lines(block) == each
    assert split([block + b"\n"]) == each


@given(stream=STREAMS, cuts=st.sets(st.integers(0, 200)))
def test_chunks_make_no_difference(stream: bytes, cuts: set[int]) -> None:
    """Any chunking of the same bytes gives the same lines, over-long ones included."""
    places = [0, *sorted(c for c in cuts if c < len(stream)), len(stream)]
    chunks = [stream[a:b] for a, b in pairwise(places)]

    assert split(chunks, limit=12) == split([stream], limit=12)


def test_a_line_at_the_limit_is_kept_and_a_longer_one_is_an_error_value() -> None:
    """The limit counts bytes; the line after a dropped one is read again."""
    found = split([b"12345678\n123456789\nnext\n123456789"], limit=8)

    assert found == ["12345678", LineTooLong(8), "next", LineTooLong(8)]


def test_ten_mebibytes_are_a_line() -> None:
    """The default limit lets 10 MiB through, in blocks, and stops one byte later."""
    block = b"x" * (1024 * 1024)

    assert split([block] * 10) == ["x" * LINE_LIMIT]
    assert split([block] * 10 + [b"x"]) == [LineTooLong(LINE_LIMIT)]


def test_a_spinner_takes_no_memory() -> None:
    """Redraws of one line never add up to a line that is too long."""
    assert split([b"\r| working"] * 10 + [b"\rdone\n"], limit=10) == ["done"]


@given(STREAMS, st.integers(1, 7))
def test_raw_lines_do_not_depend_on_chunks_and_lose_nothing(stream: bytes, size: int) -> None:
    """What stands between line feeds comes unchanged, however it was cut."""
    splitter = RawLineSplitter()

    found: Found = []
    for at in range(0, len(stream), size):
        found += splitter.feed(stream[at : at + size])
    found += splitter.close()

    lines = stream.decode(errors="replace").split("\n")
    assert found == (lines if lines[-1] else lines[:-1])


@pytest.mark.parametrize("size", [1, 3, 100])
def test_a_raw_line_that_is_too_long_is_dropped_and_told_once(size: int) -> None:
    """The lines around it are read, and nothing of it is kept."""
    splitter, stream = RawLineSplitter(limit=5), b"12345\n123456789\nok\n"

    found: Found = []
    for at in range(0, len(stream), size):
        found += splitter.feed(stream[at : at + size])

    assert found == ["12345", LineTooLong(5), "ok"]
