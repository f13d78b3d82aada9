"""What is printed cannot act on the terminal and is not cut."""

from __future__ import annotations

import pytest
from rich.text import Text

from sortie.cli.output import (
    UNLIMITED,
    complain,
    emit_json,
    emit_line,
    emit_rich,
    laid_out,
    one_line,
    visible,
)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain ünï 🧵", "plain ünï 🧵"),
        ("\x1b[31mred", "\\x1b[31mred"),
        ("nul\x00bell\x07del\x7fcsi\x9b", "nul\\x00bell\\x07del\\x7fcsi\\x9b"),
        ("a\u202eb\u2028c\ud800", "a\\u202eb\\u2028c\\ud800"),
        ("two\nlines\tand a tab", "two\\x0alines\\x09and a tab"),
    ],
)
def test_visible_escapes_what_acts(text: str, shown: str) -> None:
    """Control characters, those that reorder text, and surrogates are shown, all else is kept."""
    assert visible(text) == shown


def test_visible_keeps_what_it_is_told_to() -> None:
    """Characters named in ``keep`` are left alone."""
    assert visible("a\n\tb\x1b", keep="\n\t") == "a\n\tb\\x1b"


def test_one_line_is_one_line() -> None:
    """Line ends and tabs become one space, and other separators are shown."""
    assert one_line("  a\r\nb\n\n\tc\x0bd\x85e ") == "a b c\\x0bd\\x85e"


def test_results_and_complaints_go_different_ways(capsys: pytest.CaptureFixture[str]) -> None:
    """Results are on stdout, what is said about them is on stderr."""
    emit_line("a\nresult")
    complain("cannot do\nthat")

    out, err = capsys.readouterr()
    assert (out, err) == ("a result\n", "sortie: cannot do that\n")


def test_json_is_ascii(capsys: pytest.CaptureFixture[str]) -> None:
    """What programs read holds no character that a terminal or an encoding can stumble over."""
    emit_json({"title": "ü\x1b\x9b\ud800"})

    assert capsys.readouterr().out == '{\n  "title": "\\u00fc\\u001b\\u009b\\ud800"\n}\n'


def test_rich_output_to_a_pipe_is_whole_and_plain(capsys: pytest.CaptureFixture[str]) -> None:
    """A line that is longer than a terminal is neither cut nor wrapped nor coloured."""
    emit_rich(Text("x" * 500, "bold"))

    assert capsys.readouterr().out == "x" * 500 + "\n"


def test_markup_is_text() -> None:
    """What looks like markup or an emoji's name is printed as it is."""
    assert laid_out("[bold]:smile:[/bold]", width=UNLIMITED) == "[bold]:smile:[/bold]\n"
