"""Kiro's page names the settings and the simulator's directives as they are."""

from __future__ import annotations

from sortie.agents.kiro.settings import KiroSettings
from sortie.kiro.simulator.directives import describe
from sortie.kiro.simulator.program import parse_chat
from sortie.worker.outcome import StatusWord
from tests.docs.pages import page, section, table, word, words

TEXT = page("agents/kiro.md")


def test_every_directive_is_listed() -> None:
    """The table of directives is that of the simulator, in its order."""
    known = [line.split("=")[0].strip() for line in describe().splitlines()]

    assert [word(row["directive"]) for row in table(TEXT, "directive")] == known


def test_every_option_is_listed() -> None:
    """The table of options is that of the simulator, but for the help."""
    rows = table(TEXT, "option of `chat`")
    told = {
        text.split("=")[0].split()[0] for row in rows for text in words(next(iter(row.values())))
    }

    known = {f"--{name.replace('_', '-')}" for name in vars(parse_chat([]))} - {
        "--help",
        "--prompt",
    }
    assert {option for option in told if option.startswith("--")} == known - {"--help", "--prompt"}


def test_every_setting_is_listed() -> None:
    """The table of keys holds each key of the block."""
    written = {word(row["key"]) for row in table(TEXT, "key")}

    assert written == {f"kiro.{name}" for name in KiroSettings.model_fields}


def test_every_status_word_is_listed() -> None:
    """The words that an agent may leave are those that the worker understands."""
    rows = table(section(TEXT, "How an agent finishes"), "word")

    assert {word(row["word"]) for row in rows} == set(StatusWord)
