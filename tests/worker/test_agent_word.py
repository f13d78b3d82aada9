"""What an agent tells Sortie during a turn, and in which order it counts."""

from __future__ import annotations

import pytest

from sortie.model.questions import Question
from sortie.worker.agent_word import AgentWord, WordRefused
from sortie.worker.outcome import AgentStatus, StatusWord

DONE = AgentStatus(StatusWord.DONE)
BLOCKED = AgentStatus(StatusWord.BLOCKED, "no access")
WHICH = Question(text="Which?")


def test_the_last_status_counts() -> None:
    """Of several words about its work the agent's last one is taken, once."""
    word = AgentWord()
    assert word.take() is None

    word.status(BLOCKED)
    word.status(DONE)

    assert (word.take(), word.take()) == (DONE, None)


def test_a_question_stands() -> None:
    """A question replaces what was said before it, and nothing replaces it until it is taken."""
    word = AgentWord()
    word.status(DONE)
    word.ask(WHICH)

    with pytest.raises(WordRefused, match="end the turn"):
        word.ask(Question(text="And which else?"))
    with pytest.raises(WordRefused, match="end the turn"):
        word.status(DONE)
    assert word.take() == WHICH

    word.status(BLOCKED)
    assert word.take() == BLOCKED


def test_no_questions() -> None:
    """Where the settings allow no questions, one is refused and what was said stands."""
    word = AgentWord(asks=False)
    word.status(BLOCKED)

    with pytest.raises(WordRefused, match="no questions"):
        word.ask(WHICH)

    assert word.take() == BLOCKED
