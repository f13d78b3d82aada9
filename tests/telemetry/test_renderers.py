"""Rendering: whatever a value holds, an event is one harmless line."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sortie.telemetry.log.renderers import JsonRenderer, TerminalRenderer, TextRenderer
from sortie.telemetry.log.sanitize import Sanitizer

TEXT = TextRenderer()
JSON = JsonRenderer()
TERMINAL = TerminalRenderer(colours=False)

# Surrogates too: file names and agents' output may hold them.
ANY_TEXT = st.text(st.characters(exclude_categories=()))
SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | ANY_TEXT | st.binary()
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner) | st.dictionaries(ANY_TEXT, inner), max_leaves=10
)


Renderer = TextRenderer | JsonRenderer | TerminalRenderer


def render(renderer: Renderer, **values: object) -> str:
    clean = Sanitizer(())(None, "info", {"level": "info", "event": "it.happened", **values})
    return renderer(None, "info", clean)


@pytest.mark.parametrize("renderer", [TEXT, JSON, TERMINAL], ids=["text", "json", "terminal"])
@given(value=VALUES)
def test_no_value_makes_a_second_line(renderer: Renderer, value: object) -> None:
    """A line holds no character that ends a line or that a terminal could act on."""
    line = render(renderer, value=value)

    assert line.isprintable()
    assert line.splitlines() == [line]


@given(value=ANY_TEXT)
def test_json_carries_a_text_unchanged(value: str) -> None:
    """A program that parses the JSON line gets the text back, escapes and all."""
    line = render(JSON, value=value)

    assert json.loads(line) == {"level": "info", "event": "it.happened", "value": value}


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


STAMP = "2026-01-01T12:00:00.123456Z"


def shown(renderer: TerminalRenderer, event: str, level: str = "info", **values: object) -> str:
    return renderer(None, level, {"time": STAMP, "level": level, "event": event, **values})


def test_a_terminal_lines_up_events_behind_their_issues() -> None:
    """Names that are longer than those before move the rest of the lines, but not without end."""
    renderer = TerminalRenderer(colours=False)

    told = [
        shown(renderer, "daemon.started", version="1"),
        shown(renderer, "run.started", issue="DEMO-1", run="0123456789", attempt=0),
        shown(renderer, "run.started", issue="件-1", run="0123456789"),
        shown(renderer, "poll.failed", "warning", error="no"),
        shown(renderer, "run.started", issue="X" * 30),
        shown(renderer, "run.started", issue="A"),
    ]

    assert told == [
        "12:00:00Z daemon.started version=1",
        "12:00:00Z DEMO-1 run.started attempt=0 run=01234567",
        "12:00:00Z 件-1   run.started run=01234567",
        "12:00:00Z        warning poll.failed error=no",
        f"12:00:00Z {'X' * 30} run.started",
        f"12:00:00Z A{' ' * 23} run.started",
    ]


@pytest.mark.parametrize(
    ("outcome", "colour"),
    [("succeeded", "\x1b[32m"), ("stalled", "\x1b[31m"), ("interrupted", "\x1b[33m")],
)
def test_an_outcome_has_a_colour(outcome: str, colour: str) -> None:
    """Good, bad and neither are seen from afar; the words are the same without colours."""
    event = {"issue": "A", "status": outcome}

    line = shown(TerminalRenderer(colours=True), "run.finished", **event)

    assert f"{colour}{outcome}\x1b[0m" in line
    plain = re.sub(r"\x1b\[[0-9;]*m", "", line)
    assert plain == shown(TerminalRenderer(colours=False), "run.finished", **event)
