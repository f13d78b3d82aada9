"""What the agent of a run has told Sortie during a turn, other than by ``.sortie/status``.

Rule: a question ends the run, so that nothing is said after it: a further word is refused until
the worker has taken the question.
"""

from __future__ import annotations

from collections.abc import Callable

from msgspec.structs import replace

from sortie.model.outside import cleaned, on_one_line
from sortie.model.questions import OPTION_LIMIT, QUESTION_LIMIT, Question
from sortie.model.texts import start_of
from sortie.worker.outcome import AgentStatus, StatusWord


class WordRefused(Exception):
    """What an agent says cannot be taken; the message is a sentence for the agent."""


class AgentWord:
    """The word of a run's agent: the worker takes it after each turn.

    ``asks`` tells whether the settings let agents ask people.
    """

    def __init__(self, *, asks: bool = True) -> None:
        self._asks = asks
        self._word: AgentStatus | Question | None = None

    def status(self, word: AgentStatus) -> None:
        """Take how the agent says that its work stands; the last one of a turn counts.

        Raises WordRefused after a question.
        """
        self._refuse_after_question()
        self._word = word

    def ask(self, question: Question) -> None:
        """Take a question, which counts more than what the agent has said before.

        Raises WordRefused after another question, and where the settings allow none.
        """
        if not self._asks:
            raise WordRefused("The settings of this workflow let agents ask no questions.")
        self._refuse_after_question()
        self._word = question

    def take(self) -> AgentStatus | Question | None:
        """Return the word that was said since the last time, and forget it."""
        word, self._word = self._word, None
        return word

    def heard(
        self, written: AgentStatus | None, redact: Callable[[str], str]
    ) -> AgentStatus | Question | None:
        """Take the word of a turn: what was said, else what was ``written`` to the status file.

        To be blocked for a reason is to ask how to go on, where the settings let agents ask.
        """
        word = self.take() or written
        if isinstance(word, Question):
            return readable(word, redact)
        if word is not None and word.word is StatusWord.BLOCKED and word.reason and self._asks:
            return readable(Question(text=word.reason), redact)
        return word

    def _refuse_after_question(self) -> None:
        if isinstance(self._word, Question):
            raise WordRefused(
                "You have asked a question in this turn: end the turn now, and wait for the answer."
            )


def readable(question: Question, redact: Callable[[str], str]) -> Question:
    """Return a question without secrets, and without characters that people do not see."""

    def option(text: str) -> str:
        return start_of(on_one_line(redact(text)), OPTION_LIMIT) or "-"

    default = question.default
    if default is not None and question.options:
        default = option(default)
    elif default is not None:
        default = start_of(cleaned(redact(default)), QUESTION_LIMIT).strip() or "-"
    return replace(
        question,
        text=start_of(cleaned(redact(question.text)), QUESTION_LIMIT).strip() or "-",
        options=tuple(map(option, question.options)),
        default=default,
    )
