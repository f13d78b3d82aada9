"""Texts that come in pieces: their lines whole, and no part of a secret in them."""

from __future__ import annotations

import pytest

from sortie.agents.texts import Texts
from sortie.model.secrets import redactor
from sortie.model.turns import Notification

SECRET = "sk-5f1c0de-5f1c0de"


def test_a_line_is_told_whole() -> None:
    """Beside what is shown of it, with its indentation, and however many pieces it came in."""
    texts, line = Texts(str), "    indented " + "word " * 300 + "end"

    told = [
        note
        for piece in (line[:7], line[7:900], line[900:] + "\n")
        for note in texts.add("", "m", piece)
    ]

    shown = " ".join(["indented", *["word"] * 98])  # no half of a word at the cut
    assert told == [Notification(message=shown, text=line)]


def test_lines_of_a_piece_are_told_together() -> None:
    """With the texts of all, each with its mark."""
    texts = Texts(str)

    told = texts.add("[thought] ", "m", "one\n\n  two\n")

    text = "[thought] one\n[thought]   two"
    assert told == [Notification(message="[thought] two", lines=2, text=text)]


def test_no_half_of_a_secret_stays_where_a_line_is_cut() -> None:
    """Wherever the end of what is kept falls into it."""
    for before in range(16 * 1024 - len(SECRET) - 1, 16 * 1024 + 1):
        texts = Texts(redactor([SECRET]))

        (told,) = texts.add("", "m", "a " * (before // 2) + "b" * (before % 2) + SECRET + " c\n")

        assert told.text is not None
        assert "sk-5" not in told.text
        assert told.text.endswith("[cut]")


@pytest.mark.parametrize("gap", ["x ", " ", "\n"])
@pytest.mark.parametrize("cut_at", [40, 8 * 40])
def test_no_half_of_a_secret_stays_where_a_text_is_shortened(cut_at: int, gap: str) -> None:
    """Neither where what is shown ends nor where what is looked at does, however much of that is
    blank."""
    texts = Texts(redactor([SECRET]))
    for before in range(cut_at - len(SECRET) - 2, cut_at + 2):
        text = ("a " + gap * cut_at)[:before] + " " + SECRET + " more" * 100

        shown = texts.clean(text, limit=40)

        assert len(shown) <= 40
        assert not any(SECRET[:length] in shown for length in range(4, len(SECRET)))
