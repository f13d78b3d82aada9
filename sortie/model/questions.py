"""A question that an agent asks the people of an issue, and what they answer."""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct

QUESTION_LIMIT = 4000
"""Characters of a question's text."""

OPTION_LIMIT = 200
"""Characters of one option."""

OPTIONS_LIMIT = 10
"""Options that a question may have."""

ANSWER_LIMIT = 16_000
"""Characters of an answer that are kept."""

NAME_LIMIT = 100
"""Characters of the name of who has answered."""

LONGEST_WAIT = 365 * 86_400.0
"""Seconds for which an answer is waited for at most, where there is a limit."""


ALLOW_ONCE = "allow once"
ALLOW_FOR_ISSUE = "allow for this issue"
DENY = "deny"
PERMISSION_OPTIONS = (ALLOW_ONCE, ALLOW_FOR_ISSUE, DENY)
"""The options of a question that asks for a permission."""


class Question(Struct, frozen=True, kw_only=True):
    """What an agent wants to know before it goes on.

    ``options`` are answers to choose from; without any, people answer in words of their own, which
    they may do in any case. ``default`` is the answer where none comes in time: one of the options,
    where there are some. ``timeout`` is in seconds; None: as long as the settings say.
    ``permission`` identifies what the agent asks leave for, None where it asks for no leave.
    Raises ValueError for what is longer than the limits of this module allow.
    """

    text: str
    options: tuple[str, ...] = ()
    default: str | None = None
    timeout: float | None = None
    permission: str | None = None

    def __post_init__(self) -> None:
        if not self.text.strip():
            raise ValueError("a question needs a text")
        if len(self.text) > QUESTION_LIMIT:
            raise ValueError(f"a question has at most {QUESTION_LIMIT} characters")
        if len(self.options) > OPTIONS_LIMIT:
            raise ValueError(f"a question has at most {OPTIONS_LIMIT} options")
        if any(not option.strip() or len(option) > OPTION_LIMIT for option in self.options):
            raise ValueError(f"an option has between 1 and {OPTION_LIMIT} characters")
        if self.default is not None and self.options and self.default not in self.options:
            raise ValueError("the default of a question is one of its options")
        if self.default is not None and not 0 < len(self.default.strip()) <= QUESTION_LIMIT:
            raise ValueError(f"a default has between 1 and {QUESTION_LIMIT} characters")
        if self.timeout is not None and not 0 < self.timeout <= LONGEST_WAIT:
            raise ValueError("the timeout of a question is between 0 seconds and 365 days")

    def chosen(self, text: str) -> str:
        """Return what a text answers: the option that it names by its number or its words, or the
        text itself."""
        said = text.strip()
        if said.isascii() and said.isdigit() and 0 < int(said[:4]) <= len(self.options):
            return self.options[int(said[:4]) - 1]
        key = said.casefold()
        return next((one for one in self.options if one.strip().casefold() == key), said)


class AnswerWay(StrEnum):
    """How an answer came; ``default``: nobody answered in time."""

    TICKET = "ticket"
    DASHBOARD = "dashboard"
    COMMAND = "command"
    DEFAULT = "default"
