"""Kiro's page names the settings and the simulator's directives as they are."""

from __future__ import annotations

import pytest

from sortie.agents.kiro.settings import KiroSettings
from sortie.kiro.simulator.agent_file import FIELDS
from sortie.kiro.simulator.arguments import Acp, Chat
from sortie.kiro.simulator.directives import describe
from sortie.worker.outcome import StatusWord
from tests.docs.pages import page, section, table, word, words

TEXT = page("agents/kiro.md")


def test_every_directive_is_listed() -> None:
    """The table of directives is that of the simulator, in its order."""
    known = [line.split("=")[0].strip() for line in describe().splitlines()]

    assert [word(row["directive"]) for row in table(TEXT, "directive")] == known


@pytest.mark.parametrize(
    ("command", "taken"), [("chat", Chat()), ("acp", Acp())], ids=["chat", "acp"]
)
def test_every_option_is_listed(command: str, taken: Chat | Acp) -> None:
    """The tables of options are those of the simulator, but for the help."""
    rows = table(TEXT, f"option of `{command}`")
    told = {
        text.split("=")[0].split()[0] for row in rows for text in words(next(iter(row.values())))
    }

    known = {f"--{name.replace('_', '-')}" for name in vars(taken)} - {"--help", "--prompt"}
    assert {option for option in told if option.startswith("--")} == known


def test_every_field_of_an_agent_is_listed() -> None:
    """The table of fields names all that may stand in an agent's file, but for its name."""
    told = {name for row in table(TEXT, "field") for name in words(row["field"])}

    assert told - {"file://"} == FIELDS - {"name"}


def test_every_setting_is_listed() -> None:
    """The table of keys holds each key of the block."""
    written = {word(row["key"]) for row in table(TEXT, "key")}

    assert written == {f"kiro.{name}" for name in KiroSettings.model_fields}


def test_every_status_word_is_listed() -> None:
    """The words that an agent may leave are those that the worker understands."""
    rows = table(section(TEXT, "How an agent finishes"), "word")

    assert {word(row["word"]) for row in rows} == set(StatusWord)
