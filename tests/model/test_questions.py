"""What a question may hold, and how an answer names one of its options."""

from __future__ import annotations

import msgspec
import pytest

from sortie.model.questions import (
    OPTION_LIMIT,
    OPTIONS_LIMIT,
    QUESTION_LIMIT,
    Question,
)

LETTERS = Question(text="Which letter?", options=("A", "Bee", "7"), default="A")


@pytest.mark.parametrize(
    "wrong",
    [
        {"text": " \n"},
        {"text": "x" * (QUESTION_LIMIT + 1)},
        {"options": ("a",) * (OPTIONS_LIMIT + 1)},
        {"options": ("a", " ")},
        {"options": ("x" * (OPTION_LIMIT + 1),)},
        {"options": ("a", "b"), "default": "c"},
        {"default": "  "},
        {"timeout": 0.0},
        {"timeout": float("inf")},
        {"timeout": float("nan")},
    ],
)
def test_questions_beyond_the_limits(wrong: dict[str, object]) -> None:
    """A question that breaks a limit cannot be made."""
    with pytest.raises(ValueError, match=r"question|option|default|timeout"):
        msgspec.convert({"text": "Which?", **wrong}, Question)


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ("1", "A"),
        (" 2\n", "Bee"),
        ("bee", "Bee"),
        ("3", "7"),
        ("7", "7"),
        ("4", "4"),
        ("0", "0"),
        ("²", "²"),
        ("neither of them", "neither of them"),
        ("9" * 5000, "9" * 5000),
    ],
)
def test_chosen_options(said: str, meant: str) -> None:
    """An option is named by its number or its words; anything else is an answer of its own."""
    assert LETTERS.chosen(said) == meant
