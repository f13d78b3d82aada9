"""Kiro's page names the settings and the simulator's directives as they are."""

from __future__ import annotations

from sortie.agents.kiro.settings import KiroSettings
from sortie.kiro.simulator.directives import describe
from sortie.worker.outcome import StatusWord
from tests.docs.pages import page, section, table, word

TEXT = page("agents/kiro.md")


def test_every_directive_is_listed() -> None:
    """The table of directives is that of the simulator, in its order."""
    known = [line.split("=")[0].strip() for line in describe().splitlines()]

    assert [word(row["directive"]) for row in table(TEXT, "directive")] == known


def test_every_setting_is_listed() -> None:
    """The table of keys holds each key of the block."""
    written = {word(row["key"]) for row in table(TEXT, "key")}

    assert written == {f"kiro.{name}" for name in KiroSettings.model_fields}


def test_every_status_word_is_listed() -> None:
    """The words that an agent may leave are those that the worker understands."""
    rows = table(section(TEXT, "Asking for a person"), "word")

    assert {word(row["word"]) for row in rows} == set(StatusWord)
