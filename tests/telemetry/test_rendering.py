"""Rendering: whatever a value holds, an event is one harmless line."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sortie.telemetry.log.cleaning import Cleaner
from sortie.telemetry.log.rendering import JsonRenderer, TextRenderer

TEXT = TextRenderer(colours=False)
JSON = JsonRenderer()

# Surrogates too: file names and agents' output may hold them.
ANY_TEXT = st.text(st.characters(exclude_categories=()))
SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | ANY_TEXT | st.binary()
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner) | st.dictionaries(ANY_TEXT, inner), max_leaves=10
)


def render(renderer: TextRenderer | JsonRenderer, **values: object) -> str:
    clean = Cleaner(())(None, "info", {"level": "info", "event": "it.happened", **values})
    return renderer(None, "info", clean)


@pytest.mark.parametrize("renderer", [TEXT, JSON], ids=["text", "json"])
@given(value=VALUES)
def test_no_value_makes_a_second_line(renderer: TextRenderer | JsonRenderer, value: object) -> None:
    """A line holds no character that ends a line or that a terminal could act on."""
    line = render(renderer, value=value)

    assert line.isprintable()
    assert line.splitlines() == [line]


@given(value=ANY_TEXT)
def test_json_carries_a_text_unchanged(value: str) -> None:
    """A program that parses the JSON line gets the text back, escapes and all."""
    line = render(JSON, value=value)

    assert json.loads(line) == {"level": "info", "event": "it.happened", "value": value}


@given(value=ANY_TEXT)
def test_a_value_cannot_pretend_to_be_another_key(value: str) -> None:
    """What follows ``value=`` is one bare word without ``=``, or one quoted text."""
    line = render(TEXT, time="T", value=value)

    written = line.removeprefix("T info    it.happened value=")
    if written.startswith('"'):
        assert json.loads(written) == value
    else:
        assert written == value
        assert not set(written) & set(' "=')


@pytest.mark.parametrize(
    ("value", "written"),
    [
        ("plain", "plain"),
        ("two words", '"two words"'),
        ("", '""'),
        ("a=b", '"a=b"'),
        ('say "hi"', r'"say \"hi\""'),
        ("one\ntwo", r'"one\ntwo"'),
        ("\x1b[31mred", r'"\u001b[31mred"'),
        ("\u202eback", r'"\u202eback"'),
        ("\u2028", r'"\u2028"'),
        ("\U000e0041", r'"\udb40\udc41"'),
        ("Ünïcode✓", "Ünïcode✓"),
        (None, "null"),
        (True, "true"),
        (3, "3"),
        (0.5, "0.5"),
        (("a", 1), '["a",1]'),
    ],
)
def test_how_text_shows_values(value: object, written: str) -> None:
    """A value stands bare where that is unmistakable, and quoted like JSON otherwise."""
    line = render(TEXT, time="T", value=value)

    assert line == f"T info    it.happened value={written}"


def test_colours_are_only_added_when_asked_for() -> None:
    """Colour codes surround time, level, event and keys, and nothing else changes."""
    event = {"time": "T", "level": "warning", "event": "it.happened", "key": "value"}

    line = TextRenderer(colours=True)(None, "warning", event)

    assert line == (
        "\x1b[2mT\x1b[0m \x1b[33mwarning\x1b[0m \x1b[1mit.happened\x1b[0m \x1b[2mkey=\x1b[0mvalue"
    )
