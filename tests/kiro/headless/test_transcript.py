"""Answers, out of what Kiro prints for people."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sortie.kiro.headless.transcript import answers

MARK = "\x1b[38;5;141m> \x1b[0m"
OLD_TOOL = (
    "\x1b[38;5;141m🛠️  Using tool: fs_write\x1b[38;5;2m (trusted)\x1b[0m\n"
    "\x1b[38;5;141m ⋮ \x1b[0m\n"
    "\x1b[38;5;141m ● \x1b[0mPath: a.md\n\n"
    "> a quotation in the file\n"
    "\x1b[38;5;141m ● \x1b[0mCompleted in 0.2s\n\n"
)


@pytest.mark.parametrize(
    ("stdout", "expected"),
    [
        (f"{MARK}PONG", ["PONG"]),
        ("> Red\nBlue\nYellow", ["Red\nBlue\nYellow"]),
        (f"{MARK}\x1b[1mRed\x1b[22m\n\nBlue\n\n", ["Red\n\nBlue"]),
        (f"{MARK}one\n{MARK}two", ["one", "two"]),
        (f"{MARK}one\n> quoted\n{MARK}two", ["one\n> quoted", "two"]),
        ("> one\n> quoted", ["one\n> quoted"]),
        (f"\r\x1b[?25l\x1b[38;5;244m⠋ Thinking...\x1b[0m\r\x1b[2K\x1b[?25h{MARK}done", ["done"]),
        (f"{MARK}first\n{OLD_TOOL}{MARK}second", ["first", "second"]),
        (f"> first\n{OLD_TOOL}> second", ["first", "second"]),
        (f"{OLD_TOOL}> only", ["only"]),
        (f"a greeting\n{MARK}\n  indented\n", ["  indented"]),
        ("no marker at all\nin two lines", ["no marker at all\nin two lines"]),
        (MARK, []),
        ("", []),
        ("\n\n", []),
    ],
)
def test_answers(stdout: str, expected: list[str]) -> None:
    """Markers part answers; tools, quotations, redraws and escapes are none."""
    assert answers(stdout.encode()) == expected


@given(st.binary(max_size=300))
def test_nothing_breaks_it(stdout: bytes) -> None:
    """Whatever is printed, no escape is left and no answer is blank."""
    for answer in answers(stdout):
        assert answer.strip()
        assert "\x1b" not in answer


@given(st.lists(st.text(alphabet="abc >\n", min_size=1).map(str.strip).filter(bool), max_size=4))
def test_coloured_answers_come_back(texts: list[str]) -> None:
    """What was printed behind markers is what is read."""
    said = ["\n".join(line.rstrip() for line in text.split("\n")) for text in texts]

    assert answers("\n".join(MARK + text for text in said).encode()) == said
