"""Sessions that one of Kiro's engines keeps in two JSON files each."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any, ClassVar

from sortie.json_rpc import values
from sortie.kiro.conversations.files import milliseconds, read_lines, read_object
from sortie.kiro.conversations.records import (
    Conversation,
    ConversationError,
    ConversationSummary,
    Engine,
)


class SessionFiles(ABC):
    """The sessions below a folder, which need not be there; an engine's class says where and how.

    ``KEYS`` are the engine's names for the session's id and its times. Files of more than
    ``limit`` bytes are not read.
    """

    ENGINE: ClassVar[Engine]
    KEYS: ClassVar[tuple[str, str, str]]

    def __init__(self, sessions: str, limit: int) -> None:
        self._sessions = sessions
        self._limit = limit

    @abstractmethod
    def paths(self) -> Iterator[str]:
        """Return the session's file of each session."""

    @staticmethod
    @abstractmethod
    def messages_path(path: str) -> str:
        """Return the messages' file of a session."""

    @staticmethod
    @abstractmethod
    def directories(session: Mapping[str, Any]) -> list[str]:
        """Return the directories that a session is about."""

    @staticmethod
    @abstractmethod
    def conversation(
        session: Mapping[str, Any],
        messages: Iterable[Mapping[str, Any]],
        summary: ConversationSummary,
    ) -> Conversation:
        """Return a session from what its two files hold."""

    @abstractmethod
    def delete(self, summary: ConversationSummary) -> None:
        """Delete a session. Raises ConversationError where it stays."""

    def summaries(self, directory: str | None = None) -> Iterator[ConversationSummary]:
        """Return the sessions of a directory, or all of them; one that cannot be read is not."""
        for path in self.paths():
            with suppress(ConversationError):
                session = read_object(path, self._limit)
                places = self.directories(session)
                if directory is None or directory in places:
                    yield self._summary(path, session, directory or next(iter(places), ""))

    def load(self, summary: ConversationSummary) -> Conversation:
        """Return a session. Raises ConversationError where its files cannot be read."""
        session = read_object(summary.place, self._limit)
        messages = read_lines(self.messages_path(summary.place), self._limit)
        return self.conversation(session, messages, summary)

    def _summary(
        self, path: str, session: Mapping[str, Any], directory: str
    ) -> ConversationSummary:
        identity, created_key, updated_key = self.KEYS
        created = milliseconds(session.get(created_key))
        return ConversationSummary(
            engine=self.ENGINE,
            id=values.text(session, identity) or path,
            directory=directory,
            place=path,
            title=values.text(session, "title"),
            created=created,
            updated=milliseconds(session.get(updated_key)) or created or 0,
        )
